"""The emulated drive as a node of the network: NMT, boot-up, heartbeats sent and watched, and where frames go."""

from __future__ import annotations

from cosim.drivers.cia402 import codec, faults, profile
from cosim.drivers.cia402.device import machine, mapping, motion, objects, pdo, server
from cosim.drivers.cia402.device.node import Node
from cosim.drivers.transport import CanFrame

_SYNC, _PRODUCER, _CONSUMERS, _COMMUNICATION_ERROR = 0x100500, 0x101700, 0x101601, 0x102901
_STATE_OF = {codec.START: codec.RUNNING, codec.STOP: codec.STOPPED, codec.PRE_OPERATIONAL: codec.PREPARED}
_COMMUNICATION = frozenset(range(0x1000, 0x2000)) - {0x1018}  # indices that a reset of it restores
_LONGEST_STEP = 0.01  # s for which a control loop may run on one measurement


def receive(node: Node, frame: CanFrame, t_ns: int) -> None:
    """A frame from the bus."""
    if frame.extended or frame.fd or len(frame.data) > 8 or node.nmt == codec.BOOTING:
        return
    node.t_ns = t_ns
    number, data = frame.id, frame.data
    if frame.remote:
        if node.nmt == codec.RUNNING:
            pdo.request(node, number)
    elif number == codec.NMT:
        _command(node, data)
    elif codec.HEARTBEAT < number <= codec.HEARTBEAT + 0x7F:
        _heard(node, number - codec.HEARTBEAT)
    elif node.nmt == codec.STOPPED:
        return
    elif number == codec.SDO_REQUEST + node.id:
        server.serve(node, data)
    elif node.nmt != codec.RUNNING:
        return
    elif number == node.value(_SYNC):
        pdo.synchronise(node)
    elif number in node.inward:
        pdo.receive(node, number, data)


def _command(node: Node, data: bytes) -> None:
    if len(data) != 2 or data[1] not in (0, node.id):
        return
    if data[0] == codec.RESET_NODE:
        node.restart(node.t_ns)
    elif data[0] == codec.RESET_COMMUNICATION:
        _leave(node, codec.BOOTING)
        fresh = objects.start_values(node.id)
        node.values.update((key, value) for key, value in fresh.items() if key >> 8 in _COMMUNICATION)
        node.heard[:], node.transfer, node.beat_due = (None, None), "", None
    elif data[0] in _STATE_OF:
        _leave(node, _STATE_OF[data[0]])


def _leave(node: Node, state: int) -> None:
    """Change the NMT state; a motor that is on does not go on without commands."""
    running, node.nmt = node.nmt == codec.RUNNING, state
    node.pending = [None] * len(objects.PDOS)
    if running and state != codec.RUNNING and node.state in (profile.ENABLED, profile.QUICK_STOP):
        machine.connection_lost(node, faults.CONNECTION)
    if state == codec.RUNNING and not running:
        node.sent = [None] * len(objects.PDOS)


def _heard(node: Node, producer: int) -> None:
    for sub in (0, 1):
        watched = node.value(_CONSUMERS + sub)
        if watched & 0xFFFF and watched >> 16 == producer:
            node.heard[sub] = node.t_ns
            if faults.HEARTBEAT in node.errors:
                machine.connection_back(node)


def _watch(node: Node) -> None:
    """Heartbeats that stay away: what 1029h says of the node and 6007h of the motor."""
    for sub in (0, 1):
        heard = node.heard[sub]
        if heard is None or node.t_ns - heard <= 1_000_000 * (node.value(_CONSUMERS + sub) & 0xFFFF):
            continue
        node.heard[sub] = None  # once; watched again from the next heartbeat on
        machine.connection_lost(node, faults.HEARTBEAT)
        reaction = node.value(_COMMUNICATION_ERROR)
        if reaction == 0 and node.nmt == codec.RUNNING:
            node.nmt = codec.PREPARED
        elif reaction == 2:
            node.nmt = codec.STOPPED


def _beat(node: Node) -> None:
    period = 1_000_000 * node.value(_PRODUCER)
    if period and node.beat_due is not None and node.t_ns >= node.beat_due:
        node.beat_due = max(node.beat_due + period, node.t_ns)
        node.send(codec.heartbeat(node.id, node.nmt))


def proceed(node: Node, t_ns: int) -> None:
    """Time has passed, and the motor was measured anew."""
    step = min(max(1e-9 * (t_ns - node.stepped_ns), 0.0), _LONGEST_STEP)
    node.t_ns = node.stepped_ns = t_ns
    if node.nmt == codec.BOOTING:
        node.nmt = codec.PREPARED
        mapping.rebuild(node)
        node.send(codec.heartbeat(node.id, codec.BOOTING))
        return
    _watch(node)
    machine.check(node)
    motion.run(node, step)
    if node.nmt == codec.RUNNING:
        pdo.events(node)
    _beat(node)
