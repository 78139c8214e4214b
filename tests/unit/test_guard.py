"""The guard: what passes, what is cut, what stops the run, and in which order of weight."""

import math

import numpy as np
import pytest

from cosim import ops
from cosim.compile import Port, compile
from cosim.guard import FINE, LARGEST, NOT_FINITE, POSITION, VELOCITY, check, is_finite
from cosim.types import COMMAND, Limits, requested_effort

LIMITS = Limits(np.array([-1.0]), np.array([2.0]), np.array([3.0]), np.array([10.0]))
FREE = Limits(np.array([-math.inf]), np.array([math.inf]), np.array([math.inf]), np.array([math.inf]))


def call(limits=LIMITS, position=0.0, velocity=0.0, command=None):
    """(command let through, verdict) of one joint at a measured position and velocity."""
    given = {name: np.array([(command or {}).get(name, 0.0)]) for name in COMMAND}
    state = {"position": np.array([position]), "velocity": np.array([velocity]), "effort": np.zeros(1)}
    with np.errstate(all="ignore"):
        safe, verdict = check(limits, state, given)
    return {name: value.item() for name, value in safe.items()}, int(verdict.item())


@pytest.mark.parametrize("position", [-1.0, 0.0, 2.0])
@pytest.mark.parametrize("velocity", [-3.0, 0.0, 3.0])
def test_up_to_and_at_the_limits_all_is_fine(position, velocity):
    assert call(position=position, velocity=velocity)[1] == FINE


@pytest.mark.parametrize("position", [np.nextafter(-1.0, -2.0), np.nextafter(2.0, 3.0), -1e300, 1e300])
def test_a_position_beyond_its_limits_stops_the_run(position):
    assert call(position=position)[1] == POSITION
    assert call(limits=FREE, position=position)[1] == FINE


@pytest.mark.parametrize("velocity", [np.nextafter(3.0, 4.0), -np.nextafter(3.0, 4.0), 1e300])
def test_a_velocity_beyond_its_limit_stops_the_run(velocity):
    assert call(velocity=velocity)[1] == VELOCITY
    assert call(limits=FREE, velocity=velocity)[1] == FINE


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["position", "velocity"])
@pytest.mark.parametrize("limits", [LIMITS, FREE])
def test_a_measurement_that_is_not_finite_stops_the_run(limits, name, value):
    assert call(limits, **{name: value})[1] == NOT_FINITE


@pytest.mark.parametrize("name", COMMAND)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_request_that_is_not_finite_stops_the_run(name, value):
    command = {"position": 1.0, "velocity": 1.0, "effort": 1.0, "kp": 1.0, "kd": 1.0, name: value}
    assert call(command=command)[1] == NOT_FINITE


def test_the_heaviest_reason_is_told():
    assert call(position=5.0, velocity=5.0)[1] == POSITION
    assert call(position=5.0, velocity=math.nan)[1] == NOT_FINITE
    assert FINE == 0 < POSITION < NOT_FINITE


@pytest.mark.parametrize(
    ("effort", "kp", "kd", "asked"),
    [(7.0, 0.0, 0.0, 7.0), (10.0, 0.0, 0.0, 10.0), (12.0, 0.0, 0.0, 10.0), (-12.0, 0.0, 0.0, -10.0),
     (1.0, 4.0, 1.0, 1.0 + 4.0 * 0.5 + 0.25), (0.0, 100.0, 0.0, 10.0), (0.0, -100.0, 0.0, -10.0),
     (9.0, 0.0, 100.0, 10.0)],
)  # fmt: skip
def test_what_the_drive_is_asked_for_is_cut_to_the_effort_limit(effort, kp, kd, asked):
    command = {"position": 0.6, "velocity": 0.25, "effort": effort, "kp": kp, "kd": kd}
    safe, verdict = call(position=0.1, command=command)
    assert verdict == FINE
    assert {name: value for name, value in safe.items() if name != "effort"} == {
        name: value for name, value in command.items() if name != "effort"
    }
    assert requested_effort(safe, {"position": 0.1, "velocity": 0.0}) == pytest.approx(asked, rel=1e-15)


def test_a_command_within_the_limit_passes_unchanged_to_the_bit():
    for effort in np.random.default_rng(0).uniform(-9.0, 9.0, 100):
        assert call(command={"effort": effort, "kp": 0.3}, position=0.1)[0]["effort"] == effort


def test_each_joint_is_judged_by_its_own_limits():
    limits = Limits(np.array([-1.0, -5.0]), np.array([1.0, 5.0]), np.array([1.0, 9.0]), np.array([2.0, 8.0]))
    state = {"position": np.array([2.0, 2.0]), "velocity": np.array([0.0, 2.0]), "effort": np.zeros(2)}
    command = {name: np.zeros(2) for name in COMMAND} | {"effort": np.array([5.0, 5.0])}
    safe, verdict = check(limits, state, command)
    assert verdict.tolist() == [POSITION, FINE]
    assert safe["effort"].tolist() == [2.0, 5.0]


def test_the_largest_number_is_finite_and_the_next_is_not():
    with np.errstate(over="ignore"):
        values = np.array([LARGEST, -LARGEST, np.nextafter(LARGEST, math.inf), math.nan, 0.0])
    assert is_finite(values).tolist() == [True, True, False, False, True]
    assert np.finfo(float).max == LARGEST


@pytest.mark.parametrize("limits", [LIMITS, FREE])
def test_machine_code_judges_as_python_does_also_what_is_not_finite(limits):
    def judge(position, velocity, effort, kp):
        rest = ops.zeros(1)
        command = {"position": rest, "velocity": rest, "effort": effort, "kp": kp, "kd": rest}
        safe, verdict = check(limits, {"position": position, "velocity": velocity, "effort": rest}, command)
        return safe["effort"], verdict

    compiled = compile(judge, [Port(name, (1,)) for name in ("position", "velocity", "effort", "kp")], interpret=False)
    odd = [0.0, 0.5, -1.5, 4.0, 1e200, math.nan, math.inf, -math.inf]
    for values in np.array(np.meshgrid(odd, odd, odd, [0.0, 2.0])).reshape(4, -1).T:
        arrays = [np.array([value]) for value in values]
        with np.errstate(all="ignore"):
            expected, verdict = judge(*arrays)
        got_effort, got_verdict = compiled(*arrays)
        assert got_verdict.tolist() == verdict.tolist()
        if verdict[0] != NOT_FINITE:
            np.testing.assert_array_equal(got_effort, expected)
