"""What a robot file states of the joints of a rig: their start, limits and actuators, and doubts about these."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from cosim.core.errors import listed, plural
from cosim.mechanics.multibody.description.robot_file import NamedState, RobotFile
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.dofs import Dofs
from cosim.rig.sections.joints import JointSpec
from cosim.rig.sections.mechanism import MechanismSpec
from cosim.rig.sections.robot_file import able, joints_named

Settings = Mapping[str, YamlValue]


def settings_with_file(settings: Settings, spec: MechanismSpec | None, dofs: Dofs | None) -> dict[str, YamlValue]:
    """The section `joints`, with what the robot file gives where the section does not."""
    found = dict(settings)
    if spec is None or spec.file is None or dofs is None:
        return found
    common = settings.get("all")
    of_all = common if isinstance(common, dict) else {}

    def add(name: str, key: str, value: dict[str, YamlValue]) -> bool:
        """Whether the rig gives nothing itself, so that the value acts."""
        own = found.get(name)
        own = {} if own is None else own
        if isinstance(own, dict) and not any(
            k in own or (k in of_all and k != "prescribed") for k in (key, "prescribed")
        ):
            found[name] = {**own, key: value}
            return True
        return False

    def add_limits(name: str, limits: Mapping[str, float]) -> None:
        """Those that the rig does not give, key by key, as it is with `all`."""
        own = found.get(name)
        own = {} if own is None else own
        if isinstance(own, dict) and "prescribed" not in own:
            given, common = own.get("limits"), of_all.get("limits")
            given, common = ({} if each is None else each for each in (given, common))
            if isinstance(given, dict) and isinstance(common, dict):
                new = {key: bound for key, bound in limits.items() if key not in common}
                found[name] = {**own, "limits": {**new, **given}}

    moving = {name for name, joint in dofs.single.items() if joint.mimic is None and joint.kind != "fixed"}
    if spec.start is not None:
        closes = bool(spec.description.loops or spec.description.constraints)
        for name in dict.fromkeys([*spec.start.positions, *spec.start.velocities]):
            if name in dofs.multi_dof_joints:
                add(name, "initial", _initial_of_several(spec.start, name))
            elif name in moving:
                add(name, "initial", _initial(spec.start, name, "guess" if closes else "position"))
    for name, limits in spec.file.limits.items():
        if name in moving:
            add_limits(name, limits)
    for actuator in able(spec.file) if spec.drives else ():
        (name,) = actuator.joints
        if (
            name in moving
            and add(name, "actuator", {"type": actuator.type, **actuator.keys})
            and name in spec.file.efforts
        ):
            add_limits(name, {"effort": max(map(abs, spec.file.efforts[name]))})  # the actuator has both
    return found


def _initial(state: NamedState, name: str, key: str) -> dict[str, YamlValue]:
    """Of a joint of one coordinate."""
    given = (key, state.positions.get(name)), ("velocity", state.velocities.get(name))
    return {key: values[0] for key, values in given if values is not None}


def _initial_of_several(state: NamedState, name: str) -> dict[str, YamlValue]:
    given = ("position", state.positions.get(name)), ("velocity", state.velocities.get(name))
    return {key: list(values) for key, values in given if values is not None}


def with_doubts(spec: MechanismSpec, joints: Mapping[str, JointSpec], settings: Settings) -> MechanismSpec:
    """With warnings of actuators of the robot file that do not act, and of limits that it gives for one direction.
    settings: the section `joints`, where `actuator: null` states that a joint is to have none."""
    if spec.file is None:
        return spec
    bare = {name for name, own in settings.items() if isinstance(own, dict) and own.get("actuator", "") is None}
    return replace(spec, doubts=(*_one_sided(spec, spec.file, joints), *_idle(spec, spec.file, joints, bare)))


def _one_sided(spec: MechanismSpec, file: RobotFile, joints: Mapping[str, JointSpec]) -> Iterator[str]:
    for name, (lower, upper) in file.efforts.items():
        joint = joints.get(name)
        if joint is None or spec.drives or joint.actuator is None:
            continue
        what = f"joint '{name}': its effort is limited to {lower:.6g} to {upper:.6g}, here to"
        limit = joint.limits["effort"]
        yield f"{spec.urdf} {what} {limit:.6g} in both directions; give its actuator or mechanism.actuators: file"


def _idle(
    spec: MechanismSpec, file: RobotFile, joints: Mapping[str, JointSpec], bare: Collection[str]
) -> Iterator[str]:
    """Of actuators that do not act, and whose joints nothing drives. bare: joints that are to have none."""
    if spec.drives:
        yield from (f"{each.place}: it is not taken: {each.lost}" for each in file.actuators if each.lost)
        return
    moved = {name for name, joint in joints.items() if joint.actuator or joint.prescribed or joint.latched}
    still = set(joints).difference(moved, bare)
    idle = [actuator for actuator in file.actuators if still.intersection(actuator.joints) or not actuator.joints]
    if not idle:
        return
    names = list(dict.fromkeys(name for actuator in idle for name in actuator.joints if name in still))
    what = f"the {plural(len(idle), 'actuator')} {listed([repr(actuator.name) for actuator in idle])} of the robot file"
    verb = "does not act" if len(idle) == 1 else "do not act"
    left = f", and nothing drives {joints_named(names)}" if names else ""
    fix = "take what a rig can have with mechanism.actuators: file, or give joints.<joint>.actuator"
    yield f"{spec.urdf}: {what} {verb}{left}; {fix}"
