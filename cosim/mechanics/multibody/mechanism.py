"""The description of a mechanism: links, joints, loops, constraints, springs, and their source locations.

Read from URDF files and from the `mechanism` section of a rig; the input of `Model`. Without a floating base the root
link is the ground.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError, SourceLocation
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constraint_laws import ConstraintLaw, ForceLaw
from cosim.mechanics.multibody.contact.shapes import ContactLaw, ContactShape
from cosim.mechanics.multibody.elastic.link import Displacement, ElasticLink
from cosim.mechanics.multibody.elastic.rigid_elements import RigidElements
from cosim.mechanics.multibody.friction import JointFriction

NOWHERE = SourceLocation("<inline>")


GROUND_LINK = "world"
ROOT_JOINT = "root_joint"
GRAVITY = (0.0, 0.0, -9.81)  # m/s², in the ground frame, where none is given
_EXACT = 1e-15  # rounding error of sin and cos of a right angle


@dataclass(frozen=True)
class Pose:
    """A frame in another: `rotation` (3, 3) maps vectors from it to the other, `position` (3,) is its origin [m]."""

    rotation: np.ndarray
    position: np.ndarray

    @staticmethod
    def identity() -> Pose:
        return Pose(np.eye(3), np.zeros(3))

    def __matmul__(self, inner: Pose) -> Pose:
        return Pose(self.rotation @ inner.rotation, self.position + self.rotation @ inner.position)

    def inverse(self) -> Pose:
        return Pose(self.rotation.T, -self.rotation.T @ self.position)


def pose_of(xyz: Sequence[float], rpy: Sequence[float]) -> Pose:
    """The frame at `xyz` (3,) [m] rotated by roll, pitch, yaw (3,) [rad] about the fixed x, y, z in turn.

    R = Rz(yaw) Ry(pitch) Rx(roll), the convention of URDF. Right angles give exact zeros and ones, so
    that terms with them vanish from the generated code.
    """
    (cr, sr), (cp, sp), (cy, sy) = ((_exact(math.cos(a)), _exact(math.sin(a))) for a in rpy)
    rotation = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return Pose(rotation + 0.0, np.array(xyz, dtype=float))  # + 0.0 turns -0 into 0


def _exact(value: float) -> float:
    return 0.0 if abs(value) < _EXACT else value


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], centre of mass (3,) in the link frame [m], inertia (3, 3) about the centre of mass
    along the axes of the link frame [kg m²]."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True)
class Link:
    """A link of the description: a rigid body, an elastic one, or one without mass."""

    name: str
    inertial: Inertial | None = None  # None: massless
    place: SourceLocation = NOWHERE
    elastic: ElasticLink | RigidElements | None = None  # with mass and inertia of its own
    elastic_frame: Pose = field(default_factory=Pose.identity)  # of `elastic`, in the link
    piece: tuple[np.ndarray, np.ndarray] | None = None  # ends (3,) of the piece of an elastic link that is drawn on it

    @property
    def mass(self) -> float:
        """kg"""
        rigid = 0.0 if self.inertial is None else self.inertial.mass
        return rigid if self.elastic is None else rigid + self.elastic.mass


@dataclass(frozen=True)
class GeneralMotion:
    """The motion of a user-defined joint: place(q, t) -> (Q, r), the child's axes (3, 3) and origin (3,) [m] in the
    joint's frame, for the coordinates `names` with their `units` (rad or m)."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    place: Callable[[Numeric, Numeric], tuple[Numeric, Numeric]]
    timed: bool = False  # depends on the time t
    breaks: tuple[float, ...] = ()  # times [s] at which a derivative with respect to t jumps


