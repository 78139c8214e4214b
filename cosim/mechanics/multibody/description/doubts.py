"""Sentences about numbers that look like those of another unit: where several parts have the same fault, one line that
counts them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from cosim.core.errors import SourceLocation, plural
from cosim.core.units import TURN
from cosim.mechanics.multibody.mechanism import Joint, Link

STRONGEST_GRAVITY = 100.0  # m/s², ten times Earth's
LARGEST_ANGLE = TURN * 1.001  # rad: of a frame; a full turn with its rounding
GRAVITIES = {"mm/s²": 1e-3, "cm/s²": 1e-2}  # m/s² per unit


def line_about(parts: Sequence[Link] | Sequence[Joint], what: str) -> str:
    """The place of the first part, what is said of it, and how many more of its kind have the same fault."""
    first, others = parts[0], len(parts) - 1
    word = "link" if isinstance(first, Link) else "joint"
    named = "" if first.name in first.place.key.split("'") else f"{word} '{first.name}': "  # where its place does not
    return f"{first.place}: {named}{what}" + (f" (and {others} more {plural(others, word)})" if others else "")


def nearest_unit(units: Mapping[str, float], ratio: float, spread: float = 1.0) -> str:
    """The unit by whose factor a value is this many times a usual one; a second one that is nearer than the spread of
    usual values [powers of ten]."""
    factors = {unit: abs(math.log10(ratio * factor)) for unit, factor in units.items()}
    first, second = sorted(units, key=lambda unit: factors[unit])[:2]
    return f"{first} or {second}" if factors[second] < spread else first


def is_stand_in(value: float) -> bool:
    """Whether a limit is a power of ten, which writers fill in where there is none."""
    return math.log10(max(abs(value), 1.0)).is_integer()


def doubtful_angles(written: Sequence[tuple[SourceLocation, Sequence[float]]]) -> Iterator[str]:
    """A line for all angles of frames beyond a turn. written: the place of a frame, its roll, pitch and yaw [rad]."""
    found = {place: angles for place, angles in written if max(map(abs, angles)) > LARGEST_ANGLE}
    if found:
        (place, angles), others = next(iter(found.items())), len(found) - 1
        as_written, radians = (
            " ".join(f"{angle:.4g}" for angle in each) for each in (angles, map(math.radians, angles))
        )
        turns = max(map(abs, angles)) / TURN
        more = f" (and {others} more {plural(others, 'frame')})" if others else ""
        what = f"roll, pitch and yaw {as_written} are up to {turns:.3g} turns; they look like degrees"
        yield f"{place}: {what}, in rad they are {radians}{more}"


def doubtful_gravity(gravity: Sequence[float], place: SourceLocation) -> Iterator[str]:
    """gravity: (3,) [m/s²]."""
    strength = math.hypot(*gravity)
    if strength > STRONGEST_GRAVITY:
        unit = min(GRAVITIES, key=lambda unit: abs(math.log10(strength * GRAVITIES[unit] / 9.81)))
        what = f"the gravity of {strength:.4g} m/s² is {strength / 9.81:.0f} times Earth's; it looks like {unit}"
        yield f"{place}: {what}"
