"""Tables as text, with separated columns in the dialect of whatever program wrote them.

Encoding, separator, decimal mark, comments, the line of names and the line of units are found in the text:

* bytes: UTF-8 and UTF-16, with and without a byte order mark; another one is read as Windows-1252;
* comments: lines from `#`, `%` or `//` on, and lines before the names; names may be in the last comment (`# t,a,b`);
* separator: tab, `;`, `|`, `,` or white space, by which names and rows have equally many cells; `sep=;` names it;
* decimal comma, where the separator is another one and cells have it;
* units: in brackets behind the names (`t [ms]`, `elbow (deg)`), or in a line of their own below them.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError, SourceLocation
from cosim.core.tables.table import MOST_WRONG, Rows, Table, WrongCell, name_and_unit
from cosim.core.units import known_unit

SEPARATORS: tuple[str | None, ...] = ("\t", ";", "|", ",", None)  # None: white space
COMMENTS = ("#", "%", "//")
MISFIT = 0.6  # how well rows fit that have another number of cells than the names; without names they fit less
SAMPLE = 200  # lines in which the dialect is found
EMPTY = frozenset({"", "nan", "+nan", "-nan", "na", "n/a", "null", "none", "-", "nil", "#n/a"})
_DECLARED = re.compile(r'"?sep=(.)"?[,;\s]*', re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_WITH_THOUSANDS = re.compile(r"[+-]?\d{1,3}([.,' \u00a0]\d{3})+([.,]\d+)?")
_MARKS = ((b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xef\xbb\xbf", "utf-8-sig"),
          (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))  # fmt: skip


def read_text(path: Path, data: bytes) -> Table:
    """Raises InputError for what is no text, has no names or no rows."""
    text = decoded(data, SourceLocation(str(path)))
    lines = [(n, line) for n, line in enumerate(_LINE_END.split(text), 1) if line.strip()]
    if not lines:
        raise InputError("the file is empty; write a line of names, and a row of numbers below", str(path))
    layout = _layout(lines, str(path))
    body = _Body(layout, [(n, line) for n, line in lines if n >= layout.first and not _is_comment(line)])
    units = {**_units_below(layout), **dict(_units_behind(layout.names))}
    return Table(path, layout.names, body.rows, units, body.strings, header=layout.header)


def decoded(data: bytes, place: SourceLocation) -> str:
    """The text of a file. Raises InputError for one that is no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _as(data, encoding, place)
    head = data[:4096]
    even, odd = (head[k::2].count(0) for k in range(2))
    if max(even, odd) > 0.4 * len(head) / 2:  # UTF-16 of Latin letters has a zero in every other byte
        if min(even, odd) > 0.1 * max(even, odd):
            raise InputError("is no text; give a table of numbers as text, Parquet, MATLAB, NumPy or MCAP", place)
        return _as(data, "utf-16-le" if odd > even else "utf-16-be", place)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        what = "has bytes of zero, as a file whose writing was cut off; take them out"
        raise InputError(what, SourceLocation(place.file, line, place.key))
    return text


def _as(data: bytes, encoding: str, place: SourceLocation) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise InputError("is no text; give a table of numbers as text, Parquet, MATLAB, NumPy or MCAP", place) from None


