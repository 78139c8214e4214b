"""The control loops of the emulated drive: position over velocity over torque, profiles, homing, ramps to a stop.

Called every step of the physics; a step is in s, positions in counts (position units), speeds in counts/s, torques in
N·m.
"""

from __future__ import annotations

import math

from cosim.core.units import RPM
from cosim.plugins.drivers.cia402 import faults, profile
from cosim.plugins.drivers.cia402.device import state_machine
from cosim.plugins.drivers.cia402.device.node import Node

_TORQUE, _MAX_TORQUE, _TORQUE_OFFSET, _VELOCITY_OFFSET = 0x607100, 0x607200, 0x60B200, 0x60B100
_POSITION, _VELOCITY, _LOWER, _UPPER, _MAX_SPEED = 0x607A00, 0x60FF00, 0x607D01, 0x607D02, 0x608000
_WINDOW, _TIME_OUT, _REACHED_WINDOW, _VELOCITY_WINDOW = 0x606500, 0x606600, 0x606700, 0x606D00
_PROFILE_VELOCITY, _ACCELERATION, _DECELERATION, _QUICK_DECELERATION = 0x608100, 0x608300, 0x608400, 0x608500
_VELOCITY_GAIN, _INTEGRAL_TIME, _POSITION_GAIN = 0x60F901, 0x60F902, 0x60FB01
_METHOD, _HOME_OFFSET, _SLOW, _HOMING_ACCELERATION = 0x609800, 0x607C00, 0x609902, 0x609A00
_PERIOD, _PERIOD_INDEX, _RAMP_OPTIONS = 0x60C201, 0x60C202, (0x605A00, 0x605E00, 0x605D00)
# this drive has no switches and no hard stops: every homing method ends at the next index pulse in its direction
_IN_PLACE, _DOWNWARD = (0, 35, 37), (-3, -1, 1, 5, 6, 11, 12, 13, 14, 17, 21, 22, 27, 28, 29, 30, 33)
NO_WINDOW = 0xFFFFFFFF
FORGETTING = 0.98  # factor per step of the recursive least squares
GAIN_FRACTION = 0.4  # of the gain that would correct the velocity in one step
STOP_TIMEOUT = 0.5  # s after the end of a ramp, after which a motor that still turns coasts


def _clip(value: float, bound: float) -> float:
    return min(max(value, -bound), bound)


def _towards(value: float, target: float, change: float) -> float:
    return value + _clip(target - value, change)


def _beyond_limit(node: Node, sense: float) -> bool:
    """Whether the motor is at or past a software limit and `sense` points further out."""
    actual = node.actual()
    return (sense > 0 and actual >= node.value(_UPPER)) or (sense < 0 and actual <= node.value(_LOWER))


def _top_speed(node: Node) -> float:
    return node.value(_MAX_SPEED) * RPM / node.settings.gear_ratio / node.step


def _request_torque(node: Node, torque: float) -> None:
    """Request a torque of the motor, which no polarity reverses, limited by 6072h and 6080h."""
    if abs(node.speed()) > _top_speed(node) and node.sense * torque * node.speed() > 0:
        torque, node.limited = 0.0, True
    bound = min(node.torque(node.value(_MAX_TORQUE)), node.motor.max_effort)
    node.requested = _clip(torque, bound)
    node.limited |= node.requested != torque
    node.motor.request(node.requested)


def _estimate_inertia(node: Node, step: float) -> None:
    """Estimate the inertia: recursive least squares over changes of torque and of acceleration from step to step, so
    that a slowly changing load has no effect."""
    torque, speed, change = node.last_step
    now = node.sense * node.speed() * node.step
    changed = (now - speed) / step
    torque_step, response = node.requested - torque, changed - change
    product, square = (FORGETTING * total for total in node.response)
    node.response = product + torque_step * response, square + torque_step * torque_step
    node.last_step = node.requested, now, changed


def _max_gain(node: Node, step: float) -> float:
    """The largest gain of the velocity loop [N·m·s/rad] that is stable at this step size with the estimated inertia."""
    product, square = node.response
    return GAIN_FRACTION * square / (product * step) if product > 0.0 < step else math.inf


