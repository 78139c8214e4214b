"""The device side of a serial link: emulated drives, which answer in the order of the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins.drivers.common.unknown_requests import UnknownRequests
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.codec import Packet, RegisterBlock
from cosim.plugins.drivers.dynamixel.node import Node

PAUSE_NS = 100_000_000  # between two bytes, after which an incomplete packet is discarded

FAST = frozenset({codec.FAST_SYNC_READ, codec.FAST_BULK_READ})
RESET_OF_IDS = (codec.FACTORY_RESET, codec.RESET_ALL)
Span = tuple[int, int, int]  # id, address, size


class Emulator:
    """Several drives on one half-duplex link. A missing drive ends a chain of answers: the following drives wait for
    it. The return delay time is stored but has no effect."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.decoder = codec.Decoder()
        self.received_ns = 0
        self.unknown = UnknownRequests()

    def handle(self, item: object, t_ns: int) -> list[bytes]:
        """The answers of the drives to a chunk of bytes."""
        if not isinstance(item, bytes | bytearray):
            return []
        if t_ns - self.received_ns > PAUSE_NS:
            self.decoder.clear()
        self.received_ns = t_ns
        answers: list[bytes] = []
        for packet in self.decoder.feed(bytes(item)):
            answers += self._execute(packet, t_ns)
        return answers

    def process(self, t_ns: int) -> list[bytes]:
        """One step; drives send nothing unrequested."""
        for node in self.nodes:
            node.process(t_ns)
        return []

    def reset(self, t_ns: int) -> None:
        self.decoder.clear()
        for node in self.nodes:
            node.reset(t_ns)

    def _execute(self, packet: Packet, t_ns: int) -> list[bytes]:
        id, instruction, params = packet
        if instruction == codec.STATUS:
            return []
        if instruction == codec.DAMAGED:
            return [codec.status(id, n.error(codec.BAD_CRC)) for n in self._with_id(id) if n.answers(instruction)]
        receivers = self.nodes if id == codec.BROADCAST else self._with_id(id)
        for node in receivers:
            node.fed_ns = t_ns
        if instruction in (codec.SYNC_READ, codec.FAST_SYNC_READ, codec.BULK_READ, codec.FAST_BULK_READ):
            spans = _spans(instruction, params) if id == codec.BROADCAST else None
            return self._chain(spans, instruction in FAST) if spans else []
        if instruction in (codec.SYNC_WRITE, codec.BULK_WRITE):
            for target, address, data in (_rows(instruction, params) if id == codec.BROADCAST else None) or []:
                for node in self._with_id(target):
                    node.write(address, data)
            return []
        answers: list[bytes] = []
        for node in sorted(receivers, key=lambda n: n.id):
            own_id, alert = node.id, node.error(0)  # before the instruction changes them
            if id == codec.BROADCAST and (instruction == codec.READ or (instruction, params) == RESET_OF_IDS):
                continue
            number, data = node.execute(instruction, params)
            if not node.knows(instruction):
                self.unknown.note(f"id {own_id}: instruction {instruction:#04x}, answered by an error")
            addressed = id != codec.BROADCAST or instruction == codec.PING
            if addressed and node.answers(instruction):
                answers.append(codec.status(own_id, number | alert, data))
        return answers

    def _with_id(self, id: int) -> list[Node]:
        return [node for node in self.nodes if node.id == id]

    def _chain(self, spans: list[Span], fast: bool) -> list[bytes]:
        blocks: list[RegisterBlock] = []
        for id, address, size in spans:
            nodes = self._with_id(id)
            if not nodes or not nodes[0].answers(codec.READ):
                break
            number, data = nodes[0].read(address, size)
            if fast and number:
                data = bytes(size)  # the size of its block is fixed
            blocks.append(RegisterBlock(nodes[0].error(number), id, data))
        if not fast:
            return [codec.status(block.id, block.error, block.data) for block in blocks]
        whole = sum(size + 4 for _, _, size in spans)
        return [codec.chained(blocks, whole)] if blocks and whole < codec.MAX_LENGTH else []


def _spans(instruction: int, params: bytes) -> list[Span] | None:
    if instruction in (codec.BULK_READ, codec.FAST_BULK_READ):
        spans = codec.spans(params)
    else:
        asked = codec.sync_span(params)
        spans = [(id, *asked[:2]) for id in asked[2]] if asked else None
    if spans is None or len({id for id, _, _ in spans}) != len(spans):  # no drive may be addressed twice
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
