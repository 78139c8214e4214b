"""Planar mechanisms: links as bars and plates, pins, sliders on guides, curves, hatched ground."""

from __future__ import annotations

import numpy as np

from cosim.apps.derive.mechanism_picture.pen import (
    AXES,
    BAR,
    FILLS,
    GROUND_INK,
    INK,
    PIN,
    Pen,
    draw_labels,
    draw_triad,
    hull,
)
from cosim.apps.derive.mechanism_picture.sketch import (
    GROUND,
    SAME_POINT,
    BentSketch,
    BodySketch,
    CurveSketch,
    JointSketch,
    corners,
    distinct,
    longest,
)
from cosim.apps.derive.mechanism_picture.stage import PosedSketch
from cosim.mechanics.multibody.mechanism import Pose

WALL = 0.22  # half the length of the ground at the root of a clamped elastic link, in
SLIM = 0.09  # width of an elastic link, in
BLOCK = 0.42, 0.25  # length and width of a slider, in
GUIDE = 0.28  # in, of a guide beyond the slider
TELESCOPE = 1.2  # in, least distance of a rod's eye from the pivot of its cylinder
BARREL = 0.62  # length of a cylinder over the least distance of the eye
MASS = 0.072  # radius of the mark of a point mass, in
WHEEL = 0.17  # in, largest radius of a body that turns about its centre of mass
CLEARANCE = 0.1  # of labels, in
CURVE_OVERHANG = 0.45  # in, of a curve beyond the points that are reached
DIRECTIONS = np.array([[0.0, -1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])  # of pedestals, the first that is free


def draw_planar(stage: PosedSketch, pens: list[Pen], ground: Pen, labels: bool) -> None:
    """pens: one for each posture, below each other."""
    _draw_ground(stage, ground)
    for k, pen in enumerate(pens):
        for body in stage.bodies():
            _draw_body(stage, pen, k, body)
        for bent in stage.sketch.bent:
            for piece in stage.pieces(k, bent):
                pen.bar(piece, fill_of(bent), SLIM, above=1.0 + 0.01 * bent.number)
        for start, end in stage.sketch.rods:
            pen.line(np.array([stage.at(k, *start), stage.at(k, *end)]), INK, 1.6, above=3.0)
        for start, end in stage.sketch.springs:
            pen.coil(stage.at(k, *start), stage.at(k, *end), above=5.0)
        for joint in stage.sketch.joints:
            _draw_joint(stage, pen, k, joint)
        for ends in (*stage.sketch.springs, *stage.sketch.rods, *((c.point,) for c in stage.sketch.curves)):
            for end in ends:
                pen.disk(stage.at(k, *end), 0.6 * PIN, INK, INK, above=6.0)
        for body in stage.bodies():
            _draw_mass(stage, pen, k, body)
    for _, body, pose in stage.sketch.frames:
        _draw_frame(stage, pens[-1], body, pose)
    for curve in stage.sketch.curves:
        _draw_curve(stage, Pen(ground.axes, order=pens[-1].order + 9.0), curve)
    if labels:
        draw_labels(stage, pens[-1], CLEARANCE)
    box = ground.axes.dataLim
    draw_triad(stage, ground, np.array([box.x0 - 0.6, box.y0]))


# --- the ground ----------------------------------------------------------------------------------------


def _draw_ground(stage: PosedSketch, pen: Pen) -> None:
    places: list[np.ndarray] = []
    for joint in stage.sketch.joints:
        at = stage.at(0, joint.parent, joint.on.position) if joint.parent == GROUND else stage.joint_at(0, joint)
        if GROUND not in (joint.parent, joint.child) or not joint.placed:
            continue
        if joint.entry.drawn == "slider":
            _draw_guide(stage, pen, joint)
        elif len(distinct([*places, at])) > len(places):
            places.append(at)
            pen.pedestal(at, _free_direction(stage, joint, at))
    for at, toward in (stage.root(bent) for bent in stage.sketch.bent if bent.grounded):
        seen, along = stage.scale * stage.view.flat(at), stage.view.flat(toward)
        across = WALL * np.array([-along[1], along[0]])
        pen.hatched(np.array([seen - across, seen + across]), 1)
    for end in (end for pair in (*stage.sketch.springs, *stage.sketch.rods) for end in pair if end.body == GROUND):
        at = stage.at(0, *end)
        across = _toward_rest(stage, at)
        pen.hatched(np.array([at - 0.17 * across, at + 0.17 * across]), 1)


def _free_direction(stage: PosedSketch, joint: JointSketch, at: np.ndarray) -> np.ndarray:
    """Down, unless bodies at the joint hang there in a posture."""
    links = {joint.child, joint.parent} - {GROUND}
    links |= {j.child for j in stage.sketch.joints if j.parent == GROUND and j.placed
              and np.linalg.norm(stage.at(0, GROUND, j.on.position) - at) < PIN}  # fmt: skip
    toward = []
    for k in stage.postures:
        for body in stage.bodies():
            if body.number in links:
                away = stage.at(k, body.number, body.points) - at
                toward += [v / np.linalg.norm(v) for v in away if np.linalg.norm(v) > PIN]
    worst = np.array([max((float(v @ d) for v in toward), default=-1.0) for d in DIRECTIONS])
    free = np.flatnonzero(worst < 0.75)
    return DIRECTIONS[free[0] if len(free) else int(worst.argmin())]


def _toward_rest(stage: PosedSketch, at: np.ndarray) -> np.ndarray:
    """The direction of a hatched line at a point (2,) of the ground, horizontal or vertical: at right angles to the
    direction of the bodies, with the ground to its left."""
    middle = np.mean([stage.at(k, b.number, b.com) for k in stage.postures for b in stage.bodies()], axis=0)
    away = at - middle
    away = np.array([0.0, np.sign(away[1])]) if abs(away[1]) >= abs(away[0]) else np.array([np.sign(away[0]), 0.0])
    return np.array([away[1], -away[0]])


def _draw_guide(stage: PosedSketch, pen: Pen, joint: JointSketch) -> None:
    """The hatched line on which a slider of the ground moves, below it."""
    along = stage.direction(0, joint.parent, joint.on.rotation[:, 2])
    along = along if along[0] > 1e-9 or (abs(along[0]) <= 1e-9 and along[1] > 0) else -along
    places = np.array([stage.joint_at(k, joint) for k in stage.postures])
    below = np.array([along[1], -along[0]])
    reach = (places - places[0]) @ along
    ends = np.array([reach.min() - BLOCK[0] / 2 - GUIDE, reach.max() + BLOCK[0] / 2 + GUIDE])
    pen.hatched(places[0] + np.outer(ends, along) + below * BLOCK[1] / 2, -1)


def _draw_curve(stage: PosedSketch, pen: Pen, curve: CurveSketch) -> None:
    """Hatched on the side on which the centres of mass are not, in the first posture."""
    inverse = [_in_frame(stage, k, curve) for k in stage.postures]
    xs = np.array([point[0] for point in inverse])
    beyond = CURVE_OVERHANG / stage.scale
    x = np.linspace(xs.min() - beyond, xs.max() + beyond, 120)
    points = np.column_stack([x, [float(curve.curve(float(each))) for each in x], np.zeros(len(x))])
    seen = stage.at(0, curve.body, points @ curve.on.rotation.T + curve.on.position)
    steps = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(seen, axis=0), axis=1))])
    reached = np.interp([xs.min(), xs.max()], x, steps)
    seen = seen[(steps >= reached[0] - CURVE_OVERHANG) & (steps <= reached[1] + CURVE_OVERHANG)]
    centre = np.mean([stage.at(0, b.number, b.com) for b in stage.bodies()], axis=0)
    nearest = min(int(np.linalg.norm(seen - centre, axis=1).argmin()), len(seen) - 2)
    ahead, to = seen[nearest + 1] - seen[nearest], centre - seen[nearest]
    pen.hatched(seen, -1 if ahead[0] * to[1] - ahead[1] * to[0] > 0.0 else 1)


