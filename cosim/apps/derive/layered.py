"""A graph in layers: pure geometry, lengths in inches.

The order within a layer comes from sweeps of barycentres (Sugiyama, Tagawa and Toda, 1981). The heights are as near to
the mean of the neighbours as the distances in the layer allow. An edge that spans several layers has a waypoint in each
layer between, which takes part in the ordering and the distances, so that it goes around vertices. Layers beyond the
width of the picture continue below, in alternating direction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import NamedTuple

MAX_WIDTH = 24.0  # of a row of layers; further layers continue below, in alternating direction
SWEEPS = 24
STRAIGHT = 1e-9  # of heights of an edge

Vertex = int | tuple[int, int]  # a vertex, or a waypoint: (number of an edge, layer)


@dataclass(frozen=True)
class LayeredGraph:
    """A graph whose vertices have layers, with the distances and weights of its layout.

    layers: of each vertex. edges: number -> first and last vertex. spacing: between the centres of neighbours in a
    layer, the upper one first. weight: how much the wished height of a vertex counts; it follows the neighbours of its
    weight or more, so light ones do not deform a chain. offset: by how much a vertex wishes to lie above another one.
    """

    layers: Sequence[int]
    edges: Mapping[int, tuple[int, int]]
    spacing: Callable[[Vertex, Vertex], float]
    weight: Callable[[Vertex], float]
    offset: Callable[[Vertex, Vertex], float] = lambda vertex, other: 0.0


class EdgeSegment(NamedTuple):
    """A part of an edge from one vertex to the next, and the side of each that it touches: left (−1) or right (+1)."""

    start: Vertex
    leaves: int
    end: Vertex
    enters: int


class GraphLayout(NamedTuple):
    """Where the vertices and waypoints of a graph lie, and its edges as segments between them."""

    places: dict[Vertex, tuple[float, float]]
    segments: dict[int, list[EdgeSegment]]  # by the number of the edge


class Heights(NamedTuple):
    """The layers with their vertices and waypoints in order from above, and the height of each."""

    layers: list[list[Vertex]]
    of: dict[Vertex, float]


def heights(graph: LayeredGraph) -> Heights:
    """In the order with the fewest crossings that is found."""
    return _heights(graph, _routes(graph))


def _routes(graph: LayeredGraph) -> dict[int, tuple[Vertex, ...]]:
    """Of each edge the vertices and waypoints on it."""
    return {number: _route(number, *ends, graph.layers) for number, ends in graph.edges.items()}


def _layer_of(graph: LayeredGraph, routes: Mapping[int, tuple[Vertex, ...]]) -> dict[Vertex, int]:
    waypoints = {v: v[1] for route in routes.values() for v in route if isinstance(v, tuple)}
    return {**dict(enumerate(graph.layers)), **waypoints}


def _heights(graph: LayeredGraph, routes: Mapping[int, tuple[Vertex, ...]]) -> Heights:
    layer, near = _layer_of(graph, routes), _neighbours(routes.values())
    unordered = [[v for v in layer if layer[v] == depth] for depth in range(max(graph.layers) + 1)]
    layers = _order_layers(unordered, near, layer)
    return Heights(layers, _heights_of_vertices(graph, layers, near))


def lay_out(
    graph: LayeredGraph, distance: Callable[[Mapping[Vertex, float], int], float], strip_spacing: float
) -> GraphLayout:
    """The positions of vertices and waypoints, and the segments of the edges. distance: of a layer from the one before,
    from the heights; strip_spacing: between rows of layers."""
    routes = _routes(graph)
    layer = _layer_of(graph, routes)
    layers, rows = _heights(graph, routes)
    places: dict[Vertex, tuple[float, float]] = {}
    ahead: dict[Vertex, int] = {}  # the side of the next layer
    x, floor, side = 0.0, 0.0, 1
    for strip in _strips([distance(rows, depth) for depth in range(1, len(layers))]):
        # every second strip is mirrored: no crossings where the direction changes
        heights = [side * rows[v] for depth, _ in strip for v in layers[depth]]
        for depth, reach in strip:
            x += side * reach
            for v in layers[depth]:
                places[v], ahead[v] = (x, floor - max(heights) + side * rows[v]), side
        floor += min(heights) - max(heights) - strip_spacing
        side = -side

    def segment(start: Vertex, end: Vertex) -> EdgeSegment:
        back, forth = layer[end] < layer[start], layer[end] > layer[start]
        return EdgeSegment(start, -ahead[start] if back else ahead[start], end, -ahead[end] if forth else ahead[end])

    return GraphLayout(
        places, {number: [segment(*ends) for ends in pairwise(route)] for number, route in routes.items()}
    )


def _route(number: int, start: int, end: int, layers: Sequence[int]) -> tuple[Vertex, ...]:
    first, last = layers[start], layers[end]
    step = 1 if last > first else -1
    return start, *((number, depth) for depth in range(first + step, last, step)), end


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
    graph: LayeredGraph, layers: list[list[Vertex]], near: Mapping[Vertex, list[Vertex]]
) -> dict[Vertex, float]:
    """The height of each vertex, as near to the mean of the neighbours that it follows as the distances allow."""
    y = {v: height for row in layers for v, height in zip(row, _separate(graph, row, [0.0] * len(row)), strict=True)}
    beside = {v: [u for u in near[v] if graph.weight(u) >= graph.weight(v)] for v in y}
    for sweep in range(SWEEPS):
        for row in layers if sweep % 2 else reversed(layers):
            wished = [sum(y[u] + graph.offset(v, u) for u in beside[v]) / max(len(beside[v]), 1) for v in row]
            y.update(zip(row, _separate(graph, row, wished), strict=True))
    return y


def _separate(graph: LayeredGraph, row: Sequence[Vertex], wished: Sequence[float]) -> list[float]:
    """The heights nearest to the wished ones (weighted least squares) that decrease by the spacings or more.

    With the spacings subtracted this is an isotonic regression by pooling adjacent violators.
    """
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + graph.spacing(one, other))
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for vertex, value, offset in zip(row, wished, offsets, strict=True):
        mean, weight, members = value + offset, graph.weight(vertex), 1
        while pools and pools[-1][0] < mean:
            above, heavy, more = pools.pop()
            mean = (above * heavy + mean * weight) / (heavy + weight)
            weight, members = weight + heavy, members + more
        pools.append((mean, weight, members))
    steps = [mean for mean, _, members in pools for _ in range(members)]
    return [step - offset for step, offset in zip(steps, offsets, strict=True)]


def straightened(graph: LayeredGraph, found: Heights) -> Heights:
    """With as many edges as possible straight: a vertex takes the height that the most of its neighbours in other
    layers wish, within what the distances in its layer leave."""
    y, layer = dict(found.of), {v: depth for depth, row in enumerate(found.layers) for v in row}
    near = {
        v: [u for u in others if layer[u] != layer[v]]
        for v, others in _neighbours(_routes(graph).values()).items()
    }  # fmt: skip
    for sweep in range(SWEEPS):
        for row in found.layers if sweep % 2 else reversed(found.layers):
            for k, v in enumerate(row):
                low = y[row[k + 1]] + graph.spacing(v, row[k + 1]) if k + 1 < len(row) else -inf
                high = y[row[k - 1]] - graph.spacing(row[k - 1], v) if k else inf
                wished = [y[u] + graph.offset(v, u) for u in near.get(v, ())]
                free = [height for height in wished if low <= height <= high]
                y[v] = max([*free, y[v]], key=lambda h: sum(abs(h - w) < STRAIGHT for w in wished))
    return Heights(found.layers, y)


def _strips(reaches: Sequence[float]) -> list[list[tuple[int, float]]]:
    """The layers in strips of about equal width that fit the picture: (layer, distance from the one before).
    reaches: of the layers after the first, the distance from the one before."""
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
