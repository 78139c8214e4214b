"""Object code linked into this process."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from cosim.core.compile.object_code import llvm, target_machine

NOTHING: Mapping[str, int] = MappingProxyType({})

_links = itertools.count()


@cache
def _jit() -> Any:
    # JITLink places the sections of an object together. The older linker places each where there is room: apart by more
    # than the 2 GiB of an address, where a program reserves much of the address space, it ends the process
    return llvm().create_lljit_compiler(target_machine(), use_jit_link=True)


def linked(objects: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int] = NOTHING) -> Any:
    """Name -> address of the exported functions, as long as the result is referenced. The objects call each other, the
    imports by their addresses, and the C library.

    The same code may be linked several times in one process, also concurrently.
    """
    builder = llvm().JITLibraryBuilder().add_current_process()
    for code in objects:
        builder.add_object_img(code)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    return builder.link(_jit(), f"linked{next(_links)}")
