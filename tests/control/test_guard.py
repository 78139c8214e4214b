"""The guard: what passes, what is told, what is cut, what stops the run, and in which order of weight."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.compile import ArrayPort, compile
from cosim.compile.routine import Routine
from cosim.control import controlled_stop, guard
from cosim.control.guard import FINE, KINDS, LARGEST, NOT_FINITE, SATURATE, STOP, WARN, Guard, check, is_finite
from cosim.types import COMMAND, Limits, requested_effort

ACTIONS = (WARN, SATURATE, STOP)
SEEN = ("position", "velocity", "temperature", "age", "request", "reference")


# --- every limit, every action ----------------------------------------------------------------------


def test_the_guard_does_what_the_cases_say(battery):
    for soft, armed, cases in battery.groups():
        with np.errstate(all="ignore"):
            found = check(
                Guard(**battery.held(cases, soft)), {**battery.seen(cases), "armed": armed}, battery.command(cases)
            )
        battery.verify(cases, *found)


def traced(held: Guard) -> Callable[..., Any]:
    """`check` on one array after the other: time since arming, then (n,) each of SEEN and COMMAND."""

    def judge(armed, *values):
        seen, command = dict(zip(SEEN, values, strict=False)), dict(zip(COMMAND, values[len(SEEN) :], strict=True))
        safe, verdict, warned = check(held, {**seen, "armed": armed}, command)
        return *(safe[name] for name in COMMAND), verdict, warned

    return judge


def test_machine_code_does_what_the_cases_say(battery):
    for soft, armed, cases in battery.groups():
        ports = [ArrayPort("armed", ()), *(ArrayPort(f"x{k}", (len(cases),)) for k in range(len(SEEN) + len(COMMAND)))]
        compiled = compile(traced(Guard(**battery.held(cases, soft))), ports, interpret=False)
        seen, command = battery.seen(cases), battery.command(cases)
        *safe, verdict, warned = compiled(
            np.array(armed), *(seen[name] for name in SEEN), *(command[name] for name in COMMAND)
        )
        battery.verify(cases, dict(zip(COMMAND, safe, strict=True)), verdict, warned)


def test_every_limit_and_action_has_a_case_that_trips_and_one_that_does_not(battery):
    for kind in KINDS:
        for action in ACTIONS:
            tripped = set()
            for case in battery.DATA["cases"]:
                held, given = case.get("held", {}), case.get("gives", {})
                limited = kind in held or (kind == "position" and {"lower", "upper"} & set(held))
                if limited and (battery.DATA["defaults"] | case.get("do", {}))[kind] == action:
                    tripped.add(given.get("verdict") == kind if action == STOP else kind in given.get("warned", ()))
            assert tripped == {True, False}, (kind, action)


# --- properties -------------------------------------------------------------------------------------


def of(n=1, actions=None, soft_start=0.0, step=0.01, **bounds) -> Guard:
    """A Guard of n equal joints."""
    limits = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
    rest = ("rate", "power", "tracking", "temperature", "stale")
    return Guard(
        limits=Limits(*(np.full(n, bounds.get(name, default)) for name, default in limits.items())),
        **{name: np.full(n, bounds.get(name, math.inf)) for name in rest},
        actions={kind: np.full(n, (actions or {}).get(kind, SATURATE)) for kind in KINDS},
        soft_start=soft_start,
        step=step,
    )


BOUNDS = {"lower": -1.0, "upper": 2.0, "velocity": 3.0, "effort": 10.0, "rate": 100.0, "power": 20.0, "tracking": 0.5}
BOUNDS |= {"temperature": 80.0, "stale": 0.005}
number = st.one_of(
    st.floats(-1e4, 1e4), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 2.0, -1.0, 3.0, 10.0])
)
small = st.floats(-30.0, 30.0)


@settings(max_examples=400, deadline=None)
@given(
    command=st.fixed_dictionaries(dict.fromkeys(COMMAND, number)),
    seen=st.fixed_dictionaries(
        {"position": small, "velocity": small, "temperature": st.one_of(st.just(math.nan), st.floats(0.0, 100.0)),
         "request": small, "reference": small}
    ),
    armed=st.floats(0.0, 5.0),
    soft_start=st.sampled_from([0.0, 2.0]),
)  # fmt: skip
def test_whatever_the_command_what_is_asked_for_is_within_all_limits_that_saturate(command, seen, armed, soft_start):
    held = of(soft_start=soft_start, **BOUNDS)
    told = {name: np.array([value]) for name, value in seen.items()} | {"age": np.zeros(1), "armed": armed}
    with np.errstate(all="ignore"):
        safe, verdict, _ = check(held, told, {name: np.array([value]) for name, value in command.items()})
        asked = float(requested_effort(safe, told)[0])
    if verdict[0] == NOT_FINITE:
        return
    q, v, before = seen["position"], seen["velocity"], seen["request"]
    pull = abs(asked - safe["effort"][0])
    rounding = 1e-14 * (10.0 + pull + abs(command["kp"] * 100.0) + abs(command["kd"] * 1e4))
    share = min(armed / soft_start, 1.0) if soft_start else 1.0
    cool = 1.0 if math.isnan(seen["temperature"]) else min(max((80.0 - seen["temperature"]) / 10.0, 0.0), 1.0)
    most = min(10.0 * share * cool, 20.0 / abs(v) if v else math.inf)
    assert abs(asked) <= most + rounding
    assert not (v > 3.0 or q > 2.0) or asked <= rounding
    assert not (v < -3.0 or q < -1.0) or asked >= -rounding
    assert -1.0 <= safe["position"][0] <= 2.0
    if -1.0 <= q <= 2.0:
        assert abs(safe["position"][0] - q) <= 0.5 + 1e-12
    # no faster than the rate, or else as little as the other limits leave
    least, greatest = (0.0 if v < -3.0 or q < -1.0 else -most), (0.0 if v > 3.0 or q > 2.0 else most)
    near = min(max(before - 1.0, least), greatest), min(max(before + 1.0, least), greatest)
    assert near[0] - rounding <= asked <= near[1] + rounding


@settings(max_examples=200, deadline=None)
@given(effort=st.floats(-4.0, 4.0), kp=st.floats(-2.0, 2.0), kd=st.floats(-2.0, 2.0), position=st.floats(-0.3, 0.5))
def test_a_command_within_all_limits_passes_unchanged_to_the_bit(effort, kp, kd, position):
    command = {"position": position, "velocity": 0.1, "effort": effort, "kp": kp, "kd": kd}
    seen = {"position": 0.1, "velocity": -0.2, "temperature": 20.0, "age": 0.001, "reference": 0.2, "armed": 3.0}
    told = {name: np.array([value]) for name, value in (seen | {"request": effort}).items()}
    held = of(soft_start=2.0, **{**BOUNDS, "rate": 1000.0})
    safe, verdict, warned = check(held, told, {name: np.array([value]) for name, value in command.items()})
    assert {name: values.item() for name, values in safe.items()} == command
    assert (verdict.item(), warned.item()) == (FINE, 0.0)


# --- what it is made of -----------------------------------------------------------------------------


def test_the_largest_number_is_finite_and_the_next_is_not():
    with np.errstate(over="ignore"):
        values = np.array([LARGEST, -LARGEST, np.nextafter(LARGEST, math.inf), math.nan, 0.0])
    assert is_finite(values).tolist() == [True, True, False, False, True]
    assert np.finfo(float).max == LARGEST


def test_codes_go_by_weight():
    codes = [getattr(guard, kind.upper()) for kind in KINDS]
    assert [FINE, *codes, guard.STALE, NOT_FINITE] == list(range(10))
    assert [guard.BITS[kind] for kind in KINDS] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]


def operations(held: Guard, n: int) -> int:
    """Of the guard in machine code."""
    return Routine(traced(held), [(), *[(n,)] * (len(SEEN) + len(COMMAND))], "guard").operations


def test_verdicts_that_wait_are_lighter_than_those_that_do_not():
    assert FINE < controlled_stop.ASKED < min(controlled_stop.PATIENT)
    assert set(range(1, max(controlled_stop.PATIENT) + 1)) == set(controlled_stop.PATIENT)
    assert max(controlled_stop.PATIENT) < min(guard.TRACKING, guard.VELOCITY)


def test_what_is_not_configured_costs_nothing():
    nothing = operations(of(2), 2)
    assert nothing == 2 * operations(of(1), 1)
    costs = {
        kind: operations(of(2, **{kind: 1.0}), 2) - nothing for kind in (*KINDS, "upper", "stale") if kind != "position"
    }
    assert all(cost > 0 for cost in costs.values())
    for kind in costs:  # of one joint it costs the other nothing
        held = of(2)
        getattr(held.limits if hasattr(held.limits, kind) else held, kind)[0] = 1.0
        assert operations(held, 2) - nothing == costs[kind] / 2


@pytest.mark.parametrize("n", [0, 1, 3])
def test_any_number_of_joints(n):
    seen = {name: np.zeros(n) for name in SEEN}
    safe, verdict, warned = check(of(n, **BOUNDS), {**seen, "armed": 0.0}, {name: np.ones(n) for name in COMMAND})
    assert verdict.shape == warned.shape == (n,)
    assert {values.shape for values in safe.values()} == {(n,)}
