"""The control loops of the emulated drive: position over velocity over torque, profiles, homing, ramps to a stop.

Called every step of the physics; a step is in s, positions in counts, speeds in counts/s, torques in N·m.
"""

from __future__ import annotations

import math

from cosim.drivers.cia402 import faults, profile
from cosim.drivers.cia402.device import machine
from cosim.drivers.cia402.device.node import Node
from cosim.units import RPM

_TORQUE, _MAX_TORQUE, _TORQUE_OFFSET, _VELOCITY_OFFSET = 0x607100, 0x607200, 0x60B200, 0x60B100
_POSITION, _VELOCITY, _LOWER, _UPPER, _MAX_SPEED = 0x607A00, 0x60FF00, 0x607D01, 0x607D02, 0x608000
_WINDOW, _TIME_OUT, _REACHED_WINDOW, _VELOCITY_WINDOW = 0x606500, 0x606600, 0x606700, 0x606D00
_PROFILE_VELOCITY, _ACCELERATION, _DECELERATION, _QUICK_DECELERATION = 0x608100, 0x608300, 0x608400, 0x608500
_VELOCITY_GAIN, _INTEGRAL_TIME, _POSITION_GAIN = 0x60F901, 0x60F902, 0x60FB01
_METHOD, _HOME_OFFSET, _SLOW, _HOMING_ACCELERATION = 0x609800, 0x607C00, 0x609902, 0x609A00
_PERIOD, _PERIOD_INDEX, _RAMP_OPTIONS = 0x60C201, 0x60C202, (0x605A00, 0x605E00, 0x605D00)
# this drive has no switches and no stops: what a homing method seeks is at the next index pulse in its direction
_IN_PLACE, _DOWNWARD = (0, 35, 37), (-3, -1, 1, 5, 6, 11, 12, 13, 14, 17, 21, 22, 27, 28, 29, 30, 33)
NO_WINDOW = 0xFFFFFFFF
FORGET = 0.98  # share of what was learnt of the motor that is left after a step
STEADY = 0.4  # of the gain at which the velocity would be mended in one step
PATIENCE = 0.5  # s after the end of a ramp before the motor is let go though it still turns


def _clip(value: float, bound: float) -> float:
    return min(max(value, -bound), bound)


def _towards(value: float, target: float, change: float) -> float:
    return value + _clip(target - value, change)


def _outward(node: Node, sense: float) -> bool:
    """Whether the motor is at or past a software limit and `sense` leads further out."""
    actual = node.actual()
    return (sense > 0 and actual >= node.value(_UPPER)) or (sense < 0 and actual <= node.value(_LOWER))


def _top_speed(node: Node) -> float:
    return node.value(_MAX_SPEED) * RPM / node.step


def _give(node: Node, torque: float) -> None:
    """Ask the motor for what is left of a torque after 6072h, 6080h and the software position limits."""
    if abs(node.speed()) > _top_speed(node) and torque * node.speed() > 0:
        torque, node.limited = 0.0, True
    bound = min(node.torque(node.value(_MAX_TORQUE)), node.motor.max_effort)
    node.asked = _clip(torque, bound)
    node.limited |= node.asked != torque
    node.motor.request(node.asked)


def _feel(node: Node, step: float) -> None:
    """Learn how much the motor's acceleration changes with its torque: least squares over the last steps, in which
    the load, that changes slowly, does not count."""
    torque, speed, change = node.before
    now = node.speed() * node.step
    changed = (now - speed) / step
    push, answer = node.asked - torque, changed - change
    both, square = (FORGET * total for total in node.response)
    node.response = both + push * answer, square + push * push
    node.before = node.asked, now, changed


def _bearable(node: Node, step: float) -> float:
    """The largest gain of the velocity loop [N·m·s/rad] that does not make a light motor swing from step to step."""
    both, square = node.response
    return STEADY * square / (both * step) if both > 0.0 < step else math.inf


