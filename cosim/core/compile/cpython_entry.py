"""Entries of a routine for Python: IR of its batch loop and of its call by CPython's fast calling convention.

`ndarray.ctypes.data` alone costs several hundred nanoseconds, so the generated entry reads the arrays'
headers itself (the layout of PyArrayObject is part of numpy's stable ABI and is verified at start-up by
`layout_is_known`). Arguments that do not match exactly in shape, dtype, contiguity and alignment go to the
Python fallback, which converts them or raises an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cosim.core.compile.mathlib import real

# offsets in bytes on 64-bit CPython with ordinary object headers
OB_TYPE, ARRAY_DATA, ARRAY_NDIM, ARRAY_DIMS, ARRAY_DESCR, ARRAY_FLAGS = 8, 16, 24, 32, 56, 64
TUPLE_SIZE, TUPLE_ITEMS = 16, 24
READABLE = 0x0001 | 0x0100  # C contiguous, aligned
WRITEABLE = READABLE | 0x0400


@dataclass(frozen=True)
class ArrayPort:
    """One array argument: its name, the shape of one state, and whether its elements are booleans."""

    name: str
    shape: tuple[int, ...]
    boolean: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))


def symbol_addresses() -> dict[str, int]:
    """Addresses of the Python objects and functions that generated entries refer to."""
    api = {
        name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
        for name in ("PyObject_Vectorcall", "Py_IncRef")
    }
    return {
        **api,
        "cosim_ndarray": id(np.ndarray),
        "cosim_float64": id(np.dtype(np.float64)),
        "cosim_bool": id(np.dtype(np.bool_)),
        "cosim_tuple": id(tuple),
        "cosim_out": id(_OUT),
    }


_OUT = next(iter({"out": None}))  # the interned name that keyword calls pass


@cache
def layout_is_known() -> bool:
    """Whether arrays and tuples of this interpreter have the memory layout that the entries expect."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or np.dtype(np.intp).itemsize != 8:
        return False
    probe, pair = np.zeros((3, 5)), (probe_item := object(), None)

    def word(thing: object, offset: int) -> int:
        return ctypes.c_int64.from_address(id(thing) + offset).value

    header = (OB_TYPE, ARRAY_DATA, ARRAY_DESCR)
    return (
        object.__basicsize__ == 16
        and [word(probe, o) for o in header] == [id(np.ndarray), probe.ctypes.data, id(probe.dtype)]
        and word(probe, ARRAY_NDIM) & 0xFFFFFFFF == 2
        and list((ctypes.c_int64 * 2).from_address(word(probe, ARRAY_DIMS))) == [3, 5]
        and word(probe, ARRAY_FLAGS) & WRITEABLE == WRITEABLE
        and [word(pair, TUPLE_SIZE), word(pair, TUPLE_ITEMS)] == [2, id(probe_item)]
    )


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
    return "\n".join(lines) + "\n"


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


