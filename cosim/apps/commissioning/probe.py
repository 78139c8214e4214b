"""The wiring of a joint by its own motion: small bounded efforts in both directions, and what the model expects.

Each burst is an effort that rises linearly from what holds the joint against gravity, until the joint has moved by
`travel` or the burst would have moved a joint without friction by three times that. Bursts become stronger, up to a
bound, until the joint moves. With u the effort, q the position and v the velocity since the begin of a motion,

    ∫ u dt = J v + B q + (G ± F) t + K ∫ q dt                               (the balance of momentum of one joint)

gives the inertia J, the viscous friction B, the effort of gravity G and the dry friction F, by least squares over both
directions; the change K of gravity with the position comes from the model. A motor that acts against its encoder, and
one that moves another joint's encoder, show without a model; a wrong ratio or a swapped address changes J, and a wrong
direction or zero changes G.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from cosim.apps.commissioning.motion import ExpectedJoint
from cosim.apps.commissioning.session import CommissioningSession, LiveJoints, MotionBounds
from cosim.core.errors import RunError
from cosim.core.types import Array

LEVELS = 5  # of the efforts of bursts, each twice the one before
PLANNED_TRAVELS = 3.0  # times the travel, that the strongest motion of a burst is planned for
BOUND_TRAVELS = 5.0  # times the travel, at which the guard stops a joint
SHORTEST_BURST, LONGEST_BURST = 0.05, 1.0  # s, of a burst
STEADY = 0.1  # of the travel, that a joint at rest may move in between two looks
SEEN, FULL = 0.25, 0.8  # of the travel: a joint that came as far has moved; has moved enough to judge its inertia
MEASURED = 0.3  # of the requested impulse, from which on a measured effort counts
MOVED_BEYOND = "it moved by {}, beyond the bound of the probe; support it, and check its direction, zero and masses"
BRAKING_TIME = 0.3  # s
BRAKING_GAIN = 10.0  # 1/s, of the deceleration per velocity
STILL_VELOCITY = 0.02  # of the velocity limit


@dataclass
class Burst:
    """Samples of one motion since its begin, SI: time, impulse of the requested effort, position, velocity, impulse of
    the measured effort."""

    direction: int
    rows: list[tuple[float, float, float, float, float]] = field(default_factory=list)
    moved: float = 0.0  # when it ended

    @property
    def table(self) -> Array:
        return np.array(self.rows, dtype=float).reshape(-1, 5)


class MotionFit(NamedTuple):
    """What the motions of a joint have shown, SI at the joint."""

    inertia: float
    viscous: float
    gravity: float
    friction: float
    residual: float = 0.0  # what it does not explain, as a fraction of the change of momentum


class ProbeSettings(NamedTuple):
    """How strongly and how far a probe moves a joint. effort: fraction of the limit; travel: of a rotational joint
    [rad], of a linear one [m]."""

    effort: float = 0.2
    travel: tuple[float, float] = (math.radians(2.0), 2e-3)


DEFAULTS = ProbeSettings()


@dataclass(frozen=True)
class JointProbe:
    """The result for one joint. moved: by its own encoder in the + and − burst [rad or m]; effort: of the strongest
    burst; others: joint -> how far others have moved meanwhile, where this one has not."""

    joint: str
    unit: str
    moved: tuple[float, float]
    effort: float
    expected: ExpectedJoint
    fit: MotionFit | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    skipped: str = ""
    stopped: str = ""  # by what


def probe_joint(
    session: CommissioningSession,
    name: str,
    expect: ExpectedJoint,
    before: Mapping[str, float],
    settings: ProbeSettings = DEFAULTS,
    abort: Callable[[], str] = lambda: "",
) -> tuple[JointProbe, dict[str, float]]:
    """(the result, the positions of all joints afterwards). expect: of the model; before: positions of all joints.

    Raises RunError when the guard or a drive stops the motion; motors are off then.
    """
    k, unit = session.rig.joints.index(name), session.unit(name)
    travel = settings.travel[unit == "m"]
    largest = settings.effort * float(session.rig.limits.effort[k])
    none = JointProbe(name, unit, (0.0, 0.0), largest, expect)
    if "effort" not in session.specs[name].family.MODES:
        return replace(none, skipped="its drive has no effort mode; try it with cosim drives jog"), dict(before)
    hold = expect.gravity
    if abs(hold) > 0.5 * largest:
        what = f"gravity needs {effort_text(hold, unit)} here, and the largest effort is {effort_text(largest, unit)}"
        fix = "if nothing holds it, its zero, direction or ratio is wrong; else move it to where it hangs"
        return replace(none, skipped=f"{what}; {fix}"), dict(before)
    tolerance = {other: STEADY * session_travel(session, other, settings) for other in session.joints}
    positions = dict(before)
    bursts: list[Burst] = []
    level = 0.0
    for level in (largest - abs(hold)) * 0.5 ** np.arange(LEVELS - 1, -1, -1):
        bursts = []
        for sign in (1, -1):
            earlier = positions
            burst, stopped = _burst(session, name, sign, level, hold, expect, travel, abort)
            positions, bursts = session.at_rest(tolerance), [*bursts, burst]
            if stopped:
                return replace(none, moved=_moved(bursts), effort=level + abs(hold), stopped=stopped), positions
            others = _moved_others(session, name, earlier, positions, settings)
            if others and abs(burst.moved) <= SEEN * travel:
                return replace(none, moved=_moved(bursts), effort=level + abs(hold), others=others), positions
        if all(abs(burst.moved) >= FULL * travel for burst in bursts):
            break
    fit = fit_motion(bursts, expect.stiffness)
    return replace(none, moved=_moved(bursts), effort=float(level + abs(hold)), fit=fit), positions


def _moved_others(
    session: CommissioningSession,
    name: str,
    before: Mapping[str, float],
    after: Mapping[str, float],
    settings: ProbeSettings,
) -> dict[str, float]:
    """Other joints that have moved as far as a burst moves a joint."""
    moved = {other: after[other] - before[other] for other in session.joints if other != name}
    return {other: way for other, way in moved.items() if abs(way) > FULL * session_travel(session, other, settings)}


def session_travel(session: CommissioningSession, name: str, settings: ProbeSettings) -> float:
    return settings.travel[session.unit(name) == "m"]


def _moved(bursts: list[Burst]) -> tuple[float, float]:
    return bursts[0].moved, bursts[-1].moved if len(bursts) > 1 else 0.0


def _burst(
    session: CommissioningSession,
    name: str,
    sign: int,
    level: float,
    hold: float,
    expect: ExpectedJoint,
    travel: float,
    abort: Callable[[], str],
) -> tuple[Burst, str]:
    """Switch the joint on for one burst: (the burst, why it was stopped). The joint is off afterwards."""
    duration = min(
        max(math.sqrt(6.0 * PLANNED_TRAVELS * travel * expect.inertia[0] / level), SHORTEST_BURST), LONGEST_BURST
    )
    ignored = frozenset({"tracking", "frozen", "stall", "rate", "power"})
    bounds = MotionBounds(level + abs(hold), math.inf, BOUND_TRAVELS * travel, in_range=False, ignored=ignored)
    burst, impulse, exerted, before, sampled = Burst(sign), 0.0, 0.0, 0.0, 0.0
    with session.live([name], bounds, "effort", abort) as live:
        try:
            while live.t < duration and abs(live.position[0] - live.start[0]) < travel:
                live.read()
                burst.moved = float(live.position[0] - live.start[0])
                now = max(live.t - float(live.age[0]), sampled)  # of the sample
                impulse += float(live.request[0]) * (now - sampled)
                exerted += 0.5 * (before + float(live.effort[0])) * (now - sampled)
                before, sampled = float(live.effort[0]), now
                burst.rows.append((now, impulse, burst.moved, float(live.velocity[0]), exerted))
                live.write(effort=hold + sign * level * min(live.t / duration, 1.0))
            if sign * burst.moved > SEEN * travel:  # the sign of its effort is right: braking brakes
                _brake(live, hold, expect)
        except RunError as error:  # a limit, a fault, lost feedback: nothing else is moved
            beyond = abs(live.position[0] - live.start[0]) > BOUND_TRAVELS * travel
            return burst, MOVED_BEYOND.format(
                way_text(float(live.position[0] - live.start[0]), live.units[0])
            ) if beyond else error.what
    return burst, ""


def _brake(live: LiveJoints, hold: float, expect: ExpectedJoint) -> None:
    end = live.t + BRAKING_TIME
    while live.t < end and abs(live.velocity[0]) > STILL_VELOCITY * live.guard.bounds["velocity"][0]:
        live.read()
        live.write(effort=hold - BRAKING_GAIN * expect.inertia[0] * live.velocity[0])


def fit_motion(bursts: list[Burst], stiffness: float = 0.0) -> MotionFit | None:
    """The momentum balance of both motions by least squares; None where they are too short for it. stiffness: K."""
    rows, right = [], []
    for burst in bursts:
        table = burst.table
        moving = np.flatnonzero(np.abs(table[:, 2]) > 0.02 * max(abs(burst.moved), 1e-12))
        if len(moving) < 4:
            return None
        springs = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(table[:, 0]) * (table[1:, 2] + table[:-1, 2]))])
        impulses = table[:, 4] if _measures_effort(table) else table[:, 1]
        impulses = (impulses - stiffness * springs)[moving]
        impulse = impulses - impulses[0]
        t, q, v = (table[moving, column] - table[moving[0], column] for column in (0, 2, 3))
        way = math.copysign(1.0, burst.moved)
        rows.append(np.stack([v, q, t, way * t], axis=1))
        right.append(impulse)
    from scipy.optimize import nnls

    table, wanted = np.concatenate(rows), np.concatenate(right)
    table = np.column_stack([table, -table[:, 2]])  # gravity may have either sign, the others may not
    scale = np.linalg.norm(table, axis=0)
    if not scale.all():
        return None
    found, left = nnls(table / scale, wanted)
    inertia, viscous, up, friction, down = found / scale
    residual = left / max(float(np.linalg.norm(wanted)), 1e-300)
    return MotionFit(float(inertia), float(viscous), float(up - down), float(friction), float(residual))


def way_text(value: float, unit: str) -> str:
    return f"{value * 1e3:+.2g} mm" if unit == "m" else f"{math.degrees(value):+.2g} deg"


def _measures_effort(table: Array) -> bool:
    """Whether the drive has measured the effort: its samples fit the motion better in time than requests do."""
    requested, measured = table[-1, 1], table[-1, 4]
    return bool(np.isfinite(measured)) and measured * requested > 0.0 and abs(measured) > MEASURED * abs(requested)


def effort_text(value: float, unit: str) -> str:
    return f"{value:.2g} {'N' if unit == 'm' else 'N·m'}"
