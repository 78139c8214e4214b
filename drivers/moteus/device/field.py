"""The modes that command voltages or a fixed field: from a command to the torque of the windings.

After the firmware's control loop (ISR_DoVoltageFOC, ISR_DoVoltageDQCommand, ISR_DoMeasureInductance, and the overrides
of position mode). As in the firmware these modes have no watchdog, except position mode. Voltages are space vectors in
the frame of the stator.
"""

from __future__ import annotations

import cmath
import math

from cosim.plugins.drivers.common.windings import Windings
from cosim.plugins.drivers.moteus.device.servo_state import InductanceTest, ServoState
from cosim.plugins.drivers.moteus.registers import Mode

VOLTAGE_MODES = (Mode.PWM, Mode.VOLTAGE, Mode.VOLTAGE_FOC, Mode.VOLTAGE_DQ, Mode.MEASURE_INDUCTANCE)
_LARGEST_NUMBER = 1e6
_THIRD = cmath.exp(2j * math.pi / 3.0)


def commands_field(servo: ServoState) -> bool:
    """Whether the present mode commands voltages or a fixed field."""
    return servo.mode in VOLTAGE_MODES or (servo.mode == Mode.POSITION and servo.turns_field)


def phases(vector: complex) -> tuple[float, float, float]:
    """The quantities of phases a, b, c of a space vector."""
    return vector.real, (vector / _THIRD).real, (vector * _THIRD).real


def _vector(a: float, b: float, c: float) -> complex:
    return (a + b * _THIRD + c / _THIRD) / 1.5


def torque(servo: ServoState, windings: Windings, dt: float) -> float:
    """The torque [N·m] over the next step; dt [s] since the last one."""
    command, mode = {name: _bounded(value) for name, value in servo.command.items()}, servo.mode
    if mode == Mode.MEASURE_INDUCTANCE:
        return _measure_inductance(servo, windings, command, dt)
    frame, rate = cmath.exp(1j * servo.theta), 0.0
    if mode == Mode.POSITION:
        if math.isfinite(servo.command["fixed_current"]):
            limit = servo.config["servo.max_current_A"]
            return windings.impose(min(max(command["fixed_current"], -limit), limit) * frame, dt)
        voltage = command["fixed_voltage"] * frame
    elif mode == Mode.PWM:
        voltage = servo.motor.voltage * _vector(command["pwm_a"], command["pwm_b"], command["pwm_c"])
    elif mode == Mode.VOLTAGE:
        voltage = _vector(command["voltage_a"], command["voltage_b"], command["voltage_c"])
    elif mode == Mode.VOLTAGE_FOC:
        rate = math.pi * command["theta_rate"]
        voltage = command["voltage"] * cmath.exp(1j * math.pi * command["theta"])
        servo.command["theta"] = (command["theta"] + command["theta_rate"] * dt) % 2.0
    else:
        rate = math.pi * servo.config["motor.poles"] * servo.velocity
        voltage = complex(command["d_voltage"], command["q_voltage"]) * frame
    return windings.apply(_limited(servo, voltage), rate, dt)


def _bounded(value: float) -> float:
    """A number of a command that can be computed with; what is no number is 0."""
    return min(max(value, -_LARGEST_NUMBER), _LARGEST_NUMBER) if math.isfinite(value) else 0.0


def _limited(servo: ServoState, voltage: complex) -> complex:
    """Within what the inverter gives in every direction."""
    limit = servo.motor.voltage / math.sqrt(3.0)
    return voltage if abs(voltage) <= limit else voltage * (limit / abs(voltage))


def _measure_inductance(servo: ServoState, windings: Windings, command: dict[str, float], dt: float) -> float:
    """A square wave about the offset voltage in cycles of the current loop, and the sum of the changes of current."""
    if servo.control_position is None:
        servo.control_position, servo.inductance = servo.encoder, InductanceTest()
    test = servo.inductance
    cycle = 1.0 / min(max(servo.config["servo.pwm_rate_hz"], 15000.0), 60000.0)
    test.rest += dt / cycle
    cycles, torque = int(test.rest), 0.0
    test.rest -= cycles
    frame = cmath.exp(1j * servo.theta)
    along = frame * 1j if command["axis"] else frame
    if test.before is None:
        test.before = (windings.next / along).real
    for k in range(cycles):
        old_sign = 1 if test.phase > 0 else -1
        now = (windings.next / along).real
        test.sum += old_sign * (now - test.before)
        test.before = now
        test.phase -= old_sign
        if test.phase == 0:
            test.phase = -old_sign * int(command["period"])
        excitation = command["d_voltage"] if test.phase > 0 else -command["d_voltage"]
        voltage = command["fixed_voltage"] * frame + excitation * along
        torque += windings.apply(_limited(servo, voltage), 0.0, cycle, k * cycle)
    return torque / max(cycles, 1)
