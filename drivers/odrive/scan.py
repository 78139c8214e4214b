"""Search for ODrives: on CAN by remote frames, which command nothing; on a serial port by reading properties."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.odrive import ascii_codec
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams

ORDER = 0
BAUDRATES = (115200.0, 1e6)  # of the UART, as configured in the drive; USB has any
NODES = range(can.BROADCAST)
PROTOCOL = 2  # of CANSimple with firmware 0.6
LISTEN_TIME, ANSWER_TIME = 0.25, 0.1  # s: for heartbeats, which come every 100 ms by default; for answers
VERSIONS = ("fw_version_major", "fw_version_minor", "fw_version_revision")
AXES = (0, 1)
UNADDRESSED = "no node id yet; give it one with odrivetool"


def search(connection: CanParams | SerialParams) -> Search:
    return _on_port() if isinstance(connection, SerialParams) else _on_bus()


def commands() -> Iterator[CanFrame]:
    """Setpoints, and requests of the position, which programs send in every cycle."""
    for node in NODES:
        yield from (CanFrame(node << 5 | code, b"") for code in _SETPOINTS)
        yield can.request(node, can.GET_ENCODER_ESTIMATES)


_SETPOINTS = (can.SET_INPUT_POS, can.SET_INPUT_VEL, can.SET_INPUT_TORQUE)


def _on_bus() -> Search:
    heard = [can.decode(frame) for frame in (yield Question((can.request(can.BROADCAST, can.ADDRESS),), LISTEN_TIME))]
    messages = [message for message in heard if message is not None and message.command in (can.ADDRESS, can.HEARTBEAT)]
    serials = {
        message.node: int.from_bytes(message.values[1], "little")
        for message in messages
        if message.command == can.ADDRESS and message.values[0] == message.node
    }
    nodes = sorted({message.node for message in messages})
    # other protocols use the same identifiers: only an ODrive answers this too
    requests = tuple(can.request(node, can.GET_VERSION) for node in nodes if node != can.BROADCAST)
    answers = [can.decode(frame) for frame in (yield Question(requests, ANSWER_TIME))]
    versions = {
        message.node: message.values
        for message in answers
        if message is not None and message.command == can.GET_VERSION and message.values[0] == PROTOCOL
    }
    drives = [
        FoundDrive({"id": node}, _about(versions[node][4:7], versions[node][1:4], serials.get(node)), _listens(node))
        for node in nodes
        if node in versions
    ]
    if can.BROADCAST in serials:
        drives.append(FoundDrive({}, f"{_serial(serials[can.BROADCAST])}: {UNADDRESSED}", _listens(can.BROADCAST)))
    return drives


def _listens(node: int) -> frozenset[int]:
    return frozenset(number << 5 | code for number in (node, can.BROADCAST) for code in range(32))


def _on_port() -> Search:
    """Answers have no address: they count only if each has the form that is expected in its place."""
    texts = ["", *(f"r {name}" for name in (*VERSIONS, "serial_number")), *(f"f {axis}" for axis in AXES)]
    sent = b"".join(ascii_codec.line(text, bool(text)) for text in texts)  # the empty line ends an incomplete one
    chunks = yield Question((sent,), ANSWER_TIME)
    raw = ascii_codec.splitter().feed(b"".join(chunks))
    lines = [line.text for line in map(ascii_codec.unwrap, raw) if line is not None and line.checked]
    numbers = [ascii_codec.number(text) for text in lines[:4]]
    if len(lines) != len(texts) - 1 or None in numbers:
        return []
    about = _about([int(number or 0) for number in numbers[:3]], (), int(numbers[3] or 0))
    axes = zip(AXES, lines[4:], strict=True)
    return [FoundDrive({"axis": axis}, about) for axis, text in axes if ascii_codec.feedback(text) is not None]


def _about(firmware: tuple[int, ...] | list[int], hardware: tuple[int, ...], serial: int | None) -> str:
    words = [f"firmware {'.'.join(map(str, firmware))}"]
    if hardware:
        words.append(f"hardware {'.'.join(map(str, hardware))}")
    if serial is not None:
        words.append(_serial(serial))
    return ", ".join(words)


def _serial(serial: int) -> str:
    return f"serial number {serial:012X}"


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[CanFrame | bytes]:
    """The version; the address of a serial port is an axis."""
    if isinstance(connection, SerialParams):
        yield b"\n" + ascii_codec.line(f"f {address}", True)
    elif address in NODES:
        yield can.request(address, can.GET_VERSION)


def answers(items: list[CanFrame] | list[bytes], address: int) -> bool:
    frames = [can.decode(item) for item in items if isinstance(item, CanFrame)]
    versions = [message for message in frames if message is not None and message.command == can.GET_VERSION]
    raw = ascii_codec.splitter().feed(b"".join(item for item in items if isinstance(item, bytes)))
    lines = [line.text for line in map(ascii_codec.unwrap, raw) if line is not None and line.checked]
    known = any(message.node == address and message.values[0] == PROTOCOL for message in versions)
    return known or any(ascii_codec.feedback(text) is not None for text in lines)
