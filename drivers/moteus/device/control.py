"""The control loop of an emulated drive: from commands and measurements to the requested torque.

After mjbots' theory of operation, torque = integral + kp kp_scale (control position − position) + kd kd_scale (control
velocity − velocity) + feedforward, limited. Positions are turns of the output, velocities turns/s. The modes that
command phases, voltages or a fixed field (5 to 8, 14 and the overrides of position mode) need a motor with windings; an
ideal one gives no torque in them.
"""

from __future__ import annotations

import math

from cosim.plugins.drivers.common.trajectory import advance
from cosim.plugins.drivers.common.windings import PHASES
from cosim.plugins.drivers.moteus import faults
from cosim.plugins.drivers.moteus.device import field
from cosim.plugins.drivers.moteus.device.commands import NOTHING
from cosim.plugins.drivers.moteus.device.servo_state import ServoState
from cosim.plugins.drivers.moteus.registers import Mode

_TIMEOUT_MODES = (Mode.STOPPED, Mode.POSITION, Mode.ZERO_VELOCITY, Mode.BRAKE)  # other ones mean stopped
_STILL_VELOCITY = 0.05  # turns/s; below it control starts with velocity 0


def torque(servo: ServoState, dt: float) -> float:
    """The torque that the drive requests of its motor [N·m] in its present mode; dt [s] since the last step."""
    command, mode = servo.command, servo.mode
    if mode == Mode.TIMEOUT:
        mode = servo.config["servo.timeout_mode"]
        if mode not in _TIMEOUT_MODES:
            return 0.0
        if mode == Mode.POSITION:
            servo.target = None
            return _limited(servo, _loop(servo, dt, NOTHING | _default_limits(servo), 0.0), 100.0)
    if mode == Mode.POSITION:
        if servo.turns_field:
            _move_setpoint(servo, dt, command, 0.0 if math.isnan(command["velocity"]) else command["velocity"])
            return field.torque(servo, servo.windings, dt) if servo.windings else 0.0
        commanded = _loop(servo, dt, command, command["velocity"]) + command["feedforward"]
        return _limited(servo, commanded, command["max_torque"])
    if mode == Mode.ZERO_VELOCITY:
        servo.target = None
        damped = NOTHING | {"kp_scale": 0.0, "ilimit_scale": 0.0, "kd_scale": command["kd_scale"]}
        return _limited(servo, _loop(servo, dt, damped, 0.0), servo.config["servo.timeout_max_torque_Nm"])
    if mode == Mode.STAY_WITHIN:
        return _limited(servo, _within(servo, dt) + command["feedforward"], command["max_torque"])
    if mode == Mode.CURRENT:
        return _limited(servo, command["q_current"] * servo.torque_constant, math.nan)
    if mode in field.VOLTAGE_MODES and servo.windings:
        return field.torque(servo, servo.windings, dt)
    if mode == Mode.BRAKE:
        resistance = max(servo.config["motor.resistance_ohm"], 1e-3)
        return -(servo.torque_constant**2) / (PHASES * resistance) * servo.motor.velocity
    return 0.0


def _default_limits(servo: ServoState) -> dict[str, float]:
    return {name: servo.config[f"servo.default_{name}"] for name in ("velocity_limit", "accel_limit")}


def _within(servo: ServoState, dt: float) -> float:
    command = servo.command
    side = servo.beyond(command["lower"], command["upper"])
    if not side:
        servo.control_position, servo.integral = None, 0.0
        return 0.0
    servo.target = (command["lower"] if side < 0 else command["upper"]) - servo.offset
    servo.control_position = servo.target
    return _loop(servo, dt, command | {"velocity_limit": math.nan, "accel_limit": math.nan}, 0.0)


def _loop(servo: ServoState, dt: float, command: dict[str, float], velocity: float) -> float:
    """Position and velocity loop; velocity: of the setpoint."""
    config = servo.config
    _move_setpoint(servo, dt, command, 0.0 if math.isnan(velocity) else velocity)
    assert servo.control_position is not None
    error, rate = servo.control_position - servo.encoder, servo.control_velocity - servo.velocity
    limit = config["servo.pid_position.ilimit"] * command["ilimit_scale"]
    servo.integral = min(max(servo.integral + config["servo.pid_position.ki"] * error * dt, -limit), limit)
    servo.proportional = config["servo.pid_position.kp"] * command["kp_scale"] * error
    servo.derivative = config["servo.pid_position.kd"] * command["kd_scale"] * rate
    return servo.proportional + servo.derivative + servo.integral


def _move_setpoint(servo: ServoState, dt: float, command: dict[str, float], velocity: float) -> None:
    """Move the control position and velocity towards the command."""
    max_velocity, acceleration = command["velocity_limit"], command["accel_limit"]
    free = math.isnan(max_velocity) and math.isnan(acceleration)
    if free and servo.target is not None:
        servo.control_position, servo.target = servo.target, None
    elif servo.control_position is None:
        servo.control_position = servo.encoder
        servo.control_velocity = servo.velocity if abs(servo.velocity) >= _STILL_VELOCITY else 0.0
    if free:
        servo.control_velocity, step, servo.arrived = velocity, velocity * dt, True
    else:
        distance = None if servo.target is None else servo.target - servo.control_position
        new, step, servo.arrived = advance(distance, servo.control_velocity, velocity, max_velocity, acceleration, dt)
        servo.control_velocity = new
        if servo.target is not None:
            servo.target = None if servo.arrived else servo.target + velocity * dt
    position = servo.control_position + step + servo.offset
    bounded = position
    if not command["ignore_bounds"]:
        lower, upper = servo.config["servopos.position_min"], servo.config["servopos.position_max"]
        bounded = lower if position < lower else upper if position > upper else position
    stop = command["stop_position"]
    if not math.isnan(stop) and (bounded - stop) * servo.control_velocity > 0.0:
        bounded = stop
    if bounded != position:
        servo.control_velocity = 0.0
    servo.control_position = bounded - servo.offset


def _limited(servo: ServoState, torque: float, limit: float) -> float:
    """Limit the torque by the command, the position limits, the velocity and the current; `fault` reports the limit."""
    config = servo.config
    if math.isnan(torque):
        return 0.0
    if abs(torque) > limit:
        torque, servo.fault = math.copysign(limit, torque), faults.LIMITED_BY_TORQUE
    lower, upper = config["servopos.position_min"], config["servopos.position_max"]
    if not servo.command["ignore_bounds"] and servo.beyond(lower, upper) * torque > 0.0:
        over = abs(servo.encoder + servo.offset - (upper if torque > 0.0 else lower))
        torque *= max(0.0, 1.0 - over / max(config["servo.position_derate"], 1e-6))
        servo.fault = faults.LIMITED_BY_BOUNDS
    limit = config["servo.max_current_A"] * servo.torque_constant
    cause = faults.LIMITED_BY_CURRENT
    over = abs(servo.velocity) - config["servo.max_velocity"]
    if over >= 0.0 and servo.velocity * torque > 0.0:
        limit *= max(0.0, 1.0 - over / max(config["servo.max_velocity_derate"], 1e-6))
        cause = faults.LIMITED_BY_VELOCITY
    if abs(torque) > limit:
        torque, servo.fault = math.copysign(limit, torque), cause
    return torque