def python_call(symbol: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort]) -> str:
    """IR of `@symbol.call`, a METH_FASTCALL | METH_KEYWORDS function `f(*inputs, out=…)`, and of `@symbol.many`, the
    address of `@symbol.batch`; while it is null, batches go to the fallback."""
    n, ports = len(inputs), [*inputs, *outputs]
    w = _Writer()
    w(f"@{symbol}.many = global ptr null")
    w("define ptr @" + symbol + ".call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {")
    w("entry:")
    w("  %named = icmp ne ptr %kwnames, null")
    w("  br i1 %named, label %keyword, label %positional")
    w("keyword:")
    size, key = w.field("%kwnames", TUPLE_SIZE, "i64"), w.field("%kwnames", TUPLE_ITEMS, "ptr")
    w.branch([f"icmp eq i64 {size}, 1", f"icmp eq ptr {key}, @cosim_out", f"icmp eq i64 %nargs, {n}"], "arrays")
    w("positional:")
    w.branch([f"icmp eq i64 %nargs, {n + 1}"], "arrays")
    w("arrays:")
    objects = [w.element("%args", i) for i in range(n + 1)]
    target = objects.pop()
    if len(outputs) == 1:
        objects.append(target)
    else:
        kind, count = w.field(target, OB_TYPE, "ptr"), w.field(target, TUPLE_SIZE, "i64")
        w.branch([f"icmp eq ptr {kind}, @cosim_tuple", f"icmp eq i64 {count}, {len(outputs)}"], "outputs")
        w("outputs:")
        objects += [w.field(target, TUPLE_ITEMS + 8 * i, "ptr") for i in range(len(outputs))]
    w.branch([f"icmp eq ptr {w.field(o, OB_TYPE, 'ptr')}, @cosim_ndarray" for o in objects], "headers")
    w("headers:")
    tests = []
    for port, obj, wanted in zip(ports, objects, [READABLE] * n + [WRITEABLE] * len(outputs), strict=True):
        descr = "@cosim_bool" if port.boolean else "@cosim_float64"
        tests.append(f"icmp eq ptr {w.field(obj, ARRAY_DESCR, 'ptr')}, {descr}")
        flags = w.value(f"and i32 {w.field(obj, ARRAY_FLAGS, 'i32')}, {wanted}")
        tests.append(f"icmp eq i32 {flags}, {wanted}")
    ndims = [w.field(o, ARRAY_NDIM, "i32") for o in objects]
    w.branch(tests, "rank")
    w("rank:")
    w(f"  %one = icmp eq i32 {ndims[0]}, {len(ports[0].shape)}")
    w("  br i1 %one, label %one.rank, label %many.rank")
    for path, extra in (("one", 0), ("many", 1)):
        w(f"{path}.rank:")
        ranks = [f"icmp eq i32 {d}, {len(p.shape) + extra}" for d, p in zip(ndims, ports, strict=True)]
        w.branch(ranks, f"{path}.shape")
        w(f"{path}.shape:")
        tests, rows = [], ""
        for port, obj in zip(ports, objects, strict=True):
            dims = w.field(obj, ARRAY_DIMS, "ptr")
            if extra:
                k = w.element(dims, 0, "i64")
                tests.append(f"icmp eq i64 {k}, {rows}" if rows else f"icmp sgt i64 {k}, 0")
                rows = rows or k
            tests += [
                f"icmp eq i64 {w.element(dims, d + extra, 'i64')}, {length}" for d, length in enumerate(port.shape)
            ]
        w.branch(tests or ["icmp eq i32 0, 0"], f"{path}.run")
        w(f"{path}.run:")
        data = [w.field(o, ARRAY_DATA, "ptr") for o in objects]
        if extra:
            typed = ", ".join(f"ptr {d}" for d in data)
            many = w.value(f"load ptr, ptr @{symbol}.many")
            w.branch([f"icmp ne ptr {many}, null"], "many.known")
            w("many.known:")
            w(f"  call void {many}({typed}, i64 {rows})")
        else:
            w(f"  call void @{symbol}.one({', '.join(f'ptr {d}' for d in data)})")
        w("  br label %finish")
    w("finish:")
    w(f"  call void @Py_IncRef(ptr {target})")
    w(f"  ret ptr {target}")
    w("fallback:")
    w("  %slow = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)")
    w("  ret ptr %slow")
    w("}")
    return "\n".join(w.lines) + "\n"


def single(symbol: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort]) -> str:
    """IR of `@symbol.one(in…, out…)`: one state straight from the arrays' memory (booleans converted to doubles)."""
    ports = [*inputs, *outputs]
    w = _Writer()
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


def declarations() -> str:
    return (
        "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)\ndeclare void @Py_IncRef(ptr)\n"
        "declare i64 @llvm.smin.i64(i64, i64)\n"
        + "".join(f"@cosim_{name} = external global i8\n" for name in ("ndarray", "float64", "bool", "tuple", "out"))
    )


class _Writer:
    """Lines of IR with unique names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.fresh = 0

    def __call__(self, line: str) -> None:
        self.lines.append(line)

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

    def branch(self, tests: list[str], target: str) -> None:
        """Go to `target` when every test holds, else to the fallback."""
        verdict = self.value(tests[0])
        for test in tests[1:]:
            verdict = self.value(f"and i1 {verdict}, {self.value(test)}")
        self(f"  br i1 {verdict}, label %{target}, label %fallback")
