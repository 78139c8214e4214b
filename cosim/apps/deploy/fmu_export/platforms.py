"""The machines for which FMUs are built."""

from __future__ import annotations

import platform
from typing import NamedTuple

from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.targets import targets
from cosim.core.errors import InputError


class Platform(NamedTuple):
    """target: of the machine code, a CPU that others have too; folders of the binary by major version of FMI; suffix of
    the binary; linker_target: of ziglang, with the oldest C library that the binary runs with."""

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
