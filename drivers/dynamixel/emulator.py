"""The device side of a line: packets find their drives, and the drives answer in the order the protocol wants."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.dynamixel.codec import Packet, RegisterBlock
from cosim.drivers.dynamixel.node import Node

PAUSE_NS = 100_000_000  # between two bytes, after which a packet that was begun is given up

FAST = frozenset({codec.FAST_SYNC_READ, codec.FAST_BULK_READ})
Span = tuple[int, int, int]  # id, address, size


class Emulator:
    """Several drives on one half-duplex line. Drives that are not there end a chain of answers: those behind them wait
    for them in vain. The return delay time is kept but not waited for."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.decoder = codec.Decoder()
        self.heard_ns = 0

    def handle(self, item: object, t_ns: int) -> list[bytes]:
        """A chunk from the line; what the drives say to it."""
        if not isinstance(item, bytes | bytearray):
            return []
        if t_ns - self.heard_ns > PAUSE_NS:
            self.decoder.clear()
        self.heard_ns = t_ns
        answers: list[bytes] = []
        for packet in self.decoder.feed(bytes(item)):
            answers += self._obey(packet, t_ns)
        return answers

    def process(self, t_ns: int) -> list[bytes]:
        """Drives speak only when they are asked."""
        for node in self.nodes:
            node.process(t_ns)
        return []

    def reset(self, t_ns: int) -> None:
        self.decoder.clear()
        for node in self.nodes:
            node.reset(t_ns)

    def _obey(self, packet: Packet, t_ns: int) -> list[bytes]:
        id, instruction, params = packet
        if instruction == codec.STATUS:
            return []
        if instruction == codec.DAMAGED:
            return [codec.status(id, n.error(codec.BAD_CRC)) for n in self._named(id) if n.answers(instruction)]
        heard = self.nodes if id == codec.BROADCAST else self._named(id)
        for node in heard:
            node.fed_ns = t_ns
        if instruction in (codec.SYNC_READ, codec.FAST_SYNC_READ, codec.BULK_READ, codec.FAST_BULK_READ):
            spans = _spans(instruction, params) if id == codec.BROADCAST else None
            return self._chain(spans, instruction in FAST) if spans else []
        if instruction in (codec.SYNC_WRITE, codec.BULK_WRITE):
            for target, address, data in (_rows(instruction, params) if id == codec.BROADCAST else None) or []:
                for node in self._named(target):
                    node.write(address, data)
            return []
        answers: list[bytes] = []
        for node in sorted(heard, key=lambda n: n.id):
            own, alert = node.id, node.error(0)  # as they are before they may change
            if instruction == codec.READ and id == codec.BROADCAST:
                continue
            number, data = node.obey(instruction, params)
            asked = id != codec.BROADCAST or instruction == codec.PING
            if asked and node.answers(instruction):
                answers.append(codec.status(own, number | alert, data))
        return answers

    def _named(self, id: int) -> list[Node]:
        return [node for node in self.nodes if node.id == id]

    def _chain(self, spans: list[Span], fast: bool) -> list[bytes]:
        blocks: list[RegisterBlock] = []
        for id, address, size in spans:
            found = self._named(id)
            if not found or not found[0].answers(codec.READ):
                break
            number, data = found[0].read(address, size)
            if fast and number:
                data = bytes(size)  # its place in the packet is fixed
            blocks.append(RegisterBlock(found[0].error(number), id, data))
        if not fast:
            return [codec.status(block.id, block.error, block.data) for block in blocks]
        whole = sum(size + 4 for _, _, size in spans)
        return [codec.chained(blocks, whole)] if blocks and whole < codec.LONGEST else []


def _spans(instruction: int, params: bytes) -> list[Span] | None:
    if instruction in (codec.BULK_READ, codec.FAST_BULK_READ):
        spans = codec.spans(params)
    else:
        asked = codec.sync_span(params)
        spans = [(id, *asked[:2]) for id in asked[2]] if asked else None
    if spans is None or len({id for id, _, _ in spans}) != len(spans):  # nobody is asked twice
        return None
    return [span for span in spans if span[2] <= t.TABLE_END] or None


def _rows(instruction: int, params: bytes) -> list[tuple[int, int, bytes]] | None:
    if instruction == codec.BULK_WRITE:
        return codec.bulk_rows(params)
    asked = codec.sync_span(params)
    if asked is None or asked[1] == 0 or len(asked[2]) % (asked[1] + 1):
        return None
    address, size, rows = asked
    step = size + 1
    return [(rows[at], address, rows[at + 1 : at + step]) for at in range(0, len(rows), step)]
