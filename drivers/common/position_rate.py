"""The velocity of a drive whose own velocity means nothing, from the positions that it reports."""

from __future__ import annotations

TIME_CONSTANT = 5e-3  # s: passes one count as a hundredth of what a difference over 50 µs would make of it
COUNTS_PER_WRAP = 4294967296.0  # of a position of 32 bits


def smoothed_rate(place: float, t_ns: float, place_before: float, t_before_ns: float, rate: float) -> float:
    """Counts/s after the position `place` [counts] was measured at t_ns: the difference quotient behind a low-pass of
    the first order. t_before_ns: of the last position, 0 for none. In plain arithmetic, for both engines.

    A position that is not newer changes nothing.
    """
    if t_before_ns <= 0.0 or t_ns <= t_before_ns:
        return rate
    moved, passed = place - place_before, 1e-9 * (t_ns - t_before_ns)
    if moved > 0.5 * COUNTS_PER_WRAP:
        moved -= COUNTS_PER_WRAP
    elif moved < -0.5 * COUNTS_PER_WRAP:
        moved += COUNTS_PER_WRAP
    return rate + (moved / passed - rate) * passed / (passed + TIME_CONSTANT)
