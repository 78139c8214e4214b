"""The modes of exact contacts: which points touch, and along which unit vector each of them slides (all 0: it sticks).

A point touches where its gap closes, in an impact with Newton's restitution; lifts where it would accelerate away;
begins to slide where friction does not hold it; and stops where its velocity along the direction of sliding
is 0. That direction is renewed where the velocity has turned by 30° from it: below a creep speed, which friction takes
away within a few steps, the point is at rest then, as with a brake of several dofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.contact.cone import NORMAL
from cosim.mechanics.multibody.contact.contact_forces import ROWS, PointModes
from cosim.simulation.plant.brakes import TURN_COSINE, directions_of, norm, slip_direction
from cosim.simulation.plant.indicators import STANDSTILL, EventIndicator, EventInputs, ModeChange, with_modes

# m/s of a rebound; and flights of a point in a step: what is slower or shorter counts as contact, or infinitely many
# impacts would occur in finite time
LEAST_REBOUND, MOST_FLIGHTS = 1e-3, 8.0
SLOWEST = 1e-9  # m/s: a point in an impact approaches at least as fast, also where it is pressed without moving
LEAST_GAP = 1e-300  # m, above 0
AT_ONCE = 1e-9  # m or rad: points and stops that are nearer when one touches touch at the same instant
# steps in which friction takes away the creep speed: an explicit step is stable then
CREEP_STEPS = 0.5
DEPARTING = 1e-9  # of the accelerations: a point that departs from its mode by less keeps it

# inputs of events: gap [m], (k,); contact_rates [m/s], contact_accelerations [m/s²] and contact_law, the accelerations
# over their scale, that the law holds of, (3 k,); restitution (k,)
GAP, RATES, ACCELERATIONS, LAW, RESTITUTION = (
    "gap", "contact_rates", "contact_accelerations", "contact_law", "restitution",
)  # fmt: skip
CLOSED, DIRECTION = "closed", "direction"  # names of the modes


class ExactPoint(NamedTuple):
    """A point of an exact contact. name: of the contact; creep [m/s]."""

    name: str
    creep: float


@dataclass(frozen=True)
class ContactModes:
    """The modes of k points; row: the number of the first one among what events arrest."""

    points: tuple[ExactPoint, ...] = ()
    row: int = 0

    def __bool__(self) -> bool:
        return bool(self.points)

    def initial(self) -> State:
        k = len(self.points)
        return {CLOSED: np.zeros(k), DIRECTION: np.zeros(2 * k)} if k else {}

    @property
    def reported(self) -> tuple[EventIndicator, ...]:
        """Indicators of the events that a run reports."""
        return tuple(make(j, point, self.row + j) for j, point in enumerate(self.points) for make in REPORTED)

    @property
    def further(self) -> tuple[EventIndicator, ...]:
        return tuple(make(j, point, self.row + j) for j, point in enumerate(self.points) for make in (_turns, _jams))

    def about_to_touch(self, s: State, inputs: EventInputs) -> list[Numeric]:
        """(k,) whether points are within rounding of the surface, and do not leave it."""
        found = []
        for j in range(len(self.points)):
            near = ops.logical_and(inputs[GAP][j] < AT_ONCE, inputs[RATES][ROWS * j + NORMAL] < STANDSTILL)
            found.append(ops.logical_and(near, ops.logical_not(_is_closed(s, j))))
        return found

    def of(self, s: State, rates: Numeric) -> PointModes:
        """The modes with the present directions of sliding; rates (3 k,): velocities of the points."""
        found: list[Numeric] = []
        for j, point in enumerate(self.points):
            found += slip_direction(_direction(s, j), _across(rates, j), point.creep)
        return PointModes(s[CLOSED], ops.array(found))

    def after_impact(self, s: State, rates: Numeric, takes_part: Numeric) -> State:
        """The modes after an impact: points that depart are open, those that move slide in the direction of motion.

        rates (3 k,): after it; takes_part (k,): 1 for points that it changes."""
        closed, directions = [], []
        for j in range(len(self.points)):
            changes, away = takes_part[j] > 0.5, rates[ROWS * j + NORMAL] > 2.0 * SLOWEST
            closed.append(ops.where(ops.logical_and(changes, away), 0.0, s[CLOSED][j]))
            for new, held in zip(directions_of(_across(rates, j), STANDSTILL), _direction(s, j), strict=True):
                directions.append(ops.where(changes, ops.where(away, 0.0, new), held))
        return s | {CLOSED: ops.array(closed), DIRECTION: ops.array(directions)}


def _across(rates: Numeric, j: int) -> list[Numeric]:
    return [rates[ROWS * j], rates[ROWS * j + 1]]


def _direction(s: State, j: int) -> list[Numeric]:
    return [s[DIRECTION][2 * j], s[DIRECTION][2 * j + 1]]


def _with_direction(s: State, j: int, direction: Sequence[Numeric] | float) -> State:
    values = list(direction) if isinstance(direction, Sequence) else direction
    return with_modes(s, DIRECTION, [2 * j, 2 * j + 1], values)


def _is_closed(s: State, j: int) -> Numeric:
    return s[CLOSED][j] > 0.5


def _slides(s: State, j: int) -> Numeric:
    return ops.logical_and(_is_closed(s, j), norm(_direction(s, j)) > 0.5)


def _touches(j: int, point: ExactPoint, row: int) -> EventIndicator:
    n = ROWS * j + NORMAL

    def effect(s: State, inputs: EventInputs) -> ModeChange:
        leaving = inputs[RESTITUTION][j] * ops.abs(inputs[RATES][n])
        flight = 2.0 * leaving * MOST_FLIGHTS < -inputs[ACCELERATIONS][n] * inputs["step"]
        stays = ops.logical_or(leaving < LEAST_REBOUND, flight)
        after = _with_direction(with_modes(s, CLOSED, [j], 1.0), j, 0.0)
        return ModeChange(after, {row: ops.where(stays, 0.0, inputs[RESTITUTION][j])})

    def possible(s: State, inputs: EventInputs) -> Numeric:
        """Whether the point can touch: not one that rests at the surface and is about to leave it."""
        rests = ops.logical_and(inputs[GAP][j] <= 0.0, ops.abs(inputs[RATES][n]) <= STANDSTILL)
        leaves = ops.logical_and(rests, inputs[ACCELERATIONS][n] > 0.0)
        return ops.logical_not(ops.logical_or(_is_closed(s, j), leaves))

    def inside(inputs: EventInputs) -> Numeric:
        """Below 0 also of a point that leaves from the surface itself, which may come back within the step."""
        gap = inputs[GAP][j]
        return ops.where(inputs[RATES][n] > 0.0, -ops.maximum(ops.abs(gap), LEAST_GAP), -gap)

    return EventIndicator(f"{point.name} touches", inside, possible, effect, lambda i: i[RATES][n] < -STANDSTILL)


def _lifts(j: int, point: ExactPoint, row: int) -> EventIndicator:
    def away(inputs: EventInputs) -> Numeric:
        return inputs[LAW][ROWS * j + NORMAL] - DEPARTING

    def effect(s: State, inputs: EventInputs) -> ModeChange:
        return ModeChange(_with_direction(with_modes(s, CLOSED, [j], 0.0), j, 0.0), {})

    name = f"{point.name} lifts"
    return EventIndicator(name, away, lambda s, i: _is_closed(s, j), effect, lambda i: away(i) > 0.0, leaves=True)


def _slips(j: int, point: ExactPoint, row: int) -> EventIndicator:
    def begins(inputs: EventInputs) -> Numeric:
        return norm(_across(inputs[LAW], j)) - DEPARTING

    def effect(s: State, inputs: EventInputs) -> ModeChange:
        return ModeChange(_with_direction(s, j, directions_of(_across(inputs[LAW], j), 0.0)), {})

    def sticks(s: State, inputs: EventInputs) -> Numeric:
        return ops.logical_and(_is_closed(s, j), ops.logical_not(_slides(s, j)))

    return EventIndicator(f"{point.name} slips", begins, sticks, effect, lambda i: begins(i) > 0.0)


def _sticks(j: int, point: ExactPoint, row: int) -> EventIndicator:
    """The velocity along the direction of sliding is 0. A point that friction does not hold slips in the same
    instant."""
    return EventIndicator(
        f"{point.name} sticks",
        lambda i: -ops.sum(a * b for a, b in zip(_held(i, j), _across(i[RATES], j), strict=True)),
        lambda s, i: _slides(s, j),
        lambda s, i: ModeChange(_with_direction(s, j, 0.0), {}),
        lambda i: ops.sum(a * b for a, b in zip(_held(i, j), _across(i[ACCELERATIONS], j), strict=True)) < 0.0,
    )


def _turns(j: int, point: ExactPoint, row: int) -> EventIndicator:
    def turned(inputs: EventInputs) -> Numeric:
        speeds = _across(inputs[RATES], j)
        along = ops.sum(a * b for a, b in zip(_held(inputs, j), speeds, strict=True))
        return TURN_COSINE * norm(speeds) - along

    def effect(s: State, inputs: EventInputs) -> ModeChange:
        speeds = _across(inputs[RATES], j)
        rests = norm(speeds) <= max(point.creep, STANDSTILL)
        return ModeChange(_with_direction(s, j, [ops.where(rests, 0.0, x) for x in directions_of(speeds, 0.0)]), {})

    return EventIndicator(point.name, turned, lambda s, i: _slides(s, j), effect)


def _jams(j: int, point: ExactPoint, row: int) -> EventIndicator:
    """Friction leaves no force with which the sliding point stays on the surface: an impact without collision
    (Painlevé) stops it."""

    def jammed(inputs: EventInputs) -> Numeric:
        return -inputs[LAW][ROWS * j + NORMAL] - DEPARTING

    return EventIndicator(
        point.name,
        jammed,
        lambda s, i: _slides(s, j),
        lambda s, i: ModeChange(s, {row: 0.0}),
        lambda i: jammed(i) > 0.0,
    )


REPORTED = _touches, _lifts, _slips, _sticks  # of each point, in this order


def _held(inputs: EventInputs, j: int) -> list[Numeric]:
    return [inputs[DIRECTION][2 * j], inputs[DIRECTION][2 * j + 1]]
