"""Each sign, in made-up ticks that have it and in ticks that do not."""

import numpy as np
import pytest

from cosim.control.limits import LIMIT_OF, LIMITS
from cosim.output.events import RunEvent
from cosim.post_mortem.limit_signs import CHECKED, fraction_of, limit_signs
from cosim.post_mortem.sign import growth
from cosim.post_mortem.signs import (
    age_signs,
    bond_signs,
    event_signs,
    number_signs,
    timing_signs,
    tracking_signs,
)
from cosim.post_mortem.window import StopWindow
from cosim.timing import deadlines
from cosim.timing.deadlines import TaskTime

STEP, TICKS = 1e-3, 100
T = np.arange(TICKS) * STEP
RISING = np.linspace(0.0, 1.0, TICKS)


def window(signals=None, limits=None, events=(), joint="a"):
    arrays = {name: np.broadcast_to(np.asarray(value, dtype=float), TICKS) for name, value in (signals or {}).items()}
    units = {f"{joint}/position": "rad"} | dict.fromkeys(arrays, "rad")
    return StopWindow(T, arrays, units, {joint: limits or {}}, STEP, events)


def told(signs):
    return [(round(sign.t / STEP), sign.what, sign.abnormal) for sign in signs]


def test_every_limit_whose_value_is_recorded_is_looked_at():
    assert {row.key for row in LIMITS} - CHECKED.keys() == {"commanded_effort", "stall", "frozen"}


# key -> (signals that reach twice the limit in the middle, as a function of a ramp from 0 to 1; limits)
REACHED = {
    "effort": (lambda x: {"a/command_effort": np.minimum(8.0 * x, 4.0)}, {"effort": 4.0}),
    "rate": (lambda x: {"a/command_effort": 1e-3 * np.cumsum(np.minimum(8.0 * x, 4.0))}, {"rate": 4.0}),
    "power": (lambda x: {"a/command_effort": 2.0, "a/velocity": np.minimum(4.0 * x, 2.0)}, {"power": 4.0}),
    "temperature": (lambda x: {"a/temperature": 40.0 + 80.0 * x}, {"temperature": 80.0}),
    "position": (lambda x: {"a/position": 2.0 * x}, {"lower": -1.0, "upper": 1.0}),
    "residual_energy": (lambda x: {"a/residual_energy": -8.0 * x}, {"residual_energy": 4.0}),
    "load_residual_energy": (lambda x: {"a/load_residual_energy": 8.0 * x}, {"load_residual_energy": 4.0}),
    "shadow_drive": (lambda x: {"a/shadow_drive": 8.0 * x}, {"shadow_drive": 4.0}),
    "shadow_effort": (lambda x: {"a/shadow_effort": 8.0 * x}, {"shadow_effort": 4.0}),
    "shadow_slip": (lambda x: {"a/shadow_slip": 8.0 * x}, {"shadow_slip": 4.0}),
    "shadow_position": (lambda x: {"a/shadow_position": 8.0 * x}, {"shadow_position": 4.0}),
    "units": (lambda x: {"a/unit_disagreement": 8.0 * x}, {"units": 4.0}),
    "tracking": (lambda x: {"a/reference_position": 8.0 * x, "a/position": 0.0}, {"tracking": 4.0}),
    "velocity": (lambda x: {"a/velocity": -8.0 * x}, {"velocity": 4.0}),
}


@pytest.mark.parametrize("key", CHECKED)
def test_a_limit_is_near_and_then_reached(key):
    make, limits = REACHED[key]
    near, at = limit_signs(window(make(RISING), limits))
    assert (round(near.t / STEP), near.abnormal) == (38 if key == "temperature" else 45, False)
    assert (round(at.t / STEP), at.abnormal) == (50, True)
    assert at.limit == limits.get(key, limits.get("upper")) and abs(at.value) >= at.limit * (1 - 1e-9)
    assert near.what.startswith("joint 'a': ") and LIMIT_OF[key].unit_of("rad") in at.what


@pytest.mark.parametrize("key", CHECKED)
def test_a_limit_that_is_far_or_absent_is_not_mentioned(key):
    make, limits = REACHED[key]
    assert not list(limit_signs(window(make(0.3 * RISING), limits)))
    assert not list(limit_signs(window(make(RISING))))


def test_limits_in_words():
    effort = window({"a/command_effort": np.where((T > 0.0195) & (T < 0.0595), 4.0, 1.0)}, {"effort": 4.0})
    what = "joint 'a': commanded effort 4 N*m, at its limit of 4 N*m in 40 of the 80 ticks from then on"
    assert told(limit_signs(effort)) == [(20, what, True)]
    near = window({"a/velocity": 3.7}, {"velocity": 4.0})
    assert told(limit_signs(near)) == [(0, "joint 'a': velocity 3.7 rad/s, 92 % of its limit of 4 rad/s", False)]
    always = window({"a/command_effort": -4.0}, {"effort": 4.0})
    what = "joint 'a': commanded effort -4 N*m, at its limit of 4 N*m from then on"
    assert told(limit_signs(always)) == [(0, what, True)]


def test_the_guard_sees_the_measured_position():
    signals = {"a/position": 0.0, "a/measured_position": RISING * 2.0}
    assert len(list(limit_signs(window(signals, {"lower": -1.0, "upper": 1.0})))) == 2


