"""Errors for users: one line each, with the place, the error and the fix.

Exit codes: 2 when the input is wrong (`InputError`), 1 when the run failed (`RunError`).
"""

from __future__ import annotations

import difflib
import json
import re
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

LONGEST_LINE = 1000  # characters of a message
LONGEST_WORD = 200  # of it: a name or a path
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
MOST_NAMES = 20  # that a message lists
HANDFUL = 5  # of many names
MOST_SHOWN = 20  # errors of one input that are shown
MOST_ERRORS = 100  # errors of one input, after which reading ends
PACKAGE = Path(__file__).parents[1]
# what holds the folders of controllers and drivers, which in a checkout stand beside the package
PLUGIN_ROOT = PACKAGE / "plugins" if (PACKAGE / "plugins" / "drivers").is_dir() else PACKAGE.parent
PLUGINS = PLUGIN_ROOT / "controllers", PLUGIN_ROOT / "drivers"
PROGRAM = PACKAGE, *PLUGINS
COMPARED = 500  # known names that a misspelt one is compared with, and characters of a name


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

    `what`: the error and, after a semicolon, the fix; `place`: the source location. The text is one line of printable
    characters, whatever the input holds.
    """

    exit_code = 1

    def __init__(self, what: str, place: SourceLocation | str | None = None) -> None:
        self.what = one_line(what)
        self.place = place
        super().__init__(one_line(f"{place}: {what}" if place else what))


class RunWarning(UserWarning):
    """What makes the results of a run doubtful, or failed beside it; the run is finished."""


class InputError(CosimError):
    """The input (rig, URDF, command line, data file) is wrong."""

    exit_code = 2


class SilentDrive(InputError):
    """A drive does not answer, or not as one of its family; address: its number on the connection."""

    def __init__(self, what: str, place: SourceLocation | str | None, address: int) -> None:
        super().__init__(what, place)
        self.address = address


class SectionError(InputError):
    """A section of a file is wrong; keys: the way from the section to the key."""

    def __init__(self, what: str, keys: Sequence[str | int]) -> None:
        super().__init__(what, ".".join(map(str, keys)))
        self.keys = tuple(keys)


class InputErrors(InputError):
    """The errors of one input, one line each, in the order of their lines; of many, the first ones and their number."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        self.what = "\n".join([*map(str, self.errors[:MOST_SHOWN]), *_remaining(len(self.errors))])
        self.place = None
        Exception.__init__(self, self.what)


def _remaining(errors: int) -> list[str]:
    """The line that stands for the errors that are not shown."""
    more = errors - MOST_SHOWN
    if more <= 0:
        return []
    number = f"at least {more}" if errors >= MOST_ERRORS else str(more)
    return [f"… and {number} more; correct these first"]


class ErrorList(list[InputError]):
    """The errors found so far in an input. The last one that it takes raises InputErrors: what reads the input ends."""

    def append(self, error: InputError) -> None:
        super().append(error)
        if len(self) >= MOST_ERRORS:
            raise InputErrors(self)

    def extend(self, errors: Iterable[InputError]) -> None:
        for error in errors:
            self.append(error)


class WrongResult(ValueError):
    """User code returned a result of the wrong form. place: file:line of its function."""

    def __init__(self, what: str, place: str) -> None:
        self.place = place
        super().__init__(what)


class MissingInput(KeyError):
    """User code read an input that its block does not declare. The message is the argument as it stands."""

    def __str__(self) -> str:
        return str(self.args[0])


class CompileError(CosimError):
    """A function could not be traced or turned into machine code."""


class RunError(CosimError):
    """A run failed: a limit, a fault, a value that is not finite."""


def where_raised(error: BaseException, but: Iterable[str] = ()) -> str:
    """file:line of the Python line that raised the error, or that called the library or the part of this program (or
    file in `but`) that did; of a wrong result, of the function that returned it."""
    if isinstance(error, WrongResult):
        return error.place
    frames, inner = traceback.extract_tb(error.__traceback__), set(but)
    outside = [f for f in frames if "site-packages" not in f.filename and f.filename not in inner]
    own = [f for f in outside if is_users_file(f.filename)] or outside or frames
    return f"{own[-1].filename}:{own[-1].lineno}" if own else "unknown place"


def is_users_file(file: str) -> bool:
    """Whether a source file is no part of this program but its plug-ins."""
    path = Path(file)
    return any(path.is_relative_to(folder) for folder in PLUGINS) or not path.is_relative_to(PACKAGE)


def describe_exception(error: BaseException) -> str:
    """An exception of user or library code in one line."""
    kind = "" if isinstance(error, (WrongResult, MissingInput)) else f"{type(error).__name__}: "
    return f"{kind}{' '.join(str(error).split())} ({where_raised(error)})"


def one_line(text: str) -> str:
    """`text` with the middle of a long text or a long word cut out; what does not print is escaped."""
    return _cut(escaped(_cut(text)))  # escapes are longer


def _cut(text: str) -> str:
    text = _LONG_WORD.sub(lambda found: _without_middle(found[0], LONGEST_WORD, "…"), text)
    return _without_middle(text, LONGEST_LINE, " … ")


def _without_middle(text: str, length: int, gap: str) -> str:
    return text if len(text) <= length else f"{text[: length * 3 // 4]}{gap}{text[-length // 5 :]}"


def escaped(text: str) -> str:
    """`text` with JSON escapes for line breaks and for what a terminal would obey; JSON stays the same."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def shortened(text: str, length: int = 60) -> str:
    """The beginning of a text that a message quotes."""
    return text if len(text) <= length else f"{text[:length]}…"


def listed(names: Sequence[str]) -> str:
    """`a, b, c`; of many names the first ones and their number."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` if a known name is similar, else `; known: a, b, c`."""
    known = list(known)
    close = difflib.get_close_matches(name[:COMPARED], known[:COMPARED], n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {listed(known)}" if known else ""


def near_names(name: str, known: Iterable[str]) -> str:
    """Like `did_you_mean` for a pattern and many names: some that are similar or contain a part of it, else the first
    ones, and how many there are."""
    known = list(known)
    close = difflib.get_close_matches(name[:COMPARED], known[:COMPARED], n=HANDFUL, cutoff=0.6)
    if close:
        return did_you_mean(name, known)
    parts = [part for part in re.split(r"[^\w.]+", name) if part]
    shown = [each for each in known if any(part in each for part in parts)][:HANDFUL] or known[:HANDFUL]
    more = len(known) - len(shown)
    rest = f" … and {more} more" if more > 0 else ""
    return f"; known: {', '.join(shown)}{rest}" if known else ""


def plural(n: int, word: str) -> str:
    """The singular or plural of a word for n items."""
    return word if n == 1 else f"{word}s"
