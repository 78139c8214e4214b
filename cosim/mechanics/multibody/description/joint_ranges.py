"""Ranges of joints as robot files have them, whatever the format."""

from __future__ import annotations

from collections.abc import Callable

from cosim.core.units import TURN

Warn = Callable[[str], None]


def in_order(lower: float, upper: float, warn: Warn, named: str = "") -> tuple[float, float]:
    """(lower, upper), changed over with a warning where the first one is above the other. named: what has them."""
    if lower <= upper:
        return lower, upper
    warn(f"{named}lower {lower:g} is above upper {upper:g}; taken as {upper:g} to {lower:g}, swap them")
    return upper, lower


def warn_of_unused(lower: float, upper: float, warn: Warn) -> None:
    """A continuous joint has no range; one of a turn and more, or none at all, is what writers fill in."""
    if 0.0 < upper - lower < TURN:
        warn(f"the range {lower:g} to {upper:g} of a continuous joint is left out; 'revolute' has one")
