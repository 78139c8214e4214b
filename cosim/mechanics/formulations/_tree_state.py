"""A mechanism in one state, as the formulations in joint coordinates see it: joints, bodies in ground axes, loads.

Gravity acts through the acceleration −g of the ground, so accelerations are those that an accelerometer would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import AnyBody
from cosim.mechanics.multibody.elastic_joints import NodeKind
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.kinematics import GROUND_PLACEMENT, Placement
from cosim.mechanics.multibody.part_names import whole_of
from cosim.mechanics.multibody.spatial import Hinge, SpatialVector

ZERO = SpatialVector(np.zeros(3), np.zeros(3))


class HingeState(NamedTuple):
    """The motion of a body relative to its parent. Velocity: Σ columns q̇ + drift; acceleration: Σ columns q̈ + bias;
    both of its origin and of its axes, along its axes, as an observer on the parent sees them. The dofs belong to its
    joint; of a node they are the modes of its parent, and modes do not move the frame of their body."""

    rotation: Numeric  # (3, 3), from the axes of the body to its parent's
    position: Numeric  # (3,) its origin in the axes of its parent
    columns: tuple[SpatialVector, ...]
    velocity: SpatialVector
    bias: SpatialVector
    dofs: tuple[int, ...]  # their indices among the dofs of the tree


class CentralBody(NamedTuple):
    """Mass [kg], centre of mass (3,) [m] and inertia about it (3, 3) [kg m²], in the axes of the body."""

    mass: Numeric
    com: Numeric
    inertia: Numeric


def central(body: AnyBody) -> CentralBody:
    """A body by its centre of mass; the centre of a massless body is its origin."""
    if ops.is_zero(body.mass):
        return CentralBody(0.0, np.zeros(3), body.inertia)
    c = body.moment / body.mass
    shift = body.mass * ((c @ c) * np.eye(3) - ops.array([[x * y for y in c] for x in c]))
    return CentralBody(body.mass, c, body.inertia - shift)


def why_not_rigid(equations: MechanismEquations) -> str | None:
    """Why equations of rigid bodies alone do not apply, None if they do."""
    for link in equations.tree.mechanism.links:
        if link.elastic is not None:
            return f"link '{whole_of(link.name)}' is elastic, and its bodies are rigid"
    return None


def link_with_symbols(equations: MechanismEquations) -> str | None:
    """The first link whose mass, centre of mass or inertia is a symbol."""
    tree = equations.tree
    for joint, body in zip(tree.joints, tree.bodies, strict=True):
        if any(map(ops.is_symbolic, (body.mass, body.moment, body.inertia, body.rotor))):
            return whole_of(joint.child)
    return None


@dataclass(frozen=True)
class TreeState:
    """The equations of a mechanism at one position, velocity and time, with its kinematics as far as they are used. q,
    v: of all joints of the tree, mimics included."""

    equations: MechanismEquations
    q: Numeric
    v: Numeric
    t: Numeric

    @classmethod
    def of(cls, equations: MechanismEquations, q: Numeric, v: Numeric, t: Numeric) -> TreeState:
        """q (nq,), v (nv,): of the independent coordinates."""
        return cls(equations, equations.q_map.positions(q), equations.v_map.expand(v), t)

    @property
    def parents(self) -> tuple[int, ...]:
        """Of every body the index of its parent, −1 for the ground."""
        return self.equations.tree.parents

    @property
    def bodies(self) -> tuple[AnyBody, ...]:
        return self.equations.tree.bodies

    @cached_property
    def central(self) -> list[CentralBody]:
        return [central(body) for body in self.bodies]

    @cached_property
    def joints(self) -> list[HingeState]:
        tree = self.equations.tree
        states = []
        for k, (kind, body, parent) in enumerate(zip(tree.kinds, tree.bodies, self.parents, strict=True)):
            by = parent if isinstance(kind, NodeKind) else k  # whose coordinates move it
            states.append(_joint_state(kind, body, *self.coordinates[by], self.t, self.own_dofs[by]))
        return states

    @cached_property
    def coordinates(self) -> list[tuple[Numeric, Numeric]]:
        """Of every body the coordinates and velocities of its joint."""
        sweeps = self.equations.sweeps
        return list(zip(sweeps.by_q(self.q), sweeps.by_v(self.v), strict=True))

    @cached_property
    def own_dofs(self) -> list[range]:
        """Of every body the dofs of its joint, or its modes."""
        ends = list(accumulate((kind.nv for kind in self.equations.tree.kinds), initial=0))
        return [range(*pair) for pair in pairwise(ends)]

    @cached_property
    def dofs(self) -> int:
        """Number of dofs of the tree."""
        return self.equations.nv_tree

    @cached_property
    def body_of_dof(self) -> list[int]:
        return [k for k, dofs in enumerate(self.own_dofs) for _ in dofs]

    @cached_property
    def rotors(self) -> list[Numeric]:
        """The reflected inertia of the rotor on each dof."""
        return [rotor for body in self.bodies for rotor in body.rotor]

    # --- in ground axes ---

    @cached_property
    def placed(self) -> list[Placement]:
        found: list[Placement] = []
        for joint, parent in zip(self.joints, self.parents, strict=True):
            above = GROUND_PLACEMENT if parent < 0 else found[parent]
            rotation, arm = above.rotation @ joint.rotation, above.rotation @ joint.position
            angular = above.angular + rotation @ joint.velocity.angular
            linear = above.linear + ops.cross(above.angular, arm) + rotation @ joint.velocity.linear
            found.append(Placement(rotation, above.position + arm, angular, linear))
        return found

    @cached_property
    def arms(self) -> list[Numeric]:
        """Of every body the vector from the origin of its parent to its own."""
        return [self._above(parent).rotation @ j.position for j, parent in zip(self.joints, self.parents, strict=True)]

    def _above(self, parent: int) -> Placement:
        return GROUND_PLACEMENT if parent < 0 else self.placed[parent]

    @cached_property
    def columns(self) -> list[SpatialVector]:
        """Of every dof of rigid bodies the velocity of the origin and the axes of its body relative to the parent."""
        return [s for columns in self._columns for s in columns]

    @cached_property
    def _columns(self) -> list[list[SpatialVector]]:
        """The columns of every body."""
        return [
            [SpatialVector(here.rotation @ s.linear, here.rotation @ s.angular) for s in joint.columns]
            for joint, here in zip(self.joints, self.placed, strict=True)
        ]

    @cached_property
    def partial_velocities(self) -> list[dict[int, SpatialVector]]:
        """Of every body, by dof: velocity of its origin and angular velocity per unit of that velocity alone."""
        found: list[dict[int, SpatialVector]] = []
        bodies = zip(self.joints, self._columns, self.parents, self.arms, strict=True)
        for joint, columns, parent, arm in bodies:
            above = {} if parent < 0 else found[parent]
            here = {d: SpatialVector(u.linear + ops.cross(u.angular, arm), u.angular) for d, u in above.items()}
            found.append(here | dict(zip(joint.dofs, columns, strict=True)))
        return found

    @cached_property
    def remainders(self) -> list[SpatialVector]:
        """Of every body the acceleration of its origin and the angular acceleration where all q̈ are 0."""
        found: list[SpatialVector] = []
        for k, (joint, parent, arm) in enumerate(zip(self.joints, self.parents, self.arms, strict=True)):
            above = SpatialVector(-self.equations.gravity, np.zeros(3)) if parent < 0 else found[parent]
            omega, rotation = self._above(parent).angular, self.placed[k].rotation
            slip, spin = rotation @ joint.velocity.linear, rotation @ joint.velocity.angular
            linear = above.linear + ops.cross(above.angular, arm) + ops.cross(omega, ops.cross(omega, arm))
            linear = linear + 2.0 * ops.cross(omega, slip) + rotation @ joint.bias.linear
            angular = above.angular + ops.cross(omega, spin) + rotation @ joint.bias.angular
            found.append(SpatialVector(linear, angular))
        return found

    # --- springs, force laws and elastic links ---

    @cached_property
    def _applied(self) -> tuple[dict[int, SpatialVector], Numeric]:
        constraints = self.equations.constraints
        if not constraints.apply_forces:
            return {}, np.zeros(self.dofs)
        wrenches, efforts = constraints.applied(self.placed, self.q, self.v, self.t)
        total: dict[int, SpatialVector] = {}
        for body, wrench in wrenches:
            total[body] = total[body] + wrench if body in total else wrench
        return total, efforts

    @property
    def wrenches(self) -> dict[int, SpatialVector]:
        """Body -> applied force and moment at its origin, along its axes; bodies without any are left out."""
        return self._applied[0]

    @property
    def dof_efforts(self) -> Numeric:
        """Efforts (dofs,) of force laws, springs in joints and elastic links on the dofs of the tree."""
        return self._applied[1]

    @cached_property
    def loads(self) -> list[SpatialVector]:
        """Of every body the applied force and its moment about the centre of mass, in ground axes; gravity is not
        among them."""
        found = []
        for k, (here, body) in enumerate(zip(self.placed, self.central, strict=True)):
            force, moment = self.wrenches.get(k, ZERO)
            about_com = moment - ops.cross(body.com, force)
            found.append(SpatialVector(here.rotation @ force, here.rotation @ about_com))
        return found


def _joint_state(kind: JointKind, body: AnyBody, q: Numeric, v: Numeric, t: Numeric, dofs: range) -> HingeState:
    turn, slide = kind.place(q, t)
    columns, drift, bias = _node_hinge(kind, q, v) if isinstance(kind, NodeKind) else kind.hinge(q, v, t)
    linear = drift.linear + ops.sum(s.linear * v[i] for i, s in enumerate(columns))
    angular = drift.angular + ops.sum(s.angular * v[i] for i, s in enumerate(columns))
    position = body.position + body.rotation @ slide
    moved = tuple(dofs) if columns else ()
    return HingeState(body.rotation @ turn, position, columns, SpatialVector(linear, angular), bias, moved)


def _node_hinge(kind: NodeKind, eta: Numeric, rate: Numeric) -> Hinge:
    """The motion of a node by the modes of its parent, along its own axes."""
    turn, _ = kind.node.place(eta)
    modes, _, bias = kind.node.motion(eta, rate)
    *columns, own_bias = (SpatialVector(turn.T @ s.linear, turn.T @ s.angular) for s in (*modes, bias))
    return Hinge(tuple(columns), ZERO, own_bias)
