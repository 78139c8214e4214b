"""The registers of an emulated drive: their values and the effects of writing them."""

from __future__ import annotations

import math
from collections.abc import Callable

from cosim.plugins.drivers.moteus import registers as reg
from cosim.plugins.drivers.moteus.device.commands import COMMANDS, NOTHING
from cosim.plugins.drivers.moteus.device.servo import Servo
from cosim.plugins.drivers.moteus.registers import Mode, to_raw, to_value

DONE, UNKNOWN, NOT_WRITABLE, DISCARD = range(4)  # DISCARD: the rest of the frame is for another drive

# registers that only store a value: digital outputs, clock trim, PWM outputs; and registers of unused pins
_WRITABLE = frozenset((0x05C, 0x05D, 0x071, *range(0x076, 0x080)))
_IDLE = frozenset((0x05E, 0x05F, 0x072, 0x074, 0x140, 0x141, *range(0x060, 0x065), *range(0x068, 0x06D)))


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 1 << 31 else value


# identity: 32-bit only
_WHOLE: dict[int, Callable[[Servo], int]] = {
    reg.MODEL: lambda s: 0,
    reg.FIRMWARE: lambda s: 0x010100,
    reg.MAP_VERSION: lambda s: 5,
    **{reg.SERIAL_NUMBER + k: (lambda s, k=k: _signed(s.serial[k])) for k in range(3)},
    **{
        reg.UUID + k: (lambda s, k=k: int.from_bytes(s.uuid[4 * k : 4 * k + 4], "little", signed=True))
        for k in range(4)
    },
}

_MEASURED: dict[int, Callable[[Servo], float]] = {
    reg.MODE: lambda s: s.mode,
    reg.POSITION: lambda s: s.encoder + s.offset,
    reg.VELOCITY: lambda s: s.velocity,
    reg.TORQUE: lambda s: s.motor.effort,
    reg.Q_CURRENT: lambda s: s.dq_current().imag,
    reg.D_CURRENT: lambda s: s.dq_current().real,
    reg.ABSOLUTE_POSITION: lambda s: s.encoder % 1.0,
    reg.POWER: lambda s: s.motor.effort * s.motor.velocity,
    reg.MOTOR_TEMPERATURE: lambda s: s.motor.temperature,
    reg.TRAJECTORY_COMPLETE: lambda s: int(s.arrived),
    reg.HOME_STATE: lambda s: s.home,
    reg.VOLTAGE: lambda s: s.motor.voltage,
    reg.TEMPERATURE: lambda s: s.motor.temperature,
    reg.FAULT: lambda s: s.fault,
    0x030: lambda s: s.proportional,
    0x031: lambda s: s.integral,
    0x032: lambda s: s.derivative,
    0x033: lambda s: s.command["feedforward"],
    0x034: lambda s: s.requested,
    0x038: lambda s: math.nan if s.control_position is None else s.control_position + s.offset,
    0x039: lambda s: math.nan if s.control_position is None else s.control_velocity,
    0x03A: lambda s: s.requested,
    0x03B: lambda s: 0.0 if s.control_position is None else s.encoder - s.control_position,
    0x03C: lambda s: 0.0 if s.control_position is None else s.velocity - s.control_velocity,
    0x03D: lambda s: s.motor.effort - s.requested,
    0x050: lambda s: s.encoder % 1.0,
    0x051: lambda s: s.velocity,
    **dict.fromkeys((0x052, 0x053, 0x054, 0x055), lambda s: 0.0),
    0x058: lambda s: 3,  # encoder 0 gives angle and velocity
    reg.MILLISECONDS: lambda s: (s.t_ns - s.power_on_ns) // 1_000_000 % (1 << 23),
    **dict.fromkeys((0x073, 0x075), lambda s: math.nan),
    reg.UUID_MASK_CAPABLE: lambda s: 1,
}


def _cast(value: float, bits: int) -> int:
    """Any number as a signed integer of so many bits, converted as in the drive."""
    half = 1 << (bits - 1)
    return (int(value) + half) % (2 * half) - half if math.isfinite(value) else 0


def read(servo: Servo, register: int, resolution: int) -> float | None:
    """The raw number of a register in a type; None if it cannot be read as this type."""
    value: float | None = None
    if register in _MEASURED:
        value = _MEASURED[register](servo)
    elif register in COMMANDS:
        value = servo.written[COMMANDS[register]]
    elif register in _WRITABLE:
        value = servo.stored.get(register, 0)
    elif register in _IDLE:
        value = 0
    elif resolution == 2 and register in _WHOLE:
        value = _WHOLE[register](servo)
    return None if value is None else to_raw(register, resolution, value)


def write(servo: Servo, register: int, resolution: int, raw: float) -> int:
    """Write a raw number; DONE or an error. Commands take effect at the end of their frame (`Servo.apply`)."""
    value = to_value(register, resolution, raw)
    if register in COMMANDS:
        servo.written[COMMANDS[register]] = value
    elif register == reg.MODE:
        mode = _cast(value, 8)
        if not 0 <= mode < len(Mode):
            return UNKNOWN
        servo.written, servo.mode_written = NOTHING | {"mode": mode}, True
    elif register in _WRITABLE:
        servo.stored[register] = value
    elif register in (reg.SET_NEAREST, reg.SET_EXACT):
        servo.set_output(value, exact=register == reg.SET_EXACT)
    elif register == reg.REQUIRE_REINDEX:
        servo.require_reindex()
    elif register == reg.RECAPTURE:
        servo.recapture()
    elif reg.UUID_MASK <= register < reg.UUID_MASK + 4:
        return DONE if _cast(value, 32) == _WHOLE[register - reg.UUID_MASK + reg.UUID](servo) else DISCARD
    else:
        known = register in _MEASURED or register in _WHOLE or register in _IDLE or register == reg.MULTIPLEX_ID
        return NOT_WRITABLE if known else UNKNOWN
    return DONE
