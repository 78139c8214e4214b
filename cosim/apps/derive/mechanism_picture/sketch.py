"""What a picture shows of a mechanism: bodies, joints, springs, curves; plain data in the frames of the bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from cosim.mechanics.multibody.joints import GENERAL, JOINTS, OF_ELASTIC_LINKS, JointKindRow, joint_axes
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Pose
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.tree import Tree
from cosim.output.scene.build import SHORTEST_LENGTH, inertia_box
from cosim.output.scene.scene import Shape, rotated

GROUND = 0
SAME_POINT = 1e-6  # m, within which points are one


class BodyPoint(NamedTuple):
    """A point that moves with a body."""

    body: int  # 0 is the ground, k ≥ 1 row k − 1 of `Model.body_poses`
    point: np.ndarray  # (3,) in the body, m


class JointSketch(NamedTuple):
    """A joint of the tree or one that closes a loop. at, on: its frame in child and parent, z along its axis."""

    name: str
    kind: str
    child: int
    at: Pose
    parent: int
    on: Pose
    sprung: bool  # by a spring in the joint

    @property
    def entry(self) -> JointKindRow:
        return JOINTS[self.kind]

    @property
    def placed(self) -> bool:
        """Whether it is at a point of its child."""
        return self.entry.placed


class CurveSketch(NamedTuple):
    """The curve y(x) in the frame `on` of a body, on which `point` stays."""

    body: int
    on: Pose
    curve: Callable[[float], float]
    point: BodyPoint


class BodySketch(NamedTuple):
    """A rigid body. points (k, 3): where others hold it, its own joint first, then the end of one that nothing
    else holds; box: corners (8, 3) of the homogeneous box of its inertia, none of a point mass; all in the body [m]."""

    number: int
    name: str
    points: np.ndarray
    mass: float
    com: np.ndarray
    box: np.ndarray


class BentSketch(NamedTuple):
    """An elastic link: straight pieces along its deflection, each with its two ends. number: of the body in whose
    frame it deflects, by which its colour is chosen; grounded: whether it does not move; ways (k, 3): displacements
    of the pieces in it per unit of each mode."""

    number: int
    pieces: tuple[tuple[BodyPoint, BodyPoint], ...]
    grounded: bool
    ways: np.ndarray


@dataclass(frozen=True)
class Sketch:
    """A mechanism reduced to what a picture of it shows.

    bodies: without the ground; bent: the elastic links. platforms: the ground and the bodies that a prescribed motion
    of the base moves. visuals: (body, shape) of the robot file, shown in place of bars.
    """

    name: str
    bodies: tuple[BodySketch, ...]
    joints: tuple[JointSketch, ...]
    springs: tuple[tuple[BodyPoint, BodyPoint], ...]
    rods: tuple[tuple[BodyPoint, BodyPoint], ...]
    curves: tuple[CurveSketch, ...]
    wheels: tuple[tuple[int, Pose, float], ...]  # body, frame about whose z axis it turns, radius [m]
    frames: tuple[tuple[str, int, Pose], ...]
    platforms: tuple[int, ...]
    visuals: tuple[tuple[int, Shape], ...] = ()
    bent: tuple[BentSketch, ...] = ()


def sketch_of(model: Model, shapes: Iterable[tuple[int, Shape]] = ()) -> Sketch:
    """The sketch of a `Model.drawn`: joints where the file has them, also those that close loops. shapes: of its
    `Scene`; of them the visuals that are no meshes are shown."""
    tree, mechanism = model.equations.tree, model.expanded
    hidden = ("fixed", *OF_ELASTIC_LINKS)
    held = [(joint, Pose.identity()) for joint in mechanism.joints if joint.kind not in hidden]
    held += [(loop.joint, loop.child_pose) for loop in mechanism.loops]
    joints = tuple(_joint(tree, joint, pose) for joint, pose in held)
    laws = [(c.law, [_frame(tree, *frame) for frame in c.frames]) for c in mechanism.constraints]
    springs = tuple((_point(tree, *s.ends[0]), _point(tree, *s.ends[1])) for s in mechanism.springs)
    rods = tuple((_origin(a), _origin(b)) for law, (a, b) in _with_frames(laws) if law.rod)
    curves = tuple(
        CurveSketch(body, pose, law.curve, _origin(b)) for law, ((body, pose), b) in _with_frames(laws) if law.curve
    )
    wheels = tuple((*b, law.radius) for law, (a, b) in _with_frames(laws) if law.radius)
    frames = tuple((f.name, *_frame(tree, f.link, f.pose)) for f in mechanism.frames)
    others = [*(end for pair in (*springs, *rods) for end in pair), *(c.point for c in curves)]
    others += [BodyPoint(body, pose.position) for _, body, pose in frames]
    return Sketch(
        name=mechanism.name,
        bodies=tuple(_bodies(tree, mechanism.links, joints, others)),
        joints=joints,
        springs=springs,
        rods=rods,
        curves=curves,
        wheels=wheels,
        frames=frames,
        visuals=tuple((body, shape) for body, shape in shapes if shape.role == "visual" and shape.kind != "mesh"),
        bent=tuple(_bent(tree)),
        platforms=(GROUND, *(j.child for j in joints if j.kind == GENERAL and j.parent == GROUND)),
    )


def _bent(tree: Tree) -> Iterator[BentSketch]:
    pieces: dict[int, list[tuple[BodyPoint, BodyPoint]]] = {}
    for link in tree.mechanism.links:
        if link.piece is not None:
            start, end = (_point(tree, link.name, point) for point in link.piece)
            pieces.setdefault(tree.parents[start.body - 1] + 1, []).append((start, end))
    for k, own in pieces.items():
        nodes = [tree.joints[start.body - 1].node for start, _ in own]
        ways = np.vstack([node.path.linear for node in nodes if node is not None])
        yield BentSketch(k, tuple(own), tree.parents[k - 1] < 0, ways)


def _with_frames(laws: Sequence) -> Iterator:
    return ((law, frames) for law, frames in laws if len(frames) == 2)


def _frame(tree: Tree, link: str, pose: Pose) -> tuple[int, Pose]:
    body, own = tree.frames[link]
    return body + 1, own @ pose


def _point(tree: Tree, link: str, point: np.ndarray) -> BodyPoint:
    return _origin(_frame(tree, link, Pose(np.eye(3), np.asarray(point, dtype=float))))


def _origin(frame: tuple[int, Pose]) -> BodyPoint:
    return BodyPoint(frame[0], frame[1].position)


def _joint(tree: Tree, joint: Joint, child_pose: Pose) -> JointSketch:
    axes = Pose(joint_axes(joint), np.zeros(3))
    child, at = _frame(tree, joint.child, child_pose @ axes)
    parent, on = _frame(tree, joint.parent, joint.pose @ axes)
    return JointSketch(joint.name, joint.kind, child, at, parent, on, joint.has_spring)


def _bodies(
    tree: Tree, links: Sequence, joints: Sequence[JointSketch], others: Sequence[BodyPoint]
) -> Iterator[BodySketch]:
    for k in range(1, max((body for body, _ in tree.frames.values()), default=-1) + 2):
        own = [link for link in links if tree.frames[link.name][0] + 1 == k]
        if not own:
            continue
        mass, com, box = _inertia(tree, own)
        points = [j.at.position for j in joints if j.child == k and j.placed]
        points += [j.on.position for j in joints if j.parent == k]
        points += [point for body, point in others if body == k]
        found = distinct(points)
        if len(found) == 1 and mass and any(j.child == k and j.placed for j in joints):
            found = distinct([found[0], _end(found[0], com, box)])
        yield BodySketch(k, own[0].name, np.array(found).reshape(-1, 3), mass, com, box)


def distinct(points: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Points (3,) or (2,) without repetitions, in their order."""
    found: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > SAME_POINT for other in found):
            found.append(point)
    return found


