"""Spatial mechanisms seen from above and aside: links as round bars, joints as drums, balls and blocks, base plates.

They are convex solids as faces, shaded and drawn from back to front.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.derive.mechanism_picture.pen import (
    AXES,
    FILLS,
    GROUND_INK,
    INK,
    PIN,
    Pen,
    draw_labels,
    draw_triad,
    hull,
)
from cosim.apps.derive.mechanism_picture.sketch import GROUND, BentSketch, BodySketch, JointSketch, corners, distinct
from cosim.apps.derive.mechanism_picture.stage import PosedSketch
from cosim.output.scene.scene import Shape

BAR, DRUM, LENGTH, BALL = 0.065, 0.115, 0.3, 0.12  # radius of a bar; radius and length of a drum; radius of a ball, in
SLIDER = np.array([0.22, 0.22, 0.4])  # edges of the block of a prismatic joint, in
RAIL, PLATE, PLATE_HEIGHT, DROP = 0.035, 0.36, 0.07, 0.17  # radius; radius, height, distance below a joint, in
WALL = np.array([0.08, 0.6, 0.6])  # edges of the plate to which an elastic link is clamped, in
PLATFORM = np.array([0.95, 0.7, 0.07])  # edges of the plate of a moving base, in
METAL, PALE_GROUND = "#d5dbe2", "#e9ecef"
RAIL_OVERHANG = 0.55  # in, of a rail beyond the places that its slider reaches
ASIDE = 0.25  # in, largest distance of a centre of mass that is marked from the bars of its body
POINT_MASS, CLEARANCE = 0.085, 0.2  # radius of the ball of a point mass; of labels, in
SLIM = 0.045  # radius of an elastic link, in
SIDES = 44  # of a cylinder
LIGHT = np.array([-0.35, 0.62, 0.7])  # from where it comes, in axes of the view
DARKEST = 0.7  # of a face in the shade
RING = np.linspace(0.0, 2.0 * np.pi, SIDES, endpoint=False)
SIGNS = np.array(list(product((-0.5, 0.5), repeat=3)))
BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def draw_spatial(stage: PosedSketch, pens: list[Pen], ground: Pen, labels: bool) -> None:
    """pens: one for each posture, below each other."""
    feet = _feet(stage)
    for joint in stage.sketch.joints:
        if joint.parent == GROUND and joint.entry.drawn == "slider":
            _draw_ground_of_rail(stage, ground, joint)
    for bent in (bent for bent in stage.sketch.bent if bent.grounded):
        draw_solid(ground, _wall(stage, bent), above=0.5)
    for at in feet:
        _draw_plate(stage, ground, at)
    for k, pen in enumerate(pens):
        things = sorted(_things(stage, k), key=lambda solids: np.mean([solid.depth for solid in solids]))
        for n, solids in enumerate(things):
            draw_solids(pen, solids, above=1.0 + 8.0 * n / len(things))
        _draw_lines(stage, pen, k)
        for body in stage.bodies():
            _draw_centre(stage, pen, k, body)
    _draw_frames(stage, pens[-1], labels)
    corner = np.array([ground.axes.dataLim.x0 - 0.45, ground.axes.dataLim.y0 + 0.1])
    draw_triad(stage, ground, feet[0][:2] - np.array([0.85, 0.0]) if feet else corner)


def _seen(stage: PosedSketch, k: int, body: int, points: np.ndarray) -> np.ndarray:
    """(…, 3): points of a body in axes of the view, in."""
    return stage.scale * (stage.placed(k, body, points) @ stage.view.axes.T)


def _turned(stage: PosedSketch, k: int, body: int, axes: np.ndarray) -> np.ndarray:
    """(3, 3): axes (as columns) of a body in axes of the view."""
    return stage.view.axes @ stage.poses[k, body][:, :3] @ axes


def _things(stage: PosedSketch, k: int) -> Iterator[list[Solid]]:
    """Solids, the pieces of a bent link together."""
    yield from ([solid] for solid in _solids(stage, k))
    for bent in stage.sketch.bent:
        ends = [[_seen(stage, k, *end) for end in piece] for piece in bent.pieces]
        yield [cylinder(start, end, SLIM, FILLS[(bent.number - 1) % len(FILLS)]) for start, end in ends]


def _solids(stage: PosedSketch, k: int) -> Iterator[Solid]:
    for body in stage.bodies():
        yield from _body(stage, k, body)
    for body, shape in stage.sketch.visuals:
        if body == GROUND:
            yield _visual(stage, k, body, shape, PALE_GROUND)
    for joint in stage.sketch.joints:
        if not stage.visuals_of(joint.child):
            yield from _joint(stage, k, joint)
    for body, pose, radius in stage.sketch.wheels:
        centre, axle = _seen(stage, k, body, pose.position), _turned(stage, k, body, pose.rotation)[:, 2]
        yield cylinder(centre - 0.03 * axle, centre + 0.03 * axle, radius * stage.scale, FILLS[(body - 1) % len(FILLS)])
    for platform in stage.sketch.platforms[1:]:
        middle = _seen(stage, k, platform, np.zeros(3)) - DROP * _turned(stage, k, platform, np.eye(3))[:, 2]
        yield box(middle + SIGNS * PLATFORM @ _turned(stage, k, platform, np.eye(3)).T, PALE_GROUND)


def _body(stage: PosedSketch, k: int, body: BodySketch) -> Iterator[Solid]:
    """Bars from where its own joint holds it to all other points; a box of one that has no such joint."""
    fill = FILLS[(body.number - 1) % len(FILLS)]
    if shapes := stage.visuals_of(body.number):
        yield from (_visual(stage, k, body.number, shape, fill) for shape in shapes)
        return
    if any(wheel == body.number for wheel, _, _ in stage.sketch.wheels):
        return
    held = any(joint.placed for joint in stage.joints_of(body.number))
    start = body.points[0] if held else body.com
    ends = _bar_ends(start, body.points, BAR / stage.scale)
    if not held and len(body.box):
        yield box(_seen(stage, k, body.number, body.box), fill)
    for end in ends if held or not len(body.box) else []:
        yield cylinder(_seen(stage, k, body.number, start), _seen(stage, k, body.number, end), BAR, fill)
    if not len(body.box) and body.mass:
        yield ellipsoid(_seen(stage, k, body.number, body.com), POINT_MASS * np.eye(3), fill)


def _bar_ends(start: np.ndarray, points: np.ndarray, radius: float) -> list[np.ndarray]:
    """The points (3,) to which a bar leads, without those within the bar to another one."""
    ends: list[np.ndarray] = []
    for point in sorted(points, key=lambda point: -float(np.linalg.norm(point - start))):
        if all(_distance(point, start, end) > 1.5 * radius for end in (start, *ends)):
            ends.append(point)
    return ends


def _visual(stage: PosedSketch, k: int, body: int, shape: Shape, fill: str) -> Solid:
    points = _seen(stage, k, body, corners(shape))
    color = fill if shape.color is None else shape.color[:3]
    if shape.kind == "box":
        return box(points, color)
    x, y, z = (points[number] - points[0] for number in (4, 2, 1))
    middle = points.mean(axis=0)
    if shape.kind == "cylinder":
        return cylinder(middle - z / 2, middle + z / 2, float(np.linalg.norm(x)) / 2, color)
    return ellipsoid(middle, 0.5 * np.column_stack([x, y, z]), color)


def _joint(stage: PosedSketch, k: int, joint: JointSketch) -> Iterator[Solid]:
    at, axes = _seen(stage, k, joint.child, joint.at.position), _turned(stage, k, joint.child, joint.at.rotation)
    if joint.entry.drawn in ("drum", "sleeve"):
        yield cylinder(at - LENGTH / 2 * axes[:, 2], at + LENGTH / 2 * axes[:, 2], DRUM, METAL)
    elif joint.entry.drawn == "ball":
        yield ellipsoid(at, BALL * np.eye(3), METAL)
    elif joint.entry.drawn == "slider":
        yield box(at + SIGNS * SLIDER @ axes.T, METAL)
        yield cylinder(*_rail(stage, k, joint), RAIL, METAL)


def _rail(stage: PosedSketch, k: int, joint: JointSketch) -> tuple[np.ndarray, np.ndarray]:
    """Its ends (3,) on the parent: as far as the joint moves in all postures."""
    start = _seen(stage, k, joint.parent, joint.on.position)
    along = _turned(stage, k, joint.parent, joint.on.rotation)[:, 2]
    reached = [0.0]
    for each in stage.postures:
        own = _seen(stage, each, joint.child, joint.at.position) - _seen(stage, each, joint.parent, joint.on.position)
        reached.append(float(own @ _turned(stage, each, joint.parent, joint.on.rotation)[:, 2]))
    return start + along * (min(reached) - RAIL_OVERHANG), start + along * (max(reached) + RAIL_OVERHANG)


# --- the ground ----------------------------------------------------------------------------------------


def _up(stage: PosedSketch) -> np.ndarray:
    """The vertical of the ground in axes of the view."""
    return stage.view.axes @ stage.view.up


def _feet(stage: PosedSketch) -> list[np.ndarray]:
    """Where the ground holds bodies: the middles (3,) of plates, in axes of the view."""
    found = []
    for joint in stage.sketch.joints if not stage.visuals_of(GROUND) else ():
        if joint.parent == GROUND and joint.placed and joint.entry.drawn != "slider":
            at = joint.on.position
            above = float(at @ stage.view.up)
            on_axis = above > 0.0 and np.linalg.norm(at - above * stage.view.up) < 1e-6
            foot = _seen(stage, 0, GROUND, np.zeros(3) if on_axis else at)
            found.append(foot if on_axis and above * stage.scale > DROP else foot - DROP * _up(stage))
    return distinct(found)


def _draw_ground_of_rail(stage: PosedSketch, pen: Pen, joint: JointSketch) -> None:
    """A hatched line below a rail, beside a vertical one."""
    ends = np.array([end[:2] for end in _rail(stage, 0, joint)])
    ends = ends[np.argsort(ends[:, 0])]
    steep = abs(ends[1, 0] - ends[0, 0]) < 0.2 * abs(ends[1, 1] - ends[0, 1])
    pen.hatched(ends + (np.array([0.2, 0.0]) if steep else np.array([0.0, -0.2])), -1 if ends[1, 0] > ends[0, 0] else 1)


def _draw_plate(stage: PosedSketch, pen: Pen, at: np.ndarray) -> None:
    """A disk, hatched below, and a post to the joint above it."""
    up = _up(stage)
    plate = cylinder(at - PLATE_HEIGHT * up, at, PLATE, PALE_GROUND)
    rim = plate.points[plate.points[:, 2] > at[2] - 0.9 * PLATE][:, :2]
    low = at[:2] - PLATE_HEIGHT * up[:2]
    for x in np.linspace(-0.92, 0.92, 13) * PLATE:
        below = rim[np.abs(rim[:, 0] - low[0] - x).argmin()]
        start = np.array([low[0] + x, _lowest(plate, low[0] + x, float(below[1]))])
        pen.line(np.array([start, start + np.array([-0.06, -0.075])]), GROUND_INK, 0.6, above=0.0)
    draw_solid(pen, plate, above=0.2)
    joints = [j for j in stage.sketch.joints if j.parent == GROUND and j.placed]
    for joint in joints:
        held = _seen(stage, 0, GROUND, joint.on.position)
        offset = (held - at) - up * float((held - at) @ up)
        if np.linalg.norm(offset) < 1e-6 and float((held - at) @ up) > 0.5 * PIN:
            draw_solid(pen, cylinder(at, held, 1.15 * BAR, PALE_GROUND), above=0.4)


def _wall(stage: PosedSketch, bent: BentSketch) -> Solid:
    """To which an elastic link of the ground is clamped: a plate behind its root."""
    at, toward = stage.root(bent)
    across = np.cross(toward, np.eye(3)[np.abs(toward).argmin()])
    across /= np.linalg.norm(across)
    axes = stage.view.axes @ np.column_stack([toward, across, np.cross(toward, across)])
    middle = stage.scale * stage.view.axes @ at - 0.5 * WALL[0] * axes[:, 0]
    return box(middle + SIGNS * WALL @ axes.T, PALE_GROUND)


def _lowest(plate: Solid, x: float, otherwise: float) -> float:
    """The height of the lower edge of a solid's outline at x."""
    from cosim.apps.derive.mechanism_picture.pen import hull

    outline = hull(plate.points[:, :2])
    first = int(outline[:, 0].argmin())
    lower = np.roll(outline, -first, axis=0)
    lower = lower[: int(lower[:, 0].argmax()) + 1]
    return float(np.interp(x, lower[:, 0], lower[:, 1])) if len(lower) > 1 else otherwise


