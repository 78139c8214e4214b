"""From a trace to a graph of operations without common subexpressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cosim.core.compile.operations import COMMUTATIVE, FUSED, LEAVES, casadi_names
from cosim.core.compile.trace import Trace
from cosim.core.errors import CompileError

MOST_OUTPUTS = 2**31 - 1  # of a function of casadi, which warns of more than 10 000
# (operation, operand, operand), operands by node number, or a leaf; Any: the elements depend on the operation
GraphNode = tuple[Any, ...]


@dataclass
class Graph:
    """Nodes in topological order, operands first.

    `outputs[k][i]` is the node of element i of output k; `arguments[c][k][i]` the same for the inputs of
    call c (`RecordedCall.expressions`). Leaves are ("INPUT", k, i), ("RESULT", c, k, i) and ("CONST", value).
    """

    nodes: list[GraphNode] = field(default_factory=list)
    operations: int = 0  # arithmetic operations of one evaluation; leaves and calls are not counted
    outputs: list[list[int]] = field(default_factory=list)
    arguments: list[list[list[int]]] = field(default_factory=list)
    known: dict[GraphNode, int] = field(default_factory=dict)
    has_loops: bool = False  # whether calls of loops over items take parts of arrays

    def node(self, *parts: Any) -> int:
        if parts[0] in COMMUTATIVE and parts[1] > parts[2]:
            parts = (parts[0], parts[2], parts[1])
        number = self.known.get(parts)
        if number is None:
            number = self.known[parts] = len(self.nodes)
            self.nodes.append(parts)
        return number


def lower(trace: Trace, supported: Callable[[str], bool], place: str) -> Graph:
    """The graph of a trace. Raises CompileError for an operation without machine code."""
    import casadi

    leaves = [("INPUT", k) for k in range(len(trace.inputs))]
    sources = list(trace.inputs)
    targets = list(trace.outputs)
    for c, call in enumerate(trace.calls):
        leaves += [("RESULT", c, k) for k in range(len(call.results))]
        sources += call.results
        targets += call.expressions
    targets = [casadi.densify(target) for target in targets]
    f = casadi.Function("f", sources, targets, {"live_variables": False, "allow_free": True, "max_io": MOST_OUTPUTS})
    if f.has_free():
        raise CompileError(f"'{trace.name}' uses symbols that are not among its inputs: {f.get_free()}", place)

    graph = Graph()
    slots: list[list[int]] = [[0] * target.numel() for target in targets]
    value: dict[int, int] = {}
    names, const = casadi_names(), casadi.OP_CONST
    op_of, in_of, out_of = f.instruction_id, f.instruction_input, f.instruction_output
    for k in range(f.n_instructions()):
        operation = op_of(k)
        if operation == casadi.OP_INPUT:
            source, element = in_of(k)
            value[out_of(k)[0]] = graph.node(*leaves[source], element)
        elif operation == casadi.OP_OUTPUT:
            target, element = out_of(k)
            slots[target][element] = value[in_of(k)[0]]
        elif operation == const:
            # the sign of zero matters to equality of nodes: 0.0 == -0.0 in Python
            constant = f.instruction_constant(k)
            value[out_of(k)[0]] = graph.node("CONST", constant, str(constant))
        else:
            name = names.get(operation, str(operation))
            if not supported(name):
                raise CompileError(
                    f"'{trace.name}' uses the operation {name.lower()}, which has no machine code here;"
                    " write it with the functions of cosim.plugin.ops",
                    place,
                )
            value[out_of(k)[0]] = _simplified(graph, name, [value[i] for i in in_of(k)])
    graph.outputs = slots[: len(trace.outputs)]
    rest = iter(slots[len(trace.outputs) :])
    graph.arguments = [[next(rest) for _ in call.expressions] for call in trace.calls]
    graph.operations = sum(node[0] not in LEAVES for node in graph.nodes)
    return graph


def fuse(graph: Graph) -> None:
    """Fuse a product that is used once with the sum that uses it.

    LLVM would fuse depending on neighbouring instructions, and one state would differ from a batch in the last bit.
    """
    uses = Counter(i for kind, *operands in graph.nodes if kind not in LEAVES for i in operands)
    uses.update(i for output in graph.outputs for i in output)
    uses.update(i for call in graph.arguments for argument in call for i in argument)
    for k, (kind, *operands) in enumerate(graph.nodes):
        for which, fused in FUSED.get(kind, ()):
            factors = graph.nodes[operands[which]]
            if factors[0] == "MUL" and uses[operands[which]] == 1:
                graph.nodes[k] = (fused, factors[1], factors[2], operands[1 - which])
                break


def _simplified(graph: Graph, name: str, operands: list[int]) -> int:
    """The node of an operation; casadi's composed operations are decomposed."""
    if name == "ASSIGN":
        return operands[0]
    if name == "SQ":
        return graph.node("MUL", operands[0], operands[0])
    if name == "TWICE":
        return graph.node("ADD", operands[0], operands[0])
    if name == "INV":
        return graph.node("DIV", graph.node("CONST", 1.0, "1.0"), operands[0])
    if name == "COPYSIGN" and graph.nodes[operands[0]] == ("DIV", graph.node("CONST", 1.0, "1.0"), operands[1]):
        return operands[0]  # `ops.reciprocal`
    if name == "ADD":
        # casadi writes a choice as (c ? a : 0) + (!c ? b : 0)
        left, right = (graph.nodes[i] for i in operands)
        if left[0] == right[0] == "IF_ELSE_ZERO":
            for (_, c, a), (_, d, b) in ((left, right), (right, left)):
                if graph.nodes[d] == ("NOT", c):
                    return graph.node("SELECT", c, a, b)
    return graph.node(name, *operands)
