"""Mechanisms that have everything: joints of every kind, mimics, loops, laws, springs; and states of them."""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from cosim.core import ops
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.constraint_laws import ForceLaw, knife_edge
from cosim.mechanics.multibody.coordinates import MOTION, ROTATION
from cosim.mechanics.multibody.elastic_joints import ModesKind
from cosim.mechanics.multibody.joints import kind_of
from cosim.mechanics.multibody.mechanism import (
    AppliedForce,
    Constraint,
    GeneralMotion,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Mimic,
    Pose,
    Spring,
)
from tests.multibody.elastic import beams
from tests.multibody.random_frames import error, heavy, random_pose, turn


def tree(kinds, random, parents=None, **fields):
    """Bodies b0, b1 … with a joint j0, j1 … of each kind, in a chain if no parents are given."""
    names = [f"b{k}" for k in range(len(kinds))]
    above = parents or [k - 1 for k in range(len(kinds))]
    joints = []
    for k, kind in enumerate(kinds):
        parent = "ground" if above[k] < 0 else names[above[k]]
        axis = random.normal(size=3)
        joint = Joint(f"j{k}", kind, parent, names[k], random_pose(random), axis / np.linalg.norm(axis), pitch=0.2)
        if kind == "universal":
            second = np.cross(joint.axis, random.normal(size=3))
            joint = replace(joint, second_axis=second / np.linalg.norm(second))
        joints.append(replace(joint, **fields.get(f"j{k}", {})))
    links = (Link("ground"), *(heavy(name, random) for name in names))
    return Mechanism("tree", "ground", links, tuple(joints))


def sprung(mechanism: Mechanism, random: np.random.Generator) -> Mechanism:
    """With a spring in every joint that may have one."""

    def with_spring(joint: Joint) -> Joint:
        if joint.kind == "fixed" or kind_of(joint).space in (ROTATION, MOTION):
            return joint
        return replace(joint, stiffness=random.uniform(5.0, 20.0), rest=random.uniform(-0.5, 0.5))

    return replace(mechanism, joints=tuple(map(with_spring, mechanism.joints)))


def helix(q, t):
    """A user-defined joint: a screw whose carriage swings with time."""
    s, c = ops.sin(q[0]), ops.cos(q[0])
    turned = ops.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return turned, ops.array([0.1 * ops.sin(2.0 * t), 0.2 * q[0] * q[0], 0.3 * q[0] + 0.1 * t * t])


EVERY_KIND = ("free", "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "screw", "continuous")


def every_joint(random):
    """A branched tree with joints of every kind, rotors, and a base that moves with time."""
    timed = {"motion": GeneralMotion(("angle",), ("rad",), helix, timed=True)}
    kinds = ("general", *EVERY_KIND)
    parents = [-1, 0, 1, 2, 1, 4, 5, 0, 7, 8]
    return tree(kinds, random, parents, j0=timed, j2={"rotor_inertia": 0.3}, j3={"rotor_inertia": 0.2})


def drag(frames, q, v, t):
    """Of two frames: a force that depends on velocities, and a force with a moment."""
    first, second = frames
    push = ops.concatenate([second.linear * -0.5, ops.cross(second.angular, first.position)])
    return ops.array([[*(-first.linear), 0.0, 0.0, ops.sin(t)], [*push]])


def loaded(random):
    """A tree with springs, dampers and laws between its bodies."""
    base = tree(("free", "revolute", "spherical"), random, [-1, 0, 0])
    ends = ("b0", random.uniform(-1, 1, 3)), ("b2", random.uniform(-1, 1, 3))
    springs = (
        Spring("between", ends, 20.0, 3.0, 0.4),
        Spring("to ground", (("ground", np.array([0.0, 0.0, 2.0])), ends[1]), 10.0, 1.0, 0.1),
    )
    law = ForceLaw(drag, lambda frames, q, v, t: -2.0 * v + ops.cos(q[0]), timed=True)
    force = AppliedForce("drag", law, (("b1", random_pose(random)), ("b2", random_pose(random))), ("j1",))
    return replace(base, springs=springs, forces=(force,))


def looped(random):
    """A loop by a spherical joint, and a knife edge, which is not holonomic."""
    base = tree(("free", "revolute", "spherical", "universal"), random, [-1, 0, 0, 2])
    loop = LoopJoint(Joint("pin", "spherical", "b1", "b3", random_pose(random)), random_pose(random))
    edge = Constraint("edge", knife_edge(), (("ground", random_pose(random)), ("b0", random_pose(random))))
    return replace(base, loops=(loop,), constraints=(edge,))


def planar_tree(random, base="revolute"):
    """A branched tree of parallel revolute joints, some along −z."""
    flipped = np.diag([1.0, -1.0, -1.0])
    made = tree((base, "revolute", "revolute", "revolute"), random, [-1, 0, 0, 2])
    joints = []
    for k, joint in enumerate(made.joints):
        about = Rotation.from_rotvec([0.0, 0.0, random.uniform(-3, 3)]).as_matrix()
        tilt = turn(random) if k == 0 else flipped @ about if k == 2 else about
        joints.append(replace(joint, pose=Pose(tilt, joint.pose.position), axis=np.array([0.0, 0.0, 1.0])))
    return replace(made, joints=tuple(joints))


MECHANISMS = {
    "every joint": every_joint,
    "mimics": lambda random: tree(
        ("revolute", "spherical", "prismatic", "revolute"), random, [-1, 0, 0, 2], j2={"mimic": Mimic("j0", -1.5, 0.2)}
    ),
    "springs and laws": loaded,
    "loop and knife edge": looped,
    "rotations": lambda random: tree(("spherical", "revolute", "universal", "spherical"), random, [-1, 0, 0, 2]),
    "floating": lambda random: tree(("free", "revolute", "universal", "spherical"), random, [-1, 0, 0, 2]),
    "planar": planar_tree,
    "planar floating": lambda random: planar_tree(random, "planar"),
    "elastic chain": lambda random: beams.chain(),
    "elastic loop": lambda random: beams.floating_loop(),
}


def model_of(name, seed=0, **settings):
    return Model(MECHANISMS[name](np.random.default_rng(seed)), gravity=(1.0, -2.0, -9.0), **settings)


def random_state(equations, random, near=None):
    """(q, v, τ, t), q within ±0.7 of `near`, by default of the neutral configuration; modes of elastic links are a
    tenth of it."""
    start = np.concatenate([kind.space.neutral for kind in equations.kinds] or [[]]) if near is None else near
    size = np.array([0.1 if isinstance(kind, ModesKind) else 1.0 for kind in equations.kinds for _ in range(kind.nv)])
    q = np.asarray(equations.integrate(start, size * random.uniform(-0.7, 0.7, equations.nv)), dtype=float)
    return (
        q,
        size * random.uniform(-1, 1, equations.nv),
        random.uniform(-3, 3, equations.nv),
        float(random.uniform(0, 1)),
    )


def relative_error(found, expected):
    return error(np.asarray(found, dtype=float), np.asarray(expected, dtype=float), 1.0)
