"""All that ties the bodies of a tree together besides its joints, in one state: rows, levels, forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cosim import ops
from cosim.multibody.constrained_dynamics import GROUND, ConstraintRow, lowest_common_body
from cosim.multibody.constraint_rows import BodyConstraint, SpringDamper
from cosim.multibody.dynamics import BodyMotion, turning_force
from cosim.multibody.kinematics import Placement
from cosim.multibody.spatial import Vector
from cosim.multibody.tree import Tree


@dataclass(frozen=True)
class ConstraintSet:
    """stabilisation: ω [rad/s] of f̈ + 2ω ḟ + ω² f = 0 in place of f̈ = 0 (Baumgarte 1972); nested: rows are
    eliminated where their loops close instead of all at the ground; redundant: rows that follow from the others
    and are left out of the solution."""

    couplings: tuple[BodyConstraint, ...] = ()
    struts: tuple[SpringDamper, ...] = ()
    stabilisation: float = 0.0
    nested: bool = False
    redundant: tuple[int, ...] = ()

    @cached_property
    def holonomic(self) -> list[bool]:
        """Of every row, whether it has a residual."""
        return [k < c.holonomic for c in self.couplings for k in range(len(c.law.rows))]

    @cached_property
    def owners(self) -> list[int]:
        """Of every row, which coupling it belongs to."""
        return [k for k, coupling in enumerate(self.couplings) for _ in coupling.law.rows]

    @cached_property
    def solved(self) -> list[int]:
        """The rows that are not redundant."""
        return [r for r in range(len(self.holonomic)) if r not in self.redundant]

    def rows(
        self, placed: Sequence[Placement], q_all: Any, v_all: Any, gravity: Any, t: Any
    ) -> tuple[Any, Any, list[ConstraintRow]]:
        """(residual of the holonomic rows, rate of all, rows of G with γ)."""
        tied = [c.tied(placed, q_all, v_all, gravity, t) for c in self.couplings]
        residual = ops.concatenate([each.residual for each in tied])
        rate = ops.concatenate([each.rate for each in tied])
        return residual, rate, [row for each in tied for row in each.rows]

    def steadied(self, rows: list[ConstraintRow], residual: Any, rate: Any) -> list[ConstraintRow]:
        """The rows with what brings drift back to zero."""
        omega = self.stabilisation
        if not omega:
            return rows
        pull = iter(residual)
        return [
            row._replace(bias=row.bias + (2.0 * omega * change + omega**2 * next(pull) if closed else omega * change))
            for row, change, closed in zip(rows, rate, self.holonomic, strict=True)
        ]

    def switched(self, rows: list[ConstraintRow], active: Any) -> list[ConstraintRow]:
        """The rows of the couplings that are active (one number each, 1 or 0), nothing in place of the others."""
        return [
            ConstraintRow(
                {b: w * f for b, w in row.wrenches.items()}, {d: g * f for d, g in row.efforts.items()}, row.bias * f
            )
            for row, f in zip(rows, (active[k] for k in self.owners), strict=True)
        ]

    def levels(self, tree: Tree, mimics: Sequence[ConstraintRow]) -> list[int]:
        """Where each row that is solved is eliminated, those of mimics after those of the couplings."""
        carrier = [tree.parents[k] for k, kind in enumerate(tree.kinds) for _ in range(kind.nv)]
        of_couplings = [[*(body for body, _ in c.frames), *(carrier[dof] for dof in c.dofs)] for c in self.couplings]
        touched = [of_couplings[self.owners[r]] for r in self.solved] + [
            [carrier[dof] for dof in row.efforts] for row in mimics
        ]
        return [lowest_common_body(tree.parents, bodies) if self.nested else GROUND for bodies in touched]

    def forces(self, tree: Tree, moving: Sequence[BodyMotion], placed: Sequence[Placement]) -> list[Vector]:
        """Q of every body alone, springs included."""
        forces = [turning_force(body, motion.omega) for body, motion in zip(tree.bodies, moving, strict=True)]
        for strut in self.struts:
            for body, wrench in strut.wrenches(placed):
                forces[body] = forces[body] + wrench
        return forces
