"""Loops and constraints: accelerations and reactions as by Pinocchio, MuJoCo's matrices, dense equations.

States satisfy the constraints: loops are cut where random coordinates put their frames, velocities are projected.
Errors are relative: the largest absolute difference over the largest absolute value of the expected array.
"""

import dataclasses
import zlib

import casadi
import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

from cosim.core import ops
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import find_redundant
from cosim.mechanics.multibody.constraint_laws import ReactionSpec, coupling, gear, polynomial
from cosim.mechanics.multibody.description.urdf import read_urdf
from cosim.mechanics.multibody.differentiate import Derived, along
from cosim.mechanics.multibody.joints import joint_axes, kind_of
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Mimic,
    Pose,
    with_floating_base,
)
from tests.multibody.random_frames import error, heavy, turn
from tests.oracle.conftest import ROBOTS
from tests.oracle.pinocchio_reference import TOLERANCE


def joint_of(name, kind, parent, child, pose, random):
    axes = turn(random)
    return Joint(name, kind, parent, child, pose, axes[2], axes[0] if kind == "universal" else None, pitch=0.1)


def cut(mechanism, q, name, kind, parent, child, random):
    """A loop whose frames are, at coordinates q of the tree, where its joint can take them."""
    pose_of = Model(dataclasses.replace(mechanism, loops=(), constraints=())).code.definition
    poses = [pose_of("frame_pose", link)[0](q) for link in (parent, child)]
    above, below = (Pose(pose[:3, :3], pose[:3, 3]) for pose in poses)
    joint = joint_of(name, kind, parent, child, Pose.identity(), random)
    row = kind_of(joint)
    place = row.place(row.space.integrate(row.space.neutral, random.uniform(-1, 1, row.nv)), 0.0)
    aligned, on_child = Pose(joint_axes(joint), np.zeros(3)), Pose(turn(random), random.uniform(-0.3, 0.3, 3))
    moved = aligned @ Pose(*place) @ aligned.inverse()
    pose = above.inverse() @ below @ on_child @ moved.inverse()
    return LoopJoint(dataclasses.replace(joint, pose=pose), on_child)


def rows_of(model, q, v):
    """(G, γ) of G q̈ + γ = 0: G from rates at unit velocities, γ the derivative of the rates along q̇ at constant v."""
    still = model.equations.constraint_violation(q, np.zeros(model.nv))[1]
    G = np.transpose([model.equations.constraint_violation(q, unit)[1] - still for unit in np.eye(model.nv)])

    def make(columns, arrays):
        rate = casadi.vertcat(*model.equations.constraint_violation(*arrays)[1])
        q_rate = casadi.vertcat(*model.equations.rate(*arrays))
        return [(along(rate, [(columns[0], q_rate)]), (rate.numel(),))]

    return G, Derived("rows", [(model.nq,), (model.nv,)], make)(q, v)[0]


def projected(model, q, v):
    G, _ = rows_of(model, q, v)
    return v - np.linalg.pinv(G, 1e-10) @ (G @ v)


def solved(M, h, G, gamma, qdd, tau, held):
    """(q̈, τ, least λ) of M q̈ + h = τ + Gᵀλ, G q̈ + γ = 0 in the null space of G: rows may depend on each other."""
    qdd, tau, free = qdd.copy(), tau.copy(), ~held
    demand = -gamma - G[:, held] @ qdd[held]
    particular = np.linalg.pinv(G[:, free], 1e-10) @ demand
    assert np.abs(G[:, free] @ particular - demand).max(initial=0.0) < 1e-8 * max(1.0, np.abs(demand).max(initial=0.0))
    Z = null_space(G[:, free], rcond=1e-10)
    force = tau[free] - h[free] - M[np.ix_(free, held)] @ qdd[held] - M[np.ix_(free, free)] @ particular
    qdd[free] = particular + Z @ np.linalg.solve(Z.T @ M[np.ix_(free, free)] @ Z, Z.T @ force)
    missing = M @ qdd + h - tau
    reaction = np.linalg.pinv(G[:, free].T, 1e-10) @ missing[free]
    tau[held] = (M @ qdd + h - G.T @ reaction)[held]
    return qdd, tau, reaction


