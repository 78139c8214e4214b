"""How much stack the arrays of functions in LLVM IR take, along the deepest chain of calls."""

from __future__ import annotations

import re
from functools import cache

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
