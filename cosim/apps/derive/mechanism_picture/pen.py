"""Symbols of mechanics drawn on axes of matplotlib whose unit is an inch: bars, pins, sliders, springs, ground.

Names of joints and frames stand beside them, away from bodies and from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cosim.apps.derive.mechanism_picture.sketch import GROUND
from cosim.apps.derive.mechanism_picture.stage import PosedSketch
from cosim.output.plot import drawable

POINTS = 72.0  # per inch
INK, SPRING, GROUND_INK = "#2b333b", "#b4531f", "#59636e"
# of bodies in turn: steel, sand, sage, clay, lilac
FILLS = ("#bcd3e8", "#f0dcae", "#c3ddc4", "#ecc9bd", "#d5cbe6")
AXES = ("#b23a3a", "#3f7d46", "#33589c")  # x, y, z
PIN, BAR, OUTLINE = 0.052, 0.15, 0.9  # radius of a pin, width of a bar [in]; line [points]
HATCH, HATCH_GAP = 0.075, 0.058  # in
COILS = 7
TRIAD = 0.36  # length of the axes of the ground, in
CHARACTER, LINE = 0.058, 0.12  # width and height of a character of a label, in
ANGLES = np.linspace(0.5 * np.pi, 2.5 * np.pi, 16, endpoint=False)
SIDES = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
TOUCHING = 4.0  # cost of a label on another one
SLIDER = 0.13  # in, that the name of a joint at a slider is farther away
NEAR = 1e-3  # in, of what is at one place
VERTICAL = np.array([[0.0, -1.0], [0.0, 1.0]])  # where the ground of a joint is


class Pen:
    """Draws in one shade: 1 in full, 0 invisible on white. order: of matplotlib; what has a higher one lies above."""

    def __init__(self, axes: Any, shade: float = 1.0, order: float = 0.0) -> None:
        self.axes, self.shade, self.order = axes, shade, order

    def tint(self, color: Any) -> tuple[float, float, float]:
        """A colour paled by the shade."""
        from matplotlib.colors import to_rgb

        r, g, b = (1.0 - self.shade * (1.0 - c) for c in to_rgb(color))
        return r, g, b

    def line(
        self, points: np.ndarray, color: Any = INK, width: float = OUTLINE, above: float = 0.0, **more: Any
    ) -> None:
        """Through points (k, 2)."""
        from matplotlib.lines import Line2D

        style = {"solid_capstyle": "round", "solid_joinstyle": "round", **more}
        x, y = np.asarray(points, dtype=float).T
        self.axes.add_line(Line2D(x, y, color=self.tint(color), linewidth=width, zorder=self.order + above, **style))

    def polygon(
        self, points: np.ndarray, fill: Any, edge: Any = INK, width: float = OUTLINE, above: float = 0.0
    ) -> None:
        from matplotlib.patches import Polygon

        edge_color = "none" if edge is None else self.tint(edge)
        patch = Polygon(points, closed=True, facecolor=self.tint(fill), edgecolor=edge_color, linewidth=width,
                        joinstyle="round", zorder=self.order + above)  # fmt: skip
        self.axes.add_patch(patch)

    def bar(self, points: np.ndarray, fill: Any, width: float = BAR, above: float = 0.0) -> None:
        """A link with round ends between two points, or a plate with round corners, points (k, 2) around it."""
        closed = np.vstack([points, points[:1]]) if len(points) > 2 else points
        self.line(closed, INK, width * POINTS + 2 * OUTLINE, above)
        self.line(closed, fill, width * POINTS, above + 0.1)
        if len(points) > 2:
            self.polygon(points, fill, None, 0.0, above + 0.1)

    def disk(
        self,
        at: np.ndarray,
        radius: float,
        fill: Any = "white",
        edge: Any = INK,
        above: float = 0.0,
        width: float = 0.9,
    ) -> None:
        from matplotlib.patches import Circle

        style = {"facecolor": self.tint(fill), "edgecolor": "none" if edge is None else self.tint(edge)}
        where = float(at[0]), float(at[1])
        self.axes.add_patch(Circle(where, radius, linewidth=width, zorder=self.order + above, **style))

    def centre(self, at: np.ndarray, radius: float = 0.046, above: float = 0.0) -> None:
        """The mark of a centre of mass: a disk with two dark quarters."""
        from matplotlib.patches import Wedge

        self.disk(at, radius, "white", INK, above, 0.7)
        style = {"facecolor": self.tint(INK), "edgecolor": "none", "zorder": self.order + above + 0.1}
        for begin in (0, 180):
            self.axes.add_patch(Wedge((float(at[0]), float(at[1])), radius, begin, begin + 90, **style))

    def hatched(self, points: np.ndarray, side: int, above: float = 0.0) -> None:
        """A line of the ground through points (k, 2), hatched to the left (1) or the right (−1) of its direction."""
        self.line(points, INK, 1.1, above)
        for start, end in hatches(points, side):
            self.line(np.array([start, end]), GROUND_INK, 0.6, above)

    def pedestal(self, at: np.ndarray, down: np.ndarray, above: float = 0.0) -> None:
        """Of a joint of the ground: a triangle on hatched ground; down: unit vector (2,) from the pin to the ground."""
        across = np.array([-down[1], down[0]])
        foot = at + 0.2 * down
        self.polygon(np.array([at, foot + 0.11 * across, foot - 0.11 * across]), "white", INK, OUTLINE, above)
        self.hatched(np.array([foot - 0.19 * across, foot + 0.19 * across]), -1, above)

    def block(
        self, at: np.ndarray, along: np.ndarray, fill: Any, length: float, width: float, above: float = 0.0
    ) -> None:
        """A slider: a rectangle with its middle `at`, `along` a unit vector (2,)."""
        across = np.array([-along[1], along[0]]) * width / 2
        ahead = along * length / 2
        self.polygon(np.array([at + ahead + across, at - ahead + across, at - ahead - across, at + ahead - across]),
                     fill, INK, OUTLINE, above)  # fmt: skip

    def coil(self, start: np.ndarray, end: np.ndarray, above: float = 0.0) -> None:
        """A spring between two points."""
        self.line(coil(start, end), SPRING, 1.1, above)

    def spiral(self, at: np.ndarray, above: float = 0.0) -> None:
        """A torsion spring about a pin."""
        angle = np.linspace(0.25 * np.pi, 4.25 * np.pi, 90)
        radius = np.linspace(PIN + 0.022, PIN + 0.072, len(angle))
        self.line(at + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), SPRING, 0.8, above)

    def arrow(self, start: np.ndarray, end: np.ndarray, color: Any, width: float = 1.1, above: float = 0.0) -> None:
        from matplotlib.patches import FancyArrowPatch

        style = {"shrinkA": 0.0, "shrinkB": 0.0, "linewidth": width, "color": self.tint(color)}
        order = self.order + above
        patch = FancyArrowPatch(tuple(start), tuple(end), arrowstyle="-|>", mutation_scale=7.0, zorder=order, **style)
        self.axes.add_patch(patch)

    def text(self, at: np.ndarray, text: str, color: Any = INK, size: float = 7.5, above: float = 0.0) -> None:
        from matplotlib.patheffects import withStroke

        style = {"fontsize": size, "color": self.tint(color), "zorder": self.order + above}
        shown = self.axes.text(at[0], at[1], drawable(text), ha="center", va="center", **style)
        shown.set_path_effects([withStroke(linewidth=2.0, foreground="white")])


def hatches(points: np.ndarray, side: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(start, end) of short strokes at equal distances along a line through points (k, 2)."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    count = max(int(along[-1] / HATCH_GAP), 1)
    found = []
    for s in np.linspace(0.0, along[-1], count + 1)[:-1] + 0.5 * along[-1] / count:
        k = min(int(np.searchsorted(along, s, side="right")) - 1, len(steps) - 1)
        ahead = (points[k + 1] - points[k]) / max(steps[k], 1e-12)
        start = points[k] + ahead * (s - along[k])
        found.append((start, start + HATCH * (side * np.array([-ahead[1], ahead[0]]) - 0.8 * ahead)))
    return found


def coil(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """A zigzag (k, 2) between two points, straight at its ends."""
    span = end - start
    length = float(np.linalg.norm(span))
    if not length:
        return np.array([start, end])
    across = np.array([-span[1], span[0]]) / length * 0.07
    ends = min(0.18, 0.2 * length) / length
    inner = np.linspace(ends, 1.0 - ends, 2 * COILS + 1)
    steps = np.concatenate([[0.0], inner, [1.0]])
    sides = np.concatenate([[0.0, 0.0], np.tile([1.0, -1.0], COILS)[: len(inner) - 2], [0.0, 0.0]])
    return start + np.outer(steps, span) + np.outer(sides, across)


def hull(points: np.ndarray) -> np.ndarray:
    """The corners (k, 2) of the convex hull of points, counterclockwise (Andrew's monotone chain)."""
    ordered = sorted(set(map(tuple, np.asarray(points).round(9).tolist())))

    def half(along: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
        chain: list[tuple[float, ...]] = []
        for x, y in along:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], (x, y)) <= 1e-6:
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    return np.array(half(ordered) + half(ordered[::-1]) if len(ordered) > 1 else ordered)


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def draw_labels(stage: PosedSketch, pen: Pen, clearance: float) -> None:
    """In the last posture. clearance: between a joint and its name, in."""
    taken: list[tuple[np.ndarray, np.ndarray]] = []  # middles and half sizes
    sliders = [stage.joint_at(-1, joint) for joint in stage.sketch.joints if joint.entry.drawn == "slider"]
    for name, at, toward in _labelled(stage):
        sliding = any(np.linalg.norm(at - slider) < NEAR for slider in sliders)
        away = clearance + SLIDER * sliding
        half = 0.5 * np.array([CHARACTER * len(name), LINE])
        places = [at + side * away + np.clip(side * 1.6, -1.0, 1.0) * half for side in SIDES]
        costs = [
            max((float(side @ v) for v in toward), default=0.0)
            + TOUCHING * sum(bool(np.all(np.abs(place - other) < half + size)) for other, size in taken)
            for side, place in zip(SIDES, places, strict=True)
        ]
        place = places[int(np.argmin(np.round(costs, 6)))]
        taken.append((place, half))
        pen.text(place, name, above=14.0)
        pen.axes.update_datalim([place - half, place + half])


