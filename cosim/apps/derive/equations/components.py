"""The equations of motion of a mechanism, component by component, as expressions of symbols.

    M(q) a + S(q, v) + G(q) + B(v) + D(v) + K(q, v) + A(q, v) = tau + L(q, f) + Hᵀ λ,    H a = γ

Only the components that are not 0 for every motion exist. Operations with 0 and 1 never get into an expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cosim.apps.derive.equations.cartesian_system import CartesianSystem
from cosim.apps.derive.equations.languages import Identifiers
from cosim.apps.derive.equations.parameters import SymbolicParameter
from cosim.core import ops
from cosim.core.compile.trace import column, inlined, symbols
from cosim.core.errors import InputError, did_you_mean
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.constraint_set import ConstraintSet
from cosim.mechanics.multibody.differentiate import along
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.mechanism import Joint
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import given_names
from cosim.mechanics.multibody.tree import Tree

ZERO_VECTOR = np.zeros(3)
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")  # of a load


@dataclass(frozen=True)
class EquationTerm:
    """A vector or matrix of the equations as a function: `entries` is a casadi column of its elements, by rows."""

    name: str  # of its function in code
    letter: str  # in formulas
    about: str
    arguments: tuple[str, ...]  # names of inputs
    shape: tuple[int, ...]
    entries: Numeric

    @property
    def is_zero(self) -> bool:
        return bool(self.entries.is_zero())


@dataclass(frozen=True)
class Derivation:
    """The equations of motion of a mechanism as expressions, term by term, with the symbols that occur in them.

    inputs: casadi columns of q, v, a, tau, and t, f, p where the mechanism has a time, a load, parameters.

    load: the frame on which f acts. notes: what a reader must know. names: of the elements of inputs that are not
    numbered q1, q2, … cartesian: of equations in Cartesian coordinates, what a reader must know of them.
    """

    name: str
    model: Model
    inputs: Mapping[str, Numeric]
    components: Sequence[EquationTerm]  # of the equation
    dynamics: Sequence[EquationTerm]  # what code computes in one go: efforts from accelerations and the reverse
    kinematics: Sequence[EquationTerm]
    parameters: Sequence[SymbolicParameter]
    load: str | None = None
    notes: tuple[str, ...] = ()
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cartesian: CartesianSystem | None = None

    @property
    def everything(self) -> list[EquationTerm]:
        return [*self.kinematics, *self.components, *self.dynamics]

    def component(self, name: str) -> EquationTerm:
        return next(c for c in self.everything if c.name == name)

    @cached_property
    def sides(self) -> tuple[list[EquationTerm], list[EquationTerm]]:
        """The terms of the equation that are vectors, on the left and on the right."""
        left = [c for c in self.components if c.name in LEFT_TERMS]
        return left, [c for c in self.components if c.name == "load"]


# name -> (letter, about); the order in which they are printed
LEFT_TERMS = {
    "mass_matrix": ("M", "inertia"),
    "coriolis": ("S", "centrifugal and Coriolis forces"),
    "gravity": ("G", "gravity"),
    "viscous_friction": ("B", "viscous friction"),
    "dry_friction": ("D", "dry friction"),
    "springs": ("K", "springs and dampers"),
    "applied_forces": ("A", "force laws"),
}


@dataclass(frozen=True)
class Symbols:
    """The inputs of the equations as arrays."""

    q: Numeric
    v: Numeric
    a: Numeric
    tau: Numeric
    f: Numeric
    t: Numeric


def derived(
    model: Model,
    equations: MechanismEquations | None = None,
    frames: Sequence[str] = (),
    load: str | None = None,
    parameters: Sequence[SymbolicParameter] = (),
    singular: bool = False,
    notes: tuple[str, ...] = (),
) -> Derivation:
    """The components of a model, or of other equations of the same mechanism.

    frames: those whose position, pose and Jacobian are given, in place of the poses of all bodies. load: the frame at
    which a force and a moment act. singular: the inertia has no inverse, so accelerations are not given. Raises
    InputError for an unknown frame.
    """
    e = equations or model.equations
    make, inputs = ComponentBuilder.of(e, frames, load, parameters)
    with inlined():
        components = [*make.terms(), *make.loads(load), *make.constraints()]
        accelerations = None if singular else make.accelerations(load)
        dynamics = make.dynamics(load, make.efforts(load), accelerations)
        kinematics = make.kinematics(frames)
    return make.derivation(model, inputs, components, dynamics, kinematics, parameters, load, notes)


def with_used_parameters(d: Derivation) -> Derivation:
    """Without the parameters that no component depends on."""
    import casadi

    used = {x.element_hash() for c in d.everything for x in casadi.symvar(c.entries)}
    kept = [parameter for parameter in d.parameters if parameter.symbol.element_hash() in used]
    p = casadi.vertcat(*(parameter.symbol for parameter in kept)) if kept else casadi.SX(0, 1)
    return replace(d, parameters=kept, inputs={**d.inputs, "p": p})


@dataclass(frozen=True)
class ComponentBuilder:
    """What components are made of: equations, and the inputs of all functions."""

    equations: MechanismEquations
    at: Symbols
    always: tuple[str, ...]  # arguments of every function

    @staticmethod
    def of(
        e: MechanismEquations, frames: Sequence[str], load: str | None, parameters: Sequence[SymbolicParameter] = ()
    ) -> tuple[ComponentBuilder, dict[str, Numeric]]:
        """With new inputs, by name as casadi columns. Raises InputError for an unknown frame."""
        import casadi

        for option, given in (("--frame", frames), ("--load", [] if load is None else [load])):
            for frame in given:
                known = e.tree.given_frames
                if frame not in known:
                    raise InputError(f"frame '{frame}' does not exist{did_you_mean(frame, known)}", option)
                if known[frame][0] == GROUND:
                    raise InputError(f"'{frame}' is part of the ground and does not move; name another one", option)
                if given.count(frame) > 1:
                    raise InputError(f"'{frame}' is given twice; take one out", option)
        sizes = {"q": (e.nq,), "v": (e.nv,), "a": (e.nv,), "tau": (e.nv,), "f": (6,), "t": ()}
        columns, arrays = zip(*(symbols(key, shape) for key, shape in sizes.items()), strict=True)
        unused = ({"t"} if not e.timed else set()) | ({"f"} if load is None else set())
        inputs = {key: column for key, column in zip(sizes, columns, strict=True) if key not in unused}
        if parameters:
            inputs["p"] = casadi.vertcat(*(parameter.symbol for parameter in parameters))
        return ComponentBuilder(e, Symbols(*arrays), tuple(name for name in ("t", "p") if name in inputs)), inputs

    def derivation(
        self,
        model: Model,
        inputs: Mapping[str, Numeric],
        components: Sequence[EquationTerm],
        dynamics: Sequence[EquationTerm],
        kinematics: Sequence[EquationTerm],
        parameters: Sequence[SymbolicParameter] = (),
        load: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> Derivation:
        """Without components that are 0 and parameters that nothing depends on."""
        kept = [c for c in components if not c.is_zero or c.name == "coriolis"]
        name = model.mechanism.name
        found = Derivation(name, model, inputs, kept, dynamics, kinematics, parameters, load, notes)
        return with_used_parameters(found) if parameters else found

    def component(
        self, name: str, letter: str, about: str, arguments: str, value: Numeric, shape: tuple[int, ...]
    ) -> EquationTerm:
        import casadi

        entries = casadi.cse(casadi.densify(casadi.SX(column(value))))
        return EquationTerm(name, letter, about, (*arguments.split(), *self.always), shape, entries)

    def terms(self) -> list[EquationTerm]:
        e, at = self.equations, self.at
        still = np.zeros(e.nv)
        laws = massless(e, ConstraintSet(laws=e.constraints.laws))
        springs = massless(e, replace(e.constraints, members=(), laws=()))
        values = {
            "mass_matrix": ("q", e.mass_matrix(at.q, at.t)),
            "coriolis": ("q v", _without_forces(e, ZERO_VECTOR).inverse_dynamics(at.q, at.v, still, at.t)),
            "gravity": ("q", self._gravity_effort()),
            "viscous_friction": ("v", viscous_friction(e, at.v)),
            "dry_friction": ("v", dry_friction(e, at.v)),
            "springs": ("q v", springs.inverse_dynamics(at.q, at.v, still, at.t)),
            "applied_forces": ("q v", laws.inverse_dynamics(at.q, at.v, still, at.t)),
        }
        return [self.term(name, arguments, value) for name, (arguments, value) in values.items()]

    def term(self, name: str, arguments: str, value: Numeric) -> EquationTerm:
        """A component of the left side."""
        n = self.equations.nv
        return self.component(name, *LEFT_TERMS[name], arguments, value, (n, n) if name == "mass_matrix" else (n,))

    def _gravity_effort(self) -> Numeric:
        """On a base that moves by itself it is the gradient of the potential energy: less to compute there."""
        import casadi

        e, at = self.equations, self.at
        if not any(kind.timed for kind in e.tree.kinds):
            return e.gravity_effort(at.q, at.t)
        gradient = casadi.gradient(casadi.SX(column(e.gravity_energy(at.q, at.t))), column(at.q))
        rates = [column(e.rate(at.q, unit)) for unit in np.eye(e.nv)]
        return ops.array([casadi.dot(gradient, rate) for rate in rates])

    def _jacobian(self, frame: str) -> Numeric:
        return self.equations.frame_jacobian(self.at.q, *self.equations.tree.frames[frame], self.at.t)

    def load_effort(self, load: str | None) -> Numeric:
        if load is None:
            return np.zeros(self.equations.nv)
        return np.transpose(self._jacobian(load)) @ self.at.f

    def loads(self, load: str | None) -> list[EquationTerm]:
        if load is None:
            return []
        about = f"load: force and moment f on the frame {load}, through its Jacobian"
        return [self.component("load", "L", about, "q f", self.load_effort(load), (self.equations.nv,))]

    def constraints(self) -> list[EquationTerm]:
        e, at = self.equations, self.at
        if not e.constraints.members:
            return []
        residual, rate = e.constraint_violation(at.q, at.v, at.t)
        jacobian = e.constraint_jacobian(at.q, at.t)
        changes = [(column(at.q), column(e.rate(at.q, at.v))), (column(at.t), 1.0)]
        bias = -along(column(rate), changes)
        shape, about = (len(rate),), "what vanishes where loops and constraints hold"
        matrix = "Jacobian of the constraints"
        return [
            self.component("constraint_residual", "h", about, "q", residual, (len(residual),)),
            self.component("constraint_jacobian", "H", matrix, "q", jacobian, (*shape, e.nv)),
            self.component("constraint_bias", "gamma", "right side of H a = gamma", "q v", bias, shape),
        ]

    def _losses(self, load: str | None) -> Numeric:
        """Friction of joints, less the load."""
        e, at = self.equations, self.at
        return e.friction_effort(at.v) - self.load_effort(load)

    def efforts(self, load: str | None) -> Numeric:
        at = self.at
        return self.equations.inverse_dynamics(at.q, at.v, at.a, at.t) + self._losses(load)

    def accelerations(self, load: str | None) -> Numeric:
        at = self.at
        return self.equations.forward_dynamics(at.q, at.v, at.tau - self._losses(load), at.t)

    def dynamics(self, load: str | None, efforts: Numeric, accelerations: Numeric | None) -> list[EquationTerm]:
        n, more = (self.equations.nv,), "" if load is None else " f"
        tree = ", of the tree without reactions of loops and constraints" * bool(self.equations.constraints.members)
        about = f"efforts for given accelerations{tree}"
        found = [self.component("inverse_dynamics", "tau", about, f"q v a{more}", efforts, n)]
        if accelerations is not None:
            closed = ", with the reactions of loops and constraints" * bool(self.equations.constraints.members)
            about = f"accelerations under given efforts{closed}"
            found.append(self.component("forward_dynamics", "a", about, f"q v tau{more}", accelerations, n))
        return found

    def kinematics(self, frames: Sequence[str]) -> list[EquationTerm]:
        """Poses of all bodies and named frames, or of `frames` with their positions and Jacobians."""
        tree, identifiers = self.equations.tree, Identifiers()
        links = given_names(joint.child for joint in tree.joints)
        names = frames or [*links, *(frame.name for frame in tree.mechanism.frames)]
        return [term for name in names for term in self._frame(name, identifiers.new(name), bool(frames))]

    def _frame(self, frame: str, identifier: str, in_full: bool) -> list[EquationTerm]:
        e, at = self.equations, self.at
        pose = e.frame_pose(at.q, *e.tree.frames[frame], at.t)[:3]
        kinds = {"pose": ("T", f"pose of {frame}: its axes as columns, then its origin, in ground axes", pose, (3, 4))}
        if in_full:
            about = f"Jacobian of {frame}: velocity of its origin, then angular velocity, in ground axes"
            position = {"position": ("r", f"position of {frame} in ground axes", pose[:, 3], (3,))}
            kinds = position | kinds | {"jacobian": ("J", about, self._jacobian(frame), (6, e.nv))}
        return [
            self.component(f"{kind}_{frame}", f"{letter}_{identifier}", about, "q", value, shape)
            for kind, (letter, about, value, shape) in kinds.items()
        ]


def viscous_friction(e: MechanismEquations, v: Numeric) -> Numeric:
    """(nv,) of joints and of their laws of friction, and of rotors that turn with several joints."""
    joints = tuple(replace(joint, friction=0.0, friction_laws=()) for joint in e.tree.joints)
    rotors = tuple(replace(rotor, friction=0.0) for rotor in e.tree.rotors)
    effort = _with_friction(e, joints, rotors).friction_effort(v)
    laws = e.friction_laws
    return ops.set_at(effort, laws, [effort[k] + law.viscous * v[k] for k, law in laws.items()])


def dry_friction(e: MechanismEquations, v: Numeric) -> Numeric:
    """(nv,) of joints and of their laws of friction, and of rotors that turn with several joints."""

    def dry(joint: Joint) -> Joint:
        laws = tuple(law and replace(law, viscous=0.0) for law in joint.friction_laws)
        return replace(joint, damping=0.0, friction_laws=laws)

    rotors = tuple(replace(rotor, damping=0.0) for rotor in e.tree.rotors)
    return _with_friction(e, tuple(map(dry, e.tree.joints)), rotors).friction_effort(v)


def _with_friction(e: MechanismEquations, joints: tuple, rotors: tuple) -> MechanismEquations:
    return MechanismEquations(replace(e.tree, joints=joints, rotors=rotors), e.gravity, ConstraintSet())


def _without_forces(e: MechanismEquations, gravity: Numeric) -> MechanismEquations:
    """Inertia alone: no springs, force laws and constraints."""
    return MechanismEquations(e.tree, gravity, ConstraintSet())


def massless(e: MechanismEquations, forces: ConstraintSet) -> MechanismEquations:
    """Springs, force laws and the forces of elastic links alone."""
    tree: Tree = replace(e.tree, bodies=tuple(body.without_mass() for body in e.tree.bodies), rotors=())
    return MechanismEquations(tree, ZERO_VECTOR, forces)
