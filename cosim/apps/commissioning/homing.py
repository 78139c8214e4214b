"""Finding the zero of a joint: slowly against a hard stop with a bounded effort, or by the homing of its drive."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from cosim.apps.commissioning.expected import ExpectedJoint, expected
from cosim.apps.commissioning.motion import HoldingLoop
from cosim.apps.commissioning.session import CommissioningSession, LiveJoints, MotionBounds
from cosim.core.errors import RunError

WINDOW = 0.25  # s without motion at the bound of the effort, after which a joint is at its stop
STANDS = 0.1  # of the way at its speed: a joint that moves less stands
AT_BOUND = 0.98  # of the effort
SEARCH = 2.0  # s for a stop at the end of the travel
LEAST = 0.5  # of the way back, that a joint must have moved for its stop to count
MARGIN = 0.05  # of the velocity limit


class HomePlan(NamedTuple):
    """SI. towards: −1 or 1; at: position of the stop; speed: of the first approach, the second has half of it; effort:
    fraction of the limit; back: way back from the stop; travel: the longest way."""

    towards: int
    at: float
    speed: float
    effort: float
    back: float
    travel: float


class FoundStop(NamedTuple):
    """zero: of the wiring, with which the stop is at its position; repeated: difference of the two approaches."""

    zero: float
    measured: float
    repeated: float


def home_at_stop(
    session: CommissioningSession, name: str, plan: HomePlan, abort: Callable[[], str] = lambda: ""
) -> FoundStop:
    """Move a joint to its stop twice, and back; its motor is off afterwards, all others stay off.

    Raises RunError for a joint that does not move or finds no stop, and for whatever else stops it.
    """
    k = session.rig.joints.index(name)
    fastest, strongest = float(session.rig.limits.velocity[k]), float(session.rig.limits.effort[k])
    ignored = frozenset({"stall", "tracking", "frozen"})
    bounds = MotionBounds(
        plan.effort * strongest, 4.0 * plan.speed + MARGIN * fastest, plan.travel, in_range=False, ignored=ignored
    )
    # gravity depends on a posture that is not known yet: the integral part of the loop carries it
    expect = {name: ExpectedJoint(expected(session.rig, session.check())[name].inertia, 0.0)}
    with session.live([name], bounds, "effort", abort) as live:
        start = float(live.position[0])
        first = _approach(live, expect, plan, plan.speed, name)
        if abs(first - start) < LEAST * plan.back:
            what = f"joint '{name}' did not move towards its stop; it may stand there already: move it away"
            raise RunError(f"{what}, or raise --effort")
        _move(live, expect, -plan.towards * plan.speed, plan.back)
        second = _approach(live, expect, plan, 0.5 * plan.speed, name)
        _move(live, expect, -plan.towards * plan.speed, plan.back)
    zero = session.specs[name].wiring[name].zero + plan.at - second
    return FoundStop(zero, second, abs(second - first))


def _approach(live: LiveJoints, expect: dict[str, ExpectedJoint], plan: HomePlan, speed: float, name: str) -> float:
    """The position at which the joint stands against its stop."""
    loop, bound = HoldingLoop(live, "effort", expect), float(live.guard.bounds["effort"][0])
    since, at = live.t, float(live.position[0])
    longest = live.t + plan.travel / speed + SEARCH
    while True:
        live.read()
        loop.follow([plan.towards * speed])
        moves = abs(float(live.position[0]) - at) > STANDS * speed * WINDOW
        if moves or abs(float(live.request[0])) < AT_BOUND * bound:
            since, at = live.t, float(live.position[0])
        elif live.t - since > WINDOW:
            return float(live.position[0])
        if live.t > longest:
            raise RunError(f"joint '{name}' found no stop; check --towards, or raise --travel")


def _move(live: LiveJoints, expect: dict[str, ExpectedJoint], rate: float, way: float) -> None:
    loop, end = HoldingLoop(live, "effort", expect), live.t + way / abs(rate)
    while live.t < end:
        live.read()
        loop.follow([rate])


def home_by_drive(session: CommissioningSession, name: str) -> float:
    """Let the drive home itself while it is switched on; the position afterwards. Raises InputError and RunError."""
    bounds = MotionBounds(in_range=False)
    with session.live([name], bounds, session.specs[name].mode) as live:
        live.read()
        return float(live.position[0])


def travel_of(session: CommissioningSession, name: str) -> float:
    """The whole range of a joint, a turn or a metre without one."""
    k = session.rig.joints.index(name)
    limits = session.rig.limits
    span = float(limits.upper[k] - limits.lower[k])
    return span if math.isfinite(span) else (1.0 if session.unit(name) == "m" else 2.0 * math.pi)