def check(mechanism, q, random, held=0):
    """Direct and nested elimination give the solution of the dense equations, with some dofs prescribed and without."""
    gravity = random.uniform(-10, 10, 3)
    first = Model(mechanism, gravity)
    redundant = find_redundant(first, q, np.zeros(first.nv, bool))
    models = [Model(mechanism, gravity, elimination=way, redundant=redundant) for way in ("direct", "nested")]
    for speed in (1.0, 5.0):
        v = projected(first, q, speed * random.uniform(-1, 1, first.nv))
        residual, rate = first.equations.constraint_violation(q, v)
        assert max(np.abs(residual).max(initial=0.0), np.abs(rate).max(initial=0.0)) < 1e-10
        qdd, tau = random.uniform(-10, 10, (2, first.nv))
        G, gamma = rows_of(first, q, v)
        M, h = first.equations.mass_matrix(q), first.equations.inverse_dynamics(q, v, np.zeros(first.nv))
        assert error(first.equations.constraint_jacobian(q), G) < TOLERANCE
        for count in {0, held}:
            mask = prescribable(G, random, count)
            *expected, reactions = solved(M, h, G, gamma, qdd, tau, mask)
            for model in models:
                for found, right in zip(model.equations.hybrid_dynamics(q, v, qdd, tau, mask), expected, strict=True):
                    assert error(found, right) < TOLERANCE
                if not count:
                    assert error(model.equations.reactions(q, v, tau), reactions) < TOLERANCE


def prescribable(G, random, count):
    """Which `count` dofs are held: their motion leaves the constraints solvable."""
    held = np.zeros(G.shape[1], bool)
    for dof in random.permutation(len(held)):
        trial = held | (np.arange(len(held)) == dof)
        if held.sum() < count and np.linalg.matrix_rank(G[:, ~trial], 1e-8) == np.linalg.matrix_rank(G, 1e-8):
            held = trial
    assert held.sum() == count
    return held


CLOSURES = "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "fixed", "screw"


def tree_of(kinds, random, parents=None):
    """Links l0 (the ground), l1 … behind joints j1 … of the given kinds."""
    joints = []
    for k, kind in enumerate(kinds, 1):
        parent = f"l{parents[k - 1] if parents else random.integers(max(0, k - 3), k)}"
        pose = Pose(turn(random), random.uniform(-1, 1, 3))
        joints.append(joint_of(f"j{k}", kind, parent, f"l{k}", pose, random))
    links = [Link("l0"), *(heavy(f"l{k}", random, (0.2, 3.0), 0.5, (0.01, 0.2)) for k in range(1, len(kinds) + 1))]
    return Mechanism("tree", "l0", tuple(links), tuple(joints))


def looped(mechanism, random, *loops):
    """(mechanism, q): loops (kind, parent, child) closed at random coordinates."""
    q = Model(mechanism).random_configuration(random)
    made = tuple(cut(mechanism, q, f"c{k}", *loop, random) for k, loop in enumerate(loops))
    return dataclasses.replace(mechanism, loops=made), q


@pytest.mark.parametrize("kind", CLOSURES)
def test_a_loop_closed_by_any_joint(kind):
    random = np.random.default_rng(zlib.crc32(kind.encode()))
    arm = tree_of(["revolute"] * 4 + ["spherical", "prismatic"], random, range(6))
    check(*looped(arm, random, (kind, "l0", "l6")), random, held=1)


