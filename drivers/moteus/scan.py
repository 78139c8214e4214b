"""Search for moteus drives: every id is requested for its model, firmware and serial number."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.moteus import registers as reg
from cosim.plugins.drivers.moteus.codec import BROADCAST, INT32, QUERY, Reply, arbitration, decode, pad, read
from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams

ORDER = 1  # its frames are of CAN FD with 29-bit identifiers
BAUDRATES = (1e6,)  # of a drive's own UART; an fdcanusb is on USB and has any
NODES = range(1, BROADCAST)
ANSWER_TIME = 0.15  # s
WHO = pad(read(reg.MODEL, INT32, 3) + read(reg.SERIAL_NUMBER, INT32, 3))


def search(connection: CanParams | SerialParams) -> Search:
    answers = yield Question(tuple(_request(node, WHO) for node in NODES), ANSWER_TIME)
    known = {arbitration(node, 0): node for node in NODES}
    drives = {known[frame.id]: found for frame in answers if frame.id in known and (found := _about(frame.data))}
    return [FoundDrive({"id": node}, drives[node], _listens(node)) for node in sorted(drives)]


def commands() -> Iterator[CanFrame]:
    return (_request(node, QUERY) for node in NODES)


def _request(node: int, data: bytes) -> CanFrame:
    return CanFrame(arbitration(0, node, reply=True), data, True, True, True)


def _about(data: bytes) -> str:
    """What a drive reports of itself; empty for an answer to something else."""
    values = {part.register: part.values for part in decode(data)[0] if isinstance(part, Reply)}
    if set(map(len, (values.get(reg.MODEL, ()), values.get(reg.SERIAL_NUMBER, ())))) != {3}:
        return ""
    model, firmware, registers = (int(value) for value in values[reg.MODEL])
    version = ".".join(str(firmware >> shift & 0xFF) for shift in (16, 8, 0))
    serial = "-".join(f"{int(value) & 0xFFFFFFFF:08x}" for value in values[reg.SERIAL_NUMBER])
    return f"model {model:#x}, firmware {version}, register map {registers}, serial number {serial}"


def _listens(node: int) -> frozenset[int]:
    """The low seven bits of an identifier are the destination, also of a frame of classic CAN."""
    return frozenset(number for number in range(0x800) if number & 0x7F in (node, BROADCAST))


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[CanFrame]:
    """See `cosim.rig.wiring.detect_family`."""
    if address in NODES:
        yield _request(address, WHO)


def answers(items: list[CanFrame], address: int) -> bool:
    return any(frame.id == arbitration(address, 0) and _about(frame.data) for frame in items)