@dataclass(frozen=True)
class GivenMotion(GeneralMotion):
    """The motion of a joint without coordinates of its own, whose k coordinates in `joint` are given functions of
    time: sample(t) -> their values, first and second derivatives, (k,) each."""

    joint: GeneralMotion = field(kw_only=True)
    sample: Callable[[Numeric], tuple[Numeric, Numeric, Numeric]] = field(kw_only=True)

    @classmethod
    def of(
        cls,
        joint: GeneralMotion,
        sample: Callable[[Numeric], tuple[Numeric, Numeric, Numeric]],
        breaks: tuple[float, ...] = (),
    ) -> GivenMotion:
        """breaks: see `GeneralMotion`."""

        def place(q: Numeric, t: Numeric) -> tuple[Numeric, Numeric]:
            return joint.place(sample(t)[0], t)

        return cls((), (), place, True, breaks, joint=joint, sample=sample)


@dataclass(frozen=True)
class Torsion:
    """The law of a torsion spring between two frames, about all axes. It stores ½ φᵀ K φ, φ = log(restᵀ R) the rotation
    vector of at most π that turns the second frame from its rest to its axes R, both in the first frame."""

    stiffness: Numeric  # K (3, 3) along the axes of the second frame at rest, or one number for all [N m/rad]
    rest: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))  # quaternion (4,) in the first


@dataclass(frozen=True)
class Mimic:
    """position = multiplier · (position of `joint`) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint as in the file: `pose` is the child link's frame in the parent's at position 0,
    `axis` a unit vector in the child's frame."""

    name: str
    kind: str  # a key of `joints.JOINTS`
    parent: str
    child: str
    pose: Pose
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    second_axis: np.ndarray | None = None  # of a universal joint, orthogonal to `axis`, in the child's frame
    pitch: float = 0.0  # of a screw: advance along the axis, m per rad
    motion: GeneralMotion | None = None  # of a general joint
    node: Displacement | None = None  # of a node of an elastic link
    lower: float = -math.inf
    upper: float = math.inf
    max_velocity: float = math.inf
    max_effort: float = math.inf
    damping: float = 0.0  # N m s/rad or N s/m
    friction: float = 0.0  # Coulomb, N m or N
    friction_laws: tuple[JointFriction | None, ...] = ()  # of its dofs, in place of `friction`; viscous adds to damping
    stiffness: float = 0.0  # of a spring in the joint, N m/rad or N/m, on each of its coordinates
    rest: float = 0.0  # coordinate at which that spring is unloaded
    torsion: Torsion | None = None  # a spring in a spherical joint
    mimic: Mimic | None = None
    rotor_inertia: float = 0.0  # reflected, on each of its dofs, kg m² or kg
    place: SourceLocation = NOWHERE

    @property
    def has_spring(self) -> bool:
        return self.torsion is not None or not ops.is_zero(self.stiffness)


@dataclass(frozen=True)
class LoopJoint:
    """A joint that closes a loop of the tree. `joint.pose` is the joint's frame in the parent, `child_pose` its
    frame in the child: they coincide at coordinate 0. `joint.axis` is along these frames.

    With `coordinates` the joint has coordinates (for an actuator, a spring, friction, limits, or because its kind
    has no closure equations); then the child link is cut, which must have mass.
    """

    joint: Joint
    child_pose: Pose
    coordinates: bool = False


@dataclass(frozen=True)
class Constraint:
    """Equations between frames of links and coordinates of joints; see `ConstraintLaw`."""

    name: str
    law: ConstraintLaw
    frames: tuple[tuple[str, Pose], ...] = ()  # link, frame in the link
    joints: tuple[str, ...] = ()
    place: SourceLocation = NOWHERE
    weld_of: str = ""  # the loop joint with coordinates whose child it joins
    beam: str = ""  # the elastic link whose frame is its first frame, and whose modes are its coordinates


@dataclass(frozen=True)
class Spring:
    """A spring with a damper between two points: force stiffness · (distance − length) + damping · its rate."""

    name: str
    ends: tuple[tuple[str, np.ndarray], tuple[str, np.ndarray]]  # link, point (3,) in the link
    stiffness: float = 0.0  # N/m
    damping: float = 0.0  # N s/m
    length: float = 0.0  # m, unloaded
    place: SourceLocation = NOWHERE


