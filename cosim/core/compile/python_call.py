"""The entry of a routine for Python: IR of its call by CPython's fast calling convention.

`ndarray.ctypes.data` alone costs several hundred nanoseconds, so the generated entry reads the headers of arrays itself
and makes the arrays of its results through numpy's C interface. Both are part of numpy's stable ABI; `layout_is_known`
verifies them. Of one state it also reads lists, tuples and numbers. What is neither, or does not match exactly in
shape, contiguity and alignment, goes to the Python fallback, which converts it or raises an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from cosim.core.compile.array_entry import ArrayPort, EntryWriter

# offsets in bytes on 64-bit CPython with ordinary object headers
OB_TYPE, ARRAY_DATA, ARRAY_NDIM, ARRAY_DIMS, ARRAY_DESCR, ARRAY_FLAGS = 8, 16, 24, 32, 56, 64
SEQUENCE_SIZE, TUPLE_ITEMS, LIST_ITEMS, FLOAT_VALUE = 16, 24, 24, 16  # a list has the address of its items
READABLE = 0x0001 | 0x0100  # C contiguous, aligned
WRITEABLE = READABLE | 0x0400
NEW_ARRAY, NPY_DOUBLE = 93, 12  # the place of PyArray_New in numpy's table of functions, the number of float64
LONGEST_LIST = 512  # numbers, which are on the stack meanwhile

_OUT = next(iter({"out": None}))  # the interned name that keyword calls pass
_OBJECTS = {
    **{"ndarray": np.ndarray, "float64": np.dtype(np.float64), "bool": np.dtype(np.bool_), "double": np.float64},
    **{"tuple": tuple, "list": list, "float": float, "int": int, "none": None, "out": _OUT},
}
# of CPython, with results and arguments in IR
_FUNCTIONS = {
    "PyObject_Vectorcall": "ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    "Py_IncRef": "void @Py_IncRef(ptr)",
    "Py_DecRef": "void @Py_DecRef(ptr)",
    "PyTuple_New": "ptr @PyTuple_New(i64)",
    "PyFloat_AsDouble": "double @PyFloat_AsDouble(ptr)",
    "PyErr_Occurred": "ptr @PyErr_Occurred()",
    "PyErr_Clear": "void @PyErr_Clear()",
}


def symbol_addresses() -> dict[str, int]:
    """Addresses of the Python objects and functions that generated entries refer to."""
    return {
        **{name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS},
        **{f"cosim_{name}": id(thing) for name, thing in _OBJECTS.items()},
        "cosim_new_array": _new_array(),
    }


@cache
def _new_array() -> int:
    """The address of numpy's PyArray_New."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    numpy: Any = np
    table = pointer(numpy._core._multiarray_umath._ARRAY_API, None)
    return (ctypes.c_void_p * (NEW_ARRAY + 1)).from_address(table)[NEW_ARRAY] or 0


