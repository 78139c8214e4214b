"""The picture of a mechanism's graph: joints are arrows, cut joints dashed, lengths in inches.

Bodies stand in layers by their depth, from body 0 on (`layered`). A cut joint that spans several layers has waypoints,
so that its curve goes around bodies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cosim.apps.derive import layered
from cosim.apps.derive.layered import EdgeSegment, GraphLayout, LayeredGraph, Vertex
from cosim.apps.derive.picture import (
    BACKING,
    Box,
    GraphPanel,
    Point,
    break_name,
    overlap,
    save_panels,
    text_size,
    widest_label,
)
from cosim.core.errors import InputError
from cosim.mechanics.multibody.description.structure import Structure
from cosim.output.plot import check_format

MAX_BODIES = 200  # in a picture

BODY: dict[str, Any] = {"facecolor": "#eef4fb", "edgecolor": "#3d4650", "linewidth": 1.1, "zorder": 4}
TREE: dict[str, Any] = {"color": "#3a73ad"}
CUT: dict[str, Any] = {"color": "#c8420b", "linestyle": (0, (4.0, 2.5))}
RADIUS = 0.19  # of a body
GAP, WAYPOINT_GAP = 0.86, 0.45  # between bodies of a layer; between a waypoint of a cut joint and its neighbour
MIN_LAYER_GAP = 0.55  # between the rims of bodies in neighbouring layers
WAYPOINT_WEIGHT = 0.01  # relative to a body's
LABEL_POSITIONS = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72)  # on a curve, in order of preference
STEEP_LABEL_POSITIONS = 0.76, 0.68, 0.6, 0.5, 0.4  # on a steep curve: near its end, away from other curves
BEYOND_PICTURE = 1e3  # larger than every picture
BOW = 0.34  # distance between parallel joints of two bodies
FAN = 0.16  # additional distance of layers per height of a joint


def plot_graph(path: str | Path, structure: Structure, title: str, note: str = "") -> None:
    """Draw a graph into a png, svg or pdf file, by the suffix of `path`, with `title` and `note` above it.

    Raises InputError for another suffix, more than 200 bodies, or a path that cannot be written.
    """
    check_format(path)
    if structure.size > MAX_BODIES:
        what = f"a graph of {structure.size} bodies is too large to draw ({MAX_BODIES} at most); leave the file out"
        raise InputError(what, str(path))

    save_panels(path, [_panel(structure, title, note)])


def _panel(structure: Structure, title: str, note: str) -> GraphPanel:
    layout = lay_out(structure)
    curves = edge_curves(structure, layout)
    paths = [_path(curve) for curve in curves]
    corners = [tuple(corner) for path in paths for corner in path.get_extents().get_points()]
    xs, ys = zip(*layout.places.values(), *corners, strict=True)
    side = 0.25 + max(RADIUS, widest_label(structure.bodies) / 2)

    def draw(axes: Any) -> None:
        labels = [body_box(name, layout.places[k]) for k, name in enumerate(structure.bodies)]
        for edge, curve, path in zip(structure.edges, curves, paths, strict=True):
            style = CUT if edge.number > structure.size else TREE
            box = place_label(break_name(edge.joint.name), curve, labels)
            labels.append(box)
            _draw_edge(axes, edge.joint.name, path, box, style)
        for number, name in enumerate(structure.bodies):
            _draw_body(axes, number, name, layout.places[number])

    return GraphPanel(title, note, (min(xs) - side, min(ys) - 0.65), (max(xs) + side, max(ys) + 0.45), draw)


def _path(points: Sequence[Point]) -> Any:
    """A path of matplotlib from the points of cubic Bézier curves."""
    from matplotlib.path import Path as Curve

    return Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * (len(points) - 1)])


def _draw_edge(axes: Any, name: str, path: Any, box: Box, style: Mapping[str, Any]) -> None:
    """An arrow, with the joint's name in its box."""
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=9.0, linewidth=1.2, zorder=2, **style))
    axes.text(
        *box[:2], break_name(name), ha="center", va="center", fontsize=7.5, linespacing=1.0, color=style["color"],
        bbox={**BACKING, "alpha": 1.0}, zorder=3,
    )  # fmt: skip


def _draw_body(axes: Any, number: int, name: str, place: Point) -> None:
    from matplotlib.patches import Circle, Rectangle

    x, y = place
    if number == 0:
        corner = x - RADIUS, y - RADIUS
        axes.add_patch(Rectangle(corner, 2 * RADIUS, 2 * RADIUS, **BODY, hatch="/////"))
        axes.add_patch(Circle(place, 0.55 * RADIUS, facecolor=BODY["facecolor"], linewidth=0.0, zorder=5))
    else:
        axes.add_patch(Circle(place, RADIUS, **BODY))
    axes.text(x, y, f"{number}", ha="center", va="center_baseline", fontsize=9.0, weight="bold", zorder=6)
    axes.text(
        x, y - RADIUS - 0.05, break_name(name), ha="center", va="top", fontsize=8.0, linespacing=1.0,
        bbox=BACKING, zorder=4,
    )  # fmt: skip


def lay_out(structure: Structure) -> GraphLayout:
    """The positions of bodies and waypoints, and the segments of the edges."""
    return layered.lay_out(
        LayeredGraph(
            layers=structure.depths,
            edges={edge.number: (edge.start, edge.end) for edge in structure.edges},
            spacing=lambda one, other: WAYPOINT_GAP if isinstance(one, tuple) or isinstance(other, tuple) else GAP,
            weight=lambda vertex: WAYPOINT_WEIGHT if isinstance(vertex, tuple) else 1.0,
        ),
        distance=lambda rows, depth: _distance(structure, rows, depth),
        strip_spacing=1.5 * GAP,
    )