# --- the dialect -----------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """fit: share of the lines that have as many cells; names: of the columns; units: their line, or empty; header,
    first: lines of the names and of the first row."""

    fit: float
    separator: str | None
    comma: bool
    names: tuple[str, ...]
    units: tuple[str, ...]
    header: int | None
    first: int


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(COMMENTS)


def _layout(lines: Sequence[tuple[int, str]], file: str) -> _Layout:
    """Raises InputError for lines without rows or columns."""
    declared, sample = SEPARATORS, list(lines[:SAMPLE])
    if match := _DECLARED.fullmatch(sample[0][1].strip("\ufeff")):
        declared, sample = (match[1],), sample[1:]
    plain = [(n, line) for n, line in sample if not _is_comment(line)]
    if not plain:
        raise InputError("has comments alone; write a line of names, and rows of numbers below", file)
    found = [layout for mark in declared if (layout := _separated(mark, plain, sample)) is not None]
    if not found:
        place = SourceLocation(file, plain[0][0])
        what = "there are no rows of numbers, separated like a line of names by tabs, semicolons, commas or spaces"
        raise InputError(f"{what}; write as many numbers in each row as names", place)
    return max(found, key=lambda layout: layout.fit)


def _separated(mark: str | None, plain: Sequence[tuple[int, str]], sample: Sequence[tuple[int, str]]) -> _Layout | None:
    """The layout with this separator; None where it does not separate."""
    cells = [(n, split(line, mark)) for n, line in plain]
    comma = mark != "," and any(_WITH_COMMA.fullmatch(cell) for _, row in cells for cell in row)
    later = cells[len(cells) // 2 :]
    count = Counter(len(row) for _, row in later).most_common(1)[0][0]
    rows = [(n, row) for n, row in cells if len(row) == count]
    numeric = _numeric_columns([row for n, row in later if len(row) == count], comma)
    first = next((n for n, row in rows if numeric and _fits(row, numeric, comma)), None)
    if first is None:
        return None
    blank = not any(row[-1] for n, row in rows if n >= first)  # a separator ends each row
    above = [(n, row) for n, row in cells if n < first]
    fitting = [(n, _padded(row, count)) for n, row in above if len(row) == count or (blank and len(row) == count - 1)]
    # a row with a cell that is no number is a row: names are where no number is
    wordy = [(n, row) for n, row in fitting if not any(_number(row[k], comma) is not None for k in numeric)]
    names = _names_above(wordy or fitting, sample, mark, count, first)
    if names is None and above and len(above[-1][1]) > 1:  # rows have more or fewer cells than there are names
        return _Layout(MISFIT, mark, comma, _clean(above[-1][1]), (), above[-1][0], first)
    if count < 2 and (names is None or mark is not None):
        return None
    if wordy:
        first = next(n for n, _ in cells if n > wordy[-1][0])
    body = [row for n, row in cells if n >= first]
    fit = sum(len(row) == count for row in body) / len(body)
    if names is None:
        return _Layout(0.5 * fit, mark, comma, tuple(f"#{k + 1}" for k in range(count)), (), None, first)
    return _Layout(fit, mark, comma, *names, first)


def _numeric_columns(rows: Sequence[Sequence[str]], comma: bool) -> list[int]:
    """Those that are numbers in most rows."""
    columns = range(len(rows[0]))
    return [k for k in columns if 2 * sum(_number(row[k], comma) is not None for row in rows) > len(rows)]


def _fits(row: Sequence[str], numeric: Sequence[int], comma: bool) -> bool:
    """Whether it is a row of numbers, some of which may be missing."""
    values = [_number(row[k], comma) for k in numeric]
    missing = [_is_empty(row[k]) for k, value in zip(numeric, values, strict=True) if value is None]
    return all(missing) and len(missing) < len(values)


def _names_above(
    above: Sequence[tuple[int, Sequence[str]]],
    sample: Sequence[tuple[int, str]],
    mark: str | None,
    count: int,
    first: int,
) -> tuple[tuple[str, ...], tuple[str, ...], int] | None:
    """(names, units, line of the names) above the first row, or in the last comment above it."""
    if above:
        line, last = above[-1]
        if len(above) > 1 and any(last) and all(_unit_of(cell) is not None or not cell for cell in last):
            return _clean(above[-2][1]), tuple(last), above[-2][0]
        return _clean(last), (), line
    for n, line in reversed([(n, line) for n, line in sample if n < first and _is_comment(line)]):
        row = split(line.lstrip().lstrip("#%/").strip(), mark)
        if len(row) == count:
            return _clean(row), (), n
    return None


def _padded(row: Sequence[str], count: int) -> list[str]:
    return [*row, *[""] * (count - len(row))]


def _clean(row: Iterable[str]) -> tuple[str, ...]:
    return tuple(cell.lstrip("\ufeff#%").strip() if k == 0 else cell for k, cell in enumerate(row))


def split(line: str, mark: str | None) -> list[str]:
    """The cells of a line; None: separated by white space."""
    if '"' in line:
        reader = csv.reader([line], delimiter=mark or " ", skipinitialspace=True)
        return [cell.strip() for cell in next(reader)]
    return line.split() if mark is None else [cell.strip() for cell in line.split(mark)]


def _units_below(layout: _Layout) -> dict[str, str]:
    return {name: unit for name, cell in zip(layout.names, layout.units, strict=False) if (unit := _unit_of(cell))}


def _units_behind(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        _, unit = name_and_unit(name)
        if unit is not None:
            yield name, unit


def _unit_of(cell: str) -> str | None:
    return None if cell.strip("[]() ").isdecimal() else known_unit(cell.strip("[]() "))


# --- numbers ---------------------------------------------------------------------------------------


def _is_empty(cell: str) -> bool:
    return cell.lower() in EMPTY


def _number(cell: str, comma: bool) -> float | None:
    """None for what is no number; NaN for an empty cell is not one either."""
    if comma:
        if "." in cell and "," in cell:
            return None
        cell = cell.replace(",", ".", 1)
    if "_" in cell or not cell.isascii():
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return None if math.isnan(value) else value


@dataclass(frozen=True)
class _Body:
    """The lines of the rows."""

    layout: _Layout
    lines: list[tuple[int, str]]

    def rows(self, columns: Sequence[int]) -> Rows:
        fast = self._at_once(columns)
        return self._one_by_one(columns) if fast is None else fast

    def strings(self, column: int) -> list[str]:
        return [row[column] if column < len(row) else "" for row in self._cells]

    @cached_property
    def _cells(self) -> list[list[str]]:
        return [split(line, self.layout.separator) for _, line in self.lines]

    @property
    def _numbers_of_lines(self) -> np.ndarray:
        return np.array([n for n, _ in self.lines], dtype=np.int64)

    def _at_once(self, columns: Sequence[int]) -> Rows | None:
        """None for rows that are not all alike."""
        mark = self.layout.separator
        text = [line for _, line in self.lines]
        cells = len(self.layout.names)
        if any('"' in line or "_" in line for line in text):
            return None
        if mark is not None and any(line.count(mark) != cells - 1 for line in text):
            return None
        if self.layout.comma:
            if any("." in line for line in text):
                return None
            text = [line.replace(",", ".") for line in text]
        try:
            values = np.loadtxt(text, delimiter=mark, usecols=list(columns), ndmin=2, comments=None)
        except (ValueError, IndexError):
            return None
        if len(values) != len(text) or (mark is None and any(len(line.split()) != cells for line in text)):
            return None
        return Rows(values, self._numbers_of_lines)

    def _one_by_one(self, columns: Sequence[int]) -> Rows:
        layout, wrong = self.layout, list[WrongCell]()
        values = np.full((len(self.lines), len(columns)), np.nan)
        count = len(layout.names)
        for row, cells in enumerate(self._cells):
            extra = [cell for cell in cells[count:] if cell]
            if len(cells) < count or extra:
                wrong.append(WrongCell(row, "", f"expected {count} cells as in the line of names, got {len(cells)}"))
                continue
            for k, column in enumerate(columns):
                value = _number(cells[column], layout.comma)
                if value is not None:
                    values[row, k] = value
                elif not _is_empty(cells[column]):
                    wrong.append(WrongCell(row, layout.names[column], _misread(cells[column])))
        return Rows(values, self._numbers_of_lines, tuple(islice(wrong, MOST_WRONG)))


def _misread(cell: str) -> str:
    if _WITH_THOUSANDS.fullmatch(cell):
        return f"'{cell}' has a separator of thousands or another decimal mark; write numbers without it"
    return f"expected a number, got '{cell}'"
