"""Functions that differ in their numbers only, evaluated together: the items in SIMD lanes of one code.

`Alike` finds them among routines; `Mapped` is a function of one item, traced once and mapped over many.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile import emit
from cosim.core.compile.item_loop import ROW, Elements, ItemLoop, Source, Table
from cosim.core.compile.like_items import EXCHANGEABLE
from cosim.core.compile.lower import Graph, fuse
from cosim.core.compile.operations import LEAVES
from cosim.core.compile.pytree import Form, Pytree, flatten
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Shape
from cosim.core.types import Numeric


class Alike(ItemLoop):
    """n routines of the same arguments and operations, as one routine of arrays.

    places: for each argument the elements (n, w) that each item gets of it. The result is one vector, scalar by scalar:
    the first one of all items, then the second one. n ≥ TOGETHER.
    """

    def __init__(self, items: Sequence[Routine], places: Sequence[np.ndarray], sizes: Sequence[int], name: str) -> None:
        """items: of one group of `groups`; sizes: of the arguments."""
        sources: list[Source] = [Elements(k, column) for k, where in enumerate(places) for column in where.T]
        starts = np.cumsum([0, *(where.shape[1] for where in places)]).tolist()
        body = _Merged([item.unfused for item in items], starts, sources).body
        count, n = len(body.outputs[0]), len(items)
        super().__init__(
            name,
            lambda symbol, lanes, uniform: emit.function(symbol, body, [], lanes, 2, uniform),
            sources,
            list(np.arange(count * n).reshape(count, n)),
            [(size,) for size in [*sizes, 0]],
            items[0].operations,
        )
        self.items, self.places = items, places

    def __call__(self, *vectors: Numeric) -> Numeric:
        return super().__call__(*vectors, np.zeros(0))  # nothing is shared

    def fn(self, *vectors: Numeric) -> Numeric:
        """On numbers, or inlined in an expression: item by item."""
        results = [
            item(*(vector[where[k]] for vector, where in zip(vectors, self.places, strict=False)))
            for k, item in enumerate(self.items)
        ]
        return ops.concatenate([ops.array(list(scalars)) for scalars in zip(*results, strict=True)])


def groups(items: Sequence[Routine]) -> list[list[int]]:
    """Indices of routines that `Alike` can take together, group by group."""
    found: dict[Any, list[int]] = defaultdict(list)
    for k, item in enumerate(items):
        form = _Colored(item.unfused)
        closed = item.symbolic_parameters is None and not item.callees
        found[tuple(form.colors[node] for node in form.graph.outputs[0]) if closed else k].append(k)
    return list(found.values())


class _Colored:
    """A graph whose nodes have numbers that follow from their operations down to the leaves, whichever the constants.

    A constant factor may be any other: a product with 1 or 2 is no product in the graph. So factors do not count.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.colors = _without_differences(graph), []
        for node, (kind, *operands) in enumerate(self.graph.nodes):
            _, inner = self.scaled(node)
            if inner != node:
                self.colors.append(self.colors[inner])
                continue
            if kind in LEAVES:
                text = kind if kind == "CONST" else f"{kind} {operands}"
            else:
                found = [self.colors[k] for k in operands]
                text = f"{kind} {sorted(found[:2]) + found[2:] if kind in EXCHANGEABLE else found}"
            self.colors.append(zlib.crc32(text.encode()))

    def scaled(self, node: int) -> tuple[float, int]:
        """(factor, node of the other factor) of a product with a constant; else (1, the node itself)."""
        kind, *operands = self.graph.nodes[node]
        if kind == "NEG":
            return -1.0, operands[0]
        if kind == "ADD" and operands[0] == operands[1]:
            return 2.0, operands[0]
        if kind in ("MUL", "DIV"):
            first, last = (self.graph.nodes[k] for k in operands)
            if last[0] == "CONST" != first[0]:
                return (last[1] if kind == "MUL" else 1.0 / last[1]), operands[0]
            if kind == "MUL" and first[0] == "CONST" != last[0]:
                return first[1], operands[1]
        return 1.0, node

    def operands(self, node: int) -> Sequence[int]:
        """In an order that is the same for alike nodes, as far as it makes no difference."""
        kind, *operands = self.graph.nodes[node]
        if kind not in EXCHANGEABLE:
            return operands
        return *sorted(operands[:2], key=self.colors.__getitem__), *operands[2:]


def _without_differences(graph: Graph) -> Graph:
    """The same graph with a + (−b) for a − b, which a − 1·b is too."""
    result, number = Graph(), list[int]()
    for kind, *operands in graph.nodes:
        if kind in LEAVES:
            number.append(result.node(kind, *operands))
            continue
        operands = [number[k] for k in operands]
        if kind == "SUB":
            kind, operands = "ADD", [operands[0], result.node("NEG", operands[1])]
        number.append(result.node(kind, *operands))
    result.outputs = [[number[k] for k in output] for output in graph.outputs]
    return result


