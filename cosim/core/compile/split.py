"""A long graph split into parts: the compile time of LLVM grows faster than the length of a function.

The tasks of a routine (values to compute, values to store, calls to make) are listed in order of execution and split
where few values are live. Parts exchange values through a workspace, an array that each of them receives after the
routine's inputs. It holds the arguments and results of every call, all outputs (inputs may share memory with them and
must stay unchanged until the last part has run), and slots for live values, which are reused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby
from typing import Any

from cosim.core.compile.lower import Graph, GraphNode
from cosim.core.compile.operations import LEAVES
from cosim.core.compile.trace import RecordedCall

# of one function; compile time and run time hardly differ between half and twice this length
LONGEST_FUNCTION = 3000

# sin and cos are inlined; LLVM compares every store with every load before it
WEIGHTS = {"SIN": 20, "COS": 20, "STORE": 4}

# so many elements that are scattered over an array are copied in a loop, and so many that are adjacent at once
GATHERED, ADJACENT = 48, 8

# ("VALUE", node), ("STORE", node, place in the workspace), ("COPY", Array, place in the workspace, count),
# ("GATHER", input, [(place in it, place in the workspace)]) or ("CALL", number, condition or None)
Task = tuple[Any, ...]


@dataclass(frozen=True)
class ArraySlice:
    """Elements of an input from an index on; the workspace is the input after the last."""

    input: int
    place: int


@dataclass(frozen=True)
class GraphPart:
    """One function: its tasks, and the nodes of the graph for it, in which results of calls and values of earlier
    parts are elements of the workspace."""

    nodes: Sequence[GraphNode]
    tasks: Sequence[Task]


@dataclass
class Split:
    """Parts in order of execution, and the locations of the arrays of calls and of the outputs."""

    parts: list[GraphPart] = field(default_factory=list)
    arguments: list[list[ArraySlice]] = field(default_factory=list)
    results: list[list[ArraySlice]] = field(default_factory=list)
    outputs: list[ArraySlice] = field(default_factory=list)
    size: int = 0  # scalars of the workspace


def dependencies_first(nodes: Sequence[GraphNode], wanted: int, known: Container[int]) -> Iterator[int]:
    """The wanted node and its dependencies that are not known, operands first.

    The caller adds each node to `known` before it takes the next. Iterative, because expressions can be deep.
    """
    stack = [wanted]
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
            continue
        kind, *operands = nodes[top]
        missing = [] if kind in LEAVES else [i for i in operands if i not in known]
        if missing:
            stack.extend(reversed(missing))
            continue
        yield top
        stack.pop()


def is_long(graph: Graph) -> bool:
    """Whether a graph is long enough to be split, or has loops: parts pass them arrays without copies."""
    if graph.has_loops:
        return True
    stored = WEIGHTS["STORE"] * sum(map(len, chain(graph.outputs, *graph.arguments)))
    return stored + sum(WEIGHTS.get(node[0], 1) for node in graph.nodes) > 2 * LONGEST_FUNCTION


def split(graph: Graph, calls: Sequence[RecordedCall], n_inputs: int, uniform: Sequence[int]) -> Split:
    """uniform: inputs of one array for all SIMD lanes, which cannot be passed to calls directly."""
    tasks = _Tasks(graph, calls, n_inputs, uniform)
    whole, nodes = tasks.whole, tasks.nodes
    last_use = {node: place for place, task in enumerate(tasks.list) for node in tasks.operands(task)}
    slots: dict[int, int] = {}
    free: list[int] = []
    start = 0
    for end in _ends(tasks, last_use):
        steps: list[Task] = []
        for task in tasks.list[start:end]:
            kind, node, *_ = task
            if kind != "VALUE":
                steps.append(task)
            elif last_use.get(node, start) >= end:
                slots[node] = free.pop() if free else tasks.room(1).place
                steps.append(("STORE", node, slots[node]))
        whole.parts.append(GraphPart(nodes, steps))
        nodes = nodes.copy()
        for node, place in slots.items():
            nodes[node] = ("INPUT", n_inputs, place)
        free += [slots.pop(node) for node in list(slots) if last_use[node] < end]
        start = end
    return whole


class _Tasks:
    """The tasks of a routine in order of execution."""

    def __init__(self, graph: Graph, calls: Sequence[RecordedCall], n_inputs: int, uniform: Sequence[int]) -> None:
        self.graph, self.workspace = graph, n_inputs
        self.whole = Split()
        self.list: list[Task] = []
        self.known: set[int] = set()
        results = [[self.room(size) for size in call.routine.output_sizes] for call in calls]
        self.nodes: list[GraphNode] = [
            ("INPUT", n_inputs, results[node[1]][node[2]].place + node[3]) if node[0] == "RESULT" else node
            for node in graph.nodes
        ]
        self.arrays = [k for k in range(n_inputs + 1) if k not in uniform]
        for call, needed, slots in zip(calls, graph.arguments, results, strict=True):
            self.whole.results.append(slots)
            self.call(call, needed)
        # an input must be copied: it may share memory with an output that is filled before
        self.whole.outputs = [self.array(output, (n_inputs,)) for output in graph.outputs]

    def room(self, size: int) -> ArraySlice:
        """A new array in the workspace."""
        self.whole.size += size
        return ArraySlice(self.workspace, self.whole.size - size)

    def compute(self, wanted: int) -> None:
        if wanted in self.known:
            return
        for number in dependencies_first(self.nodes, wanted, self.known):
            kind, *operands = self.nodes[number]
            self.known.add(number)
            if kind in LEAVES:
                continue
            self.list.append(("VALUE", number))
            if kind in ("SIN", "COS"):
                # both are computed together, so they belong to one part
                other = self.graph.known.get(("COS" if kind == "SIN" else "SIN", *operands))
                if other is not None and other not in self.known:
                    self.known.add(other)
                    self.list.append(("VALUE", other))

    def store(self, nodes: Sequence[int], target: ArraySlice) -> None:
        runs = self.runs(nodes)
        gathered = self.gathered(nodes, runs)
        self.list += [("GATHER", array, [(of, target.place + to) for of, to in pairs]) for array, pairs in gathered]
        copied = {to for _, pairs in gathered for _, to in pairs}
        for source, run in runs:
            if source and run[0] in copied:
                continue
            if source and len(run) > 1:
                self.list.append(("COPY", source, target.place + run[0], len(run)))
                continue
            for index in run:
                if index not in copied:
                    self.compute(nodes[index])
                    self.list.append(("STORE", nodes[index], target.place + index))

    def gathered(
        self, nodes: Sequence[int], runs: Sequence[tuple[ArraySlice | None, list[int]]]
    ) -> list[tuple[int, list[tuple[int, int]]]]:
        """(array, [(place in it, index of a node)]) where many nodes are scattered over an array, or are the same."""
        found: dict[int, list[tuple[int, int]]] = {}
        often = {node for node, count in Counter(nodes).items() if count >= GATHERED}
        slots: dict[int, int] = {}
        for source, run in runs:
            if source and len(run) < ADJACENT:
                found.setdefault(source.input, []).extend((source.place + k, index) for k, index in enumerate(run))
            for index in run if source is None else ():
                if nodes[index] in often:
                    if nodes[index] not in slots:
                        self.store([nodes[index]], slot := self.room(1))
                        slots[nodes[index]] = slot.place
                    found.setdefault(self.workspace, []).append((slots[nodes[index]], index))
        return [(array, pairs) for array, pairs in found.items() if len(pairs) >= GATHERED]

    def runs(self, nodes: Sequence[int]) -> list[tuple[ArraySlice | None, list[int]]]:
        """The indices of the nodes in runs: nodes that are adjacent in memory, with the location of the first, or nodes
        that are not in memory."""

        def origin(index: int) -> tuple[int, int] | None:
            kind, *where = self.nodes[nodes[index]]
            return (where[0], where[1] - index) if kind == "INPUT" and where[0] in self.arrays else None

        runs = [(start, list(run)) for start, run in groupby(range(len(nodes)), origin)]
        return [(start and ArraySlice(start[0], start[1] + run[0]), run) for start, run in runs]

    def array(self, nodes: Sequence[int], inputs: Sequence[int]) -> ArraySlice:
        """The nodes as an array: a slice of one of the inputs, or else stored in the workspace."""
        runs = self.runs(nodes)
        if len(runs) == 1 and runs[0][0] and runs[0][0].input in inputs:
            return runs[0][0]
        array = self.room(len(nodes))
        self.store(nodes, array)
        return array

    def call(self, call: RecordedCall, needed: list[list[int]]) -> None:
        n, number = len(call.arguments), len(self.whole.arguments)
        self.whole.arguments.append([self.array(argument, self.arrays) for argument in needed[:n]])
        condition = None
        if call.condition is not None:
            *otherwise, (condition,) = needed[n:]
            for nodes, result in zip(otherwise, self.whole.results[number], strict=True):
                self.store(nodes, result)
            self.compute(condition)
        self.list.append(("CALL", number, condition))

    def operands(self, task: Task) -> Sequence[int]:
        if task[0] == "VALUE":
            return self.nodes[task[1]][1:]
        if task[0] == "STORE":
            return task[1:2]
        return task[2:] if task[0] == "CALL" else ()


def _ends(tasks: _Tasks, last_use: dict[int, int]) -> Iterator[int]:
    """The end of each part: the index of the first task after it."""
    changes = [0] * (len(tasks.list) + 1)
    weights = []
    for place, (kind, number, *_) in enumerate(tasks.list):
        weights.append(WEIGHTS.get(tasks.nodes[number][0] if kind == "VALUE" else kind, 1))
        if kind == "VALUE":
            changes[place + 1] += 1
            changes[last_use.get(number, place) + 1] -= 1
    crossing = list(accumulate(changes))  # number of live values before each task
    lengths = list(accumulate(weights, initial=0))
    start = 0
    while lengths[-1] - lengths[start] > LONGEST_FUNCTION:
        first = bisect_left(lengths, lengths[start] + LONGEST_FUNCTION * 2 // 3)
        beyond = bisect_left(lengths, lengths[start] + LONGEST_FUNCTION)
        start = min(range(first, max(beyond, first + 1)), key=crossing.__getitem__)
        yield start
    yield len(tasks.list)
