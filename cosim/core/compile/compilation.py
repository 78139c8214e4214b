"""Object code of several modules, made in other processes while this one goes on: LLVM as Python knows it compiles one
module at a time in a process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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
