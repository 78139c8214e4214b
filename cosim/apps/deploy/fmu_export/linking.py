"""Object code and C code to one shared object, by the C compiler of this machine, if FMUs are built for it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.targets import targets
from cosim.core.errors import InputError, RunError

SOURCES = Path(__file__).parent / "c"
COMPILERS = ("cc", "gcc", "clang")
# the machine code of the model has its own target; C code runs on any machine of the platform
FLAGS = ("-std=c11", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs", "-Wl,-Bsymbolic")


class Platform(NamedTuple):
    """A system and processor for which FMUs are linked. target: of the machine code, a CPU that others have too;
    folders of the binary by major version of FMI; suffix of the binary; linker_target: of ziglang, with the oldest C
    library that the binary runs with."""

    target: CodeTarget
    folders: dict[int, str]
    suffix: str
    linker_target: str


# (system, machine) as Python names them
PLATFORMS = {
    ("Linux", "x86_64"): Platform(
        targets()["x86_64"],
        {2: "linux64", 3: "x86_64-linux"},
        ".so",
        "x86_64-linux-gnu.2.17",
    ),
}


def this_platform() -> Platform:
    """Raises InputError for a machine that cannot build FMUs."""
    key = platform.system(), platform.machine()
    if key not in PLATFORMS:
        known = ", ".join(" ".join(each) for each in PLATFORMS)
        raise InputError(f"FMUs are not built on {' '.join(key)}; use a machine with {known}", "cosim export fmu")
    return PLATFORMS[key]


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
