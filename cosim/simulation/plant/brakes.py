"""Brakes: Coulomb friction that sticks and slips, of one dof or of all dofs of a joint together.

The efforts of a brake on n dofs are one vector f with |f| ≤ static ratio · F while it sticks, which keeps the dofs at
rest, and f = −F v/|v| while it slips (friction circle or sphere; SI, so that N and N m count alike). F may be a table
over the time since the brake was applied, or over the position or velocity of a dof: these are states, while
accelerations and efforts depend on F.

In the modes, `brake` is the number of the brake that acts on each dof (0: none), `slide` the unit vector of the
direction in which it began to slip (all 0: it sticks), and `applied` the time of its application [s]. One dof stops
where its velocity along `slide` is zero, several where it is zero or has turned by 30° from `slide`; if they are not at
rest, `slide` is renewed. Beyond that instant, inside a step that is then cut, the friction stays opposed to `slide`: it
is smooth where the instant is located.

Across the motion the friction of several dofs is stiff at low speed, at a rate of F/(m |v|). Below the `creep` of a
brake, the speed that it takes away within a few steps, its direction tends to `slide`, and where the velocity turns
there, the dofs are brought to rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.simulation.plant.indicators import (
    ELAPSED,
    KEEPS_VELOCITY,
    STANDSTILL,
    EventIndicator,
    EventInputs,
    ModeChange,
    with_modes,
)

TURN_COSINE = math.cos(math.pi / 6.0)  # of the angle between velocity and `slide`


@dataclass(frozen=True)
class Brake:
    """A brake on one dof, or on all dofs of a joint together, whose effort may vary with an argument.

    number: from 1, in the order of the events; name: of its event; efforts [N m or N] at points of the argument, linear
    between them and constant outside; over: the argument, as the name of an input of events and its dof; static_ratio:
    of the largest sticking effort to the efforts.
    """

    number: int
    name: str
    dofs: tuple[int, ...]
    efforts: tuple[float, ...]
    points: tuple[float, ...] = (0.0,)
    over: tuple[str, int] = (ELAPSED, 0)
    static_ratio: float = 1.0
    creep: float = 0.0  # rad/s or m/s, of several dofs

    def argument(self, inputs: EventInputs) -> Numeric:
        """Where in the table the effort is."""
        name, dof = self.over
        return inputs[name][dof]

    def effort(self, inputs: EventInputs) -> Numeric:
        """F [N m or N], never below 0: each row alone gives it, without a sum whose rounding errors remain."""
        effort: Numeric = self.efforts[0]
        for (begin, first), (end, last) in pairwise(zip(self.points, self.efforts, strict=True)):
            beyond = self.argument(inputs) - begin
            part = ops.clip(beyond, 0.0, end - begin) / (end - begin)
            effort = ops.where(beyond > 0.0, first + part * (last - first), effort)
        return effort

    @property
    def bends(self) -> tuple[tuple[float, float], ...]:
        """(point, side) where the slope of the effort changes while the argument rises (side 1) or falls (−1). Time
        rises from the first point on."""
        if self.over[0] == ELAPSED or len(self.points) == 1:
            return tuple((point, 1.0) for point in self.points[1:])
        return tuple((point, side) for point in self.points for side in (1.0, -1.0))


@dataclass(frozen=True)
class Brakes:
    """The brakes of a plant of nv dofs. Two of them share all dofs or none."""

    nv: int
    members: tuple[Brake, ...]

    def __bool__(self) -> bool:
        return bool(self.members)

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The dofs that brakes act on together."""
        return tuple(dict.fromkeys(brake.dofs for brake in self.members))

    @property
    def timed(self) -> bool:
        """Whether an effort is a table over time."""
        return any(brake.over[0] == ELAPSED and len(brake.points) > 1 for brake in self.members)

    @cached_property
    def indicators(self) -> tuple[EventIndicator, ...]:
        """Sticking and slipping of each unit, and the points at which the slope of an effort changes."""
        names = {brake.dofs: brake.name for brake in self.members}
        stick = (_stick(dofs, names[dofs], self._creep(dofs)) for dofs in self.units)
        slip = (_slip(dofs, names[dofs]) for dofs in self.units)
        bends = (_bend(brake, *bend) for brake in self.members for bend in brake.bends)
        return (*(indicator for pair in zip(stick, slip, strict=True) for indicator in pair), *bends)

    def _creep(self, dofs: tuple[int, ...]) -> float:
        return max(brake.creep for brake in self.members if brake.dofs == dofs)

    def applied(self, brake: Brake, s: State, inputs: EventInputs) -> State:
        """The modes once the brake acts: it slips in the direction of motion or, at rest, sticks."""
        direction = directions_of([inputs["velocity"][k] for k in brake.dofs], STANDSTILL)
        s = with_modes(with_modes(s, "brake", brake.dofs, float(brake.number)), "slide", brake.dofs, direction)
        return with_modes(s, "applied", brake.dofs, inputs["t"]) if self.timed else s

    def sticking(self, s: State) -> Mapping[int, Numeric]:
        """Dof -> 1 where its brake sticks."""
        return {
            k: ops.where(ops.logical_and(s["brake"][k] > 0.0, ops.logical_not(_slides(dofs, s))), 1.0, 0.0)
            for dofs in self.units
            for k in dofs
        }

    def elapsed(self, t: Numeric, s: State) -> dict[str, Numeric]:
        """The input of events with the time [s] since the brake of each dof was applied (nv,), if one depends on it."""
        return {ELAPSED: t - s["applied"]} if self.timed else {}

    def _bounds(self, s: State, inputs: EventInputs) -> tuple[Numeric, Numeric]:
        """(slipping efforts F, largest sticking efforts), (nv,) each: of the brake that acts on each dof."""
        slipping, static = [0.0] * self.nv, [0.0] * self.nv
        for brake in self.members:
            effort, on = brake.effort(inputs), _acts(brake, s)
            for k in brake.dofs:
                slipping[k] = ops.where(on, effort, slipping[k])
                static[k] = ops.where(on, brake.static_ratio * effort, static[k])
        return ops.array(slipping), ops.array(static)

    def efforts(self, t: Numeric, s: State, position: Numeric, v: Numeric) -> dict[str, Numeric]:
        """`braking_effort` of slipping brakes and the largest `static_effort` of sticking ones, (nv,) each, at the
        positions and velocities of the dofs (nv,)."""
        slipping, static = self._bounds(s, {"position": position, "velocity": v} | self.elapsed(t, s))
        efforts = [0.0] * self.nv
        for dofs in self.units:
            for k, direction in zip(dofs, self._direction(dofs, s["slide"], v), strict=True):
                efforts[k] = -(slipping[k] * direction)
        return {"braking_effort": ops.array(efforts), "static_effort": static}

    def directions(self, s: State, v: Numeric) -> Mapping[int, Numeric]:
        """Dof -> the component of the unit vector along which its brake slips, 0 where it sticks or does not act."""
        return {
            k: part for dofs in self.units for k, part in zip(dofs, self._direction(dofs, s["slide"], v), strict=True)
        }

    def _direction(self, dofs: tuple[int, ...], slide: Numeric, v: Numeric) -> list[Numeric]:
        """The unit vector opposed to the friction, all 0 where the brake sticks or does not act."""
        held = [slide[k] for k in dofs]
        if len(dofs) == 1:
            return held
        return slip_direction(held, [v[k] for k in dofs], self._creep(dofs))

    def after_impact(self, s: State, velocity: Numeric) -> State:
        """The modes in which the brakes of moving dofs slip in the direction of motion; velocity: (nv,)."""
        for dofs in self.units:
            speeds = [velocity[k] for k in dofs]
            slides = ops.logical_and(s["brake"][dofs[0]] > 0.0, norm(speeds) > STANDSTILL)
            kept = [s["slide"][k] for k in dofs]
            new = [ops.where(slides, a, b) for a, b in zip(directions_of(speeds, STANDSTILL), kept, strict=True)]
            s = with_modes(s, "slide", dofs, new)
        return s

    def trial(self, s: State, fires: Sequence[Numeric]) -> State:
        """The modes in which those brakes that stop, whose indicator of sticking fires, oppose the other direction with
        their largest sticking effort or, of several dofs, stick; fires: of `indicators`.

        One dof of a loop can pass a dead point: a locked dof has no definite effort there, but an acceleration."""
        for dofs, stops in zip(self.units, list(fires)[: 2 * len(self.units) : 2], strict=True):
            opposed = -self._ratio(dofs, s) if len(dofs) == 1 else 0.0
            tried = [opposed * s["slide"][k] for k in dofs]
            slide = [ops.where(stops, a, s["slide"][k]) for k, a in zip(dofs, tried, strict=True)]
            s = with_modes(s, "slide", dofs, slide)
        return s

    def _ratio(self, dofs: tuple[int, ...], s: State) -> Numeric:
        """The static ratio of the brake that acts on the dofs."""
        ratio: Numeric = 1.0
        for brake in (brake for brake in self.members if brake.dofs == dofs and brake.static_ratio != 1.0):
            ratio = ops.where(_acts(brake, s), brake.static_ratio, ratio)
        return ratio


