"""One emulated drive: its control table with the rules of access, its faults and watchdog, and its control loops.

As documented in the e-Manual; details that it does not specify:
* Gains of velocity and position loops act on counts, 1000 times a second, and give PWM counts. The PWM drives a motor
  with the stall torque `max_effort` and the no-load speed `max_velocity`. Mode 5 is that position loop with its effort
  limited to the goal current. Feedforward gains are stored but have no effect.
* A tripped watchdog makes the goal of the mode a standstill: no current or PWM, no velocity, the present position.
* Baud rate, shadow id and startup configuration are stored but have no effect; every reset is immediate.
* A supply above the maximum voltage is no error: the rig's motors may have a higher voltage than this model allows.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from cosim.plugins.drivers.common.motor import Motor, WholeNumberEncoder
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.memory import Answer, Memory
from cosim.plugins.drivers.dynamixel.profile import VELOCITY, Profile

FIRMWARE = 46
ERROR_OF_CAUSE = {
    "overtemperature": t.OVERHEATING,
    "overcurrent": t.OVERLOAD,
    "undervoltage": t.INPUT_VOLTAGE,
    "encoder": t.ENCODER,
}
# option of a factory reset -> what it keeps
FACTORY_KEEPS: dict[bytes, tuple[t.Register, ...]] = {
    codec.RESET_ALL: (),
    b"\x01": (t.ID,),
    b"\x02": (t.ID, t.BAUD_RATE),
}
POSITION_MODES = frozenset({t.POSITION_MODE, t.EXTENDED_MODE, t.CURRENT_POSITION_MODE})

_PRESENT = struct.Struct("<HBBhhiiii")  # from the realtime tick to the position trajectory
_SUPPLY = struct.Struct("<HB")


class Node(Memory):
    """All state is in plain attributes: the table, and values that are not in it."""

    def __init__(self, id: int, model: t.ServoModel, effort: float, motor: Motor) -> None:
        """effort: N·m per count of the current (or the load)."""
        self.motor, self.model, self.effort = motor, model, effort
        self.encoder = WholeNumberEncoder(motor)
        super().__init__(model)
        self.origin = 0  # encoder counts at which the position is the homing offset
        self.registered: tuple[int, bytes] | None = None
        self.fed_ns = self.stepped_ns = 0  # times of the last instruction and of the last step
        self.integral = 0.0  # of the error of the loop, counts · ms
        self.pwm = 0.0
        self._instructions: dict[int, Callable[[bytes], Answer]] = {
            codec.PING: self._ping,
            codec.READ: self._read,
            codec.WRITE: self._write,
            codec.REG_WRITE: self._register,
            codec.ACTION: self._action,
            codec.REBOOT: self._reboot,
            codec.CLEAR: self._clear,
            codec.FACTORY_RESET: self._factory_reset,
        }
        self.profile = Profile()
        self.put(t.FIRMWARE, FIRMWARE)
        if motor.max_temperature < 100:  # the register holds up to 100 °C
            self.put(t.TEMPERATURE_LIMIT, max(int(motor.max_temperature), 0))
        self._factory = bytes(self.table[: t.EEPROM_END])
        self.put(t.ID, id)
        self.reset(0)

    def reset(self, t_ns: int) -> None:
        """Power-on: registers outside of the EEPROM have their initial values, whole turns are lost."""
        for address, register in self.registers.items():
            if address >= t.EEPROM_END:
                self.put(register, register.initial)
        self.registered, self.fed_ns, self.stepped_ns = None, t_ns, t_ns
        self._reset_goals()
        self._forget_turns()
        self._measure(t_ns)
        self.motor.request(0.0)

    # --- the table ------------------------------------------------------------------------------

    @property
    def id(self) -> int:
        return self.table[t.ID.address]

    @property
    def mode(self) -> int:
        return self.table[t.OPERATING_MODE.address]

    @property
    def torque(self) -> bool:
        return bool(self.table[t.TORQUE_ENABLE.address])

    def error(self, number: int) -> int:
        """The error byte of an answer."""
        return number | (codec.ALERT if self.table[t.HARDWARE_ERROR.address] else 0)

    def answers(self, instruction: int) -> bool:
        """Whether the status return level allows an answer."""
        least = {codec.PING: 0, codec.READ: 1}.get(instruction, 2)
        return self.table[t.RETURN_LEVEL.address] >= least

    def write_error(self, register: t.Register, value: int) -> int:
        """See `Memory`."""
        if register.low is None or register.high is None:
            return codec.NO_ACCESS
        if register.address < t.EEPROM_END and self.torque:
            return codec.NO_ACCESS
        if register in t.GOALS or register.address == t.GOAL_CURRENT.address:
            if self.table[t.BUS_WATCHDOG.address] == t.TRIPPED:
                return codec.BAD_RANGE
            low, high = self._bounds(register)
            return 0 if low <= value <= high else codec.BEYOND_LIMIT
        if not register.low <= value <= register.high:
            return codec.BAD_RANGE
        if register == t.OPERATING_MODE and value not in self.model.modes:
            return codec.BAD_RANGE
        if register == t.BUS_WATCHDOG and value and self.table[register.address] == t.TRIPPED:
            return codec.BAD_RANGE  # it must be cleared by 0 first
        if register == t.TORQUE_ENABLE and value and self._shutdown_errors():
            return codec.RESULT_FAIL
        return 0

    def _bounds(self, goal: t.Register) -> tuple[int, int]:
        """The range of a goal in the present mode."""
        if goal == t.GOAL_POSITION:
            if self.mode == t.POSITION_MODE:
                return self.get(t.MIN_POSITION), self.get(t.MAX_POSITION)
            limit = t.MAX_TURNS * t.CPR - 1
        elif goal == t.GOAL_VELOCITY:
            limit = self.get(t.VELOCITY_LIMIT)
        else:
            limit = self.get(t.PWM_LIMIT if goal == t.GOAL_PWM else t.CURRENT_LIMIT)
        return -limit, limit

    def change(self, register: t.Register, value: int) -> None:
        """See `Memory`."""
        previous = self.get(register)
        self.put(register, value)
        if register == t.OPERATING_MODE and value != previous:
            gains = (t.VELOCITY_I, t.VELOCITY_P, t.POSITION_D, t.POSITION_I, t.POSITION_P)
            for other in (*gains, t.FEEDFORWARD_1, t.FEEDFORWARD_2, t.PROFILE_ACCELERATION, t.PROFILE_VELOCITY):
                self.put(other, self.registers[other.address].initial)
            self._reset_goals()
        elif register == t.GOAL_POSITION and self.torque and self.mode in POSITION_MODES:
            profile = self.get(t.PROFILE_VELOCITY), self.get(t.PROFILE_ACCELERATION)
            self.profile.move(value, *profile, self._timed)
        elif register == t.TORQUE_ENABLE and value != previous:
            self.integral = 0.0
            self.profile.hold(0.0 if self.mode == t.VELOCITY_MODE else self._present_position())
            if value and self.mode == t.POSITION_MODE:
                self._forget_turns()
            if value and self.mode in POSITION_MODES:
                self.put(t.GOAL_POSITION, self._present_position())
                self.profile.hold(self._present_position())
            if not value:
                self.motor.request(0.0)

    def _reset_goals(self) -> None:
        """The goals after power-on and after a change of the operating mode: PWM and current at their limits."""
        self.integral = 0.0
        self.put(t.GOAL_PWM, self.get(t.PWM_LIMIT))
        if self.model.senses_current:
            self.put(t.GOAL_CURRENT, self.get(t.CURRENT_LIMIT))
        self.put(t.GOAL_VELOCITY, 0)
        self.put(t.GOAL_POSITION, self._present_position())

    def _shutdown_errors(self) -> int:
        """Hardware errors for which the drive has shut down, until a reboot."""
        return self.table[t.HARDWARE_ERROR.address] & self.table[t.SHUTDOWN.address]

    # --- instructions -----------------------------------------------------------------------------

    def knows(self, instruction: int) -> bool:
        return instruction in self._instructions

    def execute(self, instruction: int, params: bytes) -> Answer:
        act = self._instructions.get(instruction)
        return act(params) if act else (codec.BAD_INSTRUCTION, b"")

    def _ping(self, params: bytes) -> Answer:
        return 0, bytes(self.table[:2]) + bytes(self.table[6:7])

    def _read(self, params: bytes) -> Answer:
        span = codec.sync_span(params)
        return (codec.BAD_LENGTH, b"") if span is None or span[2] else self.read(*span[:2])

    def _write(self, params: bytes) -> Answer:
        if len(params) < 3:
            return codec.BAD_LENGTH, b""
        return self.write(int.from_bytes(params[:2], "little"), params[2:]), b""

    def _register(self, params: bytes) -> Answer:
        if len(params) < 3:
            return codec.BAD_LENGTH, b""
        self.registered = int.from_bytes(params[:2], "little"), params[2:]
        self.put(t.REGISTERED, 1)
        return 0, b""

    def _action(self, params: bytes) -> Answer:
        if self.registered is None:
            return codec.BAD_INSTRUCTION, b""
        registered, self.registered = self.registered, None
        self.put(t.REGISTERED, 0)
        return self.write(*registered), b""

    def _reboot(self, params: bytes) -> Answer:
        self.reset(self.fed_ns)
        return 0, b""

    def _factory_reset(self, params: bytes) -> Answer:
        """Restore the EEPROM but for what the option keeps, and restart."""
        if params not in FACTORY_KEEPS:
            return codec.BAD_RANGE, b""
        kept = [(register, self.get(register)) for register in FACTORY_KEEPS[params]]
        self.table[: t.EEPROM_END] = self._factory
        for register, value in kept:
            self.put(register, value)
        self.reset(self.fed_ns)
        return 0, b""

    def _clear(self, params: bytes) -> Answer:
        if params != codec.MULTI_TURN:
            return codec.BAD_RANGE, b""
        if self.table[t.MOVING.address]:
            return codec.RESULT_FAIL, b""
        self._forget_turns()
        self.put(t.GOAL_POSITION, self._present_position())
        self.profile.hold(self._present_position())
        return 0, b""

    # --- time -----------------------------------------------------------------------------------

    def process(self, t_ns: int) -> None:
        """One step: measure, check for faults, request the effort of the mode."""
        ms, self.stepped_ns = max(t_ns - self.stepped_ns, 0) * 1e-6, t_ns
        self.motor.enabled = self.torque
        self._measure(t_ns)
        self._check_faults()
        watchdog = self.table[t.BUS_WATCHDOG.address]
        if self.torque and 0 < watchdog != t.TRIPPED and t_ns - self.fed_ns > watchdog * t.WATCHDOG:
            self._trip()
        self.pwm = 0.0
        effort = self._effort(ms) if self.torque else 0.0
        bound = self.motor.max_effort
        self.motor.request(self._sign() * min(max(effort, -bound), bound))

    def _check_faults(self) -> None:
        """Latch faults of the motor in the hardware error status, until a restart."""
        motor, found = self.motor, 0
        cause = "encoder" if self.encoder.lost else motor.fault_cause
        if cause in ERROR_OF_CAUSE:
            found |= ERROR_OF_CAUSE[cause].bit
        if motor.temperature > min(motor.max_temperature, self.get(t.TEMPERATURE_LIMIT)):
            found |= t.OVERHEATING.bit
        if motor.voltage < self.get(t.MIN_VOLTAGE) * t.VOLTAGE:
            found |= t.INPUT_VOLTAGE.bit
        self.table[t.HARDWARE_ERROR.address] |= found
        if self._shutdown_errors():
            self.put(t.TORQUE_ENABLE, 0)

    def _trip(self) -> None:
        self.table[t.BUS_WATCHDOG.address] = t.TRIPPED
        self.integral = 0.0
        goals = {t.CURRENT_MODE: t.GOAL_CURRENT, t.VELOCITY_MODE: t.GOAL_VELOCITY, t.PWM_MODE: t.GOAL_PWM}
        goal = goals.get(self.mode, t.GOAL_POSITION)
        self.put(goal, self._present_position() if goal == t.GOAL_POSITION else 0)
        self.profile.hold(self.get(goal))

    def _effort(self, ms: float) -> float:
        """The effort of the mode [N·m], in the direction of the drive."""
        mode, sign = self.mode, self._sign()
        velocity = sign * self.encoder.velocity()
        if mode == t.CURRENT_MODE:
            return self.get(t.GOAL_CURRENT) * self.effort
        if mode == t.PWM_MODE:
            return self._motor_effort(self.get(t.GOAL_PWM), velocity)
        if mode == t.VELOCITY_MODE:
            goal = self.get(t.GOAL_VELOCITY) * VELOCITY
            self.profile.ramp(goal, self.get(t.PROFILE_ACCELERATION), self._timed, 1e-3 * ms)
            error = self.profile.velocity / VELOCITY - _to_counts(velocity / t.VELOCITY)
            gains = self.get(t.VELOCITY_P) / 128, self.get(t.VELOCITY_I) / 65536, 0.0
        else:
            self.profile.advance(1e-3 * ms)
            error = self.profile.position - self._present_position()
            gains = self.get(t.POSITION_P) / 128, self.get(t.POSITION_I) / 65536, self.get(t.POSITION_D) / 16
        proportional, integral, derivative = gains
        pwm = proportional * error - derivative * velocity / t.POSITION * 1e-3
        if integral:
            integral_limit = self.get(t.GOAL_PWM) / integral  # anti-windup: the limit of the output
            self.integral = min(max(self.integral + error * ms, -integral_limit), integral_limit)
        effort = self._motor_effort(pwm + integral * self.integral, velocity)
        if mode == t.CURRENT_POSITION_MODE:
            bound = abs(self.get(t.GOAL_CURRENT)) * self.effort
            return min(max(effort, -bound), bound)
        return effort

    def _motor_effort(self, pwm: float, velocity: float) -> float:
        """The effort of the motor [N·m] at this PWM and velocity."""
        limit = abs(self.get(t.GOAL_PWM))
        self.pwm = min(max(pwm, -limit), limit)
        stall = self.motor.max_effort if math.isfinite(self.motor.max_effort) else self.model.stall
        no_load_speed = self.motor.max_velocity
        return stall * (self.pwm / t.FULL_PWM - (velocity / no_load_speed if no_load_speed > 0 else 0.0))

    @property
    def _timed(self) -> bool:
        """Whether the registers of the profile are times."""
        return bool(self.table[t.DRIVE_MODE.address] & t.TIMED_PROFILE)

    def _sign(self) -> int:
        return -1 if self.table[t.DRIVE_MODE.address] & t.REVERSE else 1

    def _encoder(self) -> int:
        return _to_counts(self._sign() * self.encoder.position() / t.POSITION)

    def _present_position(self) -> int:
        """The present position of the register."""
        return self._encoder() - self.origin + self.get(t.HOMING_OFFSET)

    def _forget_turns(self) -> None:
        """Set the number of turns to 0: the encoder measures within one turn."""
        self.origin = self._encoder() // t.CPR * t.CPR

    def _measure(self, t_ns: int) -> None:
        motor, sign = self.motor, self._sign()
        velocity = _to_counts(sign * self.encoder.velocity() / t.VELOCITY)
        position = min(max(self._present_position(), -t.LARGEST_INT32), t.LARGEST_INT32)
        current = _to_counts(sign * motor.effort / self.effort, 0x7FFF)
        tick = t_ns // 1_000_000 % 0x8000
        moving = int(abs(velocity) > self.get(t.MOVING_THRESHOLD) or self.profile.ongoing)
        trajectory = _to_counts(self.profile.velocity / VELOCITY), _to_counts(self.profile.position)
        row = (tick, moving, self.profile.status, round(self.pwm), current, velocity, position, *trajectory)
        _PRESENT.pack_into(self.table, t.REALTIME_TICK.address, *row)
        volts, degrees = abs(_to_counts(motor.voltage / t.VOLTAGE, 0x7FFF)), _to_counts(motor.temperature, 0x7F) & 0xFF
        _SUPPLY.pack_into(self.table, t.PRESENT_VOLTAGE.address, volts, degrees)


def _to_counts(value: float, limit: int = t.LARGEST_INT32) -> int:
    """The nearest count in the range of a register."""
    return round(min(max(value, -limit), limit)) if value == value else 0