@cache
def layout_is_known() -> bool:
    """Whether arrays, sequences and numbers of this interpreter have the memory layout that the entries expect, and
    numpy makes arrays as they do."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or np.dtype(np.intp).itemsize != 8 or object.__basicsize__ != 16:
        return False
    probe, item = np.zeros((3, 5)), object()
    pair, row = (item, None), [item, None, None]

    def word(thing: object, offset: int) -> int:
        return ctypes.c_int64.from_address(id(thing) + offset).value

    return (
        [word(probe, o) for o in (OB_TYPE, ARRAY_DATA, ARRAY_DESCR)]
        == [id(np.ndarray), probe.ctypes.data, id(probe.dtype)]
        and word(probe, ARRAY_NDIM) & 0xFFFFFFFF == 2
        and list((ctypes.c_int64 * 2).from_address(word(probe, ARRAY_DIMS))) == [3, 5]
        and word(probe, ARRAY_FLAGS) & WRITEABLE == WRITEABLE
        and [word(pair, SEQUENCE_SIZE), word(pair, TUPLE_ITEMS)] == [2, id(item)]
        and [word(row, SEQUENCE_SIZE), ctypes.c_int64.from_address(word(row, LIST_ITEMS)).value] == [3, id(item)]
        and all(ctypes.c_double.from_address(id(x) + FLOAT_VALUE).value == x for x in (1.5, np.float64(2.5)))
        and _makes_arrays()
    )


def _makes_arrays() -> bool:
    arguments = ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 2
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *arguments, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(_new_array())
    made = new(np.ndarray, 2, (ctypes.c_int64 * 2)(3, 5), NPY_DOUBLE, None, None, 0, 0, None)
    return type(made) is np.ndarray and (made.shape, made.dtype) == ((3, 5), np.float64) and made.flags.carray


def declarations() -> str:
    """IR of what the entries refer to, and of the functions with which they read numbers."""
    functions = "".join(f"declare {function}\n" for function in _FUNCTIONS.values())
    objects = "".join(f"@cosim_{name} = external global i8\n" for name in _OBJECTS)
    new = "declare ptr @cosim_new_array(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)\n"
    return f"{functions}{new}declare i64 @llvm.smin.i64(i64, i64)\n{objects}{_NUMBERS}"


# a number of Python as a double, and the numbers of a list or a tuple; false for anything else, without an error
_NUMBERS = f"""
define internal i1 @cosim.number(ptr %object, ptr %to) nounwind {{
entry:
  %type.at = getelementptr inbounds i8, ptr %object, i64 {OB_TYPE}
  %type = load ptr, ptr %type.at
  %is.float = icmp eq ptr %type, @cosim_float
  %is.double = icmp eq ptr %type, @cosim_double
  %is.read = or i1 %is.float, %is.double
  br i1 %is.read, label %read, label %other
read:
  %value.at = getelementptr inbounds i8, ptr %object, i64 {FLOAT_VALUE}
  %value = load double, ptr %value.at
  store double %value, ptr %to
  ret i1 true
other:
  %is.int = icmp eq ptr %type, @cosim_int
  br i1 %is.int, label %convert, label %no
convert:
  %converted = call double @PyFloat_AsDouble(ptr %object)
  store double %converted, ptr %to
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %clear, label %yes
clear:
  call void @PyErr_Clear()
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}}
define internal i1 @cosim.numbers(ptr %object, ptr %to, i64 %count) nounwind {{
entry:
  %type.at = getelementptr inbounds i8, ptr %object, i64 {OB_TYPE}
  %type = load ptr, ptr %type.at
  %is.list = icmp eq ptr %type, @cosim_list
  %is.tuple = icmp eq ptr %type, @cosim_tuple
  %is.sequence = or i1 %is.list, %is.tuple
  br i1 %is.sequence, label %sequence, label %no
sequence:
  %size.at = getelementptr inbounds i8, ptr %object, i64 {SEQUENCE_SIZE}
  %size = load i64, ptr %size.at
  %fits = icmp eq i64 %size, %count
  br i1 %fits, label %kind, label %no
kind:
  br i1 %is.list, label %list, label %tuple
list:
  %items.at = getelementptr inbounds i8, ptr %object, i64 {LIST_ITEMS}
  %list.items = load ptr, ptr %items.at
  br label %head
tuple:
  %tuple.items = getelementptr inbounds i8, ptr %object, i64 {TUPLE_ITEMS}
  br label %head
head:
  %items = phi ptr [ %list.items, %list ], [ %tuple.items, %tuple ], [ %items, %next ]
  %k = phi i64 [ 0, %list ], [ 0, %tuple ], [ %k.next, %next ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %item, label %yes
item:
  %item.at = getelementptr inbounds ptr, ptr %items, i64 %k
  %one = load ptr, ptr %item.at
  %place = getelementptr inbounds double, ptr %to, i64 %k
  %is.number = call i1 @cosim.number(ptr %one, ptr %place)
  br i1 %is.number, label %next, label %no
next:
  %k.next = add i64 %k, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


def python_call(symbol: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort]) -> str:
    """IR of `@symbol.call`, a METH_FASTCALL | METH_KEYWORDS function `f(*inputs, out=…)`, and of `@symbol.many`, the
    address of `@symbol.batch`; while it is null, batches go to the fallback."""
    return "\n".join(_PythonCall(symbol, inputs, outputs).lines) + "\n"


class _PythonCall(EntryWriter):
    """Writes a call from Python: what is given, one state or a batch, its inputs, its outputs, the call. Each stage
    sends what it does not know to the fallback."""

    def __init__(self, symbol: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort]) -> None:
        super().__init__()
        self.symbol, self.inputs, self.outputs = symbol, inputs, outputs
        self(f"@{symbol}.many = global ptr null")
        self(f"define ptr @{symbol}.call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {{", "entry:")
        self.numbers = [self._place(f"[{p.size} x double]") if _may_be_numbers(p) else "" for p in inputs]
        self.lengths = self._place("[16 x i64]")
        self._begin()
        for way, read in (("one", self._one), ("many", self._many)):
            self(f"{way}:")
            pointers = read()
            outs, result = self._outputs(way)
            rows = [f"i64 {self.rows}"] if way == "many" else []
            arguments = ", ".join([f"ptr {p}" for p in (*pointers, *outs)] + rows)
            self(f"  call void {self.function}({arguments})", f"  ret ptr {result}")
        self("fallback:")
        self("  %slow = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)")
        self("  ret ptr %slow", "}")

    def _place(self, kind: str) -> str:
        """On the stack."""
        return self.value(f"alloca {kind}, align 16")

    def _begin(self) -> None:
        """`%out` is what to fill, or null; a batch is known by the first input."""
        n = len(self.inputs)
        self("  %named = icmp ne ptr %kwnames, null", "  br i1 %named, label %keyword, label %positional", "keyword:")
        size, key = self.field("%kwnames", SEQUENCE_SIZE, "i64"), self.field("%kwnames", TUPLE_ITEMS, "ptr")
        self.branch([f"icmp eq i64 {size}, 1", f"icmp eq ptr {key}, @cosim_out", f"icmp eq i64 %nargs, {n}"], "given")
        self("positional:", f"  %alone = icmp eq i64 %nargs, {n}", "  br i1 %alone, label %inputs, label %followed")
        self("followed:")
        self.branch([f"icmp eq i64 %nargs, {n + 1}"], "given")
        self("given:")
        last = self.element("%args", n)
        is_none = self.value(f"icmp eq ptr {last}, @cosim_none")
        self(f"  %last = select i1 {is_none}, ptr null, ptr {last}", "  br label %inputs", "inputs:")
        self("  %out = phi ptr [ null, %positional ], [ %last, %given ]", "  %new = icmp eq ptr %out, null")
        self.objects = [self.element("%args", i) for i in range(n)]
        if not n:
            self("  br label %one")
            return
        self._if_array(self.objects[0], "first", "one")
        rank = self.field(self.objects[0], ARRAY_NDIM, "i32")
        is_batch = self.value(f"icmp eq i32 {rank}, {len(self.inputs[0].shape) + 1}")
        self(f"  br i1 {is_batch}, label %many, label %one")

    def _one(self) -> list[str]:
        """The data of the inputs of one state: arrays, or numbers of Python."""
        self.function, pointers = f"@{self.symbol}.one", []
        for i, (port, thing, numbers) in enumerate(zip(self.inputs, self.objects, self.numbers, strict=True)):
            self._if_array(thing, f"array.{i}", f"other.{i}")
            data = self._checked(thing, port, READABLE, f"array.{i}.checked", False)
            self(f"  br label %data.{i}", f"other.{i}:")
            if numbers and port.shape:
                read = f"call i1 @cosim.numbers(ptr {thing}, ptr {numbers}, i64 {port.size})"
            else:
                read = f"call i1 @cosim.number(ptr {thing}, ptr {numbers})" if numbers else "icmp eq i32 0, 1"
            self.branch([read], f"numbers.{i}")
            self(f"numbers.{i}:", f"  br label %data.{i}", f"data.{i}:")
            other = numbers or "null"
            pointers.append(self.value(f"phi ptr [ {data}, %array.{i}.checked ], [ {other}, %numbers.{i} ]"))
        return pointers

    def _many(self) -> list[str]:
        """The data of the inputs of a batch, all arrays of as many rows."""
        self.rows, pointers = "0", []
        for i, (port, thing) in enumerate(zip(self.inputs, self.objects, strict=True)):
            self._if_array(thing, f"batch.{i}", "fallback")
            pointers.append(self._checked(thing, port, READABLE, f"batch.{i}.checked", True, first=not i))
        self.function = self.value(f"load ptr, ptr @{self.symbol}.many")
        self.branch([f"icmp ne ptr {self.function}, null"], "known")
        self("known:")
        return pointers

    def _outputs(self, way: str) -> tuple[list[str], str]:
        """(the data of the outputs, what is returned): arrays that are given, or new ones."""
        count, is_batch = len(self.outputs), way == "many"
        self(f"  br i1 %new, label %{way}.new, label %{way}.given", f"{way}.given:")
        targets = ["%out"]
        if count != 1:
            kind = self.field("%out", OB_TYPE, "ptr")
            self.branch([f"icmp eq ptr {kind}, @cosim_tuple"], f"{way}.tuple")
            self(f"{way}.tuple:")
            self.branch([f"icmp eq i64 {self.field('%out', SEQUENCE_SIZE, 'i64')}, {count}"], f"{way}.targets")
            self(f"{way}.targets:")
            targets = [self.field("%out", TUPLE_ITEMS + 8 * i, "ptr") for i in range(count)]
        given = []
        for i, (port, target) in enumerate(zip(self.outputs, targets, strict=True)):
            self._if_array(target, f"{way}.out.{i}", "fallback")
            given.append(self._checked(target, port, WRITEABLE, f"{way}.out.{i}.checked", is_batch))
        self("  call void @Py_IncRef(ptr %out)", f"  br label %{way}.filled")
        before = self._last_label()
        self(f"{way}.new:")
        made: list[str] = []
        for i, port in enumerate(self.outputs):
            made.append(self._new(port, f"{way}.{i}", is_batch, made))
        whole = made[0] if count == 1 else self._tuple(made, way)
        data = [self.field(array, ARRAY_DATA, "ptr") for array in made]
        self(f"  br label %{way}.filled")
        after = self._last_label()
        self(f"{way}.filled:")
        pairs = zip(("%out", *given), (whole, *data), strict=True)
        result, *outs = [self.value(f"phi ptr [ {one}, %{before} ], [ {other}, %{after} ]") for one, other in pairs]
        return outs, result

    def _new(self, port: ArrayPort, name: str, is_batch: bool, made: Sequence[str]) -> str:
        """A new array; made: those before it, which are given back if there is no memory for it."""
        shape = [*([self.rows] if is_batch else []), *map(str, port.shape)]
        for k, length in enumerate(shape):
            self(f"  store i64 {length}, ptr {self.address(self.lengths, k, 'i64')}")
        kind = f"ptr @cosim_ndarray, i32 {len(shape)}, ptr {self.lengths}, i32 {NPY_DOUBLE}"
        array = self.value(f"call ptr @cosim_new_array({kind}, ptr null, ptr null, i32 0, i32 0, ptr null)")
        self._unless_null(array, made, name)
        return array

    def _tuple(self, items: Sequence[str], way: str) -> str:
        whole = self.value(f"call ptr @PyTuple_New(i64 {len(items)})")
        self._unless_null(whole, items, f"{way}.items")
        for k, item in enumerate(items):
            self(f"  store ptr {item}, ptr {self.address(whole, TUPLE_ITEMS + 8 * k, 'i8')}")
        return whole

    def _unless_null(self, thing: str, made: Sequence[str], name: str) -> None:
        """Begin the block `new.name`; without memory, give back what was made and return with Python's error."""
        failed = self.value(f"icmp eq ptr {thing}, null")
        self(f"  br i1 {failed}, label %none.{name}, label %new.{name}", f"none.{name}:")
        self(*(f"  call void @Py_DecRef(ptr {one})" for one in made), "  ret ptr null", f"new.{name}:")

    def _if_array(self, thing: str, target: str, other: str) -> None:
        """Begin the block `target` for arrays."""
        is_array = self.value(f"icmp eq ptr {self.field(thing, OB_TYPE, 'ptr')}, @cosim_ndarray")
        self(f"  br i1 {is_array}, label %{target}, label %{other}", f"{target}:")

    def _checked(self, array: str, port: ArrayPort, flags: int, name: str, is_batch: bool, first: bool = False) -> str:
        """The data of an array whose type, flags and shape are checked, in the block `name`; first: its length is that
        of the batch."""
        kind, rank = "@cosim_bool" if port.boolean else "@cosim_float64", len(port.shape) + is_batch
        masked = self.value(f"and i32 {self.field(array, ARRAY_FLAGS, 'i32')}, {flags}")
        tests = [f"icmp eq ptr {self.field(array, ARRAY_DESCR, 'ptr')}, {kind}", f"icmp eq i32 {masked}, {flags}"]
        self.branch([*tests, f"icmp eq i32 {self.field(array, ARRAY_NDIM, 'i32')}, {rank}"], f"{name}.ranked")
        self(f"{name}.ranked:")
        lengths = self.field(array, ARRAY_DIMS, "ptr")
        shape = [self.element(lengths, k, "i64") for k in range(rank)]
        if first:
            self.rows = shape[0]
        wanted = [*([self.rows] if is_batch else []), *map(str, port.shape)]
        tests = [f"icmp eq i64 {found}, {length}" for found, length in zip(shape, wanted, strict=True)]
        self.branch([*tests, f"icmp sgt i64 {self.rows}, 0" if first else "icmp eq i32 0, 0"], name)
        self(f"{name}:")
        return self.field(array, ARRAY_DATA, "ptr")

    def _last_label(self) -> str:
        return next(line[:-1] for line in reversed(self.lines) if line.endswith(":"))


def _may_be_numbers(port: ArrayPort) -> bool:
    return not port.boolean and len(port.shape) <= 1 and 0 < port.size <= LONGEST_LIST
