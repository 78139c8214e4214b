"""Search for Modbus devices: every address is requested for its first register, which all answer or refuse."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.modbus import codec, identification
from cosim.plugins.drivers.transport import CanParams, SerialParams
from cosim.plugins.drivers.transport.bus_load import BYTE_BITS

ORDER = 2
BAUDRATES = (19200.0, 9600.0, 115200.0, 38400.0, 57600.0)
ADDRESSES = range(1, 248)
RESPONSE_TIME = 20e-3  # s until a device begins its answer, and a USB adapter passes it on
EXCHANGE_BYTES, IDENTITY_BYTES = 17, 110  # bytes: a request and its answer, with its echo; an identification


def search(connection: CanParams | SerialParams) -> Search:
    assert isinstance(connection, SerialParams)
    pause = codec.silence(connection.baudrate)
    byte = BYTE_BITS / connection.baudrate
    nodes = []
    for node in ADDRESSES:
        request = codec.RtuRequest(node, codec.READ, 0, 1)
        chunks = yield Question((codec.encode(request),), RESPONSE_TIME + EXCHANGE_BYTES * byte + pause)
        if codec.find_answer(request, b"".join(chunks)) is not None:
            nodes.append(node)
    drives = []
    for node in nodes:
        chunks = yield Question((identification.request(node),), RESPONSE_TIME + IDENTITY_BYTES * byte + pause)
        words = identification.texts(node, b"".join(chunks))
        drives.append(FoundDrive({"id": node}, f"{' '.join(words) or 'does not identify itself'}; add registers"))
    return drives


def commands() -> Iterator[bytes]:
    """None: a serial port has one program."""
    return iter(())


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[bytes]:
    """Its first register."""
    if address in ADDRESSES:
        yield codec.encode(codec.RtuRequest(address, codec.READ, 0, 1))


def answers(items: list[bytes], address: int) -> bool:
    return codec.find_answer(codec.RtuRequest(address, codec.READ, 0, 1), b"".join(items)) is not None
