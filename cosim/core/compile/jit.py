"""LLVM IR text to machine code in this process, with the object code cached on disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from cosim.core.compile.compilation import Compilation
from cosim.core.compile.linked_objects import linked
from cosim.core.compile.modules import modules
from cosim.core.compile.object_code import host
from cosim.core.trust.ownership import PRIVATE
from cosim.core.trust.private_cache import private_cache

DIGEST_SIZE = hashlib.sha256().digest_size


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