@pytest.mark.parametrize("seed", range(4))
def test_trees_with_loops(seed):
    """Two loops anywhere among joints of all kinds; two joints are prescribed."""
    random = np.random.default_rng(seed)
    kinds = random.permutation([*CLOSURES[:6], "screw", "free", "revolute", "spherical"])
    ends = [random.choice(10, 2, replace=False) for _ in range(2)]
    loops = [(random.choice(CLOSURES), f"l{a}", f"l{b + 1}") for a, b in ends if a != b + 1]
    check(*looped(tree_of(list(kinds), random), random, *loops), random, held=2)


@pytest.mark.parametrize("base", ["free", "revolute"])
def test_gears_and_mimics_with_loops(base):
    """A ball joint closes the arms; two joints are geared by a constraint, two by a mimic, one by a curve."""
    random = np.random.default_rng(len(base))
    tree = tree_of([base] + ["revolute"] * 9, random, [0, 1, 2, 3, 4, 1, 6, 7, 8, 9])
    led = dataclasses.replace(tree.joints[4], mimic=Mimic("j4", -0.5, 0.3))
    tree = dataclasses.replace(tree, joints=(*tree.joints[:4], led, *tree.joints[5:]))
    open_, q = looped(tree, random, ("spherical", "l5", "l10"))
    angle = {joint: q[Model(tree).coordinate_names.index(joint)] for joint in ("j2", "j3", "j6", "j7")}
    law = gear(-2.0, angle["j2"] + 2.0 * angle["j6"])
    constant = angle["j3"] - angle["j7"] ** 2
    curve = coupling(
        lambda q, t: ops.array([q[0] - q[1] * q[1] - constant]), [ReactionSpec("effort", "N*m", "rad")], False
    )
    constraints = Constraint("gear", law, (), ("j2", "j6")), Constraint("curve", curve, (), ("j3", "j7"))
    check(dataclasses.replace(open_, constraints=constraints), q, random, held=2)


# --- Pinocchio: robots whose hands and feet are held -----------------------------------------------

SOLO, TALOS = "solo_description/robots/solo12.urdf", "talos_data/robots/talos_reduced.urdf"
FEET = [("spherical", "world", f"{leg}_FOOT") for leg in ("FL", "FR", "HL", "HR")]
CROSSED = [("spherical", "FL_FOOT", "FR_FOOT"), ("spherical", "HL_LOWER_LEG", "HR_FOOT")]
FOLDED = [("fixed", "arm_left_7_link", "arm_right_7_link"), ("spherical", "world", "leg_left_6_link")]
SIZES = {pin.ContactType.CONTACT_3D: 3, pin.ContactType.CONTACT_6D: 6}


@pytest.mark.parametrize(("file", "ends"), [(SOLO, FEET), (SOLO, CROSSED), (TALOS, FOLDED)])
def test_robots_held_by_hand_and_foot(file, ends):
    """Contacts of three and of six rows, accelerations and reactions."""
    random = np.random.default_rng(len(ends))
    mechanism = with_floating_base(read_urdf(ROBOTS / file).mechanism)
    q = Model(mechanism).random_configuration(random)
    loops = tuple(cut(mechanism, q, f"c{k}", *end, random) for k, end in enumerate(ends))
    model = Model(dataclasses.replace(mechanism, loops=loops))
    reference = pin.buildModelFromUrdf(str(ROBOTS / file), pin.JointModelFreeFlyer())
    # the base first; of the other joints each has one coordinate
    order = [*range(6), *(model.dof_names.index(name) for name in list(reference.names)[2:])]
    contacts = pin.StdVec_RigidConstraintModel()
    for loop in loops:
        frame = [_frame(reference, loop.joint.parent, loop.joint.pose @ Pose(joint_axes(loop.joint), np.zeros(3)))]
        frame.append(_frame(reference, loop.joint.child, loop.child_pose @ Pose(joint_axes(loop.joint), np.zeros(3))))
        kind = pin.ContactType.CONTACT_3D if loop.joint.kind == "spherical" else pin.ContactType.CONTACT_6D
        contacts.append(pin.RigidConstraintModel(kind, reference, *frame[0], *frame[1], pin.LOCAL))
    data = reference.createData()
    known = pin.StdVec_RigidConstraintData([contact.createData() for contact in contacts])
    pin.initConstraintDynamics(reference, data, contacts, known)
    places = [0, 1, 2, 3, 4, 5, 6, *(k + 1 for k in order[6:])]
    for speed in (1.0, 5.0):
        v, tau = projected(model, q, speed * random.uniform(-1, 1, model.nv)), random.uniform(-10, 10, model.nv)
        expected = pin.constraintDynamics(reference, data, q[places], v[order], tau[order], contacts, known)
        assert error(model.equations.forward_dynamics(q, v, tau)[order], expected) < TOLERANCE
        forces = [k.contact_force.vector[: SIZES[contact.type]] for k, contact in zip(known, contacts, strict=True)]
        assert error(model.equations.reactions(q, v, tau), -np.concatenate(forces)) < TOLERANCE


