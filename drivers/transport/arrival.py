"""Times of arrival on the monotonic clock, from the wall clock's time stamps of frames.

The wall clock may be set or slewed at any time, and a thread may be interrupted between a look at the one clock and a
look at the other: an error of a few milliseconds there is a false jump of a joint to whoever divides by the time
between two measurements. So both clocks are read again after an interruption, a stamp is not believed after the wall
clock was set, and no frame comes before the one before it.
"""

from __future__ import annotations

import time

TRIES = 4  # to read both clocks at once
AT_ONCE_NS = 20_000  # between the first look at the clocks and the last
CLOCK_SET_NS = 1_000_000  # by which the wall clock moves against the monotonic one when it is set, between two frames
MAX_AGE_NS = 1_000_000_000  # an older time stamp is not believed


def both_clocks() -> tuple[int, int]:
    """(monotonic, wall) at one moment [ns]."""
    for _ in range(TRIES):
        at, wall = time.monotonic_ns(), time.time_ns()
        if time.monotonic_ns() - at < AT_ONCE_NS:
            break
    return at, wall


class ArrivalTimes:
    """Of the frames of one connection, in their order."""

    def __init__(self) -> None:
        at, wall = both_clocks()
        self._offset, self._last = wall - at, 0

    def of(self, stamp_ns: int) -> int:
        """When the frame with this time stamp of the wall clock came [ns]; if it cannot be believed, now."""
        taken, wall = both_clocks()
        offset, waited = wall - taken, wall - stamp_ns
        was_set, self._offset = abs(offset - self._offset) > CLOCK_SET_NS, offset
        came = taken - waited if not was_set and 0 <= waited < MAX_AGE_NS else taken
        self._last = max(came, self._last)
        return self._last
