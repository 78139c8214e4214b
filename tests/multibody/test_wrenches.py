"""The wrenches of joints and constraints: with gravity and applied forces they move each body as it moves.

The motion is from an independent formula: poses of the links differentiated twice along q̇ and v̇, momenta of the links
by their own mass and inertia. Forces of springs and laws are from their definitions.
"""

from functools import cache
from itertools import cycle, islice

import casadi
import numpy as np
import pytest

from cosim.core import ops
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.multibody import Model, joints
from cosim.mechanics.multibody.constraint_laws import (
    ConstraintLaw,
    ForceLaw,
    FrameState,
    ReactionSpec,
    coupling,
    distance,
    gear,
    knife_edge,
    point_on_curve,
    rolling,
)
from cosim.mechanics.multibody.joints import joint_axes
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
from tests.multibody.random_frames import close, heavy, random_pose, turn

MECHANISMS = 100
PITCH = 0.2
FORCE, EFFORT = ReactionSpec("force", "N", "m"), ReactionSpec("effort", "N*m", "rad")


def _swinging(q, t):
    """A user joint of two coordinates."""
    s, c = ops.sin(q[0]), ops.cos(q[0])
    return ops.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), ops.array([0.3 * c, q[1], 0.1 * q[1] * q[1]])


def _shaken(q, t):
    """The motion of a base, by time alone."""
    s, c = ops.sin(2.0 * t), ops.cos(2.0 * t)
    return ops.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]), ops.array([0.2 * s, 0.0, t * t])


