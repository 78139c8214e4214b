"""The cells of a table that is text: how a line is split into them, and which number a cell is."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence

from cosim.core.units import known_unit

EMPTY = frozenset({"", "nan", "+nan", "-nan", "na", "n/a", "n.a.", "null", "none", "-", "--", "nil", "nat"})
# errors of workbooks, and what C of Microsoft writes for NaN
EMPTY |= {
    "#n/a",
    "#div/0!",
    "#ref!",
    "#value!",
    "#num!",
    "#name?",
    "#null!",
    "1.#qnan",
    "-1.#qnan",
    "1.#ind",
    "-1.#ind",
}
# units as headers of instruments write them
_WORDS = {"volt": "V", "volts": "V", "amp": "A", "ampere": "A", "amperes": "A", "grad": "deg"}
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_WITH_THOUSANDS = re.compile(r"[+-]?\d{1,3}([.,' \u00a0\u202f]\d{3})+([.,]\d+)?")
_OF_FORTRAN = re.compile(r"([+-]?\d*\.?\d*)[dD]([+-]?\d+)")
_MINUS = "\u2212"


def split(line: str, mark: str | None) -> list[str]:
    """The cells of a line; None: separated by white space."""
    if '"' in line:
        try:
            row = next(csv.reader([line], delimiter=mark or " ", skipinitialspace=True))
        except csv.Error:  # a cell longer than a table has
            return [line]
        if row and mark is None:
            row = [cell for k, cell in enumerate(row) if cell or k < len(row) - 1]  # white space at the end
        return [cell.strip() for cell in row]
    return line.split() if mark is None else [cell.strip() for cell in line.split(mark)]


def is_empty(cell: str) -> bool:
    return cell.lower() in EMPTY


def number(cell: str, comma: bool) -> float | None:
    """None for what is no number, or has another decimal mark; NaN for an empty cell is not one either."""
    if comma:
        if "." in cell:
            return None
        cell = cell.replace(",", ".", 1)
    if "_" in cell:
        return None
    if not cell.isascii():
        cell = cell.replace(_MINUS, "-")
        if not cell.isascii():
            return None
    try:
        value = float(cell)
    except ValueError:
        found = _OF_FORTRAN.fullmatch(cell)
        return number(f"{found[1]}e{found[2]}", False) if found and found[1] else None
    return None if math.isnan(value) else value


def decimal_comma(rows: Iterable[Sequence[str]], mark: str | None) -> bool:
    """Whether numbers have a decimal comma. Among cells that commas separate it is one only if it can be no separator
    of thousands."""
    cells = [cell for row in rows for cell in row if cell]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    if mark == "," and all(_THOUSANDS.fullmatch(cell) for cell in commas):
        return False
    return len(commas) > sum(1 for cell in cells if _WITH_POINT.fullmatch(cell))


def misread(cell: str, comma: bool) -> str:
    """What is wrong with a cell that is no number."""
    if _WITH_THOUSANDS.fullmatch(cell) or (_WITH_POINT if comma else _WITH_COMMA).fullmatch(cell):
        mark = "comma" if comma else "point"
        return f"'{cell}' has a separator of thousands or no decimal {mark}, as others have; write all numbers alike"
    return f"expected a number, got '{cell}'"


def unit_in(cell: str) -> str | None:
    """The unit that a cell is, in brackets or not, or behind `Unit:`; None for others."""
    text = cell.removeprefix("Unit:").strip("[]() ")
    return None if text.isdecimal() else known_unit(_WORDS.get(text.lower(), text))
