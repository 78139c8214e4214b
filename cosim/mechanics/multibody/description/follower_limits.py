"""Limits of joints that follow others: a follower has no coordinate of its own, so its leader is to keep them.

With q_a = m q_b + o, a follower a is at its limits where its leader b is at (limit − o) / m, and moves |m| times as
fast as the leader.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.joints import unit_of
from cosim.mechanics.multibody.mechanism import Joint, Mimic

ROUNDING = 1e-6  # of a limit: what differs less between a follower and its leader is one limit
KEYS = {"lower": "lower", "upper": "upper", "velocity": "max_velocity"}  # limit -> attribute of a joint

NO_RANGE = (
    "its limits of {} leave '{}', which it follows, no range, and are left out; check them, multiplier and offset"
)


def leaves_no_range(known: Mapping[str, float], new: Mapping[str, float]) -> bool:
    """Whether limits beside the known ones leave nothing of a range."""
    lower, upper = (known.get(key, default) for key, default in (("lower", -math.inf), ("upper", math.inf)))
    return lower < upper and max(lower, new.get("lower", lower)) >= min(upper, new.get("upper", upper))


def limits_of_leader(mimic: Mimic, limits: Mapping[str, float]) -> dict[str, float]:
    """The limits of the leader at which its follower is at these, by their keys `lower`, `upper` and `velocity`.

    A velocity of 0 stands for none; the effort of a follower is none that an actuator gives. A follower that stands
    still, with multiplier 0, limits nothing.
    """
    m = mimic.multiplier
    if m == 0.0:
        return {}
    other = {"lower": "upper", "upper": "lower"} if m < 0.0 else {}
    found = {other.get(key, key): (limits[key] - mimic.offset) / m for key in ("lower", "upper") if key in limits}
    if limits.get("velocity", 0.0) > 0.0:
        found["velocity"] = limits["velocity"] / abs(m)
    return found


def narrowed_leaders(joints: Sequence[Joint], diagnostics: Diagnostics) -> tuple[Joint, ...]:
    """The joints, with the limits of followers as limits of their leaders where they are narrower, each with a note.

    joints: followers of independent ones, see `resolve_mimics`. Limits that leave a leader no range are left out with
    a warning; a follower without a range, such as 0 to 0, states none.
    """
    found = {joint.name: joint for joint in joints}
    notes: dict[tuple[str, str], tuple[Joint, str]] = {}  # of the narrowest follower: (leader, limit) -> what is said
    for joint in joints:
        if joint.mimic is None:
            continue
        leader = found[joint.mimic.joint]
        new = limits_of_leader(joint.mimic, {key: getattr(joint, name) for key, name in KEYS.items()})
        if joint.lower == joint.upper:
            new = {key: value for key, value in new.items() if key == "velocity"}
        new = {key: value for key, value in new.items() if _is_narrower(key, value, getattr(leader, KEYS[key]))}
        known = {key: getattr(leader, name) for key, name in KEYS.items()}
        if leaves_no_range(known, new):
            diagnostics.warn(NO_RANGE.format(f"{joint.lower:.6g} to {joint.upper:.6g}", leader.name), joint.place)
            new = {key: value for key, value in new.items() if key == "velocity"}
        unit = unit_of(leader.kind) or ""
        for key, value in new.items():
            shown = f"{value:.6g} {unit}{'/s' * (key == 'velocity')}"
            what = f"its limits narrow the joint that it follows: '{leader.name}' has the {key} limit {shown}"
            notes[leader.name, key] = joint, what
        found[leader.name] = replace(leader, **{KEYS[key]: value for key, value in new.items()})
    for joint, what in notes.values():
        diagnostics.note(what, joint.place)
    return tuple(found.values())


def _is_narrower(key: str, value: float, known: float) -> bool:
    """Whether a limit is narrower than the known one by more than rounding."""
    if not math.isfinite(value):
        return False
    within = ROUNDING * abs(known) if math.isfinite(known) else 0.0
    return value > known + within if key == "lower" else value < known - within
