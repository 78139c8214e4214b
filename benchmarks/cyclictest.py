"""`cyclictest` of Debian's rt-tests: the wake-up latency of a thread in C that does nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np

from benchmarks.peers import MissingPeer
from benchmarks.rows import NotMeasured
from cosim.core.errors import CosimError

PROGRAM = "cyclictest"
LONGEST_LATENCY = 100_000  # µs in the histogram; of longer latencies only the maximum is known


class NoCyclictest(MissingPeer):
    """cyclictest is not installed; it is no Python package."""

    def __init__(self) -> None:
        CosimError.__init__(self, f"{PROGRAM} is not installed: apt-get install rt-tests")


def cyclictest_path() -> str:
    """The path of the program. Raises NoCyclictest."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise NoCyclictest
    return path


def latencies(count: int, period_us: int, cpu: int, priority: int) -> np.ndarray:
    """(count,) wake-up latencies in whole µs, rounded down and sorted, on one CPU under SCHED_FIFO with locked memory.

    Missed periods are skipped. Raises NoCyclictest; NotMeasured with the last line of its output when it fails.
    """
    options = f"-m -q -t 1 -a {cpu} -p {priority} -i {period_us} -l {count} -h {LONGEST_LATENCY}"
    done = subprocess.run([cyclictest_path(), *options.split()], capture_output=True, text=True, check=False)
    sorted_us = histogram(done.stdout)
    if done.returncode or len(sorted_us) < count:
        output = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise NotMeasured(f"{PROGRAM} failed: {output[-1]}")
    return sorted_us


def histogram(text: str) -> np.ndarray:
    """(n,) sorted latencies [µs] from the program's output for one thread; those beyond the histogram count as the
    maximum."""
    bins = np.array([line.split() for line in re.findall(r"^\d+ +\d+$", text, re.MULTILINE)], dtype=int).reshape(-1, 2)
    longest, beyond = (
        int(match[1]) if (match := re.search(rf"^# {what}: *(\d+)", text, re.MULTILINE)) else 0
        for what in ("Max Latencies", "Histogram Overflows")
    )
    return np.concatenate([np.repeat(bins[:, 0], bins[:, 1]), np.repeat(longest, beyond)])


def version() -> str | None:
    """None if it is not installed."""
    path = shutil.which(PROGRAM)
    if path is None:
        return None
    done = subprocess.run([path, "--help"], capture_output=True, text=True, check=False)
    match = re.search(r"\bV (\S+)", done.stdout + done.stderr)
    return match[1] if match else None
