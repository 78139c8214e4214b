"""The cache folder, where it is private, and whose a file or a folder is.

The cache holds machine code and pickled parts that later runs load: who can write to it can run code as its user.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cosim.core.paths import cache_folder

PRIVATE = 0o700  # mode of a folder of the user alone
OTHERS = 0o077  # what of a mode is for the group and all others


def is_of_user(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()


def is_open_to_others(status: os.stat_result) -> bool:
    return bool(status.st_mode & OTHERS)


def is_private(folder: Path) -> bool:
    """Whether it is a folder, no link, of this user alone."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and is_of_user(status) and not is_open_to_others(status)


SAID = "COSIM_CACHE_WARNED"  # variable of the environment: programs that this one starts do not repeat the warning


def private_cache() -> Path | None:
    """The cache folder, made where it is missing. None where it cannot be made, and where it is not this user's alone,
    which is stated once."""
    try:
        folder = cache_folder()
    except RuntimeError:  # no home
        return None
    return _checked(os.path.abspath(folder), "COSIM_CACHE_DIR" in os.environ)


@cache
def _checked(folder: str, given: bool) -> Path | None:
    """given: by the user, whose folder keeps its mode."""
    path = Path(folder)
    try:
        path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if not given and is_of_user(path.lstat()) and not _others_write(path.lstat()):
            path.chmod(PRIVATE)
        why = why_not_private(path)
    except OSError:
        return None
    if why and SAID not in os.environ:
        os.environ[SAID] = "1"
        print(f"warning: {why}; nothing is cached until then", file=sys.stderr)
    return None if why else path


def why_not_private(folder: Path) -> str:
    """What makes a folder that exists no place for code of this user, and the fix; empty where nothing does. Folders
    above it and links on the way may be of the administrator too. Raises OSError."""
    for path in _way_to(folder):
        status = path.lstat()
        if not is_of_user(status) and not (path != folder and status.st_uid == 0):
            return f"{path}: is of another user, so the cache folder {folder} is not used; set COSIM_CACHE_DIR"
        if stat.S_ISDIR(status.st_mode) and _others_write(status):
            what = f"others can write to it, so the cache folder {folder} is not used"
            return f"{path}: {what}; remove the cache folder, and chmod go-w"
    if is_open_to_others(status := folder.stat()):
        mode = stat.S_IMODE(status.st_mode)
        return f"{folder}: the cache folder is open to others (mode {mode:03o}) and is not used; chmod 700 it"
    return ""


def _others_write(status: os.stat_result) -> bool:
    """Whether others can write to a folder, or replace what is in it: not in a sticky one, as /tmp is."""
    mode = status.st_mode
    by_group = mode & stat.S_IWGRP and not _is_of_user_alone(status.st_gid)
    return bool(by_group or mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


@cache
def _is_of_user_alone(group: int) -> bool:
    """Whether it is the group that many systems make for each user."""
    import grp
    import pwd

    try:
        name, found = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and set(found.gr_mem) <= {name}


def _way_to(folder: Path) -> Iterator[Path]:
    """The folder and those above it, as they are written and as links lead to them."""
    real = folder.resolve()
    yield from dict.fromkeys([folder, *folder.parents, real, *real.parents])


def code_folder() -> Path:
    """The cache folder, or one of this process alone."""
    return private_cache() or _of_process()


@cache
def _of_process() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="cosim-")  # of mode 700, with a name that nobody foresees
    weakref.finalize(_of_process, folder.cleanup)
    return Path(folder.name)
