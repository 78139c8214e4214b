"""Why the guard stopped joints that are commissioned: one sentence with the fix, by the table of limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from cosim.control.guard import Guard
from cosim.control.limits import CODES, LIMIT_OF, NOT_FINITE, STALE
from cosim.core.types import Array, Numeric, requested_effort
from cosim.core.units import JOINT_DIMENSIONS

KEYS = {code: key for key, code in CODES.items()}


class GuardedJoints(Protocol):
    """n joints with their guard. units: of their positions; age: of their samples [s]; period: of commands [s]."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    guard: Guard
    age: Array

    @property
    def period(self) -> float: ...


def fault_reason(
    live: GuardedJoints,
    faults: Array,
    feedback: Mapping[str, Numeric],
    safe: Mapping[str, Numeric],
    wanted: Mapping[str, Numeric],
) -> str:
    """The reason for the fault code that comes last in the order of precedence. feedback: of the guard; safe, wanted:
    the command that it allows, and the one that it was given."""
    k = int(np.argmax(faults))
    code, name = int(faults[k]), live.names[k]
    if code == STALE:
        age, limit = 1e3 * live.age[k], 1e3 * live.guard.stale[k]
        what = f"has sent no feedback for {age:.6g} ms, more than the {limit:.6g} ms of guard.stale"
        return f"joint '{name}' {what}; check its power, its cable and its bus"
    if code == NOT_FINITE:
        return f"joint '{name}' reports no number as its position or velocity; check its encoder"
    row, unit = LIMIT_OF[KEYS[code]], live.units[k]
    at = {key: float(np.asarray(value)[k]) for key, value in feedback.items() if np.ndim(value)}
    effort_unit = JOINT_DIMENSIONS["joint effort"][unit == "m"]
    measured = {key: np.asarray(feedback[key]) for key in ("position", "velocity")}
    effort, commanded = (float(np.asarray(requested_effort(command, measured))[k]) for command in (safe, wanted))
    figures = {
        "joint": name,
        "limit": row.show([float(live.guard.bounds[key][k]) for key in row.bound_keys], unit),
        "position": f"{at['position']:.6g} {unit}",
        "velocity": f"{at['judged_velocity']:.6g} {unit}/s",
        "effort": f"{effort:.6g} {effort_unit}",
        "commanded_effort": f"{commanded:.6g} {effort_unit}",
        "effort_rate": f"{abs(effort - at['request']) / live.period:.6g} {effort_unit}/s",
        "power": f"{abs(effort * at['judged_velocity']):.6g} W",
        "temperature": f"{at['temperature']:.6g} degC",
        "unseen_motion": f"{at['unseen_motion']:.6g} {unit}",
        "tracking_error": f"{abs(at['reference'] - at['position']):.6g} {unit}",
    }
    what = row.reason.format_map(defaultdict(lambda: "0", figures)).partition("; ")[0]  # others: of whole rigs only
    return f"joint '{name}' {what}"