def _in_frame(stage: PosedSketch, k: int, curve: CurveSketch) -> np.ndarray:
    """(3,): the point on a curve, in the frame of the curve [m]."""
    pose = stage.poses[k, curve.body]
    local = (stage.placed(k, *curve.point) - pose[:, 3]) @ pose[:, :3]
    return (local - curve.on.position) @ curve.on.rotation


# --- bodies --------------------------------------------------------------------------------------------


def _draw_body(stage: PosedSketch, pen: Pen, k: int, body: BodySketch) -> None:
    fill, above = fill_of(body), 1.0 + 0.01 * body.number
    seen = distinct(list(stage.at(k, body.number, body.points)))
    slides = [joint for joint in stage.joints_of(body.number) if joint.entry.drawn == "slider"]
    cylinders = [joint for joint in stage.sketch.joints if joint.parent == body.number and telescoped(stage, joint)]
    for joint in cylinders:
        _draw_barrel(stage, pen, k, joint, fill, above + 0.5)
    for joint in (joint for joint in slides if telescoped(stage, joint)):
        _draw_rod(stage, pen, k, joint, fill, above)
        return
    if shapes := stage.visuals_of(body.number):
        for shape in shapes:
            pen.polygon(hull(stage.at(k, body.number, corners(shape))), fill, above=above)
    elif not slides and _is_compact(stage, body):
        _draw_compact(stage, pen, k, body, fill, above)
    elif len(seen) > 1 and not (cylinders and longest(np.array(seen)) < PIN):
        outline = hull(np.array(seen))
        if not cylinders or len(outline) > 2:
            pen.bar(outline, fill, above=above)
    elif len(body.box) and not slides and not cylinders:
        _draw_compact(stage, pen, k, body, fill, above)
    for joint in slides:
        along = stage.direction(k, joint.parent, joint.on.rotation[:, 2])
        pen.block(stage.joint_at(k, joint), along, fill, *BLOCK, above=above + 0.4)


