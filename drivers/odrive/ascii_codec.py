"""The ASCII protocol: lines of text ↔ values in SI.

`command *checksum ; comment`: the checksum, the xor of all characters before the asterisk, is optional; the answer to a
line with one has one too, and a line with a wrong one is ignored. Angles in the text are in turns
(docs.odriverobotics.com, ascii-protocol); arguments and results here are in rad, rad/s and N·m.
"""

from __future__ import annotations

from typing import NamedTuple

from cosim.core.units import TURN
from cosim.plugins.drivers.transport.lines import LineSplitter

MAX_LINE = 256  # bytes, the drive's buffer for a line


class AsciiLine(NamedTuple):
    """A received line of text without its checksum."""

    text: str
    checked: bool  # it had a checksum


class AsciiRequest(NamedTuple):
    """A command of one letter: motor number and arguments, in the manufacturer's units."""

    letter: str
    axis: int
    numbers: tuple[float, ...]


def splitter() -> LineSplitter:
    """Splits received bytes into lines; those longer than a drive's buffer are dropped."""
    return LineSplitter(MAX_LINE, b"\r\n!")


def checksum(text: bytes) -> int:
    """The xor of at most 256 bytes: halves are folded until one byte remains."""
    bits, width = int.from_bytes(text, "little"), 256 if len(text) <= 64 else 1024
    while width >= 8:
        bits ^= bits >> width
        width >>= 1
    return bits & 0xFF


def line(text: str, checked: bool, end: str = "\n") -> bytes:
    """The bytes of a line."""
    raw = text.encode("latin-1", "replace")
    return raw + (f"*{checksum(raw)}{end}" if checked else end).encode()


def with_valid_checksum(data: bytes) -> bytes:
    """Lines with valid checksums, whatever their text is."""
    lines = [each.partition(b"*")[0].decode("latin-1") for each in data.split(b"\n") if each]
    return b"".join(line(text, True) for text in lines)


def unwrap(raw: bytes) -> AsciiLine | None:
    """A line without comment and checksum; None if its checksum is wrong."""
    body = raw.partition(b";")[0]
    text, star, given = body.partition(b"*")
    if not star:
        return AsciiLine(body.decode("latin-1").strip(), False)
    digits = given.strip()
    if not digits.isdigit() or len(digits) > 3 or int(digits) != checksum(text):
        return None
    return AsciiLine(text.decode("latin-1").strip(), True)


def numbers(text: str) -> tuple[float, ...]:
    """The numbers at the beginning of a text."""
    found = []
    for token in text.split():
        try:
            found.append(float(token))
        except ValueError:
            break
        if "_" in token:  # a number in Python only
            del found[-1]
            break
    return tuple(found)


def parse(text: str) -> AsciiRequest | None:
    """A command `letter motor number …`; None without a valid motor number."""
    letter, found = text[:1], text[1:].split(maxsplit=1)
    if not found or not (found[0].isascii() and found[0].isdecimal() and len(found[0]) < 10):
        return None
    return AsciiRequest(letter, int(found[0]), numbers(found[1]) if len(found) > 1 else ())


# --- lines of the host -----------------------------------------------------------------------------


def position(axis: int, angle: float, velocity: float, effort: float) -> str:
    return f"p {axis} {angle / TURN:.9g} {velocity / TURN:.7g} {effort:.7g}"


def velocity(axis: int, speed: float, effort: float) -> str:
    return f"v {axis} {speed / TURN:.7g} {effort:.7g}"


def torque(axis: int, effort: float) -> str:
    return f"c {axis} {effort:.7g}"


# --- lines of the drive ----------------------------------------------------------------------------


def feedback(text: str) -> tuple[float, float] | None:
    """(position, velocity) of the answer to `f`."""
    found = numbers(text)
    return (found[0] * TURN, found[1] * TURN) if len(found) == 2 and text.count(" ") == 1 else None


def number(text: str) -> float | None:
    """The answer to `r`; None if it is not one number."""
    found = numbers(text)
    return found[0] if len(found) == 1 and " " not in text else None
