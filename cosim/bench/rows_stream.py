"""What outputs and subscribers cost a loop in real time: 100 signals at 1 kHz, recorded, published and watched.

A run with them stands between two runs without. Both are on the same CPU at a fixed priority.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim import load_rig
from cosim.bench.paired_timing import Budget, Samples
from cosim.bench.robots import sample_rig
from cosim.bench.rows import BenchCase, Measurement, NotMeasured, Target
from cosim.bench.rows_realtime import check_priority, last_cpu
from cosim.rig.run import Run

STEP = 1e-3  # s
SIGNALS = 100
LINKS = ("wrist_3_link", "forearm_link", "wrist_1_link")
SUBSCRIBERS, STALLED = 10, 3
LONGEST = 20.0  # s of a run

# reads what the address in its first argument publishes; with a second argument it stops itself after one message
SUBSCRIBER = """
import os, signal, sys
import zmq
socket = zmq.Context().socket(zmq.SUB)
socket.subscribe(b"")
socket.connect(sys.argv[1])
while socket.recv():
    if len(sys.argv) > 2:
        os.kill(os.getpid(), signal.SIGSTOP)
"""


@dataclass(frozen=True)
class Runs:
    """The runs without, with, and without outputs again; grown: memory [bytes] that the process of the run took on."""

    before: Run
    loaded: Run
    after: Run
    grown: int

    def latencies(self) -> tuple[float, float]:
        """(with, the larger one without) 99th percentile [s] of the wake-up latency."""
        without = [_timing(run)["latency"]["p99_s"] for run in (self.before, self.after)]
        return _timing(self.loaded)["latency"]["p99_s"], max(without)

    def tick(self) -> tuple[float, float]:
        """(with, without) median [s] of the time of the loop's thread in a tick."""
        without = [_timing(run)["tick"]["median_s"] for run in (self.before, self.after)]
        return _timing(self.loaded)["tick"]["median_s"], float(np.mean(without))


def _timing(run: Run) -> dict[str, Any]:
    found = run.summary["timing"]
    assert found is not None  # of a run in real time
    return dict(found)


def in_the_loop(budget: Budget) -> Measurement:
    """The median time that outputs add to a tick in the thread of the loop."""
    runs = measured(budget, subscribers=0)
    loaded, alone = runs.tick()
    lost = runs.loaded.summary["ticks"] != runs.before.summary["ticks"]
    note = f"tick {1e6 * loaded:.2f} µs with outputs, {1e6 * alone:.2f} µs without; {_latencies(runs)}"
    return Measurement(
        Samples(np.array([max(loaded - alone, 0.0)])), note=note, failed="ticks are missing" if lost else ""
    )


def beside(subscribers: int, budget: Budget) -> Measurement:
    """p99 of the wake-up latency with outputs and subscribers, against that without."""
    runs = measured(budget, subscribers)
    loaded, alone = runs.latencies()
    note = _latencies(runs)
    if subscribers:
        note += f"; memory of the run grew by {runs.grown / 1e6:.1f} MB"
    return Measurement(Samples(np.array([loaded]), np.array([alone])), note=note, growth=True)


def measured(budget: Budget, subscribers: int) -> Runs:
    """Raises NotMeasured where nothing can be run at a fixed priority."""
    check_priority()
    frames = ", ".join(f"{{name: {link}_frame, link: {link}}}" for link in LINKS)
    keys = [
        f"schedule.step={STEP} s",
        f"schedule.realtime={{cpu: {last_cpu()}, overrun: skip, warm_up: 0 s}}",
        f"mechanism.frames=[{frames}]",
    ]
    seconds = min(budget.run, LONGEST)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        endpoint = f"ipc://{folder / 'stream'}"
        alone = load_rig(sample_rig(), keys, interpret=False)
        published = load_rig(sample_rig(), [*keys, f"telemetry.publish={endpoint}"], interpret=False)
        before = alone.run(seconds)
        if len(before.signals) != SIGNALS:
            raise NotMeasured(f"the rig has {len(before.signals)} signals, not {SIGNALS}")
        stack.enter_context(_subscribed(endpoint, subscribers))
        memory = _memory()
        loaded = published.run(seconds, record=folder / "run.mcap")
        return Runs(before, loaded, alone.run(seconds), _memory() - memory)


@contextmanager
def _subscribed(endpoint: str, count: int) -> Iterator[None]:
    """So many processes that subscribe; the first STALLED of them stop reading."""
    command = [sys.executable, "-c", SUBSCRIBER, endpoint]
    processes = [subprocess.Popen([*command, *(["stall"] if k < STALLED else [])]) for k in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _memory() -> int:
    """Bytes that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _latencies(runs: Runs) -> str:
    def shown(run: Run) -> str:
        latency = _timing(run)["latency"]
        return ", ".join(f"{1e6 * latency[which]:.0f}" for which in ("median_s", "p99_s", "max_s"))

    return f"latency median, p99, max [µs] {shown(runs.loaded)}; without {shown(runs.before)} and {shown(runs.after)}"


CASES = (
    BenchCase(
        "outputs in the loop",
        f"a tick of {SIGNALS} signals at 1 kHz in real time, recorded and published: what it adds in the loop's thread",
        in_the_loop,
        target=Target("ours", 5.0, at_most=True),
    ),
    BenchCase(
        "outputs at 1 kHz",
        "p99 of the wake-up latency of the same run",
        lambda budget: beside(0, budget),
        "the same run without outputs, before and after: the larger",
        target=Target("ratio", 1.25, at_most=True),
    ),
    BenchCase(
        "ten subscribers",
        f"p99 of the wake-up latency with {SUBSCRIBERS} subscribers, {STALLED} of them stalled",
        lambda budget: beside(SUBSCRIBERS, budget),
        "the same run without outputs, before and after: the larger",
        target=Target("ratio", 1.25, at_most=True),
    ),
)
