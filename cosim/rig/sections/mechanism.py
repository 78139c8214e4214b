"""The section `mechanism` of a rig: a robot file or bodies, their numbers and base, loops, constraints and springs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError, InputErrors, did_you_mean
from cosim.core.paths import expand, locate
from cosim.core.plugin_loading import FORMULATION, TRAJECTORY
from cosim.core.types import Numeric, Trajectory, breaks_of, param, params
from cosim.mechanics.formulations import SEPARATE_BODIES
from cosim.mechanics.multibody.coordinates import ROTATION, rotation_of
from cosim.mechanics.multibody.description.diagnostics import NO_CONTACTS, Diagnostics
from cosim.mechanics.multibody.description.doubts import doubtful_gravity
from cosim.mechanics.multibody.description.elastic_links import with_nodes
from cosim.mechanics.multibody.description.inertia import check_inertia, inertia_matrix
from cosim.mechanics.multibody.description.robot_file import NamedState, RobotFile
from cosim.mechanics.multibody.description.robot_formats import FORMATS, check_robot_file, read_robot
from cosim.mechanics.multibody.description.topology import build_mechanism
from cosim.mechanics.multibody.given_rotation import GivenRotation
from cosim.mechanics.multibody.mechanism import (
    GRAVITY,
    GROUND_LINK,
    ROOT_JOINT,
    GeneralMotion,
    GivenMotion,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Pose,
)
from cosim.rig.reading.contracts import load_given_motion
from cosim.rig.reading.plugins import call_checked, find_module, read_plugin
from cosim.rig.reading.schema import Reading, is_section, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.bodies import BASE, read_bodies, three_or_six
from cosim.rig.sections.constraints import read_constraints, read_forces
from cosim.rig.sections.contacts import ContactReader
from cosim.rig.sections.elastic import with_elastic
from cosim.rig.sections.geometry import ORIGIN, Vector
from cosim.rig.sections.ground import GroundKeys
from cosim.rig.sections.joint_definition import GENERAL
from cosim.rig.sections.loops_and_springs import Parts, read_frames, read_loops, read_springs
from cosim.rig.sections.orientations import OrientationKeys
from cosim.rig.sections.reactions import NamesOrAll, joints_with_reactions
from cosim.rig.sections.robot_file import gravity_of, taken_of
from cosim.rig.sections.rotors import read_rotors
from cosim.rig.sections.self_contact import SelfContact, self_contacts
from cosim.rig.sections.torsion_springs import read_torsion_springs

NOT_APART = {"links", "joints"}  # lists of other formats
MOVING_BASE = "moving_base"  # its link and its joint

LINEAR, ANGULAR = ("x", "y", "z"), ("roll", "pitch", "yaw")
ORIENTATION, QUATERNION = "orientation", ("qx", "qy", "qz", "qw")

NUMBERS = ("mechanism", "numbers")


@params
class MovingBaseKeys:
    x: dict | None = param(default=None)
    y: dict | None = param(default=None)
    z: dict | None = param(default=None)
    roll: dict | None = param(default=None)
    pitch: dict | None = param(default=None)
    yaw: dict | None = param(default=None)
    orientation: OrientationKeys | None = param(default=None)


@params
class LoopClosureKeys:
    drift: Literal["projection", "baumgarte", "none"] = param(default="projection")
    frequency: float = param(unit="Hz", above=0, default=20.0, doc="of the Baumgarte stabilisation")
    redundant: Literal["resolve", "refuse"] = param(default="resolve")
    elimination: Literal["auto", "direct", "nested"] = param(default="auto")


@params
class MechanismFile:
    """The section `mechanism` as it is written, before its parts are read."""

    urdf: str | None = param(default=None, doc="a URDF or xacro file")
    mjcf: str | None = param(default=None, doc="an MJCF file")
    sdf: str | None = param(default=None, doc="an SDF file")
    usd: str | None = param(default=None, doc="a USD file")
    model: str | None = param(default=None, doc="the model of an SDF file with several")
    xacro_arguments: dict | None = param(default=None)
    packages: tuple[str, ...] | None = param(default=None)
    bodies: list | None = param(default=None)
    numbers: dict | None = param(default=None)
    gravity: Vector | None = param(unit="m/s^2", default=None)
    floating_base: bool = param(default=False)
    actuators: Literal["file"] | None = param(default=None)
    keyframe: str | None = param(default=None)
    moving_base: MovingBaseKeys | None = param(default=None)
    elastic: list | None = param(default=None)
    loops: list | None = param(default=None)
    constraints: list | None = param(default=None)
    springs: list | None = param(default=None)
    torsion_springs: list | None = param(default=None)
    frames: list | None = param(default=None)
    forces: list | None = param(default=None)
    rotors: dict | None = param(default=None)
    contacts: list | None = param(default=None)
    ground: GroundKeys | None = param(default=None)
    self_contact: SelfContact | None = param(default=None)
    reactions: NamesOrAll = param(default=NamesOrAll())
    loop_closure: LoopClosureKeys = param(default=LoopClosureKeys())
    formulation: str = param(default=SEPARATE_BODIES, doc="of the equations of motion")


is_section("mechanism", MechanismFile)


@dataclass(frozen=True)
class MechanismSpec:
    """The checked section `mechanism`."""

    description: Mechanism
    gravity: tuple[float, float, float]  # m/s^2
    urdf: Path | None  # its robot file, URDF, xacro, MJCF or SDF; None: given inline
    loop_closure: LoopClosureKeys
    formulation: str = SEPARATE_BODIES
    file: RobotFile | None = None  # what the robot file states
    start: NamedState | None = None  # of the robot file, in which the rig begins unless it gives another
    drives: bool = False  # whether the rig takes the actuators of the robot file
    taken: tuple[str, ...] = ()  # what of the robot file is no mechanics and acts in the rig, for `cosim check`
    doubts: tuple[str, ...] = ()  # what of the robot file the rig does not take, and changes the motion

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the robot file is lost and changes the motion."""
        return (*self.description.warnings, *self.doubts)


