"""The wrench that every joint of a tree transmits: what the motion of the bodies beyond it needs.

R = M a − Q of a body alone, Q the applied forces and the wrenches of constraints included, summed over the body and its
descendants: what its parent exerts on it through the joint, drives, springs and friction of the joint included. One
outward sweep for the accelerations and one inward sweep for the forces, O(n) (Newton and Euler; Luh, Walker and Paul
1980).
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import AnyMotion, AnyVector, transport, transport_force
from cosim.mechanics.multibody.constrained_dynamics import GROUND, ConstraintRow
from cosim.mechanics.multibody.contact_set import ContactSet
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.sweeps import Unrolled


def transmitted(
    sweeps: Unrolled, moving: Sequence[AnyMotion], forces: Sequence[AnyVector], root: SpatialVector, qdd: Numeric
) -> list[SpatialVector]:
    """The wrench on each body from its joint, at the origin of the child, along the axes of the joint's frame on the
    parent, whose z is along the joint's axis. forces: Q of every body; root: the acceleration of the ground; qdd: of
    all dofs of the tree."""
    accelerations: list[AnyVector] = []
    for body, parent, motion, given in zip(sweeps.bodies, sweeps.parents, moving, sweeps.by_v(qdd), strict=True):
        a = transport(body, motion, root if parent == GROUND else accelerations[parent]) + motion.bias
        for s, x in zip(motion.hinge, given, strict=True):
            a = a + s * x
        accelerations.append(a)
    needed = [
        body.own_inertia(motion) @ a - force
        for body, motion, a, force in zip(sweeps.bodies, moving, accelerations, forces, strict=True)
    ]
    for k in reversed(range(len(needed))):
        if (parent := sweeps.parents[k]) != GROUND:
            needed[parent] = needed[parent] + transport_force(sweeps.bodies[k], moving[k], needed[k])
    return [
        SpatialVector(motion.turn @ wrench.linear, motion.turn @ wrench.angular)
        for motion, wrench in zip(moving, needed, strict=True)
    ]


def with_reactions(forces: Sequence[AnyVector], rows: Sequence[ConstraintRow], multipliers: Numeric) -> list[AnyVector]:
    """The forces Q of every body with the wrenches Gᵀ λ of the rows."""
    total = list(forces)
    for row, factor in zip(rows, multipliers, strict=True):
        for body, wrench in row.wrenches.items():
            total[body] = total[body] + wrench * factor
    return total


def with_contacts(
    forces: Sequence[AnyVector], contacts: ContactSet, placed: Sequence[Placement], pushes: Numeric
) -> list[AnyVector]:
    """The forces Q of every body with the forces (3 k,) of the points of contact; none without contact."""
    total = list(forces)
    if len(pushes):
        for body, wrench in contacts.wrenches(placed, contacts.points(placed), pushes):
            total[body] = total[body] + wrench
    return total


def resultant(parts: Sequence[Numeric]) -> Numeric:
    """The size of a vector by its components."""
    return ops.sqrt(ops.sum(part * part for part in parts))
