"""What a shared object needs of others, by binutils."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


def needed_libraries(file: Path) -> set[str]:
    return set(re.findall(r"NEEDED\s+(\S+)", _output("objdump", "-p", str(file))))


def symbols(file: Path, which: str) -> list[str]:
    """Dynamic symbols without their versions; which: `--undefined-only` or `--defined-only`."""
    lines = _output("nm", "-D", which, str(file)).splitlines()
    return [line.split()[-1].partition("@")[0] for line in lines]


def newest_c_library(file: Path) -> tuple[int, int]:
    """The version of glibc that it needs."""
    found = re.findall(r"GLIBC_([0-9]+)[.]([0-9]+)", _output("objdump", "-p", str(file)))
    return max((int(major), int(minor)) for major, minor in found)


def _output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
