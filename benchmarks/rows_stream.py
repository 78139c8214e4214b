"""What outputs and dashboards cost a loop in real time: 100 signals at 1 kHz, recorded, published and watched.

Runs with them alternate with runs without. All are at a fixed priority, on a CPU that nothing else of the run uses.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from threading import Timer
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, Samples
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from benchmarks.rows_dashboard import address_of, command, need_viser
from benchmarks.rows_realtime import check_priority, last_cpu
from cosim import load_rig
from cosim.rig.run.run import Run

STEP = 1e-3  # s
SIGNALS = 100
LINKS = ("wrist_3_link", "forearm_link", "wrist_1_link")
DASHBOARDS, STALLED = 10, 3
ROUNDS = 3
STALL_AFTER = 1.0  # s
RUNS_PER_BUDGET = 6.0


@dataclass(frozen=True)
class Runs:
    """The paired runs of a measurement, which alternate between a loop without outputs and one with them. alone:
    (rounds + 1) runs without outputs; loaded: (rounds,) runs with them, each between two without."""

    alone: Sequence[Run]
    loaded: Sequence[Run]

    def latencies(self) -> tuple[np.ndarray, np.ndarray]:
        """(with, the larger one of the neighbours without) (rounds,) 99th percentile [s] of the wake-up latency."""
        alone = _figures(self.alone, "latency", "p99_s")
        return _figures(self.loaded, "latency", "p99_s"), np.maximum(alone[1:], alone[:-1])

    def ticks(self) -> tuple[np.ndarray, np.ndarray]:
        """(with, mean of the neighbours without) (rounds,) median [s] of the time of the loop's thread in a tick."""
        alone = _figures(self.alone, "tick", "median_s")
        return _figures(self.loaded, "tick", "median_s"), 0.5 * (alone[1:] + alone[:-1])


def _timing(run: Run) -> dict[str, Any]:
    found = run.summary["timing"]
    assert found is not None  # of a run in real time
    return dict(found)


def _figures(runs: Sequence[Run], of: str, key: str) -> np.ndarray:
    return np.array([_timing(run)[of][key] for run in runs])


def in_the_loop(budget: Budget) -> Measurement:
    """The median time that outputs add to a tick in the thread of the loop."""
    runs = measured(budget)
    loaded, alone = runs.ticks()
    lost = {run.summary["ticks"] for run in runs.loaded} != {run.summary["ticks"] for run in runs.alone}
    with_and_without = f"tick {1e6 * np.median(loaded):.2f} µs with outputs, {1e6 * np.median(alone):.2f} µs without"
    return Measurement(
        Samples(np.maximum(loaded - alone, 0.0)),
        note=f"{with_and_without}; {_latencies(runs)}",
        failed="ticks are missing" if lost else "",
    )


def beside(dashboards: int, budget: Budget) -> Measurement:
    """p99 of the wake-up latency with outputs and dashboards, against that without."""
    runs = measured(budget, dashboards)
    return Measurement(Samples(*runs.latencies()), note=_latencies(runs), growth=True)


def measured(budget: Budget, dashboards: int = 0) -> Runs:
    """dashboards: that watch; the first STALLED of them are stopped. Raises NotMeasured where nothing can be run at a
    fixed priority, or without viser."""
    check_priority()
    frames = ", ".join(f"{{name: {link}_frame, link: {link}}}" for link in LINKS)
    keys = [
        f"schedule.step={STEP} s",
        f"schedule.realtime={{cpu: {last_cpu()}, overrun: skip, warm_up: 0 s}}",
        f"mechanism.frames=[{frames}]",
    ]
    seconds = budget.run / RUNS_PER_BUDGET
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        endpoint = f"ipc://{folder / 'stream'}"
        alone = load_rig(sample_rig(), keys, interpret=False)
        published = load_rig(sample_rig(), [*keys, f"telemetry.publish={endpoint}"], interpret=False)
        without, loaded = [alone.run(seconds)], list[Run]()
        if len(without[0].signals) != SIGNALS:
            raise NotMeasured(f"the rig has {len(without[0].signals)} signals, not {SIGNALS}")
        for k in range(budget.of(ROUNDS)):
            with _watched(endpoint, dashboards):
                loaded.append(published.run(seconds, record=folder / f"run{k}.mcap"))
            without.append(alone.run(seconds))
    return Runs(without, loaded)


@contextmanager
def _watched(endpoint: str, count: int) -> Iterator[None]:
    """So many dashboards that wait for what the endpoint publishes; the first STALLED of them are stopped."""
    with ExitStack() as stack:
        if count:
            need_viser()
        started = [stack.enter_context(command("dash", endpoint, "--port", "0")) for _ in range(count)]
        for process in started:
            address_of(process)
        stalled = started[:STALLED]
        # when they are connected: the run publishes by then
        timer = Timer(STALL_AFTER, _signal, (stalled, signal.SIGSTOP))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            _signal(stalled, signal.SIGCONT)


def _signal(processes: Sequence[Popen], number: int) -> None:
    for process in processes:
        process.send_signal(number)


def _latencies(runs: Runs) -> str:
    def shown(runs: Sequence[Run]) -> str:
        found = np.array([_figures(runs, "latency", key) for key in ("median_s", "p99_s", "max_s")]).T
        return ", ".join("/".join(f"{1e6 * value:.0f}" for value in of_run) for of_run in found)

    return f"latency median/p99/max [µs] {shown(runs.loaded)}; without {shown(runs.alone)}"


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
        "ten dashboards",
        f"p99 of the wake-up latency with {DASHBOARDS} dashboards, {STALLED} of them stopped",
        lambda budget: beside(budget.of(DASHBOARDS), budget),
        "the same run without outputs, before and after: the larger",
        target=Target("ratio", 1.25, at_most=True),
    ),
)
