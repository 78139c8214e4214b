"""Where the bodies, joints and labels of a mechanism's graph lie in its picture: pure geometry, lengths in inches.

Bodies stand in layers by their depth, from body 0 on. The order within a layer comes from sweeps of barycentres
(Sugiyama, Tagawa and Toda, 1981). The heights are as near to the mean of the neighbours as the distances in the layer
allow. A cut joint that spans several layers has a waypoint in each layer between, which takes part in the ordering
and the distances, so that its curve goes around bodies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from cosim.multibody.description.structure import Edge, Structure
from cosim.output.plot import drawable

RADIUS = 0.19  # of a body
CHARACTER_WIDTH, LINE_HEIGHT = 0.067, 0.13  # of text
GAP, WAYPOINT_GAP = 0.86, 0.45  # between bodies of a layer; between a waypoint of a cut joint and its neighbour
MIN_LAYER_GAP = 0.55  # between the rims of bodies in neighbouring layers
MAX_WIDTH = 24.0  # of a row of layers; further layers continue below, in alternating direction
WAYPOINT_WEIGHT = 0.01  # relative to that of a body
SWEEPS = 24

LABEL_POSITIONS = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72)  # on a curve, in order of preference
STEEP_LABEL_POSITIONS = 0.76, 0.68, 0.6, 0.5, 0.4  # on a steep curve: near its end, away from other curves
BEYOND = 1e3  # larger than every picture
BOW = 0.34  # distance between parallel joints of two bodies
FAN = 0.16  # additional distance of layers per height of a joint

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # centre x and y, width, height
Vertex = int | tuple[int, int]  # a body, or a waypoint: (number of a cut joint, layer)


class EdgeSegment(NamedTuple):
    """A part of an edge from one vertex to the next, and the side of each that it touches: left (−1) or right (+1)."""

    start: Vertex
    leaves: int
    end: Vertex
    enters: int


class GraphLayout(NamedTuple):
    places: dict[Vertex, tuple[float, float]]
    segments: dict[int, list[EdgeSegment]]  # by the number of the edge


def lay_out(structure: Structure) -> GraphLayout:
    """The positions of bodies and waypoints, and the segments of the edges."""
    layer: dict[Vertex, int] = dict(enumerate(structure.depths))
    routes = {edge.number: _route(edge, structure.depths) for edge in structure.edges}
    layer.update({v: v[1] for route in routes.values() for v in route if isinstance(v, tuple)})
    near = _neighbours(routes.values())
    unordered = [[v for v in layer if layer[v] == depth] for depth in range(max(structure.depths) + 1)]
    layers = _order_layers(unordered, near, layer)
    rows = _heights_of_vertices(layers, near)
    places: dict[Vertex, tuple[float, float]] = {}
    ahead: dict[Vertex, int] = {}  # the side of the next layer
    x, floor, side = 0.0, 0.0, 1
    for strip in _strips(structure, rows, len(layers)):
        # every second strip is mirrored: no crossings where the direction changes
        heights = [side * rows[v] for depth, _ in strip for v in layers[depth]]
        for depth, distance in strip:
            x += side * distance
            for v in layers[depth]:
                places[v], ahead[v] = (x, floor - max(heights) + side * rows[v]), side
        floor += min(heights) - max(heights) - 1.5 * GAP
        side = -side

    def segment(start: Vertex, end: Vertex) -> EdgeSegment:
        back, forth = layer[end] < layer[start], layer[end] > layer[start]
        return EdgeSegment(start, -ahead[start] if back else ahead[start], end, -ahead[end] if forth else ahead[end])

    return GraphLayout(
        places, {number: [segment(*ends) for ends in pairwise(route)] for number, route in routes.items()}
    )


def _route(edge: Edge, depths: Sequence[int]) -> tuple[Vertex, ...]:
    first, last = depths[edge.start], depths[edge.end]
    step = 1 if last > first else -1
    return edge.start, *((edge.number, depth) for depth in range(first + step, last, step)), edge.end


def _neighbours(routes: Iterable[tuple[Vertex, ...]]) -> dict[Vertex, list[Vertex]]:
    near: dict[Vertex, list[Vertex]] = defaultdict(list)
    for route in routes:
        for one, other in pairwise(route):
            near[one].append(other)
            near[other].append(one)
    return near


def _order_layers(
    layers: list[list[Vertex]], near: Mapping[Vertex, list[Vertex]], layer: Mapping[Vertex, int]
) -> list[list[Vertex]]:
    """The layers in the order with the fewest crossings found by sweeps of barycentres, down and up."""
    best, fewest = layers, crossings(layers, near, layer)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        down, turned = (
            sweep % 2 == 0,
            -1 if sweep % 4 > 1 else 1,
        )  # equal means keep their order in two sweeps and swap it in the next two
        layers = [list(row) for row in layers]
        for depth in range(len(layers)) if down else reversed(range(len(layers))):
            beside = depth - 1 if down else depth + 1
            place = {v: k for row in layers for k, v in enumerate(row)}
            means = {}
            for v in layers[depth]:
                # neighbours in the same layer count as well, so that they stand side by side
                seen = [place[u] for u in near[v] if layer[u] in (beside, depth)] or [place[v]]
                means[v] = sum(seen) / len(seen), turned * place[v]
            layers[depth].sort(key=means.__getitem__)
        found = crossings(layers, near, layer)
        if found < fewest:
            best, fewest = layers, found
    return best


def crossings(
    layers: Sequence[Sequence[Vertex]], near: Mapping[Vertex, list[Vertex]], layer: Mapping[Vertex, int]
) -> int:
    """The number of crossings of edges between neighbouring layers, and of bodies passed by edges within a layer."""
    place = {v: k for row in layers for k, v in enumerate(row)}
    total = 0
    for depth, row in enumerate(layers):
        ends: list[int] = []
        for v in row:
            here = sorted(place[u] for u in near[v] if layer[u] == depth + 1)
            total += sum(len(ends) - bisect_right(ends, end) for end in here)
            ends = sorted(ends + here)
            total += sum(place[u] - place[v] - 1 for u in near[v] if layer[u] == depth and place[u] > place[v])
    return total


def _heights_of_vertices(
    layers: Sequence[Sequence[Vertex]], near: Mapping[Vertex, list[Vertex]]
) -> dict[Vertex, float]:
    """The height of each vertex, as near to the mean of its neighbours as the distances in its layer allow. Bodies
    count bodies only, so that waypoints do not deform a chain."""
    y = {v: height for row in layers for v, height in zip(row, _separate(row, [0.0] * len(row)), strict=True)}
    beside = {v: [u for u in near[v] if isinstance(v, tuple) or not isinstance(u, tuple)] for v in y}
    for sweep in range(SWEEPS):
        for row in layers if sweep % 2 else reversed(layers):
            wished = [sum(y[u] for u in beside[v]) / max(len(beside[v]), 1) for v in row]
            y.update(zip(row, _separate(row, wished), strict=True))
    return y


def _separate(row: Sequence[Vertex], wished: Sequence[float]) -> list[float]:
    """The heights nearest to the wished ones (weighted least squares) that decrease by the minimum distances or more.

    With the minimum distances subtracted this is an isotonic regression by pooling adjacent violators.
    """
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (WAYPOINT_GAP if isinstance(one, tuple) or isinstance(other, tuple) else GAP))
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for vertex, value, offset in zip(row, wished, offsets, strict=True):
        mean, weight, members = value + offset, WAYPOINT_WEIGHT if isinstance(vertex, tuple) else 1.0, 1
        while pools and pools[-1][0] < mean:
            above, heavy, more = pools.pop()
            mean = (above * heavy + mean * weight) / (heavy + weight)
            weight, members = weight + heavy, members + more
        pools.append((mean, weight, members))
    steps = [mean for mean, _, members in pools for _ in range(members)]
    return [step - offset for step, offset in zip(steps, offsets, strict=True)]


def _strips(structure: Structure, rows: Mapping[Vertex, float], layers: int) -> list[list[tuple[int, float]]]:
    """The layers in strips of about equal width that fit the picture: (layer, distance from the one before)."""
    reaches = [_distance(structure, rows, depth) for depth in range(1, layers)]
    total = sum(reaches)
    width = total / (1 if total < MAX_WIDTH else ceil(1.5 * total / MAX_WIDTH))
    strips: list[list[tuple[int, float]]] = [[(0, 0.0)]]
    taken = 0.0
    for depth, reach in enumerate(reaches, 1):
        if taken + reach / 2 > width:
            strips.append([(depth, 0.0)])
            taken = 0.0
        else:
            strips[-1].append((depth, reach))
            taken += reach
    return strips


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


def widest_label(names: Iterable[str]) -> float:
    return max((text_size(break_name(name))[0] for name in names), default=0.0)


def text_size(text: str) -> Point:
    """Width and height."""
    lines = text.split("\n")
    return CHARACTER_WIDTH * max(map(len, lines)), LINE_HEIGHT * len(lines)


def break_name(name: str) -> str:
    """A long name in two lines, broken after the `_`, `-`, `.` or space nearest to its middle."""
    name = drawable(name)
    breaks = [k for k in range(2, len(name) - 1) if name[k - 1] in "_-. "]
    if len(name) <= 12 or not breaks:
        return name
    k = min(breaks, key=lambda k: abs(k - len(name) / 2))
    return f"{name[:k]}\n{name[k:]}"


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


def _overlap(one: Box, other: Box) -> bool:
    return all(abs(one[k] - other[k]) < (one[k + 2] + other[k + 2]) / 2 for k in (0, 1))


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
    return next((box for box in boxes if not any(_overlap(box, other) for other in taken)), boxes[0])