class _Merged:
    """The common graph of several alike ones. Its input is the row of an item; constants that differ become sources.

    Its nodes are tuples of nodes, one of each graph: some may have subexpressions in common where others have not.
    """

    def __init__(self, graphs: Sequence[Graph], starts: Sequence[int], sources: list[Source]) -> None:
        """starts: of the arguments in the row."""
        self.items, self.starts, self.sources = [_Colored(graph) for graph in graphs], starts, sources
        self.body, self.tables = Graph(), {}
        self.nodes: dict[tuple[int, ...], int] = {}
        wanted = list(zip(*(item.graph.outputs[0] for item in self.items), strict=True))
        stack = list(reversed(wanted))
        while stack:
            missing = self._add(stack[-1])
            if missing:
                stack.extend(reversed(missing))
            else:
                stack.pop()
        self.body.outputs = [[self.nodes[of] for of in wanted]]
        fuse(self.body)

    def _add(self, alike: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Add a node, unless others have to be added before: these are returned."""
        if alike in self.nodes:
            return []
        kinds = [item.graph.nodes[node][0] for item, node in zip(self.items, alike, strict=True)]
        if kinds[0] in LEAVES and len(set(kinds)) == 1:
            self.nodes[alike] = self._leaf(alike)
            return []
        scaled = [item.scaled(node) for item, node in zip(self.items, alike, strict=True)]
        inner = tuple(node for _, node in scaled)
        if len({factor for factor, _ in scaled}) > 1 or len(set(kinds)) > 1:
            if inner not in self.nodes:
                return [inner]
            factors = self._constant(tuple(factor for factor, _ in scaled))
            self.nodes[alike] = self.body.node("MUL", self.nodes[inner], factors)
            return []
        each = (item.operands(node) for item, node in zip(self.items, alike, strict=True))
        operands = list(zip(*each, strict=True))
        missing = [of for of in operands if of not in self.nodes]
        if not missing:
            self.nodes[alike] = self._operation(kinds[0], [self.nodes[of] for of in operands])
        return missing

    def _operation(self, kind: str, operands: list[int]) -> int:
        if kind == "ADD":
            for k, other in ((1, 0), (0, 1)):
                inner, *of = self.body.nodes[operands[k]]
                if inner == "NEG":
                    return self.body.node("SUB", operands[other], *of)
        return self.body.node(kind, *operands)

    def _leaf(self, alike: tuple[int, ...]) -> int:
        kind, *rest = self.items[0].graph.nodes[alike[0]]
        if kind == "INPUT":
            return self.body.node("INPUT", ROW, self.starts[rest[0]] + rest[1])
        return self._constant(tuple(item.graph.nodes[k][1] for item, k in zip(self.items, alike, strict=True)))

    def _constant(self, values: tuple[float, ...]) -> int:
        if len(set(map(str, values))) == 1:
            return self.body.node("CONST", values[0], str(values[0]))
        if values not in self.tables:
            self.tables[values] = len(self.sources)
            self.sources.append(Table(np.array(values, dtype=float)))
        return self.body.node("INPUT", ROW, self.tables[values])


class Mapped(ItemLoop):
    """fn(constants, *pieces) -> (r,) for n items, as one routine of arrays: (n r,), item by item.

    constants: a pytree of numbers per item, all of one structure; those that differ become tables. places: for each
    argument the elements (n, w) that are the piece of each item. n ≥ TOGETHER.
    """

    def __init__(
        self,
        fn: Callable[..., Numeric],
        constants: Sequence[Pytree],
        places: Sequence[np.ndarray],
        shapes: Sequence[Shape],
        name: str,
    ) -> None:
        form, _ = Form.of(constants[0])
        for item in constants[1:]:
            form = form.merged(Form.of(item)[0])
        widths = [where.shape[1] for where in places]
        sources: list[Source] = [Elements(k, column) for k, where in enumerate(places) for column in where.T]
        rows = np.array([form.row(flatten(item)[0]) for item in constants], dtype=float)
        sources += [Table(column) for column in rows.T]

        def of_row(row: Numeric) -> Numeric:
            ends = np.cumsum(widths)
            pieces = [row[end - width : end] for width, end in zip(widths, ends, strict=True)]
            return fn(form.fill(row[sum(widths) :]), *pieces)

        item = Routine(of_row, [(len(sources),)], name)

        def text(symbol: str, lanes: int, uniform: Sequence[int]) -> str:
            # not the loops that a long graph may have: the lanes are taken
            return emit.function(symbol, item.graph, [], lanes, 2, uniform)

        ((count,),) = item.output_shapes
        targets = list(np.arange(len(constants) * count).reshape(-1, count).T)
        super().__init__(name, text, sources, targets, shapes, item.operations)
        self.item, self.constants, self.places = fn, constants, places

    def fn(self, *vectors: Numeric) -> Numeric:
        """On numbers, or inlined in an expression: item by item."""
        results = []
        for k, constants in enumerate(self.constants):
            pieces = (vector[where[k]] for vector, where in zip(vectors, self.places, strict=True))
            results.append(self.item(constants, *pieces))
        return ops.concatenate(results)