MOTIONS = {
    "general": GeneralMotion(("angle", "way"), ("rad", "m"), _swinging),
    "base": GeneralMotion((), (), _shaken, timed=True),
}
KINDS = (*(kind for kind in joints.JOINTS if kind != "continuous"), "base")
CLOSING = ("revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "fixed", "screw")


def _moved_apart(frames, q, t):
    """A law that its author scaled, of three frames and a joint."""
    apart = frames[1].position - 0.5 * (frames[0].position + frames[2].position)
    return ops.array([3.0 * apart[0] - 2.0 * q[0] * ops.cos(t), frames[2].rotation[:, 0] @ apart])


def _pulled(frames, q, v, t):
    a, b = frames
    pull = 30.0 * (b.position - a.position) - 0.5 * a.linear
    return ops.array([[*pull, *(0.3 * b.angular)], [*(-pull), *(q[0] * a.rotation[:, 1])]])


# law, number of its frames, number of joints with one coordinate
LAWS = {
    "distance": (distance(0.7), 2, 0),
    "curve": (point_on_curve([0.1, -0.4, 1.2, 0.3]), 2, 0),
    "gear": (gear(-2.5, 0.3), 0, 2),
    "coupling": (coupling(lambda q, t: ops.array([q[0] * q[1] - ops.sin(t)]), [EFFORT], True), 0, 2),
    "knife": (knife_edge(), 2, 0),
    "rolling": (rolling(0.3), 2, 0),
    "in Python": (ConstraintLaw((FORCE, FORCE), _moved_apart, timed=True), 3, 1),
    "of one frame": (ConstraintLaw((FORCE,), lambda frames, q, t: ops.array([2.0 * frames[0].position[2]])), 1, 0),
}
PULL = ForceLaw(_pulled, lambda frames, q, v, t: ops.array([0.4 - 0.2 * v[0]]))


def joint_of(name, kind, parent, child, random):
    axes = turn(random)
    second = axes[:, 0] if kind == "universal" else None
    motion = MOTIONS.get(kind)
    kind = joints.GENERAL if motion else kind
    return Joint(name, kind, parent, child, random_pose(random), axes[:, 2], second, PITCH, motion)


@cache
def mechanism(seed):
    """A hinge and four joints in a tree, a loop, a law, a spring and a force law; which ones goes round."""
    random = np.random.default_rng(seed)
    links = [Link("ground"), *(heavy(f"l{k}", random) for k in range(5))]
    own = ["revolute", *islice(cycle(KINDS), 3 * seed, 3 * seed + 3), "prismatic"]
    tree = []
    for k, kind in enumerate(own):
        parent = "ground" if kind == "base" else links[random.integers(k + 1)].name
        tree.append(joint_of(f"j{k}", kind, parent, f"l{k}", random))
    if seed % 4 == 0 and own[2] == "revolute":
        tree[2] = Joint(**{**vars(tree[2]), "mimic": Mimic("j0", -1.5, 0.2)})

    def ends(n):
        return tuple((name, random_pose(random)) for name in random.permutation([k.name for k in links])[:n])

    kind, (parent, _), (child, frame) = CLOSING[seed % len(CLOSING)], *ends(2)
    if seed % 5 == 0 and kind != "fixed":
        (parent, _), child = ("ground", None), "l4"
    loop = LoopJoint(joint_of("loop", kind, parent, child, random), frame, seed % 5 == 0 and kind != "fixed")
    law, frames, coordinates = list(LAWS.values())[seed % len(LAWS)]
    constraint = Constraint("tie", law, ends(frames), ("j0", "j4")[:coordinates])
    (a, at_a), (b, at_b) = ends(2)
    spring = Spring("spring", ((a, at_a.position), (b, at_b.position)), 60.0, 4.0, 0.2)
    force = AppliedForce("pull", PULL, ends(2), ("j0",))
    return Mechanism(
        "random",
        "ground",
        tuple(links),
        tuple(tree),
        loops=(loop,),
        constraints=(constraint,),
        springs=(spring,),
        forces=(force,),
        reactions=tuple(joint.name for joint in tree),
    )


def covered(seed):
    """The kinds of joints and of the loop, and the law of a mechanism."""
    own = mechanism(seed)
    timed = {"base"} if any(joint.motion is MOTIONS["base"] for joint in own.joints) else set()
    return {joint.kind for joint in own.joints} | timed, own.loops[0].joint.kind, own.constraints[0].law


def test_the_random_mechanisms_have_every_kind_of_joint_loop_and_law():
    found = [covered(seed) for seed in range(MECHANISMS)]
    assert set.union(*(kinds for kinds, _, _ in found)) == set(KINDS)
    assert {loop for _, loop, _ in found} == set(CLOSING)
    assert {law for _, _, law in found} == {law for law, _, _ in LAWS.values()}
    assert any(mechanism(seed).loops[0].coordinates for seed in range(MECHANISMS))


class LinkMotion:
    """Frames of the links in ground axes, and the rates of their momenta about their centres of mass."""

    def __init__(self, model, q, v, a, t):
        equations, tree = model.equations, model.equations.tree
        self.links = {link.name: link for link in tree.mechanism.links}
        names = list(self.links)
        sizes = model.nq, model.nv, model.nv
        Q, V, A, T = [casadi.SX.sym(name, n) for name, n in zip("qva", sizes, strict=True)] + [casadi.SX.sym("t")]
        q_array = ops.array(np.array(Q.elements(), dtype=object))
        rate = equations.rate(q_array, ops.array(np.array(V.elements(), dtype=object)))
        path = casadi.vertcat(Q, V, T)
        velocity = casadi.vertcat(casadi.vertcat(*map(casadi.SX, rate)), A, 1.0)

        def along(x):
            return casadi.jtimes(x, path, velocity)

        results = []
        for name in names:
            body, pose = tree.frames[name]
            matrix = equations.frame_pose(q_array, body, pose, T)
            R = casadi.SX(casadi.vertcat(*[casadi.horzcat(*matrix[i, :3]) for i in range(3)]))
            p = casadi.SX(casadi.vertcat(*matrix[:3, 3]))
            spin = casadi.mtimes(casadi.reshape(along(casadi.reshape(R, 9, 1)), 3, 3), R.T)
            omega = casadi.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
            force = moment = com = casadi.SX.zeros(3)
            if (own := self.links[name].inertial) is not None:
                arm = casadi.mtimes(R, own.com)
                com = p + arm
                momentum = casadi.mtimes(casadi.mtimes(R, own.inertia), casadi.mtimes(R.T, omega))
                force = own.mass * (along(along(com)) - casadi.DM(equations.gravity))
                moment = along(momentum)
            results += [R, p, omega, along(p), com, force, moment]
        found = casadi.Function("motion", [Q, V, A, T], results)(q, v, a, t)
        values = [np.asarray(x, dtype=float) for x in found]
        parts = [values[k : k + 7] for k in range(0, len(values), 7)]
        self.frames = {
            name: FrameState(R, p.ravel(), w.ravel(), u.ravel())
            for name, (R, p, w, u, *_) in zip(names, parts, strict=True)
        }
        self.needed = {
            name: tuple(x.ravel() for x in part[4:]) for name, part in zip(names, parts, strict=True)
        }  # centre of mass, force, moment about it

    def frame(self, link, pose):
        own = self.frames[link]
        arm = own.rotation @ pose.position
        return FrameState(
            own.rotation @ pose.rotation, own.position + arm, own.angular, own.linear + np.cross(own.angular, arm)
        )


class Balance:
    """The sum of forces on each link, and of moments about its centre of mass."""

    def __init__(self, motion):
        self.motion = motion
        self.total = {name: np.zeros(6) for name in motion.links}
        self.scale = 1.0

    def add(self, link, point, force, moment):
        com = self.motion.needed[link][0]
        self.total[link] += [*force, *(moment + np.cross(point - com, force))]
        self.scale = max(self.scale, np.abs(force).max(), np.abs(moment).max())

    def assert_moves_the_links(self, room=1e-12):
        for name, (_, force, moment) in self.motion.needed.items():
            if self.motion.links[name].inertial is not None:
                np.testing.assert_allclose(
                    self.total[name], [*force, *moment], rtol=0, atol=room * self.scale, err_msg=name
                )


def add_joints(balance, model, wrenches):
    """As the reference says: on the child at its origin, along the axes of the joint's frame on the parent."""
    motion = balance.motion
    for joint, wrench in zip(model.equations.tree.joints, wrenches, strict=True):
        axes = motion.frame(joint.parent, joint.pose).rotation @ joint_axes(joint)
        force, moment, point = axes @ wrench[:3], axes @ wrench[3:], motion.frames[joint.child].position
        balance.add(joint.child, point, force, moment)
        balance.add(joint.parent, point, -force, -moment)


def add_constraints(balance, model, wrenches):
    """On each frame at its origin, along the axes of the first frame, of the ground where it has one frame."""
    motion, given = balance.motion, iter(wrenches)
    poses = {c.name: c.frames for c in model.mechanism.constraints}
    for loop in model.mechanism.loops:
        joint, ends = loop.joint, (loop.joint.pose, loop.child_pose)
        if loop.coordinates:  # the weld of both halves of the child
            part = next(j.child for j in model.equations.tree.joints if j.name == joint.name)
            poses[joint.name] = (part, Pose.identity()), (joint.child, loop.child_pose)
            continue
        aligned = Pose(joint_axes(joint), np.zeros(3))
        poses[joint.name] = tuple(zip((joint.parent, joint.child), (pose @ aligned for pose in ends), strict=True))
    for constraint in model.equations.constraints.members:
        frames = [(link, motion.frame(link, pose)) for link, pose in poses[constraint.name]]
        axes = frames[0][1].rotation if len(frames) > 1 else np.eye(3)
        for link, frame in frames:
            wrench = next(given)
            balance.add(link, frame.position, axes @ wrench[:3], axes @ wrench[3:])


def add_springs(balance, model):
    motion = balance.motion
    for spring in model.mechanism.springs:
        first, second = (motion.frame(link, Pose(np.eye(3), point)) for link, point in spring.ends)
        apart = second.position - first.position
        length = np.linalg.norm(apart)
        rate = (second.linear - first.linear) @ apart / length
        pull = (spring.stiffness * (length - spring.length) + spring.damping * rate) * apart / length
        for (link, _), frame, sign in zip(spring.ends, (first, second), (1.0, -1.0), strict=True):
            balance.add(link, frame.position, sign * pull, np.zeros(3))


def add_laws(balance, model, q, v, t):
    motion = balance.motion
    for force in model.mechanism.forces:
        frames = [motion.frame(*frame) for frame in force.frames]
        own = [q[model.coordinate_names.index(name)] for name in force.joints]
        speeds = [v[model.dof_index(name)] for name in force.joints]
        for (link, _), frame, wrench in zip(
            force.frames, frames, force.law.wrenches(frames, np.array(own), np.array(speeds), t), strict=True
        ):
            balance.add(link, frame.position, wrench[:3], wrench[3:])


def state(model, seed):
    random = np.random.default_rng(seed)
    q = model.random_configuration(random)
    return q, *random.uniform(-2.0, 2.0, (2, model.nv)), float(random.uniform(0.0, 1.0))


def loaded(seed):
    random = np.random.default_rng(seed)
    own = mechanism(seed)
    rotors = random.uniform(0.0, 0.3, Model(own).nv) * (seed % 2)
    return Model(own, random.uniform(-10.0, 10.0, 3), rotors)


@pytest.mark.parametrize("group", range(10))
def test_wrenches_gravity_and_applied_forces_move_every_link(group):
    for seed in range(group, MECHANISMS, 10):
        model = loaded(seed)
        q, v, tau, t = state(model, seed)
        equations = model.equations
        motion = LinkMotion(model, q, v, equations.forward_dynamics(q, v, tau, t), t)
        balance = Balance(motion)
        add_joints(balance, model, equations.joint_wrenches(q, v, tau, t))
        add_constraints(balance, model, equations.constraint_wrenches(q, v, tau, t))
        add_springs(balance, model)
        add_laws(balance, model, q, v, t)
        balance.assert_moves_the_links()


@pytest.mark.parametrize("seed", range(1, 12, 2))
def test_a_joint_transmits_the_effort_along_its_dofs(seed):
    """Of a wrench on the child the part along each dof: drive, force laws and constraints on the coordinate, less the
    inertia of the rotor."""
    model = loaded(seed)
    q, v, tau, t = state(model, seed)
    equations = model.equations
    a, multipliers = equations.forward_dynamics(q, v, tau, t), equations.reactions(q, v, tau, t)
    along = model.equations.v_map.embed(tau) - np.concatenate([b.rotor for b in equations.tree.bodies]) * a
    for constraint, found in zip(
        equations.constraints.members, equations.wrenches_of_constraints(q, v, multipliers, t), strict=True
    ):
        along[constraint.dofs] += np.asarray(found.efforts, dtype=float)
    (hinge,) = model.mechanism.forces[0].joints
    k = model.dof_index(hinge)
    along[k] += 0.4 - 0.2 * v[k]
    first = 0
    for kind, own, wrench in zip(
        equations.tree.kinds, equations.sweeps.by_q(q), equations.joint_wrenches(q, v, tau, t), strict=True
    ):
        rotation = np.asarray(kind.place(own, t)[0], dtype=float)
        columns = kind.hinge(own, np.zeros(kind.nv), t).columns
        for s in columns:  # along the child's axes
            power = (rotation @ s.linear) @ wrench[:3] + (rotation @ s.angular) @ wrench[3:]
            assert power == pytest.approx(along[first], rel=1e-9, abs=1e-9 * max(1.0, np.abs(wrench).max()))
            first += 1


RIGID = [kind for kind in KINDS if kind != joints.GENERAL]


@pytest.mark.parametrize("seed", range(8))
def test_the_joints_of_the_cartesian_formulation_transmit_the_same(seed):
    """Its multipliers act on the bodies along elementary rows, in equations that share nothing with the sweeps."""
    random = np.random.default_rng(seed)
    links = [Link("ground"), *(heavy(f"l{k}", random) for k in range(5))]
    kinds = list(islice(cycle(RIGID), 5 * seed, 5 * seed + 5))
    tree = [
        joint_of(f"j{k}", kind, "ground" if kind == "base" else links[random.integers(k + 1)].name, f"l{k}", random)
        for k, kind in enumerate(kinds)
    ]
    tie = Constraint("tie", distance(0.7), (("l1", random_pose(random)), ("l3", random_pose(random))))
    names = tuple(joint.name for joint in tree)
    own = Mechanism("tree", "ground", tuple(links), tuple(tree), constraints=(tie,), reactions=names)
    model = Model(own, random.uniform(-10.0, 10.0, 3))
    model = model.with_rotor_inertia(random.uniform(0.0, 0.3, model.nv) * (np.arange(model.nv) % 2))
    q, v, tau, t = state(model, seed)
    cartesian = load_formulation("cartesian", model.equations)
    placed = cartesian.placements(q, v, t)
    solution = cartesian.solution(q, v, tau, t)
    first = 0
    found = model.equations.joint_wrenches(q, v, tau, t)
    for k, (forbidden, free) in enumerate(cartesian.joint_rows(placed, t)):
        efforts, rotors = tau[first : first + len(free)], cartesian.joints[k].rotors
        turning = [row for row, has in zip(free, rotors, strict=True) if has]
        acting = [*zip([*forbidden, *turning], solution.joints[k], strict=True)]
        acting += [(row, x) for row, x, has in zip(free, efforts, rotors, strict=True) if not has]
        first += len(free)
        force = sum((row.other.linear * x for row, x in acting), np.zeros(3))
        moment = sum((row.other.angular * x for row, x in acting), np.zeros(3))
        here = placed[k]
        com = here.rotation @ model.equations.tree.bodies[k].moment / model.equations.tree.bodies[k].mass
        at_origin = moment + np.cross(com, force)
        turned, _ = model.equations.tree.kinds[k].place(model.equations.sweeps.by_q(q)[k], t)
        to_joint = np.asarray(turned, dtype=float) @ here.rotation.T
        close(found[k], np.concatenate([to_joint @ force, to_joint @ at_origin]), 1e-10)


@pytest.mark.parametrize("factor", [2.0, -0.1])
def test_the_wrench_of_a_law_does_not_depend_on_the_scale_of_its_residual(factor):
    def law(scale):
        return ConstraintLaw((FORCE,), lambda frames, q, t: scale * ops.array([frames[1].position[0] - q[0]]))

    random = np.random.default_rng(4)
    links = [Link("ground"), *(heavy(f"l{k}", random) for k in range(2))]
    tree = [joint_of("j0", "revolute", "ground", "l0", random), joint_of("j1", "free", "ground", "l1", random)]
    frames = tuple((link, random_pose(random)) for link in ("l0", "l1"))

    def model(scale):
        tie = Constraint("tie", law(scale), frames, ("j0",))
        return Model(Mechanism("m", "ground", tuple(links), tuple(tree), constraints=(tie,)))

    one, scaled = model(1.0), model(factor)
    q, v, tau, _ = state(one, 5)
    close(scaled.equations.constraint_wrenches(q, v, tau), one.equations.constraint_wrenches(q, v, tau), 1e-12)
    close(scaled.equations.joint_wrenches(q, v, tau), one.equations.joint_wrenches(q, v, tau), 1e-12)
    close(factor * scaled.equations.reactions(q, v, tau), one.equations.reactions(q, v, tau), 1e-12)


@pytest.mark.parametrize("seed", [1, 5])
def test_machine_code_of_wrenches_is_their_python(seed):
    model = loaded(seed)
    q, v, tau, t = state(model, seed)
    given = (q, v, tau, t) if model.equations.timed else (q, v, tau)
    for function in ("constraint_wrenches", "joint_wrenches"):
        found = getattr(model, function)(*given)
        assert found.shape == (len(model.constraint_frames if function[0] == "c" else model.tree_joint_names), 6)
        close(found, getattr(model.equations, function)(q, v, tau, t), 1e-9)
