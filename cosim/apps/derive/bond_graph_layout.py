"""Where the elements, bonds and components of a bond graph lie in its picture: pure geometry, lengths in inches.

Junctions and elements of two ports or more stand in layers (`layered`) between the two ends that are farthest from each
other; the way between these is straight. The elements of one port hang above and below their junctions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from cosim.apps.derive.layered import LayeredGraph, lay_out
from cosim.apps.derive.picture import LINE_HEIGHT, Box, Point, break_name, overlap, text_size
from cosim.apps.derive.tables import quantity
from cosim.mechanics.bondgraph import Assembly, Element, Law
from cosim.mechanics.bondgraph.graph import CheckedGraph

KIND_SIZE = 0.2  # of the letters of an element and of a junction's digit
BOND = 0.62  # visible length of a bond in a layer or between layers, at least
HANGING = 0.5  # of the bond of an element above or below its junction
TEXT_GAP = 0.16  # texts side by side
FAN = 0.25  # additional distance of layers per height of a bond
SIDE_WEIGHT, WAYPOINT_WEIGHT = 1e-4, 1e-6  # relative to the way between the ends
PADDING = 0.07  # of the box of a component


class Label(NamedTuple):
    """An element: its letters at `place`, and its name and value below or above them."""

    place: Point
    kind: str
    lines: tuple[str, ...]
    above: bool = False

    @property
    def boxes(self) -> list[Box]:
        """Of the letters and of the lines."""
        width, height = text_size("\n".join(self.lines))
        x, y = self.place
        side = 1 if self.above else -1
        return [(x, y, KIND_SIZE, KIND_SIZE), (x, y + side * (KIND_SIZE + height) / 2, width, height)]


class BondPath(NamedTuple):
    """The line of a bond in a picture, with its causality. points: from tail to head. stroke: the end that takes the
    effort, which is where the causal stroke is."""

    number: int
    domain: str
    points: tuple[Point, ...]
    stroke: Point


@dataclass(frozen=True)
class BondGraphLayout:
    """Where the elements, bonds and components of a graph lie in its picture, by name."""

    labels: Mapping[str, Label]
    bonds: Sequence[BondPath]
    components: Mapping[str, Box]


def lay_out_bond_graph(assembly: Assembly) -> BondGraphLayout:
    """The picture of a graph with its causality."""
    graph = assembly.graph
    boxed = {component_of(name) for name in graph.elements} - {""}
    while True:  # a component without a box of its own is in the names of its elements
        labels, columns = _labels(graph, {name: _label_lines(name, e, boxed) for name, e in graph.elements.items()})
        boxes = {name: label.boxes for name, label in labels.items()}
        components = _components(boxes, boxed)
        if set(components) == boxed:
            break
        boxed = set(components)
    bonds = []
    for number, (bond, domain) in enumerate(zip(graph.bonds, graph.domains, strict=True)):
        points = _path(bond.tail, bond.head, labels, columns)
        takes = graph.other(assembly.causality.effort_from[number], number)
        bonds.append(BondPath(number + 1, domain, points, points[0] if takes == bond.tail else points[-1]))
    return BondGraphLayout(labels, bonds, components)


def component_of(name: str) -> str:
    """The outermost component of an element, "" for none."""
    return name.partition(".")[0] if "." in name else ""


def shown_element_value(element: Element) -> str:
    """`0.9 mH`, `law`, or nothing for a junction."""
    if not element.row.value:
        return ""
    return "law" if isinstance(element.value, Law) else quantity(float(element.value), element.unit or "")


def _label_lines(name: str, element: Element, boxed: Container[str]) -> tuple[str, ...]:
    """Name and value; without the name of a component that has a box."""
    shown, value = name.partition(".")[2] if component_of(name) in boxed else name, shown_element_value(element)
    return (*break_name(shown).split("\n"), *([value] if value else []))


# --- places ----------------------------------------------------------------------------------------


def _labels(graph: CheckedGraph, lines: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, Label], dict[str, float]]:
    """The labels, and half of the widths of the layers of those that stand in layers."""
    ways = main_ways(graph)
    hanging = _hanging(graph, ways)
    standing = [
        name for name in graph.elements if name not in {n for row in hanging.values() for n in (*row[0], *row[1])}
    ]
    numbers = {name: k for k, name in enumerate(standing)}
    straight = {numbers[name] for way in ways for name in way}
    depths = {name: depth for way in ways for name, depth in steps_from(graph, way[0]).items()}

    def row_width(names: Sequence[str]) -> float:
        return sum(_width(lines[name]) + TEXT_GAP for name in names) - TEXT_GAP if names else 0.0

    def row_height(names: Sequence[str]) -> float:
        return max((HANGING + 1.5 * KIND_SIZE + LINE_HEIGHT * len(lines[name]) for name in names), default=0.0)

    def half_width(name: str) -> float:
        return max(_width(lines[name]), *map(row_width, hanging[name])) / 2

    def half_height(name: str) -> float:
        own = KIND_SIZE / 2 + LINE_HEIGHT * len(lines[name])
        return max(own, *(row_height(row) + own * (row is hanging[name][1]) for row in hanging[name]))

    def distance(rows: Mapping, depth: int) -> float:
        before, here = ([name for name in standing if depths[name] == d] for d in (depth - 1, depth))
        rises = [
            abs(rows[numbers[a]] - rows[numbers[b]]) for a, b in graph.bonds
            if a in numbers and b in numbers and {depths[a], depths[b]} == {depth - 1, depth}
        ]  # fmt: skip
        room = max(map(half_width, before)) + max(map(half_width, here)) + TEXT_GAP
        return max(room, BOND + KIND_SIZE) + min(FAN * max(rises, default=0.0), 1.0)

    layout = lay_out(
        LayeredGraph(
            layers=[depths[name] for name in standing],
            edges={
                k: (numbers[a], numbers[b]) for k, (a, b) in enumerate(graph.bonds) if a in numbers and b in numbers
            },
            spacing=lambda one, other: (
                sum(half_height(standing[v]) if isinstance(v, int) else 0.1 for v in (one, other)) + 0.2
            ),
            weight=lambda v: WAYPOINT_WEIGHT if isinstance(v, tuple) else 1.0 if v in straight else SIDE_WEIGHT,
        ),
        distance,
        strip_spacing=2 * max(map(half_height, standing)) + 0.3,
    )
    labels = {name: Label(layout.places[k], graph.elements[name].kind, lines[name]) for name, k in numbers.items()}
    for name, (up, down) in hanging.items():
        x, y = labels[name].place
        if numbers[name] not in straight and y < max(labels[one].place[1] for way in ways for one in way):
            up, down = down, up
        own = LINE_HEIGHT * len(lines[name])
        for row, at, above in ((up, y + KIND_SIZE + HANGING, True), (down, y - own - KIND_SIZE - HANGING, False)):
            left = x - row_width(row) / 2
            for one in row:
                middle = left + _width(lines[one]) / 2
                labels[one] = Label((middle, at), graph.elements[one].kind, lines[one], above)
                left += _width(lines[one]) + TEXT_GAP
    widths = [max(half_width(one) for one in standing if depths[one] == depths[name]) for name in standing]
    return labels, dict(zip(standing, widths, strict=True))


def _width(lines: Sequence[str]) -> float:
    return max(text_size("\n".join(lines))[0], KIND_SIZE)


def _hanging(graph: CheckedGraph, ways: Sequence[Sequence[str]]) -> dict[str, tuple[list[str], list[str]]]:
    """Of each element of several ports, and of the ends of ways, the elements of one port above and below: storages
    first, and all on one side beside a way."""
    straight = {name for way in ways for name in way}
    found: dict[str, tuple[list[str], list[str]]] = {}
    for name, element in graph.elements.items():
        if element.row.ports == 1 and name not in straight:
            continue
        around = [graph.other(name, bond) for bond in graph.at(name)]
        row = [one for one in around if graph.elements[one].row.ports == 1 and one not in straight]
        row.sort(key=lambda one: not graph.elements[one].stored)
        up = (len(row) + 1) // 2
        if name not in straight:
            up = len(row)
        elif len(row) == 1 and not graph.elements[row[0]].stored:
            up = 0
        found[name] = row[:up], row[up:]
    return found


def main_ways(graph: CheckedGraph) -> list[list[str]]:
    """Of each connected part the longest of the shortest ways, in the direction of power. Sources are its ends where
    there are two."""
    ways, left = [], dict.fromkeys(graph.elements)
    while left:
        part = steps_from(graph, next(iter(left)))
        left = {name: None for name in left if name not in part}
        ends = [name for name in graph.elements if name in part and graph.elements[name].kind in ("Se", "Sf")]
        if len(ends) < 2:
            ends = [name for name in graph.elements if name in part]
        pairs = {(a, b): steps for a in ends for b, steps in steps_from(graph, a).items() if b in ends and a != b}
        way = _way(graph, *max(pairs, key=lambda pair: (pairs[pair], not any(map(component_of, pair)))))
        along = sum(1 if b in {graph.bonds[k].head for k in graph.at(a)} else -1 for a, b in pairwise(way))
        ways.append(way if along >= 0 else way[::-1])
    return ways


def steps_from(graph: CheckedGraph, start: str) -> dict[str, int]:
    """The number of bonds from an element to each one that it can reach."""
    steps, waiting = {start: 0}, [start]
    for name in waiting:
        for bond in graph.at(name):
            other = graph.other(name, bond)
            if other not in steps:
                steps[other] = steps[name] + 1
                waiting.append(other)
    return steps


def _way(graph: CheckedGraph, start: str, end: str) -> list[str]:
    steps, way = steps_from(graph, start), [end]
    while way[-1] != start:
        around = (graph.other(way[-1], bond) for bond in graph.at(way[-1]))
        way.append(next(name for name in around if steps[name] == steps[way[-1]] - 1))
    return way[::-1]


# --- bonds and components --------------------------------------------------------------------------


def _path(tail: str, head: str, labels: Mapping[str, Label], columns: Mapping[str, float]) -> tuple[Point, ...]:
    """From the letters of one to the letters of the other, outside of their texts: straight, or where texts of others
    are in the way, with bends at the borders of layers."""
    a, b = labels[tail].place, labels[head].place
    others = [box for name, label in labels.items() if name not in (tail, head) for box in label.boxes]

    def bend(name: str, at: Point, towards: Point) -> list[Point]:
        side = 1 if towards[0] > at[0] else -1
        return [(at[0] + side * (columns.get(name, 0.0) + TEXT_GAP / 2), at[1])]

    first, last = bend(tail, a, b), bend(head, b, a)
    paths = []
    for bends in ([], last, first, first + last):
        way = [a, *bends, b]
        ends = _leave(a, way[1], labels[tail].boxes), _leave(b, way[-2], labels[head].boxes)
        paths.append((ends[0], *bends, ends[1]))
    return next((path for path in paths if not _meets(path, others)), paths[0])


def _meets(path: Sequence[Point], boxes: Sequence[Box]) -> bool:
    """Whether a path touches a box."""
    return any(
        _exit(start, (end[0] - start[0], end[1] - start[1]), box) > 0.0
        for start, end in pairwise(path) for box in boxes
    )  # fmt: skip


def _leave(start: Point, towards: Point, boxes: Sequence[Box]) -> Point:
    """The last point of the boxes on a straight way, and a little more."""
    dx, dy = towards[0] - start[0], towards[1] - start[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    last = max(_exit(start, (dx, dy), box) for box in boxes) + 0.04 / length
    return start[0] + last * dx, start[1] + last * dy


def _exit(start: Point, way: Point, box: Box) -> float:
    """The parameter at which start + s · way leaves a box; 0 where it does not meet it."""
    enter, leave = 0.0, 1.0
    for k in (0, 1):
        low, high = box[k] - box[k + 2] / 2 - start[k], box[k] + box[k + 2] / 2 - start[k]
        if abs(way[k]) < 1e-12:
            if not low <= 0.0 <= high:
                return 0.0
            continue
        near, far = sorted((low / way[k], high / way[k]))
        enter, leave = max(enter, near), min(leave, far)
    return leave if leave > enter else 0.0


def _components(boxes: Mapping[str, list[Box]], names: Iterable[str]) -> dict[str, Box]:
    """Boxes around the elements of each component, where they hold no other ones."""
    found = {}
    for name in sorted(names):
        own = [part for one, parts in boxes.items() if component_of(one) == name for part in parts]
        others = [part for one, parts in boxes.items() if component_of(one) != name for part in parts]
        if not any(overlap(_around(own), other) for other in others):
            found[name] = _around(own)
    return found


def _around(boxes: Sequence[Box]) -> Box:
    left, right = min(x - w / 2 for x, _, w, _ in boxes), max(x + w / 2 for x, _, w, _ in boxes)
    low, high = min(y - h / 2 for _, y, _, h in boxes), max(y + h / 2 for _, y, _, h in boxes)
    return (left + right) / 2, (low + high) / 2, right - left + 2 * PADDING, high - low + 2 * PADDING
