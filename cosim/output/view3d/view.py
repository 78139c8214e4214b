"""What the messages of the mechanism in 3D are made of, as plain data that can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cosim.output.scene.scene import Scene, ScenePose, placement, rotated

if TYPE_CHECKING:
    from cosim.mechanics.multibody.mechanism import Pose
    from cosim.mechanics.multibody.model import Model


class FixedLink(NamedTuple):
    """A link that does not move on the link `parent`; pose: in it."""

    name: str
    parent: str
    pose: ScenePose


class JointColumns(NamedTuple):
    """A joint, and the columns of its position, velocity and effort; None for a signal that is not there."""

    name: str
    columns: tuple[int | None, int | None, int | None]


class ContactColumns(NamedTuple):
    """A contact, and the columns of its state, of its force and of the point where it acts, in ground axes."""

    name: str
    state: int
    force: tuple[int, ...]
    point: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """A mechanism in 3D beside the signals of a run: what its messages are computed from.

    scene: shapes in the frames of the links that bodies are named after; poses: (positions (k, nq), times (k,) where
    the scene is `timed`) -> axes and origins (k, n, 3, 4) of its moving bodies; mounts: (n, 3, 4) of these links in
    their bodies; positions: columns of the positions among the signals; links: the others, and named frames; joints:
    those with one degree of freedom; rate [Hz] of simulated time; contacts: whose forces are shown.
    """

    scene: Scene
    poses: Callable[..., np.ndarray]
    mounts: np.ndarray
    positions: tuple[int, ...]
    links: tuple[FixedLink, ...]
    joints: tuple[JointColumns, ...]
    rate: float
    contacts: tuple[ContactColumns, ...] = ()

    def link_poses(self, t_ns: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k, n, 3, 4) at times (k,), from all signals (k, …)."""
        q = np.ascontiguousarray(rows[:, list(self.positions)])
        poses = self.poses(q, t_ns * 1e-9) if self.scene.timed else self.poses(q)
        found = poses[..., :3] @ self.mounts
        found[..., 3] += poses[..., 3]
        return found


def mounts_of(model: Model) -> list[Pose]:
    """The frames of the links that bodies are named after, in their bodies, the ground first."""
    tree = model.equations.tree
    return [tree.frames[link][1] for link in tree.body_links]


def in_link_frames(scene: Scene, mounts: np.ndarray) -> Scene:
    """The scene with shapes in the frames of these links (n, 3, 4) instead of the moving bodies'."""
    ground, *moving = scene.bodies
    bodies = tuple(
        body._replace(shapes=tuple(shape._replace(pose=_within(mount, shape.pose)) for shape in body.shapes))
        for body, mount in zip(moving, mounts, strict=True)
    )
    return replace(scene, bodies=(ground, *bodies))


def _within(mount: np.ndarray, pose: ScenePose) -> ScenePose:
    back = mount[:, :3].T
    axes = np.column_stack([rotated(pose.wxyz, axis) for axis in np.eye(3)])
    return placement(back @ axes, back @ (np.array(pose.position) - mount[:, 3]))


def fixed_links(model: Model, scene: Scene, mounts: Sequence[Pose]) -> tuple[FixedLink, ...]:
    """The links and named frames that no body is named after."""
    tree, found = model.equations.tree, []
    for link, (body, pose) in tree.given_frames.items():
        if link not in tree.body_links:
            within = mounts[body + 1].inverse() @ pose
            found.append(FixedLink(link, scene.bodies[body + 1].name, placement(within.rotation, within.position)))
    return tuple(found)


def joint_columns(joints: Sequence[str], signals: Sequence[str]) -> tuple[JointColumns, ...]:
    """Of these joints, as far as they have a position among the signals."""
    places = {name: column for column, name in enumerate(signals)}
    found = []
    for joint in joints:
        position, velocity, effort = (places.get(f"{joint}/{what}") for what in ("position", "velocity", "effort"))
        if position is not None:
            found.append(JointColumns(joint, (position, velocity, effort)))
    return tuple(found)


def contact_columns(signals: Sequence[str]) -> tuple[ContactColumns, ...]:
    """Of the contacts whose forces are among the signals."""
    places = {name: column for column, name in enumerate(signals)}
    found = []
    for name in signals:
        contact, _, what = name.rpartition("/")
        vectors = [[places.get(f"{contact}/{part}_{axis}") for axis in "xyz"] for part in ("force", "point")]
        state = places.get(f"{contact}/state")
        if what != "normal_force" or state is None or any(None in vector for vector in vectors):
            continue
        force, point = (tuple(column for column in vector if column is not None) for vector in vectors)
        found.append(ContactColumns(contact, state, force, point))
    return tuple(found)
