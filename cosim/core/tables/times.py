"""The column of times of a table, in seconds: its name, its unit, and its zero.

The unit is the one that the caller gives, else the one behind the name, else the one that the numbers show:

* since 1970: s, ms, µs or ns, whose numbers are 1e9, 1e12, 1e15 and 1e18; their zero is then the first row;
* whole numbers more than 1 apart, of a log with `rate` (10 Hz to 10 kHz): ms, µs or ns, of which one fits;
* else s. What is guessed is said, with the key that makes it certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError, InputErrors, listed, plural
from cosim.core.tables.row_ranges import row_ranges
from cosim.core.tables.table import FEW_ALIKE, FileTable, name_and_unit
from cosim.core.types import Array
from cosim.core.units import UNITS, given_unit, parse_quantity

NAMES = (
    *(
        "t",
        "time",
        "timestamp",
        "stamp",
        "times",
        "elapsed",
        "elapsed_time",
        "time_from_start",
        "seconds",
        "sec",
        "secs",
    ),
    *("header.stamp", "header/stamp", "__time", "log_time", "zeit"),
)
# names whose unit everybody knows who writes them
IN_UNIT = {
    **{f"{name}_{unit}": unit for name in ("t", "time", "timestamp") for unit in ("s", "ms", "us", "ns")},
    **dict.fromkeys(("milliseconds", "millis"), "ms"),
    **dict.fromkeys(("microseconds", "micros"), "us"),
    **dict.fromkeys(("nanoseconds", "rosbagtimestamp"), "ns"),
}
AT_ZERO = "the first row is taken as t = 0"
_PLAIN = re.compile(r"[^:\sA-Za-z]*([eEdD][+-]?\d+)?\s*$|.*nan", re.IGNORECASE)  # a number, or nothing
_FRACTION = re.compile(r"(?<=:\d\d)[.,](\d+)")
_DECIMAL = re.compile(r"([0-9]{1,25})(?:[.,]([0-9]{0,25}))?")
_CLOCK = re.compile(r"(?:(-?\d+) days?,? ?)?(\d+):(\d\d)(?::(\d\d(?:[.,]\d+)?))?")
MOST_LATE = 3  # rows that are named
OTHER_RATE = 0.1  # of the length of a table: another column of times with another one is said
CLOSEST = 1e-6  # s between rows: closer ones are one row with two numbers
PAIRS = (("secs", "nsecs"), ("sec", "nanosec"), ("sec", "nsec"), ("seconds", "nanoseconds"))
SINCE_1970 = {"s": (5e8, 5e9), "ms": (5e11, 5e12), "us": (5e14, 5e15), "ns": (5e17, 5e18)}
RATES = (10.0, 10e3)  # Hz, of logs; a factor of 1000, so that one unit fits


class Times(NamedTuple):
    """seconds (k,); columns: those that have them; factor: seconds per number of the first; notes: what was guessed."""

    seconds: Array
    columns: tuple[int, ...]
    notes: tuple[str, ...]


def times_of(
    table: FileTable,
    unit: str | None = None,
    name: str | None = None,
    log: bool = False,
    keys: Sequence[str] = ("units.", "columns."),
) -> Times:
    """name: of the column, unit: of its numbers, both found where None; log: rows are samples of a machine; keys: how
    both are given, for messages.

    Raises InputError for a table without such a column, or with several.
    """
    found = _times_of(table, unit, name, log, keys)
    return found if name is not None else found._replace(notes=(*found.notes, *_beside(table, found, log, keys[1])))


def _beside(table: FileTable, taken: Times, log: bool, key: str) -> Iterator[str]:
    """That another column of times runs at another rate. key: how the right one is named."""
    if len(taken.columns) != 1 or len(taken.seconds) < 2:
        return
    length = float(np.ptp(taken.seconds))
    for k, column in enumerate(table.names):
        if k in taken.columns or _word(column) not in (*IN_UNIT, *NAMES):
            continue
        raw, texts = table.read([k]).values[:, 0], table.strings(k)
        if (texts and not _PLAIN.match(texts[0])) or not np.isfinite(raw).all() or not (np.diff(raw) > 0.0).all():
            continue
        known = table.units.get(column) or IN_UNIT.get(_word(column))
        unit = known or _unit_since_1970(raw, known) or (_unit_of_a_log(raw) if log else None) or "s"
        other = float(np.ptp(raw)) * UNITS[unit][1]
        if UNITS[unit][0] == "s" and abs(other - length) > OTHER_RATE * length:
            name = table.names[taken.columns[0]]
            what = f"columns '{name}' and '{column}' are both times, over {length:.4g} and {other:.4g} s"
            yield f"{what}; '{name}' is taken, or name the right one by {key}t"


def _times_of(table: FileTable, unit: str | None, name: str | None, log: bool, keys: Sequence[str]) -> Times:
    columns = columns_of_times(table, name, keys[1])
    if len(columns) == 2:
        whole, fraction = table.numbers(columns).values.T
        return _since(whole[0], whole - whole[0] + 1e-9 * (fraction - fraction[0]), columns, "s")
    (column,), texts = columns, table.strings(columns[0])
    if texts and not _PLAIN.match(texts[0]):
        return _written_out(table, texts, column)
    raw = table.numbers([column]).values[:, 0]
    known = unit or table.units.get(table.names[column]) or IN_UNIT.get(_word(table.names[column]))
    if known is not None and UNITS[known][0] != "s":
        units = listed([u for u, (dimension, _) in UNITS.items() if dimension == "s"])
        raise InputError(f"a time in {known}; use {units}", table.place(table.header, table.names[column]))
    if (since := _unit_since_1970(raw, known)) is not None:
        after = _since_first(texts, raw)
        return _since(raw[0] * UNITS[since][1], after * UNITS[since][1], columns, since)
    made = (table.clock,) if table.clock and table.names[column] == "t" else ()
    if known is None and log and (found := _unit_of_a_log(raw)) is not None:
        what = f"the times, {np.median(np.diff(raw)):g} apart, are taken as {found}"
        return Times(raw * UNITS[found][1], columns, (*made, f"{what}; to be certain, give {keys[0]}t"))
    return Times(raw * UNITS[known or "s"][1], columns, made)


def numeric_times(table: FileTable, name: str | None = None, key: str = "columns.") -> tuple[int, ...]:
    """The columns of times that are numbers. Raises InputError as `times_of`."""
    columns = columns_of_times(table, name, key)
    texts = table.strings(columns[0]) if len(columns) == 1 else None
    return () if texts and not _PLAIN.match(texts[0]) else columns


def has_times(names: Iterable[str]) -> bool:
    """Whether one of these columns has a name of times."""
    words = [_word(name) for name in names]
    ends = [re.split(r"[./]", word)[-1] for word in words]
    return any(word in (*IN_UNIT, *NAMES) for word in (*words, *ends)) or any(set(pair) <= set(ends) for pair in PAIRS)


def columns_of_times(table: FileTable, name: str | None, key: str) -> tuple[int, ...]:
    """The column of times, or both of seconds and nanoseconds."""
    if name is not None:
        return (table.index(name),)
    if "t" in table.names:
        return (table.index("t"),)
    words = [_word(column) for column in table.names]
    ends = [re.split(r"[./]", word)[-1] for word in words]
    for pair in PAIRS:
        if all(ends.count(part) == 1 for part in pair):
            return ends.index(pair[0]), ends.index(pair[1])
    wanted = (*IN_UNIT, *NAMES)
    found = [k for name in wanted for k, word in enumerate(words) if word == name]
    found = found or [k for k, end in enumerate(ends) if end in wanted]
    if not found:
        shown = ", ".join(table.names[:20]) + (" …" if len(table.names) > 20 else "")
        what = f"no column of times such as 't' or 'time'; its columns are {shown}; name the right one by {key}t"
        raise InputError(what, table.place(table.header))
    return (table.index(table.names[found[0]]),)


def _word(column: str) -> str:
    """A name without its unit and its marks, in small letters."""
    return name_and_unit(column)[0].strip("%#/ ").lower().replace(" ", "_").removeprefix("field.")


def _written_out(table: FileTable, texts: Sequence[str], column: int) -> Times:
    """Of dates, times of the day, or times with a unit in each cell. Raises InputErrors for other texts."""
    if (dates := _dates(texts)) is not None:
        return _since(dates[0], dates[1], (column,), "")
    if (days := _durations(texts)) is not None and "day" not in texts[0]:
        return Times(days - days[0], (column,), (f"times of the day, from {texts[0]}; {AT_ZERO}",))
    seconds = days if days is not None else _with_units(texts)
    if seconds is not None:
        return Times(seconds, (column,), ())
    lines = table.read([column]).lines
    wrong = [k for k, text in enumerate(texts) if not _PLAIN.match(text)]
    what = "expected a time in s, or a date such as 2024-03-05 10:11:12.5, got"
    name = table.names[column]
    if len(wrong) > FEW_ALIKE:
        first, where = wrong[0], row_ranges(lines[wrong].tolist())
        many = f"{what} '{texts[first]}'; so it is in {len(wrong)} rows, lines {where}"
        raise InputError(many, table.place(int(lines[first]), name))
    raise InputErrors(InputError(f"{what} '{texts[k]}'", table.place(int(lines[k]), name)) for k in wrong)


def _dates(texts: Sequence[str]) -> tuple[float, Array] | None:
    """(seconds since 1970 of the first one, seconds after it) of ISO 8601; None for other texts."""
    found = list[tuple[datetime, float]]()
    for text in texts:
        digits = _FRACTION.search(text)
        fraction = float(f"0.{digits[1]}") if digits else 0.0  # a datetime has no ns
        try:
            date = datetime.fromisoformat(_FRACTION.sub("", text, count=1))
        except ValueError:
            return None
        found.append((date if date.tzinfo is not None else date.replace(tzinfo=UTC), fraction))
    first, begin = found[0]
    after = np.array([(date - first).total_seconds() + (fraction - begin) for date, fraction in found])
    return (first - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() + begin, after


def _durations(texts: Sequence[str]) -> Array | None:
    """Seconds of `10:11:12.5` and `0 days 00:00:00.5`; None for other texts."""
    found = [_CLOCK.fullmatch(text) for text in texts]
    if not all(found):
        return None
    parts = [[float((part or "0").replace(",", ".")) for part in match.groups()] for match in found if match]
    return np.array(parts) @ [86400.0, 3600.0, 60.0, 1.0]


def _with_units(texts: Sequence[str]) -> Array | None:
    """Seconds of `0.5 sec`; None for other texts."""
    try:
        return np.array([parse_quantity(text, "s") for text in texts]) if all(map(given_unit, texts)) else None
    except ValueError:
        return None


def _unit_since_1970(raw: Array, known: str | None) -> str | None:
    """None for other times."""
    for unit, (least, most) in SINCE_1970.items():
        if len(raw) and least <= raw.min() and raw.max() <= most and known in (None, unit):
            return unit
    return None


def _since_first(texts: Sequence[str] | None, raw: Array) -> Array:
    """The differences to the first one, exact: a float has no ns of a time since 1970."""
    found = [_DECIMAL.fullmatch(text) for text in texts or ()]
    if not found or not all(found):
        return raw - raw[0]
    parts = [(match[1], match[2] or "") for match in found if match]
    digits = max(len(fraction) for _, fraction in parts)
    whole = [int(number + fraction.ljust(digits, "0")) for number, fraction in parts]
    return np.array([float(number - whole[0]) for number in whole]) / 10.0**digits


def _unit_of_a_log(raw: Array) -> str | None:
    """The unit in which whole numbers have a rate of a log; None for others."""
    if len(raw) < 3 or (raw != np.round(raw)).any() or (step := float(np.median(np.diff(np.sort(raw))))) < 1.0:
        return None
    return next((unit for unit in ("ms", "us", "ns") if RATES[0] < 1.0 / (UNITS[unit][1] * step) <= RATES[1]), None)


def _since(first: float, seconds: Array, columns: tuple[int, ...], unit: str) -> Times:
    """Of times since 1970, the first of which [s] is t = 0."""
    date = datetime.fromtimestamp(first, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
    said = f"times since 1970 in {unit}, from {date} UTC" if unit else f"dates, from {date}"
    return Times(seconds, columns, (f"{said}; {AT_ZERO}",))


def misplaced(t: Array, row: int) -> int | None:
    """Which row is wrong where the time of a row is not after the one before: the only one of both without which times
    increase there. None where it may be either, or neither."""
    without_before = row < 2 or t[row] > t[row - 2]
    without = row + 1 >= len(t) or t[row + 1] > t[row - 1]
    return None if without == without_before else row - 1 if without_before else row


def _between(t: Array, row: int) -> str:
    """Where a time is, in words."""
    if row == 0:
        return f"before {t[1]:.12g} s"
    if row == len(t) - 1:
        return f"behind {t[row - 1]:.12g} s"
    return f"between {t[row - 1]:.12g} and {t[row + 1]:.12g} s"


def check_increasing(table: FileTable, t: Array, lines: np.ndarray) -> None:
    """Raises InputErrors for times that do not increase, or hardly."""
    late = np.flatnonzero(np.diff(t) < CLOSEST) + 1
    errors = list[InputError]()
    for row in late[:MOST_LATE].tolist():
        step, odd = t[row] - t[row - 1], misplaced(t, row) if t[row] < t[row - 1] else None
        at = row if odd is None else odd
        place = table.place(int(lines[at]) if len(lines) else None, "t")
        at_row = "" if len(lines) else f"row {at + 1}: "
        if odd is not None:
            what = f"time must increase, but {t[odd]:.12g} s is {_between(t, odd)}"
            what += "; correct it, take it out, or sort the rows"
        elif step <= 0.0:
            what = f"time must increase, but {t[row]:.12g} s follows {t[row - 1]:.12g} s"
            what += "; sort the rows, or take one out"
        else:
            what = f"follows the row above after {step:.3g} s, too close for a motion; take one of both out"
        errors.append(InputError(at_row + what, place))
    if (more := len(late) - MOST_LATE) > 0:
        errors.append(InputError(f"so it is in {more:,} more {plural(more, 'row')}", table.place()))
    if errors:
        raise InputErrors(errors)
