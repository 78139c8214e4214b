"""Poses of the bodies of a scene from the samples of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import InputError
from cosim.output.scene.scene import quaternions

if TYPE_CHECKING:
    from cosim.output.view3d.drawing import Drawing


class Poses:
    """Of one mechanism: from rows with these signals to positions (n, 3) [m] and quaternions (n, 4) of its moving
    bodies."""

    def __init__(self, drawing: Drawing, signals: Mapping[str, int]) -> None:
        """signals: name -> column. Raises InputError if the position of a joint is not among them."""
        names = drawing.scene.coordinates
        if lacking := [name for name in names if f"{name}/position" not in signals]:
            raise InputError(f"there is no signal '{lacking[0]}/position'", drawing.scene.name)
        self.drawing = drawing
        self._columns = np.array([signals[f"{name}/position"] for name in names], dtype=int)
        references = [signals.get(f"{name}/reference_position", -1) for name in names]
        self._references = np.array(references, dtype=int)
        # a loop does not close at positions that are chosen one by one
        self.has_reference = bool((self._references >= 0).any()) and not drawing.scene.closed

    def actual(self, row: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """row: (number of signals,)"""
        return self._poses(row[self._columns], t)

    def reference(self, row: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """At the references; at the actual position of a joint that has none."""
        q = row[self._columns]
        return self._poses(np.where(self._references >= 0, row[self._references], q), t)

    def _poses(self, q: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        at = (np.array([t]),) if self.drawing.scene.timed else ()
        poses = self.drawing.poses(q[None], *at)[0]
        return poses[:, :, 3], quaternions(poses[:, :, :3])
