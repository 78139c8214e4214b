"""The last check between controllers and drives, on every tick: limits, age of feedback, finite values. Pure.

The table `cosim.control.limits` defines what each limit checks and saturates; a limit warns, saturates or stops. All
saturation is one cut of the `effort` of a command and one clamp of its position. The compiled and the Python engine run
the same function; limits and actions are constants of the trace, so that a limit without a bound costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cosim.control.limits import BITS, CODES, LIMITS, NOT_FINITE, SATURATE, STALE, STOP, WARN, GuardInputs, GuardLimit
from cosim.core import ops
from cosim.core.types import Array, Limits, Numeric, requested_effort

LARGEST_DOUBLE = 1.7976931348623157e308  # the largest finite double
# N*m or N; where efforts are cut, a larger effort of gains counts as not finite: its rounding error would be noticeable
LARGEST_FEEDBACK_EFFORT = 1e12


@dataclass(frozen=True)
class Guard:
    """The limits of n joints and their actions.

    bounds: by rig key of the table, (n,) each, infinite where unbounded; actions: by key of the limit, (n,) each;
    stale: (n,) greatest age of feedback [s]; soft_start: time after arming [s] in which the effort limit rises from 0;
    step: of ticks [s]; position_tolerance: (n,) by which a measured position may be beyond its limits [rad or m].

    A temperature that saturates and a soft start need an effort limit that saturates.
    """

    bounds: Mapping[str, Array]
    actions: Mapping[str, Array]
    stale: Array
    soft_start: float
    step: float
    position_tolerance: Array

    @property
    def limits(self) -> Limits:
        """The bounds that drivers and controllers know."""
        return Limits(*(self.bounds[key] for key in ("lower", "upper", "velocity", "effort")))

    @cached_property
    def _where(self) -> Mapping[tuple[str, str], Array]:
        """(action, key of the limit) -> bool (n,): where it has a bound and this action."""
        bounded = {row.key: self._bounded([row]) for row in LIMITS}
        return {
            (action, key): where & (self.actions[key] == action)
            for key, where in bounded.items()
            for action in (WARN, SATURATE, STOP)
        }

    @cached_property
    def acting(self) -> tuple[GuardLimit, ...]:
        """The limits that have a bound at some joint; the others change nothing."""
        return tuple(row for row in LIMITS if self._bounded([row]).any())

    def has_action(self, action: str, key: str) -> Array:
        """bool (n,): where this limit has a bound and this action."""
        return self._where[action, key]

    def raises_alarm(self, key: str) -> Array:
        """bool (n,): where exceeding this limit is reported and the run continues."""
        return self.has_action(WARN, key) | self.has_action(SATURATE, key)

    @cached_property
    def bounds_effort(self) -> Array:
        """bool (n,): where a limit that saturates bounds the effort."""
        return np.any([self.has_action(SATURATE, row.key) for row in LIMITS if row.effort_bounds], axis=0)

    @cached_property
    def cuts_effort(self) -> Array:
        """bool (n,): where a limit that saturates bounds the effort or its rate."""
        rows = [row for row in LIMITS if row.effort_bounds or row.slew_bounds]
        return np.any([self.has_action(SATURATE, row.key) for row in rows], axis=0)

    @property
    def needs_reaction(self) -> Array:
        """bool (n,): where a limit with a bound checks what the joint transmits."""
        return self._bounded([row for row in LIMITS if row.needs_reaction])

    @property
    def uses_reference(self) -> Array:
        """bool (n,): where a limit with a bound checks the reference position of a controller."""
        return self._bounded([row for row in LIMITS if row.reference])

    @property
    def needs_history(self) -> Array:
        """bool (n,): where a limit with a bound checks what `standstill` follows from tick to tick."""
        return self._bounded([row for row in LIMITS if row.needs_history])

    def _bounded(self, rows: Sequence[GuardLimit]) -> Array:
        """bool (n,): where one of these limits has a bound."""
        return np.any([np.isfinite(self.bounds[name]) for row in rows for name in row.bound_keys], axis=0)


def is_finite(x: Numeric) -> Numeric:
    """Whether each element is a number and not infinite."""
    return ops.abs(x) <= LARGEST_DOUBLE


def check(
    guard: Guard, feedback: Mapping[str, Numeric], command: Mapping[str, Numeric]
) -> tuple[dict[str, Numeric], Numeric, Numeric]:
    """(command, fault codes (n,), alarms (n,)): the command, cut so that its requested effort stays within the limits
    that saturate; OK or a fault code; masks of the limits that warned or saturated.

    feedback: (n,) each: position, velocity, temperature [degC], age [s] as measured; request, the effort requested in
    the previous tick; reference, positions that controllers follow; stalled_time, unseen_motion of `standstill`;
    residual_energy, load_residual_energy, wall_energy [J], shadow_… and unit_disagreement of real joints;
    judged_velocity, which limits check instead of the measured one; reaction_force [N], reaction_moment [N m]; armed
    (): time since arming [s]; and, in rigs with real joints, new: whether a new sample came.
    command: fields of JointCommand, (n,) each. A command within all limits passes bit for bit.
    """
    x = GuardInputs(
        bounds=guard.bounds,
        position=feedback["position"],
        velocity=feedback["judged_velocity"],
        temperature=feedback["temperature"],
        reference=feedback["reference"],
        stalled_time=feedback["stalled_time"],
        unseen_motion=feedback["unseen_motion"],
        residual_energy=feedback["residual_energy"],
        load_residual_energy=feedback["load_residual_energy"],
        wall_energy=feedback["wall_energy"],
        shadow_effort=feedback["shadow_effort"],
        shadow_drive=feedback["shadow_drive"],
        shadow_position=feedback["shadow_position"],
        shadow_slip=feedback["shadow_slip"],
        unit_disagreement=feedback["unit_disagreement"],
        reaction_force=feedback["reaction_force"],
        reaction_moment=feedback["reaction_moment"],
        previous_effort=feedback["request"],
        step=guard.step,
        position_tolerance=guard.position_tolerance,
        new=feedback.get("new"),
    )
    position, clamped = _clamped_position(guard, x, command["position"])
    safe = {**command, "position": position}
    gain_effort = _gain_effort(feedback, safe)
    requested = gain_effort + command["effort"]
    x = replace(x, requested_effort=requested, effort_limit=_effort_limit(guard, x, feedback["armed"]))
    lowest, highest = _effort_bounds(guard, x)
    bounded = guard.bounds_effort

    def within(effort: Numeric) -> Numeric:
        return ops.where(bounded, ops.clip(effort, lowest, highest), effort)

    allowed = within(requested)
    for row in guard.acting:
        if row.slew_bounds is not None:
            # where a bound falls faster than the rate allows, the effort follows the bound
            low, high = row.slew_bounds(x)
            limited = ops.clip(allowed, within(low), within(high))
            allowed = ops.where(guard.has_action(SATURATE, row.key), limited, allowed)
    effort = ops.where(allowed == requested, command["effort"], allowed - gain_effort)
    x = replace(x, bounded_effort=within(requested), allowed_effort=allowed)
    fault_codes: Numeric = np.zeros(len(guard.stale))
    alarms: Numeric = np.zeros(len(guard.stale))
    for row in guard.acting:
        saturates = guard.has_action(SATURATE, row.key)
        exceeded = row.exceeded(x, saturates)
        if row.key in clamped:  # the commanded position of a drive without gains is without effect
            cut = ops.logical_and(clamped[row.key], command["kp"] != 0.0)
            exceeded = ops.where(saturates, ops.logical_or(exceeded, cut), exceeded)
        stops, warns = guard.has_action(STOP, row.key), guard.raises_alarm(row.key)
        fault_codes = ops.where(stops, ops.where(exceeded, float(CODES[row.key]), fault_codes), fault_codes)
        alarms = ops.where(warns, alarms + ops.where(exceeded, BITS[row.key], 0.0), alarms)
    # an age of NaN is stale
    fresh = ops.where(feedback["age"] <= guard.stale, fault_codes, float(STALE))
    fault_codes = ops.where(np.isfinite(guard.stale), fresh, fault_codes)
    sound = _is_sound(feedback, command, guard.cuts_effort)
    fault_codes = ops.where(sound, fault_codes, float(NOT_FINITE))
    # what is not finite ends the tick here: it is recorded as it was commanded, not as a limit would have cut it
    checked = {"position": position, "effort": effort}
    return {**command, **{k: ops.where(sound, checked[k], command[k]) for k in checked}}, fault_codes, alarms


def _gain_effort(feedback: Mapping[str, Numeric], command: Mapping[str, Numeric]) -> Numeric:
    """The effort that the gains of a command request."""
    return requested_effort({**command, "effort": np.zeros(len(command["effort"]))}, feedback)


def _is_sound(feedback: Mapping[str, Numeric], command: Mapping[str, Numeric], cut: Array) -> Numeric:
    """Where the measurement and the unchanged command are finite; cut: where efforts may be cut."""
    gain_effort = ops.abs(_gain_effort(feedback, command)) <= np.where(cut, LARGEST_FEEDBACK_EFFORT, LARGEST_DOUBLE)
    commanded = ops.logical_and(gain_effort, is_finite(command["effort"]))
    measured = ops.logical_and(is_finite(feedback["position"]), is_finite(feedback["velocity"]))
    return ops.logical_and(commanded, measured)


def _clamped_position(guard: Guard, x: GuardInputs, position: Numeric) -> tuple[Numeric, dict[str, Numeric]]:
    """(commanded position within the limits that saturate, by limit key where it was clamped)."""
    clamped = {}
    for row in reversed(guard.acting):  # the joint's range clamps last
        if row.position_bounds is not None:
            before, bounds = position, row.position_bounds(x)
            position = ops.where(guard.has_action(SATURATE, row.key), ops.clip(before, *bounds), before)
            clamped[row.key] = position != before
    return position, clamped


def _effort_limit(guard: Guard, x: GuardInputs, armed: Numeric) -> Numeric:
    """The effort limit after soft start and derating."""
    limit: Numeric = guard.bounds["effort"]
    if guard.soft_start > 0.0:
        limit = limit * ops.clip(armed / guard.soft_start, 0.0, 1.0)
    for row in guard.acting:
        if row.derating is not None:
            limit = ops.where(guard.has_action(SATURATE, row.key), limit * row.derating(x), limit)
    return limit


def _effort_bounds(guard: Guard, x: GuardInputs) -> tuple[Numeric, Numeric]:
    """(lowest, highest) effort of the limits that saturate, ±LARGEST_DOUBLE without one; 0 is always between them."""
    lowest: Numeric = np.full(len(guard.stale), -LARGEST_DOUBLE)
    highest: Numeric = np.full(len(guard.stale), LARGEST_DOUBLE)
    for row in guard.acting:
        if row.effort_bounds is not None:
            saturates, (low, high) = guard.has_action(SATURATE, row.key), row.effort_bounds(x, lowest, highest)
            lowest, highest = ops.where(saturates, low, lowest), ops.where(saturates, high, highest)
    return lowest, highest
