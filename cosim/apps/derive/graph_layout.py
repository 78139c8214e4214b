"""Where the bodies, joints and labels of a mechanism's graph lie in its picture: pure geometry, lengths in inches.

Bodies stand in layers by their depth, from body 0 on (`layered`). A cut joint that spans several layers has
waypoints, so that its curve goes around bodies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from cosim.apps.derive import layered
from cosim.apps.derive.layered import EdgeSegment, GraphLayout, LayeredGraph, Vertex
from cosim.apps.derive.text_boxes import Box, Point, break_name, overlap, text_size, widest_label
from cosim.mechanics.multibody.description.structure import Structure

RADIUS = 0.19  # of a body
GAP, WAYPOINT_GAP = 0.86, 0.45  # between bodies of a layer; between a waypoint of a cut joint and its neighbour
MIN_LAYER_GAP = 0.55  # between the rims of bodies in neighbouring layers
WAYPOINT_WEIGHT = 0.01  # relative to a body's

LABEL_POSITIONS = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72)  # on a curve, in order of preference
STEEP_LABEL_POSITIONS = 0.76, 0.68, 0.6, 0.5, 0.4  # on a steep curve: near its end, away from other curves
BEYOND = 1e3  # larger than every picture
BOW = 0.34  # distance between parallel joints of two bodies
FAN = 0.16  # additional distance of layers per height of a joint


def lay_out(structure: Structure) -> GraphLayout:
    """The positions of bodies and waypoints, and the segments of the edges."""
    return layered.lay_out(
        LayeredGraph(
            layers=structure.depths,
            edges={edge.number: (edge.start, edge.end) for edge in structure.edges},
            spacing=lambda one, other: WAYPOINT_GAP if isinstance(one, tuple) or isinstance(other, tuple) else GAP,
            distance=lambda rows, depth: _distance(structure, rows, depth),
            weight=lambda vertex: WAYPOINT_WEIGHT if isinstance(vertex, tuple) else 1.0,
            strip_spacing=1.5 * GAP,
        )
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
    return BEYOND - (there - here) if there > here else (here - there) - BEYOND


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
