"""A block of finished ticks, as a scheduler hands it to the outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TickBlock:
    """Finished ticks: numbers (k,), rows (k, nr), stamps (k, 3 + tasks) or (k, 0) without a clock, and the flat
    `BumplessStart` of their run; failures: of the control loops when the block was read, empty where there are none."""

    numbers: np.ndarray
    rows: np.ndarray
    stamps: np.ndarray
    bumpless_start: np.ndarray
    failures: tuple[str, ...] = ()
