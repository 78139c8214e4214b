"""The inputs of a rig: the files that are read while it is built, and the program itself.

A file is an input when Python opens it in a tracked block: the rig, its robot and what that includes, tables, Python
files and the modules that they import, and what these read themselves. Environment variables are inputs where such a
file names them.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import source_from_cache
from tempfile import gettempdir
from types import TracebackType
from typing import Any

from cosim.core.compile import object_code
from cosim.core.compile.object_code import host
from cosim.core.errors import PROGRAM
from cosim.core.paths import EXTRACTED, UNTRACKED, cache_folder

# audit events after which the inputs are not known
_UNKNOWN = {UNTRACKED, "subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "socket.connect"}
_VARIABLE = re.compile(rb"(?:\$\((?:opt)?env\s+|\$\{?|environ\W+(?:get\W+)?|getenv\W+)(\w+)")
_SEARCHED = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
_CODE = (".py", ".pyc", ".so", ".pyd")
# Python, and this program
_OTHERS = tuple(os.path.join(folder, "") for folder in (os.path.dirname(os.__file__), *PROGRAM))
_STARTED = time.time_ns()
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Inputs:
    """The files and environment variables that a rig was built from, as they were then. files: absolute path -> hash of
    the content, "" where there is none; variables: of the environment."""

    files: dict[str, str]
    variables: dict[str, str | None]

    @property
    def unchanged(self) -> bool:
        """Whether all have the same contents."""
        variables = all(os.environ.get(name) == value for name, value in self.variables.items())
        return variables and all(_digest(_content(path)) == digest for path, digest in self.files.items())

    def alone_with(self, own: Container[str]) -> bool:
        """Whether this process has no modules of the user except the files `own`, if any input is one: they may
        have been changed in it."""
        code = any(path.endswith(".py") for path in self.files)
        return not code or all(file in own for _, file in modules_of_user())


class InputTracker:
    """A block that may be entered several times. Files that this thread opens within it are inputs, with the content
    before the first time."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._variables: dict[str, str | None] = {}
        self._known = True
        self._outer: list[InputTracker | None] = []  # around each block that is entered now

    def __enter__(self) -> None:
        _install()
        self._outer.append(_state.tracker)
        _state.tracker = self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _state.tracker = self._outer.pop()

    @property
    def files(self) -> dict[str, str]:
        """Absolute path -> hash of the content of those so far."""
        return dict(self._files)

    def inputs(self) -> Inputs | None:
        """Those so far; None where they are not all known, or have changed since they were read."""
        found = Inputs(self._files, self._variables)
        return found if self._known and found.alone_with(self._files) and found.unchanged else None

    def notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event of Python."""
        if event in _UNKNOWN and not (event == "subprocess.Popen" and object_code.__file__ in arguments[1]):
            self._known = False
        if event != "open" or not isinstance(arguments[0], str | bytes):
            return
        name, _, flags = arguments
        path = os.path.abspath(os.fsdecode(name))
        if path.endswith(".pyc"):
            path = _source_of(path)
        if not flags & (os.O_WRONLY | os.O_RDWR) and path not in self._files and _is_input(path):
            if _blocks(path):
                self._known = False
                return
            content = _content(path)
            self._files[path] = _digest(content)
            for found in _VARIABLE.finditer(content or b""):
                variable = found[1].decode()
                self._variables[variable] = os.environ.get(variable)


class _TrackerState(threading.local):
    tracker: InputTracker | None = None


_state = _TrackerState()


@cache
def _install() -> None:
    state = _state  # the module's names are gone when the interpreter, at its end, still opens files

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if (tracker := state.tracker) is not None:
            state.tracker = None  # it opens files too
            try:
                tracker.notice(event, arguments)
            finally:
                state.tracker = tracker

    sys.addaudithook(hook)


def _blocks(path: str) -> bool:
    """Whether it is a FIFO, a socket or a device: it may wait for its other end, and has no content to compare."""
    with suppress(OSError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def _content(path: str) -> bytes | None:
    """None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _source_of(path: str) -> str:
    try:
        return source_from_cache(path)
    except ValueError:
        return path


def _is_input(path: str) -> bool:
    """Not of the program and of installed packages, whose state is a part of the key."""
    if (
        path.startswith((*_SYSTEM, os.path.join(str(cache_folder()), ""), os.path.join(gettempdir(), EXTRACTED)))
        or ".dist-info/" in path
        or ".egg-info/" in path
    ):
        return False
    return not path.endswith(_CODE) or _is_of_user(path)


def _is_of_user(path: str) -> bool:
    return not path.startswith(_OTHERS) and not any(f"{os.sep}{name}{os.sep}" in path for name in _INSTALLED)


def modules_of_user() -> Iterator[tuple[str, str]]:
    """(name, file) of the user's modules in this process; the script that runs is not one."""
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and isinstance(file, str) and file.endswith(".py") and _is_of_user(os.path.abspath(file)):
            yield name, os.path.abspath(file)


def key_of(*request: object) -> str:
    """The key of what the program makes of a request, as far as it does not depend on files that are read; none for a
    program whose sources have changed since it started."""
    if any(changed > _STARTED for _, _, changed in source_state()):
        return ""
    described = repr((request, os.getcwd(), program_state()))
    return hashlib.sha256(described.encode()).hexdigest()


def program_state() -> tuple[object, ...]:
    """Versions of Python and of all installed packages, the sources of this program, the CPU, variables that matter."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("COSIM_") or name in _SEARCHED}
    variables.pop("COSIM_CACHE_DIR", None)
    return sys.version, host(), sorted(variables.items()), source_state(), installed_packages(tuple(sys.path))


@cache
def source_state() -> list[tuple[str, int, int]]:
    """(path, size, time of change) of the sources of this program, as Python compares them for its own cache."""
    found, folders = set(), [*map(str, PROGRAM)]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.is_dir():
                folders += [entry.path] if entry.name != "__pycache__" else []
            elif entry.name.endswith(".py"):
                status = entry.stat()
                found.add((entry.path, status.st_size, status.st_mtime_ns))
    return sorted(found)


@cache
def installed_packages(folders: tuple[str, ...]) -> list[tuple[str, int]]:
    """(name with version, time of installation) of the packages in the folders of `sys.path`, which may have
    plug-ins."""
    found = []
    for folder in dict.fromkeys(folders):
        try:
            entries = list(os.scandir(folder or "."))
        except OSError:
            continue  # a zip file, or none
        found += [
            (entry.path, entry.stat().st_mtime_ns)
            for entry in entries
            if entry.name.endswith((".dist-info", ".egg-info"))
        ]
    return sorted(found)
