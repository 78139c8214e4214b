"""What a data sheet of a drive states: EDS, DCF, XDD, XDC and ESI, in one form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cosim.core.errors import InputError, SourceLocation, shortened
from cosim.core.paths import open_file

MOST_BYTES = 16_000_000  # of a file
LONGEST_TEXT = 400  # characters of a value that is no number


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
    unread: str = ""  # what stands in the place of the value, and is no number


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

    def unread(self) -> Iterator[tuple[int, str]]:
        """The objects whose value is no number, and what it is."""
        for key, entry in self.entries.items():
            if entry.unread:
                yield key, f"{object_name(key)}: '{entry.unread}' (line {entry.line})"


def object_name(key: int) -> str:
    """An object as CiA 301 writes it: 6502h, 608Fh.1"""
    return f"{key >> 8:X}h" + (f".{key & 0xFF}" if key & 0xFF else "")


# data types of CiA 301: number -> bits
TYPE_BITS = {
    **{0x01: 1, 0x02: 8, 0x03: 16, 0x04: 32, 0x05: 8, 0x06: 16, 0x07: 32, 0x08: 32, 0x11: 64, 0x15: 64, 0x1B: 64},
    **{0x10: 24, 0x16: 24},
}
_REALS = (0x08, 0x11)
_NUMBER = re.compile(r"[+-]?(?:0X[0-9A-F]+|0[0-7]*|[1-9][0-9]*)")


def identity_of(vendor: int | None, product: int | None, entries: dict[int, Entry]) -> tuple[int | None, int | None]:
    """(vendor, product): as stated, or of the identity object (1018h) where that is missing or 0."""
    own = (entries.get(0x101801), entries.get(0x101802))
    first, second = (None if entry is None else entry.value for entry in own)
    return (vendor or first or vendor, product or second or product)


def unread(text: str, value: int | None, kind: int | None) -> str:
    """The text of an integer object that is no integer; "" for others. kind: data type of CiA 301."""
    whole = kind in TYPE_BITS and kind not in _REALS
    return shortened(text.strip()) if whole and value is None else ""


def fail(path: Path, line: int | None, key: str, what: str) -> InputError:
    return InputError(what, SourceLocation(str(path), line, key))


def read_text(path: Path) -> bytes:
    """The bytes of a data sheet. Raises InputError: none, or too large."""
    try:
        with open_file(path) as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        what = "no such file; give the data sheet of a drive: EDS, DCF, XDD, XDC or ESI"
        raise fail(path, None, "", what) from None
    except OSError as error:
        raise fail(path, None, "", f"cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise fail(path, None, "", f"has more than {MOST_BYTES // 1_000_000} MB, which no data sheet of a drive needs")
    return data


def utf_16(data: bytes) -> str:
    """The code of a text in UTF-16, by its mark or by the zeros of its first characters; "" for others."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return {b"\0": "utf-16-be"}.get(data[:1], "utf-16-le" if data[1:2] == b"\0" else "")


def number(text: str | None, node: int = 0) -> int | None:
    """A number of an EDS: decimal, 0x…, octal with a leading 0, also `$NODEID+…`; None for others and above 64 bits."""
    words = (text or "").replace(" ", "").upper().split("+")
    total = 0
    for word in words:
        if word == "$NODEID":
            total += node
        elif len(word) > LONGEST_TEXT or not _NUMBER.fullmatch(word):
            return None
        else:
            sign, digits = (-1, word[1:]) if word[0] == "-" else (1, word.removeprefix("+"))
            base = 16 if digits.startswith("0X") else 8 if digits.startswith("0") else 10
            total += sign * int(digits, base)
    return total if abs(total) < 1 << 64 else None