def fill_of(body: BodySketch | BentSketch) -> str:
    return FILLS[(body.number - 1) % len(FILLS)]


def _is_compact(stage: PosedSketch, body: BodySketch) -> bool:
    """Whether a body that is free in the plane is held within the box of its inertia, or nowhere."""
    if not len(body.box) or any(joint.placed for joint in stage.joints_of(body.number)):
        return False
    sides = body.box - body.com
    return bool(np.all(np.abs(body.points - body.com) <= 1.05 * np.abs(sides).max(axis=0) + SAME_POINT))


def _draw_compact(stage: PosedSketch, pen: Pen, k: int, body: BodySketch, fill: str, above: float) -> None:
    """A body that is held nowhere or in its centre of mass: the outline of the box of its inertia, or a small wheel."""
    outline = hull(np.vstack([stage.at(k, body.number, body.box), stage.at(k, body.number, body.points)]))
    if any(joint.placed for joint in stage.joints_of(body.number)):
        pen.disk(stage.at(k, body.number, body.com), min(longest(outline) / 2, WHEEL), fill, INK, above)
    else:
        pen.bar(outline, fill, 0.06, above)


def telescoped(stage: PosedSketch, joint: JointSketch) -> bool:
    """Whether a prismatic joint is drawn as a rod in a cylinder: its child is held far from where its parent is."""
    if joint.entry.drawn != "slider" or joint.parent == GROUND:
        return False
    return float(_distances(stage, joint).min()) > TELESCOPE


def _distances(stage: PosedSketch, joint: JointSketch) -> np.ndarray:
    """(m,): from the joint's place on its parent to that on its child in every posture, in."""
    ends = [stage.joint_at(k, joint) - stage.at(k, joint.parent, joint.on.position) for k in stage.postures]
    return np.linalg.norm(ends, axis=1)


def _draw_barrel(stage: PosedSketch, pen: Pen, k: int, joint: JointSketch, fill: str, above: float) -> None:
    pivot = stage.at(k, joint.parent, joint.on.position)
    along = stage.joint_at(k, joint) - pivot
    along = along / np.linalg.norm(along)
    length = BARREL * float(_distances(stage, joint).min())
    pen.bar(np.array([pivot, pivot + 0.25 * along]), fill, above=above - 0.6)
    pen.block(pivot + along * (0.2 + (length - 0.2) / 2), along, fill, length - 0.2, 0.3, above)
    inner = length - 0.2 - 0.1
    pen.block(pivot + along * (0.25 + inner / 2), along, "white", inner, 0.2, above + 0.05)


def _draw_rod(stage: PosedSketch, pen: Pen, k: int, joint: JointSketch, fill: str, above: float) -> None:
    """From the eye to the piston, which stays in the cylinder in every posture."""
    pivot, eye = stage.at(k, joint.parent, joint.on.position), stage.joint_at(k, joint)
    distances = _distances(stage, joint)
    length = 0.5 * (distances.max() - BARREL * distances.min() + distances.min())
    along = (eye - pivot) / np.linalg.norm(eye - pivot)
    piston = eye - length * along
    pen.line(np.array([piston, eye]), INK, 72 * 0.09 + 1.8, above + 1.0, solid_capstyle="butt")
    pen.line(np.array([piston, eye]), fill, 72 * 0.09, above + 1.1, solid_capstyle="butt")
    pen.block(piston, along, GROUND_INK, 0.09, 0.2, above + 1.2)
    pen.disk(eye, BAR / 2, fill, INK, above + 1.3)


def _draw_joint(stage: PosedSketch, pen: Pen, k: int, joint: JointSketch) -> None:
    if joint.entry.drawn != "drum":
        return
    at = stage.joint_at(k, joint)
    if joint.sprung:
        pen.spiral(at, above=6.1)
    pen.disk(at, PIN, "white", INK, 6.5)


def _draw_mass(stage: PosedSketch, pen: Pen, k: int, body: BodySketch) -> None:
    """The centre of mass, a full disk for a point mass. None at a pin, which would hide it."""
    at = stage.at(k, body.number, body.com)
    drums = (joint for joint in stage.sketch.joints if joint.entry.drawn == "drum")
    pins = [stage.joint_at(k, joint) for joint in drums if body.number in (joint.child, joint.parent)]
    if any(np.linalg.norm(pin - at) < 2.5 * PIN for pin in pins):
        return
    if len(body.box):
        pen.centre(at, above=7.0)
    else:
        pen.disk(at, MASS, INK, INK, 7.0)


def _draw_frame(stage: PosedSketch, pen: Pen, body: int, pose: Pose) -> None:
    at = stage.at(-1, body, pose.position)
    for axis, color in zip(pose.rotation.T, AXES, strict=True):
        ahead = stage.view.flat(stage.poses[-1, body][:, :3] @ axis)
        if np.linalg.norm(ahead) > 0.2:
            pen.arrow(at, at + 0.3 * ahead, color, above=8.0)
