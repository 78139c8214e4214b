"""From a model to its scene. Bodies without visuals are bars between joints, joints by their kind, and boxes with the
inertia of the body."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.joints import Pictogram, entry_of, joint_axes
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Pose
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import shown_name, whole_of
from cosim.mechanics.multibody.tree import Tree
from cosim.output.scene.contact_solids import contact_solids, touching_sizes
from cosim.output.scene.scene import Role, Scene, SceneBody, SceneSpring, Shape, ShapeKind, placement
from cosim.output.scene.visuals import Visual

DIAMETER = 0.075  # of the thickest joint over the extent of the mechanism
THINNEST = 0.4  # of the thickest joint, for those that carry little mass

BAR = 0.7  # diameter of a bar relative to the joint at its start
ELASTIC_BAR = 0.4  # likewise of a piece of an elastic link, slim so that its deflection is seen
DRUM = 1.25  # length of a revolute joint over its diameter
SLIDER = np.array([1.1, 1.1, 2.2])  # edges of a prismatic joint over the diameter of joints
SHORTEST_LENGTH = 1e-6  # m, below which two points are the same
FLATTEST = 0.02  # thinnest edge of an inertia box over its longest one, so that a thin rod is seen


def scene_of(
    model: Model,
    start: np.ndarray,
    actuated: Collection[str] = (),
    visuals: Mapping[str, Sequence[Visual]] | None = None,
    notes: Sequence[str] = (),
) -> Scene:
    """start: positions (nq,) at the start; actuated: joints with a drive; visuals: of the links of the robot file, see
    `read_visuals`. A body without visuals is shown as bars between its joints, an elastic link as straight pieces along
    its deflection. The bodies come from `model.drawn`."""
    model = model.drawn
    tree = model.equations.tree
    timed = model.equations.timed
    poses = _with_ground(model.body_poses(start, 0.0) if timed else model.body_poses(start))
    shapes = _shapes(model, tree, poses, actuated, visuals or {})
    extent = _extent(poses, shapes, touching_sizes(tree))
    solids, hidden = contact_solids(tree, extent, np.mean(poses[:, :, 3], axis=0))
    for body, solid in solids:
        bars = [shape for shape in shapes[body] if shape.role == "link"]
        if body and bars:
            shapes[body] += bar(solid.link, np.zeros(3), np.array(solid.pose.position), bars[0].size[0])
        shapes[body].append(solid)
    names = map(shown_name, tree.body_links)
    parents = (0, *(parent + 1 for parent in tree.parents))
    bodies = tuple(
        SceneBody(name, parent, placement(pose[:, :3], pose[:, 3]), tuple(own))
        for name, parent, pose, own in zip(names, parents, poses, shapes, strict=True)
    )
    springs = tuple(
        SceneSpring(spring.name, _point(tree, *spring.ends[0]), _point(tree, *spring.ends[1]))
        for spring in model.expanded.springs
    )
    return Scene(
        name=model.mechanism.name,
        bodies=bodies,
        springs=springs,
        coordinates=model.coordinate_names,
        extent=extent,
        floor=_floor(poses),
        closed=bool(model.equations.constraints.members),
        timed=timed,
        notes=(*notes, *hidden),
        force_length=_force_length(tree, model.gravity, extent) if tree.mechanism.contacts else 0.0,
    )


def _with_ground(poses: np.ndarray) -> np.ndarray:
    """(n + 1, 3, 4): the ground first."""
    return np.concatenate([np.eye(4)[None, :3], poses])


def _body_of(tree: Tree, link: str) -> tuple[int, Pose]:
    body, pose = tree.frames[link]
    return body + 1, pose


def _point(tree: Tree, link: str, point: np.ndarray) -> tuple[int, tuple[float, float, float]]:
    body, pose = _body_of(tree, link)
    x, y, z = map(float, pose.position + pose.rotation @ point)
    return body, (x, y, z)


def _shapes(
    model: Model, tree: Tree, poses: np.ndarray, actuated: Collection[str], visuals: Mapping[str, Sequence[Visual]]
) -> list[list[Shape]]:
    """The shapes of every body."""
    found: list[list[Shape]] = [[] for _ in poses]
    inertials = [link for link in tree.mechanism.links if link.inertial is not None]
    for link in model.mechanism.links:
        body, pose = _body_of(tree, link.name)
        own = () if isinstance(link.elastic, ElasticLink) else visuals.get(link.name, ())
        found[body] += [_visual(link.name, pose, visual) for visual in own]
    shown = [bool(shapes) for shapes in found]
    frames = _joint_frames(model, tree)
    diameters = _diameters(tree, _reach(poses, frames, inertials, tree))
    for link in tree.mechanism.links:
        if link.piece is not None:
            body, _ = _body_of(tree, link.name)
            found[body] += bar(whole_of(link.name), *link.piece, ELASTIC_BAR * diameters[tree.parents[body - 1] + 1])
    for joint, body, frame, start in frames:
        diameter = diameters[body] if start or body else diameters[_body_of(tree, joint.child)[0]]
        if not shown[body]:
            origin = np.zeros(3) if body or start else _base_of(joint, tree, visuals)
            found[body] += [] if origin is None else bar(joint.child, origin, frame.position, BAR * diameter)
            found[body] += joint_shape(joint, frame, diameter, joint.name in actuated) if start else []
    for link in inertials:
        body, pose = _body_of(tree, link.name)
        inertial = link.inertial
        assert inertial is not None
        com = pose.position + pose.rotation @ inertial.com
        ends = any(at == body and not start for _, at, _, start in frames)
        if body and not shown[body] and not ends:
            found[body] += bar(link.name, np.zeros(3), com, BAR * diameters[body])
        if body and link.name == whole_of(link.name):
            inertia = pose.rotation @ inertial.inertia @ pose.rotation.T
            found[body] += inertia_box(link.name, Inertial(inertial.mass, com, inertia))
    return found


def _base_of(joint: Joint, tree: Tree, visuals: Collection[str]) -> np.ndarray | None:
    """Origin (3,) of the link that carries a joint on the ground, up its fixed joints to one with a mass or with
    visuals; None where the joint is on the bare ground."""
    masses = {link.name for link in tree.mechanism.links if link.inertial is not None and link.inertial.mass > 0.0}
    above = {fixed.child: fixed.parent for fixed in tree.mechanism.joints}
    link: str | None = joint.parent
    while link is not None and link not in masses and link not in visuals:
        link = above.get(link)
    return None if link is None else _body_of(tree, link)[1].position


def _visual(link: str, pose: Pose, visual: Visual) -> Shape:
    frame = pose @ visual.pose
    where = placement(frame.rotation, frame.position)
    return Shape(visual.kind, "visual", link, where, visual.size, visual.color, visual.file)


def _joint_frames(model: Model, tree: Tree) -> list[tuple[Joint, int, Pose, bool]]:
    """(joint, body, the joint's frame in it, whether the joint is drawn there): a joint is drawn on its child, and
    a bar of its parent leads to it; a joint that closes a loop is drawn on its parent, and bars of both lead to it."""
    found = []
    for k, joint in enumerate(tree.joints):
        _, own = _body_of(tree, joint.child)
        parent, pose = _body_of(tree, joint.parent)
        found.append((joint, k + 1, own, True))
        found.append((joint, parent, pose @ joint.pose, False))
    for loop in model.expanded.loops:
        if not loop.coordinates:
            parent, pose = _body_of(tree, loop.joint.parent)
            found.append((loop.joint, parent, pose @ loop.joint.pose, True))
        child, pose = _body_of(tree, loop.joint.child)
        found.append((loop.joint, child, pose @ loop.child_pose, False))
    return found


def _reach(poses: np.ndarray, frames: Sequence[tuple], inertials: Sequence, tree: Tree) -> float:
    """Length [m] along the longest chain of bodies, to the centre of mass of the last one."""
    lengths = np.zeros(len(poses))
    for k, parent in enumerate(tree.parents, 1):
        at = 0 if parent < 0 else parent + 1
        lengths[k] = lengths[at] + np.linalg.norm(poses[k, :, 3] - poses[at, :, 3]) * (at > 0)
    ends = [lengths.max()]
    for link in inertials:
        body, pose = _body_of(tree, link.name)
        ends.append(lengths[body] + float(np.linalg.norm(pose.position + pose.rotation @ link.inertial.com)))
    return max(*ends, 1e-3)


def _diameters(tree: Tree, reach: float) -> np.ndarray:
    """(n + 1,) of the joints of the bodies, by the mass that they carry."""
    masses = np.array([0.0, *(body.mass for body in tree.bodies)])
    for k in range(len(masses) - 1, 0, -1):
        if tree.parents[k - 1] >= 0:
            masses[tree.parents[k - 1] + 1] += masses[k]
    fractions = np.cbrt(masses / (masses.max() or 1.0))
    fractions[0] = 1.0
    return DIAMETER * reach * np.clip(fractions, THINNEST, 1.0)


def _extent(poses: np.ndarray, shapes: Sequence[Sequence[Shape]], sizes: Sequence[float]) -> float:
    """Diagonal [m] of the box around the origins of the shapes and bodies at the start; sizes [m]: of what may touch,
    of which the largest one is seen whole."""
    points = [pose[:, 3] for pose in poses]
    for pose, own in zip(poses, shapes, strict=True):
        points += [pose[:, 3] + pose[:, :3] @ np.array(shape.pose.position) for shape in own]
    spread = np.ptp(points, axis=0)
    return max(float(np.linalg.norm(spread)), *sizes, 1e-2)


def _force_length(tree: Tree, gravity: np.ndarray, extent: float) -> float:
    """Length of an arrow per force [m/N], 1, 2 or 5 times a power of ten: the weight is at most as long as the
    mechanism, and at least 0.4 times."""
    weight = sum(float(body.mass) for body in tree.bodies) * (float(np.linalg.norm(gravity)) or 10.0)
    if weight <= 0.0:
        return 1e-3
    power = 10.0 ** math.floor(math.log10(extent / weight))
    return max(k * power for k in (1.0, 2.0, 5.0) if k * power <= extent / weight * (1.0 + 1e-9))


def _floor(poses: np.ndarray) -> float:
    return float(min(poses[:, 2, 3].min(), 0.0))


# shape and its edges over the diameter of joints, z along the axis
JOINT_SHAPES: dict[Pictogram, tuple[ShapeKind, np.ndarray]] = {
    "drum": ("cylinder", np.array([1.0, 1.0, DRUM])),
    "sleeve": ("cylinder", np.array([0.8, 0.8, 2.0])),
    "slider": ("box", SLIDER),
    "ball": ("ellipsoid", np.ones(3)),
    "plate": ("box", np.array([1.6, 1.6, 0.4])),
}


def joint_shape(joint: Joint, frame: Pose, diameter: float, actuated: bool) -> list[Shape]:
    """The joint, in the body in which its frame is `frame`."""
    drawn = entry_of(joint).drawn
    if not drawn:
        return []
    kind, edges = JOINT_SHAPES[drawn]
    role: Role = "drive" if actuated else "joint"
    return [_shape(kind, role, joint.child, frame.rotation @ joint_axes(joint), frame.position, edges * diameter)]


def bar(link: str, start: np.ndarray, end: np.ndarray, diameter: float) -> list[Shape]:
    """A bar between two points (3,) of a body; none where they coincide."""
    span = end - start
    length = float(np.linalg.norm(span))
    if length < SHORTEST_LENGTH:
        return []
    along = span / length
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    across /= np.linalg.norm(across)
    axes = np.column_stack([across, np.cross(along, across), along])
    return [_shape("cylinder", "link", link, axes, 0.5 * (start + end), np.array([diameter, diameter, length]))]


def inertia_box(link: str, inertial: Inertial) -> list[Shape]:
    """The homogeneous box with the mass, the centre of mass and the inertia; none of a point mass."""
    if inertial.mass <= 0.0:
        return []
    moments, axes = np.linalg.eigh(inertial.inertia)
    squares = 6.0 / inertial.mass * (moments.sum() - 2.0 * moments)
    edges = np.sqrt(np.maximum(squares, 0.0))
    if edges.max() < SHORTEST_LENGTH:
        return []
    if np.linalg.det(axes) < 0.0:
        axes = axes * [1.0, 1.0, -1.0]
    return [_shape("box", "inertia", link, axes, inertial.com, np.maximum(edges, FLATTEST * edges.max()))]


def _shape(kind: ShapeKind, role: Role, link: str, axes: np.ndarray, position: np.ndarray, edges: np.ndarray) -> Shape:
    x, y, z = map(float, edges)
    return Shape(kind, role, link, placement(axes, position), (x, y, z))