def draw_triad(stage: PosedSketch, pen: Pen, at: np.ndarray) -> None:
    """The axes of the ground that are seen, from a place (2,)."""
    for axis, name, color in zip(np.eye(3), "xyz", AXES, strict=True):
        ahead = stage.view.flat(axis)
        if np.linalg.norm(ahead) > 0.2:
            pen.arrow(at, at + TRIAD * ahead, color)
            pen.text(at + ahead * (TRIAD + 0.09), name, color)
            pen.axes.update_datalim([at, at + ahead * (TRIAD + 0.15)])


def _labelled(stage: PosedSketch) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
    """(name, place (2,), unit vectors (2,) towards what is there, also earlier postures) of joints and frames."""
    last = len(stage.poses) - 1
    for joint in stage.sketch.joints:
        if joint.placed:
            at = stage.joint_at(last, joint)
            grounded = GROUND in (joint.parent, joint.child)
            before = [stage.joint_at(k, joint) for k in stage.postures[:-1]]
            yield joint.name, at, [*_bodies_at(stage, last, at), *VERTICAL[: 2 * grounded], *_directions(at, before)]
    for name, body, pose in stage.sketch.frames:
        at = stage.at(last, body, pose.position)
        axes = [stage.direction(last, body, axis) for axis in pose.rotation.T]
        before = [stage.at(k, body, pose.position) for k in stage.postures[:-1]]
        yield name, at, [*_bodies_at(stage, last, at), *axes, *_directions(at, before)]


def _bodies_at(stage: PosedSketch, k: int, at: np.ndarray) -> list[np.ndarray]:
    """Directions from a place to the other points of the bodies that have a point there."""
    found = []
    for body in stage.bodies():
        points = stage.at(k, body.number, body.points)
        if (np.linalg.norm(points - at, axis=1) < NEAR).any():
            found += _directions(at, points)
    for piece in (piece for bent in stage.sketch.bent for piece in stage.pieces(k, bent)):
        if (np.linalg.norm(piece - at, axis=1) < NEAR).any():
            found += _directions(at, piece)
    return found


def _directions(at: np.ndarray, points: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Unit vectors from a place to points (2,), without those that lie there."""
    away = [point - at for point in points]
    return [v / np.linalg.norm(v) for v in away if np.linalg.norm(v) > NEAR]
