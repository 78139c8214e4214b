"""Discrete modes of a mechanism: latches, brakes, hard stops, exact contacts, released constraints.

All modes are state: latched dofs, the brakes that act and the directions in which they slip (0: they stick), touched
stops, active constraints. An `EventIndicator` fires when its value crosses zero upwards; its effect changes modes, and
the dofs it arrests lose their velocity in an impulse. Pure functions of numbers or symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.control.control_loop import Locks
from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.simulation.plant.brakes import Brake, Brakes
from cosim.simulation.plant.contact_modes import AT_ONCE, REPORTED, ContactModes, ExactPoint
from cosim.simulation.plant.indicators import STANDSTILL, EventIndicator, EventInputs, ModeChange, with_modes

MIN_REBOUND = 1e-3  # speed [rad/s or m/s] below which a body does not rebound from its stop


@dataclass(frozen=True)
class PlantEvent:
    """An event of the rig: the action `do` on the dofs or constraints `of` (indices) when `value` crosses 0 upwards."""

    name: str
    value: Callable[[EventInputs], Numeric]
    do: str  # `brake` or a key of `ACTIONS`
    of: tuple[int, ...]
    brake: Brake | None = None


@dataclass(frozen=True)
class HardStop:
    """An inelastic or elastic stop of a dof: side is +1 at an upper bound, −1 at a lower one."""

    name: str
    dof: int
    bound: float
    side: float
    restitution: float


def _latch(event: PlantEvent, s: State, inputs: EventInputs) -> ModeChange:
    return ModeChange(with_modes(s, "latched", event.of, 1.0), dict.fromkeys(event.of, 0.0))


def _unlatch(event: PlantEvent, s: State, inputs: EventInputs) -> ModeChange:
    return ModeChange(with_modes(s, "latched", event.of, 0.0), {})


def _unbrake(event: PlantEvent, s: State, inputs: EventInputs) -> ModeChange:
    return ModeChange(with_modes(with_modes(s, "brake", event.of, 0.0), "slide", event.of, 0.0), {})


def _release(event: PlantEvent, s: State, inputs: EventInputs) -> ModeChange:
    return ModeChange(with_modes(s, "active", event.of, 0.0), {})


def _disable(event: PlantEvent, s: State, inputs: EventInputs) -> ModeChange:
    return ModeChange(with_modes(s, "disabled", event.of, 1.0), {})


def _enable(event: PlantEvent, s: State, inputs: EventInputs) -> ModeChange:
    return ModeChange(with_modes(s, "disabled", event.of, 0.0), {})


ACTIONS: dict[str, Callable[[PlantEvent, State, EventInputs], ModeChange]] = {
    "latch": _latch,
    "unlatch": _unlatch,
    "unbrake": _unbrake,
    "release": _release,
    "disable": _disable,
    "enable": _enable,
}


@dataclass(frozen=True)
class HybridModes:
    """The modes and events of a plant of nv dofs; latched: dofs that are latched at the start."""

    nv: int = 0
    constraints: int = 0
    events: tuple[PlantEvent, ...] = ()
    stops: tuple[HardStop, ...] = ()
    latched: tuple[int, ...] = ()
    signals: tuple[str, ...] = ()  # that events depend on, besides the motion of dofs
    points: tuple[ExactPoint, ...] = ()  # of exact contacts

    def __bool__(self) -> bool:
        return bool(self.events or self.stops or self.latched or self.points)

    @cached_property
    def contacts(self) -> ContactModes:
        return ContactModes(self.points, self.nv)

    @property
    def releases(self) -> bool:
        """Whether constraints can be released."""
        return any(event.do == "release" for event in self.events)

    @cached_property
    def switches(self) -> bool:
        """Whether drives are switched on or off."""
        return any(event.do in ("disable", "enable") for event in self.events)

    @cached_property
    def brakes(self) -> Brakes:
        return Brakes(self.nv, tuple(event.brake for event in self.events if event.brake is not None))

    @cached_property
    def holding(self) -> tuple[int, ...]:
        """The dofs that a latch or a brake may hold, in order."""
        of = {dof for event in self.events if event.do in ("latch", "brake") for dof in event.of}
        return tuple(sorted(of | set(self.latched)))

    @cached_property
    def indicators(self) -> tuple[EventIndicator, ...]:
        """Events of the rig in its order, hits of stops, events of contacts, separation from stops, what else changes
        the modes of contacts, and events of brakes."""
        return (
            *(self._of_event(event) for event in self.events),
            *(_hit(k, stop) for k, stop in enumerate(self.stops)),
            *self.contacts.reported,
            *(_leave(k, stop) for k, stop in enumerate(self.stops)),
            *self.contacts.further,
            *self.brakes.indicators,
        )

    def _of_event(self, event: PlantEvent) -> EventIndicator:
        def effect(s: State, inputs: EventInputs) -> ModeChange:
            if event.brake is not None:
                return ModeChange(self.brakes.applied(event.brake, s, inputs), {})
            return ACTIONS[event.do](event, s, inputs)

        return EventIndicator(event.name, event.value, lambda s, inputs: True, effect)

    @property
    def event_names(self) -> tuple[str, ...]:
        """Names of the events that a run reports: events of the rig, hits of stops, and events of contacts."""
        reported = len(self.events) + len(self.stops) + len(self.contacts.reported)
        return tuple(indicator.name for indicator in self.indicators[:reported])

    def together(self, s: State, inputs: EventInputs, fires: Numeric) -> Numeric:
        """The indicators that fire (n,), with those of points and stops that are about to touch at an instant at which
        one touches: what rounding sets apart is one impact. Nothing leaves a stop or a surface at that instant: what
        does is found from the velocities and forces after the impact."""
        if not self.points:
            return fires
        first, touching = len(self.events), dict[int, Numeric]()
        for k, stop in enumerate(self.stops):
            near = stop.side * (inputs["position"][stop.dof] - stop.bound) > -AT_ONCE
            comes = ops.logical_and(near, stop.side * inputs["velocity"][stop.dof] > 0.0)
            touching[first + k] = ops.logical_and(s["stopped"][k] < 0.5, comes)
        for j, comes in enumerate(self.contacts.about_to_touch(s, inputs)):
            touching[first + len(self.stops) + len(REPORTED) * j] = comes
        touches = ops.sum(fires[k] for k in touching) > 0.5
        found = [ops.where(ops.logical_and(touches, comes), 1.0, fires[k]) for k, comes in touching.items()]
        leaving = [k for k, indicator in enumerate(self.indicators) if indicator.leaves]
        stay = [ops.where(touches, 0.0, fires[k]) for k in leaving]
        return ops.set_at(ops.set_at(fires, list(touching), found), leaving, stay)

    def initial(self) -> State:
        n, zeros = len(self.indicators), np.zeros(len(self.event_names))
        applied = {"applied": np.zeros(self.nv)} if self.brakes.timed else {}
        switched = {"disabled": np.zeros(self.nv)} if self.switches else {}
        return {
            **applied,
            **switched,
            **self.contacts.initial(),
            "latched": np.isin(np.arange(self.nv), self.latched).astype(float),
            "brake": np.zeros(self.nv),
            "slide": np.zeros(self.nv),
            "stopped": np.zeros(len(self.stops)),
            "active": np.ones(self.constraints),
            "before": np.full(n, -1.0),  # values of the indicators at the last evaluation
            "count": zeros,  # how often each reported event occurred …
            "last": zeros.copy(),  # … when it last occurred [s] …
            "lost": zeros.copy(),  # … and the energy lost in all its occurrences [J]
            "fired": np.zeros(n),  # how often each indicator fired in this step
            "endless": np.full((), -1.0),  # when events began to trigger each other without end [s]; −1: never
        }

    @cached_property
    def locks(self) -> Locks:
        """Which dofs are latched at the start, and where that may change."""

        def dofs(*actions: str) -> set[int]:
            return {dof for event in self.events if event.do in actions for dof in event.of}

        latching, stopping = dofs("latch", "unlatch"), {stop.dof for stop in self.stops}
        return Locks(self.latched, tuple(sorted(latching)), tuple(sorted(dofs("brake") | stopping)))

    def locked(self, s: State) -> Numeric:
        """(nv,) 1 where a dof is locked by a latch, a touched stop or a sticking brake."""
        locked = self.rigidly_locked(s, s["stopped"])
        sticking = self.brakes.sticking(s)
        return ops.set_at(locked, list(sticking), [ops.maximum(locked[k], on) for k, on in sticking.items()])

    def rigidly_locked(self, s: State, touched: Numeric) -> Numeric:
        """(nv,) 1 where a latch or a touched stop locks a dof, also in an impact; brakes do not. touched: (stops,)."""
        blocked = s["latched"]
        for k, stop in enumerate(self.stops):
            blocked = ops.set_at(blocked, [stop.dof], [ops.maximum(blocked[stop.dof], touched[k])])
        return blocked

    def pushing_stops(self, touched: Numeric, impulse: Numeric) -> Numeric:
        """(stops,) 1 for touched stops whose impulse pushes; impulse: (nv,)."""
        pulls = [stop.side * impulse[stop.dof] > 0.0 for stop in self.stops]
        return ops.array([ops.where(pull, 0.0, on) for pull, on in zip(pulls, touched, strict=True)])

    def after_impact(self, s: State, touched: Numeric, velocity: Numeric) -> State:
        """The modes after an impact: brakes slip in the direction of motion, moving dofs leave their stops.

        touched: (stops,); velocity: (nv,) after the impact."""
        moves = ops.abs(velocity) > STANDSTILL
        left = [ops.where(moves[stop.dof], touched[k], s["stopped"][k]) for k, stop in enumerate(self.stops)]
        return self.brakes.after_impact(s | {"stopped": ops.array(left)}, velocity)

    def active(self, s: State) -> Numeric:
        """(constraints,) 1 for active constraints, 0 for released ones."""
        return s["active"]


def _hit(k: int, stop: HardStop) -> EventIndicator:
    def effect(s: State, inputs: EventInputs) -> ModeChange:
        leaving = stop.restitution * ops.abs(inputs["velocity"][stop.dof])
        back = stop.side * inputs["acceleration"][stop.dof]
        # a flight shorter than a step counts as contact; otherwise infinitely many bounces would occur in finite time
        stays = ops.logical_or(leaving < MIN_REBOUND, 2.0 * leaving < back * inputs["step"])
        after = with_modes(s, "stopped", [k], [ops.where(stays, 1.0, 0.0)])
        return ModeChange(after, {stop.dof: ops.where(stays, 0.0, stop.restitution)})

    def beyond(inputs: EventInputs) -> Numeric:
        return stop.side * (inputs["position"][stop.dof] - stop.bound)

    def possible(s: State, inputs: EventInputs) -> Numeric:
        """Whether the body can hit: not one at its stop that moves away or is about to."""
        speed, pull = stop.side * inputs["velocity"][stop.dof], stop.side * inputs["acceleration"][stop.dof]
        rests = ops.logical_and(ops.abs(speed) <= STANDSTILL, pull >= 0.0)
        comes = ops.logical_or(beyond(inputs) < 0.0, ops.logical_or(speed > 0.0, rests))
        return ops.logical_and(s["stopped"][k] < 0.5, comes)

    return EventIndicator(
        stop.name, beyond, possible, effect, lambda inputs: stop.side * inputs["velocity"][stop.dof] > 0.0
    )


def _leave(k: int, stop: HardStop) -> EventIndicator:
    return EventIndicator(
        stop.name,
        lambda inputs: stop.side * inputs["locking_effort"][stop.dof],
        lambda s, inputs: s["stopped"][k] > 0.5,
        lambda s, inputs: ModeChange(with_modes(s, "stopped", [k], 0.0), {}),
        lambda inputs: stop.side * inputs["locking_effort"][stop.dof] > 0.0,
        leaves=True,
    )
