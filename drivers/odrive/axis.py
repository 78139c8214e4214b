"""An emulated axis without its protocol: states, cascaded controller, watchdog and errors of the firmware.

All values are in the manufacturer's units: turns, turns/s, N·m, A, s. The controller's equations come from the open
firmware (controller.cpp: input modes, position, velocity and torque stage), its states and errors from
the API reference of 0.6.
"""

from __future__ import annotations

from math import copysign, inf, isfinite, nan, sqrt
from typing import ClassVar

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.odrive import codes


class Axis:
    """One axis of a drive; its state is its attributes."""

    # saved by `save`, restored at power-on
    SAVED = (
        *("node_id", "watchdog_timeout", "enable_watchdog", "control_mode", "input_mode", "pos_gain", "vel_gain"),
        *("vel_integrator_gain", "vel_integrator_limit", "vel_limit", "vel_limit_tolerance", "enable_vel_limit"),
        *("enable_overspeed_error", "enable_torque_mode_vel_limit", "vel_ramp_rate", "torque_ramp_rate", "inertia"),
        *("input_filter_bandwidth", "homing_speed", "traj_vel_limit", "traj_accel_limit", "traj_decel_limit"),
        *("torque_soft_min", "torque_soft_max", "torque_constant", "current_soft_max", "current_hard_max"),
        *("min_endstop_enabled", "version_ms", "heartbeat_ms", "encoder_ms", "iq_ms", "error_ms", "temperature_ms"),
        *("bus_ms", "torques_ms", "powers_ms", "input_vel_scale", "input_torque_scale"),
    )

    def __init__(self, motor: Motor, node_id: int, endstop: bool = False) -> None:
        """endstop: with an end switch, closed at motor positions ≤ 0, and an incremental encoder; otherwise it is
        absolute."""
        self.motor, self.endstop = motor, endstop
        self.node_id = node_id
        self.configure()
        self.saved = self.configuration()
        self.reset(0)

    def configure(self) -> None:
        """Set the manufacturer's defaults, with the limits of the motor; the node id is kept."""
        motor = self.motor
        self.watchdog_timeout, self.enable_watchdog = 0.0, False
        self.control_mode, self.input_mode = codes.POSITION_CONTROL, codes.PASSTHROUGH
        self.pos_gain, self.vel_gain, self.vel_integrator_gain = 20.0, 1.0 / 6.0, 1.0 / 3.0
        self.vel_integrator_limit = inf
        self.vel_limit, self.vel_limit_tolerance = motor.max_velocity / TURN, 1.2
        self.enable_vel_limit = self.enable_overspeed_error = True
        # off, as set up for torque control; if on, the torque decreases with the velocity
        self.enable_torque_mode_vel_limit = False
        self.vel_ramp_rate, self.torque_ramp_rate, self.inertia = 1.0, 0.01, 0.0
        self.input_filter_bandwidth, self.homing_speed = 2.0, 0.25
        self.traj_vel_limit, self.traj_accel_limit, self.traj_decel_limit = 2.0, 0.5, 0.5
        self.torque_soft_min, self.torque_soft_max = -inf, inf
        self.torque_constant = motor.torque_constant
        self.current_soft_max = motor.max_effort / motor.torque_constant
        self.current_hard_max = 1.25 * self.current_soft_max
        self.min_endstop_enabled = self.endstop
        # periods of the cyclic messages; 0: never
        self.heartbeat_ms, self.encoder_ms = 100, 10
        self.version_ms = self.iq_ms = self.error_ms = self.temperature_ms = 0
        self.bus_ms = self.torques_ms = self.powers_ms = 0
        self.input_vel_scale = self.input_torque_scale = 1000

    def configuration(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.SAVED}

    def save(self) -> None:
        self.saved = self.configuration()

    def reset(self, t_ns: int) -> None:
        """Power-on: the saved configuration, no errors, motor off."""
        for name, value in self.saved.items():
            setattr(self, name, value)
        self.t_ns = self.fed_ns = t_ns
        self.state, self.procedure_result = codes.IDLE, codes.SUCCESS
        self.active_errors = self.disarm_reason = 0
        self.is_homed = False
        self.offset = (
            self.motor.position / TURN if self.endstop else 0.0
        )  # position of the motor at position 0 of the drive
        self.input_pos = self.input_vel = self.input_torque = 0.0
        self.pos_setpoint = self.vel_setpoint = self.torque_setpoint = 0.0
        self.vel_integrator_torque = self.torque = 0.0
        self.trajectory_done = True
        self.motor.request(0.0)

    # --- measurements ---------------------------------------------------------------------------

    @property
    def pos_estimate(self) -> float:
        return self.motor.position / TURN - self.offset

    @property
    def vel_estimate(self) -> float:
        return self.motor.velocity / TURN

    @property
    def torque_estimate(self) -> float:
        return self.motor.effort

    @property
    def iq_setpoint(self) -> float:
        return self.torque / self.torque_constant if self.torque_constant else 0.0

    @property
    def iq_measured(self) -> float:
        return self.motor.current

    @property
    def fet_temperature(self) -> float:
        return self.motor.temperature

    @property
    def motor_temperature(self) -> float:
        return self.motor.temperature

    @property
    def mechanical_power(self) -> float:
        return self.motor.effort * self.motor.velocity

    @property
    def bus_current(self) -> float:
        """Without losses."""
        return self.mechanical_power / self.motor.voltage if self.motor.voltage else 0.0

    @property
    def armed(self) -> bool:
        return self.state != codes.IDLE

    @property
    def requested_state(self) -> int:
        """Always undefined when read: a request is applied immediately."""
        return codes.UNDEFINED

    # --- requests ------------------------------------------------------------------------------

    def feed(self, t_ns: int) -> None:
        self.fed_ns = t_ns

    def request(self, state: int, t_ns: int) -> None:
        """Change the state; one that is not emulated, or not allowed with errors, leads to idle."""
        self.motor.request(0.0)
        was, self.state, self.torque = self.state, codes.IDLE, 0.0
        if state in (codes.UNDEFINED, codes.IDLE):
            self.procedure_result = codes.CANCELLED if was == codes.HOMING else codes.SUCCESS
        elif state not in (codes.CLOSED_LOOP, codes.HOMING):
            self.procedure_result = codes.INVALID_STATE
        elif state == codes.HOMING and not self.min_endstop_enabled:
            self.procedure_result = codes.HOMING_WITHOUT_ENDSTOP
        elif self._cause_errors() or self.disarm_reason:
            self.procedure_result = codes.DISARMED
        else:
            self.state, self.procedure_result = state, codes.BUSY
            self.feed(t_ns)
            self.hold()

    def hold(self) -> None:
        """Set inputs and setpoints to the measured state, so that the loop starts without a jump."""
        self.input_pos = self.pos_setpoint = self.pos_estimate
        self.input_vel = self.vel_setpoint = self.input_torque = self.torque_setpoint = 0.0
        self.vel_integrator_torque = 0.0
        self.trajectory_done = True

    def move(self, position: float) -> None:
        """Set a new position input."""
        self.input_pos = position
        self.trajectory_done = False

    def set_position(self, position: float) -> None:
        """Set the present position; the setpoints are shifted by the same amount."""
        if isfinite(position):
            shift = position - self.pos_estimate
            self.offset -= shift
            self.input_pos += shift
            self.pos_setpoint += shift

    def estop(self) -> None:
        self.disarm(codes.ESTOP_REQUESTED)

    def disarm(self, reason: int) -> None:
        self.disarm_reason |= reason
        self.state, self.procedure_result = codes.IDLE, codes.DISARMED
        self.torque = 0.0
        self.motor.request(0.0)

    def clear_errors(self) -> None:
        self.disarm_reason = 0
        if not self.armed:
            self.procedure_result = codes.SUCCESS

    # --- time ---------------------------------------------------------------------------------------

    def process(self, t_ns: int) -> None:
        """One step of a few ms at most."""
        step = max(t_ns - self.t_ns, 0) * 1e-9
        self.t_ns = t_ns
        self.active_errors = self._cause_errors()
        self.motor.enabled = self.armed
        if not self.armed:
            self.motor.request(0.0)
            return
        errors = self.active_errors | self._running_errors(t_ns)
        if errors:
            self.disarm(errors)
        elif self.state == codes.HOMING:
            self._home(step)
        else:
            self._update_setpoints(step)
            self._control(step, self.control_mode)

    def _cause_errors(self) -> int:
        """Errors whose cause persists."""
        motor = self.motor
        hot = codes.MOTOR_OVER_TEMP if motor.temperature > motor.max_temperature else 0
        return codes.FAULT_CAUSE.get(motor.fault_cause, 0) | hot

    def _running_errors(self, t_ns: int) -> int:
        """Errors of a running axis."""
        # in this form a NaN limit trips
        late = self.enable_watchdog and not t_ns - self.fed_ns <= self.watchdog_timeout * 1e9
        slow = abs(self.vel_estimate) <= self.vel_limit_tolerance * self.vel_limit
        fast = self.enable_overspeed_error and not slow
        return (codes.WATCHDOG_EXPIRED if late else 0) | (codes.VELOCITY_VIOLATION if fast else 0)

    def _home(self, step: float) -> None:
        """Move down at homing speed until the switch closes, at position 0."""
        if self.motor.position > 0.0:
            self.vel_setpoint, self.torque_setpoint = -self.homing_speed, 0.0
            self._control(step, codes.VELOCITY_CONTROL)
            return
        self.offset, self.is_homed = 0.0, True
        self.request(codes.IDLE, self.t_ns)
        self.procedure_result = codes.SUCCESS

    def _update_setpoints(self, step: float) -> None:
        """Update the setpoints from the inputs, by the input mode."""
        update = self._INPUT_MODES.get(self.input_mode)
        if update is None:
            self.disarm(codes.BAD_CONFIG)
        else:
            update(self, step)

    def _hold_setpoints(self, step: float) -> None:
        """Inputs are ignored."""

    def _pass_through(self, step: float) -> None:
        self.pos_setpoint, self.vel_setpoint, self.torque_setpoint = self.input_pos, self.input_vel, self.input_torque

    def _ramp_velocity(self, step: float) -> None:
        change = _clip(self.input_vel - self.vel_setpoint, self.vel_ramp_rate * step)
        self.vel_setpoint += change
        self.torque_setpoint = change / step * self.inertia if step else 0.0

    def _ramp_torque(self, step: float) -> None:
        self.torque_setpoint += _clip(self.input_torque - self.torque_setpoint, self.torque_ramp_rate * step)

    def _filter_position(self, step: float) -> None:
        """Critically damped filter of second order."""
        rate = 2.0 * self.input_filter_bandwidth
        change = self.input_pos - self.pos_setpoint, self.input_vel - self.vel_setpoint
        acceleration = 0.25 * rate * rate * change[0] + rate * change[1]
        self.torque_setpoint = acceleration * self.inertia
        self.vel_setpoint += acceleration * step
        self.pos_setpoint += self.vel_setpoint * step

    def _trapezoid(self, step: float) -> None:
        """Trapezoidal velocity profile to the goal."""
        if self.trajectory_done or not step:
            return
        remaining = self.input_pos - self.pos_setpoint
        max_velocity = min(self.traj_vel_limit, sqrt(max(0.0, 2.0 * self.traj_decel_limit * abs(remaining))))
        decelerates = abs(self.vel_setpoint) > max_velocity or self.vel_setpoint * remaining < 0.0
        limit = (self.traj_decel_limit if decelerates else self.traj_accel_limit) * step
        change = _clip(copysign(max_velocity, remaining) - self.vel_setpoint, limit)
        self.vel_setpoint += change
        self.torque_setpoint = change / step * self.inertia
        self.pos_setpoint += self.vel_setpoint * step
        if (
            abs(self.input_pos - self.pos_setpoint) <= max(abs(self.vel_setpoint) * step, 1e-6)
            and max_velocity <= 2 * limit
        ):
            self.pos_setpoint, self.vel_setpoint, self.torque_setpoint = self.input_pos, 0.0, 0.0
            self.trajectory_done = True

    _INPUT_MODES: ClassVar = {
        codes.INACTIVE: _hold_setpoints,
        codes.PASSTHROUGH: _pass_through,
        codes.VEL_RAMP: _ramp_velocity,
        codes.POS_FILTER: _filter_position,
        codes.TRAP_TRAJ: _trapezoid,
        codes.TORQUE_RAMP: _ramp_torque,
    }

    def _control(self, step: float, mode: int) -> None:
        """The cascade: position → velocity → torque, each limited."""
        if not self.armed:
            return
        low, high = self._torque_range(mode)
        velocity = self.vel_setpoint
        if self.enable_vel_limit:
            velocity = _clip(velocity, self.vel_limit)
        if mode >= codes.POSITION_CONTROL:
            velocity += self.pos_gain * (self.pos_setpoint - self.pos_estimate)
            if self.enable_vel_limit:
                velocity = _clip(velocity, self.vel_limit)
        torque, error = self.torque_setpoint, 0.0
        if mode >= codes.VELOCITY_CONTROL:
            error = velocity - self.vel_estimate
            torque += self.vel_gain * error + self.vel_integrator_torque
        if not isfinite(torque):
            self.disarm(codes.MISSING_INPUT)
            return
        allowed = min(max(torque, low), high)
        if mode < codes.VELOCITY_CONTROL:
            self.vel_integrator_torque = 0.0
        elif allowed != torque:
            self.vel_integrator_torque *= 0.99
        else:
            grown = self.vel_integrator_torque + self.vel_integrator_gain * step * error
            self.vel_integrator_torque = _clip(grown, self.vel_integrator_limit)
        self.torque = allowed
        self.motor.request(allowed)

    def _torque_range(self, mode: int) -> tuple[float, float]:
        """The limits of the torque; (0, 0) if they contradict each other."""
        limit = min(self.current_soft_max * self.torque_constant, self.motor.max_effort)
        low, high = max(-limit, self.torque_soft_min), min(limit, self.torque_soft_max)
        if mode < codes.VELOCITY_CONTROL and self.enable_torque_mode_vel_limit:
            low = max(low, self.vel_gain * (-self.vel_limit - self.vel_estimate))
            high = min(high, self.vel_gain * (self.vel_limit - self.vel_estimate))
        return (low, high) if low <= high else (0.0, 0.0)


def _clip(value: float, limit: float) -> float:
    """Clip to ± limit; NaN stays NaN."""
    return min(max(value, -limit), limit) if value == value else nan
