"""The device side of the register protocol: execution of the subframes of a frame, and the answer.

Source: the micro server of mjbots' mjlib, with its rules for answers beyond 64 bytes.
"""

from __future__ import annotations

from cosim.plugins.drivers.moteus.codec import (
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
from cosim.plugins.drivers.moteus.device import bank, console
from cosim.plugins.drivers.moteus.device.servo import Servo

_MAX_ANSWER = 64
_RESERVE = 23  # bytes; with less space left in the answer no further subframe is executed
_CHANNELS = (1, 2, 3)  # the console; the serial ports, where nothing is connected
_TOO_LONG = 2


def answer(servo: Servo, data: bytes, answer_requested: bool, t_ns: int) -> bytes | None:
    """Execute a frame; the answer (it may be empty), None if none is requested or the frame is for another drive."""
    servo.mode_written = False
    out = bytearray()
    for subframe in decode(data)[0]:
        if _MAX_ANSWER - len(out) < _RESERVE:
            break
        if isinstance(subframe, Write):
            code = _write(servo, subframe, out, answer_requested)
            if code == bank.DISCARD:
                return None
        elif isinstance(subframe, Read):
            if answer_requested and not _read(servo, subframe, out):
                break
        elif not (isinstance(subframe, Tunnel) and _tunnel(servo, subframe, out, answer_requested, t_ns)):
            break  # a subframe of answers only
    if servo.mode_written:
        servo.sweep = None
        servo.apply(dict(servo.written), t_ns)
    return bytes(out) if answer_requested else None


def _write(servo: Servo, subframe: Write, out: bytearray, answer_requested: bool) -> int:
    for k, raw in enumerate(subframe.values):
        code = bank.write(servo, subframe.register + k, subframe.resolution, raw)
        if code == bank.DISCARD:
            return code
        if code and answer_requested and _MAX_ANSWER - len(out) >= _RESERVE:
            out += failure(subframe.register + k, code, reading=False)
    return bank.DONE


def _read(servo: Servo, query: Read, out: bytearray) -> bool:
    """Append the values; False at a register that cannot be read, which ends the frame."""
    if reply_size(query) > _MAX_ANSWER - len(out):
        out += failure(query.register, _TOO_LONG, reading=True)
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


def _tunnel(servo: Servo, subframe: Tunnel, out: bytearray, answer_requested: bool, t_ns: int) -> bool:
    """Text to and from a channel; False if there is no such channel."""
    if subframe.channel not in _CHANNELS or subframe.kind in (SERVER_DATA, SERVER_DATA_FLOW):
        return False
    is_console = subframe.channel == _CHANNELS[0]
    if subframe.kind == CLIENT_DATA and is_console:
        console.receive(servo, subframe.data, t_ns)
    if not answer_requested:
        return True
    text = servo.outbox if is_console else b""
    limit = len(text) if subframe.kind == CLIENT_DATA else subframe.limit
    if subframe.kind in (CLIENT_DATA, CLIENT_POLL):
        taken = text[: max(0, min(limit, _MAX_ANSWER - len(out) - 2 - _RESERVE))]
        out += tunnel(SERVER_DATA, subframe.channel, taken)
        if is_console:
            servo.outbox, servo.unacknowledged = text[len(taken) :], 0
        return True
    assert subframe.kind == CLIENT_POLL_FLOW
    if not is_console:
        out += tunnel(SERVER_DATA_FLOW, subframe.channel, b"", subframe.packet)
        return True
    if not servo.unacknowledged or subframe.packet == servo.packet:  # the last packet was acknowledged
        servo.outbox = text = text[servo.unacknowledged :]
        servo.packet = (servo.packet + 1) & 0xFF
        servo.unacknowledged = len(text[: max(0, min(limit, _MAX_ANSWER - len(out) - 3 - _RESERVE))])
    out += tunnel(SERVER_DATA_FLOW, subframe.channel, text[: servo.unacknowledged], servo.packet)
    return True
