"""Reading what came from elsewhere as data: none of its code runs, and no file outside of its folder is opened.

A block of `data_only` is for the thread that reads. Whatever would run code of a rig asks `refuse_code` first; files
are bounded by an audit hook of Python, so that a reader that is added later is bounded too.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cosim.core.errors import InputError, InputErrors, SourceLocation, shortened
from cosim.core.paths import UNTRACKED

FIX = "pass --trust if you know where it comes from"
PYTHON, FMU = "Python that would run", "an FMU whose code would run"
XACRO = "xacro whose expressions would be evaluated in Python"
MJCF = "MJCF, for which MuJoCo opens further files"
USD = "USD, whose layers open further files"


class CodeRefused(InputError):
    """Code that was not trusted; kind: what it is, such as PYTHON."""

    def __init__(self, name: str, kind: str, place: SourceLocation | str | None, fix: str) -> None:
        super().__init__(f"'{shortened(name)}' is {kind}; {fix}", place)
        self.name, self.kind = name, kind


def refused_code(error: InputError) -> tuple[CodeRefused, ...]:
    """The code that was refused, among the errors of an input."""
    errors = error.errors if isinstance(error, InputErrors) else (error,)
    return tuple(each for each in errors if isinstance(each, CodeRefused))


class _State(threading.local):
    folder = ""  # real path of the folder that is read, empty without bounds
    fix = FIX
    of_program: Callable[[str], bool] | None = None


_state = _State()


@contextmanager
def data_only(folder: Path, of_program: Callable[[str], bool], fix: str = FIX) -> Iterator[None]:
    """of_program: whether a real path is of this program or of what is installed, which may be opened too; fix:
    in messages.

    No garbage is collected meanwhile: what others left behind may open files as it goes."""
    _install()
    collecting = gc.isenabled()
    gc.disable()
    before = _state.folder, _state.of_program, _state.fix
    _state.folder, _state.of_program, _state.fix = os.path.realpath(folder), of_program, fix
    try:
        yield
    finally:
        _state.folder, _state.of_program, _state.fix = before
        if collecting:
            gc.enable()


def reads_data_only() -> bool:
    """Whether this thread is in a block of `data_only`."""
    return bool(_state.folder)


def refuse_code(name: str, kind: str, place: SourceLocation | str | None) -> None:
    """Raises CodeRefused in a block of `data_only`. name: of the code in the rig; kind: such as PYTHON."""
    if _state.folder:
        raise CodeRefused(name, kind, place, _state.fix)


def _check(event: str, arguments: tuple[Any, ...]) -> None:
    """Raises InputError for a file outside of the folder, and for one that is opened outside of Python."""
    name, *_ = arguments
    if not isinstance(name, str | bytes | os.PathLike):
        return  # a descriptor
    folder, of_program = _state.folder, _state.of_program
    _state.folder = ""  # to look at a path may open others
    try:
        path = os.path.realpath(os.fsdecode(name))
        inside = event == "open" and path.startswith(os.path.join(folder, ""))
        if not inside and not (event == "open" and of_program is not None and of_program(path)):
            what = "is outside of the files that came with the rig, and is not opened for it"
            raise InputError(f"{what}; {_state.fix}", shortened(os.fsdecode(name)))
    finally:
        _state.folder = folder


@cache
def _install() -> None:
    state, check = _state, _check  # the module's names are gone when the interpreter, at its end, still opens files

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", UNTRACKED) and state.folder:
            check(event, arguments)

    sys.addaudithook(hook)
