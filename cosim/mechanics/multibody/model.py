"""A mechanism's dynamics as fast functions of numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cosim.core import ops
from cosim.core.compile import Compiled, Interpreted
from cosim.core.compile.compiled import Output
from cosim.core.compile.native_method import frame_places, native_method, native_method_of
from cosim.core.errors import InputError, did_you_mean
from cosim.core.types import Array, Limits, Numeric
from cosim.mechanics.multibody.constraint_rows import body_constraints, body_forces, elastic_forces, spring_dampers
from cosim.mechanics.multibody.constraint_set import ConstraintSet
from cosim.mechanics.multibody.contact_set import body_contacts
from cosim.mechanics.multibody.description.elastic_links import with_nodes
from cosim.mechanics.multibody.description.loop_cutting import cut_loops
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.elastic_joints import MODES
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.inertial_parameters import inertial_parameters
from cosim.mechanics.multibody.inverse_kinematics import InverseKinematics, solve_pose
from cosim.mechanics.multibody.joint_springs import joint_springs
from cosim.mechanics.multibody.massless import assumed_inertia
from cosim.mechanics.multibody.mechanism import GRAVITY, Mechanism
from cosim.mechanics.multibody.model_functions import CompiledFunctions
from cosim.mechanics.multibody.part_names import given_names, whole_of
from cosim.mechanics.multibody.robot_models import OfRobotFile
from cosim.mechanics.multibody.rotors import RotorInertia, rotors_of
from cosim.mechanics.multibody.torsion_springs import ball_springs, torsion_spring_dampers
from cosim.mechanics.multibody.tree import Tree, build_tree, check_inertia_of_motion

# from this many independent constraint rows on, elimination where the loops close is faster
NESTED_FROM = 4


class Model(OfRobotFile):
    """The dynamics of a mechanism, in O(n), compiled on first use.

    Every function contains the same mechanism: rigid bodies and elastic links with their damping, gravity, the springs
    in joints, the springs and dampers between bodies, the force laws, the rotors given to it, loops and constraints.
    Damping and friction of joints are `friction_effort` alone; drives are no part of it.

    Every function takes one state, arrays (nq,) and (nv,), or a batch of k of them, (k, nq) and (k, nv);
    a single array among batches serves every row. Symbols of a traced function, such as the inputs of a
    controller, give symbols: one state, without `out`. `out=` gives the array(s) to fill. With float64 arrays, and
    with lists of numbers for one state, a call costs little more than the arithmetic. SI units; joint order as in
    `joint_names`: depth first, siblings in file order, without mimic joints (they have no coordinate of their own).
    """

    nq: int
    nv: int
    joint_names: tuple[str, ...]
    dof_names: tuple[str, ...]  # (nv,): the joint's name, or `<joint>.<dof>` where it has several
    coordinate_names: tuple[str, ...]  # (nq,), likewise
    gravity: np.ndarray
    expanded: Mechanism  # with elastic links as joints and links alone
    assumed_inertia: Array  # (nv,) of dofs without an inertia of their own that a loop carries, see `massless`

    def __init__(
        self,
        mechanism: Mechanism,
        gravity: Sequence[float] = GRAVITY,
        rotor_inertia: RotorInertia | None = None,
        baumgarte_rate: float = 0.0,
        elimination: str = "auto",
        redundant: Sequence[int] = (),
        inexact: Mapping[int, float] | None = None,
    ) -> None:
        """rotor_inertia: reflected inertia of the drives' rotors on the dofs [kg m² or kg], (nv,) or by name,
        default 0. baumgarte_rate: of Baumgarte stabilisation, the rate [rad/s] at which constraint violations decay, 0
        for none. elimination of constraints: `direct` at the ground, `nested` where loops close, `auto` the faster one.
        redundant: constraint rows that depend on the others (see `assembly.find_redundant`); they are not solved for,
        and reactions are distributed over them by least norm. inexact: see `ConstraintSet`.

        Raises InputErrors for links that can move without inertia, ValueError for rotor inertias or a gravity of
        the wrong shape or value.
        """
        self._rotor_inertia, self._redundant, self._inexact = rotor_inertia, tuple(redundant), dict(inexact or {})
        self._baumgarte_rate, self._elimination = baumgarte_rate, elimination
        self.expanded = with_nodes(mechanism)
        open_mechanism, constraints = cut_loops(self.expanded)
        tree = build_tree(open_mechanism)
        moving = [(joint, kind) for joint, kind in zip(tree.joints, tree.kinds, strict=True) if joint.mimic is None]
        self.joints = tuple(joint for joint, _ in moving)
        self.kinds = tuple(kind for _, kind in moving)
        self.joint_names = tuple(given_names(j.name for j in self.joints))
        self.dof_names = tuple(name for j, k in moving for name in k.named(j.name, k.dofs))
        self.coordinate_names = tuple(name for j, k in moving for name in k.named(j.name, k.coordinates))
        self.nq, self.nv = len(self.coordinate_names), len(self.dof_names)
        if rotor_inertia is not None:
            tree = self._with_rotors(tree, rotor_inertia)
        members = body_constraints(tree, constraints)
        assumed = assumed_inertia(tree, members)
        if any(inertia.any() for inertia in assumed):
            tree = tree.with_rotors(assumed)
        check_inertia_of_motion(tree)
        pairs = zip(tree.joints, assumed, strict=True)
        self.assumed_inertia = np.concatenate([inertia for joint, inertia in pairs if joint.mimic is None] or [[]])
        self.mechanism = mechanism
        self.gravity = np.array(gravity, dtype=float)
        if self.gravity.shape != (3,):
            raise ValueError(f"gravity must be 3 numbers, got {gravity}")
        rows = sum(len(c.law.rows) for c in members) - len(redundant)
        nested = rows >= NESTED_FROM if elimination == "auto" else elimination == "nested"
        springs = spring_dampers(tree, self.expanded.springs)
        torsion = torsion_spring_dampers(tree, self.expanded.torsion_springs)
        laws = body_forces(tree, self.expanded.forces)
        constraint_set = ConstraintSet(
            members,
            (*springs, *torsion),
            laws,
            elastic_forces(tree),
            joint_springs(tree),
            ball_springs(tree),
            body_contacts(tree, self.expanded.contacts),
            baumgarte_rate,
            nested,
            self._redundant,
            self._inexact,
        )
        self.equations = MechanismEquations(tree, self.gravity, constraint_set)
        self.constraint_rows = tuple(f"{c.name}/{row.name}" for c in members for row in c.law.rows)
        self._tree: Tree = tree
        self.code = CompiledFunctions(self.equations, mechanism, tree, frame_places(Model))

    def _with_rotors(self, tree: Tree, rotor_inertia: RotorInertia) -> Tree:
        given = iter(self._rotors(rotor_inertia))
        pairs = zip(tree.joints, tree.kinds, strict=True)
        rotors = [[0.0 if j.mimic else next(given) for _ in range(k.nv)] for j, k in pairs]
        return tree.with_rotors([ops.array(r) for r in rotors])

    def _rotors(self, rotor_inertia: RotorInertia | None) -> Numeric:
        return rotors_of(rotor_inertia, self.nv, self.dof_index)

    def with_rotor_inertia(self, rotor_inertia: RotorInertia) -> Model:
        """The same mechanism with rotors: (nv,) inertia reflected to each dof."""
        return self._copy(rotor_inertia, self._redundant)

    @property
    def drive_rotors(self) -> dict[str, Numeric]:
        """Dof -> inertia of the rotors that were given beside those of the description."""
        return dict(zip(self.dof_names, self._rotors(self._rotor_inertia), strict=True))

    def without(self, redundant: Sequence[int], inexact: Mapping[int, float] | None = None) -> Model:
        """The same model without the redundant constraint rows in its solution; inexact: see `ConstraintSet`."""
        return self._copy(self._rotor_inertia, redundant, inexact=inexact)

    @property
    def as_known(self) -> Model:
        """The model of controllers: without force laws that are unknown to them."""
        known = tuple(force for force in self.mechanism.forces if force.known)
        if len(known) == len(self.mechanism.forces):
            return self
        return self._copy(self._rotor_inertia, self._redundant, replace(self.mechanism, forces=known))

    @property
    def elastic_dofs(self) -> Array:
        """(m,) the indices of the dofs of elastic links."""
        elastic = {link.name for link in self.mechanism.links if link.elastic is not None}
        found = [
            (link := whole_of(joint.child)) in elastic and joint.name.startswith((link + ".", link + MODES))
            for joint, kind in zip(self.joints, self.kinds, strict=True)
            for _ in range(kind.nv)
        ]
        return np.flatnonzero(found)

    @property
    def full_deflection(self) -> dict[str, float]:
        """Mode of an elastic link -> the coordinate with which it deflects the link by its length, finite ones."""
        links = [(link.name, link.elastic) for link in self.mechanism.links if isinstance(link.elastic, ElasticLink)]
        pairs = [
            (f"{name}.{mode}", float(x))
            for name, link in links
            for (mode, _), x in zip(link.modes, link.full_deflection, strict=True)
        ]
        return {mode: x for mode, x in pairs if np.isfinite(x)}

    @cached_property
    def drawn(self) -> Model:
        """The model for drawings, in the same coordinates: with further bodies at the stations of elastic links, by
        which their deflection is seen. Itself without elastic links."""
        links = tuple(
            replace(link, elastic=replace(link.elastic, drawn=True))
            if isinstance(link.elastic, ElasticLink) and not link.elastic.drawn
            else link
            for link in self.mechanism.links
        )
        if links == self.mechanism.links:
            return self
        return self._copy(self._rotor_inertia, self._redundant, replace(self.mechanism, links=links))

    def _copy(
        self,
        rotor_inertia: RotorInertia | None,
        redundant: Sequence[int],
        mechanism: Mechanism | None = None,
        inexact: Mapping[int, float] | None = None,
    ) -> Model:
        gravity, numerics = self.gravity.tolist(), (self._baumgarte_rate, self._elimination)
        inexact = self._inexact if inexact is None else inexact
        return Model(mechanism or self.mechanism, gravity, rotor_inertia, *numerics, redundant, inexact)

    @property
    def limits(self) -> Limits:
        """Position range, velocity and effort limits of each dof from the file; infinite where it sets none."""
        pairs = zip(self.joints, self.kinds, strict=True)
        columns = [(j.lower, j.upper, j.max_velocity, j.max_effort) for j, k in pairs for _ in range(k.nv)]
        return Limits(*np.array(columns, dtype=float).reshape(-1, 4).T.copy())

    def dof_index(self, name: str) -> int:
        """The index of a dof in vectors (nv,). Raises InputError that lists the existing names."""
        if name not in self._dof_indices:
            raise InputError(f"joint '{name}' does not exist{did_you_mean(name, self.dof_names)}")
        return self._dof_indices[name]

    @cached_property
    def _dof_indices(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.dof_names)}

    @property
    def timed(self) -> bool:
        """Whether a joint or a constraint depends on time."""
        return self.equations.timed

    @property
    def dof_units(self) -> tuple[str, ...]:
        """(nv,): `rad` or `m`"""
        return tuple(unit for kind in self.kinds for _, unit in kind.dofs)

    @property
    def continuous(self) -> frozenset[str]:
        """Joints for which positions a whole turn apart are the same."""
        return frozenset(joint.name for joint in self.mechanism.joints if joint.kind == "continuous")

    @property
    def coordinate_units(self) -> tuple[str, ...]:
        """(nq,): `rad`, `m`, or `1` for a quaternion"""
        return tuple(unit for kind in self.kinds for _, unit in kind.coordinates)

    # --- coordinates ---

    def neutral(self) -> np.ndarray:
        """Coordinates (nq,) at which the two frames of every joint coincide."""
        return np.concatenate([np.zeros(0), *(kind.space.neutral for kind in self.kinds)])

    def random_configuration(self, rng: np.random.Generator) -> np.ndarray:
        """Coordinates (nq,) within the limits, within ±π or ±1 m where there are none; rotations uniform, modal
        coordinates of elastic links within ±0.01.

        Loops are not closed: see `assembly.close_loops`."""
        parts = []
        for joint, kind in zip(self.joints, self.kinds, strict=True):
            q = rng.uniform(np.maximum(-kind.widest, joint.lower), np.minimum(kind.widest, joint.upper))
            if kind.nq != kind.nv:
                quaternion = rng.normal(size=4)
                q[-4:] = quaternion / np.linalg.norm(quaternion)
            parts.append(q)
        return np.concatenate([np.zeros(0), *parts])

    @native_method
    def coordinates(self, chart: ArrayLike, out: Output = None) -> Numeric:
        """q (nq,) from the positions of the dofs (nv,) that encoders measure: rotations as rotation vectors."""
        return self._call("coordinates", chart, out=out)

    @native_method
    def chart(self, q: ArrayLike, out: Output = None) -> Numeric:
        """The positions of the dofs (nv,), from q (nq,): the inverse of `coordinates`."""
        return self._call("chart", q, out=out)

    @native_method
    def integrate(self, q: ArrayLike, d: ArrayLike, out: Output = None) -> Numeric:
        """The coordinates (nq,) reached from q by moving with a constant velocity v for dt, d = v dt (nv,)."""
        return self._call("integrate", q, d, out=out)

    @native_method
    def difference(self, q0: ArrayLike, q1: ArrayLike, out: Output = None) -> Numeric:
        """d (nv,) with q1 = integrate(q0, d); the shorter of the two rotations."""
        return self._call("difference", q0, q1, out=out)

    # --- dynamics; where the model depends on time, t follows the last argument ---

    @native_method
    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *t: ArrayLike, out: Output = None
    ) -> Numeric:
        """q̈ (nv,) under efforts τ (nv,) (separate-body sweeps, with multipliers for constraints).

        τ are the efforts of drives less damping and friction of the joints, τ − friction_effort(v); all else that the
        mechanism contains acts here. The function of this name that `cosim derive --equations` writes subtracts
        friction itself: it equals this one at τ − friction_effort(v). Raises ValueError or TypeError for arrays of the
        wrong shape or type.
        """
        return self._call("forward_dynamics", q, v, tau, *t, out=out)

    @native_method
    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, qdd: ArrayLike, *t: ArrayLike, out: Output = None
    ) -> Numeric:
        """τ (nv,) required for q̈ (nv,) in the tree, without friction and with no reactions in cut joints. With loops,
        `hybrid_dynamics` gives the efforts of the actuated joints."""
        return self._call("inverse_dynamics", q, v, qdd, *t, out=out)

    @native_method
    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *t: ArrayLike, out: Numeric = None
    ) -> Numeric:
        """(∂q̈/∂q, ∂q̈/∂v, ∂q̈/∂τ), (nv, nv) each, of `forward_dynamics`. ∂/∂q is along the velocities of the dofs: the
        change per unit of d in `integrate(q, d)`. out: a tuple of three arrays.

        Raises CompileError for a mechanism of more than 64 dofs, whose code would be too long.
        """
        return self._call("forward_dynamics_derivatives", q, v, tau, *t, out=out)

    @native_method
    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, qdd: ArrayLike, *t: ArrayLike, out: Numeric = None
    ) -> Numeric:
        """(∂τ/∂q, ∂τ/∂v, ∂τ/∂q̈), (nv, nv) each, of `inverse_dynamics`; the last one is the mass matrix. ∂/∂q and
        errors are as of `forward_dynamics_derivatives`."""
        return self._call("inverse_dynamics_derivatives", q, v, qdd, *t, out=out)

    @native_method_of("link")
    def link_regressor(
        self, q: ArrayLike, v: ArrayLike, qdd: ArrayLike, link: str, *t: ArrayLike, out: Output = None
    ) -> Numeric:
        """Y (nv, 10): the efforts of `inverse_dynamics` that a link requires are Y π, with its parameters π: mass,
        m c (3,), and Ixx, Iyy, Izz, Ixy, Ixz, Iyz about its origin, all in its axes. Raises InputError that lists the
        known links, and for one that does not move or is elastic."""
        return self._call("link_regressor", q, v, qdd, *t, out=out, frame=link)

    @native_method
    def hybrid_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        qdd: ArrayLike,
        tau: ArrayLike,
        prescribed: ArrayLike,
        *t: ArrayLike,
        out: Numeric = None,
    ) -> Numeric:
        """(∂y/∂q, ∂y/∂v, ∂y/∂x), (nv, nv) each, of `hybrid_dynamics`: x is the given one of each dof, q̈ where that is
        prescribed and τ elsewhere, y the other one. ∂/∂q and errors are as of `forward_dynamics_derivatives`."""
        return self._call("hybrid_dynamics_derivatives", q, v, qdd, tau, prescribed, *t, out=out)

    @native_method
    def reactions_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *t: ArrayLike, out: Numeric = None
    ) -> Numeric:
        """(∂λ/∂q, ∂λ/∂v, ∂λ/∂τ), (m, nv) each, of `reactions`. ∂/∂q and errors are as of
        `forward_dynamics_derivatives`."""
        return self._call("reactions_derivatives", q, v, tau, *t, out=out)

    @property
    def inertial_parameters(self) -> Array:
        """(n, 10) of the n moving bodies, in the order of `body_poses`: m, m c (3) [kg m], and the inertia about the
        origin Ixx, Iyy, Izz, Ixy, Ixz, Iyz [kg m²], in the frame of the link that the joint moves; links that are fixed
        to it are parts of the body."""
        return inertial_parameters(self._tree)

    @native_method
    def inverse_dynamics_regressor(
        self, q: ArrayLike, v: ArrayLike, qdd: ArrayLike, *t: ArrayLike, out: Output = None
    ) -> Numeric:
        """Y (nv, 10 n): τ of `inverse_dynamics` is Y π plus what does not depend on π, such as the efforts of rotors
        and springs; π are all `inertial_parameters` side by side. Raises CompileError as
        `forward_dynamics_derivatives`."""
        return self._call("inverse_dynamics_regressor", q, v, qdd, *t, out=out)

    @native_method
    def forward_dynamics_regressor(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *t: ArrayLike, out: Output = None
    ) -> Numeric:
        """∂q̈/∂π (nv, 10 n), of `forward_dynamics` by all `inertial_parameters` π. Raises CompileError as
        `forward_dynamics_derivatives`."""
        return self._call("forward_dynamics_regressor", q, v, tau, *t, out=out)

    @native_method
    def hybrid_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        qdd: ArrayLike,
        tau: ArrayLike,
        prescribed: ArrayLike,
        *t: ArrayLike,
        out: Numeric = None,
    ) -> Numeric:
        """(q̈, τ), full vectors (nv,) each: τ of the dofs whose q̈ is prescribed, q̈ of the others under the given τ;
        the other entries are passed through (hybrid dynamics; Featherstone 2008, chapter 9).

        prescribed: bool (nv,). out: a tuple of two arrays.
        """
        return self._call("hybrid_dynamics", q, v, qdd, tau, prescribed, *t, out=out)

    @native_method
    def reactions(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """λ (m,) of the constraints under efforts τ (nv,), in the order of `constraint_rows`: Gᵀ λ are their efforts.
        `constraint_wrenches` has the forces and moments."""
        return self._call("reactions", q, v, tau, *t, out=out)

    @native_method
    def constraint_wrenches(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *t: ArrayLike, out: Output = None
    ) -> Numeric:
        """(k, 6) force [N] and moment [N m] of each constraint on each of its k frames under efforts τ (nv,), in the
        order of `constraint_frames`: at the origin of the frame, along the axes of the constraint's first frame, which
        is on the parent of a loop joint (of the ground if it has one frame). Their sum over the frames, at one point,
        is 0 where the law depends on relative motion alone."""
        return self._call("constraint_wrenches", q, v, tau, *t, out=out)

    @native_method
    def joint_wrenches(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """(n, 6) force [N] and moment [N m] on the child of each joint of the tree under efforts τ (nv,), in the order
        of `tree_joint_names`: at the origin of the child's frame, along the axes of the joint's frame on the parent,
        whose z is along the joint's axis and whose x is nearest to the frame's x (its y for an axis along x; for a
        universal joint the second axis). The effort along the joint is a part of it: drive, spring, friction and
        constraints on its coordinate, less the inertia of its rotor."""
        return self._call("joint_wrenches", q, v, tau, *t, out=out)

    @property
    def constraint_frames(self) -> tuple[str, ...]:
        """(k,) `<constraint>/<link>` of every frame of every constraint."""
        return tuple(f"{c.name}/{link}" for c in self.equations.constraints.members for link in c.links)

    @property
    def tree_joint_names(self) -> tuple[str, ...]:
        """(n,) the joints of the moving bodies, mimic joints and parts of elastic links included."""
        return tuple(joint.name for joint in self._tree.joints)

    @native_method
    def constraint_violation(self, q: ArrayLike, v: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """(residuals f of the holonomic rows, rates of all rows (m,)); both vanish when the constraints hold."""
        return self._call("constraint_violation", q, v, *t, out=out)

    @native_method
    def constraint_jacobian(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """G (m, nv): the constraint rates are G v + a₀, the efforts of the reactions Gᵀ λ."""
        return self._call("constraint_jacobian", q, *t, out=out)

    @native_method
    def nonlinear_effects(self, q: ArrayLike, v: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """h (nv,), the effort required at velocity v without acceleration: Coriolis, centrifugal and gravity effects,
        springs, elastic links and force laws. M q̈ + h = τ in a tree."""
        return self._call("nonlinear_effects", q, v, *t, out=out)

    @native_method
    def gravity_effort(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """g (nv,), the effort required against gravity alone at rest, without springs."""
        return self._call("gravity_effort", q, *t, out=out)

    @native_method
    def friction_effort(self, v: ArrayLike, out: Output = None) -> Numeric:
        """Damping and Coulomb friction of the joints (nv,): d v + f v / √(v² + v_s²), v_s = 0.01 rad/s or m/s; with a
        law of friction what it has at this constant velocity, without load.

        No other function contains it: the efforts that accelerate the mechanism are τ − friction_effort(v).
        """
        return self._call("friction_effort", v, out=out)

    @native_method
    def mass_matrix(self, q: ArrayLike, *t: ArrayLike, out: Array | None = None) -> Numeric:
        """M(q) (nv, nv), rotors included."""
        return self._call("mass_matrix", q, *t, out=out)

    @native_method
    def inertia_effort(self, q: ArrayLike, qdd: ArrayLike, out: Output = None) -> Numeric:
        """M(q) q̈ (nv,) without forming M: the effort required for the acceleration alone."""
        return self._call("inertia_effort", q, qdd, out=out)

    # --- energies ---

    @native_method
    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """½ vᵀ M v [J], a number or (k,)."""
        return self._call("kinetic_energy", q, v, *t, out=out)

    @native_method
    def potential_energy(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """Of gravity, −Σ m g·r with r from the ground's origin, and of all springs and elastic links (`elastic_energy`)
        [J], a number or (k,). At rest its gradient is `nonlinear_effects`, but for force laws."""
        return self._call("potential_energy", q, *t, out=out)

    @native_method
    def elastic_energy(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """The part of `potential_energy` that springs in joints and between bodies and elastic links store [J]."""
        return self._call("elastic_energy", q, *t, out=out)

    @native_method
    def mechanical_energy(self, q: ArrayLike, v: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """Kinetic and potential energy [J], a number or (k,). Its rate is the power of τ − friction_effort(v),
        of force laws and of what depends on time, less the loss of dampers between bodies and in elastic links."""
        return self._call("mechanical_energy", q, v, *t, out=out)

    # --- centre of mass and momentum of the moving bodies, in ground axes; rotors of drives have none ---

    @native_method
    def center_of_mass(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """(3,) [m]"""
        return self._call("center_of_mass", q, *t, out=out)

    @native_method
    def center_of_mass_jacobian(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """J (3, nv): the velocity of the centre of mass is J v on a base that does not move by itself."""
        return self._call("center_of_mass_jacobian", q, *t, out=out)

    @native_method
    def centroidal_momentum(self, q: ArrayLike, v: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """(6,): linear momentum [kg m/s], and angular momentum about the centre of mass [kg m²/s]."""
        return self._call("centroidal_momentum", q, v, *t, out=out)

    @native_method
    def centroidal_momentum_matrix(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """A (6, nv): the momentum is A v on a base that does not move by itself (Orin, Goswami and Lee 2013)."""
        return self._call("centroidal_momentum_matrix", q, *t, out=out)

    # --- frames ---

    @native_method_of("frame")
    def frame_pose(self, q: ArrayLike, frame: str, *t: ArrayLike, out: Output = None) -> Numeric:
        """The homogeneous matrix (4, 4) of a link's frame in ground axes. Raises InputError that lists the
        known links."""
        return self._call("frame_pose", q, *t, out=out, frame=frame)

    @native_method_of("frame")
    def frame_jacobian(self, q: ArrayLike, frame: str, *t: ArrayLike, out: Output = None) -> Numeric:
        """J (6, nv): (velocity of the frame's origin, angular velocity), both in ground axes, = J v."""
        return self._call("frame_jacobian", q, *t, out=out, frame=frame)

    @native_method_of("frame")
    def frame_jacobian_rate(self, q: ArrayLike, v: ArrayLike, frame: str, *t: ArrayLike, out: Output = None) -> Numeric:
        """J̇ (6, nv) of `frame_jacobian` at the velocity v (nv,): the accelerations of the frame are J q̈ + J̇ v."""
        return self._call("frame_jacobian_rate", q, v, *t, out=out, frame=frame)

    def inverse_kinematics(
        self,
        frame: str,
        pose: ArrayLike,
        q0: ArrayLike | None = None,
        posture: str | ArrayLike = "start",
        dofs: ArrayLike | None = None,
        tolerance: float = 1e-9,
        restarts: int = 20,
    ) -> InverseKinematics:
        """Coordinates within the limits at which a link's frame has a pose in ground axes, from q0 (nq,), default
        `neutral`. Where the pose is out of reach the result has the nearest coordinates found and the error left, and
        states so in its text.

        pose: (4, 4), or (3,) for a position with any orientation; posture: of the solutions of a redundant arm the one
        nearest to `start`, which is q0, to the `middle` of the limits, or to coordinates (nq,); dofs: indices of those
        that move, default all; tolerance: of the position [m] and of the orientation [rad]; restarts: from random
        positions when the pose is not reached from q0. Raises ValueError for arrays of the wrong form, InputError for
        an unknown link and for closed loops.
        """
        return solve_pose(self, frame, pose, q0, posture, dofs, tolerance, restarts)

    @native_method
    def body_poses(self, q: ArrayLike, *t: ArrayLike, out: Output = None) -> Numeric:
        """(n, 3, 4): axes (3, 3) and origin of each of the n moving bodies, in ground axes; in the order of the joints
        that move, mimic joints included."""
        return self._call("body_poses", q, *t, out=out)

    # --- compilation ---

    def compiled(self, function: str, frame: str | None = None) -> Compiled | Interpreted:
        """The compiled form of one of the functions above, with its operation count and shapes."""
        return self.code.compiled(function, frame)

    def _call(self, function: str, *arguments: Numeric, out: Numeric = None, frame: str | None = None) -> Numeric:
        return self.code._call(function, *arguments, out=out, frame=frame)
