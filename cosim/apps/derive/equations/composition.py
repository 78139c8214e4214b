"""A manipulator on a platform: equations of both together from each one's own.

The platform moves the base of the manipulator: velocity, acceleration and gravity along the axes of the base enter the
equations of the manipulator, which give its efforts and the wrench W on its base. The platform has W as a load:

    tau_m = (equations of the manipulator on a base with ω, α, a − g)
    tau_c = (equations of the platform) + Jᵀ W
    M = [M_c + Jᵀ M_bb J,  Jᵀ M_bm; M_mb J,  M_mm]

M_mm, M_bm, M_bb: the inertia of the manipulator whose base is free; J: the Jacobian of the place where it is mounted,
along the axes of its base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.apps.derive.equations.code import operations_of
from cosim.apps.derive.equations.components import (
    ZERO_VECTOR,
    ComponentBuilder,
    Derivation,
    EquationTerm,
    dry_friction,
    massless,
    viscous_friction,
)
from cosim.apps.derive.tables import table
from cosim.core import ops
from cosim.core.compile.pytree import Pytree
from cosim.core.compile.trace import inlined
from cosim.core.errors import InputError, did_you_mean
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.bodies import Body, transport
from cosim.mechanics.multibody.constraint_rows import spring_dampers
from cosim.mechanics.multibody.constraint_set import ConstraintSet
from cosim.mechanics.multibody.description.elastic_links import with_nodes
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.joint_springs import joint_springs
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.mechanism import (
    Contact,
    CoupledRotor,
    Frame,
    Joint,
    Link,
    Mechanism,
    Pose,
    Spring,
    TorsionSpring,
    with_floating_base,
)
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.torsion_springs import ball_springs, torsion_spring_dampers
from cosim.mechanics.multibody.tree import Tree, build_tree

RANDOM_STATES = 5
CAUSED = "efforts of the joints of the manipulator, in their order, that the motion of the platform causes"
IN_ONE = "Without --mount and --on, a rig with the bodies of both is derived in one; write such a rig"
UNSUPPORTED = ("free", "planar")  # kinds of joints by which a vehicle moves on its ground
AT_HOME = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # coordinates of the base in its own axes


@dataclass(frozen=True)
class MountedManipulator:
    """A manipulator on a platform. platform, manipulator: their own equations, of the manipulator on a free base.
    joined: the model of both in one. frame: of the platform. notes: what a reader must know. dofs, coordinates: places
    of the platform's, then the manipulator's, in the joined."""

    joined: Model
    platform: MechanismEquations
    manipulator: MechanismEquations
    frame: str
    notes: tuple[str, ...]
    dofs: tuple[list[int], list[int]]
    coordinates: tuple[list[int], list[int]]


def compose(platform: Model, manipulator: Model, frame: str) -> MountedManipulator:
    """The manipulator on a frame of the platform; gravity is the platform's.

    Raises InputError for an unknown frame, names that both have, a manipulator whose base is free, and parts that do
    not compose.
    """
    known = platform.equations.tree.given_frames
    if frame not in known:
        raise InputError(f"frame '{frame}' does not exist{did_you_mean(frame, known)}", "--on")
    for part, model in (("platform", platform), ("manipulator", manipulator)):
        if model.constraint_rows:
            raise InputError(f"the {part} has loops or constraints; only trees are composed. {IN_ONE}", "--mount")
        if model.equations.constraints.elastic:
            raise InputError(f"the {part} has elastic links, which are not composed. {IN_ONE}", "--mount")
    if manipulator.mechanism.forces or manipulator.timed:
        what = "force laws, which need the ground" if manipulator.mechanism.forces else "a base that moves by itself"
        raise InputError(f"the manipulator has {what}. {IN_ONE}", "--mount")
    _check_carried(manipulator.mechanism)
    arm = _renamed(with_nodes(manipulator.mechanism), platform.mechanism)
    rotors = platform.drive_rotors | manipulator.drive_rotors
    joined = Model(_joined(platform.mechanism, arm, frame), platform.gravity.tolist(), rotors)
    free = _with_rotors(build_tree(with_floating_base(arm)), rotors)
    between = (*spring_dampers(free, arm.springs), *torsion_spring_dampers(free, arm.torsion_springs))
    springs = ConstraintSet(springs=between, joint_springs=joint_springs(free), ball_springs=ball_springs(free))
    own = MechanismEquations(free, ZERO_VECTOR, springs)
    names = platform.joint_names
    return MountedManipulator(
        joined,
        platform.equations,
        own,
        frame,
        _notes(platform, manipulator, frame),
        _places(joined, names, [kind.nv for kind in joined.kinds]),
        _places(joined, names, [kind.nq for kind in joined.kinds]),
    )


def _with_rotors(tree: Tree, rotors: Mapping[str, Numeric]) -> Tree:
    """rotors: dof -> inertia, for all dofs but those of the base."""
    names = [kind.named(joint.name, kind.dofs) for joint, kind in zip(tree.joints, tree.kinds, strict=True)]
    return tree.with_rotors([ops.array([rotors.get(name, 0.0) for name in of_joint]) for of_joint in names])


def _check_carried(arm: Mechanism) -> None:
    """Raises InputError for a manipulator that the platform would not carry."""
    for joint in arm.joints:
        if joint.kind in UNSUPPORTED and joint.parent == arm.root:
            what = f"body '{joint.child}' of the manipulator moves by a {joint.kind} joint, so the platform would not"
            raise InputError(f"{what} carry it; make joint '{joint.name}' fixed", "--mount")


def _notes(platform: Model, manipulator: Model, frame: str) -> tuple[str, ...]:
    notes = (f"Composed of a platform and a manipulator on its frame {frame}.",)
    if np.array_equal(platform.gravity, manipulator.gravity):
        return notes
    used, left_out = (f"[{', '.join(f'{x:g}' for x in model.gravity)}]" for model in (platform, manipulator))
    of = manipulator.mechanism.name
    return (*notes, f"Gravity is the platform's, {used} m/s^2; the {left_out} m/s^2 of {of} does not count.")


def _places(joined: Model, of_platform: Sequence[str], sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    places: tuple[list[int], list[int]] = ([], [])
    start = 0
    for name, size in zip(joined.joint_names, sizes, strict=True):
        places[name not in of_platform].extend(range(start, start + size))
        start += size
    return places


def _renamed(arm: Mechanism, platform: Mechanism) -> Mechanism:
    """With another name for its root link where the platform has one of this name.

    Raises InputError for other names that both have."""
    taken = {part.name for part in _parts(platform)}
    root = arm.root if arm.root not in taken else f"{arm.name}_{arm.root}"
    for part in _parts(arm):
        if part.name in taken and part.name != arm.root:
            what = f"'{part.name}' is a name in the platform and in the manipulator; rename it in one of them"
            raise InputError(what, "--mount")

    def name(link: str) -> str:
        return root if link == arm.root else link

    return replace(
        arm,
        root=root,
        links=tuple(replace(link, name=name(link.name)) for link in arm.links),
        joints=tuple(replace(joint, parent=name(joint.parent)) for joint in arm.joints),
        frames=tuple(replace(frame, link=name(frame.link)) for frame in arm.frames),
        springs=tuple(
            replace(spring, ends=tuple((name(link), point) for link, point in spring.ends)) for spring in arm.springs
        ),
        torsion_springs=tuple(
            replace(spring, ends=tuple((name(link), pose) for link, pose in spring.ends))
            for spring in arm.torsion_springs
        ),
        contacts=tuple(
            replace(contact, ends=tuple((name(link), pose) for link, pose in contact.ends)) for contact in arm.contacts
        ),
    )


def _parts(mechanism: Mechanism) -> tuple[Link | Joint | Frame | Spring | TorsionSpring | CoupledRotor | Contact, ...]:
    """All that has a name beside loops, constraints and force laws."""
    m = mechanism
    return *m.links, *m.joints, *m.frames, *m.springs, *m.torsion_springs, *m.rotors, *m.contacts


def _joined(platform: Mechanism, arm: Mechanism, frame: str) -> Mechanism:
    named = {known.name: known for known in platform.frames}.get(frame, Frame(frame, frame, Pose.identity()))
    mount = Joint(f"{arm.name}_mount", "fixed", named.link, arm.root, named.pose)
    return Mechanism(
        f"{arm.name}_on_{platform.name}",
        platform.root,
        (*platform.links, *arm.links),
        (*platform.joints, mount, *arm.joints),
        frames=(*platform.frames, *arm.frames),
        springs=(*platform.springs, *arm.springs),
        torsion_springs=(*platform.torsion_springs, *arm.torsion_springs),
        forces=platform.forces,
        rotors=(*platform.rotors, *arm.rotors),
        contacts=(*platform.contacts, *arm.contacts),
    )


# --- the motion of the base ------------------------------------------------------------------------------


def frame_motion(
    e: MechanismEquations, frame: str, q: Numeric, v: Numeric, a: Numeric, t: Numeric, gravity: Numeric
) -> tuple[Numeric, Numeric, Numeric]:
    """(ω, acceleration of the origin less gravity, α) of a frame, along its axes."""
    tree, vectors = e.tree, (e.q_map.positions(q), e.v_map.expand(v), e.v_map.expand(a))

    def step(
        kind: JointKind, body: Body, above: tuple[Numeric, SpatialVector], q: Numeric, v: Numeric, a: Numeric
    ) -> Pytree:
        omega, acceleration = above
        motion = kind.motion(body, omega, q, v, t)
        linear = ops.sum(s.linear * a[i] for i, s in enumerate(motion.hinge))
        angular = ops.sum(s.angular * a[i] for i, s in enumerate(motion.hinge))
        here = transport(body, motion, acceleration) + motion.bias + SpatialVector(linear, angular)
        return (motion.omega, here), (motion.omega, here)

    root = ZERO_VECTOR, SpatialVector(-gravity, ZERO_VECTOR)
    sweeps = e.sweeps
    moving = sweeps.outward(step, root, sweeps.by_q(vectors[0]), sweeps.by_v(vectors[1]), sweeps.by_v(vectors[2]))
    k, pose = tree.frames[frame]
    omega, here = root if k < 0 else moving[k]
    reach = here.linear + ops.cross(here.angular, pose.position) + ops.cross(omega, ops.cross(omega, pose.position))
    turn = pose.rotation.T
    return turn @ omega, turn @ reach, turn @ here.angular


# --- equations of both -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Both:
    """The functions of both together, in the order of the joined model."""

    parts: MountedManipulator

    def _cut(self, x: Numeric, places: tuple[list[int], list[int]]) -> tuple[Numeric, Numeric]:
        return tuple(x[own] if own else np.zeros(0) for own in places)  # type: ignore[return-value]

    def _vector(self, platform: Numeric, manipulator: Numeric) -> Numeric:
        n = len(platform) + len(manipulator)
        first, second = self.parts.dofs
        return ops.set_at(np.zeros(n), [*first, *second], [*platform, *manipulator])

    def jacobian(self, q: Numeric, t: Numeric) -> Numeric:
        """J (6, n) of the frame, along its axes."""
        e, frame = self.parts.platform, self.parts.frame
        body, pose = e.tree.frames[frame]
        turn = e.frame_pose(q, body, pose, t)[:3, :3].T
        whole = e.frame_jacobian(q, body, pose, t)
        return ops.concatenate([turn @ whole[:3], turn @ whole[3:]])

    def mass_matrix(self, q: Numeric, t: Numeric) -> Numeric:
        (q_c, q_m), (first, second) = self._cut(q, self.parts.coordinates), self.parts.dofs
        own = self.parts.manipulator.mass_matrix(ops.concatenate([AT_HOME, q_m]), t)
        base, mixed, inner = own[:6, :6], own[:6, 6:], own[6:, 6:]
        n = len(first) + len(second)
        m: list[list[Numeric]] = [[0.0] * n for _ in range(n)]
        for i, row in zip(second, inner, strict=True):
            for j, x in zip(second, row, strict=True):
                m[i][j] = x
        if first:
            jacobian = self.jacobian(q_c, t)
            carried = self.parts.platform.mass_matrix(q_c, t) + jacobian.T @ (base @ jacobian)
            coupling = jacobian.T @ mixed
            for k, i in enumerate(first):
                for h, j in enumerate(first):
                    m[i][j] = carried[k, h]
                for h, j in enumerate(second):
                    m[i][j] = m[j][i] = coupling[k, h]
        return ops.array(m)

    def required(
        self, q: Numeric, v: Numeric, a: Numeric, t: Numeric, gravity: Numeric, forces: bool = True
    ) -> Numeric:
        """(n,) efforts for given accelerations, without friction; forces: springs and force laws are included."""
        platform, manipulator = self._parts(gravity, forces)
        (q_c, q_m), (v_c, v_m), (a_c, a_m) = self._states(q, v, a)
        base = frame_motion(platform, self.parts.frame, q_c, v_c, a_c, t, gravity)
        return self._with_wrench(platform.inverse_dynamics(q_c, v_c, a_c, t), manipulator, q_c, q_m, v_m, a_m, base, t)

    def gravity_effort(self, q: Numeric, t: Numeric) -> Numeric:
        """(n,) with everything at rest."""
        e = self.parts.platform
        platform, manipulator = self._parts(e.gravity, forces=False)
        q_c, q_m = self._cut(q, self.parts.coordinates)
        still = np.zeros(len(self.parts.dofs[1]))
        turn = e.frame_pose(q_c, *e.tree.frames[self.parts.frame], t)[:3, :3]
        base = ZERO_VECTOR, -(turn.T @ e.gravity), ZERO_VECTOR
        return self._with_wrench(platform.gravity_effort(q_c, t), manipulator, q_c, q_m, still, still, base, t)

    def _parts(self, gravity: Numeric, forces: bool) -> tuple[MechanismEquations, MechanismEquations]:
        """The platform with this gravity, and the manipulator."""
        platform, manipulator = self.parts.platform, self.parts.manipulator
        return (
            MechanismEquations(platform.tree, gravity, platform.constraints if forces else ConstraintSet()),
            manipulator if forces else MechanismEquations(manipulator.tree, ZERO_VECTOR, ConstraintSet()),
        )

    def _states(self, q: Numeric, *velocities: Numeric) -> list[tuple[Numeric, Numeric]]:
        return [self._cut(q, self.parts.coordinates), *(self._cut(x, self.parts.dofs) for x in velocities)]

    def _with_wrench(
        self,
        alone: Numeric,
        manipulator: MechanismEquations,
        q_c: Numeric,
        q_m: Numeric,
        v_m: Numeric,
        a_m: Numeric,
        base: tuple[Numeric, Numeric, Numeric],
        t: Numeric,
    ) -> Numeric:
        """(n,) efforts of the manipulator on a base with the motion (ω, a, α), and of the platform: `alone` and for the
        wrench on that base."""
        found = self._on_base(manipulator, q_m, v_m, a_m, base, t)
        wrench, efforts = found[:6], found[6:]
        carried = alone + self.jacobian(q_c, t).T @ wrench if len(self.parts.dofs[0]) else alone
        return self._vector(carried, efforts)

    def _on_base(
        self,
        manipulator: MechanismEquations,
        q_m: Numeric,
        v_m: Numeric,
        a_m: Numeric,
        base: tuple[Numeric, Numeric, Numeric],
        t: Numeric,
    ) -> Numeric:
        """(6 + n,) the wrench on the base of the manipulator, along its axes, and the efforts of its joints."""
        omega, linear, angular = base
        return manipulator.inverse_dynamics(
            ops.concatenate([AT_HOME, q_m]),
            ops.concatenate([ZERO_VECTOR, omega, v_m]),
            ops.concatenate([linear, angular, a_m]),
            t,
        )

    def by_platform(self, q: Numeric, v: Numeric, a: Numeric, t: Numeric, gravity: Numeric) -> tuple[Numeric, Numeric]:
        """(wrench on the base of the manipulator (6,), efforts of its joints that the motion of the platform causes)"""
        platform, manipulator = self._parts(gravity, forces=True)
        (q_c, q_m), (v_c, v_m), (a_c, a_m) = self._states(q, v, a)
        moving = frame_motion(platform, self.parts.frame, q_c, v_c, a_c, t, gravity)
        turn = platform.frame_pose(q_c, *platform.tree.frames[self.parts.frame], t)[:3, :3]
        at_rest = ZERO_VECTOR, -(turn.T @ gravity), ZERO_VECTOR
        found, still = (self._on_base(manipulator, q_m, v_m, a_m, base, t) for base in (moving, at_rest))
        return found[:6], found[6:] - still[6:]

    def losses(self, of: Callable[[MechanismEquations, Numeric], Numeric], v: Numeric) -> Numeric:
        """(n,) of a function of the velocities of each part alone."""
        own, whole = self._cut(v, self.parts.dofs)
        found = of(self.parts.manipulator, ops.concatenate([np.zeros(6), whole]))[6:]
        return self._vector(of(self.parts.platform, own) if len(self.parts.dofs[0]) else np.zeros(0), found)


def composed(parts: MountedManipulator, frames: Sequence[str] = (), load: str | None = None) -> Derivation:
    """The components of both together. Raises InputError for an unknown frame."""
    joined, both = parts.joined, _Both(parts)
    builder, inputs = ComponentBuilder.of(joined.equations, frames, load)
    at, n = builder.at, (joined.nv,)
    still, gravity = np.zeros(n), parts.platform.gravity
    with inlined():
        friction = both.losses(MechanismEquations.friction_effort, at.v)
        coriolis = both.required(at.q, at.v, still, at.t, ZERO_VECTOR, forces=False)
        between = (
            _Both(_massless(parts)).required(at.q, at.v, still, at.t, ZERO_VECTOR) if _has_forces(parts) else still
        )
        others = friction - builder.load_effort(load)
        mass, weight = both.mass_matrix(at.q, at.t), both.gravity_effort(at.q, at.t)
        rest = at.tau - coriolis - weight - between - others
        values = {
            "mass_matrix": ("q", mass),
            "coriolis": ("q v", coriolis),
            "gravity": ("q", weight),
            "viscous_friction": ("v", both.losses(viscous_friction, at.v)),
            "dry_friction": ("v", both.losses(dry_friction, at.v)),
            "springs": ("q v", between),
        }
        terms = [builder.term(name, arguments, value) for name, (arguments, value) in values.items()]
        required = both.required(at.q, at.v, at.a, at.t, gravity) + others
        dynamics = builder.dynamics(load, required, ops.solve(mass, rest))
        wrench, caused = both.by_platform(at.q, at.v, at.a, at.t, gravity)
        about = (
            f"wrench of the platform on the manipulator, without a load: force, moment at the origin of {parts.frame}"
        )
        dynamics += [
            builder.component("base_wrench", "W", f"{about}, along its axes", "q v a", wrench, (6,)),
            builder.component("platform_effort", "tau_p", CAUSED, "q v a", caused, (len(caused),)),
        ]
        kinematics = builder.kinematics(frames)
    return builder.derivation(
        joined, inputs, [*terms, *builder.loads(load)], dynamics, kinematics, load=load, notes=parts.notes
    )


def _massless(parts: MountedManipulator) -> MountedManipulator:
    """Springs and force laws alone."""
    platform, manipulator = (massless(e, e.constraints) for e in (parts.platform, parts.manipulator))
    return replace(parts, platform=platform, manipulator=manipulator)


def _has_forces(parts: MountedManipulator) -> bool:
    return any(e.constraints.apply_forces for e in (parts.platform, parts.manipulator))


def comparison_lines(d: Derivation, in_one: Derivation) -> list[str]:
    """How far the composed equations are from those derived in one, in random states, and the operations of both."""
    states = _random_inputs(d)
    known = {c.name: c for c in in_one.everything}
    rows = []
    for c in (*d.components, *d.dynamics):
        if c.name in known:
            pair = (d, c), (in_one, known[c.name])
            counts = [operations_of([of.inputs[a] for a in x.arguments], x.entries).total for of, x in pair]
            rows.append((c.name, f"{_largest_difference(*pair, states):.1e}", *map(str, counts)))
    head = ("composed", "relative difference", "operations", "operations in one")
    return [f"compared with the mechanism derived in one, in {RANDOM_STATES} random states", *table([head, *rows], "<")]


def _random_inputs(d: Derivation) -> list[dict[str, Array]]:
    """Values of the inputs: positions within the limits, all else up to 1."""
    rng, found = np.random.default_rng(0), list[dict[str, Array]]()
    for _ in range(RANDOM_STATES):
        values = {a: rng.uniform(-1, 1, column.numel()) for a, column in d.inputs.items()}
        found.append(values | {"q": d.model.random_configuration(rng)})
    return found


def _largest_difference(
    own: tuple[Derivation, EquationTerm], other: tuple[Derivation, EquationTerm], states: Sequence[dict[str, Array]]
) -> float:
    """Of a component in two derivations, relative to its largest element where that is above 1."""
    found, expected = ([evaluate(state) for state in states] for evaluate in map(_evaluator, (own, other)))
    return max(
        float(np.abs(f - e).max(initial=0.0)) / max(1.0, float(np.abs(e).max(initial=0.0)))
        for f, e in zip(found, expected, strict=True)
    )


def _evaluator(of: tuple[Derivation, EquationTerm]) -> Callable[[dict[str, Array]], Array]:
    import casadi

    d, c = of
    f = casadi.Function("component", [d.inputs[a] for a in c.arguments], [c.entries])
    return lambda state: np.asarray(f(*(state[a] for a in c.arguments))).ravel()
