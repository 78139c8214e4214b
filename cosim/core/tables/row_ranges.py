"""Numbers of rows in words: `2 to 9, 14`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

MOST_RANGES = 8  # of rows that a message names


def row_ranges(numbers: Iterable[int]) -> str:
    """Of numbers in any order, the first ones."""
    ordered = np.sort(np.array(list(numbers), dtype=np.int64))
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    parts = [f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:MOST_RANGES]]
    return ", ".join(parts) + (" …" if len(runs) > MOST_RANGES else "")
