"""Each symptom, in made-up ticks that have it and in ticks that do not."""

import numpy as np
import pytest

from cosim.apps.post_mortem.symptom import StopWindow, growth
from cosim.apps.post_mortem.symptoms import (
    CHECKED,
    age_symptoms,
    bond_symptoms,
    event_symptoms,
    fraction_of,
    limit_symptoms,
    number_symptoms,
    timing_symptoms,
    tracking_symptoms,
)
from cosim.control.limits import LIMIT_OF, LIMITS
from cosim.execution.timing import deadlines
from cosim.execution.timing.deadlines import TaskTime
from cosim.output.events import RunEvent

STEP, TICKS = 1e-3, 100
T = np.arange(TICKS) * STEP
RISING = np.linspace(0.0, 1.0, TICKS)


def window(signals=None, limits=None, events=(), joint="a"):
    arrays = {name: np.broadcast_to(np.asarray(value, dtype=float), TICKS) for name, value in (signals or {}).items()}
    units = {f"{joint}/position": "rad"} | dict.fromkeys(arrays, "rad")
    return StopWindow(T, arrays, units, {joint: limits or {}}, STEP, events)


def told(symptoms):
    return [
        f"{round(symptom.t / STEP)} {'abnormal' if symptom.abnormal else 'usual'}: {symptom.what}"
        for symptom in symptoms
    ]


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
    "wall_energy": (lambda x: {"a/wall_energy": 8.0 * x}, {"wall_energy": 4.0}),
    "load_residual_energy": (lambda x: {"a/load_residual_energy": 8.0 * x}, {"load_residual_energy": 4.0}),
    "reaction_force": (lambda x: {"a/resultant_force": 8.0 * x}, {"reaction_force": 4.0}),
    "reaction_moment": (lambda x: {"a/resultant_moment": 8.0 * x}, {"reaction_moment": 4.0}),
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
    near, at = limit_symptoms(window(make(RISING), limits))
    assert (round(near.t / STEP), near.abnormal) == (38 if key == "temperature" else 45, False)
    assert (round(at.t / STEP), at.abnormal) == (50, True)
    assert at.limit == limits.get(key, limits.get("upper")) and abs(at.value) >= at.limit * (1 - 1e-9)
    assert near.what.startswith("joint 'a': ") and LIMIT_OF[key].unit_of("rad") in at.what
    # one that is far or absent is not mentioned
    assert not list(limit_symptoms(window(make(0.3 * RISING), limits)))
    assert not list(limit_symptoms(window(make(RISING))))


def test_a_position_with_one_limit_and_one_at_rest_at_a_limit():
    beyond, nearest = fraction_of("position", np.array([-1e6, 0.9, 1.1]), {"upper": 1.0})
    assert beyond.tolist() == [0.0, 0.0, np.inf] and nearest.tolist() == [1.0] * 3
    rest, nearest = fraction_of("position", np.array([1.0 + 1e-10, -1.0 - 1e-10, -1.01]), {"lower": -1.0, "upper": 1.0})
    assert rest.tolist() == [1.0, 1.0, pytest.approx(1.01)] and nearest.tolist() == [1.0, -1.0, -1.0]


def test_growth_begins_where_the_earlier_level_ends():
    level = [0.5 if k % 2 else 1.0 for k in range(100)]
    for more, floor, begin in (
        ([], 0.1, None),
        ([2.0, 2.9], 0.1, None),
        ([2.0, 3.1], 0.1, 99),
        ([2.0, 3.1], 4.0, None),  # still small
        ([2.0, 3.1, np.nan], 0.1, 99),
    ):
        assert growth(np.array(level + more), floor) == begin
    assert growth(np.full(5, np.nan), 0.1) is None


