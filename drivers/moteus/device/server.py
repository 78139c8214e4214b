"""The device side of the register protocol: what a drive does with the subframes of a frame, and its answer.

Source: the micro server of mjbots' mjlib, with its rules for what no longer fits into an answer of 64 bytes.
"""

from __future__ import annotations

from cosim.drivers.moteus.codec import (
    CLIENT_DATA,
    CLIENT_POLL,
    CLIENT_POLL_FLOW,
    SERVER_DATA,
    SERVER_DATA_FLOW,
    Read,
    Tunnel,
    Write,
    decode,
    failure,
    reply,
    reply_size,
    tunnel,
)
from cosim.drivers.moteus.device import bank, console
from cosim.drivers.moteus.device.servo import Servo

_ROOM = 64
_RESERVE = 23  # an answer with less room left takes no further subframe
_CHANNELS = (1, 2, 3)  # the console; the serial ports, where nothing is connected
_NO_ROOM = 2


def answer(servo: Servo, data: bytes, wanted: bool, t_ns: int) -> bytes | None:
    """Does what the frame says; the answer (it may be empty), or None where none is wanted or due."""
    servo.fresh = False
    out = bytearray()
    for subframe in decode(data)[0]:
        if _ROOM - len(out) < _RESERVE:
            break
        if isinstance(subframe, Write):
            code = _write(servo, subframe, out, wanted)
            if code == bank.DISCARD:
                return None
        elif isinstance(subframe, Read):
            if wanted and not _read(servo, subframe, out):
                break
        elif not (isinstance(subframe, Tunnel) and _talk(servo, subframe, out, wanted, t_ns)):
            break  # a subframe that only drives send
    if servo.fresh:
        servo.obey(dict(servo.written), t_ns)
    return bytes(out) if wanted else None


def _write(servo: Servo, subframe: Write, out: bytearray, wanted: bool) -> int:
    for k, raw in enumerate(subframe.values):
        code = bank.write(servo, subframe.register + k, subframe.resolution, raw)
        if code == bank.DISCARD:
            return code
        if code and wanted and _ROOM - len(out) >= _RESERVE:
            out += failure(subframe.register + k, code, reading=False)
    return bank.DONE


def _read(servo: Servo, query: Read, out: bytearray) -> bool:
    """Whether reading of the frame goes on: it ends at a register that cannot be read."""
    if reply_size(query) > _ROOM - len(out):
        out += failure(query.register, _NO_ROOM, reading=True)
        return True
    values = []
    for register in range(query.register, query.register + query.length):
        value = bank.read(servo, register, query.resolution)
        if value is None:
            out += failure(register, bank.UNKNOWN, reading=True)
            return False
        values.append(value)
    out += reply(query, values)
    return True


def _talk(servo: Servo, subframe: Tunnel, out: bytearray, wanted: bool, t_ns: int) -> bool:
    """Text to and from a channel; False where there is no such channel."""
    if subframe.channel not in _CHANNELS or subframe.kind in (SERVER_DATA, SERVER_DATA_FLOW):
        return False
    here = subframe.channel == _CHANNELS[0]
    if subframe.kind == CLIENT_DATA and here:
        console.hear(servo, subframe.data, t_ns)
    if not wanted:
        return True
    text = servo.outbox if here else b""
    limit = len(text) if subframe.kind == CLIENT_DATA else subframe.limit
    if subframe.kind in (CLIENT_DATA, CLIENT_POLL):
        taken = text[: max(0, min(limit, _ROOM - len(out) - 2 - _RESERVE))]
        out += tunnel(SERVER_DATA, subframe.channel, taken)
        if here:
            servo.outbox, servo.held = text[len(taken) :], 0
        return True
    assert subframe.kind == CLIENT_POLL_FLOW
    if not here:
        out += tunnel(SERVER_DATA_FLOW, subframe.channel, b"", subframe.packet)
        return True
    if not servo.held or subframe.packet == servo.packet:  # what was sent has arrived
        servo.outbox = text = text[servo.held :]
        servo.packet = (servo.packet + 1) & 0xFF
        servo.held = len(text[: max(0, min(limit, _ROOM - len(out) - 3 - _RESERVE))])
    out += tunnel(SERVER_DATA_FLOW, subframe.channel, text[: servo.held], servo.packet)
    return True
