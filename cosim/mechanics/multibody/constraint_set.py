"""Constraints, springs and force laws between the bodies of a tree in one state: rows, elimination levels, forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import AnyMotion, AnyVector
from cosim.mechanics.multibody.constrained_dynamics import GROUND, ConstraintRow, lowest_common_body
from cosim.mechanics.multibody.constraint_rows import BodyConstraint, BodyForce, ElasticForce, SpringDamper
from cosim.mechanics.multibody.contact_set import NO_CONTACTS, ContactSet
from cosim.mechanics.multibody.joint_springs import JointSprings
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.torsion_springs import BallSpring, TorsionSpringDamper, TorsionState
from cosim.mechanics.multibody.tree import Tree


@dataclass(frozen=True)
class ConstraintSet:
    """What acts in a tree beside gravity and drives: constraints, springs, force laws, elastic links and contacts.

    baumgarte_rate: ω [rad/s] of f̈ + 2ω ḟ + ω² f = 0 in place of f̈ = 0 (Baumgarte stabilisation, 1972), 0 for none.
    nested: rows are eliminated where their loops close, else all at the ground. redundant: rows that follow from the
    others and are left out of the solution. inexact: the ones of them that follow only within the tolerance of a
    drawing, with the largest residual that they may have; see `alignment`.
    """

    members: tuple[BodyConstraint, ...] = ()
    springs: tuple[SpringDamper | TorsionSpringDamper, ...] = ()
    laws: tuple[BodyForce, ...] = ()
    elastic: tuple[ElasticForce, ...] = ()
    joint_springs: JointSprings | None = None
    ball_springs: tuple[BallSpring, ...] = ()
    contacts: ContactSet = NO_CONTACTS
    baumgarte_rate: float = 0.0
    nested: bool = False
    redundant: tuple[int, ...] = ()
    inexact: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def holonomic(self) -> list[bool]:
        """Of every row, whether it has a residual."""
        return [k < c.holonomic for c in self.members for k in range(len(c.law.rows))]

    @cached_property
    def owners(self) -> list[int]:
        """Of every row, the index of its constraint."""
        return [k for k, constraint in enumerate(self.members) for _ in constraint.law.rows]

    @cached_property
    def allowed(self) -> dict[str, float]:
        """Of each constraint, by name, the violation [m or rad] that its inexact rows may have together."""
        squares = dict.fromkeys((constraint.name for constraint in self.members), 0.0)
        for row, largest in self.inexact.items():
            squares[self.members[self.owners[row]].name] += largest**2
        return {name: square**0.5 for name, square in squares.items()}

    @cached_property
    def solved(self) -> list[int]:
        """The rows that are not redundant."""
        return [r for r in range(len(self.holonomic)) if r not in self.redundant]

    @cached_property
    def inexact_closure(self) -> dict[int, float]:
        """The inexact rows by their number among the holonomic ones, as in `Closure`."""
        return {k: self.inexact[r] for k, r in enumerate(np.flatnonzero(self.holonomic).tolist()) if r in self.inexact}

    def rows(
        self, placed: Sequence[Placement], q_tree: Numeric, v_tree: Numeric, gravity: Numeric, t: Numeric
    ) -> tuple[Numeric, Numeric, list[ConstraintRow]]:
        """(residual of the holonomic rows, rate of all, rows of G with γ)."""
        states = [c.evaluate(placed, q_tree, v_tree, gravity, t) for c in self.members]
        residual = ops.concatenate([state.residual for state in states])
        rate = ops.concatenate([state.rate for state in states])
        return residual, rate, [row for state in states for row in state.rows]

    def stabilised(self, rows: list[ConstraintRow], residual: Numeric, rate: Numeric) -> list[ConstraintRow]:
        """The rows with the terms of the Baumgarte stabilisation in γ."""
        omega = self.baumgarte_rate
        if not omega:
            return rows
        residuals = iter(residual)
        return [
            row._replace(
                bias=row.bias + (2.0 * omega * change + omega**2 * next(residuals) if holonomic else omega * change)
            )
            for row, change, holonomic in zip(rows, rate, self.holonomic, strict=True)
        ]

    def with_active(self, rows: list[ConstraintRow], active: Numeric) -> list[ConstraintRow]:
        """The rows multiplied by `active` of their constraint (1 or 0): rows of inactive constraints vanish."""
        return [
            ConstraintRow(
                {b: w * f for b, w in row.wrenches.items()}, {d: g * f for d, g in row.efforts.items()}, row.bias * f
            )
            for row, f in zip(rows, (active[k] for k in self.owners), strict=True)
        ]

    def levels(self, tree: Tree, mimics: Sequence[ConstraintRow]) -> list[int]:
        """The body (or GROUND) at which each solved row is eliminated; rows of mimics follow rows of constraints."""
        parent_of_dof = [tree.parents[k] for k, kind in enumerate(tree.kinds) for _ in range(kind.nv)]
        bodies_of = [[*(body for body, _ in c.frames), *(parent_of_dof[dof] for dof in c.dofs)] for c in self.members]
        touched = [bodies_of[self.owners[r]] for r in self.solved] + [
            [parent_of_dof[dof] for dof in row.efforts] for row in mimics
        ]
        return [lowest_common_body(tree.parents, bodies) if self.nested else GROUND for bodies in touched]

    @property
    def apply_forces(self) -> bool:
        """Whether there are springs, force laws or elastic links."""
        return self.acts_between_bodies or self.acts_on_dofs

    @property
    def acts_between_bodies(self) -> bool:
        """Whether there are springs between bodies or force laws."""
        return bool(self.springs or self.laws)

    @property
    def acts_on_dofs(self) -> bool:
        """Whether there are springs in joints or elastic links."""
        return bool(self.elastic or self.ball_springs) or self.joint_springs is not None

    def applied(
        self, placed: Sequence[Placement], q_tree: Numeric, v_tree: Numeric, t: Numeric
    ) -> tuple[list[tuple[int, SpatialVector]], Numeric]:
        """(force and moment on bodies, at their origins along their axes; efforts on the dofs of the tree) of all that
        the mechanism contains beside inertia, gravity and constraints: springs and dampers between bodies, force laws,
        springs in joints and elastic links. Every form of the equations of motion takes these."""
        efforts: Numeric = np.zeros(len(v_tree))
        wrenches = [pair for spring in self.springs for pair in spring.wrenches(placed)]
        for law in self.laws:
            found, effort, _ = law.forces(placed, q_tree, v_tree, t)
            wrenches += found
            for dof, value in zip(law.dofs, effort, strict=True):
                efforts = ops.set_at(efforts, [dof], [efforts[dof] + value])
        return wrenches, efforts + self.efforts_on_dofs(q_tree, v_tree)

    def efforts_on_dofs(self, q_tree: Numeric, v_tree: Numeric) -> Numeric:
        """Efforts of the springs in joints and of elastic links on the dofs of the tree."""
        springs = self.joint_springs
        efforts: Numeric = np.zeros(len(v_tree)) if springs is None else springs.efforts(q_tree)
        for force in self.elastic:
            efforts = ops.set_at(efforts, force.dofs, force.efforts(q_tree, v_tree))
        for spring in self.ball_springs:
            efforts = ops.set_at(efforts, spring.dofs, spring.efforts(q_tree))
        return efforts

    def stored_energy(self, placed: Sequence[Placement], q_tree: Numeric) -> Numeric:
        """Energy stored in all springs and in elastic links [J]."""
        energy: Numeric = 0.0 if self.joint_springs is None else self.joint_springs.energy(q_tree)
        energy = energy + ops.sum(spring.energy(placed) for spring in self.springs)
        energy = energy + ops.sum(spring.energy(q_tree) for spring in self.ball_springs)
        return energy + ops.sum(link.energy(q_tree) for link in self.elastic)

    def torsion_states(self, placed: Sequence[Placement], q_tree: Numeric) -> dict[str, TorsionState]:
        """By torsion spring, or by spherical joint with one in it."""
        between = [spring for spring in self.springs if isinstance(spring, TorsionSpringDamper)]
        states = {spring.name: spring.state(q_tree) for spring in self.ball_springs}
        return states | {spring.name: spring.state(placed) for spring in between}

    def forces(
        self,
        tree: Tree,
        moving: Sequence[AnyMotion],
        placed: Sequence[Placement],
        q_tree: Numeric,
        v_tree: Numeric,
        t: Numeric,
    ) -> tuple[list[AnyVector], Numeric]:
        """(Q of every body alone, efforts on the dofs of the tree), springs and force laws included."""
        forces = [body.own_force(motion) for body, motion in zip(tree.bodies, moving, strict=True)]
        wrenches, efforts = self.applied(placed, q_tree, v_tree, t)
        for body, wrench in wrenches:
            forces[body] = forces[body] + wrench
        return forces, efforts
