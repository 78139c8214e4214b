"""The emulated drive as a node of the network: NMT, boot-up, heartbeats, and the routing of frames."""

from __future__ import annotations

from cosim.plugins.drivers.cia402 import codec, faults, profile
from cosim.plugins.drivers.cia402.device import mapping, motion, objects, pdo, server, state_machine
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.transport import CanFrame

_SYNC, _PRODUCER, _CONSUMERS, _COMMUNICATION_ERROR = 0x100500, 0x101700, 0x101601, 0x102901
_STATE_OF = {codec.START: codec.RUNNING, codec.STOP: codec.STOPPED, codec.PRE_OPERATIONAL: codec.PREPARED}
_COMMUNICATION_INDICES = frozenset(range(0x1000, 0x2000)) - {0x1018}  # indices that `reset communication` restores
_LONGEST_STEP = 0.01  # s, of the control loops


def receive(node: Node, frame: CanFrame, t_ns: int) -> None:
    """A frame from the bus."""
    if frame.extended or frame.fd or len(frame.data) > 8 or node.nmt == codec.BOOTING:
        return
    node.t_ns = t_ns
    number, data = frame.id, frame.data
    if frame.remote:
        if number == codec.HEARTBEAT + node.id:
            _answer_guard(node)
        elif node.nmt == codec.RUNNING:
            pdo.request(node, number)
    elif number == codec.NMT:
        _command(node, data)
    elif codec.HEARTBEAT < number <= codec.HEARTBEAT + 0x7F:
        _take_heartbeat(node, number - codec.HEARTBEAT)
    elif node.nmt == codec.STOPPED:
        return
    elif number == codec.SDO_REQUEST + node.id:
        server.serve(node, data)
    elif node.nmt != codec.RUNNING:
        return
    elif number == node.value(_SYNC):
        pdo.synchronise(node)
    elif number in node.receive_pdos:
        pdo.receive(node, number, data)


def _command(node: Node, data: bytes) -> None:
    if len(data) != 2 or data[1] not in (0, node.id):
        return
    if data[0] == codec.RESET_NODE:
        node.restart(node.t_ns)
    elif data[0] == codec.RESET_COMMUNICATION:
        _change_state(node, codec.BOOTING)
        initial = objects.start_values(node.id)
        node.values.update((key, value) for key, value in initial.items() if key >> 8 in _COMMUNICATION_INDICES)
        node.heard[:], node.transfer, node.beat_due, node.guard_toggle = (None, None), "", None, 0
    elif data[0] in _STATE_OF:
        _change_state(node, _STATE_OF[data[0]])


def _change_state(node: Node, state: int) -> None:
    """Change the NMT state; leaving the operational state stops a motor that is on."""
    running, node.nmt = node.nmt == codec.RUNNING, state
    node.pending = [None] * len(objects.PDOS)
    if running and state != codec.RUNNING and node.state in (profile.ENABLED, profile.QUICK_STOP):
        state_machine.connection_lost(node, faults.CONNECTION)
    if state == codec.RUNNING and not running:
        node.sent = [None] * len(objects.PDOS)


def _take_heartbeat(node: Node, producer: int) -> None:
    for sub in (0, 1):
        monitored = node.value(_CONSUMERS + sub)
        if monitored & 0xFFFF and monitored >> 16 == producer:
            node.heard[sub] = node.t_ns
            if faults.HEARTBEAT in node.errors:
                state_machine.connection_restored(node)


def _check_heartbeats(node: Node) -> None:
    """Check for missed heartbeats; 1029h is the reaction of the node, 6007h of the motor."""
    for sub in (0, 1):
        heard = node.heard[sub]
        if heard is None or node.t_ns - heard <= 1_000_000 * (node.value(_CONSUMERS + sub) & 0xFFFF):
            continue
        node.heard[sub] = None  # once; monitored again from the next heartbeat on
        state_machine.connection_lost(node, faults.HEARTBEAT)
        reaction = node.value(_COMMUNICATION_ERROR)
        if reaction == 0 and node.nmt == codec.RUNNING:
            node.nmt = codec.PREPARED
        elif reaction == 2:
            node.nmt = codec.STOPPED


def _send_heartbeat(node: Node) -> None:
    period = 1_000_000 * node.value(_PRODUCER)
    if period and node.beat_due is not None and node.t_ns >= node.beat_due:
        node.beat_due = max(node.beat_due + period, node.t_ns)
        node.send(codec.heartbeat(node.id, node.nmt))


def _answer_guard(node: Node) -> None:
    """Node guarding, for a node without heartbeats (CiA 301, 7.2.8.3.2.1): the state, and a bit that alternates."""
    if not node.value(_PRODUCER):
        node.send(codec.heartbeat(node.id, node.nmt | node.guard_toggle))
        node.guard_toggle ^= 0x80


def process(node: Node, t_ns: int) -> None:
    """One step, after the motor was measured."""
    step = min(max(1e-9 * (t_ns - node.stepped_ns), 0.0), _LONGEST_STEP)
    node.t_ns = node.stepped_ns = t_ns
    if node.nmt == codec.BOOTING:
        node.nmt = codec.PREPARED
        mapping.rebuild(node)
        node.send(codec.heartbeat(node.id, codec.BOOTING))
        return
    _check_heartbeats(node)
    state_machine.check(node)
    motion.run(node, step)
    if node.nmt == codec.RUNNING:
        pdo.events(node)
    _send_heartbeat(node)
