"""Search for Dynamixel drives: a ping to all of them, at every bit rate that they can be set to."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.transport import CanParams, SerialParams

ORDER = 1  # a ping changes nothing, and its bytes are no command in protocols of text
BAUDRATES = (57600.0, 1e6, 115200.0, 2e6, 3e6, 4e6, 4.5e6, 9600.0)
ANSWER_BYTES = 14
DRIVE_TIME, EXTRA_TIME = 3e-3, 16e-3  # s: the drives answer one after the other, in the order of their ids


def search(connection: CanParams | SerialParams) -> Search:
    assert isinstance(connection, SerialParams)
    seconds = (codec.MAX_ID + 1) * (DRIVE_TIME + 10 * ANSWER_BYTES / connection.baudrate) + EXTRA_TIME
    chunks = yield Question((codec.packet(codec.BROADCAST, codec.PING),), seconds)
    packets = codec.Decoder().feed(b"".join(chunks))
    answers = {p.id: p.params for p in packets if p.instruction == codec.STATUS and len(p.params) == 4}
    return [_found(id, answers[id]) for id in sorted(answers)]


def commands() -> Iterator[bytes]:
    """None: a serial port has one program."""
    return iter(())


def _found(id: int, params: bytes) -> FoundDrive:
    """params: error, model number (2), firmware."""
    number, firmware = params[1] | params[2] << 8, params[3]
    name = t.MODEL_NAMES.get(number)
    if name is None:
        known = ", ".join(t.MODELS)
        return FoundDrive({}, f"id {id}: model number {number} is none of {known}")
    return FoundDrive({"id": id, "model": name}, f"firmware {firmware}")


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[bytes]:
    """A ping."""
    if 0 <= address <= codec.MAX_ID:
        yield codec.packet(address, codec.PING)


def answers(items: list[bytes], address: int) -> bool:
    packets = codec.Decoder().feed(b"".join(items))
    return any(p.id == address and p.instruction == codec.STATUS and len(p.params) == 4 for p in packets)