def _velocity_loop(node: Node, commanded: float, offset: float, step: float) -> None:
    """The velocity loop (proportional and integral), with a torque offset."""
    speed = _clip(commanded, _top_speed(node))
    if _beyond_limit(node, speed):
        speed = 0.0
    node.limited |= speed != commanded
    gain = min(1e-6 * node.value(_VELOCITY_GAIN), _max_gain(node, step))
    error = (speed - node.speed()) * node.step
    bound = node.torque(node.value(_MAX_TORQUE))
    node.integral = _clip(node.integral + gain * error * step / (1e-3 * node.value(_INTEGRAL_TIME)), bound)
    _request_torque(node, node.sense * (gain * error + node.integral) + offset)


def _position_loop(node: Node, speed: float, offset: float, step: float) -> None:
    """The position loop, and the monitoring of the following error."""
    demand = min(max(node.demand, node.value(_LOWER)), node.value(_UPPER))
    node.limited |= demand != node.demand
    node.demand = demand
    error = demand - node.actual()
    window = node.value(_WINDOW)
    if window != NO_WINDOW and abs(error) > window:
        node.window_time += step
        node.bits |= profile.DEVIATION
        if node.window_time > 1e-3 * node.value(_TIME_OUT):
            state_machine.fault(node, faults.FOLLOWING)
            return
    else:
        node.window_time = 0.0
    _velocity_loop(node, node.value(_POSITION_GAIN) * error + speed, offset, step)


def _cyclic_torque(node: Node, step: float) -> None:
    node.bits = profile.SPECIFIC
    torque = node.torque(node.value(_TORQUE) + node.value(_TORQUE_OFFSET))
    if _beyond_limit(node, node.sense * torque):
        torque, node.limited = 0.0, True
    _request_torque(node, torque)


def _cyclic_velocity(node: Node, step: float) -> None:
    node.bits = profile.SPECIFIC
    node.rate = node.rate_of(_VELOCITY) + node.rate_of(_VELOCITY_OFFSET)
    _velocity_loop(node, node.rate, node.torque(node.value(_TORQUE_OFFSET)), step)


def _cyclic_position(node: Node, step: float) -> None:
    node.bits = profile.SPECIFIC
    period = node.value(_PERIOD) * 10.0 ** node.value(_PERIOD_INDEX)
    fraction = min(1.0, 1e-9 * (node.t_ns - node.target_ns) / period)
    node.demand = node.start + (node.goal - node.start) * fraction
    _position_loop(node, node.rate_of(_VELOCITY_OFFSET), node.torque(node.value(_TORQUE_OFFSET)), step)


def set_target(node: Node, position: int) -> None:
    """A new target position of the cyclic mode, interpolated linearly over the interpolation period."""
    node.start, node.goal, node.target_ns = node.demand, float(position), node.t_ns


def _approach(node: Node, step: float) -> None:
    """One step of a trapezoidal profile from demand to goal."""
    distance = node.goal - node.demand
    braking = math.sqrt(2.0 * node.rate_of(_DECELERATION) * abs(distance))
    top = math.copysign(min(node.rate_of(_PROFILE_VELOCITY), braking), distance)
    slower = abs(top) < abs(node.rate)
    node.rate = _towards(node.rate, top, node.rate_of(_DECELERATION if slower else _ACCELERATION) * step)
    if abs(distance) <= max(abs(node.rate) * step, 0.5):
        node.demand, node.rate = node.goal, 0.0
    else:
        node.demand += node.rate * step


def _profile_position(node: Node, step: float) -> None:
    _approach(node, step)
    node.bits = profile.SPECIFIC if node.control & profile.START else 0
    if node.demand == node.goal and abs(node.goal - node.actual()) <= node.value(_REACHED_WINDOW):
        node.bits |= profile.REACHED
    _position_loop(node, node.rate, 0.0, step)


def _profile_velocity(node: Node, step: float) -> None:
    target = node.rate_of(_VELOCITY)
    slower = abs(target) < abs(node.rate)
    node.rate = _towards(node.rate, target, node.rate_of(_DECELERATION if slower else _ACCELERATION) * step)
    window = node.rate_of(_VELOCITY_WINDOW)
    node.bits = profile.REACHED if abs(target - node.speed()) <= window else 0
    node.bits |= profile.SPECIFIC if abs(node.speed()) <= window else 0  # speed is zero
    _velocity_loop(node, node.rate, 0.0, step)