def ground_alone(name: str, reading: Reading) -> MechanismSpec:
    """The mechanism of the rig called `name` that has none: the ground, on which nothing is."""
    links = [Link(BASE, place=reading.place(()))]
    description = build_mechanism(name, links, [], Diagnostics())
    return MechanismSpec(description, GRAVITY, None, LoopClosureKeys())


@dataclass(frozen=True)
class _Tree:
    """Links and joints without loops and springs; ground: the fixed link; file: what the robot file states, of a rig
    with one."""

    name: str
    ground: str
    links: list[Link]
    joints: list[Joint]
    file: RobotFile | None = None
    own: Mechanism | None = None  # of the robot file, with its couplings


def read_mechanism(data: dict[str, YamlValue], name: str, reading: Reading) -> MechanismSpec | None:
    """The section `mechanism` of the rig called `name`; None after an error, recorded in `reading`."""
    at = ("mechanism",)
    for key in NOT_APART.intersection(data):
        what = "a mechanism has 'bodies': an entry is a body and the joint that carries it, with type, origin and axis"
        reading.fail((*at, key), what)
    section = read_fields(MechanismFile, {key: data[key] for key in data if key not in NOT_APART}, at, reading)
    given = [key for key in (*FORMATS, "bodies") if data.get(key) is not None]
    if len(given) != 1:
        if not given:
            return reading.fail(at, f"missing key {', '.join(map(repr, FORMATS))} or 'bodies'")
        both = "both" if len(given) == 2 else "all of"
        return reading.fail(at, f"{both} {' and '.join(map(repr, given))} are given; keep one of them")
    if given[0] not in section:
        return None
    robot = None
    if given[0] in FORMATS:
        robot = _robot_file(given[0], section, reading)
        if robot is None:
            return None
    findings = Diagnostics()
    recording = Reading(reading.place, findings.errors, reading.folder)  # errors of the mechanism only
    try:
        tree = (
            _tree_of_robot(robot, given[0], section, recording, findings)
            if robot
            else _tree_of_bodies(section, name, recording, findings)
        )
        description = _complete(tree, section, recording, findings)
    except InputErrors as many:
        reading.errors.extend(many.errors)
        return None
    except InputError as error:
        reading.errors.append(error)
        return None
    closure = section.get("loop_closure", LoopClosureKeys())
    formulation = section.get("formulation", SEPARATE_BODIES)
    if find_module(FORMULATION, formulation, (*at, "formulation"), reading) is None:
        return None
    gravity = gravity_of(section, tree.file)
    taken = taken_of(tree.file or RobotFile(description), gravity, section, at, reading)
    file = tree.file if section.get("gravity") is None else None
    place = reading.place((*at, "gravity")) if file is None else file.gravity_place
    description = replace(description, warnings=(*description.warnings, *doubtful_gravity(gravity, place)))
    return MechanismSpec(description, gravity, robot, closure, formulation, tree.file, *taken)


