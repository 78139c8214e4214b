"""What a data sheet of a drive states: EDS, DCF, XDD, XDC and ESI, in one form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from cosim.errors import InputError, SourceLocation

MOST_BYTES = 16_000_000  # of a file
LONGEST = 400  # characters of a value that is no number


class Entry(NamedTuple):
    """An object, or one of its sub-indices. mapping: r into receive PDOs, t into transmit PDOs."""

    name: str
    bits: int | None
    access: str  # ro, rw, wo, const, "" where it is not said
    value: int | None  # as configured, else the default; None: none, or no number
    mapping: str
    low: int | None
    high: int | None
    line: int


class Sheet(NamedTuple):
    """One drive of a data sheet. entries: index · 256 + sub-index -> its entry; maps: index of a mapping object -> what
    is mapped (index · 65536 + sub-index · 256 + bits), and whether that is fixed."""

    path: Path
    kind: str  # EDS, DCF, XDD, XDC, ESI
    name: str
    vendor: int | None
    product: int | None
    entries: dict[int, Entry]
    maps: dict[int, tuple[tuple[int, ...], bool]]
    ethercat: bool

    def value(self, key: int) -> int | None:
        entry = self.entries.get(key)
        return None if entry is None else entry.value


# data types of CiA 301: number -> bits
TYPE_BITS = {
    **{0x01: 1, 0x02: 8, 0x03: 16, 0x04: 32, 0x05: 8, 0x06: 16, 0x07: 32, 0x08: 32, 0x11: 64, 0x15: 64, 0x1B: 64},
    **{0x10: 24, 0x16: 24},
}
_NUMBER = re.compile(r"[+-]?(?:0X[0-9A-F]+|0[0-7]*|[1-9][0-9]*)")


def identity_of(vendor: int | None, product: int | None, entries: dict[int, Entry]) -> tuple[int | None, int | None]:
    """(vendor, product): as stated, or of the identity object (1018h) where that is missing or 0."""
    own = (entries.get(0x101801), entries.get(0x101802))
    first, second = (None if entry is None else entry.value for entry in own)
    return (vendor or first or vendor, product or second or product)


def fail(path: Path, line: int | None, key: str, what: str) -> InputError:
    return InputError(what, SourceLocation(str(path), line, key))


def read_text(path: Path) -> bytes:
    """The bytes of a data sheet. Raises InputError: none, or too large."""
    try:
        if not path.is_file():
            raise fail(path, None, "", "no such file; give the data sheet of a drive: EDS, DCF, XDD, XDC or ESI")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise fail(path, None, "", f"cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise fail(path, None, "", f"has more than {MOST_BYTES // 1_000_000} MB, which no data sheet of a drive needs")
    return data


def number(text: str | None, node: int = 0) -> int | None:
    """A number of an EDS: decimal, 0x…, octal with a leading 0, also `$NODEID+…`; None for others and above 64 bits."""
    words = (text or "").replace(" ", "").upper().split("+")
    total = 0
    for word in words:
        if word == "$NODEID":
            total += node
        elif len(word) > LONGEST or not _NUMBER.fullmatch(word):
            return None
        else:
            sign, digits = (-1, word[1:]) if word[0] == "-" else (1, word.removeprefix("+"))
            base = 16 if digits.startswith("0X") else 8 if digits.startswith("0") else 10
            total += sign * int(digits, base)
    return total if abs(total) < 1 << 64 else None
