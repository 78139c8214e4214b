"""Tables as text, with separated columns in the dialect of whatever program wrote them.

Encoding, separator, decimal mark, comments, the line of names and the line of units are found in the text:

* bytes: UTF-8 and UTF-16, with and without a byte order mark; another one is read as Windows-1252;
* comments: lines from `#`, `%` or `//` on, and lines before the names; names may be in the last comment (`# t,a,b`);
* separator: tab, `;`, `|`, `,` or white space, by which names and rows have equally many cells; `sep=;` names it;
* decimal comma, where more cells have it than a decimal point;
* units: in brackets behind the names (`t [ms]`, `elbow (deg)`), or in a line of their own below them;
* `name:number` in all cells, as serial plotters take it; a cell in quotes may go on in the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, SourceLocation
from cosim.core.tables.cells import is_empty, misread, number, split, unit_in
from cosim.core.tables.dialect import SAMPLE, Dialect, Lines, dialect_of, is_blank, is_comment
from cosim.core.tables.table import MOST_WRONG, FileTable, TableRows, WrongCell, name_and_unit

LONGEST_CELL = 4  # lines
LONGEST_LINE = 1 << 18  # characters
MOST_COLUMNS = 20_000
NO_TEXT = "is no table: its bytes are neither text nor Parquet, MATLAB, NumPy or MCAP, which are read; export it as CSV"
NAMES_AGAIN = "the line of names is there again, as where two tables are joined; cut the file there"
MOST_CONTROL = 0.02  # of the first bytes: text has hardly any
_CONTROL = bytes({*range(1, 32)} - {*b"\t\n\v\f\r\x1a\x1b"}) + b"\x7f"
_LABELLED = re.compile(r"([^\s,;:]+):[ \t]*([^\s,;:]+)(?:[\s,;]+|$)")
_MARKS = ((b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xef\xbb\xbf", "utf-8-sig"),
          (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))  # fmt: skip


def read_text(path: Path, data: bytes) -> FileTable:
    """Raises InputError for what is no text, has no names or no rows."""
    text = decoded(data, SourceLocation(str(path)))
    filled = ((n, line) for n, line in _lines(text, path) if not is_blank(line))
    head = list(islice(filled, SAMPLE))
    if not head:
        raise InputError("the file is empty; write a line of names, and a row of numbers below", str(path))
    if _LABELLED.match(head[0][1]):
        lines = _without_labels([*head, *filled])
        dialect = dialect_of(lines, str(path))
    else:
        dialect = dialect_of(head, str(path))  # what is no table is refused before all its lines are looked at
        lines = [*head, *filled]
    if len(dialect.names) > MOST_COLUMNS:
        what = f"has {len(dialect.names):,} columns, a table has at most {MOST_COLUMNS:,}; write a row in each line"
        raise InputError(what, SourceLocation(str(path), dialect.header))
    body = _Body(dialect, [(n, line) for n, line in lines if n >= dialect.first and not is_comment(line)])
    units = {**_units_below(dialect), **dict(_units_behind(dialect.names))}
    return FileTable(path, dialect.names, body.rows, units, body.strings, header=dialect.header)


def decoded(data: bytes, place: SourceLocation) -> str:
    """The text of a file. Raises InputError for one that is no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _as(data, encoding, place)
    head = data[:4096]
    even, odd = (head[k::2].count(0) for k in range(2))
    if max(even, odd) > 0.4 * len(head) / 2:  # UTF-16 of Latin letters has a zero in every other byte
        if min(even, odd) > 0.1 * max(even, odd):
            raise InputError(NO_TEXT, place)
        return _as(data, "utf-16-le" if odd > even else "utf-16-be", place)
    if len(head) - len(head.translate(None, _CONTROL)) > MOST_CONTROL * len(head):
        raise InputError(NO_TEXT, place)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        what = "the text has bytes of zero from here on, as a file whose writing was cut off; take them out"
        raise InputError(what, SourceLocation(place.file, line, place.key))
    return text


def _as(data: bytes, encoding: str, place: SourceLocation) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise InputError(NO_TEXT, place) from None


