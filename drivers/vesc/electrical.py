"""The electrical side of an emulated VESC: what its setpoints of voltages and of currents without direction exert, and
what it measures.

With FOC the duty cycle is the amplitude of the voltage between two phases relative to the supply (`duty_now` of the
firmware's mcpwm_foc.c), so the quadrature voltage is v = d V / √3, and of the DC motor as which a motor is given
U = 3/2 v = R i + K ω (`common/windings.py`). The current of the windings is taken in the steady state.
"""

from __future__ import annotations

import math

from cosim.core.servo.commanded import CommandedLoops
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.common.windings import PHASES

MODES = ("duty", "brake", "handbrake")
LARGEST_DUTY = 0.95
TACHOMETER_STEPS = 6  # of the tachometer in a turn of the field
HOUR = 3600.0  # s


class Electrical:
    """The electrical side of one motor; pole_pairs: turns of the field per turn of the motor."""

    def __init__(self, motor: Motor, loops: CommandedLoops, pole_pairs: int) -> None:
        self._motor, self._loops, self._pole_pairs = motor, loops, pole_pairs
        self.reset(0)

    def reset(self, t_ns: int) -> None:
        """The power is switched on: the counters begin at 0."""
        self._counted_ns, self._count = t_ns, self._position()
        self._begin, self._way = self._count, 0
        self._charge, self._energy = [0.0, 0.0], [0.0, 0.0]  # A·s, W·s: drawn, fed back

    def effort(self, mode: str, target: float, limit: float) -> float:
        """The effort [N·m] of one of MODES; target: duty cycle or current [A]; limit: of the drive [N·m]."""
        motor = self._motor
        constant = motor.torque_constant
        if mode == "handbrake":  # a current along phase a, at which the magnet stays
            angle = self._pole_pairs * motor.shaft_position
            return min(abs(target) * constant, limit) * -math.sin(angle)
        # a brake shortens the phases where this gives less than its current
        voltage = target * motor.voltage * PHASES / math.sqrt(3.0) if mode == "duty" else 0.0
        most = limit if mode == "duty" else min(abs(target) * constant, limit)
        if motor.resistance:
            wanted = constant * (voltage - constant * motor.shaft_velocity) / motor.resistance
        else:  # without windings a motor turns at the speed whose induced voltage is this one
            speed, velocity = voltage / constant, motor.shaft_velocity
            wanted = self._loops.effort("velocity", speed, motor.shaft_position, velocity, abs(speed), most)
        return min(max(wanted, -most), most)

    def count(self, t_ns: int) -> None:
        """Time has passed: charge, energy and way."""
        seconds, self._counted_ns = 1e-9 * (t_ns - self._counted_ns), t_ns
        current = self.quantities()["input_current"]
        self._charge[current < 0.0] += abs(current) * seconds
        self._energy[current < 0.0] += abs(current) * self._motor.voltage * seconds
        before, self._count = self._count, self._position()
        self._way += abs(self._count - before)

    def quantities(self) -> dict[str, float]:
        """By their names in `values.py`."""
        motor = self._motor
        current = motor.effort / motor.torque_constant
        on = motor.enabled
        dc = motor.resistance * current + motor.torque_constant * motor.shaft_velocity if on else 0.0
        supply = max(motor.voltage, 1e-3)
        return {
            "motor_current": math.copysign(current, dc * current),
            "input_current": dc * current / supply,
            "current": current,
            "duty": min(max(dc * math.sqrt(3.0) / (PHASES * supply), -1.0), 1.0),
            "voltage": motor.voltage,
            "quadrature_voltage": dc / PHASES,
            "amp_hours": self._charge[0] / HOUR,
            "amp_hours_charged": self._charge[1] / HOUR,
            "watt_hours": self._energy[0] / HOUR,
            "watt_hours_charged": self._energy[1] / HOUR,
            "tachometer": self._count - self._begin,
            "tachometer_abs": self._way,
        }

    def _position(self) -> int:
        """Of the field, in steps of the tachometer."""
        return math.floor(self._motor.shaft_position * self._pole_pairs * TACHOMETER_STEPS / (2.0 * math.pi))
