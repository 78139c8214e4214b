"""Assembly: coordinates and velocities near a guess that satisfy the constraints, and redundant constraint rows.

Runs once, on numbers, before compilation.

An elastic link needs more modes than its places have held directions. A mode cannot move where the constraint Jacobian
G has it in the space of its rows: no velocity with G v = 0 has it. A beam whose axis keeps its length cannot bend where
both ends are held along it. That is seen to second order only: G has a rank more where it is bent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation, listed
from cosim.core.types import Array
from cosim.mechanics.multibody.alignment import inexact_rows
from cosim.mechanics.multibody.constraint_laws import OTHER_BRANCH
from cosim.mechanics.multibody.constraint_rows import BodyConstraint
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.elastic_joints import MODES, are_modes
from cosim.mechanics.multibody.massless import carried_by_none
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.nearest import (
    CLOSURE_TOLERANCE,
    MIN_DAMPING,
    ClosureSearch,
    damped_least_squares,
    separate_parts,
)
from cosim.mechanics.multibody.singular_start import velocity_of_motion
from cosim.mechanics.multibody.tree import no_inertia_error

NEARBY = 0.1, 0.1, 0.1, 1e-3, 1e-5  # rad or m, steps to a nearby configuration, until one has closed loops
ILL_CONDITIONED = 1e8  # condition number of G at which a configuration counts as singular
HELD = 1e-8  # part of a mode in velocities of unit length that the constraints leave, up to which it cannot move


@dataclass(frozen=True)
class ConsistentState:
    """q (nq,), v (nv,) that satisfy the constraints; `redundant` rows depend on the others at q and near it, the
    `inexact` ones of them within the tolerance of a drawing (see `alignment`).

    immobile: the constraint that takes the last degree of freedom, None if one is left, also by a later release."""

    q: np.ndarray
    v: np.ndarray
    redundant: tuple[int, ...] = ()
    immobile: BodyConstraint | None = None
    inexact: Mapping[int, float] = field(default_factory=dict)


def find_consistent_state(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    kept_q: np.ndarray,
    kept_v: np.ndarray,
    t: float = 0.0,
    released: Sequence[str] = (),
    prescribed: Collection[str] = (),
) -> ConsistentState:
    """A consistent state near the guess (q, v).

    kept_q, kept_v: (nv,) dofs whose position or velocity is fixed. released: names of constraints that may become
    inactive later; rows of others are not redundant because of them. prescribed: names of dofs that are fixed
    because their motion is prescribed.

    Raises InputError at the source location of the worst constraint if loops cannot close, velocities contradict the
    constraints, or the configuration is singular and no motion through it is near the velocities.
    """
    if not model.constraint_rows:
        return ConsistentState(model.equations.normalised(np.asarray(q, dtype=float)), np.asarray(v, dtype=float))
    with np.errstate(all="ignore"):  # trial positions may overflow; they are discarded
        model, q = closed_within_tolerance(model, q, kept_q, t, released)
        # dofs with a fixed initial position move afterwards: no dof is fixed here
        here, near = _jacobians(model, q, np.ones(model.nv, dtype=bool), t)
        singular = _singular_error(model, here, near)
        _check_modes(model, (here, near), released, prescribed)
        _check_massless(model, q, here, t, released)
        v = consistent_velocities(model, q, v, kept_v, t, prescribed)
        if singular is not None:
            moving = velocity_of_motion(model, q, v, kept_v, here, t, ILL_CONDITIONED)
            if moving is None:
                choice = (
                    "or the initial velocities, for which no motion through it is found"
                    if v.any()
                    else "or give a velocity"
                )
                raise InputError(f"{singular.what} {choice}", singular.place)
            v = moving
        redundant = _dependent_rows(model, near, released)
    constraints = model.equations.constraints
    lasting = [constraints.members[constraints.owners[r]] for r in range(len(constraints.owners)) if r not in redundant]
    lasting = [constraint for constraint in lasting if constraint.name not in released]
    immobile = lasting[model.nv - 1] if len(lasting) >= model.nv else None
    return ConsistentState(q, v, redundant, immobile, constraints.inexact)


def closed_within_tolerance(
    model: Model, guess: np.ndarray, kept: np.ndarray, t: float = 0.0, released: Sequence[str] = ()
) -> tuple[Model, np.ndarray]:
    """(the model, with its inexact rows known, and coordinates with closed loops; see `close_loops`).

    Raises InputError as `close_loops` does."""
    error, inexact = None, model.equations.constraints.inexact
    try:
        q = close_loops(model, guess, kept, t)
    except InputError as found:
        error, q = found, _nearest(model, guess, kept, t)
    if not inexact:
        inexact = inexact_rows(model, q, t, released)
        if inexact:
            model = model.without(tuple(inexact), inexact)
            return model, close_loops(model, guess, kept, t)
    if error is not None:
        raise error
    return model, q


def close_loops(model: Model, guess: np.ndarray, kept: np.ndarray, t: float = 0.0) -> np.ndarray:
    """Coordinates (nq,) with closed loops, all on their intended branch, nearest to the guess as `nearest` defines it;
    kept: (nv,) fixed dofs. Elastic links keep their shape where loops can close so.

    Raises InputError if no such coordinates are found."""
    modes = are_modes(model.kinds)
    if (modes & ~kept).any():
        try:
            return _closed(model, guess, kept | modes, t)
        except InputError:
            pass
    return _closed(model, guess, kept, t)


def _closed(model: Model, guess: np.ndarray, kept: np.ndarray, t: float) -> np.ndarray:
    """See `close_loops`; elastic links bend like everything else."""
    q = _nearest(model, guess, kept, t)
    if np.abs(_residual(model, q, t)).max(initial=0.0) >= CLOSURE_TOLERANCE:
        raise _cannot_close_error(model, q, kept, t)
    if (wrong := _on_wrong_branch(model, q, t)) is not None:
        raise _wrong_branch_error(model, wrong, kept)
    return q


def _nearest(model: Model, guess: np.ndarray, kept: np.ndarray, t: float) -> np.ndarray:
    """See `_closed`; with the smallest violation where loops do not close."""
    equations = model.equations
    guess = q = np.asarray(equations.normalised(np.asarray(guess, dtype=float)), dtype=float)
    inexact = equations.constraints.inexact_closure
    for rows, dofs in separate_parts(equations.closure.pattern, ~kept):
        q = ClosureSearch.of(equations, equations.closure, rows, dofs, guess, t, inexact).nearest(q)
    return q


def _on_wrong_branch(model: Model, q: np.ndarray, t: float) -> BodyConstraint | None:
    """The first constraint that is closed on the wrong branch."""
    closure, members = model.equations.closure, model.equations.constraints.members
    if not closure.whole.rows:
        return None
    owners = np.unique(closure.owners)
    return next((members[k] for k in owners[~closure.whole.intended(q, t)]), None)


def _residual(model: Model, q: np.ndarray, t: float) -> np.ndarray:
    """f of the holonomic rows, 0 for an inexact one within its bound."""
    f = np.array(model.equations.closure.whole(q, t)[0])
    for k, largest in model.equations.constraints.inexact_closure.items():
        f[k] *= abs(f[k]) > largest
    return f


def _cannot_close_error(model: Model, q: np.ndarray, kept: np.ndarray, t: float) -> InputError:
    f = _residual(model, q, t)
    members = model.equations.constraints.members
    parts = np.split(f, np.cumsum([c.holonomic for c in members])[:-1])
    worst = int(np.argmax([np.abs(part).max(initial=0.0) for part in parts]))
    constraint, violation = members[worst], parts[worst]
    if not np.isfinite(violation).all():
        what = f"'{constraint.name}' is not finite at the initial positions; change the initial positions"
        return InputError(what, constraint.place)
    if constraint.law.other_branch != OTHER_BRANCH and _on_wrong_branch(model, q, t) is constraint:
        return _wrong_branch_error(model, constraint, kept)
    row = constraint.law.rows[int(np.argmax(np.abs(violation)))]
    fix = "change lengths or frames" if constraint.frames else "change its parameters"
    smallest = f"the smallest violation found is {np.abs(violation).max():.3g} {row.residual_unit}"
    what = f"'{constraint.name}' cannot close: {smallest}; {fix}{_alternative(model, kept)}"
    return InputError(what, constraint.place)


def _wrong_branch_error(model: Model, constraint: BodyConstraint, kept: np.ndarray) -> InputError:
    what = f"'{constraint.name}' {constraint.law.other_branch}"
    return InputError(f"{what}{_alternative(model, kept)}", constraint.place)


def _alternative(model: Model, kept: np.ndarray) -> str:
    """The part of an error message that suggests to remove fixed initial positions."""
    fixed = [repr(name) for name, stays in zip(model.dof_names, kept, strict=True) if stays]
    return f", or remove the initial position of {' or '.join(fixed[:4])}" if fixed else ""


def consistent_velocities(
    model: Model, q: np.ndarray, v: np.ndarray, kept: np.ndarray, t: float = 0.0, prescribed: Collection[str] = ()
) -> np.ndarray:
    """Velocities (nv,) near the guess that satisfy the constraint rates; kept: (nv,) fixed dofs. The rates of modes
    stay as they are where that is possible.

    Raises InputError if the fixed velocities contradict a constraint."""
    rate = np.asarray(model.equations.constraint_violation(q, v, t)[1], dtype=float)
    G, guess = np.asarray(model.equations.constraint_jacobian(q, t), dtype=float), v
    holds = np.array([r not in model.equations.constraints.inexact for r in range(len(G))], dtype=bool)
    for movable in (~kept & ~are_modes(model.kinds), ~kept):
        v = np.array(guess, dtype=float)
        v[movable] -= np.linalg.lstsq(G[np.ix_(holds, movable)], rate[holds], rcond=1e-12)[0]
        remaining = holds * np.abs(np.asarray(model.equations.constraint_violation(q, v, t)[1], dtype=float))
        satisfied = not remaining.max(initial=0.0) > 1e-8 * max(1.0, np.abs(v).max(initial=0.0))
        if satisfied:
            break
    if not satisfied:
        row = int(remaining.argmax())
        constraint = model.constraint_rows[row].rsplit("/", 1)[0]
        unit = [r.residual_unit for c in model.equations.constraints.members for r in c.law.rows][row]
        unit += "/s" if model.equations.constraints.holonomic[row] else ""
        fixed = [name for name, stays in zip(model.dof_names, kept, strict=True) if stays]
        given = [repr(name) for name in fixed if name not in prescribed]
        subject, fix = "the initial velocities", "change the initial positions"
        if given:
            fix = f"change or remove the velocity of {' or '.join(given)}"
        elif fixed:
            subject, fix = f"the prescribed motions of {' and '.join(map(repr, fixed))}", "change one of them"
        what = f"{subject} contradict '{constraint}' by {remaining[row]:.3g} {unit}"
        raise InputError(f"{what}; {fix}", _place_of_row(model, row))
    return v


def find_redundant(
    model: Model, q: np.ndarray, fixed: np.ndarray, t: float = 0.0, released: Sequence[str] = ()
) -> tuple[int, ...]:
    """Rows that depend on those before them, at q and near it, whichever constraints are `released`.

    fixed: (nv,) dofs that do not move. Raises InputError if rows are dependent at q only (a singular configuration),
    with the condition number.
    """
    here, near = _jacobians(model, q, ~fixed, t)
    if (error := _singular_error(model, here, near)) is not None:
        raise error
    return _dependent_rows(model, near, released)


def _jacobians(model: Model, q: np.ndarray, movable: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """G (r, movable dofs) at q, and in a configuration near it where one is found."""
    here = _exact_jacobian(model, q, t)[:, movable]
    if not np.isfinite(here).all():
        row = int(np.argmin(np.isfinite(here).all(axis=1)))
        constraint = model.equations.constraints.members[model.equations.constraints.owners[row]]
        what = f"'{constraint.name}' has no direction at the initial positions; {constraint.law.fix}"
        raise InputError(what, constraint.place)
    nearby = _nearby_configuration(model, q, here, movable, t)
    if nearby is None:
        return here, here
    return here, _exact_jacobian(model, nearby, t)[:, movable]


def _exact_jacobian(model: Model, q: np.ndarray, t: float) -> np.ndarray:
    """G (r, nv), 0 in inexact rows, which then count as redundant."""
    G = np.array(model.equations.constraint_jacobian(q, t), dtype=float)
    G[list(model.equations.constraints.inexact)] = 0.0
    return G


def _singular_error(model: Model, here: np.ndarray, near: np.ndarray) -> InputError | None:
    """The error of a configuration in which rows are dependent that are not nearby, with the condition number; here,
    near: G of the movable dofs. Raises InputError if elastic links that cannot bend are why."""
    sizes, rank = _singular_values(here), _rank(_singular_values(near))
    if _rank(sizes) >= rank:
        return None
    if here.shape[1] == model.nv and (error := shortening_error(model, _unit_rows(here), _unit_rows(near))):
        raise error
    condition = sizes[0] / sizes[rank - 1] if len(sizes) >= rank and sizes[rank - 1] > 0.0 else np.inf
    names = ", ".join(dict.fromkeys(repr(c.name) for c in model.equations.constraints.members))
    what = (
        f"the initial configuration is singular for {names}: the constraints have a condition number of"
        f" {condition:.1e}; change the initial positions"
    )
    return InputError(what, _place_of_row(model, 0))


def _dependent_rows(model: Model, near: np.ndarray, released: Sequence[str]) -> tuple[int, ...]:
    constraints = model.equations.constraints
    return _dependent(near, [constraints.members[k].name for k in constraints.owners], released)


def _check_modes(
    model: Model, jacobians: Sequence[np.ndarray], released: Sequence[str], prescribed: Collection[str]
) -> None:
    """Raises InputError if constraints that last hold modes of an elastic link. jacobians: G (r, nv) in some places."""
    modes = are_modes(model.kinds)
    if not modes.any():
        return
    constraints = model.equations.constraints
    lasting = np.array([constraints.members[k].name not in released for k in constraints.owners])
    movable = np.array([name not in prescribed for name in model.dof_names])
    held = np.array(modes)
    for G in jacobians:
        held[movable] &= held_modes(_unit_rows(G[np.ix_(lasting, movable)]), modes[movable])
    if error := held_error(model, jacobians[0] * lasting[:, None] * movable, held):
        raise error


def _check_massless(model: Model, q: np.ndarray, G: np.ndarray, t: float, released: Sequence[str]) -> None:
    """Raises InputErrors for a link without mass that can move by itself although constraints hold it, also once some
    are `released`. G: (r, nv) at q."""
    if not model.assumed_inertia.any():
        return
    constraints = model.equations.constraints
    lasting = np.array([constraints.members[k].name not in released for k in constraints.owners])
    M = np.asarray(model.equations.mass_matrix(q, t), dtype=float)
    dof = carried_by_none(M, _unit_rows(G[lasting]), model.assumed_inertia, ILL_CONDITIONED)
    if dof is not None:
        joint = [joint for joint, kind in zip(model.joints, model.kinds, strict=True) for _ in range(kind.nv)][dof]
        raise InputErrors([no_inertia_error(model.equations.tree, joint)])


def _nearby_configuration(
    model: Model, q: np.ndarray, G: np.ndarray, movable: np.ndarray, t: float
) -> np.ndarray | None:
    """A configuration near q with closed loops, None if none is found."""
    rng = np.random.default_rng(1)
    G, closure = _unit_rows(G), model.equations.closure
    rows, dofs = np.arange(closure.whole.rows), np.flatnonzero(movable)
    search = ClosureSearch.of(model.equations, closure, rows, dofs, q, t, model.equations.constraints.inexact_closure)
    for reach in NEARBY:
        random = reach * rng.normal(size=G.shape[1])
        step = random - damped_least_squares(G, G @ random, MIN_DAMPING)
        nearby, smallest = search.close(search.dofs.moved(q, step))
        if smallest < CLOSURE_TOLERANCE:
            return nearby
    return None


def _unit_rows(G: np.ndarray) -> np.ndarray:
    """The rows scaled to length 1; zero rows stay zero."""
    sizes = np.linalg.norm(G, axis=1, keepdims=True)
    return G / np.where(sizes > 1e-12, sizes, np.inf)


def _singular_values(G: np.ndarray) -> np.ndarray:
    """Singular values of the scaled rows, largest first."""
    scaled = _unit_rows(G)
    return np.linalg.svd(scaled[scaled.any(axis=1)], compute_uv=False)


def _rank(sizes: np.ndarray) -> int:
    return int((sizes * ILL_CONDITIONED > sizes.max(initial=0.0)).sum())


def _dependent(G: np.ndarray, owners: Sequence[str], released: Sequence[str]) -> tuple[int, ...]:
    """The rows that depend on those before them (Gram–Schmidt). Rows of constraints that may be released come last,
    each group checked against the permanent rows only."""
    groups = [[r for r, owner in enumerate(owners) if owner not in released]]
    groups += [[r for r, owner in enumerate(owners) if owner == name] for name in released]
    scaled, permanent, dependent = _unit_rows(G), np.empty((0, G.shape[1])), []
    for group in groups:
        basis, n = np.vstack([permanent, np.empty((len(group), G.shape[1]))]), len(permanent)
        for r in group:
            remainder = scaled[r]
            for _ in range(2):  # twice is enough (Kahan)
                remainder = remainder - (basis[:n] @ remainder) @ basis[:n]
            size = np.linalg.norm(remainder)
            if size * ILL_CONDITIONED > 1.0:
                basis[n], n = remainder / size, n + 1
            else:
                dependent.append(r)
        if group is groups[0]:
            permanent = basis[:n]
    return tuple(sorted(dependent))


def _place_of_row(model: Model, row: int) -> SourceLocation | None:
    """Source location of the constraint of a row."""
    constraints = model.equations.constraints
    return constraints.members[constraints.owners[row]].place


# --- modes of elastic links that constraints hold ---


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
