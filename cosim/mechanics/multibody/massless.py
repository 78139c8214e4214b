"""Links without mass that loops carry: a coupler or the cross of a universal joint that weighs next to nothing.

Whether a link can move without inertia is decided by the motions that the constraints leave: M must be positive
definite on the null space of G. The sweeps besides need an inertia along every joint of the tree by itself. A dof of a
loop that has none gets one that does not matter: `ASSUMED` of the least one of the other dofs. This costs digits, as
every ratio of inertias in a loop does; results are good to about 1e-8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody import kinematics
from cosim.mechanics.multibody.constrained_dynamics import GROUND, lowest_common_body
from cosim.mechanics.multibody.constraint_rows import BodyConstraint
from cosim.mechanics.multibody.tree import Tree, dofs_without_inertia, in_general_position

ASSUMED = 1e-9  # of the least inertia of other dofs
# of the inertia of a motion that the constraints leave, the largest part that may be assumed: a motion with more has no
# inertia of its own, or hardly any
LARGEST_SHARE = 1e-6


def assumed_inertia(tree: Tree, constraints: Sequence[BodyConstraint]) -> list[Array]:
    """Per body (nv_k,): inertia [kg m² or kg] for its dofs that have none and that a constraint holds, 0 for others."""
    without = dofs_without_inertia(tree)
    found = [np.zeros(len(dofs)) for dofs in without]
    held = _held_bodies(tree, constraints)
    wanted = [k for k in sorted(held) if without[k].any() and tree.joints[k].mimic is None]
    if not wanted:
        return found
    nv = sum(kind.nv for kind in tree.kinds)
    inertia = kinematics.mass_diagonal(tree.sweeps, in_general_position(tree), nv)
    units = np.array([unit for kind in tree.kinds for _, unit in kind.dofs])
    has = ~np.concatenate(without)
    least = {unit: float(inertia[has & (units == unit)].min(initial=np.inf)) for unit in ("rad", "m")}
    lever = max([float(np.linalg.norm(body.position)) for body in tree.bodies], default=0.0) or 1.0
    least = {"rad": min(least["rad"], lever**2 * least["m"]), "m": min(least["m"], least["rad"] / lever**2)}
    for k in wanted:
        given = [ASSUMED * least[unit] for _, unit in tree.kinds[k].dofs]
        found[k] = np.where(without[k] & np.isfinite(given), given, 0.0)
    return found


def _held_bodies(tree: Tree, constraints: Sequence[BodyConstraint]) -> set[int]:
    """The bodies whose joint is part of a loop, or in a constraint of its own."""
    held: set[int] = set()
    body_of_dof = [k for k, kind in enumerate(tree.kinds) for _ in range(kind.nv)]
    for constraint in constraints:
        held |= {body_of_dof[dof] for dof in constraint.dofs}
        bodies = [body for body, _ in constraint.frames]
        top = lowest_common_body(tree.parents, bodies) if bodies else GROUND
        for body in bodies:
            while body != top:
                held.add(body)
                body = tree.parents[body]
    return held


def carried_by_none(M: Array, G: Array, assumed: Array, ill_conditioned: float) -> int | None:
    """The dof with assumed inertia that moves most in a motion without inertia of its own, None if there is none.

    M (nv, nv), assumed included; G (r, nv), scaled; assumed: (nv,); ill_conditioned: condition number of G beyond which
    rows depend on each other."""
    _, sizes, directions = np.linalg.svd(G)
    rank = int((sizes * ill_conditioned > sizes.max(initial=0.0)).sum())
    N = directions[rank:].T
    own = N.T @ M @ N
    if not len(own):
        return None
    shares, motions = map(np.real, np.linalg.eig(np.linalg.solve(own, N.T @ (assumed[:, None] * N))))
    worst = int(np.argmax(shares))
    if shares[worst] <= LARGEST_SHARE:
        return None
    return int(np.argmax((assumed > 0.0) * np.abs(N @ motions[:, worst])))
