"""The picture of a mechanism's graph: bodies in layers by their depth, joints as arrows, cut joints dashed.

Layers stand side by side from body 0 on. The order in a layer comes from barycentres, the distances from the
nearest places to the middle of the neighbours that keep all apart. A cut joint that passes layers has a point in
each of them, which takes part in both, so that it goes around bodies. Lengths are in inches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from cosim.errors import InputError
from cosim.multibody.description.structure import Edge, Structure
from cosim.output.plot import check_format, save

LARGEST = 200  # bodies that a picture can show
RADIUS = 0.19  # of a body
LETTER, LINE = 0.067, 0.13  # of words: width of one, height of one
GAP, THIN = 0.86, 0.45  # between bodies of a layer; where one of two is a point of a cut joint
LEAST = 0.55  # between the rims of bodies in neighbouring layers
WIDEST = 24.0  # row of layers; longer ones go on below, back and forth
LIGHT = 0.01  # weight of a point of a cut joint against that of a body
HEAD = 0.7  # for the words above
SWEEPS = 24

BODY: dict[str, Any] = {"facecolor": "#eef4fb", "edgecolor": "#3d4650", "linewidth": 1.1, "zorder": 4}
TREE: dict[str, Any] = {"color": "#3a73ad"}
CUT: dict[str, Any] = {"color": "#c8420b", "linestyle": (0, (4.0, 2.5))}
BACKING = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.75}

SHARES = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72)  # of a curve, where its label may be
STEEP = 0.76, 0.68, 0.6, 0.5, 0.4  # of a steep one: near its end, where it is alone
FAR = 1e3  # beyond every picture
BOW = 0.34  # from one to the next of several joints between two bodies
FAN = 0.16  # distance of layers per height of a joint

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # centre, width, height
Vertex = int | tuple[int, int]  # a body, or (number of a cut joint, layer) where it passes


class Leg(NamedTuple):
    """Of an edge, from one vertex to the next; it touches each on its left (−1) or right (+1) side."""

    start: Vertex
    leaves: int
    end: Vertex
    enters: int


class GraphLayout(NamedTuple):
    places: dict[Vertex, tuple[float, float]]
    legs: dict[int, list[Leg]]  # by the number of the edge


def plot_graph(path: str | Path, structure: Structure, title: str, note: str = "") -> None:
    """Draw a graph into a png, svg or pdf file, by the suffix of `path`, with `title` and `note` above it.

    Raises InputError for another suffix, more than 200 bodies, or a path that cannot be written.
    """
    check_format(path)
    if structure.size > LARGEST:
        what = f"a graph of {structure.size} bodies is too large to draw ({LARGEST} at most); leave the file out"
        raise InputError(what, str(path))

    save(path, lambda: _draw(structure, title, note), "graph", {"svg.hashsalt": "graph", "hatch.linewidth": 0.7})


# --- where everything is ---


def lay_out(structure: Structure) -> GraphLayout:
    """Where bodies and the points of cut joints are, and how edges lead from one to the next."""
    layer: dict[Vertex, int] = dict(enumerate(structure.depths))
    routes = {edge.number: _route(edge, structure.depths) for edge in structure.edges}
    layer.update({v: v[1] for route in routes.values() for v in route if isinstance(v, tuple)})
    near = _neighbours(routes.values())
    unordered = [[v for v in layer if layer[v] == depth] for depth in range(max(structure.depths) + 1)]
    layers = _ordered(unordered, near, layer)
    rows = _spread(layers, near)
    places: dict[Vertex, tuple[float, float]] = {}
    ahead: dict[Vertex, int] = {}  # the side on which the next layer is
    x, floor, side = 0.0, 0.0, 1
    for strip in _strips(structure, rows, len(layers)):
        heights = [side * rows[v] for depth, _ in strip for v in layers[depth]]  # turned over: no crossings at the bend
        for depth, distance in strip:
            x += side * distance
            for v in layers[depth]:
                places[v], ahead[v] = (x, floor - max(heights) + side * rows[v]), side
        floor += min(heights) - max(heights) - 1.5 * GAP
        side = -side

    def leg(start: Vertex, end: Vertex) -> Leg:
        back, forth = layer[end] < layer[start], layer[end] > layer[start]
        return Leg(start, -ahead[start] if back else ahead[start], end, -ahead[end] if forth else ahead[end])

    return GraphLayout(places, {number: [leg(*ends) for ends in pairwise(route)] for number, route in routes.items()})


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


def _ordered(
    layers: list[list[Vertex]], near: Mapping[Vertex, list[Vertex]], layer: Mapping[Vertex, int]
) -> list[list[Vertex]]:
    """The layers in the order with the fewest crossings that sweeps of barycentres, down and up, come by."""
    best, fewest = layers, crossings(layers, near, layer)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        down, turned = sweep % 2 == 0, -1 if sweep % 4 > 1 else 1  # ties are kept in two sweeps, turned in the next two
        layers = [list(row) for row in layers]
        for depth in range(len(layers)) if down else reversed(range(len(layers))):
            beside = depth - 1 if down else depth + 1
            place = {v: k for row in layers for k, v in enumerate(row)}
            means = {}
            for v in layers[depth]:
                # neighbours of the same layer pull as well, to stand side by side
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
    """Pairs of edges between neighbouring layers that cross, and bodies that an edge within a layer passes."""
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


def _spread(layers: Sequence[Sequence[Vertex]], near: Mapping[Vertex, list[Vertex]]) -> dict[Vertex, float]:
    """Heights: each vertex as near to the middle of its neighbours as the distances in its layer allow. Bodies look
    at bodies only, that cut joints which pass do not bend a chain."""
    y = {v: height for row in layers for v, height in zip(row, _apart(row, [0.0] * len(row)), strict=True)}
    beside = {v: [u for u in near[v] if isinstance(v, tuple) or not isinstance(u, tuple)] for v in y}
    for sweep in range(SWEEPS):
        for row in layers if sweep % 2 else reversed(layers):
            wished = [sum(y[u] for u in beside[v]) / max(len(beside[v]), 1) for v in row]
            y.update(zip(row, _apart(row, wished), strict=True))
    return y


def _apart(row: Sequence[Vertex], wished: Sequence[float]) -> list[float]:
    """The heights nearest to those wished, in the least squares, that fall by the least distances or more; points of
    cut joints give way to bodies.

    With the least distances taken off it is a regression on falling steps: what is out of order pools at its mean.
    """
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (THIN if isinstance(one, tuple) or isinstance(other, tuple) else GAP))
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for vertex, value, offset in zip(row, wished, offsets, strict=True):
        mean, weight, members = value + offset, LIGHT if isinstance(vertex, tuple) else 1.0, 1
        while pools and pools[-1][0] < mean:
            above, heavy, more = pools.pop()
            mean = (above * heavy + mean * weight) / (heavy + weight)
            weight, members = weight + heavy, members + more
        pools.append((mean, weight, members))
    steps = [mean for mean, _, members in pools for _ in range(members)]
    return [step - offset for step, offset in zip(steps, offsets, strict=True)]


def _strips(structure: Structure, rows: Mapping[Vertex, float], layers: int) -> list[list[tuple[int, float]]]:
    """The layers in strips of about one width that fit the picture: (layer, distance from the one before)."""
    reaches = [_distance(structure, rows, depth) for depth in range(1, layers)]
    total = sum(reaches)
    width = total / (1 if total < WIDEST else ceil(1.5 * total / WIDEST))
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
    """Between a layer and the one before: room for the names of their bodies and of the joints between them, and
    more where joints fan out."""
    depths = structure.depths
    spans = [(edge, *sorted((depths[edge.start], depths[edge.end]))) for edge in structure.edges]
    joints = [edge for edge, low, high in spans if low < depth <= high]
    fan = max((abs(rows[e.start] - rows[e.end]) for e in joints if e.number <= structure.size), default=0.0)
    bodies = list(zip(structure.bodies, depths, strict=True))
    before, here = ([name for name, d in bodies if d == of] for of in (depth - 1, depth))
    between = _width(e.joint.name for e in joints) + LEAST + min(FAN * fan, 1.0)
    return max(between + 2 * RADIUS, (_width(before) + _width(here)) / 2 + 0.15)


def _width(names: Iterable[str]) -> float:
    return max((_size(broken(name))[0] for name in names), default=0.0)


def _size(text: str) -> Point:
    """Width and height."""
    lines = text.split("\n")
    return LETTER * max(map(len, lines)), LINE * len(lines)


def broken(name: str) -> str:
    """A long name in two lines, broken behind the `_`, `-`, `.` or space nearest to its middle."""
    breaks = [k for k in range(2, len(name) - 1) if name[k - 1] in "_-. "]
    if len(name) <= 12 or not breaks:
        return name
    k = min(breaks, key=lambda k: abs(k - len(name) / 2))
    return f"{name[:k]}\n{name[k:]}"


# --- drawing ---


def _draw(structure: Structure, title: str, note: str) -> Any:
    from matplotlib.figure import Figure

    layout = lay_out(structure)
    curves = _curves(structure, layout)
    corners = [tuple(corner) for curve in curves for corner in curve.get_extents().get_points()]
    xs, ys = zip(*layout.places.values(), *corners, strict=True)
    side = 0.25 + max(RADIUS, _width(structure.bodies) / 2)
    needed, height = max(xs) - min(xs) + 2 * side, max(ys) - min(ys) + 1.1 + HEAD
    width = max(needed, 0.13 * len(title) + 0.4, 0.085 * len(note) + 0.4)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0 - HEAD / height))
    axes.set_axis_off()
    axes.set_xlim(min(xs) - side, min(xs) - side + width)
    axes.set_ylim(min(ys) - 0.65, max(ys) + 0.45)
    words: Any = ((0.14, title, {"size": 13.0, "weight": "bold"}), (0.42, note, {"size": 9.5}))
    for down, text, style in words:
        figure.text(0.16 / width, 1.0 - down / height, text, va="top", parse_math=False, **style)
    labels = [_body_box(name, layout.places[k]) for k, name in enumerate(structure.bodies)]
    for edge, curve in zip(structure.edges, curves, strict=True):
        _draw_edge(axes, edge.joint.name, curve, CUT if edge.number > structure.size else TREE, labels)
    for number, name in enumerate(structure.bodies):
        _draw_body(axes, number, name, layout.places[number])
    return figure


def _curves(structure: Structure, layout: GraphLayout) -> list[Any]:
    """Of each edge a path of matplotlib, one cubic curve per leg."""
    from matplotlib.path import Path as Curve

    heights = _heights(layout)
    pairs: Counter[frozenset[int]] = Counter()
    curves = []
    for edge in structure.edges:
        legs, pair = layout.legs[edge.number], frozenset((edge.start, edge.end))
        bow = BOW * pairs[pair] if len(legs) == 1 else 0.0
        pairs[pair] += 1
        ends = [(heights[edge.number, leg.start], heights[edge.number, leg.end]) for leg in legs]
        bends = [_bend(leg, layout, *above, bow) for leg, above in zip(legs, ends, strict=True)]
        points = [bends[0][0], *(point for bend in bends for point in bend[1:])]
        curves.append(Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * (len(points) - 1)]))
    return curves


def _heights(layout: GraphLayout) -> dict[tuple[int, Vertex], float]:
    """Of an edge at a vertex: how far above its centre it touches the rim. Edges on one side of a body are apart,
    in the order of where they go."""
    touching: dict[tuple[Vertex, int], list[tuple[float, int]]] = defaultdict(list)
    for number, legs in layout.legs.items():
        for leg in legs:
            y0, y1 = layout.places[leg.start][1], layout.places[leg.end][1]
            touching[leg.start, leg.leaves].append((_aim(y0, y1, leg), number))
            touching[leg.end, leg.enters].append((_aim(y1, y0, leg), number))
    heights = {}
    for (vertex, _), edges in touching.items():
        step = 0.0 if isinstance(vertex, tuple) else min(0.12, 1.5 * RADIUS / len(edges))
        for k, (_, number) in enumerate(sorted(edges)):
            heights[number, vertex] = step * (k - (len(edges) - 1) / 2)
    return heights


def _aim(here: float, there: float, leg: Leg) -> float:
    """What edges on one side of a body are ordered by: the height they lead to. Those that turn back around lie
    inside of each other, the shortest outermost on the body."""
    if leg.leaves != leg.enters:
        return there
    return FAR - (there - here) if there > here else (here - there) - FAR


def _bend(leg: Leg, layout: GraphLayout, above_start: float, above_end: float, bow: float) -> list[Point]:
    """The four points of a cubic curve whose ends are on the rims; it is horizontal there unless it is bowed."""

    def rim(vertex: Vertex, side: int, above: float) -> Point:
        x, y = layout.places[vertex]
        # the ground is a box
        reach = 0.0 if isinstance(vertex, tuple) else (RADIUS**2 - (above if vertex else 0.0) ** 2) ** 0.5
        return x + side * reach, y + above

    (x0, y0), (x1, y1) = rim(leg.start, leg.leaves, above_start), rim(leg.end, leg.enters, above_end)
    if leg.leaves == leg.enters:  # from the centres, that bends lie inside of each other
        out = RADIUS + min(0.3 + 0.25 * abs(y1 - y0), 2.0)
        c0, c1 = layout.places[leg.start][0] + leg.leaves * out, layout.places[leg.end][0] + leg.enters * out
    else:
        c0 = c1 = (x0 + x1) / 2
    return [(x0, y0), (c0, y0 + bow), (c1, y1 + bow), (x1, y1)]


def _draw_edge(axes: Any, name: str, curve: Any, style: Mapping[str, Any], labels: list[Box]) -> None:
    """An arrow with the name on it, where it is free of `labels` if it can; its own is added to them."""
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=9.0, linewidth=1.2, zorder=2, **style))
    points = curve.vertices
    text, middle = broken(name), 3 * (len(points) // 6)
    bend = points[middle : middle + 4]
    dx, dy = abs(bend[3] - bend[0])
    steep = dy > 1.1 * GAP and dx > LEAST
    places = [_along(bend, share) for share in (STEEP if steep else SHARES)]
    boxes = [(x, y, *_size(text)) for x, y in places]
    box = next((box for box in boxes if not any(_overlap(box, other) for other in labels)), boxes[0])
    labels.append(box)
    axes.text(
        *box[:2], text, ha="center", va="center", fontsize=7.5, linespacing=1.0, color=style["color"],
        parse_math=False, bbox={**BACKING, "alpha": 1.0}, zorder=3,
    )  # fmt: skip


def _along(bend: Sequence[Point], t: float) -> Point:
    """The point of a cubic Bézier curve at a share t of it."""
    weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    x, y = (sum(w * point[k] for w, point in zip(weights, bend, strict=True)) for k in (0, 1))
    return x, y


def _overlap(one: Box, other: Box) -> bool:
    return all(abs(one[k] - other[k]) < (one[k + 2] + other[k + 2]) / 2 for k in (0, 1))


def _body_box(name: str, place: Point) -> Box:
    width, height = _size(broken(name))
    return place[0], place[1] - height / 2, max(width, 2 * RADIUS), 2 * RADIUS + height


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
        x, y - RADIUS - 0.05, broken(name), ha="center", va="top", fontsize=8.0, linespacing=1.0,
        parse_math=False, bbox=BACKING, zorder=4,
    )  # fmt: skip