GROWS = np.where(T < 0.0595, 0.01, 0.01 + (T - 0.059) * 5.0)  # rad
ENERGY = np.where(T < 0.0595, 0.1, -0.1 - 50.0 * (T - 0.059))  # J
SLOW = T > 0.0895
TIMING = {
    "timing/latency": np.where(SLOW, 2e-3, 1e-5),
    "timing/read": 2e-4,
    "timing/control": np.nan,
    "timing/end_to_end": np.where(SLOW, 2.3e-3, 3e-4),
}
HOT = "a: temperature beyond its limit of 80 degC (warned)"
EVENTS = [
    RunEvent(0.01, "m.kp = 5 (was 1), set by 'me'", 0.0),
    *(RunEvent(t, HOT, 0.0, level="warning") for t in (0.02, 0.03)),
    RunEvent(0.04, "controller 'm' failed: its fallback has taken over (its command was not finite)", 0.0),
    RunEvent(0.05, "missed a deadline by 12.5 µs in read", 0.0, level="warning"),
    RunEvent(0.06, "missed a deadline by 700 µs in read", 0.0, level="warning"),
    RunEvent(0.07, "m.kp = 6 (was 5), set by 'me'", 0.0),
]
SYMPTOMS = {
    "an effort at its limit for a while": (
        limit_symptoms,
        window({"a/command_effort": np.where((T > 0.0195) & (T < 0.0595), 4.0, 1.0)}, {"effort": 4.0}),
    ),
    "a velocity near its limit": (limit_symptoms, window({"a/velocity": 3.7}, {"velocity": 4.0})),
    "an effort that is always at its limit": (limit_symptoms, window({"a/command_effort": -4.0}, {"effort": 4.0})),
    "the measured position, which the guard sees": (
        limit_symptoms,
        window({"a/position": 0.0, "a/measured_position": RISING * 2.0}, {"lower": -1.0, "upper": 1.0}),
    ),
    "a tracking error that grows": (tracking_symptoms, window({"a/reference_position": GROWS, "a/position": 0.0})),
    "a residual energy of a bond that grows": (bond_symptoms, window({"wheel/residual_energy": ENERGY})),
    "a value that is not finite": (
        number_symptoms,
        window({"a/command_effort": np.where(T < 0.0695, 1.0, np.nan), "a/position": 0.0}),
    ),
    "feedback that is late": (age_symptoms, window({"a/age": np.where(T < 0.0795, 5e-4, 5e-4 + T - 0.079)})),
    "ticks that take longer than a step": (timing_symptoms, window(TIMING)),
    "events, once each": (event_symptoms, window(events=EVENTS)),
}
QUIET = {
    "waves": (tracking_symptoms, window({"a/reference_position": 0.1 * np.sin(300.0 * T), "a/position": 0.0})),
    "a small error": (
        tracking_symptoms,
        window({"a/reference_position": GROWS, "a/position": 0.0}, {"tracking": 5.0}),
    ),
    "no reference": (tracking_symptoms, window({"a/position": GROWS})),
    "energy of a joint": (bond_symptoms, window({"wheel/residual_energy": 0.1, "a/residual_energy": ENERGY})),
    "no temperature": (number_symptoms, window({"a/command_effort": 1.0, "a/temperature": np.nan})),
    **{f"a drive that is {age} s late as ever": (age_symptoms, window({"a/age": age})) for age in (5e-4, 5e-3, np.nan)},
    "ticks in time": (timing_symptoms, window({**TIMING, "timing/end_to_end": 3e-4})),
    "no timing": (timing_symptoms, window({"a/position": 0.0})),
    "no event": (event_symptoms, window()),
}


@pytest.mark.parametrize("case", SYMPTOMS)
def test_symptoms_in_words(said, case):
    symptoms, ticks = SYMPTOMS[case]
    said(told(symptoms(ticks)))


@pytest.mark.parametrize("case", QUIET)
def test_what_is_usual_is_no_symptom(case):
    symptoms, ticks = QUIET[case]
    assert told(symptoms(ticks)) == []


def test_timing_signals_have_the_names_of_a_run_in_real_time(said):
    """Two tasks of 100 us, of which the second takes 1.4 ms in tick 70."""
    tasks = tuple(TaskTime(name, 1, 0, 1_000_000, False) for name in ("read", "write"))
    stamps = np.arange(TICKS)[:, None] * 1_000_000 + np.array([0, 10_000, 110_000, 210_000, 0])
    stamps[70, 3] += 1_300_000
    columns = deadlines.values(tasks, np.arange(TICKS), stamps)
    names = list(deadlines.signals_of(tasks))
    said(told(timing_symptoms(window(dict(zip(names, columns.T, strict=True))))))
