"""In which dialect a table is written: separator, decimal mark, the line of names and of units, the first row.

Each separator is tried. The rows are as long as most lines at the end are; the first one is where the columns
are numbers that are numbers later, and names are in the line above it that has words alone. Lines between both, of
units or of dashes, are no names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cosim.core.errors import InputError, SourceLocation
from cosim.core.tables.cells import decimal_comma, is_empty, number, split, unit_in

SEPARATORS: tuple[str | None, ...] = ("\t", ";", "|", ",", None)  # None: white space
COMMENTS = ("#", "%", "//")
MISFIT = 0.6  # how well rows fit that have another number of cells than the names; without names they fit less
FEW_ROWS = 4  # at the end, where a table is short: lines before its names would count otherwise
SAMPLE = 200  # lines in which the dialect is found
_DECLARED = re.compile(r'"?sep=(.)"?[,;\s]*', re.IGNORECASE)
_RULE = re.compile(r":?-{2,}:?")
_REMARKS = ("unit:", "type:", "interp:", "blockpath:", "portindex:")  # below names of Simulink

Lines = Sequence[tuple[int, str]]  # (number, text)
_Cells = list[tuple[int, list[str]]]  # (number of the line, its cells)


class Dialect(NamedTuple):
    """fit: fraction of the lines that have as many cells; names: of the columns; units: their line, or empty; header,
    first: lines of the names and of the first row."""

    fit: float
    separator: str | None
    comma: bool
    names: tuple[str, ...]
    units: tuple[str, ...]
    header: int | None
    first: int


def is_comment(line: str) -> bool:
    return line.lstrip().startswith(COMMENTS)


def is_blank(line: str) -> bool:
    """Whether it has no cell with anything in it, as empty rows of a sheet."""
    return not line.strip(' \t;,|"')


def dialect_of(lines: Lines, file: str) -> Dialect:
    """Raises InputError for lines without rows or columns."""
    declared, sample = SEPARATORS, list(lines[:SAMPLE])
    if match := _DECLARED.fullmatch(sample[0][1].strip("\ufeff")):
        declared, sample = (match[1],), sample[1:]
    plain = [(n, line) for n, line in sample if not is_comment(line)]
    if not plain:
        raise InputError("has comments alone; write a line of names, and rows of numbers below", file)
    found = [dialect for mark in declared if (dialect := _separated(mark, plain, sample)) is not None]
    if not found:
        place = SourceLocation(file, plain[0][0])
        what = "there are no rows of numbers, separated like a line of names by tabs, semicolons, commas or spaces"
        raise InputError(f"{what}; write as many numbers in each row as names", place)
    return max(found, key=lambda dialect: dialect.fit)


def _separated(mark: str | None, plain: Lines, sample: Lines) -> Dialect | None:
    """The dialect with this separator; None where it does not separate."""
    cells = [(n, split(line, mark)) for n, line in plain]
    later = cells[-min(len(cells) - len(cells) // 2, max(FEW_ROWS, len(cells) // 4)) :]
    count = Counter(len(row) for _, row in later).most_common(1)[0][0]
    comma = decimal_comma((row for _, row in later), mark)
    rows = [(n, row) for n, row in cells if len(row) == count]
    numeric = _numeric_columns([row for _, row in later if len(row) == count], comma)
    first = next((n for n, row in rows if numeric and _fits(row, numeric, comma)), None)
    if first is None:
        return None
    above = [(n, row) for n, row in cells if n < first]
    fitting = _fitting(above, rows, count, first)
    # a row with a cell that is no number is a row: names are where no number is
    wordy = [(n, row) for n, row in fitting if not any(number(row[k], comma) is not None for k in numeric)]
    names = _names_above([row for row in fitting if not wordy or row[0] <= wordy[-1][0]], sample, mark, count, first)
    if names is None and above and len(above[-1][1]) > 1:  # rows have more or fewer cells than there are names
        if names := _beside_row_names(above[-1], plain, count, first):
            return Dialect(1.0, mark, comma, *names, first)
        return Dialect(MISFIT, mark, comma, _clean(above[-1][1]), (), above[-1][0], first)
    if count < 2 and (names is None or mark is not None):
        return None
    if wordy:
        first = next(n for n, _ in cells if n > wordy[-1][0])
    body = [row for n, row in cells if n >= first]
    fit = sum(len(row) == count for row in body) / len(body)
    if names is None:
        return Dialect(0.5 * fit, mark, comma, tuple(f"#{k + 1}" for k in range(count)), (), None, first)
    return Dialect(fit, mark, comma, *names, first)


def _numeric_columns(rows: Sequence[Sequence[str]], comma: bool) -> list[int]:
    """Those that are numbers in most rows."""
    columns = range(len(rows[0]))
    return [k for k in columns if 2 * sum(number(row[k], comma) is not None for row in rows) > len(rows)]


def _fits(row: Sequence[str], numeric: Sequence[int], comma: bool) -> bool:
    """Whether it is a row of numbers, some of which may be missing."""
    values = [number(row[k], comma) for k in numeric]
    missing = [is_empty(row[k]) for k, value in zip(numeric, values, strict=True) if value is None]
    return all(missing) and len(missing) < len(values)


def _fitting(above: _Cells, rows: _Cells, count: int, first: int) -> _Cells:
    """The lines above the first row with as many cells; a separator may end each row, or the names."""
    if not any(row[-1] for n, row in rows if n >= first):
        above = [(n, [*row, ""] if len(row) == count - 1 else row) for n, row in above]
    return [(n, row) for n, row in above if len(row) == count]


def _names_above(
    above: _Cells, sample: Lines, mark: str | None, count: int, first: int
) -> tuple[tuple[str, ...], tuple[str, ...], int] | None:
    """(names, units, line of the names) above the first row, or in the last comment above it."""
    units: tuple[str, ...] = ()
    while len(above) > 1 and _is_remark(above[-1][1]):
        if any(unit_in(cell) is not None for cell in above[-1][1]):
            units = tuple(above[-1][1])
        above = above[:-1]
    if above:
        return _clean(above[-1][1]), units, above[-1][0]
    for n, line in reversed([(n, line) for n, line in sample if n < first and is_comment(line)]):
        row = split(line.lstrip().lstrip("#%/").strip(), mark)
        if len(row) == count:
            return _clean(row), (), n
    return None


def _is_remark(row: Sequence[str]) -> bool:
    """Whether a line below the names is of units, dashes or the like."""
    filled = [cell for cell in row if cell]
    return bool(filled) and all(
        unit_in(cell) is not None or _RULE.fullmatch(cell) or cell.lower().startswith(_REMARKS) for cell in filled
    )


def _beside_row_names(
    header: tuple[int, list[str]], plain: Lines, count: int, first: int
) -> tuple[tuple[str, ...], tuple[str, ...], int] | None:
    """(names, units, line) of a table whose rows begin with their names in quotes, which have none (R)."""
    line, names = header
    quoted = all(text.lstrip().startswith('"') for n, text in plain if n >= first)
    return (_clean(["", *names]), (), line) if quoted and len(names) == count - 1 else None


def _clean(row: Iterable[str]) -> tuple[str, ...]:
    return tuple(cell.lstrip("\ufeff#%").strip() if k == 0 else cell for k, cell in enumerate(row))
