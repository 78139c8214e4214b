"""One emulated drive: its mode machine, its watchdog and its faults.

After mjbots' register and configuration references: a commanded drive starts up and runs, until a fault or its watchdog
ends its mode; only the stop command clears either.
"""

from __future__ import annotations

import math

from cosim.plugins.drivers.moteus import faults
from cosim.plugins.drivers.moteus.device.control import torque
from cosim.plugins.drivers.moteus.device.field import commands_field
from cosim.plugins.drivers.moteus.device.servo_state import ServoState
from cosim.plugins.drivers.moteus.registers import Mode

_ENABLING_NS, _CALIBRATING_NS = 2_000_000, 9_000_000  # from the command to the first torque


class Servo(ServoState):
    """One node: commands and time steps."""

    # --- commands ----------------------------------------------------------------------------

    def apply(self, command: dict[str, float], t_ns: int) -> None:
        """Apply a command (fields as in `NOTHING`)."""
        if int(command["mode"]) in (Mode.FAULT, Mode.ENABLING, Mode.CALIBRATING, Mode.CALIBRATED):
            return
        config = self.config
        timeout = command["timeout"] or config["servo.default_timeout_s"]
        self.expires_ns = None if math.isnan(timeout) or timeout == math.inf else t_ns + int(max(timeout, 0.0) * 1e9)
        for name in ("velocity_limit", "accel_limit"):
            limit = command[name]
            command[name] = config[f"servo.default_{name}"] if math.isnan(limit) else math.nan if limit < 0.0 else limit
        if not (math.isnan(command["velocity_limit"]) and math.isnan(command["accel_limit"])):
            limit = command["velocity_limit"]
            max_velocity = config["servo.max_velocity"]
            command["velocity_limit"] = max_velocity if math.isnan(limit) else min(limit, max_velocity)
        self.target = None if math.isnan(command["position"]) else command["position"] - self.offset
        self.command = command
        if not math.isnan(command["stop_position"]) and not math.isnan(command["velocity_limit"]):
            self._fail(faults.STOP_POSITION_DEPRECATED)
        self._switch(t_ns)
        if self.mode in (Mode.STOPPED, Mode.FAULT):
            self._off()

    def set_output(self, position: float, exact: bool) -> None:
        """Set the present position, exactly or to the nearest one that the rotor's encoder allows."""
        if not math.isfinite(position):
            return
        away = position - (self.encoder + self.offset)
        self.offset += away if exact else round(away)
        self.home = 2

    def configure_output(self, position: float) -> None:
        """Set the present position also for the next power-on, from which it is known within a turn."""
        away = position - self.encoder
        self.config["motor_position.output.offset"] = away - round(away)
        self.set_output(position, exact=True)

    def require_reindex(self) -> None:
        """Discard the reference of the output: the position is the rotor's within a turn."""
        self.offset, self.home = -round(self.encoder), 0

    def recapture(self) -> None:
        """Position mode continues from the measured position."""
        if self.mode == Mode.POSITION:
            self.control_position, self.control_velocity, self.integral = self.encoder, self.velocity, 0.0

    def config_changed(self, name: str) -> None:
        """After a change of the configuration; changing encoders of a running drive is a fault."""
        if name.startswith("motor_position.") and self.mode not in (Mode.STOPPED, Mode.FAULT):
            self._fail(faults.CONFIG_CHANGED)

    # --- the mode machine --------------------------------------------------------------------

    def _off(self) -> None:
        self.control_position, self.control_velocity, self.integral = None, 0.0, 0.0
        self.proportional = self.derivative = self.requested = 0.0
        self._open()

    def _open(self) -> None:
        if self.windings:
            self.windings.open()
        self.motor.request(0.0)

    def _fail(self, code: int) -> None:
        self.mode, self.fault = int(Mode.FAULT), code
        self._off()

    def _switch(self, t_ns: int) -> None:
        """Change to the commanded mode, if the present one allows it."""
        commanded = int(self.command["mode"])
        if commanded == self.mode:
            return
        if commanded == Mode.STOPPED:
            self.mode, self.fault = commanded, 0
        elif self.mode == Mode.STOPPED:
            self.mode, self.phase_ns = int(Mode.ENABLING), t_ns
        elif self.mode not in (Mode.FAULT, Mode.TIMEOUT, Mode.ENABLING, Mode.CALIBRATING):
            if commanded in (Mode.POSITION, Mode.STAY_WITHIN) and not self.command["ignore_bounds"]:
                lower, upper = self.config["servopos.position_min"], self.config["servopos.position_max"]
                if self.beyond(lower, upper):
                    return self._fail(faults.OUTSIDE_LIMIT)
                if abs(lower) > 32768.0 or abs(upper) > 32768.0:
                    return self._fail(faults.INVALID_LIMITS)
            self.mode = commanded
            self.control_position, self.control_velocity, self.integral = None, 0.0, 0.0

    def _fault_code(self) -> int:
        motor, config = self.motor, self.config
        if motor.fault_cause == "overcurrent":
            return faults.MOTOR_DRIVER
        if motor.fault_cause == "encoder":
            return faults.ENCODER
        if motor.voltage > config["servo.max_voltage"]:
            return faults.OVER_VOLTAGE
        if motor.fault_cause == "undervoltage" or motor.voltage < 4.0:
            return faults.UNDER_VOLTAGE
        hot = motor.temperature > min(config["servo.fault_temperature"], motor.max_temperature)
        return faults.OVER_TEMPERATURE if hot or motor.fault_cause == "overtemperature" else 0

    def process(self, t_ns: int) -> None:
        """One step: start-up, faults, watchdog, control loop."""
        dt, self.t_ns = (t_ns - self.t_ns) * 1e-9, t_ns
        self.motor.enabled = self.mode not in (Mode.STOPPED, Mode.FAULT)
        if self.sweep:
            self.outbox += self.sweep(t_ns)
        if self.mode in (Mode.STOPPED, Mode.FAULT):
            return self._open()
        code = self._fault_code()
        if code:
            return self._fail(code)
        if self.mode == Mode.ENABLING and t_ns - self.phase_ns >= _ENABLING_NS:
            self.mode, self.phase_ns = int(Mode.CALIBRATING), t_ns
        if self.mode == Mode.CALIBRATING and t_ns - self.phase_ns >= _CALIBRATING_NS:
            self.mode = int(Mode.CALIBRATED)
        self._switch(t_ns)
        if self.mode in (Mode.POSITION, Mode.STAY_WITHIN) and self.expires_ns is not None and t_ns >= self.expires_ns:
            self.mode = int(Mode.TIMEOUT)
        if self.mode == Mode.FAULT:
            return
        if self.windings and not commands_field(self):
            self.windings.open()
        elif self.windings and self.encoder_lost:
            return self._fail(faults.ENCODER)
        self.fault = 0
        self.requested = torque(self, dt)
        self.motor.request(self.requested)