def _frame(reference, link, pose):
    """(joint, placement) of a frame of a link."""
    placement = pin.SE3(pose.rotation, pose.position)
    if link == "world":
        return 0, placement
    body = reference.frames[reference.getFrameId(link, pin.BODY)]
    return body.parentJoint, body.placement * placement


# --- MuJoCo: its matrices in the dense equations ----------------------------------------------------

THEIRS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
CURVE = 0.2, -0.7, 0.3  # y = 0.2 − 0.7 x + 0.3 x²


def text(numbers):
    return " ".join(map(repr, np.ravel(numbers).tolist()))


def quaternion(rotation):
    return Rotation.from_matrix(rotation).as_quat(scalar_first=True)


def body_of(mechanism, joint, sites):
    """A link as MuJoCo has it, with all that hangs on it."""
    own = next(link for link in mechanism.links if link.name == joint.child).inertial
    inertia = own.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    inside = "".join(body_of(mechanism, below, sites) for below in mechanism.joints if below.parent == joint.child)
    return (
        f'<body name="{joint.child}" pos="{text(joint.pose.position)}" quat="{text(quaternion(joint.pose.rotation))}">'
        f'<inertial pos="{text(own.com)}" mass="{own.mass!r}" fullinertia="{text(inertia)}"/>'
        f'<joint name="{joint.name}" type="{THEIRS[joint.kind]}" axis="{text(joint.axis)}"/>'
        f"{sites.get(joint.child, '')}{inside}</body>"
    )


def in_mujoco(mechanism, gravity, ties):
    sites = {}
    for loop in mechanism.loops:
        for link, side, pose in ((loop.joint.parent, "a", loop.joint.pose), (loop.joint.child, "b", loop.child_pose)):
            place = f'pos="{text(pose.position)}" quat="{text(quaternion(pose.rotation))}"'
            sites[link] = sites.get(link, "") + f'<site name="{loop.joint.name}{side}" {place}/>'
        tie = {"spherical": "connect", "fixed": "weld"}[loop.joint.kind]
        ties += f'<{tie} site1="{loop.joint.name}b" site2="{loop.joint.name}a"/>'
    bodies = "".join(body_of(mechanism, joint, sites) for joint in mechanism.joints if joint.parent == "l0")
    options = f'<option gravity="{text(gravity)}" jacobian="dense"/><compiler angle="radian"/>'
    world = f"<worldbody>{sites.get('l0', '')}{bodies}</worldbody>"
    return mujoco.MjModel.from_xml_string(f"<mujoco>{options}{world}<equality>{ties}</equality></mujoco>")