def _turn(node: Node, wanted: float, offset: float, step: float) -> None:
    """The velocity loop (proportional and integral), with an offset of torque."""
    speed = _clip(wanted, _top_speed(node))
    if _outward(node, speed):
        speed = 0.0
    node.limited |= speed != wanted
    gain = min(1e-6 * node.value(_VELOCITY_GAIN), _bearable(node, step))
    error = (speed - node.speed()) * node.step
    bound = node.torque(node.value(_MAX_TORQUE))
    node.integral = _clip(node.integral + gain * error * step / (1e-3 * node.value(_INTEGRAL_TIME)), bound)
    _give(node, gain * error + node.integral + offset)


def _hold(node: Node, speed: float, offset: float, step: float) -> None:
    """The position loop, and the watch over the following error."""
    demand = min(max(node.demand, node.value(_LOWER)), node.value(_UPPER))
    node.limited |= demand != node.demand
    node.demand = demand
    error = demand - node.actual()
    window = node.value(_WINDOW)
    if window != NO_WINDOW and abs(error) > window:
        node.late += step
        node.bits |= profile.DEVIATION
        if node.late > 1e-3 * node.value(_TIME_OUT):
            machine.fault(node, faults.FOLLOWING)
            return
    else:
        node.late = 0.0
    _turn(node, node.value(_POSITION_GAIN) * error + speed, offset, step)


def _cyclic_torque(node: Node, step: float) -> None:
    node.bits = profile.SPECIFIC
    torque = node.torque(node.value(_TORQUE) + node.value(_TORQUE_OFFSET))
    if _outward(node, torque):
        torque, node.limited = 0.0, True
    _give(node, torque)


def _cyclic_velocity(node: Node, step: float) -> None:
    node.bits = profile.SPECIFIC
    node.rate = float(node.value(_VELOCITY) + node.value(_VELOCITY_OFFSET))
    _turn(node, node.rate, node.torque(node.value(_TORQUE_OFFSET)), step)


def _cyclic_position(node: Node, step: float) -> None:
    node.bits = profile.SPECIFIC
    period = node.value(_PERIOD) * 10.0 ** node.value(_PERIOD_INDEX)
    share = min(1.0, 1e-9 * (node.t_ns - node.begun) / period)
    node.demand = node.begin + (node.goal - node.begin) * share
    _hold(node, float(node.value(_VELOCITY_OFFSET)), node.torque(node.value(_TORQUE_OFFSET)), step)


def aim(node: Node, position: int) -> None:
    """A target position of the cyclic mode came: it is reached on a straight line within the interpolation period."""
    node.begin, node.goal, node.begun = node.demand, float(position), node.t_ns


def _approach(node: Node, step: float) -> None:
    """One step of a trapezoidal profile from demand to goal."""
    way = node.goal - node.demand
    braking = math.sqrt(2.0 * node.value(_DECELERATION) * abs(way))
    top = math.copysign(min(node.value(_PROFILE_VELOCITY), braking), way)
    slower = abs(top) < abs(node.rate)
    node.rate = _towards(node.rate, top, node.value(_DECELERATION if slower else _ACCELERATION) * step)
    if abs(way) <= max(abs(node.rate) * step, 0.5):
        node.demand, node.rate = node.goal, 0.0
    else:
        node.demand += node.rate * step


def _profile_position(node: Node, step: float) -> None:
    _approach(node, step)
    node.bits = profile.SPECIFIC if node.control & profile.START else 0
    if node.demand == node.goal and abs(node.goal - node.actual()) <= node.value(_REACHED_WINDOW):
        node.bits |= profile.REACHED
    _hold(node, node.rate, 0.0, step)


def _profile_velocity(node: Node, step: float) -> None:
    target = node.value(_VELOCITY)
    slower = abs(target) < abs(node.rate)
    node.rate = _towards(node.rate, target, node.value(_DECELERATION if slower else _ACCELERATION) * step)
    window = node.value(_VELOCITY_WINDOW)
    node.bits = profile.REACHED if abs(target - node.speed()) <= window else 0
    node.bits |= profile.SPECIFIC if abs(node.speed()) <= window else 0  # speed is zero
    _turn(node, node.rate, 0.0, step)


def _sense(method: int) -> float:
    """The direction in which a homing method seeks; 0 where it takes the position as it is."""
    if method in _IN_PLACE:
        return 0.0
    return -1.0 if method in _DOWNWARD else 1.0


