"""Limits and losses of joints that look as if they were written in another unit than the SI.

The bounds hold for the robot files that are published, whose limits are often stand-ins for none, such as 1000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cosim.core.units import TURN
from cosim.mechanics.multibody.description.doubts import is_stand_in, line_about
from cosim.mechanics.multibody.mechanism import Joint

DEGREES = 30.0, 720.0  # sizes of angles that are written in degrees
FASTEST = 50.0  # rad/s of a hinge with a range, beyond which whole numbers look like degrees/s
FASTEST_OF_ALL = 100.0, 2000.0  # the same of any number, and up to which it may be one in degrees/s
PART_OF_A_TURN = 5e-3  # rad: what a number of half turns may be off
FASTEST_SLIDE = 20.0  # sizes of the robot per second, beyond which they look like mm/s
ROUND = 5.0  # degrees/s, of which such numbers are multiples
FARTHEST = 50.0  # travel of a slide per size of its robot
WHOLE_TRAVEL = 15.0, 20.0  # the same, and m, of a slide whose limits are whole numbers
STRONGEST = 50.0  # torque per moment of the robot's weight at its whole size
WHOLE_TORQUE = 1000.0  # N m: an effort in N mm is at least this number
MOST_POWER = 200.0  # W of one joint per kg of the robot
MOST_DAMPED = 50.0  # torque of the damper at the fastest motion per effort limit
GRAVITY = 9.81  # m/s²
ROTATIONAL = "revolute", "continuous"  # kinds


def doubtful_hinges(joints: Sequence[Joint]) -> Iterator[str]:
    """What holds whatever the size of the robot: ranges and velocities in degrees, friction that nothing overcomes."""
    hinges = [joint for joint in joints if joint.kind == "revolute"]
    spindles = {joint.mimic.joint for joint in joints if joint.mimic is not None and joint.kind == "prismatic"}
    if found := [joint for joint in hinges if joint.name not in spindles and _range_in_degrees(joint)]:
        bounds = _bounds(found[0])
        turns = max(map(abs, bounds)) / TURN
        what = f"its limits of {' and '.join(f'{bound:g}' for bound in bounds)} rad are up to {turns:.3g} turns"
        yield line_about(found, f"{what}; they look like degrees")
    fast = [
        joint
        for joint in joints
        if joint.kind in ROTATIONAL
        and (_looks_whole(joint.max_velocity, FASTEST) or (joint in hinges and _turns_too_fast(joint)))
    ]
    if not any(joint in hinges and _bounds(joint) for joint in fast):
        fast = []  # wheels and propellers are as fast
    if fast:
        speed = fast[0].max_velocity
        what = f"its velocity limit of {speed:g} rad/s is {speed / TURN:.3g} turns a second"
        yield line_about(fast, f"{what}; it looks like degrees/s, in rad/s it is {math.radians(speed):.4g}")
    if found := [joint for joint in joints if joint.friction > joint.max_effort > 0.0]:
        what = f"its friction of {found[0].friction:g} is above its effort limit of {found[0].max_effort:g}"
        yield line_about(found, f"{what}, it never moves; check the units of both")
    if found := [
        joint for joint in joints if joint not in fast and _drag(joint) > MOST_DAMPED * joint.max_effort > 0.0
    ]:
        first = found[0]
        what = f"its damping of {first.damping:g} takes {_drag(first):.4g} at the velocity limit"
        yield line_about(found, f"{what}, the effort limit is {first.max_effort:g}; check the units of the three")


def doubtful_drives(joints: Sequence[Joint], size: float, mass: float) -> Iterator[str]:
    """Travel, speed and effort beside the robot. size: of the robot [m]; mass [kg]."""
    slides = [joint for joint in joints if joint.kind == "prismatic"]
    if found := [joint for joint in slides if _range_in_millimetres(joint, size)]:
        bounds = " and ".join(f"{bound:g}" for bound in _bounds(found[0]))
        yield line_about(found, f"its limits of {bounds} m are beyond a robot of {size:.4g} m; they look like mm")
    if found := [joint for joint in slides if _looks_whole(joint.max_velocity, FASTEST_SLIDE * size)]:
        what = f"its velocity limit of {found[0].max_velocity:g} m/s is beyond a robot of {size:.4g} m"
        yield line_about(found, f"{what}; it looks like mm/s")
    weight = mass * GRAVITY * size
    strong = [
        joint for joint in joints if joint.kind in ROTATIONAL and _looks_whole(joint.max_effort, WHOLE_TORQUE, 1.0)
    ]
    if found := [joint for joint in strong if joint.max_effort > STRONGEST * weight]:
        times = found[0].max_effort / weight
        what = f"its effort limit of {found[0].max_effort:g} N m lifts {times:.0f} times the robot at its whole size"
        yield line_about(found, f"{what}; it looks like N mm")
    elif found := [joint for joint in strong if _power(joint) > MOST_POWER * mass]:
        what = f"its limits of effort and velocity are {_power(found[0]) / 1e3:.0f} kW in a robot of {mass:.4g} kg"
        yield line_about(found, f"{what}; the effort of {found[0].max_effort:g} N m looks like N mm")


def _bounds(joint: Joint) -> list[float]:
    return [bound for bound in (joint.lower, joint.upper) if math.isfinite(bound)]


def _range_in_degrees(joint: Joint) -> bool:
    bounds = _bounds(joint)
    largest = max(map(abs, bounds), default=0.0)
    in_turns = all(abs(math.remainder(bound, 0.5 * TURN)) < PART_OF_A_TURN for bound in bounds)
    return DEGREES[0] <= largest <= DEGREES[1] and not in_turns and not _no_range(joint)


def _turns_too_fast(joint: Joint) -> bool:
    """Whether a hinge with a range is faster than any, and its limit none that stands for no limit, such as 999."""
    speed, (least, most) = joint.max_velocity, FASTEST_OF_ALL
    stands_in = is_stand_in(speed) or is_stand_in(speed + 1.0)
    return least < speed < most and bool(_bounds(joint)) and not stands_in


def _range_in_millimetres(joint: Joint, size: float) -> bool:
    bounds = _bounds(joint)
    largest = max(map(abs, bounds), default=0.0)
    whole = all(bound.is_integer() for bound in bounds)
    beyond, least = WHOLE_TRAVEL
    far = largest > FARTHEST * size or (whole and largest > beyond * size and largest >= least)
    return far and not _no_range(joint)


def _no_range(joint: Joint) -> bool:
    """±100 and the like stand for no range."""
    return joint.lower == -joint.upper and is_stand_in(joint.upper)


def _looks_whole(value: float, least: float, step: float = ROUND) -> bool:
    """Whether a limit above `least` is a multiple of a step, and none that stands for no limit."""
    return math.isfinite(value) and value > least and (value / step).is_integer() and not is_stand_in(value)


def _speed(joint: Joint) -> float:
    """The velocity limit; 0 where there is none or one that stands for none."""
    speed = joint.max_velocity
    return speed if math.isfinite(speed) and (speed <= 1.0 or not is_stand_in(speed)) else 0.0


def _drag(joint: Joint) -> float:
    """Force or torque of the damper at the velocity limit."""
    return joint.damping * _speed(joint) if math.isfinite(joint.max_effort) else 0.0


def _power(joint: Joint) -> float:
    return joint.max_effort * _speed(joint)
