"""What changes the structure of a mechanism while it runs: latches, brakes, stops, releases (theory §6).

Everything that switches is state: dofs that are latched, brakes that are on and the way they slide (0: they
stick), stops that are touched, couplings that hold. A `EventIndicator` fires when its value crosses zero upwards, and
changes that state; dofs it arrests lose their velocity by an impulse. Pure functions of numbers or symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cosim import ops
from cosim.types import State

# speed [rad/s or m/s] of rebound below which a body stays at its stop
REST = 1e-3
# speed [rad/s or m/s] below which a dof stands still
STILL = 1e-9

# t, step (of the schedule), position, velocity, acceleration, hold (nv,), and signals by name
Seen = Mapping[str, Any]


@dataclass(frozen=True)
class PlantEvent:
    """Something the rig does: `do` to the dofs or couplings `of` (indices) when `value(seen)` crosses 0 upwards."""

    name: str
    value: Callable[[Seen], Any]
    do: str  # a key of `ACTIONS`
    of: tuple[int, ...]
    effort: float = 0.0  # of a brake, N m or N


@dataclass(frozen=True)
class HardStop:
    """A limit of a dof that it hits: the side is +1 at an upper, −1 at a lower bound."""

    name: str
    dof: int
    bound: float
    side: float
    restitution: float


class ModeChange(NamedTuple):
    """What a trigger does: the switches afterwards, and dofs (nv,) that keep −(this) of their velocity, NaN: all."""

    state: State
    rebound: dict[int, Any]


class EventIndicator(NamedTuple):
    name: str
    value: Callable[[Seen], Any]
    enabled: Callable[[State, Seen], Any]
    effect: Callable[[State, Seen], ModeChange]
    pressing: Callable[[Seen], Any] | None = None  # fires at once while this holds and the value is not negative


def _with(s: State, what: str, places: Sequence[int], values: Any) -> State:
    values = values if isinstance(values, list) else [values] * len(places)
    return s | {what: ops.with_elements(s[what], places, values)}


def _latch(event: PlantEvent, s: State, seen: Seen) -> ModeChange:
    return ModeChange(_with(s, "latched", event.of, 1.0), dict.fromkeys(event.of, 0.0))


def _unlatch(event: PlantEvent, s: State, seen: Seen) -> ModeChange:
    return ModeChange(_with(s, "latched", event.of, 0.0), {})


def _brake(event: PlantEvent, s: State, seen: Seen) -> ModeChange:
    ways = [ops.sign(ops.where(ops.absolute(seen["velocity"][k]) > STILL, seen["velocity"][k], 0.0)) for k in event.of]
    return ModeChange(_with(_with(s, "brake", event.of, event.effort), "slide", event.of, ways), {})


def _unbrake(event: PlantEvent, s: State, seen: Seen) -> ModeChange:
    return ModeChange(_with(_with(s, "brake", event.of, 0.0), "slide", event.of, 0.0), {})


def _release(event: PlantEvent, s: State, seen: Seen) -> ModeChange:
    return ModeChange(_with(s, "active", event.of, 0.0), {})


ACTIONS: dict[str, Callable[[PlantEvent, State, Seen], ModeChange]] = {
    "latch": _latch,
    "unlatch": _unlatch,
    "brake": _brake,
    "unbrake": _unbrake,
    "release": _release,
}


@dataclass(frozen=True)
class HybridModes:
    """All that can switch in a plant of nv dofs; `latched`: dofs that are at the start."""

    nv: int = 0
    couplings: int = 0
    events: tuple[PlantEvent, ...] = ()
    stops: tuple[HardStop, ...] = ()
    latched: tuple[int, ...] = ()
    signals: tuple[str, ...] = ()  # that values look at, besides the motion of dofs

    def __bool__(self) -> bool:
        return bool(self.events or self.stops or self.latched)

    @property
    def releases(self) -> bool:
        """Whether constraints can be released."""
        return any(event.do == "release" for event in self.events)

    @cached_property
    def triggers(self) -> tuple[EventIndicator, ...]:
        """Those of the rig first, in its order; then what stops and brakes do by themselves."""
        braked = {k: event.name for event in self.events if event.do == "brake" for k in event.of}
        return (
            *map(_of_event, self.events),
            *(_hit(k, stop) for k, stop in enumerate(self.stops)),
            *(_leave(k, stop) for k, stop in enumerate(self.stops)),
            *(trigger for k, name in braked.items() for trigger in (_stick(k, name), _slip(k, name))),
        )

    @property
    def reported(self) -> tuple[str, ...]:
        """Names of the triggers that a run reports: events and hits of stops."""
        return tuple(trigger.name for trigger in self.triggers[: len(self.events) + len(self.stops)])

    def initial(self) -> State:
        n, reported = len(self.triggers), np.zeros(len(self.reported))
        return {
            "latched": np.isin(np.arange(self.nv), self.latched).astype(float),
            "brake": np.zeros(self.nv),
            "slide": np.zeros(self.nv),
            "stopped": np.zeros(len(self.stops)),
            "active": np.ones(self.couplings),
            "before": np.full(n, -1.0),  # the triggers' values when they were last looked at
            "count": reported,  # how often each fired …
            "last": reported.copy(),  # … when it did so last [s] …
            "lost": reported.copy(),  # … and the energy lost in it so far [J]
            "fired": np.zeros(n),  # how often each of all triggers fired in this step
            "endless": np.full((), -1.0),  # when events set each other off without end [s]; −1: they did not
        }

    def still(self) -> State:
        """Rates of the above: nothing changes between events."""
        return {name: np.zeros(np.shape(value)) for name, value in self.initial().items()}

    def held(self, s: State) -> Any:
        """(nv,) 1 where a dof is held still."""
        sticking = ops.where(s["brake"] > 0.0, 1.0 - ops.absolute(s["slide"]), 0.0)
        return ops.maximum(self.blocked(s, s["stopped"]), sticking)

    def blocked(self, s: State, touched: Any) -> Any:
        """(nv,) 1 where latches or the stops that are touched (stops,) hold a dof, which they do against impulses too;
        brakes do not."""
        blocked = s["latched"]
        for k, stop in enumerate(self.stops):
            blocked = ops.with_elements(blocked, [stop.dof], [ops.maximum(blocked[stop.dof], touched[k])])
        return blocked

    def pushing(self, touched: Any, impulse: Any) -> Any:
        """(stops,) of the stops touched, those that need not pull for the impulses (nv,)."""
        pulls = [stop.side * impulse[stop.dof] > 0.0 for stop in self.stops]
        return ops.array([ops.where(pull, 0.0, on) for pull, on in zip(pulls, touched, strict=True)])

    def struck(self, s: State, touched: Any, velocity: Any) -> State:
        """After an impact: brakes slide the way their dofs (nv,) now move, stops are left by those that move."""
        moves = ops.absolute(velocity) > STILL
        slides = ops.logical_and(s["brake"] > 0.0, moves)
        left = [ops.where(moves[stop.dof], touched[k], s["stopped"][k]) for k, stop in enumerate(self.stops)]
        return s | {"slide": ops.where(slides, ops.sign(velocity), s["slide"]), "stopped": ops.array(left)}

    def braking(self, s: State) -> Any:
        """(nv,) efforts of the brakes that slide."""
        return -(s["brake"] * s["slide"])

    def active(self, s: State) -> Any:
        return s["active"]


def _of_event(event: PlantEvent) -> EventIndicator:
    def effect(s: State, seen: Seen) -> ModeChange:
        return ACTIONS[event.do](event, s, seen)

    return EventIndicator(event.name, event.value, lambda s, seen: True, effect)


def _hit(k: int, stop: HardStop) -> EventIndicator:
    def effect(s: State, seen: Seen) -> ModeChange:
        leaving = stop.restitution * ops.absolute(seen["velocity"][stop.dof])
        back = stop.side * seen["acceleration"][stop.dof]
        # a flight shorter than a step is none: bounces without end would happen in no time
        stays = ops.logical_or(leaving < REST, 2.0 * leaving < back * seen["step"])
        after = _with(s, "stopped", [k], [ops.where(stays, 1.0, 0.0)])
        return ModeChange(after, {stop.dof: ops.where(stays, 0.0, stop.restitution)})

    def beyond(seen: Seen) -> Any:
        return stop.side * (seen["position"][stop.dof] - stop.bound)

    def possible(s: State, seen: Seen) -> Any:
        """A body at its stop that moves away, or is about to, does not hit it."""
        speed, pull = stop.side * seen["velocity"][stop.dof], stop.side * seen["acceleration"][stop.dof]
        rests = ops.logical_and(ops.absolute(speed) <= STILL, pull >= 0.0)
        comes = ops.logical_or(beyond(seen) < 0.0, ops.logical_or(speed > 0.0, rests))
        return ops.logical_and(s["stopped"][k] < 0.5, comes)

    return EventIndicator(
        stop.name, beyond, possible, effect, lambda seen: stop.side * seen["velocity"][stop.dof] > 0.0
    )


def _leave(k: int, stop: HardStop) -> EventIndicator:
    return EventIndicator(
        stop.name,
        lambda seen: stop.side * seen["hold"][stop.dof],
        lambda s, seen: s["stopped"][k] > 0.5,
        lambda s, seen: ModeChange(_with(s, "stopped", [k], 0.0), {}),
        lambda seen: stop.side * seen["hold"][stop.dof] > 0.0,
    )


def _stick(dof: int, name: str) -> EventIndicator:
    return EventIndicator(
        name,
        lambda seen: -(seen["slide"][dof] * seen["velocity"][dof]),
        lambda s, seen: ops.absolute(s["slide"][dof]) > 0.5,
        lambda s, seen: ModeChange(_with(s, "slide", [dof], 0.0), {dof: 0.0}),
    )


def _slip(dof: int, name: str) -> EventIndicator:
    def sticks(s: State, seen: Seen) -> Any:
        return ops.logical_and(s["brake"][dof] > 0.0, ops.absolute(s["slide"][dof]) < 0.5)

    def effect(s: State, seen: Seen) -> ModeChange:
        return ModeChange(_with(s, "slide", [dof], [-ops.sign(seen["hold"][dof])]), {})

    return EventIndicator(name, lambda seen: ops.absolute(seen["hold"][dof]) - seen["brake"][dof], sticks, effect)