def _homing(node: Node, step: float) -> None:
    method = node.value(_METHOD)
    if not node.homing:
        node.rate = _towards(node.rate, 0.0, node.value(_HOMING_ACCELERATION) * step)
        _turn(node, node.rate, 0.0, step)
        return
    sense = _sense(method)
    raw = node.actual() + node.zero
    if sense and (node.goal - raw) * sense > 0:
        node.rate = _towards(node.rate, sense * node.value(_SLOW), node.value(_HOMING_ACCELERATION) * step)
        _turn(node, node.rate, 0.0, step)
        return
    if method:
        node.zero = (node.goal if sense else raw) - node.value(_HOME_OFFSET)
    node.homing, node.bits = False, profile.HOMED
    _turn(node, node.rate, 0.0, step)


def _relax(node: Node, step: float) -> None:
    node.bits = 0
    _give(node, 0.0)


_MODES = {
    profile.PROFILE_POSITION: _profile_position,
    profile.PROFILE_VELOCITY: _profile_velocity,
    profile.HOMING: _homing,
    profile.CSP: _cyclic_position,
    profile.CSV: _cyclic_velocity,
    profile.CST: _cyclic_torque,
}


def switch(node: Node, mode: int) -> None:
    """Another mode of operation: from standing targets, with nothing left of the old one."""
    if mode == node.mode:
        return
    node.mode, node.homing = mode, False
    node.bits = profile.REACHED if mode == profile.HOMING else 0  # not started
    node.begin = node.goal = node.demand = node.actual()
    node.rate, node.late = node.speed(), 0.0


def edge(node: Node, before: int) -> None:
    """A controlword was taken over: bit 4 starts a positioning or a homing, and its fall breaks the homing off."""
    rising, falling = node.control & ~before & profile.START, before & ~node.control & profile.START
    if node.state != profile.ENABLED:
        return
    if node.mode == profile.PROFILE_POSITION and rising:
        start = node.goal if node.control & profile.RELATIVE else 0.0
        node.goal = min(max(start + node.value(_POSITION), node.value(_LOWER)), node.value(_UPPER))
        node.bits = profile.SPECIFIC  # acknowledged, and no longer where it was to go before
    elif node.mode == profile.HOMING and rising:
        turns = (node.actual() + node.zero) / node.counts
        beyond = math.floor(turns) + 1 if _sense(node.value(_METHOD)) > 0 else math.ceil(turns) - 1
        node.goal, node.homing, node.bits = float(beyond * node.counts), True, 0
    elif node.mode == profile.HOMING and falling and node.homing:
        node.homing, node.bits = False, profile.REACHED


def _brake(node: Node, step: float) -> None:
    """Down a ramp to a stop: quick stop, fault reaction and halt; the option says which ramp."""
    quick, reaction, halt = _RAMP_OPTIONS
    key = {profile.QUICK_STOP: quick, profile.REACTING: reaction}.get(node.state, halt)
    slope = node.value(_QUICK_DECELERATION if node.value(key) in (2, 6) else _DECELERATION)
    node.rate = _towards(node.rate, 0.0, slope * step)
    node.demand = node.goal = node.begin = node.actual()
    node.bits = 0
    _turn(node, node.rate, 0.0, step)
    if node.rate == 0.0:
        node.braking += step
        slow = abs(node.speed()) <= node.value(_VELOCITY_WINDOW)
        if slow or node.braking > PATIENCE:
            if machine.halted(node):
                node.bits = profile.REACHED
            machine.stopped(node)


def run(node: Node, step: float) -> None:
    """One step of what the state and the mode ask for; without power the demand follows the motor."""
    node.limited = False
    if step > 0.0:
        _feel(node, step)
    if node.state not in machine.POWERED:
        node.demand = node.goal = node.begin = node.actual()
        node.asked = 0.0
        node.motor.request(0.0)
    elif node.state != profile.ENABLED or machine.halted(node):
        _brake(node, step)
    else:
        _MODES.get(node.mode, _relax)(node, step)
