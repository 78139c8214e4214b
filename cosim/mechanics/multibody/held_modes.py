"""Modes of elastic links that constraints hold: a link needs more modes than its places have held directions.

A mode cannot move where the constraint Jacobian G has it in the space of its rows: no velocity with G v = 0 has it. A
beam whose axis keeps its length cannot bend where both ends are held along it. That is seen to second order only: G has
a rank more where it is bent.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np

from cosim.core.errors import InputError, listed
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.elastic_joints import MODES, are_modes
from cosim.mechanics.multibody.model import Model

HELD = 1e-8  # part of a mode in velocities of unit length that the constraints leave, up to which it cannot move


def held_modes(rows: Array, modes: Array) -> Array:
    """(n,) whether a dof is a mode that cannot move. rows: G (r, n), scaled; modes: (n,) whether it is one."""
    _, sizes, directions = np.linalg.svd(rows)
    rank = int((sizes > HELD * sizes.max(initial=1.0)).sum())
    return modes & (np.abs(directions[rank:]).max(axis=0, initial=0.0) < HELD)


def held_error(model: Model, rows: Array, held: Array) -> InputError | None:
    """For the first link of which all modes of one kind are held, None if there is none; rows: G (r, nv), held: (nv,).

    Of one kind are modes whose names differ in their number. Some of a kind may be held, such as the stretch of a body
    of finite elements that bends between two welds."""
    kinds = [(elastic, mine) for elastic, dofs in _links(model) for mine in _kinds(model, dofs) if held[mine].all()]
    if not kinds:
        return None
    elastic, mine = kinds[0]
    first = np.eye(model.nv)[mine[0]]
    weights = np.abs(np.linalg.lstsq(rows.T, first, rcond=1e-9)[0])
    owners = model.equations.constraints.owners
    by = list(dict.fromkeys(owners[r] for r in np.flatnonzero(weights > 1e-6 * weights.max())))
    members = [model.equations.constraints.members[k] for k in by]
    holds = "holds" if len(members) == 1 else "hold"
    they = "this mode" if len(mine) == 1 else "these modes"
    names = listed([repr(model.dof_names[k]) for k in mine])
    what = f"{listed([repr(c.name) for c in members])} {holds} {names}: {they} cannot move"
    return InputError(f"{what}; {elastic.remedies.held}", members[0].place)


def shortening_error(model: Model, here: Array, near: Array) -> InputError | None:
    """For a link that cannot bend because its ends are held along it. here, near: G (r, nv), scaled, with a greater
    rank of `near` than of `here`; None where the modes are not why."""
    modes = are_modes(model.kinds)
    if np.linalg.matrix_rank(here[:, ~modes], HELD) < np.linalg.matrix_rank(near[:, ~modes], HELD):
        return None
    changed = np.abs(near - here)
    for elastic, dofs in _links(model):
        rows = changed[:, dofs].max(axis=1)
        if not rows.max(initial=0.0) > HELD:
            continue
        constraints = model.equations.constraints
        constraint = constraints.members[constraints.owners[int(rows.argmax())]]
        link = model.dof_names[dofs[0]].removesuffix(f".{elastic.modes[0][0]}")
        what = f"'{constraint.name}' holds '{link}' along its axis, which keeps its length: it cannot bend"
        return InputError(f"{what}; {elastic.remedies.along}", constraint.place)
    return None


def _links(model: Model) -> Iterable[tuple[ElasticLink, Array]]:
    """(link, its dofs) of each elastic link with modes."""
    elastic = {link.name: link.elastic for link in model.mechanism.links}
    owners = [joint.name for joint, kind in zip(model.joints, model.kinds, strict=True) for _ in range(kind.nv)]
    for name, link in elastic.items():
        if isinstance(link, ElasticLink):
            yield link, np.flatnonzero([owner == name + MODES for owner in owners])


def _kinds(model: Model, dofs: Array) -> Iterable[list[int]]:
    """The dofs of a link by the kind of their modes."""
    return ([int(k) for k in group] for _, group in groupby(dofs, lambda k: model.dof_names[k].rstrip("0123456789")))
