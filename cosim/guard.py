"""The last check between controllers and drives: limits and finiteness. Pure, small, on every tick.

Position, velocity or a value that is not finite: a verdict that stops the run. Effort beyond its limit is
cut down to it. The same function runs in machine code and in the Python loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cosim import ops
from cosim.types import Limits, requested_effort

FINE, POSITION, VELOCITY, NOT_FINITE = range(4)

LARGEST = 1.7976931348623157e308  # the largest finite double


def is_finite(x: Any) -> Any:
    """Whether each element is a number and not infinite."""
    return ops.absolute(x) <= LARGEST


def check(limits: Limits, state: Mapping[str, Any], command: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """(command, verdicts): the command with its effort cut so that what the drive is asked for stays
    within the limit, and (n,) verdicts, FINE or the reason to stop.

    state: position, velocity, effort (n,) as measured; command: fields of JointCommand, (n,) each.
    """
    asked = requested_effort(command, state)
    allowed = ops.clip(asked, -limits.effort, limits.effort)
    # the cut is exactly 0 for a command within the limit, so such commands pass unchanged
    safe = {**command, "effort": command["effort"] + (allowed - asked)}
    position, velocity = state["position"], state["velocity"]
    outside = ops.logical_or(position < limits.lower, position > limits.upper)
    finite = ops.logical_and(is_finite(asked), ops.logical_and(is_finite(position), is_finite(velocity)))
    verdict = ops.where(ops.absolute(velocity) > limits.velocity, float(VELOCITY), float(FINE))
    verdict = ops.where(outside, float(POSITION), verdict)
    return safe, ops.where(finite, verdict, float(NOT_FINITE))
