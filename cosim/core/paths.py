"""Files as rigs and robots name them: relative to a folder, from `~` or `$VAR`, or in a ROS package.

What is named to be read is opened here, and only if it is a regular file: a FIFO or a device may never end.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from cosim.core.errors import InputError

PACKAGE = "package://"
MANIFEST = "package.xml"
DEPTH = 2  # folders below a search folder in which packages are found
LEVELS, MOST_ENTRIES = 5, 5000  # of a search for files below a folder
ANCESTORS = 6  # folders above a file that may be its package
UNTRACKED = "cosim.untracked"  # audit event of a search, or of a file that is opened outside of Python
EXTRACTED = "cosim_ssp_"  # how folders of extracted archives begin: the archive is an input, not its files
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_NAME = re.compile(rb"<name>\s*([\w.-]+)\s*</name>")
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def locate(text: str, folder: Path, packages: Iterable[str | Path] = ()) -> Path:
    """The file `text`, relative to `folder`; packages: folders that are ROS packages or contain some.

    Raises InputError for a variable that is not set, a user or a package that does not exist.
    """
    text = expand(text)
    if text.startswith(PACKAGE):
        name, _, rest = text.removeprefix(PACKAGE).partition("/")
        return find_package(name, (folder / Path(expand(str(p))) for p in packages), folder) / rest
    return folder / text


def expand(text: str) -> str:
    """The text with `~` and `$VAR` or `${VAR}` replaced. Raises InputError for those that do not exist."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            raise InputError(f"the environment variable '{name}' in '{text}' is not set; set it or write the path out")
        return os.environ[name]

    expanded = _VARIABLE.sub(value, text)
    if not expanded.startswith("~"):
        return expanded
    home = os.path.expanduser(expanded)
    if home.startswith("~"):
        raise InputError(f"there is no user '{home.partition('/')[0][1:]}'; write the path '{text}' out")
    return home


def find_package(name: str, folders: Iterable[Path], near: Path) -> Path:
    """The folder of a ROS package, absolute: in or below one of `folders`, a folder above `near` or beside that, or
    below a folder of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.

    Raises InputError if there is none.
    """
    sys.audit(UNTRACKED, name)
    for found in _candidates(name, folders, near):
        if _is_package(found, name):
            return found.absolute()  # it may be joined to other folders than the working directory
    what = f"there is no package '{name}' in the packages of the rig, around the robot file and in ROS_PACKAGE_PATH"
    raise InputError(f"{what}; add its folder to mechanism.packages or --packages")


def _candidates(name: str, folders: Iterable[Path], near: Path) -> Iterator[Path]:
    """Where a package may be, in the order of the search."""
    for folder in folders:
        yield folder
        for level in range(1, DEPTH + 1):
            yield from sorted(folder.glob("/".join("*" * level)))
    yield from _around(near.absolute(), name)
    for variable, below in (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")):
        for root in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield from (Path(root, below), Path(root, below, name), *Path(root, below).glob(f"*/{name}"))


def _is_package(folder: Path, name: str) -> bool:
    """Whether a folder has the name, or a manifest with it."""
    if not folder.is_dir():
        return False
    if folder.name == name:
        return True
    try:
        found = _NAME.search(read_file(folder / MANIFEST))
    except OSError:
        return False
    return found is not None and found[1].decode() == name


def _around(near: Path, name: str) -> Iterator[Path]:
    """The folders above a file, and packages beside one that is a package."""
    for folder in (near, *near.parents)[:ANCESTORS]:
        yield folder
        if (folder / MANIFEST).is_file():
            yield folder.parent / name


def files_below(folder: Path, suffixes: Container[str]) -> tuple[list[str], bool]:
    """(files with these suffixes in a folder and below, relative to it and in order; whether all of it was looked at).

    At most LEVELS deep and MOST_ENTRIES files and folders, the upper ones first; links to folders are not followed."""
    found: list[str] = []
    level, count = [folder], 0
    for _ in range(LEVELS):
        below: list[Path] = []
        for each in level:
            if count >= MOST_ENTRIES:
                return sorted(found), False
            for entry in _entries(each, MOST_ENTRIES - count):
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
                elif os.path.splitext(entry.name)[1] in suffixes:
                    found.append(Path(entry.path).relative_to(folder).as_posix())
        level = sorted(below)
    return sorted(found), not level


def _entries(folder: Path, most: int) -> list[os.DirEntry[str]]:
    """What is in a folder, up to a number; nothing where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, most))
    except OSError:
        return []


def cache_folder() -> Path:
    """The folder of cached object code: $COSIM_CACHE_DIR, else the user's cache folder."""
    given = os.environ.get("COSIM_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cosim"


class NotAFile(OSError):
    """What is to be read is no regular file; `strerror` has its kind and the fix."""


def irregular(path: str | Path) -> str:
    """What there is in place of a regular file, such as `a folder`; empty for a file, and where there is nothing."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "")


def check_file(path: str | Path) -> None:
    """Raises NotAFile before another program opens what might never end."""
    if kind := irregular(path):
        raise NotAFile(0, f"it is {kind}; give a file", str(path))


def open_file(path: str | Path) -> BinaryIO:
    """A regular file, to be read. Raises OSError."""
    check_file(path)
    return open(path, "rb")


def read_file(path: str | Path) -> bytes:
    """The content of a regular file. Raises OSError."""
    with open_file(path) as file:
        return file.read()


def unreadable(cause: OSError, fix: str = "check the path") -> str:
    """Why a file cannot be read, and the fix, which is another one where it is no file."""
    why = cause.strerror or "it is damaged"
    return why if isinstance(cause, NotAFile) else f"{why}; {fix}"
