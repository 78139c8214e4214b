"""A table of numbers in a file of another program: its columns, the units that the file gives them, and its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation, did_you_mean
from cosim.core.tables.row_ranges import row_ranges
from cosim.core.types import Array
from cosim.core.units import known_unit

_IN_BRACKETS = re.compile(r"(.*?)[\s_]*[\[(]([^\[\]()]*)[\])]\s*", re.DOTALL)
_NUMBER = re.compile(r"#[1-9]\d{0,5}")
_QUOTED = re.compile(r"'.*'|got \S+$")
FEW_ALIKE = 3  # wrong cells of a column that are said each
MOST_WRONG = 100  # cells of a table that are remembered


class WrongCell(NamedTuple):
    """A cell without a number, or a row of another length. row: index; column: its name, empty for the whole row."""

    row: int
    column: str
    what: str


class TableRows(NamedTuple):
    """The k rows of n columns: values (k, n) as they are written, NaN in cells without a number; wrong: those that are
    neither empty nor `nan`, the first ones; lines (k,): of the file, empty where it has none."""

    values: Array
    lines: np.ndarray
    wrong: tuple[WrongCell, ...] = ()


@dataclass(frozen=True)
class FileTable:
    """A table in a file. names, units: of its columns, the latter by name, where it has them; read: the rows of columns
    by their indices; strings: the cells of one column as text, None where it has none; notes: what was guessed."""

    path: Path
    names: tuple[str, ...]
    read: Callable[[Sequence[int]], TableRows]
    units: dict[str, str] = field(default_factory=dict)
    strings: Callable[[int], list[str] | None] = field(default=lambda _: None)
    notes: tuple[str, ...] = ()
    header: int | None = None  # line of the names
    clock: str = ""  # what is said where the column t was made of the time between rows
    having: Callable[[Sequence[int]], FileTable] | None = None  # of a table of which not all rows have all columns

    def with_rows_of(self, columns: Sequence[int]) -> FileTable:
        """The rows that have these columns. Raises InputError where there is none."""
        return self if self.having is None else self.having(columns)

    def only(self, rows: np.ndarray) -> FileTable:
        """These rows, by their indices."""
        index = {int(row): k for k, row in enumerate(rows)}

        def read(columns: Sequence[int]) -> TableRows:
            values, lines, wrong = self.read(columns)
            kept = (cell._replace(row=index[cell.row]) for cell in wrong if cell.row in index)
            return TableRows(values[rows], lines[rows] if len(lines) else lines, tuple(kept))

        def strings(column: int) -> list[str] | None:
            cells = self.strings(column)
            return None if cells is None else [cells[row] for row in rows]

        return replace(self, read=read, strings=strings, having=None)

    def place(self, line: int | None = None, key: str = "") -> SourceLocation:
        return SourceLocation(str(self.path), line, key)

    def index(self, name: str) -> int:
        """Of the column with this name, or with this name and a unit or another word in brackets, or of `#2`, the
        second one. Raises InputError where there is none, or two."""
        found = [k for k, column in enumerate(self.names) if column == name]
        found = found or [k for k, column in enumerate(self.names) if name_and_unit(column)[0] == name]
        found = found or [k for k, column in enumerate(self.names) if _without_brackets(column) == name]
        if not found and _NUMBER.fullmatch(name) and int(name[1:]) <= len(self.names):
            found = [int(name[1:]) - 1]
        if len(found) == 1:
            return found[0]
        if found:
            numbers = " or ".join(f"#{k + 1}" for k in found[:4])
            raise InputError(
                f"{len(found)} columns '{name}'; name one by its number, {numbers}", self.place(self.header)
            )
        raise InputError(f"no column '{name}'{did_you_mean(name, self.names)}", self.place(self.header))

    def numbers(self, columns: Sequence[int]) -> TableRows:
        """The rows of columns whose cells are all finite numbers. Raises InputErrors with the lines of others."""
        rows = self.read(columns)
        if errors := list(self._faults(rows, columns)):
            raise InputErrors(errors)
        return rows

    def line_of(self, rows: TableRows, row: int) -> int | None:
        return int(rows.lines[row]) if len(rows.lines) else None

    def _faults(self, rows: TableRows, columns: Sequence[int]) -> Iterator[InputError]:
        """One for cells of a column that are wrong in the same way, where they are many."""
        alike = dict[tuple[str, str], list[WrongCell]]()
        for cell in self._wrong_cells(rows, columns):
            alike.setdefault((cell.column, _QUOTED.sub("", cell.what)), []).append(cell)
        few = [cell for cells in alike.values() if len(cells) <= FEW_ALIKE for cell in cells]
        many = [cells for cells in alike.values() if len(cells) > FEW_ALIKE]
        for row, cells in sorted([*((cell.row, [cell]) for cell in few), *((cells[0].row, cells) for cells in many)]):
            line, what = self.line_of(rows, row), cells[0].what
            numbers = [self.line_of(rows, cell.row) or cell.row + 1 for cell in cells]
            if len(cells) > 1:
                count = f"{len(cells)} rows" if len(cells) < MOST_WRONG else f"{MOST_WRONG} rows or more"
                what += f"; so it is in {count}, {'rows' if line is None else 'lines'} {row_ranges(numbers)}"
            at = "" if line is not None else f"row {row + 1}: "
            yield InputError(at + what, self.place(line, cells[0].column))

    def _wrong_cells(self, rows: TableRows, columns: Sequence[int]) -> Iterator[WrongCell]:
        known = set[tuple[int, str]]()
        for cell in rows.wrong:
            known |= {(cell.row, cell.column)} if cell.column else {(cell.row, self.names[k]) for k in columns}
            yield cell
        seen = rows.wrong[-1].row + 1 if len(rows.wrong) >= MOST_WRONG else len(rows.values)  # others are not kept
        for row, k in np.argwhere(~np.isfinite(rows.values[:seen]))[: MOST_WRONG + len(known)].tolist():
            column, value = columns[k], rows.values[row, k]
            if (row, self.names[column]) not in known:
                texts = self.strings(column) if np.isnan(value) else None
                got = f"{value:g}" if texts is None else f"'{texts[row]}'" if texts[row] else "an empty cell"
                yield WrongCell(row, self.names[column], f"expected a finite number, got {got}")


def _without_brackets(name: str) -> str:
    match = _IN_BRACKETS.fullmatch(name)
    return match[1].strip() if match else name


def in_brackets(name: str) -> str | None:
    """What is in brackets at the end of a name and may be meant as a unit, though it is none; None without."""
    match = _IN_BRACKETS.fullmatch(name)
    text = "" if match is None else match[2].strip()
    return text if text and not any(c.isdecimal() for c in text) and known_unit(text) is None else None


def name_and_unit(name: str) -> tuple[str, str | None]:
    """`elbow [deg]` as (`elbow`, `deg`); a bracket without a unit belongs to the name."""
    match = _IN_BRACKETS.fullmatch(name)
    if match and not match[2].strip().isdecimal() and (unit := known_unit(match[2].strip())) is not None:
        return match[1].strip(), unit
    return name, None