def _lines(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of lines. One that ends within quotes goes on in the next ones, if they end in these. Raises
    InputError for a line that is too long."""
    texts = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if (longest := max(map(len, texts))) > LONGEST_LINE:
        line = next(n for n, each in enumerate(texts, 1) if len(each) == longest)
        what = f"the line has {longest:,} characters, one of a table at most {LONGEST_LINE:,}"
        raise InputError(f"{what}; write a row in each line", SourceLocation(str(path), line))
    if '"' not in text:
        yield from enumerate(texts, 1)
        return
    k = 0
    while k < len(texts):
        end = next((n for n in range(k + 1, k + 1 + LONGEST_CELL) if _ends_quotes(texts[k:n])), k + 1)
        yield k + 1, " ".join(texts[k:end])
        k = end


def _ends_quotes(texts: Sequence[str]) -> bool:
    return sum(text.count('"') for text in texts) % 2 == 0


def _without_labels(lines: Lines) -> Lines:
    """Lines of `name:number` as a line of names and rows; other lines as they are."""
    found = [_LABELLED.findall(line) if _LABELLED.match(line) else [] for _, line in lines]
    names = [name for name, _ in found[0]]
    if not names or any([name for name, _ in row] != names for row in found):
        return lines
    if any(_LABELLED.sub("", line).strip() for _, line in lines):
        return lines
    rows = [(n, "\t".join(cell for _, cell in row)) for (n, _), row in zip(lines, found, strict=True)]
    return [(0, "\t".join(names)), *rows]


def _units_below(dialect: Dialect) -> dict[str, str]:
    return {name: unit for name, cell in zip(dialect.names, dialect.units, strict=False) if (unit := unit_in(cell))}


def _units_behind(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        _, unit = name_and_unit(name)
        if unit is not None:
            yield name, unit


@dataclass(frozen=True)
class _Body:
    """The lines of the rows."""

    dialect: Dialect
    lines: Lines

    def rows(self, columns: Sequence[int]) -> TableRows:
        fast = self._at_once(columns)
        return self._one_by_one(columns) if fast is None else fast

    def strings(self, column: int) -> list[str]:
        return [row[column] if column < len(row) else "" for row in self._cells]

    @cached_property
    def _cells(self) -> list[list[str]]:
        return [split(line, self.dialect.separator) for _, line in self.lines]

    @property
    def _numbers_of_lines(self) -> np.ndarray:
        return np.array([n for n, _ in self.lines], dtype=np.int64)

    def _at_once(self, columns: Sequence[int]) -> TableRows | None:
        """None for rows that are not all alike."""
        mark = self.dialect.separator
        text = [line for _, line in self.lines]
        cells = len(self.dialect.names)
        if any('"' in line or "_" in line for line in text):
            return None
        if mark is not None and any(line.count(mark) != cells - 1 for line in text):
            return None
        if self.dialect.comma:
            if any("." in line for line in text):
                return None
            text = [line.replace(",", ".") for line in text]
        try:
            values = np.loadtxt(text, delimiter=mark, usecols=list(columns), ndmin=2, comments=None)
        except (ValueError, IndexError):
            return None
        if len(values) != len(text) or (mark is None and any(len(line.split()) != cells for line in text)):
            return None
        return TableRows(values, self._numbers_of_lines)

    def _one_by_one(self, columns: Sequence[int]) -> TableRows:
        dialect, wrong = self.dialect, list[WrongCell]()
        values = np.full((len(self.lines), len(columns)), np.nan)
        count = len(dialect.names)
        for row, cells in enumerate(self._cells):
            if tuple(cells[:count]) == dialect.names:
                wrong.append(WrongCell(row, "", NAMES_AGAIN))
                continue
            extra = [cell for cell in cells[count:] if cell]
            if len(cells) < count or extra:
                wrong.append(WrongCell(row, "", f"expected {count} cells as in the line of names, got {len(cells)}"))
                continue
            for k, column in enumerate(columns):
                value = number(cells[column], dialect.comma)
                if value is not None:
                    values[row, k] = value
                elif not is_empty(cells[column]):
                    wrong.append(WrongCell(row, dialect.names[column], misread(cells[column], dialect.comma)))
        return TableRows(values, self._numbers_of_lines, tuple(islice(wrong, MOST_WRONG)))
