"""The last check between controllers and drives: limits, fresh feedback, finite values. Pure, small, on every tick.

What each limit checks and cuts is in the table `cosim.control.limits`; a limit warns, saturates or stops. All that
saturates ends in one cut of the `effort` of a command and one clamp of its position. The same function runs in machine
code and in the Python loop; limits and actions are constants of the trace, so that a limit without a bound costs
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cosim import ops
from cosim.control.limits import BITS, CODES, LIMIT_OF, LIMITS, NOT_FINITE, SATURATE, STALE, STOP, WARN, GuardInputs
from cosim.types import Array, Limits, requested_effort

LARGEST = 1.7976931348623157e308  # the largest finite double
# N*m or N; where efforts are cut, an effort of gains beyond this counts as not finite: its rounding would be felt
LARGEST_FEEDBACK_EFFORT = 1e12


@dataclass(frozen=True)
class Guard:
    """The limits of n joints and what exceeding them does.

    bounds: by rig key of the table, (n,) each, infinite where unbounded; actions: by key of the limit, (n,) each;
    stale: greatest age of feedback [s], (n,); soft_start: time [s] in which the effort limit ramps up from 0 after
    arming; step: of ticks [s].

    A temperature that saturates and a soft start need an effort limit that saturates.
    """

    bounds: Mapping[str, Array]
    actions: Mapping[str, Array]
    stale: Array
    soft_start: float
    step: float

    @property
    def limits(self) -> Limits:
        """The bounds that drivers and controllers know."""
        return Limits(*(self.bounds[key] for key in ("lower", "upper", "velocity", "effort")))

    def has_action(self, action: str, key: str) -> Array:
        """(n,) truth values: where this limit has a bound and this action."""
        bounded = np.any([np.isfinite(self.bounds[name]) for name in LIMIT_OF[key].bound_keys], axis=0)
        return bounded & (self.actions[key] == action)

    def raises_alarm(self, key: str) -> Array:
        """(n,) where exceeding this limit is reported and the run continues."""
        return self.has_action(WARN, key) | self.has_action(SATURATE, key)

    @property
    def bounds_effort(self) -> Array:
        """(n,) where a limit that saturates bounds the effort."""
        return np.any([self.has_action(SATURATE, row.key) for row in LIMITS if row.effort_bounds], axis=0)


def is_finite(x: Any) -> Any:
    """Whether each element is a number and not infinite."""
    return ops.absolute(x) <= LARGEST


def check(guard: Guard, feedback: Mapping[str, Any], command: Mapping[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """(command, verdicts, alarms): the command, cut so that the effort it requests of the drives stays within the
    limits that saturate; (n,) verdicts, OK or a fault code; (n,) masks of the limits that warned or saturated.

    feedback: (n,) each of position, velocity, temperature [degC], age [s] as measured, request: the effort requested
    of the drives so far, reference: positions that controllers follow; and armed (): time [s] since arming.
    command: fields of JointCommand, (n,) each. A command within all limits passes unchanged to the bit.
    """
    x = GuardInputs(
        bounds=guard.bounds,
        position=feedback["position"],
        velocity=feedback["velocity"],
        temperature=feedback["temperature"],
        reference=feedback["reference"],
        previous_effort=feedback["request"],
        step=guard.step,
    )
    position, clamped = _clamped_position(guard, x, command["position"])
    safe = {**command, "position": position}
    gain_effort = _gain_effort(feedback, safe)
    requested = gain_effort + command["effort"]
    x = replace(x, requested_effort=requested, effort_limit=_effort_limit(guard, x, feedback["armed"]))
    lowest, highest = _effort_bounds(guard, x)
    bounded, rated = guard.bounds_effort, guard.has_action(SATURATE, "rate")

    def within(effort: Any) -> Any:
        return ops.where(bounded, ops.clip(effort, lowest, highest), effort)

    # where a limit falls faster than the rate allows, the effort follows the limit: 0 is always within the bounds
    before, step = x.previous_effort, guard.bounds["rate"] * guard.step
    smooth = ops.clip(within(requested), within(before - step), within(before + step))
    allowed = ops.where(rated, smooth, within(requested))
    effort = ops.where(allowed == requested, command["effort"], allowed - gain_effort)
    x = replace(x, bounded_effort=within(requested), allowed_effort=allowed)
    verdict: Any = np.zeros(len(guard.stale))
    alarms: Any = np.zeros(len(guard.stale))
    for row in LIMITS:
        saturates = guard.has_action(SATURATE, row.key)
        exceeded = row.exceeded(x, saturates)
        if row.key in clamped:  # the commanded position of a drive without gains is without effect
            cut = ops.logical_and(clamped[row.key], command["kp"] != 0.0)
            exceeded = ops.where(saturates, ops.logical_or(exceeded, cut), exceeded)
        stops, warns = guard.has_action(STOP, row.key), guard.raises_alarm(row.key)
        verdict = ops.where(stops, ops.where(exceeded, float(CODES[row.key]), verdict), verdict)
        alarms = ops.where(warns, alarms + ops.where(exceeded, BITS[row.key], 0.0), alarms)
    # an age that is no number is stale
    fresh = ops.where(feedback["age"] <= guard.stale, verdict, float(STALE))
    verdict = ops.where(np.isfinite(guard.stale), fresh, verdict)
    verdict = ops.where(_is_sound(feedback, command, bounded | rated), verdict, float(NOT_FINITE))
    return {**safe, "effort": effort}, verdict, alarms


def _gain_effort(feedback: Mapping[str, Any], command: Mapping[str, Any]) -> Any:
    """The effort that the gains of a command request."""
    return requested_effort({**command, "effort": np.zeros(len(command["effort"]))}, feedback)


def _is_sound(feedback: Mapping[str, Any], command: Mapping[str, Any], cut: Array) -> Any:
    """Where the measurement and the command, as it came, are finite; cut: where efforts may be cut."""
    gain_effort = ops.absolute(_gain_effort(feedback, command)) <= np.where(cut, LARGEST_FEEDBACK_EFFORT, LARGEST)
    commanded = ops.logical_and(gain_effort, is_finite(command["effort"]))
    measured = ops.logical_and(is_finite(feedback["position"]), is_finite(feedback["velocity"]))
    return ops.logical_and(commanded, measured)


def _clamped_position(guard: Guard, x: GuardInputs, position: Any) -> tuple[Any, dict[str, Any]]:
    """(commanded position within the limits that saturate, where each of them moved it)."""
    clamped = {}
    for row in reversed(LIMITS):  # the last clamp is that of the joint's range
        if row.position_bounds is not None:
            before, bounds = position, row.position_bounds(x)
            position = ops.where(guard.has_action(SATURATE, row.key), ops.clip(before, *bounds), before)
            clamped[row.key] = position != before
    return position, clamped


def _effort_limit(guard: Guard, x: GuardInputs, armed: Any) -> Any:
    """The effort limit after soft start and derating."""
    limit: Any = guard.bounds["effort"]
    if guard.soft_start > 0.0:
        limit = limit * ops.clip(armed / guard.soft_start, 0.0, 1.0)
    for row in LIMITS:
        if row.derating is not None:
            limit = ops.where(guard.has_action(SATURATE, row.key), limit * row.derating(x), limit)
    return limit


def _effort_bounds(guard: Guard, x: GuardInputs) -> tuple[Any, Any]:
    """(lowest, highest) effort within the limits that saturate, ±LARGEST without one; 0 is always within them."""
    lowest: Any = np.full(len(guard.stale), -LARGEST)
    highest: Any = np.full(len(guard.stale), LARGEST)
    for row in LIMITS:
        if row.effort_bounds is not None:
            saturates, (low, high) = guard.has_action(SATURATE, row.key), row.effort_bounds(x, lowest, highest)
            lowest, highest = ops.where(saturates, low, lowest), ops.where(saturates, high, highest)
    return lowest, highest