def _inertia(tree: Tree, links: Sequence) -> tuple[float, np.ndarray, np.ndarray]:
    """(mass, centre of mass (3,), corners of the box of its inertia (8, 3) or (0, 3)) of links on one body."""
    parts = [(link.inertial, tree.frames[link.name][1]) for link in links if link.inertial is not None]
    mass = sum(inertial.mass for inertial, _ in parts)
    if not mass:
        return 0.0, np.zeros(3), np.zeros((0, 3))
    centres = [pose.position + pose.rotation @ inertial.com for inertial, pose in parts]
    com = np.sum([inertial.mass * c for (inertial, _), c in zip(parts, centres, strict=True)], axis=0) / mass
    total = np.zeros((3, 3))
    for (inertial, pose), c in zip(parts, centres, strict=True):
        r = c - com
        total += pose.rotation @ inertial.inertia @ pose.rotation.T + inertial.mass * (
            r @ r * np.eye(3) - np.outer(r, r)
        )
    shapes = inertia_box("", Inertial(mass, com, total))
    return mass, com, corners(shapes[0]) if shapes else np.zeros((0, 3))


def corners(box: Shape) -> np.ndarray:
    """(8, 3), in the body of the shape."""
    signs = np.array(list(product((-0.5, 0.5), repeat=3)))
    return np.array([rotated(box.pose.wxyz, edge * np.array(box.size)) for edge in signs]) + np.array(box.pose.position)


def _end(held: np.ndarray, com: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Of a body held at one point: the far side of the box of its inertia beyond the centre of mass; the centre of mass
    of a point mass."""
    reach = float(np.linalg.norm(com - held))
    if reach < SHORTEST_LENGTH:
        return com
    along = (com - held) / reach
    return com + along * min(max(((box - com) @ along).max(initial=0.0), 0.0), reach)


def longest(points: np.ndarray) -> float:
    """The largest distance of points (k, 2) or (k, 3)."""
    return max((float(np.linalg.norm(a - b)) for a, b in combinations(points, 2)), default=0.0)