# --- lines ---------------------------------------------------------------------------------------------


def _draw_lines(stage: PosedSketch, pen: Pen, k: int) -> None:
    for start, end in stage.sketch.rods:
        pen.line(np.array([stage.at(k, *start), stage.at(k, *end)]), INK, 1.6, above=9.5)
    for start, end in stage.sketch.springs:
        pen.coil(stage.at(k, *start), stage.at(k, *end), above=9.6)


def _draw_centre(stage: PosedSketch, pen: Pen, k: int, body: BodySketch) -> None:
    """The mark of a centre of mass on the bars; none far beside them, where it would seem to be another body."""
    at, seen = stage.at(k, body.number, body.com), stage.at(k, body.number, body.points)
    away = min((_distance(at, seen[0], end) for end in seen), default=0.0)
    if away < ASIDE and len(body.box):
        pen.centre(at, 0.036, above=11.0)


def _distance(at: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
    """From a point (2,) or (3,) to the line between two others."""
    span = end - start
    along = np.clip((at - start) @ span / max(float(span @ span), 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(start + along * span - at))


def _draw_frames(stage: PosedSketch, pen: Pen, labels: bool) -> None:
    for _, body, pose in stage.sketch.frames:
        at = stage.at(-1, body, pose.position)
        for axis, color in zip(pose.rotation.T, AXES, strict=True):
            pen.arrow(at, at + 0.32 * stage.view.flat(stage.poses[-1, body][:, :3] @ axis), color, above=12.0)
    if labels:
        draw_labels(stage, pen, CLEARANCE)


class Solid(NamedTuple):
    """points (k, 3) in axes of the view, in; faces: numbers of points, counterclockwise from outside."""

    points: np.ndarray
    faces: Sequence[Sequence[int]]
    fill: Any  # a colour of matplotlib

    @property
    def depth(self) -> float:
        return float(self.points[:, 2].mean())


def cylinder(start: np.ndarray, end: np.ndarray, radius: float, fill: Any) -> Solid:
    """Between two points (3,)."""
    along = (end - start) / np.linalg.norm(end - start)
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    across /= np.linalg.norm(across)
    rim = radius * (np.outer(np.cos(RING), across) + np.outer(np.sin(RING), np.cross(along, across)))
    sides = [(k, (k + 1) % SIDES, (k + 1) % SIDES + SIDES, k + SIDES) for k in range(SIDES)]
    return Solid(np.vstack([start + rim, end + rim]), [*sides, [*range(SIDES)][::-1], [*range(SIDES, 2 * SIDES)]], fill)


def box(corners: np.ndarray, fill: Any) -> Solid:
    """corners (8, 3) in the order of SIGNS."""
    return Solid(corners, BOX_FACES, fill)


def ellipsoid(centre: np.ndarray, half_axes: np.ndarray, fill: Any) -> Solid:
    """half_axes (3, 3): its half axes as columns."""
    heights = np.linspace(-1.0, 1.0, SIDES // 2 + 1)[1:-1]
    rings = [np.column_stack([np.sqrt(1.0 - h * h) * np.cos(RING), np.sqrt(1.0 - h * h) * np.sin(RING),
                              np.full(SIDES, h)]) for h in np.sin(0.5 * np.pi * heights)]  # fmt: skip
    n = len(rings)
    faces = [
        (r * SIDES + k, r * SIDES + (k + 1) % SIDES, (r + 1) * SIDES + (k + 1) % SIDES, (r + 1) * SIDES + k)
        for r in range(n - 1)
        for k in range(SIDES)
    ]
    caps = [[*range(SIDES)][::-1], [*range((n - 1) * SIDES, n * SIDES)]]
    return Solid(np.vstack(rings) @ half_axes.T + centre, [*faces, *caps], fill)


def draw_solids(pen: Pen, solids: Sequence[Solid], above: float) -> None:
    """As one thing: the outlines, and above all of them the faces towards the eye."""
    for solid in sorted(solids, key=lambda solid: solid.depth):
        draw_solid(pen, solid, above)


def draw_solid(pen: Pen, solid: Solid, above: float) -> None:
    """Its outline, and the faces towards the eye."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    pen.polygon(hull(solid.points[:, :2]), solid.fill, INK, 1.5, above)
    light = LIGHT / np.linalg.norm(LIGHT)
    centre = solid.points.mean(axis=0)
    shown, colors = [], []
    for face in solid.faces:
        corners = solid.points[list(face)]
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[1])
        normal *= np.sign(normal @ (corners.mean(axis=0) - centre)) / max(float(np.linalg.norm(normal)), 1e-12)
        if normal[2] > 0.0:
            bright = DARKEST + (1.08 - DARKEST) * max(float(normal @ light), 0.0)
            shown.append(corners[:, :2])
            colors.append(pen.tint([min(c * bright, 1.0) for c in to_rgb(solid.fill)]))
    faces = PolyCollection(
        shown, facecolors=colors, edgecolors=colors, linewidths=0.35, zorder=pen.order + above + 1e-4
    )
    pen.axes.add_collection(faces, autolim=False)
