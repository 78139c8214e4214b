"""A recorded motion as a table of text: a line of names, `t` first, and a row of numbers per sample."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError
from cosim.core.paths import open_file
from cosim.core.types import Array

SEPARATORS = (",", ";", "\t")  # the first one that the line of names has
Reader = Callable[[Sequence[str]], Array]


def open_table(path: str | Path, wanted: Sequence[str]) -> tuple[list[str], Reader]:
    """The names of the columns, and what reads some of them, (k, n). wanted: the names that a message gives. Raises
    InputError for a file that is no such table."""
    try:
        with TextIOWrapper(open_file(path), encoding="utf-8-sig") as file:
            line = file.readline()
    except UnicodeDecodeError:
        line = "\0"
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from None
    if "\0" in line:
        raise InputError(
            "is no text; give a table as 'cosim export recording' writes it, or a recording (.mcap)", str(path)
        )
    separator = next((mark for mark in SEPARATORS if mark in line), SEPARATORS[0])
    names = [name.strip() for name in line.split(separator)]
    if "t" not in names:
        raise InputError(f"line 1 has no column 't'; name the columns {', '.join(wanted)}", str(path))

    def read(chosen: Sequence[str]) -> Array:
        places = [names.index(name) for name in chosen]
        with TextIOWrapper(open_file(path), encoding="utf-8-sig", errors="replace") as file:
            lines = [_with_points(line, separator) for line in file]
        try:
            with warnings.catch_warnings():  # of a table without rows
                warnings.simplefilter("ignore")
                table = np.loadtxt(lines[1:], delimiter=separator, usecols=places, ndmin=2, comments=None)
            return table.reshape(-1, len(places))
        except ValueError:
            wrong = next(n for n, row in enumerate(lines, 1) if n > 1 and not _are_numbers(row, separator, places))
            raise InputError(f"line {wrong} does not have a number for each signal", str(path)) from None

    return names, read


def _with_points(line: str, separator: str) -> str:
    """Numbers with decimal commas, where these do not separate columns."""
    return line if separator == "," else line.replace(",", ".")


def _are_numbers(row: str, separator: str, places: Sequence[int]) -> bool:
    cells = row.split(separator)
    try:
        return all(float(cells[k]) is not None for k in places)
    except (ValueError, IndexError):
        return not row.strip()