def _tree_of_bodies(section: dict[str, YamlValue], name: str, reading: Reading, findings: Diagnostics) -> _Tree:
    at = ("mechanism", "bodies")
    base = Link(BASE, place=reading.place(at))
    if section.get("floating_base"):
        what = "floating_base is for a URDF; give the first body the type free"
        reading.fail(("mechanism", "floating_base"), what)
    ground = _Tree(name, BASE, [base], [])
    if section.get("moving_base") is not None:
        ground = _on_moving_base(ground, section["moving_base"], reading)
    links, joints = read_bodies(section["bodies"], at, ground.links[-1].name, reading, findings)
    return _Tree(name, BASE, ground.links + links, ground.joints + joints)


def _robot_file(key: str, section: dict[str, YamlValue], reading: Reading) -> Path | None:
    """The robot file of a rig; None after an error, recorded in `reading`."""
    try:
        path = locate(section[key], reading.folder, section.get("packages") or ())
        check_robot_file(path, section[key])
    except InputError as error:
        return reading.fail(("mechanism", key), error.what)
    return path


def xacro_arguments_of(section: Mapping[str, YamlValue]) -> dict[str, str]:
    """The values as xacro has them: text."""

    def text(value: YamlValue) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {name: text(value) for name, value in (section.get("xacro_arguments") or {}).items()}


def packages_of(section: Mapping[str, YamlValue], folder: Path) -> list[Path]:
    """Where ROS packages are searched first; folder: of the rig."""
    return [folder / expand(place) for place in section.get("packages") or ()]


