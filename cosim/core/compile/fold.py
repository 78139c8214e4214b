"""A value that passes through many like operations, such as a sum over joints, as a loop in machine code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain

from cosim.core.compile.emit import Emitter
from cosim.core.compile.loops import LoopWriter
from cosim.core.compile.lower import Graph, GraphNode
from cosim.core.compile.operations import LEAVES
from cosim.core.compile.trace import RoutineBase


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
