"""The guard: commands that pass, raise an alarm, are cut or stop the run, and the order of precedence."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.control import controlled_stop, limits
from cosim.control.guard import LARGEST_DOUBLE, Guard, check, is_finite
from cosim.control.limits import LIMITS, NOT_FINITE, POSITION_TOLERANCE, SATURATE, STOP
from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.routine import Routine
from cosim.core.types import COMMAND, requested_effort
from tests.control import guard_battery

FEEDBACK = tuple(guard_battery.FEEDBACK)


# --- every limit, every action ----------------------------------------------------------------------


def test_the_guard_passes_all_cases(battery):
    for soft, armed, cases in battery.groups():
        with np.errstate(all="ignore"):
            found = check(
                Guard(**battery.guard_fields(cases, soft)),
                {**battery.feedback(cases), "armed": armed},
                battery.command(cases),
            )
        battery.verify(cases, *found)


def traced(guard: Guard) -> Callable[..., Any]:
    """`check` on one array after the other: time since arming, then (n,) each of FEEDBACK and COMMAND."""

    def judge(armed, *values):
        feedback = dict(zip(FEEDBACK, values, strict=False)) | {"armed": armed}
        safe, fault_codes, alarms = check(guard, feedback, dict(zip(COMMAND, values[len(FEEDBACK) :], strict=True)))
        return *(safe[name] for name in COMMAND), fault_codes, alarms

    return judge


def test_the_guard_in_machine_code_passes_all_cases(battery):
    for soft, armed, cases in battery.groups():
        ports = [
            ArrayPort("armed", ()),
            *(ArrayPort(f"x{k}", (len(cases),)) for k in range(len(FEEDBACK) + len(COMMAND))),
        ]
        compiled = compile(traced(Guard(**battery.guard_fields(cases, soft))), ports, interpret=False)
        feedback, command = battery.feedback(cases), battery.command(cases)
        *safe, fault_codes, alarms = compiled(
            np.array(armed), *(feedback[name] for name in FEEDBACK), *(command[name] for name in COMMAND)
        )
        battery.verify(cases, dict(zip(COMMAND, safe, strict=True)), fault_codes, alarms)


def test_every_limit_and_action_has_a_case_that_exceeds_it_and_one_that_does_not(battery):
    for row in LIMITS:
        for action in row.actions:
            exceeded = set()
            for case in battery.CASES:
                expect, limited = case.get("expect", {}), set(row.bound_keys) & set(case.get("bounds", {}))
                if limited and (battery.ACTIONS | case.get("actions", {}))[row.key] == action:
                    alarms = expect.get("alarms", ())
                    exceeded.add(expect.get("verdict") == row.key if action == STOP else row.key in alarms)
            assert exceeded == {True, False}, (row.key, action)


# --- properties -------------------------------------------------------------------------------------


def of(n=1, actions=None, soft_start=0.0, step=0.01, **bounds) -> Guard:
    """A Guard of n equal joints."""
    given = {key: math.inf for row in LIMITS for key in row.bound_keys} | {"lower": -math.inf} | bounds
    stale = np.full(n, given.pop("stale", math.inf))
    return Guard(
        bounds={key: np.full(n, bound) for key, bound in given.items()},
        actions={row.key: np.full(n, (actions or {}).get(row.key, SATURATE)) for row in LIMITS},
        stale=stale,
        soft_start=soft_start,
        step=step,
        position_tolerance=np.full(n, POSITION_TOLERANCE),
    )


BOUNDS = {key: float(bound) for row in guard_battery.LIMITS.values() for key, bound in row["bounds"].items()}
BOUNDS |= {"stale": 0.005}
number = st.one_of(
    st.floats(-1e4, 1e4), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 2.0, -1.0, 3.0, 10.0])
)
small = st.floats(-30.0, 30.0)


@settings(max_examples=200)
@given(
    command=st.fixed_dictionaries(dict.fromkeys(COMMAND, number)),
    feedback=st.fixed_dictionaries(
        {"position": small, "velocity": small, "temperature": st.one_of(st.just(math.nan), st.floats(0.0, 100.0)),
         "request": small, "reference": small}
    ),
    armed=st.floats(0.0, 5.0),
    soft_start=st.sampled_from([0.0, 2.0]),
)  # fmt: skip
def test_the_requested_effort_of_any_command_is_within_all_limits_that_saturate(command, feedback, armed, soft_start):
    guard = of(soft_start=soft_start, **BOUNDS)
    arrays: dict = {name: np.zeros(1) for name in FEEDBACK} | {"armed": armed}
    arrays |= {name: np.array([value]) for name, value in feedback.items()}
    arrays["judged_velocity"] = arrays["velocity"]
    with np.errstate(all="ignore"):
        safe, fault_codes, _ = check(guard, arrays, {name: np.array([value]) for name, value in command.items()})
        requested = float(requested_effort(safe, arrays)[0])
    if fault_codes[0] == NOT_FINITE:
        return
    q, v, before = feedback["position"], feedback["velocity"], feedback["request"]
    gain_effort = abs(requested - safe["effort"][0])
    rounding = 1e-14 * (10.0 + gain_effort + abs(command["kp"] * 100.0) + abs(command["kd"] * 1e4))
    ramp, temperature = min(armed / soft_start, 1.0) if soft_start else 1.0, feedback["temperature"]
    derating = 1.0 if math.isnan(temperature) else min(max((80.0 - temperature) / 10.0, 0.0), 1.0)
    limit = min(10.0 * ramp * derating, 20.0 / abs(v) if v else math.inf)
    assert abs(requested) <= limit + rounding
    assert not (v > 3.0 or q > 2.0) or requested <= rounding
    assert not (v < -3.0 or q < -1.0) or requested >= -rounding
    assert -1.0 <= safe["position"][0] <= 2.0
    if -1.0 <= q <= 2.0:
        assert abs(safe["position"][0] - q) <= 0.5 + 1e-12
    # within the rate, or as close to it as the other limits leave
    lowest, highest = (0.0 if v < -3.0 or q < -1.0 else -limit), (0.0 if v > 3.0 or q > 2.0 else limit)
    near = min(max(before - 1.0, lowest), highest), min(max(before + 1.0, lowest), highest)
    assert near[0] - rounding <= requested <= near[1] + rounding


@settings(max_examples=60)
@given(effort=st.floats(-4.0, 4.0), kp=st.floats(-2.0, 2.0), kd=st.floats(-2.0, 2.0), position=st.floats(-0.3, 0.5))
def test_a_command_within_all_limits_passes_bit_for_bit(effort, kp, kd, position):
    command = {"position": position, "velocity": 0.1, "effort": effort, "kp": kp, "kd": kd}
    feedback = {"position": 0.1, "velocity": -0.2, "temperature": 20.0, "age": 0.001, "reference": 0.2, "armed": 3.0}
    arrays = {name: np.zeros(1) for name in FEEDBACK} | {
        name: np.array([value]) for name, value in (feedback | {"request": effort}).items()
    }
    guard = of(soft_start=2.0, **{**BOUNDS, "rate": 1000.0})
    safe, fault_codes, alarms = check(guard, arrays, {name: np.array([value]) for name, value in command.items()})
    assert {name: values.item() for name, values in safe.items()} == command
    assert (fault_codes.item(), alarms.item()) == (limits.OK, 0.0)


# --- parts of the guard -----------------------------------------------------------------------------


def test_the_largest_number_is_finite_and_the_next_is_not():
    with np.errstate(over="ignore"):
        values = np.array([LARGEST_DOUBLE, -LARGEST_DOUBLE, np.nextafter(LARGEST_DOUBLE, math.inf), math.nan, 0.0])
    assert is_finite(values).tolist() == [True, True, False, False, True]
    assert np.finfo(float).max == LARGEST_DOUBLE


def test_codes_are_in_the_order_of_precedence():
    codes = [limits.OK, *limits.CODES.values(), limits.STALE, NOT_FINITE]
    assert codes == list(range(len(guard_battery.LIMITS) + 3))
    assert list(limits.BITS.values()) == [2.0**k for k in range(len(guard_battery.LIMITS))]


def operations(guard: Guard, n: int) -> int:
    """Of the guard in machine code."""
    return Routine(traced(guard), [(), *[(n,)] * (len(FEEDBACK) + len(COMMAND))], "guard").operations


def test_limits_of_stop_category_1_come_first():
    categories = [row.stop_category for row in LIMITS]
    assert categories == sorted(categories, reverse=True)
    assert tuple(range(1, categories.count(1) + 1)) == controlled_stop.CONTROLLED
    assert limits.OK < controlled_stop.REQUESTED < min(controlled_stop.CONTROLLED)


def test_a_limit_without_a_bound_costs_nothing():
    nothing = operations(of(2), 2)
    assert nothing == 2 * operations(of(1), 1)
    keys = [key for row in LIMITS for key in row.bound_keys if key != "lower"] + ["stale"]
    costs = {key: operations(of(2, **{key: 1.0}), 2) - nothing for key in keys}
    assert all(cost > 0 for cost in costs.values())
    for key in costs:  # a limit of one joint costs the other nothing
        guard = of(2)
        ({"stale": guard.stale} | dict(guard.bounds))[key][0] = 1.0
        assert operations(guard, 2) - nothing == costs[key] / 2


@pytest.mark.parametrize("n", [0, 1, 3])
def test_any_number_of_joints(n):
    feedback = {name: np.zeros(n) for name in FEEDBACK}
    command = {name: np.ones(n) for name in COMMAND}
    safe, fault_codes, alarms = check(of(n, **BOUNDS), {**feedback, "armed": 0.0}, command)
    assert fault_codes.shape == alarms.shape == (n,)
    assert {values.shape for values in safe.values()} == {(n,)}