def _tree_of_robot(
    file: Path, format: str, section: dict[str, YamlValue], reading: Reading, findings: Diagnostics
) -> _Tree:
    """The links and joints of a robot file, on a new ground link for a floating or moving base."""
    packages = packages_of(section, reading.folder)
    if format != "urdf" and section.get("xacro_arguments"):
        reading.fail(("mechanism", "xacro_arguments"), "xacro arguments are for a URDF or xacro file; take them out")
    if format != "urdf" and section.get("floating_base"):
        free = {"mjcf": "has a <freejoint>", "sdf": "has no joint to world", "usd": "has no joint to it"}[format]
        what = f"floating_base is for a URDF; a free base of an {format.upper()} file {free}"
        reading.fail(("mechanism", "floating_base"), what)
    if format != "sdf" and section.get("model"):
        reading.fail(("mechanism", "model"), "a model is chosen in an SDF file; take this out")
    findings.raise_errors()
    robot = read_robot(file, format, xacro_arguments_of(section), packages, section.get("model"))
    mechanism = robot.under(gravity_of(section, robot))
    findings.notes.extend(mechanism.notes)
    findings.warnings.extend(line for line in mechanism.warnings if line not in mechanism.doubts)
    links, joints = list(mechanism.links), list(mechanism.joints)
    floating, moving_base = section.get("floating_base"), section.get("moving_base")
    if not floating and moving_base is None:
        return _Tree(mechanism.name, mechanism.root, links, joints, robot, mechanism)
    key = ("mechanism", "floating_base" if floating else "moving_base")
    place = reading.place(key)
    if floating and moving_base is not None:
        reading.fail(key, "a mechanism has a floating or a moving base; take out 'floating_base' or 'moving_base'")
    if any(link.name == GROUND_LINK for link in links):
        reading.fail(key, f"the ground is called '{GROUND_LINK}', and so is a link of the robot file; rename the link")
    findings.raise_errors()
    ground = _Tree(mechanism.name, GROUND_LINK, [Link(GROUND_LINK, place=place)], [])
    if moving_base is None:
        root = Joint(ROOT_JOINT, "free", GROUND_LINK, mechanism.root, Pose.identity(), place=place)
    else:
        ground = _on_moving_base(ground, moving_base, reading)
        root = Joint(ROOT_JOINT, "fixed", MOVING_BASE, mechanism.root, Pose.identity(), place=place)
    return _Tree(mechanism.name, GROUND_LINK, ground.links + links, [*ground.joints, root, *joints], robot, mechanism)


def _on_moving_base(tree: _Tree, keys: MovingBaseKeys, reading: Reading) -> _Tree:
    """The ground and a massless link with the given motion."""
    at = ("mechanism", "moving_base")
    place, motion = reading.place(at), read_moving_base(keys, at, reading)
    joint = Joint(MOVING_BASE, GENERAL, tree.ground, MOVING_BASE, Pose.identity(), motion=motion, place=place)
    return _Tree(tree.name, tree.ground, [*tree.links, Link(MOVING_BASE, place=place)], [*tree.joints, joint])


def _complete(tree: _Tree, section: dict[str, YamlValue], reading: Reading, findings: Diagnostics) -> Mechanism:
    """The complete mechanism. Raises InputErrors with all errors in it."""

    def items(key: str) -> tuple[list, tuple]:
        return section.get(key) or [], ("mechanism", key)

    given = section.get("numbers") or {}
    new_links, new_joints = with_numbers(tree.links, tree.joints, given, reading, findings)
    bending = with_elastic(new_links, section.get("elastic") or [], tree.ground, reading, findings)
    tree = replace(tree, links=bending, joints=new_joints)
    links = {link.name: link for link in tree.links}
    parts = Parts(tree.ground, links, {joint.name: joint for joint in tree.joints})
    file = tree.own or Mechanism(tree.name, tree.ground, (), ())
    loops = [*file.loops, *read_loops(*items("loops"), parts, reading, findings)]
    own = {loop.joint.name: loop.joint for loop in loops if loop.coordinates}
    parts = Parts(tree.ground, links, {**parts.joints, **own})
    constraints = [*file.constraints, *read_constraints(*items("constraints"), parts, reading)]
    springs = [*file.springs, *read_springs(*items("springs"), parts, reading)]
    torsion_springs = read_torsion_springs(*items("torsion_springs"), parts, reading)
    frames = [*file.frames, *read_frames(*items("frames"), parts, reading, findings)]
    forces = [*file.forces, *read_forces(*items("forces"), parts, reading)]
    rotors = read_rotors(section.get("rotors") or {}, file.rotors, ("mechanism", "rotors"), parts, reading)
    reader = ContactReader(
        Mechanism(tree.name, tree.ground, tuple(tree.links), tuple(tree.joints)),
        None if tree.file is None else tree.file.collisions,
        section,
        reading,
        findings,
    )
    contacts = reader.entries(*items("contacts"))
    own = section.get("self_contact")
    contacts += [each for keys in own or () for each in self_contacts(keys, contacts, reader)]
    if contacts:  # what a reader says of a file whose contacts are not declared
        for lines in (findings.warnings, findings.notes):
            lines[:] = [line for line in lines if NO_CONTACTS not in line or ("self_collide" in line and not own)]
    asked = section.get("reactions") or NamesOrAll()
    reactions = joints_with_reactions(asked, tree.joints, loops, ("mechanism", "reactions"), reading)
    mechanism = build_mechanism(
        tree.name,
        tree.links,
        tree.joints,
        findings,
        loops,
        constraints,
        springs,
        frames,
        forces,
        torsion_springs,
        rotors,
        contacts,
    )
    mechanism = replace(mechanism, reactions=reactions)
    with_nodes(mechanism)  # raises InputErrors for what is attached beyond an elastic link
    return mechanism


