"""A step of the plant in time, with the breaks of given functions of time and the events that occur within it.

Without either it is what `Integration` does. At a break the step ends, given velocities may jump, and the remainder is
computed in the same way. When an indicator crosses zero, the instant is located by bracketing and
the step ends there; modes change, arrested dofs and constraints exchange impulses, and the remainder of the step is
computed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine, call_when
from cosim.core.compile.while_loop import repeated_while
from cosim.core.types import Numeric, State, TripLimit
from cosim.simulation.plant.contact_limits import is_beyond, stopping
from cosim.simulation.plant.contact_modes import ACCELERATIONS, DIRECTION, GAP, LAW, RATES, RESTITUTION
from cosim.simulation.plant.contact_state import MOST_UNSOLVED
from cosim.simulation.plant.impacts import Impacts
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.recorded_signals import recorded_of

TIME_TOLERANCE = 1e-10  # of the time of an event, as a fraction of the step
MAX_SEARCH = 80  # evaluations to locate an event
MOST_UNROLLED = 4  # breaks of given functions of time in a step; beyond, the pieces are a loop, without derivatives
MAX_EVENTS = 50  # in one step; beyond, events are taken to trigger each other without end
LEAST_INDICATOR = 1e-300  # above 0: the least value of an indicator after its event

OF_POINTS = GAP, RATES, ACCELERATIONS, LAW, RESTITUTION  # inputs of events

MAX_VIOLATION = 1e-2  # of a constraint, m, rad, m/s or rad/s

Step = Callable[[Numeric, Numeric, Numeric, Numeric], Numeric]  # (t, x, request, h) -> x at t + h
Kernel = Callable[..., Numeric]  # a Routine or loop of one, or the Python function itself


class PlantFault(IntEnum):
    """Why the plant cannot continue from a state; higher values take precedence."""

    CONSTRAINT_VIOLATED = 1
    ENDLESS_EVENTS = 2
    NO_STEP = 3  # no step keeps the tolerance
    TRIPPED = 4  # a `TripLimit` of an actuator
    CONTACT_LIMIT = 5  # a contact is beyond a limit
    CONTACTS_UNSOLVED = 6  # the solver of the contacts left a residual for too many steps


def is_tripped(limit: TripLimit, x: State) -> Numeric:
    """x: state of the actuator."""
    value = limit.factor * x[limit.state]
    return ops.logical_or(value < limit.lowest, value > limit.largest)


@dataclass
class EventStepper:
    """The step of a plant whose modes change at events.

    step: without events, on the flat state of the plant; length: of a step [s]; compiled: whether the parts are
    compiled as routines; first_code: added to a `PlantFault`, to take precedence over lower fault codes.
    """

    plant: Plant
    step: Step
    length: float
    compiled: bool = True
    first_code: int = 0

    def advance(self, t: Numeric, x: Numeric, request: Numeric) -> Numeric:
        """The flat state one step later."""
        if self.plant.modes.indicators:
            state = self.plant.layout.unpack(x)
            fired = ops.where(state["modes"]["endless"] < 0.0, 0.0, state["modes"]["fired"])
            x = self.plant.layout.pack(state | {"modes": state["modes"] | {"fired": fired}})
        return self._over_pieces(t, x, request) if self.plant.breaks else self._smooth(t, x, request, self.length)

    def _smooth(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
        """The flat state at t + h, where no given function of time has a break in between."""
        if not self.plant.modes.indicators:
            return self.step(t, x, request, h)
        sound = self.plant.layout.unpack(x)["modes"]["endless"] < 0.0
        end, _, more = self._segment_loop(ops.concatenate([ops.array([t, h]), x]), request)
        plant = self.plant.layout.unpack(end[2:])
        endless = ops.where(ops.logical_and(sound, more > 0.5), end[0], plant["modes"]["endless"])
        return self.plant.layout.pack(plant | {"modes": plant["modes"] | {"endless": endless}})

    # --- smooth pieces of given functions of time ---

    def _over_pieces(self, t: Numeric, x: Numeric, request: Numeric) -> Numeric:
        """The flat state one step later, piece by piece."""
        clock, most = ops.concatenate([ops.array([t, self.length]), x]), self.plant.breaks.most_within(self.length)
        if most > MOST_UNROLLED:
            clock, _, _ = repeated_while(self._run_piece, self._clock_shapes, "piece", 1 + most, self.compiled)(
                clock, request
            )
            return clock[2:]
        clock, more = self._piece_routine(clock, request)
        for _ in range(most):
            clock, more = call_when(more > 0.5, self._piece_routine, (clock, request), [clock, more])
        return clock[2:]

    def _run_piece(self, clock: Numeric, request: Numeric) -> tuple[Numeric, Numeric]:
        """From the start of the remaining step to its end, or past the first break in it.

        clock (2 + nx,): time [s], remaining time [s], flat state. Returns the next one, and 1 while more remains."""
        t, left, x = clock[0], clock[1], clock[2:]
        piece = self.plant.breaks.piece(t)
        skipped = ops.maximum(piece.begin - t, 0.0)
        t, left = t + skipped, left - skipped
        breaks = piece.end <= t + left
        x = self._smooth(t, x, request, ops.where(breaks, piece.end - t, left))
        if self.plant.breaks.has_jumps:
            jumps = ops.logical_and(breaks, piece.jumps > 0.5)
            x = call_when(jumps, self.impacts.jump_routine, (piece.end, piece.next_begin, x), [x])
        left = ops.where(breaks, ops.maximum(t + left - piece.next_begin, 0.0), 0.0)
        # a break at the very end may trigger events
        more = breaks if self.plant.modes.indicators else left > 0.0
        return ops.concatenate([ops.array([piece.next_begin, left]), x]), ops.where(more, 1.0, 0.0)

    def fault(self, t: Numeric, x: Numeric) -> Numeric:
        """The code of the fault of a flat state, 0 for none."""
        violated, endless, no_step, tripped, beyond, unsolved = (float(self.first_code + kind) for kind in PlantFault)
        state = self.plant.layout.unpack(x)
        code = ops.array([0.0])[0]
        if self.plant.model.constraint_rows:
            worst = ops.array([0.0])[0]
            for violation in self.constraint_violations(t, state):
                worst = ops.maximum(worst, violation)
            code = ops.where(worst > MAX_VIOLATION, violated, code)
        if self.plant.modes:
            code = ops.where(state["modes"]["endless"] < 0.0, code, endless)
        control = self.plant.control
        if control and control.adaptive:
            code = ops.where(state["steps"]["refused"] < 0.0, code, no_step)
        for name, limit in self.plant.trips:
            code = ops.where(is_tripped(limit, state["actuators"][name]), tripped, code)
        if self.plant.contacts:
            if stopping(self.plant.contacts.contacts):
                code = ops.where(is_beyond(self.plant, t, state), beyond, code)
            code = ops.where(state["contacts"]["unsolved"] >= MOST_UNSOLVED, unsolved, code)
        return code

    def constraint_violations(self, t: Numeric, x: State) -> list[Numeric]:
        """The violation of each constraint row, 0 for released constraints: |residual| [m or rad] of holonomic rows,
        beyond what axes that are off may leave (`alignment`), |rate| [m/s or rad/s] of others."""
        equations, constraints = self.plant.model.equations, self.plant.model.equations.constraints
        q, v, _ = self.plant.motion(t, x)
        residual, rate = equations.constraint_violation(q, v, t)
        residuals, active = iter(residual), self.plant.active(x)
        violations = [
            ops.abs(next(residuals) if holonomic else rate[r]) for r, holonomic in enumerate(constraints.holonomic)
        ]
        for r, allowed in constraints.inexact.items():
            violations[r] = ops.maximum(violations[r] - allowed, 0.0)
        if active is None:
            return violations
        return [
            ops.where(active[k] > 0.5, violation, 0.0)
            for violation, k in zip(violations, constraints.owners, strict=True)
        ]

    # --- routines ---

    @property
    def _size(self) -> int:
        return self.plant.layout.size

    def _routine(self, fn: Callable[..., Numeric], shapes: list[tuple[int, ...]], name: str) -> Kernel:
        return Routine(fn, shapes, name) if self.compiled else fn

    @property
    def _clock_shapes(self) -> list[tuple[int, ...]]:
        """Of time [s], remaining time [s] and flat state together, and of the request."""
        return [(2 + self._size,), (self.plant.model.nv,)]

    @cached_property
    def impacts(self) -> Impacts:
        return Impacts(self.plant, self.length, self.compiled)

    @cached_property
    def _piece_routine(self) -> Kernel:
        return self._routine(self._run_piece, self._clock_shapes, "piece")

    @cached_property
    def _step_routine(self) -> Kernel:
        return self._routine(self.step, [(), (self._size,), (self.plant.model.nv,), ()], "step")

    @cached_property
    def _indicator_routine(self) -> Kernel:
        """(values of all indicators, which of them fire as long as a condition holds, which are enabled)."""
        return self._routine(self._evaluate_indicators, [(), (self._size,), (self.plant.model.nv,)], "indicators")

    @cached_property
    def _segment_loop(self) -> Kernel:
        return repeated_while(self._run_segment, self._clock_shapes, "segment", MAX_EVENTS, self.compiled)

    @cached_property
    def _search_loop(self) -> Kernel:
        shapes = [(6,), (), (), (self._size,), (self.plant.model.nv,), (len(self.plant.modes.indicators),)]
        return repeated_while(self._narrow_bracket, shapes, "search", MAX_SEARCH, self.compiled)

    # --- indicators and their roots ---

    def _event_inputs(self, t: Numeric, x: Numeric, request: Numeric) -> dict[str, Numeric]:
        state = self.plant.layout.unpack(x)
        solution = self.plant.efforts(t, state, request)
        model = self.plant.model
        inputs = {
            "t": t,
            "step": self.length,
            "position": model.equations.chart(solution["q"]),
            "velocity": solution["v"],
        }
        inputs |= {"acceleration": solution["a"], "locking_effort": solution["locking_effort"]}
        inputs |= self._brake_inputs(t, state["modes"], solution) if self.plant.modes.brakes else {}
        if self.plant.exact:
            inputs |= {name: solution[name] for name in OF_POINTS} | {DIRECTION: state["modes"][DIRECTION]}
        if self.plant.modes.signals:
            signals = recorded_of(self.plant, t, state, request).values
            inputs |= {name: signals[name] for name in self.plant.modes.signals}
        return inputs

    def _brake_inputs(self, t: Numeric, s: State, solution: dict[str, Numeric]) -> dict[str, Numeric]:
        modes = self.plant.modes
        inputs = {"slide": s["slide"], "static_effort": solution["static_effort"]}
        return inputs | {"held": modes.rigidly_locked(s, s["stopped"])} | modes.brakes.elapsed(t, s)

    def _evaluate_indicators(self, t: Numeric, x: Numeric, request: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        inputs, s = self._event_inputs(t, x, request), self.plant.layout.unpack(x)["modes"]
        indicators = self.plant.modes.indicators
        values = ops.array([indicator.value(inputs) for indicator in indicators])
        persistent = [0.0 if p is None else ops.where(p(inputs), 1.0, 0.0) for p in (i.fires_while for i in indicators)]
        enabled = [ops.where(indicator.enabled(s, inputs), 1.0, 0.0) for indicator in indicators]
        return values, ops.array(persistent), ops.array(enabled)

    def _run_segment(self, clock: Numeric, request: Numeric) -> tuple[Numeric, Numeric]:
        """From the start of the remaining step to its end, or to the first event in it, which is then applied.

        clock (2 + nx,): time [s], remaining time [s], flat state. Returns the next one, and 1 while more remains."""
        t, h, x = clock[0], clock[1], clock[2:]
        before = self.plant.layout.unpack(x)["modes"]["before"]
        at_start, persistent, enabled = self._indicator_routine(t, x, request)
        on = enabled > 0.5
        end = self._step_routine(t, x, request, h)
        at_end, _, _ = self._indicator_routine(t + h, end, request)
        immediate = _all(on, at_start >= 0.0, ops.logical_or(before < 0.0, persistent > 0.5))
        crosses = _all(on, at_start < 0.0, at_end >= 0.0)
        if n := len(self.plant.modes.events):
            # an event of the rig acts above 0: a value that rests at 0, such as a velocity, acts when it rises
            rises = ops.logical_and(at_start[:n] == 0.0, at_end[:n] > 0.0)
            acts = _all(on[:n], before[:n] <= 0.0, ops.logical_or(at_start[:n] > 0.0, rises))
            immediate = ops.concatenate([acts, immediate[n:]])
            crosses = ops.concatenate([_all(crosses[:n], at_end[:n] > 0.0), crosses[n:]])
        crossing = ops.where(crosses, 1.0, 0.0)
        fires_now = _any(immediate)
        bracket = ops.array([0.0, 1.0, _highest(crossing, at_start), _highest(crossing, at_end), 0.0, 1.0])
        cut = ops.logical_and(_any(crosses), ops.logical_not(fires_now))
        uncut = [ops.array([0.0, 1.0, *bracket[2:]]), 1.0, 0.0]
        found, _, _ = call_when(cut, self._search_loop, (bracket, t, h, x, request, crossing), uncut)
        fraction = ops.where(fires_now, 0.0, found[1])
        reached = call_when(cut, self._step_routine, (t, x, request, fraction * h), [ops.where(fires_now, x, end)])
        t = t + fraction * h
        at_event, _, _ = call_when(
            cut,
            self._indicator_routine,
            (t, reached, request),
            [ops.where(fires_now, at_start, at_end), persistent, enabled],
        )
        crossed = _all(crossing > 0.5, at_event >= 0.0, ops.logical_not(fires_now))
        fires = ops.where(ops.logical_or(immediate, crossed), 1.0, 0.0)
        any_fires = _any(fires > 0.5)
        state = self.plant.layout.unpack(reached)
        recorded = at_event
        if n:  # a value that stays at 0 has acted or not
            kept = ops.where(at_event[:n] == 0.0, before[:n], at_event[:n])
            acted = ops.where(fires[:n] > 0.5, ops.maximum(at_event[:n], LEAST_INDICATOR), kept)
            recorded = ops.concatenate([acted, at_event[n:]])
        recorded = self.plant.layout.pack(state | {"modes": state["modes"] | {"before": recorded}})
        after = call_when(any_fires, self._event_routine, (t, recorded, request, fires), [recorded])
        remaining = h * (1.0 - fraction)
        # an event at the very end may trigger others
        more = ops.where(ops.logical_or(remaining > 0.0, any_fires), 1.0, 0.0)
        return ops.concatenate([ops.array([t, remaining]), after]), more

    def _narrow_bracket(
        self, bracket: Numeric, t: Numeric, h: Numeric, x: Numeric, request: Numeric, crossing: Numeric
    ) -> tuple[Numeric, Numeric]:
        """One step of regula falsi (Illinois), alternating with bisection: (next bracket, 1 while it is too wide).

        bracket: [low, high, f(low), f(high), side, turn], low and high as fractions of the step h."""
        low, high, below, above, side, turn = bracket
        slope = above - below
        guess = ops.where(slope > 0.0, low - below * (high - low) / ops.where(slope > 0.0, slope, 1.0), low)
        inside = ops.logical_and(guess > low, guess < high)
        middle = ops.where(ops.logical_and(inside, turn > 0.5), guess, 0.5 * (low + high))
        value = _highest(
            crossing, self._indicator_routine(t + middle * h, self._step_routine(t, x, request, middle * h), request)[0]
        )
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
        return narrowed, ops.where(narrowed[1] - narrowed[0] > TIME_TOLERANCE, 1.0, 0.0)

    # --- effects of events ---

    @cached_property
    def _event_routine(self) -> Kernel:
        shapes = [(), (self._size,), (self.plant.model.nv,), (len(self.plant.modes.indicators),)]
        return self._routine(self._apply_events, shapes, "event")

    def _apply_events(self, t: Numeric, x: Numeric, request: Numeric, fires: Numeric) -> Numeric:
        """The flat state after the effects of the indicators that fire (n,): modes, velocities, energies, counters."""
        plant, modes = self.plant, self.plant.modes
        inputs, x = self._event_inputs(t, x, request), plant.layout.unpack(x)
        s = x["modes"]
        fires = modes.together(s, inputs, fires) > 0.5
        if modes.brakes:
            of_brakes = fires[len(modes.indicators) - len(modes.brakes.indicators) :]
            trial = plant.efforts(t, x | {"modes": modes.brakes.trial(s, of_brakes)}, request)
            inputs |= {"trial_acceleration": trial["a"], "trial_effort": trial["locking_effort"]}
        before, none = s, np.zeros(modes.nv + len(modes.points))
        rebound, arrested, owners = none, none, none
        n, stopping = len(modes.event_names), []
        for k, indicator in enumerate(modes.indicators):
            change = indicator.effect(s, inputs)
            changed = {name: value for name, value in change.state.items() if value is not s[name]}
            s = s | {name: ops.where(fires[k], value, s[name]) for name, value in changed.items()}
            dofs = list(change.rebound)
            fired = [ops.where(fires[k], 1.0, arrested[dof]) for dof in dofs]
            kept = [ops.where(fires[k], change.rebound[dof], rebound[dof]) for dof in dofs]
            rebound, arrested = ops.set_at(rebound, dofs, kept), ops.set_at(arrested, dofs, fired)
            if k < n:
                owned = [owners[dof] + ops.where(fires[k], 1.0, 0.0) for dof in dofs]
                owners = ops.set_at(owners, dofs, owned)
                stopping.append(dofs)
        after, losses = self.impacts.arrested(t, x | {"modes": s}, arrested, rebound)
        if plant.exact:
            after = plant.exact_contacts.after_event(t, before, arrested[modes.nv :], after)
        losses_by_dof = losses / ops.maximum(owners, 1.0)
        fired = ops.where(fires[:n], 1.0, 0.0)
        s = after["modes"]
        recorded = {
            "count": s["count"] + fired,
            "last": ops.where(fires[:n], t, s["last"]),
            "lost": s["lost"] + fired * ops.array([ops.sum(losses_by_dof[dof] for dof in dofs) for dofs in stopping]),
            "fired": s["fired"] + ops.where(fires, 1.0, 0.0),
        }
        return plant.layout.pack(after | {"modes": s | recorded})


def _all(*conditions: Numeric) -> Numeric:
    result = conditions[0]
    for condition in conditions[1:]:
        result = ops.logical_and(result, condition)
    return result


def _any(conditions: Numeric) -> Numeric:
    """Whether one of the conditions holds."""
    return ops.sum(ops.where(c, 1.0, 0.0) for c in conditions) > 0.5


def _highest(crossing: Numeric, values: Numeric) -> Numeric:
    """The largest value of the indicators that cross zero."""
    highest: Numeric = -1e300
    for chosen, value in zip(crossing, values, strict=True):
        highest = ops.maximum(highest, ops.where(chosen > 0.5, value, -1e300))
    return highest
