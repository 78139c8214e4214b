"""Robots whose first rig would have more values than a rig may have: they are refused before anything is planned."""

from __future__ import annotations

from cosim.apps.new.plan import Actuators
from cosim.core.errors import InputError
from cosim.mechanics.multibody.joints import kind_of
from cosim.mechanics.multibody.mechanism import Mechanism
from cosim.rig.reading.yaml_values import MOST_VALUES

OF_ANY = 3  # values of a joint in the rig: itself, `initial` and its position
OF_MOVED = 4  # with the goal
OF_ACTUATED = 7  # with `actuator`, its type and its effort too


def check_number_of_joints(mechanism: Mechanism, robot: str, actuator: Actuators) -> None:
    """Raise InputError for a robot of so many joints that even the least values of each are too many."""
    moving = [joint for joint in mechanism.joints if joint.mimic is None and joint.kind != "fixed"]
    single = [joint for joint in moving if kind_of(joint).is_single]
    unlocked = sum(joint.lower < joint.upper for joint in single)
    each = OF_ACTUATED if actuator != "file" else OF_MOVED
    if mechanism.loops or mechanism.constraints:  # whose joints may be passive
        each = OF_ANY
    if each * unlocked + OF_ANY * (len(single) - unlocked) > MOST_VALUES:
        raise too_large(robot, len(moving))


def too_large(robot: str, moving: int) -> InputError:
    what = f"its {moving:,} joints that move need more than the {MOST_VALUES:,} values that a rig may have"
    fix = "make joints that need not move fixed, or write a rig with 'joints: all:' for what all of them have"
    return InputError(f"{what}; {fix}", robot)