@params
class NumbersKeys:
    mass: float | None = param(unit="kg", above=0, default=None, doc="mass of a link")
    com: Vector | None = param(unit="m", default=None, doc="centre of mass of a link")
    inertia: Annotated[tuple[float, ...], three_or_six] | None = param(
        unit="kg*m^2", default=None, doc="of a link, about its centre of mass: xx, yy, zz, xy, xz, yz"
    )
    damping: float | None = param(unit="joint damping", min=0, default=None, doc="viscous friction of a joint")
    friction: float | None = param(unit="joint effort", min=0, default=None, doc="dry friction of a joint")


KEYS_OF_NUMBERS = tuple(each.name for each in fields(NumbersKeys))


def with_numbers(
    links: Sequence[Link],
    joints: Sequence[Joint],
    data: Mapping[str, YamlValue],
    reading: Reading,
    findings: Diagnostics,
) -> tuple[list[Link], list[Joint]]:
    """The links and joints with the numbers of the section; errors are recorded."""
    found_links, found_joints = {link.name: link for link in links}, {joint.name: joint for joint in joints}
    changed = set(data)
    for name, values in data.items():
        known = [*found_links, *found_joints]
        if name not in known:
            reading.fail((*NUMBERS, name), f"there is no link or joint '{name}'{did_you_mean(name, known)}")
            continue
        joint = found_joints.get(name)
        of = reading.of({name: joint.kind} if joint else None)
        fields = read_fields(NumbersKeys, values, (*NUMBERS, name), of)
        given = {key: value for key, value in fields.items() if value is not None}
        of_joint = {key: given.pop(key) for key in ("damping", "friction") if key in given}
        if of_joint and joint is None:
            reading.fail((*NUMBERS, name), f"'{name}' is a link, and {' and '.join(of_joint)} belong to a joint")
        elif of_joint and joint is not None:
            found_joints[name] = replace(joint, **of_joint)
        if not given:
            continue
        link = found_links.get(name)
        if link is None:
            reading.fail((*NUMBERS, name), f"'{name}' is a joint, and {' and '.join(given)} belong to a link")
            continue
        if link.inertial is None and "mass" not in given:
            reading.fail((*NUMBERS, name), f"'{name}' is massless; give it a mass too")
            continue
        found_links[name] = replace(link, inertial=_inertial(link.inertial, given, (*NUMBERS, name), reading, findings))
    return (
        [found_links[link.name] if link.name in changed else link for link in links],
        [found_joints[joint.name] if joint.name in changed else joint for joint in joints],
    )


def _inertial(
    before: Inertial | None,
    given: Mapping[str, float | tuple[float, ...]],
    path: tuple[str, ...],
    reading: Reading,
    findings: Diagnostics,
) -> Inertial:
    inertial = before or Inertial(0.0, np.array(ORIGIN), np.zeros((3, 3)))
    mass, com, moments = (given.get(key) for key in ("mass", "com", "inertia"))
    if isinstance(mass, float):
        inertial = replace(inertial, mass=mass)
    if isinstance(com, tuple):
        inertial = replace(inertial, com=np.array(com))
    if isinstance(moments, tuple):
        inertial = replace(inertial, inertia=inertia_matrix(*moments, *ORIGIN[len(moments) - 3 :]))
    error, note = check_inertia(inertial.mass, inertial.inertia)
    if error:
        reading.fail((*path, "inertia"), error)
    if note:
        findings.note(note, reading.place((*path, "inertia")))
    return inertial


