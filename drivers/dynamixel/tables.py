"""Control tables of the X series: registers, their ranges, and the differences between models.

Source: the e-Manual's pages of the models. Registers below 64 are stored without power (EEPROM) and cannot be
written while the torque is on.
"""

from __future__ import annotations

from typing import NamedTuple

from cosim.core.units import RPM, TURN

CPR = 4096  # counts per revolution of the position
POSITION = TURN / CPR  # rad per count
VELOCITY = 0.229 * RPM  # rad/s per count
CURRENT = 2.69e-3  # A per count
VOLTAGE = 0.1  # V per count
FULL_PWM = 885  # counts
WATCHDOG = 20_000_000  # ns per count
TRIPPED = 0xFF  # in the bus watchdog register: -1
RETURN_DELAY = 2e-6  # s per count
MAX_WATCHDOG = 127
MAX_TURNS = 256  # in both directions, in the multi-turn modes

TABLE_END = 662  # bytes
EEPROM_END = 64

# first firmware with the function
FIRMWARE_WATCHDOG = 38
FIRMWARE_FAST = 45

CURRENT_MODE, VELOCITY_MODE, POSITION_MODE, EXTENDED_MODE, CURRENT_POSITION_MODE, PWM_MODE = 0, 1, 3, 4, 5, 16

# bits of the drive mode
REVERSE, SLAVE, TIMED_PROFILE, TORQUE_BY_GOAL = 1, 2, 4, 8


class ServoModel(NamedTuple):
    """Factory limits and gains, in counts.

    torque_constant [N·m/A] at 12 V: the manufacturer's for the XM540; stall torque / stall current for the others,
    whose pages give none.
    """

    number: int
    torque_constant: float
    current_limit: int  # 0: the drive does not measure its current
    velocity_limit: int
    stall: float  # N·m
    temperature_limit: int = 80
    voltages: tuple[int, int] = (95, 160)
    gains: tuple[int, int, int] = (1920, 0, 800)  # velocity I, position D, position P

    @property
    def senses_current(self) -> bool:
        return self.current_limit > 0

    @property
    def modes(self) -> frozenset[int]:
        """Operating modes."""
        every = {VELOCITY_MODE, POSITION_MODE, EXTENDED_MODE, PWM_MODE}
        return frozenset(every | {CURRENT_MODE, CURRENT_POSITION_MODE} if self.senses_current else every)

    def effort(self, torque_constant: float | None) -> float:
        """N·m per count of the present current; without a current, of the present load (0.1 % of the stall torque,
        estimated by the drive). torque_constant: in place of the manufacturer's."""
        return CURRENT * (torque_constant or self.torque_constant) if self.senses_current else 1e-3 * self.stall


MODELS = {
    "XM430-W350": ServoModel(1020, 1.783, 1193, 200, 4.1),
    "XM430-W210": ServoModel(1030, 1.304, 1193, 330, 3.0),
    "XM540-W270": ServoModel(1120, 2.409, 2047, 128, 10.6),
    "XM540-W150": ServoModel(1130, 1.659, 2047, 230, 7.3),
    "XL430-W250": ServoModel(1060, 1.071, 0, 265, 1.5, 72, (60, 140), (1000, 4000, 640)),
}
MODEL_NAMES = {model.number: name for name, model in MODELS.items()}


class Register(NamedTuple):
    """An entry of the control table of a drive. low, high: the range for writing; None: read only."""

    address: int
    size: int
    initial: int = 0
    low: int | None = None
    high: int | None = None

    @property
    def signed(self) -> bool:
        return self.low is not None and self.low < 0

    def pack(self, value: int) -> bytes:
        """The bytes of a value, which wraps if it is out of range."""
        return (value % (1 << 8 * self.size)).to_bytes(self.size, "little")

    def unpack(self, data: bytes | bytearray, base: int = 0) -> int:
        """The value in data that begin with register `base`."""
        at = self.address - base
        return int.from_bytes(data[at : at + self.size], "little", signed=self.signed)


LARGEST_INT32 = 2**31 - 1  # if the manual gives no limit, or the limit is another register

