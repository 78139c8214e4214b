"""Entries of a routine: IR of its batch loop, and of one state straight from the memory of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.compile.mathlib import real
from cosim.core.compile.stack_array import large_on_heap


@dataclass(frozen=True)
class ArrayPort:
    """One array argument: its name, the shape of one state, and whether its elements are booleans."""

    name: str
    shape: tuple[int, ...]
    boolean: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))


def batch(symbol: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort], lanes: int) -> str:
    """IR of `@symbol.batch(in…, out…, i64 k)`: k states, one per row, in blocks of `lanes` (SIMD lanes).

    The last block repeats the last row in its idle lanes, so that every row is computed by the same code.
    """
    t, ports = real(lanes), [*inputs, *outputs]
    parameters = [f"ptr %p{i}" for i in range(len(ports))] + ["i64 %k"]
    lines = [f"define void @{symbol}.batch({', '.join(parameters)}) nounwind {{", "entry:"]
    lines += [f"  %s{i} = alloca [{max(p.size, 1)} x {t}], align 64" for i, p in enumerate(ports)]
    lines += ["  %last = sub i64 %k, 1", "  br label %head"]
    lines += ["head:", "  %b = phi i64 [ 0, %entry ], [ %b.next, %rows.end ]"]
    lines += ["  %more = icmp slt i64 %b, %k", "  br i1 %more, label %rows, label %finish", "rows:"]
    for lane in range(lanes):
        lines.append(f"  %row.raw{lane} = add i64 %b, {lane}")
        lines.append(f"  %row{lane} = call i64 @llvm.smin.i64(i64 %row.raw{lane}, i64 %last)")
    previous = "rows"
    for i, port in enumerate(inputs):
        lines += _columns(i, port, previous, lanes, reading=True)
        previous = f"done{i}"
    typed = ", ".join(f"ptr %s{i}" for i in range(len(ports)))
    lines.append(f"  call void @{symbol}.{lanes}({typed})")
    for i, port in enumerate(outputs, len(inputs)):
        lines += _columns(i, port, previous, lanes, reading=False)
        previous = f"done{i}"
    lines += ["  br label %rows.end", "rows.end:", f"  %b.next = add i64 %b, {lanes}", "  br label %head"]
    lines += ["finish:", "  ret void", "}"]
    return large_on_heap("\n".join(lines) + "\n")


def _columns(i: int, port: ArrayPort, previous: str, lanes: int, reading: bool) -> list[str]:
    """IR that copies array i between rows in memory and SIMD lanes on the stack, element by element."""
    t, lines = real(lanes), []
    element = "i8" if port.boolean else "double"
    lines += [f"  %any{i} = icmp sgt i64 {port.size}, 0", f"  br i1 %any{i}, label %loop{i}, label %done{i}"]
    lines += [f"loop{i}:", f"  %j{i} = phi i64 [ 0, %{previous} ], [ %j{i}.next, %loop{i} ]"]
    lines.append(f"  %slot{i} = getelementptr inbounds {t}, ptr %s{i}, i64 %j{i}")
    vector = "undef" if reading else f"%w{i}"
    if not reading:
        lines.append(f"  %w{i} = load {t}, ptr %slot{i}, align 8")
    for lane in range(lanes):
        n = f"{i}.{lane}"
        lines.append(f"  %start{n} = mul i64 %row{lane}, {port.size}")
        lines.append(f"  %index{n} = add i64 %start{n}, %j{i}")
        lines.append(f"  %at{n} = getelementptr inbounds {element}, ptr %p{i}, i64 %index{n}")
        if reading:
            value = f"%x{n}"
            lines.append(f"  {value} = load {element}, ptr %at{n}")
            if port.boolean:
                lines.append(f"  %f{n} = uitofp i8 {value} to double")
                value = f"%f{n}"
            if lanes == 1:
                vector = value
            else:
                lines.append(f"  %w{n} = insertelement {t} {vector}, double {value}, i32 {lane}")
                vector = f"%w{n}"
        else:
            value = vector
            if lanes > 1:
                value = f"%x{n}"
                lines.append(f"  {value} = extractelement {t} {vector}, i32 {lane}")
            lines.append(f"  store double {value}, ptr %at{n}")
    if reading:
        lines.append(f"  store {t} {vector}, ptr %slot{i}, align 8")
    lines += [f"  %j{i}.next = add i64 %j{i}, 1", f"  %on{i} = icmp slt i64 %j{i}.next, {port.size}"]
    lines += [f"  br i1 %on{i}, label %loop{i}, label %done{i}", f"done{i}:"]
    return lines


def single(symbol: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort]) -> str:
    """IR of `@symbol.one(in…, out…)`: one state straight from the arrays' memory (booleans converted to doubles)."""
    ports = [*inputs, *outputs]
    w = EntryWriter()
    w(f"define void @{symbol}.one({', '.join(f'ptr %p{i}' for i in range(len(ports)))}) nounwind {{")
    pointers = [f"%p{i}" for i in range(len(ports))]
    for i, port in enumerate(inputs):
        if port.boolean:
            pointers[i] = w.value(f"alloca [{max(port.size, 1)} x double], align 64")
    for i, port in enumerate(inputs):
        for j in range(port.size if port.boolean else 0):
            wide = w.value(f"uitofp i8 {w.element(f'%p{i}', j, 'i8')} to double")
            w(f"  store double {wide}, ptr {w.address(pointers[i], j, 'double')}")
    w(f"  call void @{symbol}.1({', '.join(f'ptr {p}' for p in pointers)})")
    w("  ret void")
    w("}")
    return "\n".join(w.lines) + "\n"


class EntryWriter:
    """Lines of IR with unique names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.fresh = 0

    def __call__(self, *lines: str) -> None:
        self.lines += lines

    def value(self, text: str) -> str:
        self.fresh += 1
        self(f"  %t{self.fresh} = {text}")
        return f"%t{self.fresh}"

    def field(self, obj: str, offset: int, kind: str) -> str:
        """A member of a C struct, `offset` bytes in."""
        return self.value(f"load {kind}, ptr {self.address(obj, offset, 'i8')}")

    def element(self, array: str, index: int, kind: str = "ptr") -> str:
        return self.value(f"load {kind}, ptr {self.address(array, index, kind)}")

    def address(self, base: str, index: int, kind: str) -> str:
        return self.value(f"getelementptr inbounds {kind}, ptr {base}, i64 {index}")

    def branch(self, tests: Sequence[str], target: str) -> None:
        """Go to `target` when every test holds, else to the fallback."""
        verdict = self.value(tests[0])
        for test in tests[1:]:
            verdict = self.value(f"and i1 {verdict}, {self.value(test)}")
        self(f"  br i1 {verdict}, label %{target}, label %fallback")