def slip_direction(held: Sequence[Numeric], speeds: Sequence[Numeric], creep: Numeric) -> list[Numeric]:
    """The unit vector along the speeds, which tends to the one that was `held` at the last event below the creep speed,
    and stays there beyond the instant at which the motion turns back; all 0 where none is held."""
    along = ops.sum(a * b for a, b in zip(held, speeds, strict=True))
    bias = ops.maximum(creep - 0.25 * norm(speeds), 0.0)
    moving = directions_of([x + bias * a for x, a in zip(speeds, held, strict=True)], 0.0)
    return [ops.where(along > 0.0, a, b) for a, b in zip(moving, held, strict=True)]


def norm(values: Sequence[Numeric]) -> Numeric:
    return ops.abs(values[0]) if len(values) == 1 else ops.sqrt(ops.sum(x * x for x in values))


def directions_of(values: Sequence[Numeric], threshold: float) -> list[Numeric]:
    """The unit vector along the values, all 0 where their norm is not above the threshold."""
    size = norm(values)
    if len(values) == 1:
        return [ops.sign(ops.where(size > threshold, values[0], 0.0))]
    above = size > threshold
    return [ops.where(above, x / ops.where(above, size, 1.0), 0.0) for x in values]


def _acts(brake: Brake, s: State) -> Numeric:
    """Whether this brake acts, and no other one of the same dofs."""
    return ops.abs(s["brake"][brake.dofs[0]] - float(brake.number)) < 0.5


