"""Errors for users: one line each, with the place, the error and the fix.

Exit codes: 2 when the input is wrong (`InputError`), 1 when the run failed (`RunError`).
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """The place of an error: a file, a line (1-based), a dotted key or an element."""

    file: str
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        line = f":{self.line}" if self.line is not None else ""
        return f"{self.file}{line}" + (f" {self.key}" if self.key else "")


class CosimError(Exception):
    """Base of all errors that this package raises deliberately.

    `what`: the error and, after a semicolon, the fix; `place`: the source location.
    """

    exit_code = 1

    def __init__(self, what: str, place: SourceLocation | str | None = None) -> None:
        self.what = what
        self.place = place
        super().__init__(f"{place}: {what}" if place else what)


class InputError(CosimError):
    """The input (rig, URDF, command line, data file) is wrong."""

    exit_code = 2


class InputErrors(InputError):
    """All errors of one input, one line each, in the order of their lines."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        CosimError.__init__(self, "\n".join(str(error) for error in self.errors))


class CompileError(CosimError):
    """A function could not be traced or turned into machine code."""


class RunError(CosimError):
    """A run failed: a limit, a fault, a value that is not finite."""


def where_raised(error: BaseException, but: Iterable[str] = ()) -> str:
    """file:line of the Python line that raised the error, or that called the library (or file in `but`) that did."""
    frames, inner = traceback.extract_tb(error.__traceback__), set(but)
    own = [f for f in frames if "site-packages" not in f.filename and f.filename not in inner] or frames
    return f"{own[-1].filename}:{own[-1].lineno}" if own else "unknown place"


def describe_exception(error: BaseException) -> str:
    """An exception of user or library code in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({where_raised(error)})"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` if a known name is similar, else `; known: a, b, c`."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(known)}" if known else ""


def plural(n: int, word: str) -> str:
    """The singular or plural of a word for n items."""
    return word if n == 1 else f"{word}s"
