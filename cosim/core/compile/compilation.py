"""Object code of a long LLVM IR text, as several modules that are made in other processes while this one goes on: LLVM
as Python knows it compiles one module at a time in a process.

Functions that are internal to the text become visible to the other modules. What is copied to every module stays
internal: constants, declarations, and the functions of `cosim.` that are inlined.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO
from weakref import finalize

from cosim.core.compile import object_code
from cosim.core.compile.object_code import CodeTarget
from cosim.core.errors import CompileError


class Compilation:
    """The object code of IR texts."""

    def __init__(self, texts: Sequence[str], target: CodeTarget | None = None) -> None:
        """Several texts are compiled by one process per processor, a single text in `result`. target: see
        `object_code.target_machine`."""
        self._texts, self._target = texts, target
        count = min(len(texts), _processors())
        self._shares = [list(range(k, len(texts), count)) for k in range(count)] if count > 1 else []
        self._workers = [_CompilerProcess([texts[k] for k in share], target) for share in self._shares]

    def result(self) -> list[bytes]:
        """The object code of each text. Raises CompileError if LLVM rejects one."""
        found: dict[int, bytes] = {}
        for share, worker in zip(self._shares, self._workers, strict=True):
            found |= zip(share, worker.result(), strict=False)
        return [found[k] if k in found else compiled_here(text, self._target) for k, text in enumerate(self._texts)]


def compiled_here(text: str, target: CodeTarget | None = None) -> bytes:
    """The object code, made in this process. Raises CompileError if LLVM rejects the text."""
    try:
        return object_code.object_code(text, target)
    except RuntimeError as error:
        raise CompileError(f"LLVM does not accept the generated code: {str(error).splitlines()[0]}") from error


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _CompilerProcess:
    """A process that compiles texts."""

    def __init__(self, texts: Sequence[str], target: CodeTarget | None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        # files, as a pipe would block until the process reads it
        with suppress(OSError), tempfile.TemporaryFile() as given:
            pickle.dump(
                (list(texts), target and tuple(target)), given
            )  # plain: the other process does not import cosim
            given.seek(0)
            self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
            finalize(self, self._out.close)
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-P", object_code.__file__],
                stdin=given,
                stdout=self._out,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # the same modules
                process_group=0,  # Ctrl-C reaches this process only, which then ends the other one
            )
            finalize(self, _end, self._process)

    def result(self) -> list[bytes]:
        """The objects, none if the process failed."""
        if self._process is None or self._process.wait() != 0:
            return []
        self._out.seek(0)
        return pickle.load(self._out)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


LONGEST_MODULE = 400_000  # characters of a module; about 0.4 s

_FUNCTION = re.compile(r"^define .*?^}\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@([\w.]+)")
_COPIED = "cosim."


def modules(ir: str) -> list[str]:
    """The text itself where it is short or has variables, which cannot be copied."""
    if len(ir) <= LONGEST_MODULE or re.search(r"^@\S+ = (internal |private )?global ", ir, re.MULTILINE):
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
        if sum(map(len, group.values())) > LONGEST_MODULE:
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