def _slides(dofs: Sequence[int], s: State) -> Numeric:
    """Whether the brake on these dofs slips."""
    return norm([s["slide"][k] for k in dofs]) > 0.5


def _load(dofs: Sequence[int], locking_effort: Numeric, held: Numeric) -> list[Numeric]:
    """The efforts that a sticking brake must hold: none where a latch or a stop holds a dof with it."""
    return [ops.where(held[k] > 0.5, 0.0, locking_effort[k]) for k in dofs]


def _stick(dofs: tuple[int, ...], name: str, creep: float) -> EventIndicator:
    """The velocity under a slipping brake is zero or has turned. At rest the brake sticks if it can hold its load."""

    def one(s: State, inputs: EventInputs) -> ModeChange:
        (k,) = dofs
        passes = s["slide"][k] * inputs["trial_acceleration"][k] < 0.0
        slide = [ops.where(passes, -s["slide"][k], 0.0)]
        return ModeChange(with_modes(s, "slide", dofs, slide), {k: ops.where(passes, KEEPS_VELOCITY, 0.0)})

    def several(s: State, inputs: EventInputs) -> ModeChange:
        load, speeds = _load(dofs, inputs["trial_effort"], inputs["held"]), [inputs["velocity"][k] for k in dofs]
        rests = norm(speeds) <= max(creep, STANDSTILL)
        sticks = norm(load) <= inputs["static_effort"][dofs[0]]
        directions = zip(directions_of(load, 0.0), directions_of(speeds, 0.0), strict=True)
        slide = [ops.where(rests, ops.where(sticks, 0.0, -against), turned) for against, turned in directions]
        return ModeChange(
            with_modes(s, "slide", dofs, slide), dict.fromkeys(dofs, ops.where(rests, 0.0, KEEPS_VELOCITY))
        )

    def stopping(inputs: EventInputs) -> Numeric:
        along = ops.sum(inputs["slide"][k] * inputs["velocity"][k] for k in dofs)
        return -along if len(dofs) == 1 else TURN_COSINE * norm([inputs["velocity"][k] for k in dofs]) - along

    return EventIndicator(name, stopping, lambda s, inputs: _slides(dofs, s), one if len(dofs) == 1 else several)


def _slip(dofs: tuple[int, ...], name: str) -> EventIndicator:
    """A sticking brake slips when it is overloaded."""

    def sticks(s: State, inputs: EventInputs) -> Numeric:
        free = ops.sum(ops.where(inputs["held"][k] > 0.5, 0.0, 1.0) for k in dofs) > 0.5
        sticks = ops.logical_and(s["brake"][dofs[0]] > 0.0, ops.logical_not(_slides(dofs, s)))
        return ops.logical_and(sticks, free)

    def overload(inputs: EventInputs) -> Numeric:
        return norm(_load(dofs, inputs["locking_effort"], inputs["held"])) - inputs["static_effort"][dofs[0]]

    def effect(s: State, inputs: EventInputs) -> ModeChange:
        load = _load(dofs, inputs["locking_effort"], inputs["held"])
        return ModeChange(with_modes(s, "slide", dofs, [-x for x in directions_of(load, 0.0)]), {})

    # a brake that is too weak from the start is overloaded without a crossing
    return EventIndicator(name, overload, sticks, effect, lambda inputs: overload(inputs) > 0.0)


def _bend(brake: Brake, point: float, side: float) -> EventIndicator:
    """The slope of the effort of a brake changes: the step ends there."""
    return EventIndicator(
        brake.name,
        lambda inputs: side * (brake.argument(inputs) - point),
        lambda s, inputs: _acts(brake, s),
        lambda s, inputs: ModeChange(s, {}),
    )
