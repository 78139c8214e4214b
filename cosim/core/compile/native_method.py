"""Methods that become machine code: builtin functions whose target is made at the first call, whenever they were bound.

What a builtin calls stands in words of its memory: the method in Python first, later the entry of its machine code. A
method of frames finds the builtin of a frame in a dictionary, by the name among its arguments.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from functools import cache
from types import MethodType
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from cosim.core.compile.jit import Library
from cosim.core.compile.python_call import (
    ARRAY_DATA,
    OB_TYPE,
    SEQUENCE_SIZE,
    declarations,
    layout_is_known,
    symbol_addresses,
)

METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
METHOD_DEFINITION = np.dtype([("name", "u8"), ("call", "u8"), ("flags", "i4"), ("doc", "u8")], align=True)
MOST_ARGUMENTS = 16  # of a method of frames, which are copied

F = TypeVar("F", bound=Callable[..., Any])


class Kept(tuple[Any, ...]):
    """What must live as long as a builtin. It is in the place of the name of its module, which others look up."""

    __slots__ = ()
    __hash__, __eq__ = object.__hash__, object.__eq__


def builtin(name: str, address: int, self: object, *kept: object, doc: str = "") -> Callable[..., Any]:
    """A builtin function of the entry at an address; self: its `__self__`; kept: what must live as long."""
    texts = name.encode(), doc.encode()
    of_name, of_doc = (ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value for text in texts)
    definition = np.array((of_name, address, METH_FASTCALL_KEYWORDS, of_doc if doc else 0), METHOD_DEFINITION)
    # CPython reads the definition until the very end of the builtin. Of what is garbage together, it may clear any
    # object first, ctypes' included; not so a tuple of bytes and an array
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return new(definition.ctypes.data, self, Kept((*texts, definition, *kept)))


class CallTarget(np.ndarray):
    """What a builtin calls, as words: an entry and its `self`; a method of frames has the place of the name of a frame
    among its arguments, and the dictionary of their builtins, as well."""

    ENTRY, SELF, PLACE, FRAMES, COUNT = range(5)


class MethodCode(Protocol):
    """What makes the machine code of the methods of an object, its attribute `code`. Their functions in Python run with
    it in the place of the object: the object holds its builtins, and none of them holds the object."""

    targets: dict[str, tuple[CallTarget, dict[str, Any]]]  # by method: of its builtin, and the builtins of its frames


class NativeMethod:
    """A method that machine code replaces: a builtin of each object, which calls the method until `redirect`.

    frame: the parameter that names a frame, each of which has machine code of its own; None where there is none.
    """

    def __init__(self, function: Callable[..., Any], frame: str | None = None) -> None:
        self.function, self.name, signature = function, function.__name__, inspect.signature(function)
        names = list(signature.parameters)[1:]
        self.place = None if frame is None else names.index(frame)
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
        self.doc = f"{self.name}{text.replace('self', '$self', 1)}\n--\n\n{inspect.getdoc(function) or ''}"
        self.__doc__ = function.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> Callable[..., Any]:
        if owner is None:
            return self.function
        if not layout_is_known():
            return MethodType(self.function, owner)
        code: MethodCode = owner.code
        method, entries, frames = MethodType(self.function, code), _entries(), dict[str, Any]()
        words = np.zeros(CallTarget.COUNT, np.int64).view(CallTarget)
        words[:] = entries["method.python"], id(method), self.place or 0, id(frames)
        entry = entries["method.call" if self.place is None else "method.of_frame"]
        code.targets[self.name] = words, frames
        owner.__dict__[self.name] = made = builtin(self.name, entry, words, method, frames, doc=self.doc)
        return made


def native_method(function: F) -> F:
    """A `NativeMethod` with the type of the method."""
    return cast(F, NativeMethod(function))


def native_method_of(frame: str) -> Callable[[F], F]:
    """As `native_method`, of a method whose parameter `frame` names a frame."""
    return lambda function: cast(F, NativeMethod(function, frame))


def frame_places(kind: type) -> dict[str, int | None]:
    """By native method of a class, the place of the name of a frame among its arguments; None where there is none."""
    return {name: method.place for name, method in vars(kind).items() if isinstance(method, NativeMethod)}


def redirect(code: MethodCode, name: str, native: Any, address: int, frame: str | None) -> None:
    """Let a method, of one frame where it has frames, call a builtin with its entry at this address. The code keeps the
    builtin."""
    if name not in code.targets:
        return
    words, frames = code.targets[name]
    if frame is not None:
        frames[frame] = native
        return
    words[CallTarget.SELF] = id(native.__self__)  # first: `method.python` calls it as well
    words[CallTarget.ENTRY] = address


@cache
def _entries() -> Library:
    return Library(declarations() + _ENTRIES, [f"method.{name}" for name in ("python", "call", "of_frame")], _imports())


def _imports() -> dict[str, int]:
    get = ctypes.cast(ctypes.pythonapi.PyDict_GetItemWithError, ctypes.c_void_p).value or 0
    return symbol_addresses() | {"PyDict_GetItemWithError": get, "cosim_str": id(str)}


_SIGNATURE = "(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)"
_WORDS = f"""entry:
  %words.at = getelementptr inbounds i8, ptr %self, i64 {ARRAY_DATA}
  %words = load ptr, ptr %words.at
  %target = load ptr, ptr %words
  %owner.at = getelementptr inbounds ptr, ptr %words, i64 {CallTarget.SELF}
  %owner = load ptr, ptr %owner.at"""
_ENTRIES = f"""
declare ptr @PyDict_GetItemWithError(ptr, ptr)
@cosim_str = external global i8
define ptr @method.python{_SIGNATURE} {{
  %result = tail call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %result
}}
define ptr @method.call{_SIGNATURE} {{
{_WORDS}
  %result = tail call ptr %target(ptr %owner, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %result
}}
define ptr @method.of_frame{_SIGNATURE} {{
{_WORDS}
  %others = alloca [{MOST_ARGUMENTS} x ptr], align 16
  %place.at = getelementptr inbounds i64, ptr %words, i64 {CallTarget.PLACE}
  %place = load i64, ptr %place.at
  %named = icmp ne ptr %kwnames, null
  br i1 %named, label %names, label %count
names:
  %size.at = getelementptr inbounds i8, ptr %kwnames, i64 {SEQUENCE_SIZE}
  %size = load i64, ptr %size.at
  br label %count
count:
  %names.count = phi i64 [ 0, %entry ], [ %size, %names ]
  %all = add i64 %nargs, %names.count
  %few = icmp sle i64 %all, {MOST_ARGUMENTS}
  %there = icmp sgt i64 %nargs, %place
  %fits = and i1 %few, %there
  br i1 %fits, label %name, label %python
name:
  %key.at = getelementptr inbounds ptr, ptr %args, i64 %place
  %key = load ptr, ptr %key.at
  %type.at = getelementptr inbounds i8, ptr %key, i64 {OB_TYPE}
  %type = load ptr, ptr %type.at
  %is.text = icmp eq ptr %type, @cosim_str
  br i1 %is.text, label %find, label %python
find:
  %frames.at = getelementptr inbounds ptr, ptr %words, i64 {CallTarget.FRAMES}
  %frames = load ptr, ptr %frames.at
  %known = call ptr @PyDict_GetItemWithError(ptr %frames, ptr %key)
  %missing = icmp eq ptr %known, null
  br i1 %missing, label %python, label %head
head:
  %k = phi i64 [ 0, %find ], [ %k.next, %next ]
  %to = phi i64 [ 0, %find ], [ %to.next, %next ]
  %more = icmp slt i64 %k, %all
  br i1 %more, label %copy, label %others.call
copy:
  %from.at = getelementptr inbounds ptr, ptr %args, i64 %k
  %argument = load ptr, ptr %from.at
  %to.at = getelementptr inbounds ptr, ptr %others, i64 %to
  store ptr %argument, ptr %to.at
  %is.key = icmp eq i64 %k, %place
  %step = select i1 %is.key, i64 0, i64 1
  %to.next = add i64 %to, %step
  br label %next
next:
  %k.next = add i64 %k, 1
  br label %head
others.call:
  %rest = sub i64 %nargs, 1
  %of.frame = call ptr @PyObject_Vectorcall(ptr %known, ptr %others, i64 %rest, ptr %kwnames)
  ret ptr %of.frame
python:
  %result = tail call ptr @method.python(ptr %owner, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %result
}}
"""
