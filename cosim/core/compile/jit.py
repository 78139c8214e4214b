"""LLVM IR text to machine code in this process: object code, cached on disk, that is linked into it."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from cosim.core.compile.compilation import Compilation, modules
from cosim.core.compile.object_code import host, llvm, target_machine
from cosim.core.trust.private_cache import PRIVATE, private_cache

DIGEST_SIZE = hashlib.sha256().digest_size


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


def vector_lanes() -> int:
    """Doubles per vector register of this machine."""
    return host().lanes


class Library:
    """Machine code of one module; functions by name. Must stay referenced while its code may run."""

    def __init__(self, ir: str, exports: list[str], imports: Mapping[str, int]) -> None:
        """Code for `ir`, from the cache or compiled; linked with `imports` and the process when an address is needed.
        A long text is compiled meanwhile, in other processes.
        """
        import llvmlite

        self._exports, self._imports, texts = exports, imports, modules(ir)
        described = llvmlite.__version__, *map(str, host())
        self._keys = [hashlib.sha256("\n".join([*described, text]).encode()).hexdigest() for text in texts]
        self.key, self._codes = self._keys[0], [cached(f"{key}.o") for key in self._keys]
        self._missing = [k for k, code in enumerate(self._codes) if code is None]
        self.from_cache = not self._missing
        self._compilation = Compilation([texts[k] for k in self._missing])

    def link(self) -> None:
        """Wait until the code is there. Raises CompileError if LLVM rejects the IR."""
        self._tracker  # noqa: B018

    @cached_property
    def _tracker(self) -> Any:
        made = dict(zip(self._missing, self._compilation.result(), strict=True))
        for k, code in made.items():
            store(f"{self._keys[k]}.o", code)
        codes = [made[k] if code is None else code for k, code in enumerate(self._codes)]
        del self._codes, self._compilation
        return linked(codes, self._exports, self._imports)

    def __getitem__(self, name: str) -> int:
        """The address of an exported function."""
        return self._tracker[name]


def cached(name: str) -> bytes | None:
    """The content of a file of the cache folder that `store` wrote; an incomplete file is ignored."""
    with contextlib.suppress(OSError):
        if (folder := private_cache()) is None:
            return None
        stored = (folder / name).read_bytes()
        digest, content = stored[:DIGEST_SIZE], stored[DIGEST_SIZE:]
        if hashlib.sha256(content).digest() == digest:
            return content
    return None


def store(name: str, content: bytes) -> None:
    """Write a file of the cache folder atomically; one without write access, or that is not private, is no error."""
    with contextlib.suppress(OSError):
        if (folder := private_cache()) is None:
            return
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            try:
                file.write(hashlib.sha256(content).digest() + content)
                file.flush()
                os.replace(file.name, folder / name)
            except OSError:
                os.unlink(file.name)
