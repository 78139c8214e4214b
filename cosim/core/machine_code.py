"""Machine code of functions on memory: Numba's compiler, arrays at addresses, calls by address, fences.

Whatever reads and writes buses in machine code is written in Python with these, is compiled once per machine, and runs
without the interpreter's lock.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from cosim.core.errors import PACKAGE, PLUGIN_ROOT
from cosim.core.trust.private_cache import code_folder, why_not_private

i32, i64 = types.int32, types.int64

F = TypeVar("F", bound=Callable[..., Any])
_numba: Any = numba  # its stubs lack much
_intrinsic: Any = intrinsic

_ROOMS = (
    PLUGIN_ROOT / "drivers",
    PACKAGE / "execution" / "hardware",
    PACKAGE / "control",
)  # where compiled functions call each other
_KEPT = 30 * 86400.0  # s, for which the code of other sources is kept


def _cache() -> Path:
    """The folder of compiled code for the sources as they are: Numba finds code by the file of a function, and knows
    nothing of the files of the functions that it calls."""
    files = sorted([Path(__file__), *(path for room in _ROOMS for path in room.rglob("*.py"))])
    states = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    folder = code_folder() / "numba" / sha256(repr(states).encode()).hexdigest()[:16]
    if not folder.exists() and folder.parent.is_dir():
        for other in folder.parent.iterdir():
            with suppress(OSError):  # another program may remove it too
                if time.time() - other.stat().st_mtime > _KEPT:
                    shutil.rmtree(other, ignore_errors=True)
    return folder


def _private(folder: str) -> bool:
    """Whether a folder that the user gave for code is private; what is wrong is stated."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        why = why_not_private(Path(os.path.abspath(folder)))
    except OSError as error:
        why = f"{folder}: {error.strerror}"
    if why:
        print(f"warning: NUMBA_CACHE_DIR: {why}", file=sys.stderr)
    return not why


if "NUMBA_CACHE_DIR" not in os.environ or not _private(os.environ["NUMBA_CACHE_DIR"]):
    _numba.config.CACHE_DIR = str(_cache())


def machine_code(function: F) -> F:
    """Compile a function at its first call from machine code."""
    return _numba.njit(cache=True, nogil=True, error_model="numpy")(function)


@cache
def code_of(function: Callable[..., Any]) -> Any:
    """The machine code of a plain function, and of the plain functions that it calls by name: they need not know that
    they are compiled. Numba keeps it as that of `machine_code`."""
    names = function.__globals__
    called = {name: code_of(names[name]) for name in function.__code__.co_names if _is_plain(names.get(name))}
    made = FunctionType(function.__code__, names | called, function.__name__)
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return machine_code(made)


def _is_plain(value: Any) -> bool:
    return isinstance(value, FunctionType)


def external(name: str, result: Any, *arguments: Any) -> Any:
    """A function of the C library, for compiled functions only; pointers are addresses."""
    return types.ExternalFunction(name, result(*arguments))


def entry(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """A compiled function that machine code calls by its `address`; pointers are addresses."""
    return _numba.cfunc(result(*arguments), cache=True, error_model="numpy")


given_function: Any = None  # in the templates of `entry_of`


def entry_of(function: Any, result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `entry`, of a template that calls a compiled function by the name `given_function`.

    Numba keeps what it compiles by the name and the code of a function, and by what it closes over; a compiled function
    there is another one in each process, so a closure would be compiled anew by each.
    """

    def compiled(template: Callable[..., Any]) -> Any:
        code, names = template.__code__, template.__globals__ | {"given_function": function}
        made = FunctionType(code, names, template.__name__)
        made.__module__ = template.__module__
        made.__qualname__ = f"{template.__qualname__} of {function.__module__}.{function.__qualname__}"
        return entry(result, *arguments)(made)

    return compiled


def array_at(dtype: Any) -> Any:
    """The function (address, count) -> array (count,) of this type in memory that others own."""
    element = _numba.from_dtype(dtype)

    @_intrinsic
    def pointer(context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(i64), code

    @_numba.njit(nogil=True)
    def view(address: int, count: int) -> Any:
        return _numba.carray(pointer(address), (count,))

    return view


words_at, doubles_at = array_at(np.dtype("i8")), array_at(np.dtype("f8"))

# --- clocks of the system; scratch: address of 2 words ---

WALL, MONOTONIC = 0, 1
_clock_gettime = external("clock_gettime", i32, i32, i64)


@machine_code
def clock(which: int, scratch: int) -> int:
    """The time of a clock [ns]."""
    _clock_gettime(which, scratch)
    time = words_at(scratch, 2)
    return time[0] * 1_000_000_000 + time[1]


@machine_code
def now(scratch: int) -> int:
    """As `time.monotonic_ns`."""
    return clock(MONOTONIC, scratch)


# --- threads, calls ---


@_intrinsic
def fence(context: Any) -> Any:
    """What was written before it is visible to other threads before what comes after it is read."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), code


@_intrinsic
def call_at(context: Any, address: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Call the `entry` of four whole numbers at an address; its whole number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        word = ir.IntType(64)
        target = builder.inttoptr(arguments[0], ir.FunctionType(word, [word] * 4).as_pointer())
        return builder.call(target, arguments[1:])

    return i64(i64, i64, i64, i64, i64), code
