"""Lines of text in a stream of bytes, and the checksum that they may end with.

The checksum follows NMEA 0183: an asterisk and the exclusive or of all bytes before it, two hexadecimal digits.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import xor


class LineSplitter:
    """Splits received chunks into lines; a line of `limit` bytes or more is dropped whole, and counted."""

    def __init__(self, limit: int, ends: bytes = b"\r\n") -> None:
        """ends: the bytes that end a line."""
        self.dropped = 0
        self._limit, self._ends = limit, re.compile(b"[" + re.escape(ends) + b"]")
        self._rest, self._dropping = b"", False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that the chunk completes, without their ends and without empty ones."""
        *lines, self._rest = self._ends.split(self._rest + chunk)
        if lines and self._dropping:  # the end of a line whose beginning was dropped
            del lines[0]
            self._dropping = False
        self.dropped += sum(len(line) >= self._limit for line in lines)
        if len(self._rest) >= self._limit:
            self.dropped += not self._dropping
            self._rest, self._dropping = b"", True
        return [line for line in lines if 0 < len(line) < self._limit]


def encode_line(text: str, checked: bool) -> bytes:
    """The bytes of a line; checked: with a checksum."""
    raw = text.encode("ascii", "replace")
    return raw + (b"*%02X\n" % reduce(xor, raw, 0) if checked else b"\n")


def decode_line(raw: bytes, checked: bool = True) -> str | None:
    """The text of a line; None for a wrong or missing checksum, or bytes that are no text."""
    if checked:
        raw, _, given = raw.strip().rpartition(b"*")
        if given.upper() != b"%02X" % reduce(xor, raw, 0):
            return None
    text = raw.decode("latin-1").strip()
    return text if text.isascii() and text.isprintable() else None


def with_valid_checksum(data: bytes) -> bytes:
    """Lines with valid checksums, whatever their text is."""
    lines = [each.partition(b"*")[0].decode("latin-1") for each in data.removesuffix(b"\n").split(b"\n")]
    return b"".join(encode_line(text, bool(text)) for text in lines)
