"""A bond graph as a circuit: where its symbols and wires lie, pure geometry, lengths in inches.

Efforts are across, flows are through. Seen from one bond, what is behind it is a two-pole: a 1-junction is a series
connection of those behind its other bonds, a 0-junction a parallel connection; transformers, gyrators and fields are
two-ports. So a circuit is a ladder between two rails: series elements are in the upper rail, parallel ones between the
rails, and what branches off stands above, with wires of its own. A bond that closes a loop of the graph is cut: both of
its ends are terminals with its number. Symbols of two-poles are polylines, along u from 0 to LENGTH, to the side v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import cos, pi, sin
from typing import NamedTuple

from cosim.apps.derive.bond_graph_layout import main_ways, shown_element_value
from cosim.apps.derive.picture import Box, Point, break_name, text_size
from cosim.mechanics.bondgraph.graph import CheckedGraph

RAIL = 1.0  # distance of the rails
STEP = 0.22  # of wires between symbols
BRANCH = 0.4  # of a branch above the rails that it leaves
LENGTH = 0.5  # of a symbol
HALF_WIDTH = 0.13  # of a symbol
RADIUS = 0.16  # of a source
Line = Sequence[Point]
M, W = LENGTH / 2, HALF_WIDTH
# + at u = 0, the positive end; the arrow of a flow points to u = LENGTH
_PLUS: list[Line] = [
    [(M - 0.12, 0.0), (M - 0.04, 0.0)], [(M - 0.08, -0.04), (M - 0.08, 0.04)], [(M + 0.08, -0.04), (M + 0.08, 0.04)],
]  # fmt: skip
_ARROW: list[Line] = [[(M - 0.1, 0.0), (M + 0.1, 0.0)], [(M + 0.03, -0.05), (M + 0.1, 0.0), (M + 0.03, 0.05)]]


class Symbol(NamedTuple):
    """A two-pole; start: where its effort is positive, and where its flow enters. kind: `bond` for a cut one."""

    name: str
    kind: str
    domain: str
    start: Point
    end: Point
    lines: tuple[str, ...]
    text: Box


class TwoPort(NamedTuple):
    """The box of a transformer, a gyrator or a field in a circuit. forward: whether its input is on the left."""

    name: str
    kind: str
    box: Box
    lines: tuple[str, ...]
    forward: bool


@dataclass
class Circuit:
    """The symbols, boxes and wires of a bond graph drawn as a circuit."""

    symbols: list[Symbol] = field(default_factory=list)
    two_ports: list[TwoPort] = field(default_factory=list)
    wires: list[tuple[str, tuple[Point, ...]]] = field(default_factory=list)  # domain, points
    nodes: list[tuple[str, Point]] = field(default_factory=list)  # domain, place

    @property
    def boxes(self) -> list[Box]:
        """Of texts, symbols and two-ports."""
        return [*(box for s in self.symbols for box in (s.text, symbol_box(s))), *(two.box for two in self.two_ports)]


def symbol_box(symbol: Symbol) -> Box:
    (x0, y0), (x1, y1) = symbol.start, symbol.end
    return (x0 + x1) / 2, (y0 + y1) / 2, max(abs(x1 - x0), 2 * HALF_WIDTH), max(abs(y1 - y0), 2 * HALF_WIDTH)


def lay_out_circuit(graph: CheckedGraph) -> Circuit:
    """The ladders of a graph, one below the other."""
    return _Ladders(graph).drawn()


class _Ladders:
    """The circuits as they are drawn, from left to right; everything has its own range of x within a ladder."""

    def __init__(self, graph: CheckedGraph) -> None:
        self.graph = graph
        self.circuit = Circuit()
        self.left = dict.fromkeys(graph.elements)  # not drawn yet
        self.behind: dict[str, list[int]] = {}  # of an element that is drawn: the bonds to what stands behind it
        self.ways = main_ways(graph)

    def drawn(self) -> Circuit:
        floor = 0.0
        while self.left:
            first = next((way[0] for way in self.ways if way[0] in self.left), next(iter(self.left)))
            bond = next(
                (b for b in self.graph.at(first) if self._other(first, b) not in self.left), self.graph.at(first)[0]
            )
            part, self.circuit = self.circuit, Circuit()
            self._ladder(first, bond)
            height = max(y + h / 2 for _, y, _, h in self.circuit.boxes)
            part = _joined(part, self.circuit, floor - height)
            self.circuit, floor = part, floor - height - 0.6
        return self.circuit

    def _other(self, name: str, bond: int) -> str:
        return self.graph.other(name, bond)

    def _ladder(self, first: str, bond: int) -> None:
        """From a one-port on the left, or from a cut bond."""
        del self.left[first]
        if self.graph.elements[first].row.ports == 1:
            name, behind = first, self._other(first, bond)
            if behind in self.left:
                del self.left[behind]
        else:
            name, behind = "", first
        self._span(behind, bond)
        sign = self.graph.sign(behind, bond)
        self._vertical(name, bond, (0.0, 0.0), 1, -sign, "left")
        self._two_pole(behind, bond, (0.0, 0.0), 1)

    def _span(self, root: str, entered: int) -> None:
        """Which bonds lead on from each element, breadth first: two-ports lead on to one element."""
        self.behind[root], waiting = [], [(root, entered)]
        for name, bond in waiting:
            for other in (k for k in self.graph.at(name) if k != bond):
                end = self._other(name, other)
                full = not self.graph.elements[name].is_junction and self.behind[name]
                if end in self.left and not full:
                    del self.left[end]
                    self.behind[name].append(other)
                    self.behind[end] = []
                    waiting.append((end, other))

    # --- parts of a ladder: each begins at the left ends of its rails and returns the x of its right end -------

    def _two_pole(self, name: str, bond: int, at: Point, sign: int) -> float:
        """What is behind a bond. at: the left end of its lower rail; sign: +1 where its effort is downwards."""
        element = self.graph.elements[name]
        if element.row.ports == 1:
            return self._vertical(name, bond, at, sign, sign * self.graph.sign(name, bond))
        if not element.is_junction:
            return self._two_port(name, bond, at, sign)
        rest = [k for k in self.graph.at(name) if k != bond]
        rest.sort(key=lambda k: (self._on_way(name, k), self._size(name, k)))
        *first, last = rest
        x, y = at
        for k in first:
            x = (self._in_series if element.kind == "1" else self._in_parallel)(name, bond, k, (x, y), sign)
        return self._behind(name, bond, last, (x, y), sign)

    def _behind(self, name: str, entered: int, bond: int, at: Point, sign: int) -> float:
        """What is behind a further bond of a junction, at the ends of both rails."""
        signs = self.graph.sign(name, entered) * self.graph.sign(name, bond)
        own = sign if self.graph.elements[name].kind == "0" else -sign * signs
        if bond in self.behind[name]:
            return self._two_pole(self._other(name, bond), bond, at, own)
        return self._vertical("", bond, at, own, -own * self.graph.sign(name, bond))

    def _is_leaf(self, name: str, bond: int) -> bool:
        return bond not in self.behind[name] or self.graph.elements[self._other(name, bond)].row.ports == 1

    def _size(self, name: str, bond: int) -> int:
        """The number of elements behind a bond; 1 for a leaf."""
        if self._is_leaf(name, bond):
            return 1
        other = self._other(name, bond)
        return 1 + sum(self._size(other, k) for k in self.behind[other])

    def _on_way(self, name: str, bond: int) -> bool:
        return any(self._other(name, bond) in way for way in self.ways)

    def _in_series(self, name: str, entered: int, bond: int, at: Point, sign: int) -> float:
        x, y = at
        if not self._is_leaf(name, bond):
            above = y + RAIL + BRANCH
            domain = self.graph.domains[bond]
            self._wire(domain, (x, y + RAIL), (x, above + RAIL), (x + STEP, above + RAIL))
            self._wire(domain, (x + STEP, above), (x + STEP, y + RAIL))
            end = self._behind(name, entered, bond, (x + STEP, above), sign)
            self._wire(domain, (x + STEP, y + RAIL), (end, y + RAIL))
        else:
            signs = self.graph.sign(name, entered) * self.graph.sign(name, bond)
            end = self._horizontal(name, bond, (x, y + RAIL), -sign * signs)
        self._wire(self.graph.domains[bond], (x, y), (end, y))
        return end

    def _in_parallel(self, name: str, entered: int, bond: int, at: Point, sign: int) -> float:
        x, y = at
        domain = self.graph.domains[bond]
        if self._is_leaf(name, bond):
            end = self._behind(name, entered, bond, at, sign)
            nodes = [(x + STEP, y), (x + STEP, y + RAIL)]
        else:
            above = y + RAIL + BRANCH
            self._wire(domain, (x + STEP, y + RAIL), (x + STEP, above + RAIL), (x + 3 * STEP, above + RAIL))
            self._wire(domain, (x + 2 * STEP, y), (x + 2 * STEP, above), (x + 3 * STEP, above))
            end = self._behind(name, entered, bond, (x + 3 * STEP, above), sign)
            nodes = [(x + STEP, y + RAIL), (x + 2 * STEP, y)]
        self.circuit.nodes += [(domain, node) for node in nodes]
        for rail in (y, y + RAIL):
            self._wire(domain, (x, rail), (end, rail))
        return end

    # --- symbols -----------------------------------------------------------------------------------------

    def _lines(self, name: str, bond: int) -> tuple[str, ...]:
        if not name:
            return (f"bond {bond + 1}",)
        value = shown_element_value(self.graph.elements[name])
        return (*break_name(name).split("\n"), *([value] if value else []))

    def _symbol(self, name: str, bond: int, ends: tuple[Point, Point], sign: int, text: Point) -> None:
        kind, lines = self.graph.elements[name].kind if name else "bond", self._lines(name, bond)
        start, end = ends if sign > 0 else ends[::-1]
        box = *text, *text_size("\n".join(lines))
        self.circuit.symbols.append(Symbol(name, kind, self.graph.domains[bond], start, end, lines, box))

    def _vertical(self, name: str, bond: int, at: Point, effort: int, flow: int, side: str = "right") -> float:
        """A two-pole between the rails. effort, flow: +1 where they are downwards. side: of `at` where it stands."""
        (x, y), domain, width = at, self.graph.domains[bond], text_size("\n".join(self._lines(name, bond)))[0]
        along = STEP if side == "right" else -STEP
        middle, low, high = x + along, y + (RAIL - LENGTH) / 2, y + (RAIL + LENGTH) / 2
        self._wire(domain, (x, y + RAIL), (middle, y + RAIL), (middle, high))
        self._wire(domain, (x, y), (middle, y), (middle, low))
        kind = self.graph.elements[name].kind if name else "bond"
        text = middle + (1 if along > 0 else -1) * (HALF_WIDTH + 0.1 + width / 2), y + RAIL / 2
        self._symbol(name, bond, ((middle, high), (middle, low)), flow if kind == "Sf" else effort, text)
        return middle + HALF_WIDTH + 0.1 + width + 0.1 if along > 0 else x

    def _horizontal(self, name: str, bond: int, at: Point, sign: int) -> float:
        """A two-pole in the upper rail that begins at `at`; sign: +1 where its effort is from left to right."""
        other = self._other(name, bond) if bond in self.behind[name] else ""
        lines, domain = self._lines(other, bond), self.graph.domains[bond]
        width, height = text_size("\n".join(lines))
        (x, y), room = at, max(LENGTH + STEP, width + 0.15)
        ends = (x + (room - LENGTH) / 2, y), (x + (room + LENGTH) / 2, y)
        self._wire(domain, at, ends[0])
        self._wire(domain, ends[1], (x + room, y))
        towards = 1 if (self.graph.sign(other, bond) if other else -self.graph.sign(name, bond)) > 0 else -1
        is_flow = other and self.graph.elements[other].kind == "Sf"
        text = x + room / 2, y + HALF_WIDTH + 0.06 + height / 2
        self._symbol(other, bond, ends, sign * towards if is_flow else sign, text)
        return x + room

    def _two_port(self, name: str, bond: int, at: Point, sign: int) -> float:
        (x, y), lines = at, self._lines(name, bond)
        width = max(text_size("\n".join(lines))[0] + 0.16, 0.5)
        box = x + STEP + width / 2, y + RAIL / 2, width, RAIL + 0.2
        forward = self.graph.sign(name, bond) > 0
        self.circuit.two_ports.append(TwoPort(name, self.graph.elements[name].kind, box, lines, forward))
        for rail in (y, y + RAIL):
            self._wire(self.graph.domains[bond], (x, rail), (x + STEP, rail))
        end = x + STEP + width
        for onward in self.behind[name]:
            for rail in (y, y + RAIL):
                self._wire(self.graph.domains[onward], (end, rail), (end + STEP, rail))
            return self._two_pole(self._other(name, onward), onward, (end + STEP, y), sign)
        rest = [k for k in self.graph.at(name) if k != bond]
        return self._vertical("", rest[0], (end, y), sign, -sign * self.graph.sign(name, rest[0]))

    def _wire(self, domain: str, *points: Point) -> None:
        self.circuit.wires.append((domain, points))


def _joined(above: Circuit, below: Circuit, down: float) -> Circuit:
    """Both circuits, the second one moved down."""

    def moved(points: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((x, y + down) for x, y in points)

    def moved_box(box: Box) -> Box:
        return box[0], box[1] + down, box[2], box[3]

    return Circuit(
        above.symbols
        + [s._replace(start=moved([s.start])[0], end=moved([s.end])[0], text=moved_box(s.text)) for s in below.symbols],
        above.two_ports + [two._replace(box=moved_box(two.box)) for two in below.two_ports],
        above.wires + [(domain, moved(points)) for domain, points in below.wires],
        above.nodes + [(domain, moved([place])[0]) for domain, place in below.nodes],
    )


def symbol(kind: str, domain: str) -> list[Line]:
    """Of an element; electrical, hydraulic and mechanical parts have their own signs."""
    mechanical = domain in ("translational", "rotational")
    return _SYMBOLS.get((kind, domain)) or _SYMBOLS[kind, "mechanical" if mechanical else ""]


def _arc(u: float, v: float, radius: float, start: float = 0.0, end: float = 2 * pi, parts: int = 24) -> Line:
    steps = (start + (end - start) * k / parts for k in range(parts + 1))
    return [(u + radius * cos(angle), v + radius * sin(angle)) for angle in steps]


def _leads(first: float, last: float) -> list[Line]:
    """The wires from the ends of the symbol to its middle part."""
    return [[(0.0, 0.0), (first, 0.0)], [(last, 0.0), (LENGTH, 0.0)]]


def _box(first: float, last: float, half: float) -> Line:
    return [(first, -half), (last, -half), (last, half), (first, half), (first, -half)]


def _coil() -> list[Line]:
    radius = 0.05
    arcs = [_arc(M + (2 * k - 3) * radius, 0.0, radius, pi, 0.0, 8) for k in range(4)]
    return [*_leads(M - 4 * radius, M + 4 * radius), [point for arc in arcs for point in arc]]


def _spring() -> list[Line]:
    teeth = [(0.1 + 0.3 * (k + 0.5) / 6, (-1) ** k * 0.09) for k in range(6)]
    return [[(0.0, 0.0), (0.1, 0.0), *teeth, (0.4, 0.0), (LENGTH, 0.0)]]


def _plates() -> list[Line]:
    return [*_leads(M - 0.04, M + 0.04), *([(M + side, -W), (M + side, W)] for side in (-0.04, 0.04))]


def _damper() -> list[Line]:
    cup = [(0.4, -W), (0.16, -W), (0.16, W), (0.4, W)]
    return [[(0.0, 0.0), (0.16, 0.0)], cup, [(0.3, -W + 0.03), (0.3, W - 0.03)], [(0.3, 0.0), (LENGTH, 0.0)]]


def _throttle() -> list[Line]:
    """Of an orifice or a laminar resistance: a narrowed line."""
    arcs = [_arc(M, side * 0.16, 0.12, -side * pi / 2 - 1.0, -side * pi / 2 + 1.0, 12) for side in (-1, 1)]
    return [[(0.0, 0.0), (LENGTH, 0.0)], *arcs]


def _source(inside: Sequence[Line]) -> list[Line]:
    return [*_leads(M - RADIUS, M + RADIUS), _arc(M, 0.0, RADIUS), *inside]


_BOND: list[Line] = [
    [(0.0, 0.0), (0.1, 0.0)],
    [(0.4, 0.0), (LENGTH, 0.0)],
    _arc(0.13, 0.0, 0.03),
    _arc(0.37, 0.0, 0.03),
]

_SYMBOLS: dict[tuple[str, str], list[Line]] = {
    ("R", ""): [*_leads(0.08, LENGTH - 0.08), _box(0.08, LENGTH - 0.08, 0.08)],
    ("R", "mechanical"): _damper(),
    ("R", "hydraulic"): _throttle(),
    ("I", ""): _coil(),
    ("I", "mechanical"): [*_leads(M - 0.12, M + 0.12), _box(M - 0.12, M + 0.12, 0.12)],
    ("C", ""): _plates(),
    ("C", "mechanical"): _spring(),
    **{
        (kind, family): _source(inside)
        for kind, inside in (("Se", _PLUS), ("Sf", _ARROW))
        for family in ("", "mechanical")
    },
    **{("bond", family): _BOND for family in ("", "mechanical")},
}
