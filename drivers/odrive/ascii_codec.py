"""The ASCII protocol: lines of text ↔ values in SI.

`command *checksum ; comment`: the checksum is the xor of all characters before the asterisk, may be left out, and is
answered with one when it is there; a line whose checksum is wrong is ignored. Angles are in turns
(docs.odriverobotics.com, ascii-protocol). Values go in and come out in rad, rad/s and N·m.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cosim.units import TURN

MAX_LINE = 256  # bytes a drive keeps of a line

_ENDS = re.compile(rb"[\r\n!]+")


class AsciiLine(NamedTuple):
    text: str
    checked: bool  # it came with a checksum


class Request(NamedTuple):
    """What a command of one letter asks: motor number and the numbers after it, in the maker's units."""

    letter: str
    axis: int
    numbers: tuple[float, ...]


class AsciiDecoder:
    """Cuts what comes over the line into lines; what is longer than a drive's buffer is dropped whole."""

    def __init__(self) -> None:
        self.rest = b""
        self.dropping = False
        self.dropped = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that have ended, without their ends; empty ones are left out."""
        *lines, self.rest = _ENDS.split(self.rest + chunk)
        if lines and self.dropping:
            del lines[0]
            self.dropping = False
        whole = [line for line in lines if 0 < len(line) < MAX_LINE]
        self.dropped += sum(len(line) >= MAX_LINE for line in lines)
        if len(self.rest) >= MAX_LINE:
            self.dropped += not self.dropping
            self.rest, self.dropping = b"", True
        return whole


def checksum(text: bytes) -> int:
    """The xor of all bytes, of which there are at most 256: halves are folded until one byte is left."""
    bits, width = int.from_bytes(text, "little"), 256 if len(text) <= 64 else 1024
    while width >= 8:
        bits ^= bits >> width
        width >>= 1
    return bits & 0xFF


def line(text: str, checked: bool, end: str = "\n") -> bytes:
    """A line as it is sent."""
    raw = text.encode("latin-1", "replace")
    return raw + (f"*{checksum(raw)}{end}" if checked else end).encode()


def unwrap(raw: bytes) -> AsciiLine | None:
    """A line without comment and checksum; None when its checksum is wrong."""
    body = raw.partition(b";")[0]
    text, star, given = body.partition(b"*")
    if not star:
        return AsciiLine(body.decode("latin-1").strip(), False)
    digits = given.strip()
    if not digits.isdigit() or len(digits) > 3 or int(digits) != checksum(text):
        return None
    return AsciiLine(text.decode("latin-1").strip(), True)


def numbers(text: str) -> tuple[float, ...]:
    """The numbers a text begins with."""
    found = []
    for token in text.split():
        try:
            found.append(float(token))
        except ValueError:
            break
        if "_" in token:  # a number for Python only
            del found[-1]
            break
    return tuple(found)


def parse(text: str) -> Request | None:
    """A command `letter motor number …`; None when it does not say which motor."""
    letter, found = text[:1], text[1:].split(maxsplit=1)
    if not found or not (found[0].isascii() and found[0].isdecimal() and len(found[0]) < 10):
        return None
    return Request(letter, int(found[0]), numbers(found[1]) if len(found) > 1 else ())


# --- what the host says -----------------------------------------------------------------------------


def position(axis: int, angle: float, velocity: float, effort: float) -> str:
    return f"p {axis} {angle / TURN:.9g} {velocity / TURN:.7g} {effort:.7g}"


def velocity(axis: int, speed: float, effort: float) -> str:
    return f"v {axis} {speed / TURN:.7g} {effort:.7g}"


def torque(axis: int, effort: float) -> str:
    return f"c {axis} {effort:.7g}"


# --- what the drive says ----------------------------------------------------------------------------


def feedback(text: str) -> tuple[float, float] | None:
    """(position, velocity) of the answer to `f`."""
    found = numbers(text)
    return (found[0] * TURN, found[1] * TURN) if len(found) == 2 and text.count(" ") == 1 else None


def number(text: str) -> float | None:
    """The answer to `r`; None when it is not one number."""
    found = numbers(text)
    return found[0] if len(found) == 1 and " " not in text else None
