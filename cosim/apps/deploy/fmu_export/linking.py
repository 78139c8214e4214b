"""Object code and C code to one shared object, by the C compiler of this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from cosim.apps.deploy.fmu_export.platforms import Platform
from cosim.core.errors import InputError, RunError

SOURCES = Path(__file__).parent / "c"
COMPILERS = ("cc", "gcc", "clang")
# the machine code of the model has its own target; C code runs on any machine of the platform
FLAGS = ("-std=c11", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs", "-Wl,-Bsymbolic")


def compiler_of(platform: Platform) -> list[str]:
    """The words that begin a command of the C compiler: ziglang, whose binaries need no new C library, or the system's.
    Raises InputError where there is none."""
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", platform.linker_target]
    for name in COMPILERS:
        if found := shutil.which(name):
            return [found]
    raise InputError(
        "there is no C compiler to link with; install one, or ziglang: pip install cosim[fmu-export]",
        "cosim export fmu",
    )


def linked(
    objects: Sequence[bytes], data: str, kind: str, version: int, platform: Platform, compiler: Sequence[str]
) -> bytes:
    """The shared object of an FMU. data, kind: see `UnitContent`, with the token; version: of FMI. Raises RunError
    with the first complaint of the compiler."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.c").write_text(data)
        files = [str(folder / "data.c"), *(str(SOURCES / file) for file in ("unit.c", f"{kind}.c", f"fmi{version}.c"))]
        for k, content in enumerate(objects):
            (folder / f"{kind}{k}.o").write_bytes(content)
            files.append(str(folder / f"{kind}{k}.o"))
        result = folder / f"unit{platform.suffix}"
        exports = f"-Wl,--version-script={SOURCES / 'exports.map'}"
        words = [*compiler, *FLAGS, exports, "-I", str(SOURCES), "-o", str(result), *files, "-lm"]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            first = next(iter(done.stderr.splitlines()), f"exit code {done.returncode}")
            raise RunError(f"the C compiler failed: {first}; check that it can build shared objects", compiler[0])
        return result.read_bytes()
