"""Whole runs against the ticks that they are made of."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from cosim import load_rig
from cosim.bench.paired_timing import Budget, Samples, undisturbed
from cosim.bench.robots import sample_rig
from cosim.bench.rows import BenchCase, Measurement, Target
from cosim.rig.rig import Rig
from cosim.timing.tick_ring import SharedWord, TickRing

PLACES = 512  # of the ring of the ticks alone
LONG, SHORT = 200.0, 5.0  # s


def loop_alone(rig: Rig, ticks: int) -> None:
    """Ticks in a ring that is used again and again, and nothing else."""
    engine, ring, left = rig.engine(), TickRing(rig.tick_model.program, PLACES), ticks
    while left:
        engine.run_ticks(ring, min(PLACES, left))
        ring.words[SharedWord.READ] = ring.words[SharedWord.TAKEN]
        left -= min(PLACES, left)


def _seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def run(duration: float, budget: Budget) -> Measurement:
    """CPU time of `rig.run` with its summary, the second and further ones of a rig."""
    rig = load_rig(sample_rig(), interpret=False)
    ticks = round(duration / rig.tick_model.step) + 1
    pairs = max(5, min(budget.pairs, round(20.0 / duration)))
    rig.run(duration)
    with undisturbed():
        rows = [
            (_seconds(lambda: rig.run(duration).summary), _seconds(lambda: loop_alone(rig, ticks)))
            for _ in range(pairs)
        ]
    return Measurement(Samples(*np.array(rows).T), growth=True)


CASES = (
    BenchCase(
        f"run of {LONG:g} s",
        "ur5_sim: rig.run with all signals and the summary, CPU time",
        lambda budget: run(LONG, budget),
        "the same ticks in the bare loop",
        "ms",
        Target("ratio", 1.3, at_most=True),
    ),
    BenchCase(
        f"run of {SHORT:g} s",
        "ur5_sim: the same, the second run of the rig and later ones",
        lambda budget: run(SHORT, budget),
        "the same ticks in the bare loop",
        "ms",
        Target("ours", 10.0, at_most=True),
    ),
)