def _direction(method: int) -> float:
    """The direction of a homing method's search; 0 if it uses the present position."""
    if method in _IN_PLACE:
        return 0.0
    return -1.0 if method in _DOWNWARD else 1.0


def _homing(node: Node, step: float) -> None:
    method = node.value(_METHOD)
    if not node.homing:
        node.rate = _towards(node.rate, 0.0, node.rate_of(_HOMING_ACCELERATION) * step)
        _velocity_loop(node, node.rate, 0.0, step)
        return
    sense = _direction(method)
    raw = node.actual() + node.zero
    if sense and (node.goal - raw) * sense > 0:
        node.rate = _towards(node.rate, sense * node.rate_of(_SLOW), node.rate_of(_HOMING_ACCELERATION) * step)
        _velocity_loop(node, node.rate, 0.0, step)
        return
    if method:
        node.zero = (node.goal if sense else raw) - node.value(_HOME_OFFSET)
    node.homing, node.bits = False, profile.HOMED
    _velocity_loop(node, node.rate, 0.0, step)


def _no_torque(node: Node, step: float) -> None:
    node.bits = 0
    _request_torque(node, 0.0)


_MODES = {
    profile.PROFILE_POSITION: _profile_position,
    profile.PROFILE_VELOCITY: _profile_velocity,
    profile.HOMING: _homing,
    profile.CSP: _cyclic_position,
    profile.CSV: _cyclic_velocity,
    profile.CST: _cyclic_torque,
}


def change_mode(node: Node, mode: int) -> None:
    """Change the mode of operation; targets are the measured position, and no state of the previous mode remains."""
    if mode == node.mode:
        return
    node.mode, node.homing = mode, False
    node.bits = profile.REACHED if mode == profile.HOMING else 0  # not started
    node.start = node.goal = node.demand = node.actual()
    node.rate, node.window_time = node.speed(), 0.0


def start_procedures(node: Node, before: int) -> None:
    """After a controlword: a rising edge of bit 4 starts a positioning or homing, a falling edge aborts homing."""
    rising, falling = node.control & ~before & profile.START, before & ~node.control & profile.START
    if node.state != profile.ENABLED:
        return
    if node.mode == profile.PROFILE_POSITION and rising:
        start = node.goal if node.control & profile.RELATIVE else 0.0
        node.goal = min(max(start + node.value(_POSITION), node.value(_LOWER)), node.value(_UPPER))
        node.bits = profile.SPECIFIC  # acknowledged; the previous target is no longer reached
    elif node.mode == profile.HOMING and rising:
        turns = (node.actual() + node.zero) / node.cpr
        beyond = math.floor(turns) + 1 if _direction(node.value(_METHOD)) > 0 else math.ceil(turns) - 1
        node.goal, node.homing, node.bits = float(beyond * node.cpr), True, 0
    elif node.mode == profile.HOMING and falling and node.homing:
        node.homing, node.bits = False, profile.REACHED


def _brake(node: Node, step: float) -> None:
    """Decelerate on a ramp: quick stop, fault reaction and halt; their option selects the ramp."""
    quick, reaction, halt = _RAMP_OPTIONS
    key = {profile.QUICK_STOP: quick, profile.REACTING: reaction}.get(node.state, halt)
    slope = node.rate_of(_QUICK_DECELERATION if node.value(key) in (2, 6) else _DECELERATION)
    node.rate = _towards(node.rate, 0.0, slope * step)
    node.demand = node.goal = node.start = node.actual()
    node.bits = 0
    _velocity_loop(node, node.rate, 0.0, step)
    if node.rate == 0.0:
        node.braking += step
        slow = abs(node.speed()) <= node.rate_of(_VELOCITY_WINDOW)
        if slow or node.braking > STOP_TIMEOUT:
            if state_machine.halted(node):
                node.bits = profile.REACHED
            state_machine.ramp_ended(node)


def run(node: Node, step: float) -> None:
    """One step of the present state and mode; without power the demand follows the motor."""
    node.limited = False
    node.motor.enabled = node.state in state_machine.POWERED
    if step > 0.0:
        _estimate_inertia(node, step)
    if node.state not in state_machine.POWERED:
        node.demand = node.goal = node.start = node.actual()
        node.requested = 0.0
        node.motor.request(0.0)
    elif node.state != profile.ENABLED or state_machine.halted(node):
        _brake(node, step)
    else:
        _MODES.get(node.mode, _no_torque)(node, step)
