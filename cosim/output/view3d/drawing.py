"""A mechanism to be drawn: its scene, the poses of its bodies, what is fixed to them. The way there from a rig is
`cosim.rig.scene`, from text that came from elsewhere `drawing_text`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.output.scene.scene import Scene
from cosim.output.view3d.view import FixedLink, View, in_link_frames, joint_columns

Poses = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Drawing:
    """poses: (positions (k, nq), times (k,) where the scene is `timed`) -> axes and origins (k, n, 3, 4) of the moving
    bodies; mounts: (n, 3, 4) of the links that bodies are named after, in their bodies; links: the others, and named
    frames; carried: joint -> the body that it moves."""

    scene: Scene
    poses: Poses
    mounts: np.ndarray
    links: tuple[FixedLink, ...]
    carried: Mapping[str, str]

    def view(self, joints: Sequence[str], signals: Sequence[str], rate: float) -> View | None:
        """What the messages of a run are made of, from these signals; None where positions are not among them.
        joints: with a position each; rate [Hz]: of simulated time."""
        places = {name: column for column, name in enumerate(signals)}
        columns = [places.get(f"{name}/position") for name in self.scene.coordinates]
        if None in columns:
            return None
        found = tuple(column for column in columns if column is not None)
        shown = in_link_frames(self.scene, self.mounts)
        return View(shown, self.poses, self.mounts, found, self.links, joint_columns(joints, signals), rate)