@dataclass(frozen=True)
class TorsionSpring:
    """A torsion spring with a damper between two frames: moments alone, equal and opposite on both links."""

    name: str
    ends: tuple[tuple[str, Pose], tuple[str, Pose]]  # link, frame in the link
    torsion: Torsion
    damping: Numeric = 0.0  # (3, 3) along the axes of the second frame, or one number for all directions [N m s/rad]
    place: SourceLocation = NOWHERE


@dataclass(frozen=True)
class AppliedForce:
    """A force law on frames of links and joints; see `ForceLaw`. known: to the model of controllers."""

    name: str
    law: ForceLaw
    frames: tuple[tuple[str, Pose], ...] = ()  # link, frame in the link
    joints: tuple[str, ...] = ()
    known: bool = True
    place: SourceLocation = NOWHERE


class ContactBound(NamedTuple):
    """A limit of a contact: its key, see `CONTACT_LIMITS`, the bound in SI, and whether it stops a run or warns."""

    key: str
    value: float
    stops: bool


@dataclass(frozen=True)
class Contact:
    """Two shapes of different links that may touch. The second one may belong to the ground. The normal points from the
    second to the first."""

    name: str
    ends: tuple[tuple[str, Pose], tuple[str, Pose]]  # link, frame of the shape in the link
    shapes: tuple[ContactShape, ContactShape]
    law: ContactLaw
    place: SourceLocation = NOWHERE
    limits: tuple[ContactBound, ...] = ()
    virtual: bool = False  # whether it is in the simulation alone, and the drives of real joints exert its force
    exact: bool = False  # whether a run finds the instants at which it touches, slips, sticks and lifts


@dataclass(frozen=True)
class CoupledRotor:
    """A rotor that turns with several joints, by θ = Σ cᵢ qᵢ. Its axis does not count: there are no gyroscopic effects,
    as with `Joint.rotor_inertia`."""

    name: str
    turns: tuple[tuple[str, float], ...]  # joint of one coordinate, c [rad/rad or rad/m]
    inertia: float = 0.0  # kg m²
    damping: float = 0.0  # N m s/rad
    friction: float = 0.0  # Coulomb, N m
    place: SourceLocation = NOWHERE


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link."""

    name: str
    link: str
    pose: Pose  # in the link
    place: SourceLocation = NOWHERE


@dataclass(frozen=True)
class Mechanism:
    """A tree of links and joints, loops, constraints, springs, frames, forces, rotors and contacts; `notes` are remarks
    that are not errors, `warnings` say what of its file is lost and changes the motion. doubts: those of them that
    follow from the numbers of links and joints, which a rig may replace. reactions: joints of the tree whose wrenches
    are recorded; a fixed one is then not merged. rotors: those that turn with several joints."""

    name: str
    root: str
    links: tuple[Link, ...]  # file order
    joints: tuple[Joint, ...]  # file order
    notes: tuple[str, ...] = ()
    loops: tuple[LoopJoint, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    springs: tuple[Spring, ...] = ()
    frames: tuple[Frame, ...] = ()
    forces: tuple[AppliedForce, ...] = ()
    reactions: tuple[str, ...] = ()
    torsion_springs: tuple[TorsionSpring, ...] = ()
    warnings: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    rotors: tuple[CoupledRotor, ...] = ()
    contacts: tuple[Contact, ...] = ()


def with_floating_base(mechanism: Mechanism) -> Mechanism:
    """The mechanism with a free root link: joint `root_joint` connects it to the ground `world`.

    Raises InputError if these names are in use.
    """
    for part in (*mechanism.links, *mechanism.joints):
        if part.name in (GROUND_LINK, ROOT_JOINT):
            what = f"the name '{part.name}' is reserved for the floating base; rename the link or joint"
            raise InputError(what, part.place)
    place = mechanism.links[0].place
    free = Joint(ROOT_JOINT, "free", GROUND_LINK, mechanism.root, Pose.identity(), place=place)
    links = (Link(GROUND_LINK, place=place), *mechanism.links)
    return replace(mechanism, root=GROUND_LINK, links=links, joints=(free, *mechanism.joints))
