"""The registers of a moteus drive: numbers, quantities, modes.

Source: mjbots' register reference (docs/protocol/registers.md of the moteus repository), register map versions 4 and 5.
Positions are in turns of the output, velocities in turns/s; an integer type has one step per quantity, and its most
negative value means NaN.
"""

from __future__ import annotations

import math
from enum import IntEnum

from cosim.core.units import TURN


class Mode(IntEnum):
    STOPPED = 0
    FAULT = 1
    ENABLING = 2
    CALIBRATING = 3
    CALIBRATED = 4
    PWM = 5
    VOLTAGE = 6
    VOLTAGE_FOC = 7
    VOLTAGE_DQ = 8
    CURRENT = 9
    POSITION = 10
    TIMEOUT = 11
    ZERO_VELOCITY = 12
    STAY_WITHIN = 13
    MEASURE_INDUCTANCE = 14
    BRAKE = 15


MODE, POSITION, VELOCITY, TORQUE, Q_CURRENT, D_CURRENT = range(6)
ABSOLUTE_POSITION, POWER = 0x006, 0x007
MOTOR_TEMPERATURE, TRAJECTORY_COMPLETE, HOME_STATE, VOLTAGE, TEMPERATURE, FAULT = range(0x00A, 0x010)
COMMAND_Q_CURRENT, COMMAND_D_CURRENT = 0x01C, 0x01D
COMMAND_POSITION, COMMAND_TIMEOUT, COMMAND_ILIMIT_SCALE = 0x020, 0x027, 0x02B
AUX1_GPIO_STATUS, AUX2_GPIO_STATUS = 0x05E, 0x05F
MILLISECONDS = 0x070
MODEL, FIRMWARE, MAP_VERSION = range(0x100, 0x103)
MULTIPLEX_ID, SERIAL_NUMBER = 0x110, 0x120
SET_NEAREST, SET_EXACT, REQUIRE_REINDEX, RECAPTURE = range(0x130, 0x134)
UUID, UUID_MASK, UUID_MASK_CAPABLE = 0x150, 0x154, 0x158

# torque constant [N·m/A] times Kv [rpm/V], for phase currents and phase-to-phase voltages
TORQUE_FACTOR = 1.5 / math.sqrt(3.0) * 60.0 / TURN

MAP_VERSIONS = (4, 5)  # with these scalings
BRAKING_MAP = 5  # with it every firmware has mode 15, which was added during map 4

# quantity -> step of int8, int16, int32; a float is the quantity itself
STEPS: dict[str, tuple[float, float, float]] = {
    "current": (1.0, 0.1, 0.001),
    "torque": (0.5, 0.01, 0.001),
    "voltage": (0.5, 0.1, 0.001),
    "temperature": (1.0, 0.1, 0.001),
    "time": (0.01, 0.001, 0.000001),
    "position": (0.01, 0.0001, 0.00001),
    "velocity": (0.1, 0.00025, 0.00001),
    "acceleration": (0.05, 0.001, 0.00001),
    "scale": (1 / 127, 1 / 32767, 1 / 2147483647),
    "power": (10.0, 0.05, 0.0001),
}

_QUANTITIES: dict[str, tuple[int, ...]] = {
    "position": (0x001, 0x006, 0x020, 0x026, 0x038, 0x03B, 0x040, 0x041, 0x050, 0x052, 0x054, SET_NEAREST, SET_EXACT),
    "velocity": (0x002, 0x01E, 0x021, 0x028, 0x039, 0x03C, 0x051, 0x053, 0x055),
    "torque": (0x003, 0x022, 0x025, *range(0x030, 0x035), 0x03A, 0x03D, 0x042, 0x045),
    "current": (0x004, 0x005, COMMAND_Q_CURRENT, COMMAND_D_CURRENT, 0x02C),
    "power": (POWER,),
    "temperature": (MOTOR_TEMPERATURE, TEMPERATURE),
    "voltage": (VOLTAGE, 0x014, 0x015, 0x016, 0x019, 0x01A, 0x01B, 0x02A),
    "time": (COMMAND_TIMEOUT, 0x046),
    "acceleration": (0x029,),
    "scale": (
        *(0x010, 0x011, 0x012, 0x018, 0x023, 0x024, COMMAND_ILIMIT_SCALE, 0x043, 0x044, 0x047, 0x073, 0x075),
        *(*range(0x060, 0x065), *range(0x068, 0x06D), *range(0x076, 0x080)),
    ),
}
QUANTITY = {register: quantity for quantity, registers in _QUANTITIES.items() for register in registers}

_BITS = (8, 16, 32)
_FLOAT_MAX = 3.4028234e38


def to_value(register: int, resolution: int, raw: int | float) -> float:
    """The value of a raw number of a register; registers without a quantity are whole numbers.

    resolution: 0 int8, 1 int16, 2 int32, 3 float.
    """
    quantity = QUANTITY.get(register)
    if resolution == 3 or quantity is None:
        return raw
    if raw == -(1 << (_BITS[resolution] - 1)):
        return math.nan
    return raw * STEPS[quantity][resolution]


def to_raw(register: int, resolution: int, value: float) -> int | float:
    """The raw number of a value: integers are clipped to ± the largest, NaN and infinity are the most negative one."""
    if resolution == 3:
        return math.copysign(math.inf, value) if abs(value) > _FLOAT_MAX else value
    limit = (1 << (_BITS[resolution] - 1)) - 1
    if not math.isfinite(value):
        return -limit - 1
    quantity = QUANTITY.get(register)
    if quantity is None:  # a whole number keeps its low bits, as the drive's own cast does
        return ((int(value) + limit + 1) & (2 * limit + 1)) - limit - 1
    return int(min(max(value / STEPS[quantity][resolution], -limit), limit))
