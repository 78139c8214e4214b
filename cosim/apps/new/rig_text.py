"""The text of a first rig: YAML with comments that explain every figure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from textwrap import wrap

from cosim.apps.new.feet import Foot
from cosim.apps.new.plan import DELAY, DURATION, JointPlan, Plan, motor_keys
from cosim.core.errors import listed, one_line
from cosim.mechanics.multibody.contact.shapes import BallShape
from cosim.mechanics.multibody.mechanism import ROOT_JOINT

PLAIN = re.compile(r"[A-Za-z_./][\w./-]*")
WORDS = {"null", "true", "false", "yes", "no", "y", "n", "on", "off"}  # YAML readers take them for values
WIDTH = 120  # of comments
DEFAULT_INTEGRATOR = "rk4"
STIFF_COMMENT = "  # implicit, for the strong friction of light joints"


@dataclass(frozen=True)
class ModelSource:
    """Where the mechanism comes from: its keys in the section `mechanism`, whether the base is free, the gravity of
    the file [m/s²], how many actuators of it the rig could have and does not take, feet on which it could stand, and
    the height of its base then [m]."""

    keys: Mapping[str, str | Mapping[str, str] | list[str]]
    floating: bool
    gravity: tuple[float, float, float] | None = None
    actuators: int = 0
    feet: tuple[Foot, ...] = ()
    height: float | None = None


def rig_text(plan: Plan, source: ModelSource) -> str:
    """The rig of a plan."""
    return "\n".join([*_head(plan), "", *_mechanism(plan, source), *_joints(plan), *_end(plan, bool(source.feet)), ""])


def yaml_text(text: str) -> str:
    """The text as YAML, in quotes where it needs them."""
    return text if PLAIN.fullmatch(text) and text.lower() not in WORDS else json.dumps(text, ensure_ascii=False)


def _head(plan: Plan) -> Iterator[str]:
    name = one_line(plan.mechanism.name)
    yield f"# A first rig for {name}, written by `cosim new`. Every value may be changed."
    idle = "No joint has a drive." if plan.loops else "Nothing holds the robot."
    what = "Every joint moves a little and returns." if plan.actuated else idle
    yield f"description: {what}"


def _mechanism(plan: Plan, source: ModelSource) -> Iterator[str]:
    yield "mechanism:"
    for key, value in source.keys.items():
        if isinstance(value, str):
            yield f"  {key}: {yaml_text(value)}"
        elif isinstance(value, list):
            yield f"  {key}: [{', '.join(map(yaml_text, value))}]"
        else:
            pairs = (f"{yaml_text(name)}: {json.dumps(text)}" for name, text in value.items())
            yield f"  {key}: {{{', '.join(pairs)}}}"
    if source.gravity is not None:
        yield f"  gravity: [{', '.join(f'{g:.9g}' for g in source.gravity)}]  # m/s^2, of the file"
    if "urdf" not in source.keys:
        yield from _contacts(source)
        return
    if source.floating:
        yield f"  floating_base: true  # joint '{ROOT_JOINT}': nothing holds the base, so it falls"
        yield from _contacts(source)
    else:
        root = one_line(plan.mechanism.root)
        yield f"  # The base '{root}' is fixed to the ground; 'floating_base: true' makes it free."


def _contacts(source: ModelSource) -> Iterator[str]:
    """Of the feet with the ground, as comments."""
    if not source.feet:
        return
    yield "  # Contacts of its lowest links with the ground, for a robot that is to stand on them:"
    yield "  # contacts:"
    for foot in source.feet:
        at = ", ".join(f"{x:.6g}" for x in foot.at)
        names = f"name: {yaml_text(foot.name)}, link: {yaml_text(foot.link)}"
        of = "of the file" if foot.given else "chosen: the file has no sphere or box"
        yield f"  #   - {{{names}, {_shape(foot)}, at: [{at}], with: ground}}  # {of}"
    yield "  # ground: {friction: 0.7}"
    if source.height is not None:
        yield "  # Without a start of its own the base is in the ground. Under 'joints', with its feet on the ground:"
        yield f"  #   {ROOT_JOINT}: {{initial: {{position: [0, 0, {source.height:.6g}, 0, 0, 0, 1]}}}}"


def _shape(foot: Foot) -> str:
    if isinstance(foot.shape, BallShape):
        return f"sphere: {float(foot.shape.radius) * 1e3:.6g} mm"
    return f"box: [{', '.join(f'{float(edge):.6g}' for edge in foot.shape.size)}]"


def _joints(plan: Plan) -> Iterator[str]:
    if not plan.joints and not plan.held:
        return
    yield ""
    for line in plan.loops:
        yield from wrap(f"{one_line(line)}.", WIDTH, initial_indent="# ", subsequent_indent="#   ")
    if len(plan.actuated) < len(plan.moving):
        yield "# Joints without an actuator follow the actuated ones of their loop; a 'guess' is where the loop closes."
    motors = [joint.rotor > 0.0 for joint in plan.actuated if joint.of_file is None]
    if not all(motors):
        yield "# An ideal actuator gives the commanded effort; 'dc_motor' adds motor, gear and current loop."
    if any(motors):
        yield "# A dc_motor here reaches the effort limit at the velocity limit; put in the data of your motors."
    if any(motors) and not all(motors):
        yield "# Joints with strong friction have one, because friction that meets no rotor inertia needs tiny steps."
    yield "# Limits that are not given here come from the robot file, and are in the comment of the joint."
    yield "joints:"
    for name in plan.held:
        yield f"  {yaml_text(name)}: {{latched: true}}  # several dofs, no actuator: held; without this line it is free"
    for joint in plan.joints:
        yield from _joint(joint)


def _joint(plan: JointPlan) -> Iterator[str]:
    yield f"  {yaml_text(plan.name)}:  # {_given(plan)}"
    if plan.locked:
        yield f"    initial: {{position: {_position(plan, plan.start)}}}"
        yield "    latched: true  # the file has no range: locked"
        yield from _limits(plan)
        return
    if plan.passive:
        if plan.idle:
            names = listed([repr(one_line(name)) for name in plan.idle])
            yield f"    actuator: null  # {names} of the file would work against the drives of the loop"
        yield f"    initial: {{guess: {_position(plan, plan.start)}}}"
        yield from _limits(plan)
        return
    effort = f"{plan.effort.value:.6g} {plan.usual.effort_unit}"
    if plan.of_file is not None:
        follows = "" if plan.follows == "effort" else f", follows the {plan.follows} of the reference"
        yield f"    # actuator '{one_line(plan.of_file.name)}' of the file: {plan.of_file.type}{follows}"
    elif not plan.rotor:
        yield f"    actuator: {{type: ideal, max_effort: {effort}}}"
    else:
        keys = [
            f"{key}: {value}"
            for key, value in motor_keys(plan.effort.value, plan.velocity.value, plan.rotor, plan.ratio).items()
        ]
        yield f"    actuator: {{type: dc_motor, {', '.join(keys[:3])},"
        yield f"               {', '.join(keys[3:])}}}"
    yield f"    initial: {{position: {_position(plan, plan.start)}}}" + _start_comment(plan)
    yield from _limits(plan)


def _given(plan: JointPlan) -> str:
    """What the robot file has of a joint, as a comment."""
    joint, usual = plan.joint, plan.usual
    parts = [joint.kind]
    if isfinite(joint.lower) or isfinite(joint.upper):
        lower, upper = (f"{bound / usual.factor:.5g}" for bound in (joint.lower, joint.upper))
        parts.append(f"{lower} to {upper} {usual.shown}")
    if isfinite(joint.max_velocity):
        parts.append(f"{joint.max_velocity / usual.factor:.4g} {usual.shown}/s")
    if isfinite(joint.max_effort):
        parts.append(f"{joint.max_effort:.4g} {usual.effort_unit}")
    if plan.ratio is not None:
        parts.append(f"gear {plan.ratio:.6g}:1")
    return ", ".join(parts)


def _start_comment(plan: JointPlan) -> str:
    if plan.given:
        return "  # as the robot file has it"
    return "" if plan.start == 0.0 else "  # 0 is outside the limits or too close to one"


def _limits(plan: JointPlan) -> Iterator[str]:
    if not plan.replaced:
        return
    yield "    limits:"
    shown = f"{plan.usual.shown}/s"
    for key, figure in plan.replaced.items():
        value = {
            "velocity": f"{figure.value / plan.usual.factor:.6g} {shown}",
            "effort": f"{figure.value:.6g} {plan.usual.effort_unit}",
        }.get(key) or _position(plan, figure.value)
        yield f"      {key}: {value}  # {figure.reason}"


def _position(plan: JointPlan, value: float) -> str:
    return f"{value / plan.usual.factor:.9g} {plan.usual.shown}"


def _end(plan: Plan, with_feet: bool) -> Iterator[str]:
    if plan.actuated:
        yield from _controller(plan)
    yield ""
    yield "schedule:"
    yield f"  step: {plan.step * 1e3:.6g} ms"
    yield f"  duration: {plan.duration:g} s"
    if not (with_feet and plan.integrator == DEFAULT_INTEGRATOR):  # contacts have a default of their own
        yield f"  integrator: {plan.integrator}" + STIFF_COMMENT * (plan.integrator != DEFAULT_INTEGRATOR)


def _controller(plan: Plan) -> Iterator[str]:
    """Joints whose actuators follow the reference get it as it is, the others are controlled by their efforts."""
    following = [joint for joint in plan.actuated if joint.follows != "effort"]
    others = [joint for joint in plan.actuated if joint.follows == "effort"]
    yield ""
    yield "controllers:"
    if others:
        yield from _motion("motion", "computed_torque", others, plan)
        yield f"    bandwidth: {plan.bandwidth:g} Hz  # of every joint; the model supplies the inertia"
        yield "    damping: 1"
        yield from _trajectory(others)
    if following:
        yield from _motion("reference", "passthrough", following, plan)
        yield "    kp: 1  # has no effect: the actuators follow the reference with gains of their own"
        yield from _trajectory(following)


def _motion(name: str, type: str, joints: Sequence[JointPlan], plan: Plan) -> Iterator[str]:
    yield f"  - name: {name}"
    yield f"    type: {type}"
    if len(joints) < len(plan.joints):
        yield f"    joints: [{', '.join(yaml_text(joint.name) for joint in joints)}]"


def _trajectory(joints: Sequence[JointPlan]) -> Iterator[str]:
    yield "    trajectory:"
    yield "      type: quintic"
    yield f"      duration: {DURATION:g} s"
    yield f"      delay: {DELAY:g} s"
    yield "      back: true"
    yield "      goal:"
    for joint in joints:
        yield f"        {yaml_text(joint.name)}: {_position(joint, joint.goal)}"
