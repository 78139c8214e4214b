"""From a graph of operations to LLVM IR, for one state or for several states in SIMD lanes.

Every routine is `void @symbol.<lanes>(ptr in_0, …, ptr out_0, …)`; arrays are contiguous values of type T.
All inputs are loaded before the first store, so that an output may share memory with an input.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from cosim.core.compile.loops import gathering
from cosim.core.compile.lower import Graph, GraphNode
from cosim.core.compile.mathlib import TOGETHER, constant, lane_calls, real, suffix
from cosim.core.compile.operations import COMPARISONS, INSTRUCTIONS, INTRINSICS, LEAVES, LIBM, LOGIC, OF_TWO, SELECTIONS
from cosim.core.compile.split import dependencies_first, is_long, split
from cosim.core.compile.stack_array import stack_array
from cosim.core.compile.trace import RecordedCall

_WRITTEN_OUT = {"ASSIGN", "NEG", "SQ", "TWICE", "INV", "SIGN", "NOT", "IF_ELSE_ZERO", "SELECT", "SIN", "COS"}
_SUPPORTED = _WRITTEN_OUT.union(INSTRUCTIONS, INTRINSICS, SELECTIONS, LIBM, COMPARISONS, LOGIC)


def supported(operation: str) -> bool:
    return operation in _SUPPORTED


class Emitter:
    """Writes one function; a node is emitted at its first use."""

    def __init__(
        self, nodes: Sequence[GraphNode], lanes: int, input_pointers: list[str], uniform: Sequence[int]
    ) -> None:
        self.nodes, self.lanes = nodes, lanes
        self.t, self.s = real(lanes), suffix(lanes)
        self.bit = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.inputs, self.uniform = input_pointers, uniform
        self.results: list[list[str]] = []  # pointers to the outputs of the calls made so far
        self.lines: list[str] = []
        self.value: dict[int, str] = {}
        self.boolean: set[int] = set()
        self.sincos: dict[int, tuple[str, str]] = {}  # argument -> its sin and cos
        self.fresh = 0

    def name(self) -> str:
        self.fresh += 1
        return f"%v{self.fresh}"

    def add(self, text: str) -> str:
        result = self.name()
        self.lines.append(f"  {result} = {text}")
        return result

    def address(self, pointer: str, index: int) -> str:
        return self.add(f"getelementptr inbounds {self.t}, ptr {pointer}, i64 {index}")

    def load(self, pointer: str, index: int) -> str:
        address = self.address(pointer, index)
        return self.add(f"load {self.t}, ptr {address}, align 8")

    def load_for_all(self, pointer: str, index: int) -> str:
        """One double, repeated in every lane."""
        address = self.add(f"getelementptr inbounds double, ptr {pointer}, i64 {index}")
        value = self.add(f"load double, ptr {address}, align 8")
        if self.lanes == 1:
            return value
        first = self.add(f"insertelement {self.t} undef, double {value}, i32 0")
        return self.add(f"shufflevector {self.t} {first}, {self.t} undef, <{self.lanes} x i32> zeroinitializer")

    def store(self, value: str, pointer: str, index: int) -> None:
        address = self.address(pointer, index)
        self.lines.append(f"  store {self.t} {value}, ptr {address}, align 8")

    def real(self, node: int) -> str:
        """The node as a float; conditions become 0 or 1."""
        self.need(node)
        if node in self.boolean:
            return self.add(f"uitofp {self.bit} {self.value[node]} to {self.t}")
        return self.value[node]

    def condition(self, node: int) -> str:
        """The node as a condition; floats are true if they are not 0."""
        self.need(node)
        if node in self.boolean:
            return self.value[node]
        return self.add(f"fcmp une {self.t} {self.value[node]}, {constant(0.0, self.lanes)}")

    def whole(self, nodes: list[int], kind: str) -> tuple[str, int] | None:
        """(pointer, length) if the nodes are the elements, in order, of one input or of one call's result, which then
        needs no copy of its elements."""
        leaves = [self.nodes[node] for node in nodes]
        if len(leaves) < 2 or leaves[0][0] != kind:
            return None
        array = leaves[0][1:-1]
        if leaves != [(kind, *array, index) for index in range(len(leaves))] or array[0] in self.uniform:
            return None
        return (self.inputs[array[0]] if kind == "INPUT" else self.results[array[0]][array[1]]), len(leaves)

    def copy(self, source: str, length: int, target: str) -> None:
        size = 8 * self.lanes * length
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def need(self, node: int) -> None:
        """Emit the node and its dependencies."""
        if node in self.value:
            return
        for number in dependencies_first(self.nodes, node, self.value):
            kind, *operands = self.nodes[number]
            self.value[number] = self.emit(number, kind, operands)

    def _sin_and_cos(self, name: str, t: str, value: str) -> tuple[str, str]:
        both = self.add(f"call {{ {t}, {t} }} @cosim.sincos.{name}({t} {value})")
        sine, cosine = (self.add(f"extractvalue {{ {t}, {t} }} {both}, {k}") for k in range(2))
        return sine, cosine

    def together(self, wanted: Sequence[int], known: Sequence[int]) -> None:
        """In scalar code, compute sin and cos of several arguments at once, as lanes: those that the wanted nodes need
        and that follow from the inputs `known` without another sin or cos."""
        arguments = _angles(self.nodes, wanted, frozenset(known)) if self.lanes == 1 else []
        t = real(TOGETHER)
        for first in range(0, len(arguments), TOGETHER):
            group = arguments[first : first + TOGETHER]
            if len(group) == 1:
                return
            vector = "undef"
            for lane in range(TOGETHER):
                value = self.real(group[min(lane, len(group) - 1)])
                vector = self.add(f"insertelement {t} {vector}, double {value}, i32 {lane}")
            pair = self._sin_and_cos(str(TOGETHER), t, vector)
            for lane, argument in enumerate(group):
                sine, cosine = (self.add(f"extractelement {t} {both}, i32 {lane}") for both in pair)
                self.sincos[argument] = sine, cosine

    def emit(self, node: int, kind: str, operands: list) -> str:
        t, bit = self.t, self.bit
        if kind == "CONST":
            return constant(operands[0], self.lanes)
        if kind == "INPUT":
            load = self.load_for_all if operands[0] in self.uniform else self.load
            return load(self.inputs[operands[0]], operands[1])
        if kind == "RESULT":
            return self.load(self.results[operands[0]][operands[1]], operands[2])
        if kind in LOGIC or kind == "NOT" or kind in COMPARISONS:
            self.boolean.add(node)
            if kind in COMPARISONS:
                a, b = (self.real(i) for i in operands)
                return self.add(f"fcmp {COMPARISONS[kind]} {t} {a}, {b}")
            conditions = [self.condition(i) for i in operands]
            if kind == "NOT":
                true = "true" if self.lanes == 1 else "splat (i1 true)"
                return self.add(f"xor {bit} {conditions[0]}, {true}")
            return self.add(f"{LOGIC[kind]} {bit} {conditions[0]}, {conditions[1]}")
        if kind in ("IF_ELSE_ZERO", "SELECT"):
            condition = self.condition(operands[0])
            a = self.real(operands[1])
            b = self.real(operands[2]) if kind == "SELECT" else constant(0.0, self.lanes)
            return self.add(f"select {bit} {condition}, {t} {a}, {t} {b}")
        values = [self.real(i) for i in operands]
        if kind in INSTRUCTIONS:
            return self.add(f"{INSTRUCTIONS[kind]} {t} {values[0]}, {values[1]}")
        if kind in ("MULADD", "MULSUB", "SUBMUL"):
            if kind != "MULADD":
                minus = 2 if kind == "MULSUB" else 0
                values[minus] = self.add(f"fneg {t} {values[minus]}")
            typed = ", ".join(f"{t} {v}" for v in values)
            return self.add(f"call {t} @llvm.fmuladd.{self.s}({typed})")
        if kind == "NEG":
            return self.add(f"fneg {t} {values[0]}")
        if kind in INTRINSICS:
            typed = ", ".join(f"{t} {v}" for v in values)
            return self.add(f"call {t} @{INTRINSICS[kind]}.{self.s}({typed})")
        if kind in SELECTIONS:
            a, b = values
            second = self.add(f"fcmp {SELECTIONS[kind]} {t} {b}, {a}")
            one = self.add(f"select {bit} {second}, {t} {b}, {t} {a}")
            missing = self.add(f"fcmp uno {t} {a}, {a}")
            return self.add(f"select {bit} {missing}, {t} {b}, {t} {one}")
        if kind in ("SIN", "COS"):
            if operands[0] not in self.sincos:
                self.sincos[operands[0]] = self._sin_and_cos(str(self.lanes), t, values[0])
            return self.sincos[operands[0]][0 if kind == "SIN" else 1]
        if kind == "SIGN":
            one = self.add(f"call {t} @llvm.copysign.{self.s}({t} {constant(1.0, self.lanes)}, {t} {values[0]})")
            moving = self.add(f"fcmp one {t} {values[0]}, {constant(0.0, self.lanes)}")
            return self.add(f"select {bit} {moving}, {t} {one}, {t} {values[0]}")
        result = self.name()
        self.lines += lane_calls(result, LIBM[kind], values, self.lanes)
        return result


def _angles(nodes: Sequence[GraphNode], wanted: Sequence[int], known: frozenset[int]) -> list[int]:
    """Arguments of sin and cos below the wanted nodes, in the order of their use, that depend on these inputs and
    constants alone."""
    reached: set[int] = set()
    plain: dict[int, bool] = {}
    found: dict[int, None] = {}
    for node in wanted:
        for number in dependencies_first(nodes, node, reached):
            reached.add(number)
            kind, *operands = nodes[number]
            if kind in LEAVES:
                plain[number] = kind == "CONST" or (kind == "INPUT" and operands[0] in known)
                continue
            plain[number] = all(plain[k] for k in operands)
            if kind in ("SIN", "COS"):
                if plain[number]:
                    found[operands[0]] = None
                plain[number] = False
    return list(found)


def function(
    symbol: str, graph: Graph, calls: Sequence[RecordedCall], lanes: int, n_inputs: int, uniform: Sequence[int] = ()
) -> str:
    """The text of `@symbol.<lanes>`; a long graph becomes several functions."""
    if is_long(graph):
        return _in_parts(symbol, graph, calls, lanes, n_inputs, uniform)
    ins = [f"%in{k}" for k in range(n_inputs)]
    outs = [f"%out{k}" for k in range(len(graph.outputs))]
    e = Emitter(graph.nodes, lanes, ins, uniform)
    e.together([*chain(*graph.outputs, *chain(*graph.arguments))], range(n_inputs))
    for number, (call, needed) in enumerate(zip(calls, graph.arguments, strict=True)):
        _call(e, number, call, needed)
    whole = [e.whole(output, "RESULT") for output in graph.outputs]
    values = [[] if w else [e.real(node) for node in output] for w, output in zip(whole, graph.outputs, strict=True)]
    for pointer, source, output in zip(outs, whole, values, strict=True):
        if source:
            e.copy(*source, pointer)
        for index, v in enumerate(output):
            e.store(v, pointer, index)
    return _text(f"{symbol}.{lanes}", ins + outs, _allocations_first(e.lines))


def _text(symbol: str, parameters: list[str], lines: list[str]) -> str:
    head = f"define internal void @{symbol}({', '.join(f'ptr {p}' for p in parameters)}) nounwind {{"
    return "\n".join([head, *lines, "  ret void", "}"]) + "\n"


def _in_parts(
    symbol: str, graph: Graph, calls: Sequence[RecordedCall], lanes: int, n_inputs: int, uniform: Sequence[int]
) -> str:
    """The text of `@symbol.<lanes>`, which calls its parts in sequence and then fills the outputs."""
    whole = split(graph, calls, n_inputs, uniform)
    ins = [f"%in{k}" for k in range(n_inputs)]
    outs = [f"%out{k}" for k in range(len(graph.outputs))]
    space = "%workspace"
    main = Emitter(graph.nodes, lanes, ins, uniform)
    main.lines = [stack_array(space, 8 * lanes * whole.size)]
    texts = []
    for k, part in enumerate(whole.parts):
        e = Emitter(part.nodes, lanes, [*ins, space], uniform)
        # the workspace is no input: calls of this part write to it
        e.together([what for kind, what, *_ in part.tasks if kind == "STORE"], range(n_inputs))
        for kind, what, *where in part.tasks:
            if kind == "STORE":
                e.store(e.real(what), space, *where)
            elif kind == "COPY":
                place, count = where
                e.copy(e.address(e.inputs[what.input], what.place), count, e.address(space, place))
            elif kind == "GATHER":
                texts.append(gathering(f"{symbol}.gather{len(texts)}.{lanes}", lanes, *where))
                e.lines.append(
                    f"  call void @{symbol}.gather{len(texts) - 1}.{lanes}(ptr {e.inputs[what]}, ptr {space})"
                )
            else:
                arrays = whole.arguments[what] + whole.results[what]
                _make(e, what, calls[what], [e.address(e.inputs[a.input], a.place) for a in arrays], *where)
        name = f"{symbol}.part{k}.{lanes}"
        texts.append(_text(name, [*ins, f"noalias {space}"], _allocations_first(e.lines)))
        typed = ", ".join(f"ptr {p}" for p in [*ins, space])
        main.lines.append(f"  call void @{name}({typed})")
    for pointer, array, output in zip(outs, whole.outputs, graph.outputs, strict=True):
        main.copy(main.address(space, array.place), len(output), pointer)
    return "".join([*texts, _text(f"{symbol}.{lanes}", ins + outs, main.lines)])


def _call(e: Emitter, number: int, call: RecordedCall, needed: list[list[int]]) -> None:
    """Emit one call with arguments and results on the stack."""
    n = len(call.arguments)
    given = [e.whole(argument, "INPUT") for argument in needed[:n]]
    slots = [e.add(f"alloca [{max(size, 1)} x {e.t}], align 64") for size in call.routine.output_sizes]
    arguments = []
    for source, argument in zip(given, needed[:n], strict=True):
        if source is None:
            arguments.append(e.add(f"alloca [{max(len(argument), 1)} x {e.t}], align 64"))
            _fill(e, arguments[-1], argument)
        else:
            arguments.append(source[0])
    condition = None
    if call.condition is not None:
        # every value is computed before the branch, so that both paths have it
        *otherwise, (condition,) = needed[n:]
        for slot, values in zip(slots, otherwise, strict=True):
            _fill(e, slot, values)
    _make(e, number, call, [*arguments, *slots], condition)
    e.results.append(slots)


def _make(e: Emitter, number: int, call: RecordedCall, pointers: list[str], condition: int | None) -> None:
    """Emit the call instruction, under its condition if it has one: then for all lanes as soon as one needs it, and
    each lane takes the results only where its condition holds."""
    if condition is None:
        e.lines.append(_call_line(e, call, pointers))
        return
    holds, count = e.condition(condition), len(call.arguments)
    arguments, results = pointers[:count], pointers[count:]
    needed, made = holds, results
    if e.lanes > 1:
        needed = e.add(f"call i1 @llvm.vector.reduce.or.v{e.lanes}i1({e.bit} {holds})")
        made = [e.add(f"alloca [{max(size, 1)} x {e.t}], align 64") for size in call.routine.output_sizes]
    e.lines += [f"  br i1 {needed}, label %call{number}, label %after{number}", f"call{number}:"]
    e.lines.append(_call_line(e, call, [*arguments, *made]))
    if e.lanes > 1:
        for source, target, size in zip(made, results, call.routine.output_sizes, strict=True):
            for index in range(size):
                new, old = e.load(source, index), e.load(target, index)
                e.store(e.add(f"select {e.bit} {holds}, {e.t} {new}, {e.t} {old}"), target, index)
    e.lines += [f"  br label %after{number}", f"after{number}:"]


def _call_line(e: Emitter, call: RecordedCall, pointers: list[str]) -> str:
    return f"  call void @{call.routine.symbol}.{e.lanes}({', '.join(f'ptr {p}' for p in pointers)})"


def _fill(e: Emitter, pointer: str, nodes: list[int]) -> None:
    for index, node in enumerate(nodes):
        e.store(e.real(node), pointer, index)


def _allocations_first(lines: list[str]) -> list[str]:
    """The lines with stack allocations moved to the entry of the function."""
    slots = [line for line in lines if "= alloca " in line]
    return slots + [line for line in lines if "= alloca " not in line] if slots else lines


def declarations(lanes: set[int]) -> str:
    """Declarations of the functions that routines of a module may call."""
    lines = ['!0 = !{!"branch_weights", i32 1, i32 1000000}']
    if 1 in lanes:
        lanes = lanes | {TOGETHER}  # `mathlib.sincos`
    for n in sorted(lanes):
        t, s = real(n), suffix(n)
        for intrinsic in [*INTRINSICS.values(), "llvm.rint"]:
            arguments = f"{t}, {t}" if intrinsic == "llvm.copysign" else t
            lines.append(f"declare {t} @{intrinsic}.{s}({arguments})")
        lines += [f"declare {t} @llvm.{fused}.{s}({t}, {t}, {t})" for fused in ("fma", "fmuladd")]
        if n > 1:
            lines.append(f"declare i1 @llvm.vector.reduce.or.v{n}i1(<{n} x i1>)")
    for name in sorted({*LIBM.values(), "sin", "cos"}):
        lines.append(f"declare double @{name}({'double, double' if name in OF_TWO else 'double'}) nounwind")
    lines += ["declare ptr @malloc(i64)", "declare void @free(ptr)"]
    lines.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    lines.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    return "\n".join(lines) + "\n"
