"""Rigs that came with a recording or from somebody else: what of them would run, and whether it is trusted.

A recording of this user on this machine needs no question while the files of the rig stand where they were: the SHA-256
over all files of a recording, and their place, are kept in the cache folder, which nobody else can write to. No path
that a recording names is opened for that.
"""

from __future__ import annotations

import hashlib
import os
import site
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import gettempdir
from typing import NamedTuple

from cosim.core.errors import PACKAGE, PROGRAM
from cosim.core.recordings.index import recordings_of
from cosim.core.trust.data_only import FIX, FMU, MJCF, PYTHON, XACRO, data_only
from cosim.core.trust.private_cache import code_folder, is_of_user, private_cache
from cosim.rig.rig_files import AS_RUN, RigFiles

OWN = "recorded"  # folder of the cache
MOST_KEPT = 5_000  # recordings that are known
SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom")
KINDS = {".py": PYTHON, ".fmu": FMU, ".ssp": FMU, ".ssd": FMU, ".mjcf": MJCF, ".xacro": XACRO}


class ForeignCode(NamedTuple):
    """A file that would run, or makes others run; kind: in words."""

    name: str
    kind: str


def code_of_recording(path: str | Path) -> list[ForeignCode]:
    """What of the files in a recording would run; none where this user recorded it on this machine. Raises InputError
    for what is no recording."""
    files = files_of_recording(path)
    return [] if is_own(files) else code_among(files)


def files_of_recording(path: str | Path) -> dict[str, bytes]:
    """Name -> content of the files of the rig. Raises InputError."""
    return {name: content for index in reversed(recordings_of(path)) for name, content in index.files().items()}


def code_among(files: Mapping[str, bytes]) -> list[ForeignCode]:
    found = {name: KINDS.get(PurePosixPath(name).suffix.lower(), "") for name in files}
    found |= {name: XACRO for name, content in files.items() if not found[name] and b"xacro" in content[:100_000]}
    return [ForeignCode(name, kind) for name, kind in sorted(found.items()) if kind]


@contextmanager
def reading_data_only(folder: Path, fix: str = FIX) -> Iterator[None]:
    """A block in which a rig of this folder is read without its code, see `data_only`."""
    gettempdir()  # else its first use tries where it can write
    with data_only(folder, _of_program, fix):
        yield


def _of_program(path: str) -> bool:
    cached = os.path.join(os.path.realpath(code_folder()), "")
    return path.startswith((*SYSTEM, cached, *_program_folders(tuple(sys.path))))


@cache
def _program_folders(search: tuple[str, ...]) -> tuple[str, ...]:
    """Of this program, of Python and of what is installed; not the folder in which the program was started."""
    installed = [each for each in search if "site-packages" in each or "dist-packages" in each]
    own = (*PROGRAM, PACKAGE.parent / "cosim.egg-info")
    folders = [*own, *site.getsitepackages(), os.path.dirname(os.__file__), *installed, sys.prefix]
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)


# --- recordings of this user ---


def remember_own(files: RigFiles) -> None:
    """These are the files of a run of this user here. Without a private cache folder nothing is remembered."""
    if (cache_of_user := private_cache()) is None:
        return
    with suppress(OSError):
        folder = cache_of_user / OWN
        folder.mkdir(exist_ok=True)
        (folder / _digest(files.contents)).write_bytes(os.fsencode(files.root))
        known = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
        for file in known[:-MOST_KEPT]:
            file.unlink(missing_ok=True)


def is_own(files: Mapping[str, bytes]) -> bool:
    """Whether a run of this user here had all of these files, and no others, and they stand where they were."""
    if (folder := private_cache()) is None:
        return False
    try:
        root = Path(os.fsdecode((folder / OWN / _digest(files)).read_bytes()))
        return all(_stands(root / name, files[name]) for name in files if not name.endswith(AS_RUN))
    except OSError:
        return False


def _stands(file: Path, content: bytes) -> bool:
    """Raises OSError where there is none."""
    status = file.lstat()
    return stat.S_ISREG(status.st_mode) and is_of_user(status) and file.read_bytes() == content


def _digest(files: Mapping[str, bytes]) -> str:
    found = hashlib.sha256()
    for name, content in sorted(files.items()):
        found.update(f"{len(name)} {name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return found.hexdigest()
