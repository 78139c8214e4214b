"""A step of the plant in time, with the events that happen within it.

A step without events is one step of the integrator, put back onto the constraints. When a trigger crosses zero
in it, the instant is found by bracketing, the step is taken up to there, the switches change, arrested dofs and
constraints exchange an impulse, and what remains of the step is taken in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from cosim import ops
from cosim.compile.routine import Routine, call_when
from cosim.compile.while_loop import WhileLoop
from cosim.plant.plant import Plant
from cosim.types import State

# events are located to this share of a step, in at most SEARCH evaluations; more than CHAIN of them in one step
# mean that they go on for ever
TOLERANCE = 1e-10
SEARCH, CHAIN = 80, 50
# how often an impact is looked at again without the stops that would have to pull in it
LETTING_GO = 2

# m, rad, m/s or rad/s; the greatest violation of a constraint
MAX_VIOLATION = 1e-2

Step = Callable[[Any, Any, Any, Any], Any]  # (t, x, request, h) -> x at t + h


class PlantFault(IntEnum):
    """Why a state of the plant cannot be continued from, in order of precedence."""

    CONSTRAINT_VIOLATED = 1
    ENDLESS_EVENTS = 2


@dataclass
class EventStepper:
    """`step` is the integrator's on the flat state of the plant, `length` [s] that of steps; compiled: parts become
    routines of their own; first_code: added to a `PlantFault`, so that it takes precedence over lower fault codes."""

    plant: Plant
    step: Step
    length: float
    compiled: bool = True
    first_code: int = 0

    def advance(self, t: Any, x: Any, request: Any) -> Any:
        """The flat state one step later."""
        h = self.length
        if not self.plant.switches:
            return self._once(t, x, request, h)
        plant = self.plant.layout.unpack(x)
        sound = plant["switches"]["endless"] < 0.0
        fired = ops.where(sound, 0.0, plant["switches"]["fired"])
        begun = self.plant.layout.pack(plant | {"switches": plant["switches"] | {"fired": fired}})
        end, _, more = self._segments(ops.concatenate([ops.array([t, h]), begun]), request)
        plant = self.plant.layout.unpack(end[2:])
        endless = ops.where(ops.logical_and(sound, more > 0.5), end[0], plant["switches"]["endless"])
        return self.plant.layout.pack(plant | {"switches": plant["switches"] | {"endless": endless}})

    def fault(self, t: Any, x: Any) -> Any:
        """0, or the code of the fault that the flat state has."""
        violated, endless = (float(self.first_code + fault) for fault in PlantFault)
        state = self.plant.layout.unpack(x)
        found = ops.array([0.0])[0]
        if self.plant.model.constraint_rows:
            worst = ops.array([0.0])[0]
            for gap in self.gaps(t, state):
                worst = ops.maximum(worst, gap)
            found = ops.where(worst > MAX_VIOLATION, violated, found)
        return ops.where(state["switches"]["endless"] < 0.0, found, endless) if self.plant.switches else found

    def _once(self, t: Any, x: Any, request: Any, h: Any) -> Any:
        x = self.step(t, x, request, h)
        if not self.plant.drifts:
            return x
        return self.plant.layout.pack(self.plant.settled(t + h, self.plant.layout.unpack(x)))

    def gaps(self, t: Any, x: State) -> list[Any]:
        """By how much each row of the constraints is off, 0 where they are released: of rows without residual, the rate
        [m, rad, m/s or rad/s]."""
        equations, ties = self.plant.model.equations, self.plant.model.equations.constraints
        q, v, _ = self.plant.motion(t, x)
        residual, rate = equations.constraint_violation(q, v, t)
        left, active = iter(residual), self.plant.active(x)
        gaps = [ops.absolute(next(left) if closed else rate[r]) for r, closed in enumerate(ties.holonomic)]
        if active is None:
            return gaps
        return [ops.where(active[k] > 0.5, gap, 0.0) for gap, k in zip(gaps, ties.owners, strict=True)]

    # --- routines ---

    @property
    def _size(self) -> int:
        return self.plant.layout.size

    def _part(self, fn: Callable[..., Any], shapes: list[tuple[int, ...]], name: str) -> Any:
        return Routine(fn, shapes, name) if self.compiled else fn

    @cached_property
    def _taken(self) -> Any:
        return self._part(self._once, [(), (self._size,), (self.plant.model.nv,), ()], "step")

    @cached_property
    def _values(self) -> Any:
        """(values of all triggers, which of them press on) in a state."""
        return self._part(self._look, [(), (self._size,), (self.plant.model.nv,)], "triggers")

    @cached_property
    def _segments(self) -> Any:
        shapes = [(2 + self._size,), (self.plant.model.nv,)]
        return _repeated(self._segment, shapes, "segment", CHAIN, self.compiled)

    @cached_property
    def _search(self) -> Any:
        shapes = [(6,), (), (), (self._size,), (self.plant.model.nv,), (len(self.plant.switches.triggers),)]
        return _repeated(self._narrow, shapes, "search", SEARCH, self.compiled)

    # --- triggers ---

    def _seen(self, t: Any, x: Any, request: Any) -> dict[str, Any]:
        state = self.plant.layout.unpack(x)
        found = self.plant.efforts(t, state, request)
        model = self.plant.model
        seen = {"t": t, "step": self.length, "position": model.equations.chart(found["q"]), "velocity": found["v"]}
        seen |= {"acceleration": found["a"], "hold": found["hold"]}
        seen |= {name: state["switches"][name] for name in ("brake", "slide")}
        if self.plant.switches.signals:
            signals = self.plant.observe(t, state, request)
            seen |= {name: signals[name] for name in self.plant.switches.signals}
        return seen

    def _look(self, t: Any, x: Any, request: Any) -> tuple[Any, Any, Any]:
        seen, s = self._seen(t, x, request), self.plant.layout.unpack(x)["switches"]
        triggers = self.plant.switches.triggers
        values = ops.array([trigger.value(seen) for trigger in triggers])
        pressing = [0.0 if p is None else ops.where(p(seen), 1.0, 0.0) for p in (tr.pressing for tr in triggers)]
        enabled = [ops.where(trigger.enabled(s, seen), 1.0, 0.0) for trigger in triggers]
        return values, ops.array(pressing), ops.array(enabled)

    def _segment(self, clock: Any, request: Any) -> tuple[Any, Any]:
        """From the start of what remains of a step to its end, or to the first event in it, which then happens."""
        t, h, x = clock[0], clock[1], clock[2:]
        before = self.plant.layout.unpack(x)["switches"]["before"]
        now, pressing, enabled = self._values(t, x, request)
        on = enabled > 0.5
        at_once = _all(on, now >= 0.0, ops.logical_or(before < 0.0, pressing > 0.5))
        end = self._taken(t, x, request, h)
        then, _, _ = self._values(t + h, end, request)
        crossing = ops.where(_all(on, now < 0.0, then >= 0.0), 1.0, 0.0)
        waits, crosses = _any(at_once), _any(crossing > 0.5)
        bracket = ops.array([0.0, 1.0, _highest(crossing, now), _highest(crossing, then), 0.0, 1.0])
        within = ops.logical_and(crosses, ops.logical_not(waits))
        whole = [ops.array([0.0, 1.0, *bracket[2:]]), 1.0, 0.0]
        found, _, _ = call_when(within, self._search, (bracket, t, h, x, request, crossing), whole)
        share = ops.where(waits, 0.0, found[1])
        reached = call_when(within, self._taken, (t, x, request, share * h), [ops.where(waits, x, end)])
        t = t + share * h
        there, _, _ = call_when(
            within, self._values, (t, reached, request), [ops.where(waits, now, then), pressing, enabled]
        )
        crossed = _all(crossing > 0.5, there >= 0.0, ops.logical_not(waits))
        happens = ops.where(ops.logical_or(at_once, crossed), 1.0, 0.0)
        something = _any(happens > 0.5)
        state = self.plant.layout.unpack(reached)
        noted = self.plant.layout.pack(state | {"switches": state["switches"] | {"before": there}})
        after = call_when(something, self._changed, (t, noted, request, happens), [noted])
        left = h * (1.0 - share)
        # an event at the very end is followed by a look at what it set off
        more = ops.where(ops.logical_or(left > 0.0, something), 1.0, 0.0)
        return ops.concatenate([ops.array([t, left]), after]), more

    def _narrow(self, bracket: Any, t: Any, h: Any, x: Any, request: Any, crossing: Any) -> tuple[Any, Any]:
        """One step of regula falsi (Illinois), halving every other time: [low, high, f(low), f(high), side, turn]."""
        low, high, below, above, side, turn = bracket
        slope = above - below
        guess = ops.where(slope > 0.0, low - below * (high - low) / ops.where(slope > 0.0, slope, 1.0), low)
        inside = ops.logical_and(guess > low, guess < high)
        middle = ops.where(ops.logical_and(inside, turn > 0.5), guess, 0.5 * (low + high))
        value = _highest(crossing, self._values(t + middle * h, self._taken(t, x, request, middle * h), request)[0])
        right = value >= 0.0
        weight_low = ops.where(ops.logical_and(right, side > 0.5), 0.5, 1.0)
        weight_high = ops.where(ops.logical_and(ops.logical_not(right), side < -0.5), 0.5, 1.0)
        narrowed = ops.array(
            [
                ops.where(right, low, middle),
                ops.where(right, middle, high),
                ops.where(right, below * weight_low, value),
                ops.where(right, value, above * weight_high),
                ops.where(right, 1.0, -1.0),
                1.0 - turn,
            ]
        )
        return narrowed, ops.where(narrowed[1] - narrowed[0] > TOLERANCE, 1.0, 0.0)

    # --- what an event does ---

    @cached_property
    def _changed(self) -> Any:
        shapes = [(), (self._size,), (self.plant.model.nv,), (len(self.plant.switches.triggers),)]
        return self._part(self._happen, shapes, "event")

    def _happen(self, t: Any, x: Any, request: Any, happens: Any) -> Any:
        """The flat state after the triggers that fire: switches changed, momentum exchanged, losses noted."""
        plant, switches = self.plant, self.plant.switches
        seen, happens, x = self._seen(t, x, request), happens > 0.5, plant.layout.unpack(x)
        s = x["switches"]
        rebound, arrested, owners = np.zeros(switches.nv), np.zeros(switches.nv), np.zeros(switches.nv)
        n, stopping = len(switches.reported), []
        for k, trigger in enumerate(switches.triggers):
            change = trigger.effect(s, seen)
            s = {name: ops.where(happens[k], change.state[name], s[name]) for name in s}
            places = list(change.rebound)
            fired = [ops.where(happens[k], 1.0, arrested[dof]) for dof in places]
            kept = [ops.where(happens[k], change.rebound[dof], rebound[dof]) for dof in places]
            rebound, arrested = ops.with_elements(rebound, places, kept), ops.with_elements(arrested, places, fired)
            if k < n:
                owned = [owners[dof] + ops.where(happens[k], 1.0, 0.0) for dof in places]
                owners = ops.with_elements(owners, places, owned)
                stopping.append(places)
        after, losses = self._struck(t, x | {"switches": s}, arrested, rebound)
        shares = losses / ops.maximum(owners, 1.0)
        fired = ops.where(happens[:n], 1.0, 0.0)
        s = after["switches"]
        noted = {
            "count": s["count"] + fired,
            "last": ops.where(happens[:n], t, s["last"]),
            "lost": s["lost"] + fired * ops.array([ops.total(shares[dof] for dof in places) for places in stopping]),
            "fired": s["fired"] + ops.where(happens, 1.0, 0.0),
        }
        return plant.layout.pack(after | {"switches": s | noted})

    @cached_property
    def _impulse(self) -> Any:
        """(changes of velocity (nv,), impulses of the held dofs (nv,), energy [J] that constraints take)."""
        nv = self.plant.model.nv
        return self._part(self._exchanged, [(), (self._size,), (nv,), (nv,)], "impulse")

    def _exchanged(self, t: Any, x: Any, jump: Any, held: Any) -> tuple[Any, Any, Any]:
        state, equations = self.plant.layout.unpack(x), self.plant.model.equations
        q, v, _ = self.plant.motion(t, state)
        _, rate = equations.constraint_violation(q, v, t)
        found = equations.impulse(q, rate, jump, held > 0.5, t, self.plant.active(state))
        return found.acceleration, found.effort, ops.array([-0.5 * (found.multipliers @ rate)])

    def _struck(self, t: Any, x: State, arrested: Any, rebound: Any) -> tuple[State, Any]:
        """(state, energy [J] lost at every dof (nv,)): arrested dofs keep −rebound of their velocity, everything else
        follows by momentum; latches hold, touched stops push, and brakes give way.

        An impulse does the work impulse · (v⁻ + v⁺)/2; what is missing from the kinetic energy beyond the loss is
        work of the motions that are given.
        """
        plant, switches, s, flat = self.plant, self.plant.switches, x["switches"], self.plant.layout.pack(x)
        q, v, _ = plant.motion(t, x)
        stopping = ops.maximum(arrested, ops.where(plant.given, 1.0, 0.0))
        jump, touched = ops.where(plant.given, 0.0, -(1.0 + rebound) * v), s["stopped"]
        for _ in range(min(LETTING_GO, len(switches.stops))):
            _, impulse, _ = self._impulse(t, flat, jump, ops.maximum(stopping, switches.blocked(s, touched)))
            # of dofs that are held in any case it is not the stop that pulls
            firm = ops.maximum(stopping, s["latched"]) > 0.5
            touched = switches.pushing(touched, ops.where(firm, 0.0, impulse))
        change, impulse, tied = self._impulse(t, flat, jump, ops.maximum(stopping, switches.blocked(s, touched)))
        s = switches.struck(s, touched, v + change)
        standing = ops.logical_and(~plant.given, switches.held(s) > 0.5)
        after = ops.where(standing, 0.0, v + change)
        losses = ops.where(plant.given, 0.0, -0.5 * impulse * (v + after))
        loss = ops.total(losses) + tied[0]
        energy = {"work": x["energy"]["work"], "loss": x["energy"]["loss"] + loss}
        if plant.given.any() or plant.model.equations.timed:
            before, then = (plant.model.equations.kinetic_energy(q, speed, t) for speed in (v, after))
            energy["work"] = energy["work"] + (then - before + loss)
        return plant.moved(x | {"switches": s, "energy": energy}, q, after), losses


def _repeated(fn: Callable[..., Any], shapes: list[tuple[int, ...]], name: str, most: int, compiled: bool) -> Any:
    if compiled:
        return WhileLoop(Routine(fn, shapes, name), most)

    def loop(x: Any, *others: Any) -> Any:
        count, more = 0, True
        while more and count < most:
            x, more = fn(x, *others)
            count += 1
        return x, count, more

    return loop


def _all(*conditions: Any) -> Any:
    result = conditions[0]
    for condition in conditions[1:]:
        result = ops.logical_and(result, condition)
    return result


def _any(conditions: Any) -> Any:
    """Whether one of them holds."""
    return ops.total(ops.where(c, 1.0, 0.0) for c in conditions) > 0.5


def _highest(crossing: Any, values: Any) -> Any:
    """The largest value among the triggers that cross."""
    highest: Any = -1e300
    for chosen, value in zip(crossing, values, strict=True):
        highest = ops.maximum(highest, ops.where(chosen > 0.5, value, -1e300))
    return highest
