"""Search for drives of CiA 402: every node is requested for its device type, drives for their identity, by SDO."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from cosim.plugins.drivers.cia402 import codec, sdo
from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams

ORDER = 1  # reading an object changes nothing
NODES = range(1, 128)
ANSWER_TIME = 0.15  # s
SEGMENTS = 40  # of a text, more than any device's
PROFILE = 402
DEVICE_TYPE, DEVICE_NAME, SOFTWARE, IDENTITY = 0x1000, 0x1008, 0x100A, 0x1018
VENDOR, PRODUCT, REVISION, SERIAL = 1, 2, 3, 4

Values = Generator[Question, list[CanFrame], dict[int, bytes]]


def search(connection: CanParams | SerialParams) -> Search:
    types = yield from _read(NODES, DEVICE_TYPE, 0)
    drives = [node for node in sorted(types) if _number(types[node]) & 0xFFFF == PROFILE]
    texts: dict[int, dict[int, str]] = {}
    numbers: dict[int, dict[int, int]] = {}
    for index in (DEVICE_NAME, SOFTWARE):
        values = yield from _read(drives, index, 0)
        texts[index] = {node: _text(data) for node, data in values.items()}
    for sub in (VENDOR, PRODUCT, REVISION, SERIAL):
        values = yield from _read(drives, IDENTITY, sub)
        numbers[sub] = {node: _number(data) for node, data in values.items()}
    return [FoundDrive({"id": node}, _about(node, texts, numbers), _listens(node)) for node in drives]


def commands() -> Iterator[CanFrame]:
    """SYNC, and process data to the nodes."""
    yield codec.SYNC
    for node in NODES:
        yield CanFrame(codec.RPDO + node, b"")


def _read(nodes: Iterable[int], index: int, sub: int) -> Values:
    """An object of several nodes, together; without those that have no such object."""
    values: dict[int, bytes] = {}
    transfers = {node: sdo.upload(index, sub) for node in nodes}
    requests = {node: next(transfer) for node, transfer in transfers.items()}
    for _ in range(SEGMENTS):
        if not requests:
            break
        sent = tuple(CanFrame(codec.SDO_REQUEST + node, request) for node, request in requests.items())
        answers = yield Question(sent, ANSWER_TIME)
        requests = dict(_next_requests(requests, answers, transfers, values.__setitem__))
    return values


def _next_requests(
    requests: Mapping[int, bytes],
    answers: Iterable[CanFrame],
    transfers: Mapping[int, sdo.Transfer],
    store: Callable[[int, bytes], object],
) -> Iterator[tuple[int, bytes]]:
    """The next request of every transfer that is not complete; complete ones are stored."""
    waiting = dict(requests)
    for frame in answers:
        node = frame.id - codec.SDO_ANSWER
        if frame.extended or node not in waiting or not sdo.answers(waiting[node], frame.data):
            continue
        del waiting[node]
        try:
            yield node, transfers[node].send(frame.data)
        except StopIteration as done:
            store(node, done.value)
        except sdo.Aborted:
            pass


def _number(data: bytes) -> int:
    return int.from_bytes(data[:4], "little")


def _text(data: bytes) -> str:
    return "".join(c for c in data.decode("ascii", "replace") if c.isprintable()).strip()


def _about(node: int, texts: Mapping[int, Mapping[int, str]], numbers: Mapping[int, Mapping[int, int]]) -> str:
    words = [texts[DEVICE_NAME].get(node) or "drive"]
    if version := texts[SOFTWARE].get(node):
        words.append(f"software {version}")
    for word, sub in (("vendor", VENDOR), ("product", PRODUCT), ("revision", REVISION), ("serial number", SERIAL)):
        if node in numbers[sub]:
            words.append(f"{word} {numbers[sub][node]:#x}")
    return ", ".join(words)


def _listens(node: int) -> frozenset[int]:
    """NMT, SYNC, and the node's own receive PDOs and SDO requests."""
    own = {codec.RPDO + n * codec.PDO_STRIDE + node for n in range(4)}
    return frozenset({codec.NMT, codec.SYNC_ID, codec.SDO_REQUEST + node, *own})


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[CanFrame]:
    """Its device type."""
    if address in NODES:
        yield CanFrame(codec.SDO_REQUEST + address, next(sdo.upload(DEVICE_TYPE, 0)))


def answers(items: list[CanFrame], address: int) -> bool:
    types: dict[int, bytes] = {}
    transfer = sdo.upload(DEVICE_TYPE, 0)
    waiting = {address: next(transfer)}
    list(_next_requests(waiting, items, {address: transfer}, types.__setitem__))
    return _number(types.get(address, b"")) & 0xFFFF == PROFILE
