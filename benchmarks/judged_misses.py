"""Missed deadlines of a run with emulated drives, judged: beside cyclictest, without those by late answers."""

from __future__ import annotations

import numpy as np

from benchmarks import cyclictest, late_answers
from benchmarks.rows import NotMeasured
from benchmarks.rows_realtime import last_cpu, misses_beside
from cosim.execution.timing.deadlines import DeadlineRecord
from cosim.simulation.loop.pacing import Pacing

PERIOD_US = 1000
MAX_MISSED = 1e-3  # of all ticks
NO_ANSWERS, NO_LATENCIES = np.zeros((0, 2), np.int64), np.zeros(0)


def latencies_of_cyclictest(seconds: float) -> np.ndarray:
    """[µs], at the period and the priority of the run; none where it cannot run."""
    try:
        return cyclictest.latencies(round(seconds * 1e6 / PERIOD_US), PERIOD_US, last_cpu(), Pacing().priority)
    except (cyclictest.NoCyclictest, NotMeasured):
        return NO_LATENCIES


def judge(timing: DeadlineRecord, late: np.ndarray, latencies: np.ndarray) -> tuple[str, bool]:
    """(what is judged; whether these misses are few enough): at most MAX_MISSED of all ticks, or no more than
    cyclictest's.

    late: as `late_answers.printed_times`.
    """
    ticks = int(np.count_nonzero(timing.counted))
    by_drives = late_answers.misses_by_late_answers(timing, late)
    judged = len(timing.missed.row) - by_drives
    few = ticks > 0 and judged <= MAX_MISSED * ticks
    text = (
        f"judged: {judged} misses, without {by_drives} by {len(late)} answers of the drives after more than"
        f" {late_answers.PROMISED_NS / 1e3:g} µs"
    )
    if not len(latencies):
        return text, few
    would, more = misses_beside(timing, judged, latencies)
    return f"{text}; cyclictest would have missed {would:g}", few or (ticks > 0 and not more)
