"""Like parts of a long graph become loops over items: the drives of many joints are one piece of code.

Nodes are alike if their operations down to the leaves are the same, whichever elements of an array and whichever
constants they use. Like nodes that are connected form an item; items with the same operations form a class. A class
with many items becomes an `ItemLoop`: differing constants become a table, values that all items use are shared. Items
keep the operations of the graph and their order, so results are equal to the bit.

Operations in a row, such as a sum over all items, become a `Fold`; the rest stays in the graph. The rest, loops over
items and folds take turns: a value is computed in the first turn of its phase in which all it needs is known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from cosim.core.compile import emit
from cosim.core.compile.emit import Emitter
from cosim.core.compile.item_loop import ROW, SHARED, Elements, ItemLoop, ItemText, Source, Table
from cosim.core.compile.loops import LoopWriter
from cosim.core.compile.lower import Graph, GraphNode
from cosim.core.compile.operations import LEAVES
from cosim.core.compile.split import dependencies_first
from cosim.core.compile.trace import RecordedCall, RoutineBase

# whose first two operands may be exchanged without another bit; minima of 0 and −0 depend on the order
EXCHANGEABLE = frozenset({"ADD", "MUL", "AND", "OR", "EQ", "NE", "MULADD", "MULSUB", "SUBMUL"})

# of turns: the rest of the graph and its calls, loops over items, folds
_REST, _ITEMS, _FOLDS, _PHASES = range(4)

# fewer like items stay straight-line code
LEAST_ITEMS = 48


def with_loops(graph: Graph, calls: Sequence[RecordedCall]) -> tuple[Graph, Sequence[RecordedCall]]:
    """The graph and its calls with like items as calls of loops; the same ones where that is less than half of it."""
    if all(len(array) < LEAST_ITEMS for array in chain(graph.outputs, *graph.arguments)):
        return graph, calls
    colors = _Colors(graph)
    total = sum(graph.nodes[node][0] not in LEAVES for node in colors.order)
    if 2 * len(colors.like) < total:
        return graph, calls
    rolling = _Rolling(graph, calls, colors)
    rolling.roll()
    return rolling.result() if 2 * rolling.operations >= total else (graph, calls)


class _Colors:
    """The color of every node that is used, equal for like ones, and the nodes of which there are many like ones."""

    def __init__(self, graph: Graph) -> None:
        nodes = graph.nodes
        self.order: list[int] = []  # operands first, call by call
        self.ends: list[int] = []  # of what each call needs, in this order
        self.of: dict[int, int] = {}
        numbers: dict[GraphNode, int] = {}
        for needed in [*graph.arguments, graph.outputs]:
            for wanted in chain(*needed):
                for node in dependencies_first(nodes, wanted, self.of):
                    color = self._described(nodes[node])
                    self.of[node] = numbers.setdefault(color, len(numbers))
                    self.order.append(node)
            self.ends.append(len(self.order))
        counts = Counter(self.of.values())
        self.like = {
            node for node in self.order if nodes[node][0] not in LEAVES and counts[self.of[node]] >= LEAST_ITEMS
        }

    def _described(self, node: GraphNode) -> GraphNode:
        kind, *operands = node
        if kind in LEAVES:
            return ("CONST",) if kind == "CONST" else node[:-1]
        return (kind, *(self.of[k] for k in self.ordered(kind, operands)))

    def ordered(self, kind: str, operands: Sequence[int]) -> Sequence[int]:
        """The operands in an order that is the same for like nodes, as far as it makes no difference."""
        if kind not in EXCHANGEABLE:
            return operands
        return *sorted(operands[:2], key=self.of.__getitem__), *operands[2:]


@dataclass(frozen=True)
class _Item:
    """Connected like nodes: constants and other leaves in the order of their use, and nodes that are used elsewhere."""

    constants: Sequence[GraphNode]
    leaves: Sequence[int]
    results: Sequence[int]


class _Rolling:
    def __init__(self, graph: Graph, calls: Sequence[RecordedCall], colors: _Colors) -> None:
        self.graph, self.colors, self.like = graph, colors, colors.like
        self.nodes = list(graph.nodes)
        self.known = dict(graph.known)
        self.chains = chains(graph, colors.order, colors.like, LEAST_ITEMS)
        self.calls: list[tuple[RecordedCall, list[list[int]]]] = list(zip(calls, graph.arguments, strict=True))
        self.turns: list[int] = []  # of each call
        self.operations = 0  # in loops
        self._find_turns()
        self.item_of = self._connected()

    # --- the order of loops and the rest ---

    def _find_turns(self) -> None:
        """The turn of every node that others need: when it is computed."""
        self.turn: dict[int, int] = {}
        start, before = 0, 0
        for number, end in enumerate(self.colors.ends):
            for node in self.colors.order[start:end]:
                self.turn[node] = self._turn(node)
            start = end
            if number < len(self.graph.arguments):
                before = max(before, self._earliest(chain(*self.graph.arguments[number]), _REST))
                self.turns.append(before)

    def _turn(self, node: int) -> int:
        kind, *operands = self.nodes[node]
        if kind in LEAVES:
            return self.turns[operands[0]] if kind == "RESULT" else -1
        if node in self.chains:
            whole = self.chains[node]
            return self._earliest([whole.start, *chain(*whole.others(self.nodes))], _FOLDS)
        return self._earliest(operands, _ITEMS if node in self.like else _REST)

    def _earliest(self, needed: Iterable[int], phase: int) -> int:
        """The first turn of a phase at which the needed values are known."""
        latest = max((self.turn[k] for k in needed), default=-1)
        return latest + (phase - latest) % _PHASES if latest >= 0 else phase

    # --- items ---

    def _connected(self) -> dict[int, int]:
        """A node of the same item for each like node: the same one for all of an item."""
        above: dict[int, int] = {}

        def top(node: int) -> int:
            while above[node] != node:
                above[node] = node = above[above[node]]
            return node

        for node in self.colors.order:
            if node in self.like:
                above[node] = node
                for operand in self.nodes[node][1:]:
                    if operand in above and self.turn[operand] == self.turn[node]:
                        above[top(operand)] = top(node)
        return {node: top(node) for node in above}

    def _results(self) -> dict[int, list[int]]:
        """Of each item the nodes that are used elsewhere."""
        elsewhere = {k for needed in [*self.graph.arguments, self.graph.outputs] for array in needed for k in array}
        for node in self.colors.order:
            kind, *operands = self.nodes[node]
            if kind not in LEAVES:
                item = self.item_of.get(node)
                elsewhere.update(k for k in operands if self.item_of.get(k, item) != item)
        found = defaultdict(list)
        for node in self.colors.order:
            if node in self.item_of and node in elsewhere:
                found[self.item_of[node]].append(node)
        return found

    def _described(self, item: int, results: Sequence[int]) -> tuple[Hashable, _Item]:
        """(its operations and the arrays that it reads, its parts)."""
        results = sorted(results, key=lambda node: (self.colors.of[node], node))
        places: dict[int, int] = {}  # of operations
        leaves: dict[int, int] = {}
        constants: list[GraphNode] = []
        text: list[Hashable] = []

        def reference(operand: int) -> Hashable:
            if operand in places:
                return places[operand]
            leaf = self.nodes[operand]
            if leaf[0] == "CONST":
                constants.append(leaf)
                return "constant"
            return "leaf", leaves.setdefault(operand, len(leaves)), leaf[:-1] if leaf[0] in LEAVES else ()

        stack = list(reversed(results))
        while stack:
            node = stack[-1]
            kind, *operands = self.nodes[node]
            operands = self.colors.ordered(kind, operands)
            missing = [k for k in operands if k not in places and self.item_of.get(k) == item]
            if node in places:
                stack.pop()
            elif missing:
                stack.extend(reversed(missing))
            else:
                text.append((kind, *map(reference, operands)))
                places[node] = len(places)
                stack.pop()
        text.append(tuple(places[node] for node in results))
        return tuple(text), _Item(constants, list(leaves), results)

    # --- loops ---

    def roll(self) -> None:
        """Replace items by loops, turn by turn."""
        turns: dict[int, dict[int, list[int]]] = defaultdict(dict)
        for item, results in self._results().items():
            turns[self.turn[item]][item] = results
        for turn in sorted(turns):
            classes: dict[Hashable, list[_Item]] = defaultdict(list)
            for item, results in turns[turn].items():
                described, parts = self._described(item, results)
                classes[described].append(parts)
            for described, items in classes.items():
                if len(items) >= LEAST_ITEMS:
                    self._replace(described, items, turn)
        one = self._node(("CONST", 1.0, "1.0"))
        for last, whole in self.chains.items():
            self.operations += len(whole.links)
            self._call(*fold(whole, self.nodes, one), self.turn[last])
            self.nodes[last] = ("RESULT", len(self.calls) - 1, 0, 0)

    def _replace(self, described: Any, items: list[_Item], turn: int) -> None:
        """Replace these items by a loop over them."""
        self.operations += len(items) * (len(described) - 1)
        items = sorted(items, key=lambda item: [self.nodes[k][-1] for k in item.leaves if self.nodes[k][0] in LEAVES])
        arguments: dict[Hashable, list[int]] = {}  # nodes of each array
        shared: list[int] = []
        sources: list[Source] = []
        body = Graph()
        constants = [
            self._constant(body, sources, column) for column in zip(*(i.constants for i in items), strict=True)
        ]
        leaves = []
        for column in zip(*(item.leaves for item in items), strict=True):
            if len(set(column)) == 1:
                leaves.append(body.node("INPUT", SHARED, len(shared)))
                shared.append(column[0])
            else:
                leaves.append(body.node("INPUT", ROW, len(sources)))
                sources.append(self._elements(arguments, column))
        _write(body, described, iter(constants), leaves)
        results = [list(column) for column in zip(*(item.results for item in items), strict=True)]
        places = self._places(results)
        for column, where in zip(results, places, strict=True):
            for node, place in zip(column, where, strict=True):
                self.nodes[node] = ("RESULT", len(self.calls), 0, int(place))
        needed = [*arguments.values(), shared]
        shapes = [(len(array),) for array in needed]
        self._call(ItemLoop("items", _text(body), sources, places, shapes, len(described) - 1), needed, turn)

    def _call(self, loop: RoutineBase, needed: list[list[int]], turn: int) -> None:
        self.calls.append((RecordedCall(loop, (None,) * len(needed), ()), needed))
        self.turns.append(turn)

    @staticmethod
    def _constant(body: Graph, sources: list[Source], column: Sequence[GraphNode]) -> int:
        """The node of a constant, or of the element of a row with the constants of the items."""
        if len({text for _, _, text in column}) == 1:
            return body.node(*column[0])
        table = Table(np.array([value for _, value, _ in column]))
        for place, source in enumerate(sources):
            if isinstance(source, Table) and source.values.tobytes() == table.values.tobytes():
                return body.node("INPUT", ROW, place)
        sources.append(table)
        return body.node("INPUT", ROW, len(sources) - 1)

    def _elements(self, arguments: dict[Hashable, list[int]], column: Sequence[int]) -> Elements:
        """The values of a column as elements of an argument: a stretch of an array, or values stored for the loop."""
        kind, *array = self.nodes[column[0]]
        if kind not in LEAVES:
            arguments[len(arguments)] = list(column)
            return Elements(len(arguments) - 1, np.arange(len(column)))
        indices = np.array([self.nodes[node][-1] for node in column])
        first, last = int(indices.min()), int(indices.max())
        key = (kind, *array[:-1], first, last)
        if key not in arguments:
            arguments[key] = [self._node((kind, *array[:-1], k)) for k in range(first, last + 1)]
        return Elements(list(arguments).index(key), indices - first)

    def _node(self, leaf: GraphNode) -> int:
        if leaf not in self.known:
            self.known[leaf] = len(self.nodes)
            self.nodes.append(leaf)
        return self.known[leaf]

    def _places(self, results: list[list[int]]) -> list[np.ndarray]:
        """Where the output has each result: in the order in which calls and outputs use them, so that they are adjacent
        there too."""
        if not hasattr(self, "_rank"):
            used = chain(*self.graph.outputs, *chain(*self.graph.arguments))
            self._rank = {node: place for place, node in reversed(list(enumerate(used)))}
        flat = list(chain(*results))
        order = sorted(range(len(flat)), key=lambda k: self._rank.get(flat[k], len(self.nodes)))
        places = np.empty(len(flat), dtype=int)
        places[order] = np.arange(len(flat))
        return list(places.reshape(len(results), -1))

    def result(self) -> tuple[Graph, list[RecordedCall]]:
        """The graph with its calls in order of execution."""
        order = sorted(range(len(self.calls)), key=self.turns.__getitem__)
        number = {old: new for new, old in enumerate(order)}
        nodes = [(node[0], number[node[1]], *node[2:]) if node[0] == "RESULT" else node for node in self.nodes]
        calls = [self.calls[k] for k in order]
        known = {node: k for k, node in reversed(list(enumerate(nodes)))}
        graph = replace(self.graph, nodes=nodes, known=known, arguments=[needed for _, needed in calls], has_loops=True)
        return graph, [call for call, _ in calls]


def _write(body: Graph, described: Any, constants: Iterable[int], leaves: Sequence[int]) -> None:
    """Add the operations of an item to its graph."""
    *operations, results = described
    remaining = iter(constants)
    nodes: list[int] = []

    def node(reference: Any) -> int:
        if isinstance(reference, int):
            return nodes[reference]
        return next(remaining) if reference == "constant" else leaves[reference[1]]

    for kind, *operands in operations:
        # not `Graph.node`: the order of operands stays
        body.nodes.append((kind, *map(node, operands)))
        nodes.append(len(body.nodes) - 1)
    body.outputs = [[nodes[place] for place in results]]


def _text(body: Graph) -> ItemText:
    return lambda symbol, lanes, uniform: emit.function(symbol, body, [], lanes, 2, uniform)


# --- operations in a row ---


class Fold(RoutineBase):
    """value = operation(value, element k of each array) for k in order.

    Arguments: the value before the first operation (1,), arrays (n,). operation: the kind of a graph node; place: of
    the value among its operands, the elements of the arrays are the others.
    """

    name = "fold"

    def __init__(self, operation: str, place: int, arrays: int, count: int) -> None:
        self.operation, self.place, self.arrays, self.count = operation, place, arrays, count
        self.shapes = ((1,), *[(count,)] * arrays)
        self.output_shapes = ((1,),)

    @property
    def callees(self) -> Sequence[RoutineBase]:
        return ()

    @property
    def operations(self) -> int:
        return self.count

    def _text(self, symbol: str, lanes: int) -> str:
        writer = LoopWriter(f"{symbol}.{lanes}", lanes, self.count, len(self.shapes), 1)
        first, before = writer.load("%in0", 0), writer.block
        k, n, head = writer.begin(), writer.loops, len(writer.lines)
        operands = [writer.load(f"%in{1 + array}", k) for array in range(self.arrays)]
        operands.insert(self.place, "%before")
        leaves: list[GraphNode] = [("INPUT", 0, place) for place in range(len(operands))]
        emitter = Emitter([*leaves, (self.operation, *range(len(operands)))], lanes, [], ())
        emitter.value, emitter.fresh = dict(enumerate(operands)), writer.fresh
        after = emitter.real(len(operands))
        writer.lines += emitter.lines
        writer.lines.insert(head, f"  %before = phi {writer.t} [ {first}, %{before} ], [ {after}, %loop{n}.end ]")
        writer.fresh = emitter.fresh
        writer.end()
        writer.store(after, "%out0", 0)
        return writer.text([])


Family = tuple[str, int]  # (kind of operation, place of the value among its operands)
SUM: Family = ("SUM", 0)


@dataclass
class OperationChain:
    """Operations of one family in a row, with the place of the value in each; `start`: the value before the first."""

    family: Family
    start: int
    links: list[tuple[int, int]]  # (node, place)

    def others(self, nodes: Sequence[GraphNode]) -> list[tuple[int, ...]]:
        """The other operands of each operation."""
        found = []
        for node, place in self.links:
            _, *operands = nodes[node]
            found.append((*operands[:place], *operands[place + 1 :]))
        return found


def chains(graph: Graph, order: Sequence[int], like: AbstractSet[int], least: int) -> dict[int, OperationChain]:
    """The chains of at least so many operations that are not among like items, by their last node.

    A value in between is used by the next operation alone. order: of the nodes, operands first."""
    nodes, found = graph.nodes, dict[int, OperationChain]()
    uses = Counter(chain.from_iterable(chain(graph.outputs, *graph.arguments)))
    for node in order:
        if nodes[node][0] not in LEAVES:
            uses.update(nodes[node][1:])
    for node in order:
        kind, *operands = nodes[node]
        if kind in LEAVES or node in like:
            continue
        inner = [place for place, k in enumerate(operands) if uses[k] == 1 and k not in like]
        longer = [place for place in inner if operands[place] in found]
        longer = [place for place in longer if found[operands[place]].family == _family(kind, place)]
        if longer:
            place = max(longer, key=lambda place: len(found[operands[place]].links))
            found[node] = found.pop(operands[place])
            found[node].links.append((node, place))
        else:
            # the last operation of a chain is in no other one
            free = [place for place in inner if operands[place] not in found]
            begun = next(filter(None, (_begun(nodes, node, place) for place in free)), None)
            if begun is not None:
                found[node] = begun
    return {node: whole for node, whole in found.items() if len(whole.links) >= least}


def _begun(nodes: Sequence[GraphNode], node: int, place: int) -> OperationChain | None:
    """The chain of the operand at this place and the node, if both are of one family."""
    kind, *operands = nodes[node]
    before: int = operands[place]
    family = _family(kind, place)
    earlier, *starts = nodes[before]
    if earlier in LEAVES:
        return None
    for first, start in enumerate(starts):
        if _family(earlier, first) == family:
            return OperationChain(family, start, [(before, first), (node, place)])
    return None


def _family(kind: str, place: int) -> Family:
    """Sums of values and of products are one family: a product with 1 is exact."""
    return SUM if kind == "ADD" or (kind == "MULADD" and place == 2) else (kind, place)


def fold(whole: OperationChain, nodes: Sequence[GraphNode], one: int) -> tuple[Fold, list[list[int]]]:
    """The loop of a chain and the nodes of its arguments; one: the node of the constant 1."""
    (kind, place), others = whole.family, whole.others(nodes)
    if whole.family == SUM:
        kind, place = "ADD", 0
        if any(len(operands) > 1 for operands in others):
            kind, place, others = "MULADD", 2, [(*operands, one)[:2] for operands in others]
    arrays = [list(array) for array in zip(*others, strict=True)]
    return Fold(kind, place, len(arrays), len(others)), [[whole.start], *arrays]
