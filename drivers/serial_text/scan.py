"""Search for boards that speak the lines of the sketch in the documentation, whose patterns are the default ones.

A board with other patterns reports nothing of itself that this program could read: it has no name.
"""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.serial_text import codec
from cosim.plugins.drivers.serial_text.codec import Pattern
from cosim.plugins.drivers.serial_text.params import Patterns
from cosim.plugins.drivers.transport import CanParams, SerialParams
from cosim.plugins.drivers.transport.lines import LineSplitter, decode_line, encode_line

ORDER = 2
BAUDRATES = (115200.0, 9600.0, 57600.0, 230400.0, 1e6)
FINDS = "boards with the default patterns; others cannot be distinguished from noise: give 'patterns' in the rig"
IDS, BATCH = range(32), 4  # as many lines as the buffer of a small board takes
ANSWER_TIME = 0.05  # s
IDENTIFY, IDENTITY = Pattern(Patterns().identify), Pattern(Patterns().identity)


def search(connection: CanParams | SerialParams) -> Search:
    drives: dict[int, FoundDrive] = {}
    splitter, begin = LineSplitter(codec.MAX_LINE), b"\n"  # ends an incomplete line of an earlier program
    for first in range(0, len(IDS), BATCH):
        lines = [encode_line(IDENTIFY.text({"id": id}), True) for id in IDS[first : first + BATCH]]
        chunks = yield Question((begin + b"".join(lines),), ANSWER_TIME)
        begin = b""
        for raw in splitter.feed(b"".join(chunks)):
            text = decode_line(raw, True)
            if text is not None and (found := IDENTITY.match(text)) is not None:
                drives[found["id"]] = _found(**found)
    return [drives[id] for id in sorted(drives)]


def commands() -> Iterator[bytes]:
    """None: a serial port has one program."""
    return iter(())


def _found(id: int, model: str, max_effort: float, max_velocity: float) -> FoundDrive:
    about = f"up to {max_effort:.4g} N·m and {max_velocity:.4g} rad/s"
    return FoundDrive({"id": id, "model": model}, about)


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[bytes]:
    """Its identity."""
    if 0 <= address <= 255:
        yield b"\n" + encode_line(IDENTIFY.text({"id": address}), True)


def answers(items: list[bytes], address: int) -> bool:
    lines = LineSplitter(codec.MAX_LINE).feed(b"".join(items))
    found = [IDENTITY.match(text) for text in (decode_line(raw, True) for raw in lines) if text is not None]
    return any(values is not None and values["id"] == address for values in found)