def test_a_position_with_one_limit_and_one_at_rest_at_a_limit():
    beyond, nearest = fraction_of("position", np.array([-1e6, 0.9, 1.1]), {"upper": 1.0})
    assert beyond.tolist() == [0.0, 0.0, np.inf] and nearest.tolist() == [1.0] * 3
    rest, nearest = fraction_of("position", np.array([1.0 + 1e-10, -1.0 - 1e-10, -1.01]), {"lower": -1.0, "upper": 1.0})
    assert rest.tolist() == [1.0, 1.0, pytest.approx(1.01)] and nearest.tolist() == [1.0, -1.0, -1.0]


def test_growth_begins_where_the_earlier_level_ends():
    level = np.where(np.arange(100) % 2, 0.5, 1.0)
    assert growth(level, 0.1) is None
    assert growth(np.concatenate([level, [2.0, 2.9]]), 0.1) is None
    assert growth(np.concatenate([level, [2.0, 3.1]]), 0.1) == 99
    assert growth(np.concatenate([level, [2.0, 3.1]]), 4.0) is None  # still small
    assert growth(np.concatenate([level, [2.0, 3.1, np.nan]]), 0.1) == 99
    assert growth(np.full(5, np.nan), 0.1) is None


def test_a_tracking_error_that_grows():
    error = np.where(T < 0.0595, 0.01, 0.01 + (T - 0.059) * 5.0)
    grows = window({"a/reference_position": error, "a/position": 0.0})
    what = "joint 'a': tracking error grew from 0.01 to 0.21 rad in 40 ms"
    assert told(tracking_signs(grows)) == [(59, what, True)]
    waves = window({"a/reference_position": 0.1 * np.sin(300.0 * T), "a/position": 0.0})
    small = window({"a/reference_position": error, "a/position": 0.0}, {"tracking": 5.0})
    none = window({"a/position": error})
    assert [told(tracking_signs(each)) for each in (waves, small, none)] == [[], [], []]


def test_a_residual_energy_of_a_bond_that_grows():
    energy = np.where(T < 0.0595, 0.1, -0.1 - 50.0 * (T - 0.059))
    found = told(bond_signs(window({"wheel/residual_energy": energy})))
    assert found == [(59, "bond 'wheel': residual energy grew from 0.1 to 2.1 J in 40 ms", True)]
    assert not list(bond_signs(window({"wheel/residual_energy": 0.1, "a/residual_energy": energy})))


def test_a_value_that_is_not_finite():
    broken = np.where(T < 0.0695, 1.0, np.nan)
    found = told(number_signs(window({"a/command_effort": broken, "a/position": 0.0})))
    assert found == [(70, "joint 'a': command_effort is nan", True)]
    assert not list(number_signs(window({"a/command_effort": 1.0, "a/temperature": np.nan})))


def test_feedback_that_is_late():
    late = np.where(T < 0.0795, 5e-4, 5e-4 + T - 0.079)
    what = "joint 'a': feedback is 2.5 ms old, later up to 20.5 ms; usual are 0.5 ms"
    assert told(age_signs(window({"a/age": late}))) == [(81, what, True)]
    for usual in (5e-4, 5e-3, np.nan):  # a slow drive is as it is
        assert not list(age_signs(window({"a/age": usual})))


def test_ticks_that_take_longer_than_a_step():
    slow = T > 0.0895
    signals = {
        "timing/latency": np.where(slow, 2e-3, 1e-5),
        "timing/read": 2e-4,
        "timing/control": np.nan,
        "timing/end_to_end": np.where(slow, 2.3e-3, 3e-4),
    }
    what = "timing: a tick took 2.3 ms, longer than its step; latency took 2 ms of it; 10 ticks did"
    assert told(timing_signs(window(signals))) == [(90, what, True)]
    assert not list(timing_signs(window({**signals, "timing/end_to_end": 3e-4})))
    assert not list(timing_signs(window({"a/position": 0.0})))


def test_timing_signals_have_the_names_of_a_run_in_real_time():
    """Two tasks of 100 us, of which the second takes 1.4 ms in tick 70."""
    tasks = tuple(TaskTime(name, 1, 0, 1_000_000, False) for name in ("read", "write"))
    stamps = np.arange(TICKS)[:, None] * 1_000_000 + np.array([0, 10_000, 110_000, 210_000, 0])
    stamps[70, 3] += 1_300_000
    columns = deadlines.values(tasks, np.arange(TICKS), stamps)
    names = [name for name, _ in deadlines.channels(tasks)]
    what = "timing: a tick took 1.51 ms, longer than its step; write took 1.4 ms of it"
    assert told(timing_signs(window(dict(zip(names, columns.T, strict=True))))) == [(70, what, True)]


def test_events_once_each():
    late = (0.05, 12.5), (0.06, 700)
    hot = "a: temperature beyond its limit of 80 degC (warned)"
    fallen = "controller 'm' failed: its fallback has taken over (its command was not finite)"
    events = [
        RunEvent(0.01, "m.kp = 5 (was 1), set by 'me'", 0.0),
        *(RunEvent(t, hot, 0.0, level="warning") for t in (0.02, 0.03)),
        RunEvent(0.04, fallen, 0.0),
        *(RunEvent(t, f"missed a deadline by {by} µs in read", 0.0, level="warning") for t, by in late),
        RunEvent(0.07, "m.kp = 6 (was 5), set by 'me'", 0.0),
    ]
    assert told(event_signs(window(events=events))) == [
        (10, "event: m.kp = 5 (was 1), set by 'me'", False),
        (20, f"warning: {hot} (2 times)", True),
        (40, f"event: {fallen}", True),
        (50, "warning: missed a deadline by 12.5 µs in read (2 times, with other numbers)", True),
        (70, "event: m.kp = 6 (was 5), set by 'me'", False),
    ]
    assert not list(event_signs(window()))
