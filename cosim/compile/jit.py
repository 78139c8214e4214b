"""LLVM IR text to machine code in this process, with the object code cached on disk."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cosim.errors import CompileError

DIGEST_SIZE = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """The folder of cached object code: $COSIM_CACHE_DIR, else the user's cache folder."""
    given = os.environ.get("COSIM_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cosim"


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _host() -> tuple[str, str, str]:
    """(triple, CPU, features) of this machine."""
    llvm = _llvm()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def vector_lanes() -> int:
    """Doubles per vector register of this machine."""
    features = _host()[2].split(",")
    if "+avx512f" in features:
        return 8
    return 4 if "+avx" in features else 2


def _target_machine() -> Any:
    triple, cpu, features = _host()
    target = _llvm().Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=1, reloc="pic", codemodel="small", jit=True)


@cache
def _jit() -> Any:
    return _llvm().create_lljit_compiler(_target_machine())


class Library:
    """Machine code of one module; functions by name. Must stay referenced while its code may run."""

    def __init__(self, ir: str, exports: list[str], imports: Mapping[str, int]) -> None:
        """Compile `ir` (or take it from the cache), link it against `imports` and the process.

        Raises CompileError if LLVM rejects the IR.
        """
        import llvmlite

        described = "\n".join([llvmlite.__version__, *_host(), ir])
        self.key = hashlib.sha256(described.encode()).hexdigest()
        code, self.from_cache = _cached(self.key), True
        if code is None:
            code, self.from_cache = _object_code(ir), False
            _store(self.key, code)
        builder = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in imports.items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        self._tracker = builder.link(_jit(), _unique_name(self.key))

    def __getitem__(self, name: str) -> int:
        """The address of an exported function."""
        return self._tracker[name]


_links = itertools.count()


def _unique_name(key: str) -> str:
    """A name per link: the same code may be linked several times in one process, also concurrently."""
    return f"{key[:16]}_{next(_links)}"


def _object_code(ir: str) -> bytes:
    llvm, machine = _llvm(), _target_machine()
    try:
        module = llvm.parse_assembly(ir)
    except RuntimeError as error:
        raise CompileError(f"LLVM does not accept the generated code: {str(error).splitlines()[0]}") from error
    module.triple = _host()[0]
    # the graph has no repeated or constant operations: more passes cost time without effect
    tuning = llvm.create_pipeline_tuning_options(speed_level=0)
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    # sin and cos are branches; values wait in registers, not before them: inverse dynamics of TALOS take half the time.
    # The pass compares every load with every store, also where nothing branches
    sinking = llvm.create_new_function_pass_manager()
    sinking.add_sinking_pass()
    for function in module.functions:
        if sum(1 for _ in function.blocks) > 1:
            sinking.run(function, builder)
    return machine.emit_object(module)


def _cached(key: str) -> bytes | None:
    """The object code cached under the key; an incomplete file is ignored."""
    with contextlib.suppress(OSError):
        content = (cache_folder() / f"{key}.o").read_bytes()
        digest, code = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
        if hashlib.sha256(code).digest() == digest:
            return code
    return None


def _store(key: str, code: bytes) -> None:
    """Write the object atomically; a folder without write access is no error."""
    with contextlib.suppress(OSError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            try:
                file.write(hashlib.sha256(code).digest() + code)
                file.flush()
                os.replace(file.name, folder / f"{key}.o")
            except OSError:
                os.unlink(file.name)