MODEL_NUMBER = Register(0, 2)
MODEL_INFORMATION = Register(2, 4)
FIRMWARE = Register(6, 1)
ID = Register(7, 1, 1, 0, 252)
BAUD_RATE = Register(8, 1, 1, 0, 7)
RETURN_DELAY_TIME = Register(9, 1, 250, 0, 254)
DRIVE_MODE = Register(10, 1, 0, 0, 15)
OPERATING_MODE = Register(11, 1, 3, 0, 16)
SHADOW_ID = Register(12, 1, 255, 0, 255)
PROTOCOL = Register(13, 1, 2, 1, 2)
HOMING_OFFSET = Register(20, 4, 0, -1_044_479, 1_044_479)
MOVING_THRESHOLD = Register(24, 4, 10, 0, 1023)
TEMPERATURE_LIMIT = Register(31, 1, 80, 0, 100)
MAX_VOLTAGE = Register(32, 2, 160, 60, 160)
MIN_VOLTAGE = Register(34, 2, 95, 60, 160)
PWM_LIMIT = Register(36, 2, FULL_PWM, 0, FULL_PWM)
CURRENT_LIMIT = Register(38, 2, 1193, 0, 1193)
VELOCITY_LIMIT = Register(44, 4, 200, 0, 1023)
MAX_POSITION = Register(48, 4, CPR - 1, 0, CPR - 1)
MIN_POSITION = Register(52, 4, 0, 0, CPR - 1)
STARTUP = Register(60, 1, 0, 0, 3)
SHUTDOWN = Register(63, 1, 0x34, 0, 0x3D)
TORQUE_ENABLE = Register(64, 1, 0, 0, 1)
LED = Register(65, 1, 0, 0, 1)
RETURN_LEVEL = Register(68, 1, 2, 0, 2)
REGISTERED = Register(69, 1)
HARDWARE_ERROR = Register(70, 1)
VELOCITY_I = Register(76, 2, 1920, 0, 16383)
VELOCITY_P = Register(78, 2, 100, 0, 16383)
POSITION_D = Register(80, 2, 0, 0, 16383)
POSITION_I = Register(82, 2, 0, 0, 16383)
POSITION_P = Register(84, 2, 800, 0, 16383)
FEEDFORWARD_2 = Register(88, 2, 0, 0, 16383)
FEEDFORWARD_1 = Register(90, 2, 0, 0, 16383)
BUS_WATCHDOG = Register(98, 1, 0, 0, MAX_WATCHDOG)
GOAL_PWM = Register(100, 2, FULL_PWM, -FULL_PWM, FULL_PWM)
GOAL_CURRENT = Register(102, 2, 0, -2047, 2047)
GOAL_VELOCITY = Register(104, 4, 0, -1023, 1023)
PROFILE_ACCELERATION = Register(108, 4, 0, 0, 32767)
PROFILE_VELOCITY = Register(112, 4, 0, 0, 32767)
GOAL_POSITION = Register(116, 4, 0, -LARGEST_INT32, LARGEST_INT32)
REALTIME_TICK = Register(120, 2)
MOVING = Register(122, 1)
MOVING_STATUS = Register(123, 1)
PRESENT_PWM = Register(124, 2)
PRESENT_CURRENT = Register(126, 2)  # or the present load
PRESENT_VELOCITY = Register(128, 4)
PRESENT_POSITION = Register(132, 4)
VELOCITY_TRAJECTORY = Register(136, 4)
POSITION_TRAJECTORY = Register(140, 4)
PRESENT_VOLTAGE = Register(144, 2)
PRESENT_TEMPERATURE = Register(146, 1)

GOALS = frozenset({GOAL_PWM, GOAL_CURRENT, GOAL_VELOCITY, GOAL_POSITION})

# indirect registers: (first address register, first data register, number of each)
INDIRECT = ((168, 224, 28), (578, 634, 28))
_INDIRECT_LOW, _INDIRECT_HIGH = 64, TABLE_END - 1

_COMMON = tuple(value for value in list(globals().values()) if isinstance(value, Register))
_MAPPED = tuple(
    register
    for addresses, data, count in INDIRECT
    for k in range(count)
    for register in (
        Register(addresses + 2 * k, 2, data + k, _INDIRECT_LOW, _INDIRECT_HIGH),
        Register(data + k, 1, 0, 0, 255),
    )
)


def registers(model: ServoModel) -> dict[int, Register]:
    """The registers of a model, by address."""
    table = {register.address: register for register in (*_COMMON, *_MAPPED)}
    low, high = model.voltages
    changed = [
        MODEL_NUMBER._replace(initial=model.number),
        TEMPERATURE_LIMIT._replace(initial=model.temperature_limit),
        MAX_VOLTAGE._replace(initial=high, low=low, high=high),
        MIN_VOLTAGE._replace(initial=low, low=low, high=high),
        VELOCITY_LIMIT._replace(initial=model.velocity_limit),
    ]
    loops = zip((VELOCITY_I, POSITION_D, POSITION_P), model.gains, strict=True)
    changed += [register._replace(initial=gain) for register, gain in loops]
    if model.senses_current:
        limit = model.current_limit
        changed.append(CURRENT_LIMIT._replace(initial=limit, high=limit))
        changed.append(GOAL_CURRENT._replace(initial=limit, low=-limit, high=limit))
    else:
        del table[CURRENT_LIMIT.address], table[GOAL_CURRENT.address]
    table.update((register.address, register) for register in changed)
    return table


# --- hardware errors ------------------------------------------------------------------------------


class HardwareError(NamedTuple):
    """A bit of the hardware error status and of the shutdown mask."""

    bit: int
    name: str
    fix: str


INPUT_VOLTAGE = HardwareError(0x01, "input voltage", "check the supply")
OVERHEATING = HardwareError(0x04, "over temperature", "let it cool down")
ENCODER = HardwareError(0x08, "motor encoder", "have the drive repaired")
SHOCK = HardwareError(0x10, "electrical shock", "check the supply and the wiring")
OVERLOAD = HardwareError(0x20, "overload", "reduce the load")
HARDWARE_ERRORS = (INPUT_VOLTAGE, OVERHEATING, ENCODER, SHOCK, OVERLOAD)
