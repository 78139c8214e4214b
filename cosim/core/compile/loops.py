"""IR of loops over bodies: calls of the kernel of each body on rows of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.core.compile.mathlib import constant, real
from cosim.core.compile.stack_array import stack_array
from cosim.core.compile.trace import RoutineBase


@dataclass(frozen=True)
class Buffer:
    """Rows of scalars, one row per body.

    A table holds constants (doubles); a workspace is allocated while the routine runs; slices are parts of an input
    vector that begin at `starts`.
    """

    name: str
    width: int
    count: int = 0
    values: np.ndarray | None = None  # of a table
    starts: tuple[int, ...] | None = None  # of slices
    offset: int = 0  # index in each row of the first scalar used

    @property
    def constant(self) -> bool:
        return self.values is not None

    @staticmethod
    def table(name: str, values: np.ndarray, known: list[Buffer]) -> Buffer:
        return _registered(Buffer(name, values.shape[1], len(values), values=values), known)

    @staticmethod
    def workspace(name: str, count: int, width: int, known: list[Buffer]) -> Buffer:
        return _registered(Buffer(name, width, count), known)

    @staticmethod
    def slices(vector: str, starts: np.ndarray, known: list[Buffer]) -> Buffer:
        return _registered(Buffer(vector, 0, starts=tuple(int(s) for s in starts)), known)

    def shifted(self, by: int) -> Buffer:
        return replace(self, offset=self.offset + by)


def _registered(buffer: Buffer, known: list[Buffer]) -> Buffer:
    known.append(buffer)
    return buffer


class LoopWriter:
    """Writes one function: `void @symbol(ptr in0, …, ptr out0, …)`."""

    def __init__(self, symbol: str, lanes: int, bodies: int, inputs: int, outputs: int) -> None:
        self.symbol, self.lanes, self.bodies = symbol, lanes, bodies
        self.t = real(lanes)
        self.parameters = [f"ptr %in{k}" for k in range(inputs)] + [f"ptr %out{k}" for k in range(outputs)]
        self.lines: list[str] = []
        self.globals: dict[str, str] = {}
        self.loops = self.fresh = 0
        self.block = "entry"

    # --- instructions ---

    def add(self, text: str) -> str:
        self.fresh += 1
        self.lines.append(f"  %v{self.fresh} = {text}")
        return f"%v{self.fresh}"

    def array(self, kind: str, values: Sequence[float]) -> str:
        """The name of a constant array of the module."""
        if kind == "double":
            literals = ", ".join(f"double {constant(float(v))}" for v in values)
        else:
            literals = ", ".join(f"{kind} {int(v)}" for v in values)
        body = f"internal constant [{len(values)} x {kind}] [{literals}]"
        if body not in self.globals:
            self.globals[body] = f"@{self.symbol}.array{len(self.globals)}"
        return self.globals[body]

    def lookup(self, kind: str, values: Sequence[float], index: str) -> str:
        address = self.add(f"getelementptr inbounds {kind}, ptr {self.array(kind, values)}, i64 {index}")
        return self.add(f"load {kind}, ptr {address}")

    def row(self, buffer: Buffer, index: str) -> str:
        """A pointer to a row of a buffer."""
        if buffer.starts is not None:
            base, kind = f"%{buffer.name}", self.t
            consecutive = buffer.starts == tuple(range(len(buffer.starts)))
            first = index if consecutive else self.lookup("i64", buffer.starts, index)
        else:
            constants = buffer.values
            base, kind = (
                (f"%{buffer.name}", self.t)
                if constants is None
                else (self.array("double", constants.ravel().tolist()), "double")
            )
            first = self.add(f"mul i64 {index}, {buffer.width}")
        if buffer.offset:
            first = self.add(f"add i64 {first}, {buffer.offset}")
        return self.add(f"getelementptr inbounds {kind}, ptr {base}, i64 {first}")

    def copy(self, source: str, index: int, target: str, at: int) -> None:
        value = self.load(source, index)
        self.store(value, target, at)

    def load(self, pointer: str, index: int | str) -> str:
        return self.add(f"load {self.t}, ptr {self.address(pointer, index)}, align 8")

    def store(self, value: str, pointer: str, index: int) -> None:
        self.lines.append(f"  store {self.t} {value}, ptr {self.address(pointer, index)}, align 8")

    def address(self, pointer: str, index: int | str) -> str:
        return self.add(f"getelementptr inbounds {self.t}, ptr {pointer}, i64 {index}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def begin(self, backwards: bool = False, step: int = 1) -> str:
        """Open a loop over the bodies, or over the first of so many; returns the name of its index."""
        self.loops += 1
        n, before = self.loops, self.block
        first, last = 0, -(-self.bodies // step) * step
        if backwards:
            first, step, last = self.bodies - 1, -1, -1
        self.lines.append(f"  br label %loop{n}")
        self.label(f"loop{n}")
        self.lines.append(f"  %k{n} = phi i64 [ {first}, %{before} ], [ %k{n}.next, %loop{n}.end ]")
        self._end = (n, step, last)
        return f"%k{n}"

    def end(self) -> None:
        n, step, last = self._end
        self.lines.append(f"  br label %loop{n}.end")
        self.label(f"loop{n}.end")
        self.lines.append(f"  %k{n}.next = add i64 %k{n}, {step}")
        self.lines.append(f"  %more{n} = icmp ne i64 %k{n}.next, {last}")
        self.lines.append(f"  br i1 %more{n}, label %loop{n}, label %after{n}")
        self.label(f"after{n}")

    def call(self, kernels: Sequence[RoutineBase], classes: Sequence[int], index: str, pointers: Sequence[str]) -> None:
        """Call the kernel of the body's class."""
        typed = ", ".join(f"ptr {p}" for p in pointers)
        calls = [f"  call void @{kernel.symbol}.{self.lanes}({typed})" for kernel in kernels]
        if len(calls) == 1:
            self.lines.append(calls[0])
            return
        n = self.loops
        chosen = self.lookup("i32", classes, index)
        cases = " ".join(f"i32 {c}, label %class{n}.{c}" for c in range(1, len(calls)))
        self.lines.append(f"  switch i32 {chosen}, label %class{n}.0 [ {cases} ]")
        for c, line in enumerate(calls):
            self.label(f"class{n}.{c}")
            self.lines += [line, f"  br label %called{n}"]
        self.label(f"called{n}")

    # --- stages ---

    def outward(
        self,
        kernels: Sequence[RoutineBase],
        classes: Sequence[int],
        parents: Sequence[int],
        given: Sequence[Buffer],
        root: Sequence[float],
        down: Buffer,
        out: Buffer,
    ) -> None:
        """down[0] = root; (down[k + 1], out[k]) = kernel(table, down[parent + 1], columns)."""
        for index, value in enumerate(root):
            self.store(constant(value, self.lanes), f"%{down.name}", index)
        k = self.begin()
        table, *columns = given
        above = self.lookup("i64", [p + 1 for p in parents], k)
        below = self.add(f"add i64 {k}, 1")
        pointers = [self.row(table, k), self.row(down, above), *(self.row(c, k) for c in columns)]
        self.call(kernels, classes, k, [*pointers, self.row(down, below), self.row(out, k)])
        self.end()

    def inward(
        self,
        kernels: Sequence[RoutineBase],
        classes: Sequence[int],
        parents: Sequence[int],
        given: Sequence[Buffer],
        sums: Buffer,
        out: Buffer,
    ) -> None:
        """(sums[parent + 1], out[k]) = kernel(table, sums[k + 1], columns, sums[parent + 1]), sums from 0."""
        size = 8 * self.lanes * sums.count * sums.width
        self.lines.append(f"  call void @llvm.memset.p0.i64(ptr %{sums.name}, i8 0, i64 {size}, i1 false)")
        k = self.begin(backwards=True)
        table, *columns = given
        here = self.add(f"add i64 {k}, 1")
        parent = self.row(sums, self.lookup("i64", [p + 1 for p in parents], k))
        pointers = [self.row(table, k), self.row(sums, here), *(self.row(c, k) for c in columns), parent]
        self.call(kernels, classes, k, [*pointers, parent, self.row(out, k)])
        self.end()

    def gather(
        self, kernels: Sequence[RoutineBase], classes: Sequence[int], given: Sequence[Buffer], total: Buffer
    ) -> None:
        """total = kernel(table, total, columns) for every body, from 0."""
        for index in range(total.width):
            self.store(constant(0.0, self.lanes), f"%{total.name}", index)
        k = self.begin()
        table, *columns = given
        pointers = [self.row(table, k), f"%{total.name}", *(self.row(c, k) for c in columns)]
        # no result per body: the last pointer is never written
        self.call(kernels, classes, k, [*pointers, f"%{total.name}", f"%{total.name}"])
        self.end()

    def scatter(self, source: Buffer, constants: Sequence[float | None], target: str, starts: np.ndarray) -> None:
        """target[starts[k] + i] = element i of the pytree of body k."""
        k = self.begin()
        row = self.row(source, k)
        out = self.row(Buffer(target.lstrip("%"), 0, starts=tuple(int(s) for s in starts)), k)
        place = 0
        for index, value in enumerate(constants):
            if value is None:
                self.copy(row, place, out, index)
                place += 1
            else:
                self.store(constant(float(value), self.lanes), out, index)
        self.end()

    def move(self, source: Buffer, target: str) -> None:
        """target = the first row of a buffer."""
        for index in range(source.width):
            self.copy(f"%{source.name}", index, target, index)

    def text(self, buffers: Sequence[Buffer]) -> str:
        """The function, with its constant arrays and its workspace."""
        spaces = {b.name: b for b in buffers if b.values is None and b.starts is None}
        sizes = [max(b.count * b.width, 1) for b in spaces.values()]
        size = 8 * self.lanes
        setup = [stack_array("%space", sum(sizes) * size)]
        start = 0
        for name, n in zip(spaces, sizes, strict=True):
            setup.append(f"  %{name} = getelementptr inbounds {self.t}, ptr %space, i64 {start}")
            start += n
        arrays = [f"{name} = {body}" for body, name in self.globals.items()]
        head = f"define internal void @{self.symbol}({', '.join(self.parameters)}) nounwind {{"
        body = [head, "entry:", *setup, *self.lines, "  ret void", "}"]
        return "\n".join([*arrays, *body]) + "\n"


def gathering(symbol: str, lanes: int, places: Sequence[tuple[int, int]]) -> str:
    """`void @symbol(ptr in, ptr out)`: out[to] = in[of] for each (of, to)."""
    writer = LoopWriter(symbol, lanes, len(places), 1, 1)
    k = writer.begin()
    source, target = (writer.lookup("i64", column, k) for column in zip(*places, strict=True))
    address = writer.add(f"getelementptr inbounds {writer.t}, ptr %in0, i64 {source}")
    value = writer.add(f"load {writer.t}, ptr {address}, align 8")
    address = writer.add(f"getelementptr inbounds {writer.t}, ptr %out0, i64 {target}")
    writer.lines.append(f"  store {writer.t} {value}, ptr {address}, align 8")
    writer.end()
    return writer.text([])
