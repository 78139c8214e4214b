"""Where the blocks and wires of a block diagram lie in its picture: pure geometry, lengths in inches.

Values go from left to right, in layers (`layered`), in the order in which their elements follow each other along the
graph. In each loop some go back: these run through all layers between, and turn in the channels beside them. Blocks
stand as near to those that use them as they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cosim.apps.derive.acyclic import in_order, leads
from cosim.apps.derive.block_diagram import BlockDiagram, DiagramBlock
from cosim.apps.derive.block_shapes import BlockShape, shape_of
from cosim.apps.derive.bond_graph_layout import main_ways, steps_from
from cosim.apps.derive.layered import Heights, LayeredGraph, Vertex, heights, straightened
from cosim.apps.derive.picture import Box, Point
from cosim.apps.derive.wire_routing import TRACK, Net, tracks
from cosim.mechanics.bondgraph import Assembly
from cosim.mechanics.bondgraph.equations import Variable

BLOCK_DISTANCE = 0.13  # between blocks of a layer
WIRE_DISTANCE = 0.085  # between wires, and half of it to a block
MARGIN = 0.13  # of a channel, beside its tracks
ARROW = 0.1  # room before an input
DIGITS = 6  # of heights
WIDEST = 36.0  # of a diagram that follows the power through the graph
WIRE_WEIGHT = 0.3  # relative to a block's


class Pin(NamedTuple):
    """The input `number` of a block."""

    block: int
    number: int


class DrawnWire(NamedTuple):
    """What joins the output of a block with inputs of others. parts: straight, each from one point to another; ends:
    where arrows are; dots: where it branches."""

    value: Variable
    parts: tuple[tuple[Point, Point], ...]
    ends: tuple[Point, ...]
    dots: tuple[Point, ...]


class PlacedBlock(NamedTuple):
    """A block and its place: the middle of its outline. inputs: in the order of what the block takes."""

    block: DiagramBlock
    shape: BlockShape
    place: Point
    inputs: tuple[Point, ...]
    outputs: tuple[Point, ...]

    @property
    def boxes(self) -> list[Box]:
        """Of its outline and of its name below."""
        return [(x + self.place[0], y + self.place[1], w, h) for x, y, w, h in self.shape.boxes]


class BlockLayout(NamedTuple):
    """The blocks and wires of a diagram in its picture."""

    blocks: list[PlacedBlock]
    wires: list[DrawnWire]


def lay_out_blocks(assembly: Assembly, diagram: BlockDiagram) -> BlockLayout:
    """The picture of the diagram of a graph. A wide one has its loops cut at integrators alone: so it is narrower."""
    along = places_along(assembly, diagram)
    layouts = (_Layout(diagram, layers_of(diagram, along, shortest)).drawn() for shortest in (False, True))
    found = next(layouts)
    return found if max(block.place[0] for block in found.blocks) < WIDEST else next(layouts)


def places_along(assembly: Assembly, diagram: BlockDiagram) -> list[int]:
    """Of each block how far its element is from the beginning of the way of power through the graph."""
    graph, distance = assembly.graph, dict[str, int]()
    for way in main_ways(graph):
        distance |= steps_from(graph, way[0])

    def place(block: DiagramBlock) -> int:
        name = block.owner if block.owner in distance else block.owner.rpartition(".")[0]
        return distance.get(name, 0)

    return [place(block) for block in diagram.blocks]


# --- layers --------------------------------------------------------------------------------------------


def layers_of(diagram: BlockDiagram, along: Sequence[int], shortest: bool = False) -> list[int]:
    """The layer of each block. along: as of `places_along`; in each loop a value that goes against it goes back, or of
    the shortest diagram one that an integrator gives."""
    blocks = diagram.blocks
    source = {value: k for k, block in enumerate(blocks) for value in block.gives}
    edges = dict.fromkeys((source[value], k) for k, block in enumerate(blocks) for value in block.takes)

    def order_of(edge: tuple[int, int]) -> tuple[bool, bool]:
        start, end = edge
        from_state, back = blocks[start].kind == "state", along[end] < along[start]
        return (from_state, back) if shortest else (back, from_state and along[end] <= along[start])

    after: dict[int, dict[int, None]] = {k: {} for k in range(len(blocks))}
    for start, end in sorted(edges, key=order_of):
        if not leads(after, end, start):
            after[start][end] = None
    order = in_order(after)
    layer = [0] * len(blocks)
    for k in order:
        for other in after[k]:
            layer[other] = max(layer[other], layer[k] + 1)
    before = [sum(k in others for others in after.values()) for k in range(len(blocks))]
    for k in reversed(order):
        if len(after[k]) > before[k] or (after[k] and not before[k]):
            layer[k] = min(layer[other] for other in after[k]) - 1
    return layer


# --- places --------------------------------------------------------------------------------------------


@dataclass
class _Layout:
    """A layout as it is made: vertices are the blocks by number, and behind them the passages of wires through."""

    diagram: BlockDiagram
    layer: Sequence[int]  # of each block
    passages: dict[tuple[Variable, int, bool], int] = field(default_factory=dict)  # value, layer, back -> vertex

    def drawn(self) -> BlockLayout:
        blocks = self.diagram.blocks
        self.shapes = [shape_of(self.diagram, block) for block in blocks]
        self.source = {v: Pin(k, i) for k, block in enumerate(blocks) for i, v in enumerate(block.gives)}
        self.users: dict[Variable, list[Pin]] = defaultdict(list)
        for k, block in enumerate(blocks):
            for i, value in enumerate(block.takes):
                self.users[value].append(Pin(k, i))
        self.edges: list[tuple[int, int]] = []
        self.vertex_layers = list(self.layer)
        self.value_at: dict[int, Variable] = {}  # of passages
        for value in self.users:
            self._pass(value)
        self.rank = [list(range(len(block.takes))) for block in blocks]  # place of each input from above
        found = heights(self._graph(None))
        for _ in range(2):
            self._sort_inputs(found)
            graph = self._graph(found)
            found = straightened(graph, heights(graph))
        self._sort_inputs(found)
        found = straightened(self._graph(found), found)
        return self._placed(found)

    def _pass(self, value: Variable) -> None:
        """The passages of a value through layers, and its edges."""
        begin = self.source[value].block
        first = self.layer[begin]
        forth = [pin.block for pin in self.users[value] if self.layer[pin.block] > first]
        back = [pin.block for pin in self.users[value] if self.layer[pin.block] <= first]
        last = begin
        at = {first: begin}
        for depth in range(first + 1, max((self.layer[k] for k in forth), default=first)):
            at[depth] = self._passage(value, depth, False)
            self.edges.append((last, at[depth]))
            last = at[depth]
        self.edges += [(at[self.layer[k] - 1], k) for k in dict.fromkeys(forth)]
        last = begin
        for depth in range(first, min((self.layer[k] for k in back), default=first + 1) - 1, -1):
            at[depth] = self._passage(value, depth, True)
            self.edges.append((last, at[depth]))
            last = at[depth]
        self.edges += [(at[self.layer[k]], k) for k in dict.fromkeys(back)]

    def _passage(self, value: Variable, depth: int, back: bool) -> int:
        number = len(self.vertex_layers)
        self.vertex_layers.append(depth)
        self.passages[value, depth, back] = number
        self.value_at[number] = value
        return number

    def _graph(self, found: Heights | None) -> LayeredGraph:
        n = len(self.diagram.blocks)

        def spacing(above: Vertex, below: Vertex) -> float:
            assert isinstance(above, int) and isinstance(below, int)
            if above >= n and below >= n:
                return WIRE_DISTANCE
            least = BLOCK_DISTANCE if above < n and below < n else WIRE_DISTANCE / 2 + 0.03
            return (
                least + (self.shapes[above].down if above < n else 0.0) + (self.shapes[below].up if below < n else 0.0)
            )

        offsets = dict[tuple[Vertex, Vertex], float]()
        if found is not None:
            for one, other in self.edges:
                offset = self._pin_height(one, other)
                offsets[other, one], offsets[one, other] = offset, -offset
        return LayeredGraph(
            layers=self.vertex_layers,
            edges=dict(enumerate(self.edges)),
            spacing=spacing,
            weight=lambda v: WIRE_WEIGHT if isinstance(v, int) and v >= n else 1.0,
            offset=lambda v, other: offsets.get((v, other), 0.0),
        )

    def _pin_height(self, one: int, other: int) -> float:
        """By how much the second vertex lies above the first one where the wire between is straight."""
        n = len(self.diagram.blocks)
        value = self.value_at[one] if one >= n else self.value_at[other] if other >= n else None
        out = into = 0.0
        if other < n:
            takes = self.diagram.blocks[other].takes
            wanted = [value] if value is not None else self.diagram.blocks[one].gives
            number = next(i for i, v in enumerate(takes) if v in wanted)
            into = self._input_height(Pin(other, number))
            value = takes[number]
        if one < n and value is not None:
            out = self.shapes[one].outputs[self.source[value].number]
        return out - into

    def _input_height(self, pin: Pin) -> float:
        return self.shapes[pin.block].inputs[self.rank[pin.block][pin.number]]

    def _coming_from(self, value: Variable, block: int) -> int:
        """The vertex from which a value comes to a block."""
        begin = self.source[value].block
        first, depth = self.layer[begin], self.layer[block]
        if depth <= first:
            return self.passages[value, depth, True]
        return begin if depth == first + 1 else self.passages[value, depth - 1, False]

    def _sort_inputs(self, found: Heights) -> None:
        """The inputs of each block in the order of the heights from which values come."""
        for k, block in enumerate(self.diagram.blocks):
            above = [-found.of[self._coming_from(value, k)] for value in block.takes]
            order = sorted(range(len(above)), key=above.__getitem__)
            self.rank[k] = [order.index(i) for i in range(len(order))]

    def _placed(self, found: Heights) -> BlockLayout:
        blocks, n = self.diagram.blocks, len(self.diagram.blocks)
        y = {v: round(height, DIGITS) for v, height in found.of.items()}
        pins = [[Pin(k, i) for i in range(len(block.takes))] for k, block in enumerate(blocks)]
        inputs = {pin: round(y[pin.block] + self._input_height(pin), DIGITS) for own in pins for pin in own}
        outputs = {
            v: round(y[pin.block] + self.shapes[pin.block].outputs[pin.number], DIGITS)
            for v, pin in self.source.items()
        }
        depths = range(max(self.vertex_layers) + 1)
        width = [max((self.shapes[k].width for k in range(n) if self.layer[k] == d), default=0.0) for d in depths]
        middle, x, left = list[float](), 0.0, list[tuple[dict[Variable, int], float]]()
        for depth in range(-1, len(depths)):
            nets = self._nets(depth, y, inputs, outputs)
            at, count = tracks([Net(tuple(a), tuple(b)) for a, b in nets.values()])
            left.append((dict(zip(nets, at, strict=True)), x + MARGIN))
            x += 2 * MARGIN + ARROW + TRACK * max(count - 1, 0)
            if depth + 1 < len(depths):
                middle.append(x + width[depth + 1] / 2)
                x += width[depth + 1]
        placed = [
            PlacedBlock(
                blocks[k],
                shape,
                (middle[self.layer[k]], y[k]),
                tuple(
                    (middle[self.layer[k]] - shape.half_width, inputs[Pin(k, i)]) for i in range(len(blocks[k].takes))
                ),
                tuple((middle[self.layer[k]] + shape.half_width, outputs[v]) for v in blocks[k].gives),
            )
            for k, shape in enumerate(self.shapes)
        ]
        sides = [(m - w / 2, m + w / 2) for m, w in zip(middle, width, strict=True)]
        wires = [self._wire(value, placed, sides, left, y) for value in self.users]
        return BlockLayout(placed, wires)

    def _nets(
        self, depth: int, y: Mapping[Vertex, float], inputs: Mapping[Pin, float], outputs: Mapping[Variable, float]
    ) -> dict[Variable, tuple[list[float], list[float]]]:
        """Of each value in the channel behind a layer the heights of its pins at both sides."""
        found: dict[Variable, tuple[list[float], list[float]]] = {}
        for value, pins in self.users.items():
            own = [outputs[value]] if self.layer[self.source[value].block] == depth else []
            passages = [
                [y[self.passages[value, d, back]] for back in (False, True) if (value, d, back) in self.passages]
                for d in (depth, depth + 1)
            ]
            ends = [inputs[pin] for pin in pins if self.layer[pin.block] == depth + 1]
            if (own or passages[0] or passages[1]) and (ends or passages[1] or len(passages[0]) + len(own) > 1):
                found[value] = own + passages[0], passages[1] + ends
        return found

    def _wire(
        self,
        value: Variable,
        placed: Sequence[PlacedBlock],
        sides: Sequence[tuple[float, float]],
        channels: Sequence[tuple[Mapping[Variable, int], float]],
        y: Mapping[Vertex, float],
    ) -> DrawnWire:
        parts, dots, ends = list[tuple[Point, Point]](), list[Point](), list[Point]()
        for (of, depth, _), vertex in self.passages.items():
            if of == value:
                parts.append(((sides[depth][0], y[vertex]), (sides[depth][1], y[vertex])))
        for depth, (at, begin) in enumerate(channels, -1):
            if value not in at:
                continue
            own = self.source[value]
            passing = [
                [self.passages[value, d, back] for back in (False, True) if (value, d, back) in self.passages]
                for d in (depth, depth + 1)
            ]
            left = [placed[own.block].outputs[own.number]] if self.layer[own.block] == depth else []
            left += [(sides[depth][1], y[v]) for v in passing[0]]
            targets = [placed[p.block].inputs[p.number] for p in self.users[value] if self.layer[p.block] == depth + 1]
            right = [(sides[depth + 1][0], y[v]) for v in passing[1]] + targets
            ends += targets
            if at[value] < 0:
                parts.append((left[0], right[0]))
                continue
            x, levels = begin + TRACK * at[value], sorted({level for _, level in left + right})
            parts += [(pin, (x, pin[1])) for pin in left] + [((x, pin[1]), pin) for pin in right]
            parts.append(((x, levels[0]), (x, levels[-1])))
            for level in levels:
                both = any(p[1] == level for p in left) + any(p[1] == level for p in right)
                if both + (level > levels[0]) + (level < levels[-1]) > 2:
                    dots.append((x, level))
        return DrawnWire(value, tuple(part for part in parts if part[0] != part[1]), tuple(ends), tuple(dots))
