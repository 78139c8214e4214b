"""Search for VESCs: a ping to every id on CAN; on a UART the drive itself, which pings the bus behind it."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams
from cosim.plugins.drivers.transport.content_packets import (
    ASK,
    FrameReader,
    PacketReader,
    extended_frame,
    frames,
    packet,
)
from cosim.plugins.drivers.vesc import codec
from cosim.plugins.drivers.vesc.ping import IDS, PING_CAN, PING_TIME, found, ping

ORDER = 1  # its frames have 29-bit identifiers, and requests change nothing
BAUDRATES = (115200.0, 250000.0, 460800.0, 921600.0, 9600.0)  # of the UART; USB has any
PROGRAM = 254  # number of this program on CAN
LARGEST_ID = 126  # id that a joint may have
ANSWER_TIME = 0.2  # s
TRIES = 4  # the first one may end an incomplete packet of an earlier program, and a drive takes a moment to start
UUID = 12  # bytes, behind the name of the hardware

Contents = Generator[Question, list, dict[int, bytes]]


def search(connection: CanParams | SerialParams) -> Search:
    return _on_port() if isinstance(connection, SerialParams) else _on_bus()


def commands() -> Iterator[CanFrame]:
    """Setpoints."""
    kinds = [kind for _, kind, _ in (*codec.SETPOINTS.values(), *codec.OTHER_SETPOINTS.values())]
    return (extended_frame(kind, id, bytes(4)) for id in IDS for kind in kinds)


def _on_bus() -> Search:
    answers = yield Question(tuple(ping(id, PROGRAM) for id in IDS), ANSWER_TIME)
    ids = sorted({id for frame in answers if (id := found(frame, PROGRAM)) is not None})
    drives = []
    for id in ids:  # one after the other: the parts of answers do not say which drive they are of
        contents: dict[int, bytes] = {}
        for command in (codec.FW_VERSION, codec.GET_LIMITS):
            received = yield Question(tuple(frames(id, PROGRAM, bytes([command]), ASK)), ANSWER_TIME)
            reader = FrameReader()
            parts = [content for frame in received if (content := reader.complete(frame)) is not None]
            contents |= {part.data[0]: part.data for part in parts if part.receiver == PROGRAM and part.sender == id}
        drives.append(_found({"id": id}, contents))
    return drives


def _on_port() -> Search:
    own: dict[int, bytes] = {}
    for _ in range(TRIES):
        if codec.GET_APPCONF not in own:
            own |= yield from _asked(b"", ANSWER_TIME, codec.FW_VERSION, codec.GET_LIMITS, codec.GET_APPCONF)
    app = codec.decode_head(own.get(codec.GET_APPCONF, b""))
    if codec.FW_VERSION not in own or app is None:
        return []
    drives = [_found({"id": int(app[1][1])}, own)]
    behind = yield from _asked(b"", len(IDS) * PING_TIME + ANSWER_TIME, PING_CAN)
    for id in behind.get(PING_CAN, b"")[1:]:
        contents = yield from _asked(bytes([codec.FORWARD_CAN, id]), ANSWER_TIME, codec.FW_VERSION, codec.GET_LIMITS)
        drives.append(_found({"id": id, "forward": True}, contents))
    return drives


def _asked(head: bytes, seconds: float, *commands: int) -> Contents:
    """Command -> its answer, of a UART."""
    chunks = yield Question(tuple(packet(head + bytes([command])) for command in commands), seconds)
    return {content[0]: content for content in PacketReader().feed(b"".join(chunks))}


def _found(keys: dict[str, int], contents: dict[int, bytes]) -> FoundDrive:
    about, limits = _about(contents.get(codec.FW_VERSION, b"")), codec.decode_head(contents.get(codec.GET_LIMITS, b""))
    if keys["id"] > LARGEST_ID:
        return FoundDrive({}, f"id {keys['id']}: {about}; set its VESC ID to at most {LARGEST_ID} with VESC Tool")
    pairs = {"pole_pairs": int(limits[1][-1]) // 2} if limits else {}
    return FoundDrive({**keys, **pairs}, f"{about}; add {'' if pairs else 'pole_pairs and '}torque_constant")


def _about(content: bytes) -> str:
    """Version, hardware and unique number in the answer to FW_VERSION."""
    if len(content) < 4:
        return "does not report its firmware"
    name, _, rest = content[3:].partition(b"\0")
    hardware = "".join(c for c in name.decode("ascii", "replace") if c.isprintable())
    number = f", number {rest[:UUID].hex()}" if len(rest) >= UUID else ""
    return f"firmware {content[1]}.{content[2]:02d}, hardware {hardware}{number}"


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[CanFrame | bytes]:
    """A ping; on a port the version, which a packet has without an address."""
    if isinstance(connection, SerialParams):
        yield packet(bytes([codec.FW_VERSION]))
    elif address in IDS:
        yield ping(address, PROGRAM)


def answers(items: list[CanFrame] | list[bytes], address: int) -> bool:
    contents = PacketReader().feed(b"".join(item for item in items if isinstance(item, bytes)))
    ids = [found(item, PROGRAM) for item in items if isinstance(item, CanFrame)]
    return address in ids or any(content[0] == codec.FW_VERSION for content in contents)
