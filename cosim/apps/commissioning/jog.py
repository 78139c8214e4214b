"""Moving one joint slowly, by a given way or by keys, under the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cosim.apps.commissioning.expected import expected
from cosim.apps.commissioning.keys import Keys
from cosim.apps.commissioning.motion import HoldingLoop
from cosim.apps.commissioning.session import CommissioningSession, LiveJoints, MotionBounds
from cosim.core.errors import RunError

DEAD_MAN = 0.15  # s after the last press of a key, at which the reference stops
MARGIN, FACTOR = 0.05, 3.0  # of the velocity limit, and times the speed: where the guard stops
SETTLE = 0.5  # s at the end of a motion
READOUT = 0.1  # s between two readings


class JogPlan(NamedTuple):
    """SI. by: the way, None for keys; step: way of one press of a key, 0: as long as the key repeats; effort: fraction
    of the limit; hold: joints that are held meanwhile."""

    speed: float
    by: float | None = None
    step: float = 0.0
    effort: float = 0.5
    hold: tuple[str, ...] = ()


class JogReading(NamedTuple):
    """What the operator sees of the joint; effort and temperature are NaN where they are not measured."""

    t: float
    position: float
    velocity: float
    effort: float
    temperature: float
    at_limit: bool


def jog(
    session: CommissioningSession,
    name: str,
    plan: JogPlan,
    keys: Keys | None = None,
    show: Callable[[JogReading], object] = lambda reading: None,
) -> JogReading:
    """Move a joint; the last reading. Its motor and the motors of held joints are off afterwards.

    Raises RunError for whatever stopped the motion before its end.
    """
    names = (name, *plan.hold)
    expect = expected(session.rig, session.check())
    k = session.rig.joints.index(name)
    largest = float(session.rig.limits.velocity[k])
    efforts = [float(session.rig.limits.effort[session.rig.joints.index(each)]) for each in names]
    bounds = MotionBounds(velocity=FACTOR * plan.speed + MARGIN * largest, effort=plan.effort * max(efforts))
    mode = None if all(session.specs[each].mode == session.specs[name].mode for each in names) else "effort"
    with session.live(names, bounds, mode) as live:
        loop = HoldingLoop(live, mode or session.specs[name].mode, expect)
        moved = live.names.index(name)
        way = _given(live, plan) if keys is None else _by_keys(live, plan, keys)
        shown = -READOUT
        for rate in way:
            velocity = np.zeros(len(names))
            velocity[moved] = rate
            loop.follow(velocity)
            if live.t - shown >= READOUT:
                shown = live.t
                show(_reading(live, moved))
        return _reading(live, moved)


def _given(live: LiveJoints, plan: JogPlan):
    """The rates of a motion by a given way, a tick each, and the time to settle."""
    assert plan.by is not None
    rest, sign = abs(plan.by), 1.0 if plan.by > 0.0 else -1.0
    while rest > 0.0:
        live.read()
        step = min(plan.speed * live.dt, rest)
        rest -= step
        yield sign * step / live.dt
    until = live.t + SETTLE
    while live.t < until:
        live.read()
        yield 0.0


def _by_keys(live: LiveJoints, plan: JogPlan, keys: Keys):
    """The rates that the keys command, until `quit`. Raises RunError for `stop`, and when the terminal is gone."""
    sign, until, rest = 0.0, 0.0, 0.0
    while True:
        live.read()
        for key in keys.poll():
            if key == "stop":
                raise RunError("stopped by a key")
            if key == "quit":
                return
            way = 1.0 if key == "+" else -1.0
            rest = plan.step if way != sign or not rest else rest + plan.step
            sign, until = way, live.t + DEAD_MAN
        if plan.step:
            step = min(plan.speed * live.dt, rest)
            rest -= step
            yield sign * step / live.dt
        else:
            yield sign * plan.speed if live.t < until else 0.0


def _reading(live: LiveJoints, k: int) -> JogReading:
    position, velocity = float(live.position[k]), float(live.velocity[k])
    lower, upper = live.guard.bounds["lower"][k], live.guard.bounds["upper"][k]
    limited = bool(live.alarms[k]) or not lower + 1e-9 < position < upper - 1e-9
    return JogReading(live.t, position, velocity, float(live.effort[k]), float(live.temperature[k]), limited)


def hold_names(session: CommissioningSession, name: str, hold: Sequence[str]) -> tuple[str, ...]:
    """The joints that are held, each once, without the one that moves. Raises InputError."""
    for each in (name, *hold):
        session.require(each)
    return tuple(dict.fromkeys(each for each in hold if each != name))