def _distance(structure: Structure, rows: Mapping[Vertex, float], depth: int) -> float:
    """The distance of a layer from the one before: room for the names of their bodies and of the joints between them,
    more where joints fan out."""
    depths = structure.depths
    spans = [(edge, *sorted((depths[edge.start], depths[edge.end]))) for edge in structure.edges]
    joints = [edge for edge, low, high in spans if low < depth <= high]
    fan = max((abs(rows[e.start] - rows[e.end]) for e in joints if e.number <= structure.size), default=0.0)
    bodies = list(zip(structure.bodies, depths, strict=True))
    before, here = ([name for name, d in bodies if d == of] for of in (depth - 1, depth))
    between = widest_label(e.joint.name for e in joints) + MIN_LAYER_GAP + min(FAN * fan, 1.0)
    return max(between + 2 * RADIUS, (widest_label(before) + widest_label(here)) / 2 + 0.15)


def _attachment_heights(layout: GraphLayout) -> dict[tuple[int, Vertex], float]:
    """The height above the centre of a vertex at which each edge touches its rim. Edges on one side of a body are
    separated, in the order of the heights of their other ends."""
    touching: dict[tuple[Vertex, int], list[tuple[float, int]]] = defaultdict(list)
    for number, segments in layout.segments.items():
        for segment in segments:
            y0, y1 = layout.places[segment.start][1], layout.places[segment.end][1]
            touching[segment.start, segment.leaves].append((_attachment_order(y0, y1, segment), number))
            touching[segment.end, segment.enters].append((_attachment_order(y1, y0, segment), number))
    heights = {}
    for (vertex, _), edges in touching.items():
        step = 0.0 if isinstance(vertex, tuple) else min(0.12, 1.5 * RADIUS / len(edges))
        for k, (_, number) in enumerate(sorted(edges)):
            heights[number, vertex] = step * (k - (len(edges) - 1) / 2)
    return heights


def _attachment_order(here: float, there: float, segment: EdgeSegment) -> float:
    """The sort key of edges on one side of a body: the height of their other end. Edges that turn back are nested,
    the shortest outermost on the body."""
    if segment.leaves != segment.enters:
        return there
    return BEYOND_PICTURE - (there - here) if there > here else (here - there) - BEYOND_PICTURE


def _cubic(segment: EdgeSegment, layout: GraphLayout, above_start: float, above_end: float, bow: float) -> list[Point]:
    """The four points of a cubic Bézier curve whose ends are on the rims; it is horizontal there if `bow` is 0."""

    def rim(vertex: Vertex, side: int, above: float) -> Point:
        x, y = layout.places[vertex]
        # the ground is a box
        reach = 0.0 if isinstance(vertex, tuple) else (RADIUS**2 - (above if vertex else 0.0) ** 2) ** 0.5
        return x + side * reach, y + above

    (x0, y0), (x1, y1) = rim(segment.start, segment.leaves, above_start), rim(segment.end, segment.enters, above_end)
    if segment.leaves == segment.enters:  # relative to the centres, so that the curves are nested
        out = RADIUS + min(0.3 + 0.25 * abs(y1 - y0), 2.0)
        c0, c1 = (
            layout.places[segment.start][0] + segment.leaves * out,
            layout.places[segment.end][0] + segment.enters * out,
        )
    else:
        c0 = c1 = (x0 + x1) / 2
    return [(x0, y0), (c0, y0 + bow), (c1, y1 + bow), (x1, y1)]


def _point_on_cubic(cubic: Sequence[Point], t: float) -> Point:
    """The point of a cubic Bézier curve at the parameter t in [0, 1]."""
    weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    x, y = (sum(w * point[k] for w, point in zip(weights, cubic, strict=True)) for k in (0, 1))
    return x, y


def body_box(name: str, place: Point) -> Box:
    width, height = text_size(break_name(name))
    return place[0], place[1] - height / 2, max(width, 2 * RADIUS), 2 * RADIUS + height


def edge_curves(structure: Structure, layout: GraphLayout) -> list[list[Point]]:
    """Of each edge the points of its cubic Bézier curves, one per segment: 1 + 3 · segments points."""
    heights = _attachment_heights(layout)
    pairs: Counter[frozenset[int]] = Counter()
    curves = []
    for edge in structure.edges:
        segments, pair = layout.segments[edge.number], frozenset((edge.start, edge.end))
        bow = BOW * pairs[pair] if len(segments) == 1 else 0.0
        pairs[pair] += 1
        ends = [(heights[edge.number, segment.start], heights[edge.number, segment.end]) for segment in segments]
        cubics = [_cubic(segment, layout, *above, bow) for segment, above in zip(segments, ends, strict=True)]
        curves.append([cubics[0][0], *(point for cubic in cubics for point in cubic[1:])])
    return curves


def place_label(text: str, curve: Sequence[Point], taken: Sequence[Box]) -> Box:
    """The box of a label on a curve: the first position that does not overlap the boxes in `taken`, else the first."""
    middle = 3 * (len(curve) // 6)
    cubic = curve[middle : middle + 4]
    dx, dy = (abs(cubic[3][k] - cubic[0][k]) for k in (0, 1))
    steep = dy > 1.1 * GAP and dx > MIN_LAYER_GAP
    boxes = [
        (*_point_on_cubic(cubic, s), *text_size(text)) for s in (STEEP_LABEL_POSITIONS if steep else LABEL_POSITIONS)
    ]
    return next((box for box in boxes if not any(overlap(box, other) for other in taken)), boxes[0])
