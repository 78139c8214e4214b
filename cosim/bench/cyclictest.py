"""`cyclictest` of Debian's rt-tests: how late a thread in C wakes up that does nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np

from cosim.bench.peers import MissingPeer
from cosim.bench.rows import NotMeasured
from cosim.errors import CosimError

PROGRAM = "cyclictest"
LONGEST = 100_000  # µs told one by one; of what is longer, only the longest is known


class NoCyclictest(MissingPeer):
    """It is no package of Python."""

    def __init__(self) -> None:
        CosimError.__init__(self, f"{PROGRAM} is not installed: apt-get install rt-tests")


def cyclictest_path() -> str:
    """Where the program is. Raises NoCyclictest."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise NoCyclictest
    return path


def latencies(count: int, period_us: int, cpu: int, priority: int) -> np.ndarray:
    """(count,) whole µs, rounded down, in order of size: how late it woke in so many periods, on one CPU under
    SCHED_FIFO with locked memory.

    A period in which it still slept, or waited for its turn, is left out: it goes on with the next to come.
    Raises NoCyclictest; NotMeasured with the last line it said when it fails.
    """
    options = f"-m -q -t 1 -a {cpu} -p {priority} -i {period_us} -l {count} -h {LONGEST}"
    done = subprocess.run([cyclictest_path(), *options.split()], capture_output=True, text=True, check=False)
    found = histogram(done.stdout)
    if done.returncode or len(found) < count:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()
        raise NotMeasured(f"{PROGRAM} failed: {said[-1]}")
    return found


def histogram(text: str) -> np.ndarray:
    """(n,) µs in order of size, from what the program prints of one thread; those too long for the histogram are
    as long as the longest."""
    bins = np.array([line.split() for line in re.findall(r"^\d+ +\d+$", text, re.MULTILINE)], dtype=int).reshape(-1, 2)
    longest, beyond = (
        int(match[1]) if (match := re.search(rf"^# {what}: *(\d+)", text, re.MULTILINE)) else 0
        for what in ("Max Latencies", "Histogram Overflows")
    )
    return np.concatenate([np.repeat(bins[:, 0], bins[:, 1]), np.repeat(longest, beyond)])


def version() -> str | None:
    """None where it is not installed."""
    path = shutil.which(PROGRAM)
    if path is None:
        return None
    said = subprocess.run([path, "--help"], capture_output=True, text=True, check=False)
    match = re.search(r"\bV (\S+)", said.stdout + said.stderr)
    return match[1] if match else None
