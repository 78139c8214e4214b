"""IR of arrays that are local to a function call: large ones on the heap, and how much stack the others take along the
deepest chain of calls."""

from __future__ import annotations

import re
from functools import cache

# larger arrays are allocated on the heap: threads may have small stacks
STACK_BYTES = 1 << 16


def stack_array(pointer: str, size: int) -> str:
    """The line of a function with an array of `size` bytes, aligned to cache lines."""
    return f"  {pointer} = alloca [{max(size, 1)} x i8], align 64"


_LOCAL = re.compile(r"  (%[\w.]+) = (alloca \[.*\], align 64)\n")
_RETURN = re.compile(r"^  ret ", re.MULTILINE)


def large_on_heap(ir: str) -> str:
    """The same functions with their large arrays on the heap. Arrays are allocated at the entry of a function."""
    if not any(_of_line(found) > STACK_BYTES for found in _LOCAL.finditer(ir)):
        return ir
    return _FUNCTION.sub(_with_heap, ir)


def _of_line(local: re.Match[str]) -> int:
    array = _ARRAY.search(local[2])
    assert array is not None
    return _size(array)


def _with_heap(function: re.Match[str]) -> str:
    freed: list[str] = []

    def allocated(local: re.Match[str]) -> str:
        pointer, size = local[1], _of_line(local)
        if size <= STACK_BYTES:
            return local[0]
        freed.append(f"  call void @free(ptr {pointer}.memory)\n")
        return (
            f"  {pointer}.memory = call ptr @malloc(i64 {size + 64})\n"
            f"  {pointer}.address = ptrtoint ptr {pointer}.memory to i64\n"
            f"  {pointer}.beyond = add i64 {pointer}.address, 63\n"
            f"  {pointer}.aligned = and i64 {pointer}.beyond, -64\n"
            f"  {pointer} = inttoptr i64 {pointer}.aligned to ptr\n"
        )

    text = _LOCAL.sub(allocated, function[0])
    return _RETURN.sub("".join(freed) + "  ret ", text)


# the form of the lines above
_HEAP = re.compile(
    r"  (%[\w.]+)\.memory = call ptr @malloc\(i64 (\d+)\)\n"
    r"  \1\.address = .*\n  \1\.beyond = .*\n  \1\.aligned = .*\n  \1 = inttoptr .*\n"
)
_FREE = re.compile(r"  call void @free\(ptr %[\w.]+\)\n")
_DECLARED = re.compile(r"declare (ptr @malloc\(i64\)|void @free\(ptr\))\n")


def on_stack(ir: str) -> str:
    """The same functions with every array on the stack."""
    return _DECLARED.sub("", _FREE.sub("", _HEAP.sub(_as_allocation, ir)))


def _as_allocation(found: re.Match[str]) -> str:
    return stack_array(found[1], int(found[2]) - 64) + "\n"


_FUNCTION = re.compile(r"^define .*?@([\w.]+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"call [^@\n]*@([\w.]+)\(")
_ARRAY = re.compile(r"alloca (?:\[(\d+) x )?(?:<(\d+) x )?(double|i8|i64|i32)\b")
_BYTES = {"double": 8, "i64": 8, "i32": 4, "i8": 1}
_ALIGNMENT = 64


def stack_need(ir: str) -> int:
    """Bytes of the arrays of any of its functions with all that it calls; values that a processor moves from registers
    to the stack come on top. No function of the IR calls itself."""
    bodies = {found[1]: found[0] for found in _FUNCTION.finditer(ir)}

    @cache
    def need(name: str) -> int:
        own = sum(_size(found) for found in _ARRAY.finditer(bodies[name]))
        called = set(_CALL.findall(bodies[name])) & bodies.keys()
        return own + max(map(need, called), default=0)

    return max(map(need, bodies), default=0)


def _size(found: re.Match[str]) -> int:
    count, lanes, kind = found.groups()
    size = int(count or 1) * int(lanes or 1) * _BYTES[kind]
    return -(-size // _ALIGNMENT) * _ALIGNMENT
