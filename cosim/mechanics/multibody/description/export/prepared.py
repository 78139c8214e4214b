"""What every format is written from: a mechanism of joints that the format has, with what it cannot say named.

A joint that a format does not have becomes joints in series with massless links between them, which is the same motion:
cylindrical, universal and planar joints, and a screw, whose advance follows its angle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cosim.core.errors import InputError, listed
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.joints import GENERAL, JOINTS, joint_axes, kind_of
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    CoupledRotor,
    Frame,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Mimic,
    Pose,
    Spring,
)

TRIALS = 3  # at which a constraint is compared with a linear one
LINEAR = 1e-12  # relative deviation from a linear constraint that counts as rounding


@dataclass(frozen=True)
class FormatLimits:
    """What a format can say. kinds: of joints; loops: of joints that close loops; massless: whether links without mass
    may be between joints, so that loops may be closed by joints in series; coupled_rotors: whether there are rotors
    that turn with several joints."""

    title: str
    kinds: Collection[str]
    loops: Collection[str] = ()
    massless: bool = True
    coupled_rotors: bool = False


@dataclass
class PreparedRobot:
    """A mechanism as it is written; lost: what the format cannot say and changes the motion, and notes: what else is
    other than in the mechanism, in sentences."""

    name: str
    root: str
    links: list[Link]
    joints: list[Joint]  # depth first
    loops: list[LoopJoint]
    frames: tuple[Frame, ...]
    springs: tuple[Spring, ...]
    gravity: tuple[float, float, float]
    carried: Mapping[str, float]
    rotors: tuple[CoupledRotor, ...] = ()
    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def own_name(self, wanted: str) -> str:
        """A name that nothing else has."""
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted

    def lose(self, what: str, names: Sequence[str]) -> None:
        """Say that something of these parts is not written; what: with {} in place of the names."""
        if names:
            self.lost.append(what.format(listed([f"'{name}'" for name in names])))

    def note(self, what: str, names: Sequence[str]) -> None:
        """The same of what does not change the motion."""
        if names:
            self.notes.append(what.format(listed([f"'{name}'" for name in names])))

    def free_with(self, *keys: str) -> list[str]:
        """Names of free joints with one of these numbers."""
        return [joint.name for joint in self.joints if joint.kind == "free" and any(getattr(joint, k) for k in keys)]

    def joints_with(self, key: str) -> list[str]:
        """Names of joints whose number `key` is finite and not 0."""
        every = [*self.joints, *(loop.joint for loop in self.loops)]
        return [joint.name for joint in every if np.isfinite(getattr(joint, key)) and getattr(joint, key)]


def prepared(
    mechanism: Mechanism,
    gravity: Sequence[float],
    limits: FormatLimits,
    rotors: Mapping[str, float] | None = None,
    carried: Mapping[str, float] | None = None,
) -> PreparedRobot:
    """rotors: dof -> inertia of a rotor [kg m² or kg] beside the joints' own; carried: see `RobotFile`.

    Raises InputError for what the format cannot say and without which it would be another mechanism.
    """
    _refuse(mechanism, limits)
    x, y, z = map(float, gravity)
    found = PreparedRobot(
        mechanism.name,
        mechanism.root,
        list(mechanism.links),
        [],
        [],
        mechanism.frames,
        mechanism.springs,
        (x, y, z),
        dict(carried or {}),
    )
    parts = *mechanism.links, *mechanism.joints, *mechanism.frames, *mechanism.springs, *mechanism.rotors
    found.taken = {each.name for each in parts} | {loop.joint.name for loop in mechanism.loops}
    followers = _followers(mechanism, found)
    for joint in depth_first(mechanism):
        whole = _with_numbers(replace(joint, mimic=followers.get(joint.name, joint.mimic)), rotors or {}, found)
        found.joints += [whole] if whole.kind in limits.kinds else _in_series(whole, found)
    for loop in mechanism.loops:
        whole = _with_numbers(loop.joint, rotors or {}, found)
        if whole.kind in limits.loops:
            found.loops.append(replace(loop, joint=whole))
            continue
        *before, last = _in_series(whole, found)
        if last.kind not in limits.loops or (before and not limits.massless):
            what = f"{limits.title} has no loop closed by a {whole.kind} joint; write another format"
            raise InputError(what, whole.place)
        found.joints += before
        found.loops.append(LoopJoint(last, loop.child_pose, loop.coordinates))
    written = {joint.name for joint in found.joints} if limits.coupled_rotors else set[str]()
    kept = [rotor for rotor in mechanism.rotors if all(joint in written for joint, _ in rotor.turns)]
    found.rotors = tuple(kept)
    lost_rotors = [rotor.name for rotor in mechanism.rotors if rotor not in kept]
    found.lose(f"rotors {{}}, which turn with several joints, are not in {limits.title}", lost_rotors)
    found.lose(f"torsion springs {{}} are not in {limits.title}", [each.name for each in mechanism.torsion_springs])
    found.lose(
        "contacts {} are not written: the shapes pass through one another there",
        [each.name for each in mechanism.contacts],
    )
    known = {f"{name}_gravcomp" for name in found.carried}
    forces = [each.name for each in mechanism.forces if each.name.rstrip("_") not in known]
    found.lose(f"force laws {{}} are not in {limits.title}", forces)
    return found


def _refuse(mechanism: Mechanism, limits: FormatLimits) -> None:
    for link in mechanism.links:
        if link.elastic is not None:
            what = f"link '{link.name}' is elastic, which {limits.title} cannot say; make it rigid"
            raise InputError(what, link.place)
    for joint in (*mechanism.joints, *(loop.joint for loop in mechanism.loops)):
        splits = joint.kind in SERIES
        if joint.kind == GENERAL or joint.kind not in JOINTS or not (joint.kind in limits.kinds or splits):
            what = f"joint '{joint.name}' is of type {joint.kind}, which {limits.title} does not have"
            raise InputError(f"{what}; write another format, or change the joint", joint.place)
        if joint.kind == "free" and joint.parent != mechanism.root:
            what = f"joint '{joint.name}' leaves link '{joint.parent}' free against a link that moves"
            raise InputError(f"{what}, which {limits.title} does not have; start it at the ground", joint.place)
    if mechanism.loops and not limits.loops:
        names = listed([f"'{loop.joint.name}'" for loop in mechanism.loops])
        what = f"{limits.title} has no loops, the mechanism has {names}; write SDF (.sdf) or MJCF (.xml)"
        raise InputError(what, mechanism.loops[0].joint.place)


# --- numbers of joints ---


def _with_numbers(joint: Joint, rotors: Mapping[str, float], found: PreparedRobot) -> Joint:
    """With the rotors of its drives, and with laws of friction as Coulomb friction and damping."""
    kind = kind_of(joint)
    dofs = kind.named(joint.name, kind.dofs)
    own = [float(rotors.get(dof, 0.0)) for dof in dofs]
    if len(set(own)) > 1:
        found.lost.append(f"rotors on single dofs of joint '{joint.name}' are not written")
        own = [0.0]
    laws = [law for law in joint.friction_laws if law is not None]
    if laws:
        first = laws[0]
        shown = f"{first.coulomb:g} and damping {joint.damping + first.viscous:g}"
        if any(law.model != "smooth" or law.load_friction for law in laws) or len(laws) != len(dofs):
            found.lost.append(f"the friction law of joint '{joint.name}' is written as Coulomb friction {shown}")
        joint = replace(joint, friction=first.coulomb, damping=joint.damping + first.viscous, friction_laws=())
    return replace(joint, rotor_inertia=float(joint.rotor_inertia) + (own[0] if own else 0.0))


def _followers(mechanism: Mechanism, found: PreparedRobot) -> dict[str, Mimic]:
    """Joint -> how it follows another, of constraints that say so; other constraints are lost."""
    tree = {joint.name: joint for joint in mechanism.joints}
    mimics = {joint.name: joint.mimic for joint in mechanism.joints if joint.mimic is not None}
    new: dict[str, Mimic] = {}
    lost = []
    for constraint in mechanism.constraints:
        mimic = None
        if len(constraint.joints) == 2 and all(name in tree for name in constraint.joints):
            mimic = _as_mimic(constraint)
        follower = constraint.joints[0] if constraint.joints else ""
        leaders = {each.joint for each in (*mimics.values(), *new.values())}
        if mimic is None or follower in mimics or follower in new or follower in leaders or mimic.joint in new:
            lost.append(constraint.name)
        else:
            new[follower] = mimic
    found.lose("constraints {} are not written: what they hold moves freely there", lost)
    return new


def _as_mimic(constraint: Constraint) -> Mimic | None:
    """The mimic of a gear between two joints; None for other constraints."""
    law = constraint.law
    if constraint.frames or law.residual is None or len(law.rows) != 1 or law.timed:
        return None

    def residual(first: float, second: float) -> float:
        assert law.residual is not None
        return float(np.ravel(np.array(law.residual((), np.array([first, second]), 0.0), dtype=float))[0])

    at_zero = residual(0.0, 0.0)
    of_first, of_second = residual(1.0, 0.0) - at_zero, residual(0.0, 1.0) - at_zero
    if not of_first:
        return None
    rng = np.random.default_rng(0)
    for first, second in rng.uniform(-3.0, 3.0, (TRIALS, 2)):
        linear = at_zero + of_first * first + of_second * second
        if abs(residual(first, second) - linear) > LINEAR * (1.0 + abs(linear)):
            return None
    return Mimic(constraint.joints[1], -of_second / of_first, -at_zero / of_first)


# --- joints in series ---


def _cylindrical(joint: Joint) -> Iterator[tuple[str, str, np.ndarray]]:
    yield "distance", "prismatic", joint.axis
    yield "angle", "revolute", joint.axis


def _universal(joint: Joint) -> Iterator[tuple[str, str, np.ndarray]]:
    assert joint.second_axis is not None
    yield "first", "revolute", joint.axis
    yield "second", "revolute", joint.second_axis


def _planar(joint: Joint) -> Iterator[tuple[str, str, np.ndarray]]:
    x, y, z = joint_axes(joint).T
    yield "x", "prismatic", x
    yield "y", "prismatic", y
    yield "angle", "revolute", z


def _screw(joint: Joint) -> Iterator[tuple[str, str, np.ndarray]]:
    yield "advance", "prismatic", joint.axis
    yield "", "revolute", joint.axis


# kind -> (dof, kind, axis in the child's frame) of the joints in series that move alike
SERIES = {"cylindrical": _cylindrical, "universal": _universal, "planar": _planar, "screw": _screw}


def _in_series(joint: Joint, found: PreparedRobot) -> list[Joint]:
    if joint.kind not in SERIES:
        return [joint]
    steps = list(SERIES[joint.kind](joint))
    joints = []
    parent, pose = joint.parent, joint.pose
    for k, (dof, kind, axis) in enumerate(steps):
        last = k == len(steps) - 1
        name = found.own_name(f"{joint.name}_{dof}") if dof else joint.name
        child = joint.child if last else found.own_name(f"{joint.name}_{dof}_link")
        if not last:
            found.links.append(Link(child, place=joint.place))
        part = replace(joint, name=name, kind=kind, parent=parent, child=child, pose=pose, axis=axis, second_axis=None)
        if dof == "advance":
            part = Joint(
                name, kind, parent, child, pose, axis=axis, mimic=Mimic(joint.name, joint.pitch), place=joint.place
            )
        joints.append(part)
        parent, pose = child, Pose.identity()
    return joints
