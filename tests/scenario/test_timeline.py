"""When faults begin and end: at a time, after a condition, after one another."""

import math

import pytest

from cosim.apps.scenario.timeline import TimedFault, Timeline
from tests.hardware.emulation_helpers import spec

STEP = 0.001


def timed(at=0.0, duration=math.inf, when=None, follows=False, kind="drop"):
    return TimedFault(spec(kind, at=at, duration=duration), when, follows)


def ticks_of(timeline, ticks, value=lambda signal, tick: 0.0):
    """Tick -> kinds that act in it, tick by tick."""
    found = {}
    for tick in range(ticks):
        timeline.update(tick, lambda signal, tick=tick: value(signal, tick - 1))
        found[tick] = [each.kind for each in timeline.active(tick)]
    return found


def test_a_fault_at_a_time_acts_from_the_first_tick_at_or_behind_it():
    acts = ticks_of(Timeline([timed(at=0.0031, duration=0.002)], STEP), 10)
    assert [tick for tick, kinds in acts.items() if kinds] == [4, 5]
    acts = ticks_of(Timeline([timed(at=0.3 - 0.297, duration=0.002)], STEP), 10)  # 0.0030000000000000027
    assert [tick for tick, kinds in acts.items() if kinds] == [3, 4]


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_a_condition_is_that_of_the_tick_before_and_counts_once(factor):
    timeline = Timeline([timed(at=0.002, when=("s", factor, factor * 5.0))], STEP)
    acts = ticks_of(timeline, 12, lambda signal, tick: factor * (6.0 if tick == 3 else 4.0))
    assert [tick for tick, kinds in acts.items() if kinds] == list(range(6, 12))
    assert timeline.untriggered == []


def test_nan_is_beyond_no_bound():
    timeline = Timeline([timed(when=("s", 1.0, 0.0))], STEP)
    ticks_of(timeline, 5, lambda signal, tick: math.nan)
    assert timeline.untriggered == [0]


def test_faults_in_sequence():
    """The second follows the first, the third waits for both and for its signal."""
    faults = [timed(at=0.002, kind="drop"), timed(at=0.003, follows=True, kind="delay"), timed(when=("s", 1.0, 0.0))]
    timeline = Timeline(faults, STEP)
    assert timeline.untriggered == [1, 2]
    acts = ticks_of(timeline, 9, lambda signal, tick: 1.0)
    assert [timeline.begin_of(k) for k in range(3)] == [2, 5, 5]
    assert acts[1] == [] and acts[2] == ["drop"] and acts[5] == ["drop", "delay", "drop"]


def test_the_next_change_is_known_unless_a_signal_decides():
    faults = [timed(at=0.002, duration=0.004), timed(at=0.01), timed(when=("s", 1.0, 0.0))]
    timeline = Timeline(faults, STEP)
    timeline.update(0, lambda signal: 0.0)
    assert [timeline.next_change(tick) for tick in (0, 2, 6, 10)] == [2, 6, 10, math.inf]
    assert not timeline.waits(0) and not timeline.waits(8)
    assert timeline.waits(9)  # before tick 10 the condition is looked at
