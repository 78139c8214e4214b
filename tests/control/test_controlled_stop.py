"""Controlled stops: their references, their start and end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.control.controlled_stop import MAX_OVERRUN, NEVER, REQUESTED, SETTLING, ControlledStop, update_stop
from cosim.control.limits import CODES, NOT_FINITE, STALE

# --- the references ---------------------------------------------------------------------------------

amounts = st.floats(-100.0, 100.0)
lengths = st.floats(1e-3, 100.0)
SAMPLE = {what: np.array([9.0]) for what in ("position", "velocity", "acceleration", "effort")}


def reference(stop, t):
    return {what: float(value[0]) for what, value in stop.reference(SAMPLE, t).items()}


def stop_of(position, velocity, length, t=1.0):
    return ControlledStop(t, length, np.array([position]), np.array([velocity]))


@settings(max_examples=40)
@given(position=amounts, velocity=amounts, length=lengths)
def test_references_continue_from_where_they_were(position, velocity, length):
    """Position and velocity have no jump, and change little just after the start."""
    stop = stop_of(position, velocity, length)
    begun = reference(stop, 1.0)
    assert (begun["position"], begun["velocity"], begun["effort"]) == (position, velocity, 9.0)
    h = 1e-6 * length
    after = reference(stop, 1.0 + h)
    tolerance = 1e-9 * (abs(position) + abs(velocity) * length + 1.0)
    assert after["position"] == pytest.approx(position + h * velocity, abs=tolerance)
    assert after["velocity"] == pytest.approx(velocity, abs=1e-5 * (abs(velocity) + 1.0))


@settings(max_examples=40)
@given(position=amounts, velocity=amounts, length=lengths)
def test_references_end_at_rest_after_half_the_distance(position, velocity, length):
    stop = stop_of(position, velocity, length)
    for t in (1.0 + length * (1.0 + 1e-12) + 1e-12, 2.0 + length, 1e6):
        rest = reference(stop, t)
        assert rest["position"] == pytest.approx(position + 0.5 * velocity * length, rel=1e-9, abs=1e-9)
        assert rest["velocity"] == pytest.approx(0.0, abs=1e-6)
        assert rest["acceleration"] == 0.0 or t < 1.0 + length + 1e-9
        assert rest["effort"] == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=40)
@given(position=amounts, velocity=amounts, length=lengths, fraction=st.floats(0.01, 0.98))
def test_velocity_and_acceleration_are_the_derivatives_of_the_position(position, velocity, length, fraction):
    stop, h = stop_of(position, velocity, length, t=0.0), 1e-3 * length
    before, now, after = (reference(stop, fraction * length + k * h) for k in (-1, 0, 1))
    scale = abs(velocity) + 1e-6 * (1.0 + abs(position) / h)
    assert (after["position"] - before["position"]) / (2 * h) == pytest.approx(now["velocity"], abs=1e-6 * scale)
    assert now["acceleration"] == pytest.approx(-velocity / length)


def test_a_trajectory_is_unchanged_before_the_stop():
    assert reference(stop_of(1.0, 2.0, 0.5), 0.999) == dict.fromkeys(SAMPLE, 9.0)
    none = ControlledStop.of(ControlledStop.inactive(1))
    assert reference(none, 1e9) == dict.fromkeys(SAMPLE, 9.0) and not none.finished(1e9)


def test_it_has_finished_when_all_joints_have_settled():
    stop = stop_of(0.0, 1.0, 0.5)
    assert not stop.finished(1.5 + SETTLING - 1e-9) and stop.finished(1.5 + SETTLING + 1e-9)


# --- start and end ----------------------------------------------------------------

NONE = ControlledStop.of(ControlledStop.inactive(2))


@pytest.fixture(autouse=True)
def distance(monkeypatch):
    """Joints of this module may travel far while they decelerate."""
    monkeypatch.setattr("cosim.control.controlled_stop.MAX_OVERRUN", 10.0)


def tick(codes=(0, 0), fault=None, requested=0.0, stop=NONE, reason=0.0, t=3.0, velocity=(0.0, -5.0)):
    """(stop, reason, first codes, fault) after a tick at t."""
    codes = np.array(codes, dtype=float)
    fault = codes.max() if fault is None else fault
    flat, *rest = update_stop(
        stop, t, np.array([1.0, 2.0]), np.array(velocity), codes, fault, requested, reason, np.zeros(2), 10.0, 1e-3
    )
    return ControlledStop.of(flat), *rest


@pytest.mark.parametrize(("speed", "controlled"), [(1.3, True), (-1.3, True), (1.5, False), (-1.5, False)])
def test_a_position_limit_starts_it_only_within_the_greatest_overrun(monkeypatch, speed, controlled):
    """v²/2a is 0.0845 and 0.1125, the greatest overrun 0.1."""
    monkeypatch.setattr("cosim.control.controlled_stop.MAX_OVERRUN", MAX_OVERRUN)
    _, reason, _, fault = tick((0, CODES["position"]), velocity=(0.0, speed))
    assert (reason, fault) == ((CODES["position"], 0.0) if controlled else (0.0, CODES["position"]))


@pytest.mark.parametrize("codes", [0, CODES["effort"]])
def test_a_stop_that_would_take_too_long_is_immediate(codes):
    for speed, fault in ((29.0, 0.0), (31.0, max(codes, 0.5))):
        assert tick((0, codes), requested=1.0, velocity=(0.0, speed))[3] == fault


CONTROLLED = [CODES[key] for key in ("effort", "rate", "power", "temperature", "position")]
IMMEDIATE = (CODES["tracking"], CODES["velocity"], STALE, NOT_FINITE)


@pytest.mark.parametrize("codes", CONTROLLED)
def test_a_limit_of_stop_category_1_starts_it(codes):
    stop, reason, first, fault = tick((0, codes))
    assert (stop.t, stop.duration, reason, fault) == (3.0, 0.5, codes, 0.0)
    assert (stop.position.tolist(), stop.velocity.tolist()) == ([1.0, 2.0], [0.0, -5.0])
    assert first.tolist() == [0.0, codes]


@pytest.mark.parametrize("codes", IMMEDIATE)
@pytest.mark.parametrize("other", [0, CODES["position"]])
def test_a_limit_of_stop_category_0_stops_immediately_beside_any_other(codes, other):
    assert tick((other, codes))[-1] == codes
    going = tick((0, CODES["effort"]))[0]
    assert tick((codes, other), stop=going, reason=CODES["effort"], t=3.1)[-1] == codes


def test_a_fault_of_the_plant_stops_immediately():
    plant_fault = NOT_FINITE + 1.0
    assert tick(fault=plant_fault)[-1] == plant_fault
    assert tick((0, CODES["position"]), fault=plant_fault)[-1] == plant_fault


def test_nothing_starts_without_a_reason():
    stop, reason, first, fault = tick()
    assert (stop.t, reason, first.tolist(), fault) == (NEVER, 0.0, [0.0, 0.0], 0.0)


def test_a_later_fault_code_does_not_restart_it():
    """The first reason is kept."""
    begun, reason, *_ = tick((CODES["rate"], 0))
    later, same, _, fault = tick((0, CODES["position"]), requested=1.0, stop=begun, reason=reason, t=3.2)
    assert (later.t, later.duration, same, fault) == (3.0, 0.5, CODES["rate"], 0.0)
    rested = tick(requested=1.0, stop=later, reason=same, t=3.5 + SETTLING + 1e-9)
    assert rested[-1] == CODES["rate"]


def test_it_can_be_requested():
    begun, reason, _, fault = tick(requested=1.0)
    assert (begun.t, reason, fault) == (3.0, REQUESTED, 0.0)
    assert tick(stop=begun, reason=reason, t=3.59)[-1] == 0.0
    assert tick(stop=begun, reason=reason, t=3.61)[-1] == REQUESTED


def test_a_stop_at_rest_takes_one_step():
    assert tick(requested=1.0, velocity=(0.0, 0.0))[0].duration == 1e-3
