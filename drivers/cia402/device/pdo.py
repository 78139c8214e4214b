"""Process data of the emulated drive: receive and transmit PDOs and their transmission types."""

from __future__ import annotations

from contextlib import suppress

from cosim.plugins.drivers.cia402 import faults, sdo
from cosim.plugins.drivers.cia402.device import access, objects, state_machine
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.transport import CanFrame

_SYNCHRONOUS = 240  # the largest synchronous transmission type
_ON_EVENT = (254, 255)


def receive(node: Node, cob_id: int, data: bytes) -> None:
    """A frame with the COB-ID of a receive PDO."""
    number, kind, keys = node.receive_pdos[cob_id]
    if kind <= _SYNCHRONOUS:
        node.pending[number] = data
    else:
        _apply(node, keys, data)


def _apply(node: Node, keys: tuple[int, ...], data: bytes) -> None:
    """Write the mapped objects; values out of range are ignored, as is a frame with too few bytes."""
    widths = [objects.width(key) // 8 for key in keys]
    if sum(widths) > len(data):
        state_machine.report(node, faults.PDO_LENGTH)
        return
    place = 0
    for key, size in zip(keys, widths, strict=True):
        with suppress(sdo.Aborted):
            access.download(node, key, data[place : place + size])
        place += size


def _sample(node: Node, keys: tuple[int, ...]) -> bytes:
    return b"".join(objects.encode(key, access.read(node, key)) for key in keys)


def _send(node: Node, number: int, cob_id: int, data: bytes) -> None:
    node.sent[number], node.sent_ns[number] = data, node.t_ns
    node.send(CanFrame(cob_id, data))


def synchronise(node: Node) -> None:
    """SYNC: apply the received PDOs, then sample and send those that are due."""
    for number, kind, keys in list(node.receive_pdos.values()):
        data, node.pending[number] = node.pending[number], None
        if data is not None and kind <= _SYNCHRONOUS:
            _apply(node, keys, data)
    for number, cob_id, kind, keys, _ in node.transmit_pdos:
        if not keys or kind > _SYNCHRONOUS:
            continue
        data = _sample(node, keys)
        node.syncs[number] += 1
        if node.syncs[number] >= kind if kind else data != node.sent[number]:
            node.syncs[number] = 0
            _send(node, number, cob_id, data)


def request(node: Node, cob_id: int) -> None:
    """Answer the remote frame of a transmit PDO."""
    for number, pdo_id, _, keys, remote in node.transmit_pdos:
        if pdo_id == cob_id and remote and keys:
            _send(node, number, cob_id, _sample(node, keys))


def events(node: Node) -> None:
    """Send PDOs whose values changed or whose event timer has elapsed, not within their inhibit time."""
    for number, cob_id, kind, keys, _ in node.transmit_pdos:
        if kind not in _ON_EVENT or not keys:
            continue
        elapsed = node.t_ns - node.sent_ns[number]
        place = 0x180000 + (number << 8)
        timer = node.value(place + 5)
        if node.sent[number] is not None and elapsed < 100_000 * node.value(place + 3):
            continue
        data = _sample(node, keys)
        if data != node.sent[number] or (timer and elapsed >= 1_000_000 * timer):
            _send(node, number, cob_id, data)
