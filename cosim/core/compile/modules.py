"""A long LLVM IR text as several modules, which are compiled side by side and linked together.

Functions that are internal to the text become visible to the other modules. What is copied to every module stays
internal: constants, declarations, and the functions of `cosim.` that are inlined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

LONGEST = 400_000  # characters of a module; about 0.4 s

_FUNCTION = re.compile(r"^define .*?^}\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@([\w.]+)")
_COPIED = "cosim."


def modules(ir: str) -> list[str]:
    """The text itself where it is short or has variables, which cannot be copied."""
    if len(ir) <= LONGEST or re.search(r"^@\S+ = (internal |private )?global ", ir, re.MULTILINE):
        return [ir]
    functions = {_name(text): text for text in _FUNCTION.findall(ir)}
    common = _FUNCTION.sub("", ir) + "".join(text for name, text in functions.items() if name.startswith(_COPIED))
    parts = list(_grouped((name, text) for name, text in functions.items() if not name.startswith(_COPIED)))
    return [_module(common, part, functions) for part in parts]


def _name(function: str) -> str:
    found = _NAME.search(function)
    assert found is not None
    return found[1]


def _grouped(functions: Iterable[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """Neighbours until they are long enough."""
    group: dict[str, str] = {}
    for name, text in functions:
        group[name] = text
        if sum(map(len, group.values())) > LONGEST:
            yield group
            group = {}
    if group:
        yield group


def _module(common: str, own: dict[str, str], functions: dict[str, str]) -> str:
    text = "".join(own.values())
    others = [name for name in dict.fromkeys(_NAME.findall(text)) if name in functions and name not in own]
    declared = [_declaration(functions[name]) for name in others if not name.startswith(_COPIED)]
    return common + "".join(declared) + re.sub("^define internal ", "define ", text, flags=re.MULTILINE)


def _declaration(function: str) -> str:
    """`declare` for a function of a text."""
    head = function[: function.index("\n")].removesuffix("{")
    return re.sub("^define (internal )?", "declare ", head) + "\n"