@pytest.mark.parametrize("ties", [("spherical",), ("spherical", "curve", "fixed")])
def test_constraints_of_mujoco(ties):
    """Its equations are soft; here they are solved as they stand. The trunk of the tree floats."""
    random = np.random.default_rng(len(ties[0]))
    kinds = ["free", "revolute", "spherical", "prismatic", "revolute", "revolute", "spherical", "revolute", "revolute"]
    tree = tree_of(kinds, random, [0, 1, 2, 3, 4, 1, 6, 7, 8])
    trunk = dataclasses.replace(tree.joints[0], pose=Pose.identity())
    tree = dataclasses.replace(tree, joints=(trunk, *tree.joints[1:]))
    q = Model(tree).random_configuration(random)
    names, curve = Model(tree).coordinate_names, polynomial(CURVE)
    second = names.index("j5")
    q[names.index("j2")] = curve(q[second])
    ends = {"spherical": ("l5", "l9"), "fixed": ("l0", "l9")}
    loops = tuple(cut(tree, q, f"c{kind}", kind, *ends[kind], random) for kind in ties if kind in ends)
    law = coupling(lambda q, t: ops.array([q[0] - curve(q[1])]), [ReactionSpec("effort", "N*m", "rad")], False)
    curves = (Constraint("curve", law, (), ("j2", "j5")),) if "curve" in ties else ()
    model = Model(dataclasses.replace(tree, loops=loops, constraints=curves), random.uniform(-10, 10, 3))
    v, tau = projected(model, q, random.uniform(-1, 1, model.nv)), random.uniform(-10, 10, model.nv)

    more = f'<joint joint1="j2" joint2="j5" polycoef="{text(CURVE)} 0 0"/>' if curves else ""
    reference = in_mujoco(model.mechanism, model.gravity, more)
    data = mujoco.MjData(reference)
    # MuJoCo has w first in quaternions, and a free body's linear velocity in ground axes
    parts = np.split(q, np.cumsum([kind.nq for kind in model.kinds])[:-1])
    data.qpos = np.concatenate([[*p[:-4], p[-1], *p[-4:-1]] if len(p) > 1 else p for p in parts])
    T = np.eye(model.nv)
    T[:3, :3] = Rotation.from_quat(q[3:7]).as_matrix()
    data.qvel, data.qfrc_applied = T @ v, T @ tau
    mujoco.mj_forward(reference, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(reference, data, M)
    J, gamma = [], []
    for loop in loops:
        rows, rates = zip(*(_moving(reference, data, f"{loop.joint.name}{side}") for side in "ba"), strict=True)
        count = 3 if loop.joint.kind == "spherical" else 6
        J.append((rows[0] - rows[1])[:count])
        gamma.append((rates[0] - rates[1])[:count] @ data.qvel)
    if curves:
        first, second = (reference.joint(name).dofadr[0] for name in ("j2", "j5"))
        slope = CURVE[1] + 2.0 * CURVE[2] * data.qpos[reference.joint("j5").qposadr[0]]
        J.append(np.eye(model.nv)[[first]] - slope * np.eye(model.nv)[[second]])
        gamma.append([-2.0 * CURVE[2] * data.qvel[second] ** 2])
    J, gamma = np.concatenate(J), np.concatenate(gamma)
    theirs = data.efc_J.reshape(-1, model.nv)
    assert theirs.shape == J.shape
    assert np.abs(theirs @ null_space(J)).max() < TOLERANCE
    assert np.linalg.matrix_rank(theirs) == len(J)
    none = np.zeros(model.nv)
    qdd, _, _ = solved(M, -data.qfrc_smooth, J, gamma, none, none, np.zeros(model.nv, bool))
    expected = T.T @ qdd
    expected[:3] -= np.cross(v[3:6], v[:3])
    assert error(model.equations.forward_dynamics(q, v, tau), expected) < TOLERANCE


def _moving(reference, data, site):
    """Jacobian of a site (linear, angular) in ground axes, and its derivative by time."""
    k, n = reference.site(site).id, reference.nv
    J, change = np.zeros((2, 3, n)), np.zeros((2, 3, n))
    mujoco.mj_jacSite(reference, data, *J, k)
    mujoco.mj_jacDot(reference, data, *change, data.site_xpos[k], reference.site_bodyid[k])
    return np.concatenate(J), np.concatenate(change)