def read_moving_base(keys: MovingBaseKeys, at: tuple, reading: Reading) -> GivenMotion:
    """The motion of a joint without coordinates: x, y, z [m], then roll, pitch, yaw [rad] about the fixed x, y, z
    in this order, each a trajectory that starts at 0; missing ones stay 0. Errors are recorded."""
    given: dict[str, Trajectory] = {}
    sections = {field.name: getattr(keys, field.name) for field in fields(keys)}
    if all(section is None for section in sections.values()):
        reading.fail(at, f"the base does not move; give it one of {', '.join(sections)}")
    turned = None if keys.orientation is None else _base_rotation(keys, at, reading)
    for key, section in sections.items():
        if section is None or key == ORIENTATION:
            continue
        path = (*at, key)
        kind = "prismatic" if key in LINEAR else "revolute"
        plugin = read_plugin(TRAJECTORY, section, path, reading, {key: kind})
        if plugin is not None:
            trajectory = load_given_motion(plugin, key, np.zeros(1), path, reading)
            if trajectory is not None:
                given[key] = trajectory
    names = (*given, *(QUATERNION if turned is not None else ()))
    units = tuple("m" if name in LINEAR else "rad" for name in names)
    joint = GeneralMotion(names, units, BasePlace(names))

    def sample(t: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        samples = [trajectory.sample(t) for trajectory in given.values()]
        found = [[each[part][0] for each in samples] for part in ("position", "velocity", "acceleration")]
        if turned is not None:
            found = [[*part, *of_rotation] for part, of_rotation in zip(found, turned.rates(t), strict=True)]
        value, rate, bend = map(ops.array, found)
        return value, rate, bend

    timed = [*given.values(), *([] if turned is None else [turned])]
    breaks = np.concatenate([breaks_of(each) for each in timed]) if timed else ()
    return GivenMotion.of(joint, sample, tuple(map(float, breaks)))


def _base_rotation(keys: MovingBaseKeys, at: tuple, reading: Reading) -> GivenRotation | None:
    """The given orientation of a base; errors are recorded."""
    path, orientation = (*at, ORIENTATION), keys.orientation
    for key in (key for key in ANGULAR if getattr(keys, key) is not None):
        reading.fail((*at, key), f"the base has an '{ORIENTATION}' too; take out '{key}' or '{ORIENTATION}'")
    assert orientation is not None
    return call_checked(lambda: orientation.rotation(ROTATION.neutral, reading.folder), path, reading)


class BasePlace:
    """`place(q, t)` of a body that moves along or about some of the six coordinates of a base, by name, or that is
    turned by a quaternion."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __call__(self, q: Numeric, t: Numeric) -> tuple[Numeric, Numeric]:
        at = dict(zip(self._names, q, strict=True))
        axes: Numeric = np.eye(3)
        for k, key in enumerate(ANGULAR):  # R = Rz(yaw) Ry(pitch) Rx(roll), as in `frames.pose_of`
            if key in at:
                axes = _rotation(k, at[key]) @ axes
        if QUATERNION[0] in at:
            axes = rotation_of(ops.array([at[key] for key in QUATERNION]))
        return axes, ops.array([at.get(key, 0.0) for key in LINEAR])


def _rotation(k: int, angle: Numeric) -> Numeric:
    """The rotation (3, 3) about axis number k."""
    s, c = ops.sin(angle), ops.cos(angle)
    i, j = (k + 1) % 3, (k + 2) % 3
    rows: list[list[Numeric]] = np.eye(3).tolist()
    rows[i][i] = rows[j][j] = c
    rows[i][j], rows[j][i] = -s, s
    return ops.array(rows)
