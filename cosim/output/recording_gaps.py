"""What a recording lacks: files that are missing, parts that are damaged, and the times of which it has no ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cosim.output.recording_index import RecordingIndex

NEIGHBOURS = 3  # ticks at each side of a gap that show the time between ticks
LONGER = 1.5  # times of it: a gap


class MissingTicks(NamedTuple):
    """why: it is there; begin, end: times of the last tick before it and of the first one behind it [s], None at the
    ends of the recording; ticks: whether some are missing."""

    why: str
    begin: float | None
    end: float | None
    ticks: bool = True

    def __str__(self) -> str:
        if not self.ticks:
            return f"{self.why} at t = {self.begin:.6g} s: no tick is missing, but events may be"
        if self.begin is None:
            return f"{self.why}: no ticks before t = {self.end:.6g} s"
        if self.end is None:
            return f"{self.why}: no ticks after t = {self.begin:.6g} s"
        return f"{self.why}: no ticks between t = {self.begin:.6g} s and t = {self.end:.6g} s"


def damaged(index: RecordingIndex, indexes: Sequence[RecordingIndex]) -> str:
    """That something in a file is."""
    return f"the file {index.path.name} is damaged" if len(indexes) > 1 else "the recording is damaged"


def gap_at(row: int, reasons: Sequence[str], count: int, times: Callable[[int, int], np.ndarray]) -> MissingTicks:
    """The gap before a row. reasons: for it; count: of all rows; times(begin, end): of rows [ns]."""
    why = " and ".join(dict.fromkeys(reasons))
    first, last = max(row - NEIGHBOURS, 0), min(row + NEIGHBOURS, count)
    t_ns = times(first, last)
    begin = None if row == 0 else float(t_ns[row - first - 1]) * 1e-9
    end = None if row == count else float(t_ns[row - first]) * 1e-9
    if begin is None or end is None:
        return MissingTicks(why, begin, end)
    steps = np.diff(t_ns)
    own, others = steps[row - first - 1], np.delete(steps, row - first - 1)
    return MissingTicks(why, begin, end, not len(others) or bool(own > LONGER * others.max()))
