"""Trajectories of a rig: loaded from their plug-ins, or holding the initial position."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosim.rig.reading.plugins import Plugin, load_plugin
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.types import Array, Trajectory


class HoldTrajectory:
    """The reference of a controller without a trajectory: the initial position, at rest."""

    end = 0.0

    def __init__(self, position: Array) -> None:
        """position: (n,), SI."""
        zeros = {name: np.zeros(len(position)) for name in ("velocity", "acceleration", "effort")}
        self._sample = {"position": position, **zeros}

    def sample(self, t: Any) -> dict[str, Any]:
        return dict(self._sample)


def build_trajectory(
    plugin: Plugin, joints: tuple[str, ...], start: Array, path: KeyPath, reading: Reading
) -> Trajectory:
    """The trajectory of n joints that starts at the positions `start` (n,); one that holds them, after a mistake in the
    section at `path`, noted in `reading`."""
    loaded = load_plugin(plugin, path, reading, joints, reading.folder, start)
    return HoldTrajectory(start) if loaded is None else loaded
