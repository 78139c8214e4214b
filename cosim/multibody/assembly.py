"""Closing loops: coordinates and velocities that satisfy the constraints, near a guess; which rows repeat others.

Everything here runs once, on numbers, before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.errors import InputError, SourceLocation
from cosim.multibody.constraint_rows import BodyConstraint
from cosim.multibody.dynamics import motions
from cosim.multibody.kinematics import placements
from cosim.multibody.model import Model

CLOSED = 1e-10  # residual [m or rad] and rate [1/s of these] that count as none
PATIENCE = 200  # steps of Levenberg and Marquardt
ROUNDING = 1e-14  # share of the largest element of G
LEAST = 1e-13  # damping of theirs, as a share of the largest element of GᵀG
STUCK = 1.0 - 1e-6  # share of |f|² left by a step that says that no solution is near
ATTEMPTS, LARGE = 40, 50  # starts about the guess, ever further away; fewer for more than this many dofs
ILL_CONDITIONED = (
    1e8  # ratio of the largest to the least singular value of G at which a configuration counts as singular
)


@dataclass(frozen=True)
class Start:
    """q (nq,), v (nv,) on the constraints; `redundant` rows follow from the others, here and nearby."""

    q: np.ndarray
    v: np.ndarray
    redundant: tuple[int, ...] = ()


def start(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    kept_q: np.ndarray,
    kept_v: np.ndarray,
    t: float = 0.0,
    released: Sequence[str] = (),
    prescribed: Collection[str] = (),
) -> Start:
    """The consistent state nearest to the guess (q, v); kept_q, kept_v: (nv,) dofs whose position or velocity stays;
    released: names of couplings that may be let go later, so that no row may rely on them; prescribed: names of dofs
    that are kept because their motion is given.

    Raises InputError, at the place of the constraint that is worst, where loops cannot close, velocities contradict
    each other, or the configuration is singular.
    """
    if not model.constraint_rows:
        return Start(model.pure.normalised(np.asarray(q, dtype=float)), np.asarray(v, dtype=float))
    with np.errstate(all="ignore"):  # of positions far beyond anything; they close nothing
        q = closed(model, q, kept_q, t)
        # dofs whose position was given at the start move all the same
        redundant = find_redundant(model, q, np.zeros(model.nv, dtype=bool), t, released)
        return Start(q, moving(model, q, v, kept_v, t, prescribed), redundant)


def closed(model: Model, guess: np.ndarray, kept: np.ndarray, t: float = 0.0) -> np.ndarray:
    """Coordinates near the guess with closed loops, none of them the wrong way round, moving only dofs that are not
    kept."""
    dice, free = np.random.default_rng(0), ~kept
    wrong = None
    best, gap = model.pure.normalised(np.asarray(guess, dtype=float)), np.inf
    attempts = max(3, ATTEMPTS * LARGE // max(LARGE, model.nv))
    for attempt in range(attempts):
        spread = np.where(free, dice.normal(size=model.nv) * 3.0 * attempt / attempts, 0.0)
        q, found = _descend(model, model.pure.integrate(np.asarray(guess, dtype=float), spread), free, t)
        turned = _turned(model, q, t) if found < CLOSED else None
        if turned is not None:
            wrong = wrong or turned
        elif found < gap:
            best, gap = q, found
        if gap < CLOSED or not free.any():
            break
    if gap < CLOSED:
        return best
    raise _cannot_close(model, best, kept, t) if wrong is None else _wrong_way(model, wrong, kept)


def _turned(model: Model, q: np.ndarray, t: float) -> BodyConstraint | None:
    """The first coupling that is closed the wrong way round."""
    pure, couplings = model.pure, model.pure.ties.couplings
    if all(coupling.law.right is None for coupling in couplings):
        return None
    moved = motions(pure.sweeps, pure.at.positions(q), np.zeros(pure.nv_full), t)
    placed = placements(pure.sweeps, moved)
    return next((coupling for coupling in couplings if not coupling.right(placed)), None)


def _residual(model: Model, q: np.ndarray, t: float) -> np.ndarray:
    return np.asarray(model.pure.constraints(q, np.zeros(model.nv), t)[0], dtype=float)


def _descend(model: Model, q: np.ndarray, free: np.ndarray, t: float) -> tuple[np.ndarray, float]:
    """Levenberg and Marquardt's method on |f|²: (coordinates, largest residual left)."""
    holonomic = np.array(model.pure.ties.holonomic)
    f = _residual(model, q, t)
    damping = 1e-3
    for _ in range(PATIENCE):
        if np.abs(f).max(initial=0.0) < 1e-3 * CLOSED:
            break
        G = np.asarray(model.pure.constraint_jacobian(q, t), dtype=float)[holonomic][:, free]
        if not np.isfinite(G).all():
            break
        while damping < 1e12:
            step = np.zeros(model.nv)
            step[free] = -_least(G, f, damping)
            trial = model.pure.normalised(model.pure.integrate(q, step))
            after = _residual(model, trial, t)
            before, now = f @ f, after @ after
            if now < before:
                q, f, damping = trial, after, max(0.1 * damping, LEAST)
                if now > STUCK * before:
                    return q, float(np.abs(f).max())
                break
            if np.abs(f).max() < CLOSED:
                return q, float(np.abs(f).max())  # what is left is rounding
            damping *= 10.0
        else:
            break
    return q, float(np.abs(f).max(initial=0.0))


def _least(G: np.ndarray, f: np.ndarray, damping: float) -> np.ndarray:
    """x that makes |G x − f|² + damping · scale · |x|² least, by the normal equations, which are sparse: a loop touches
    few dofs, and elements of the size of rounding are none. G may have more rows than rank."""
    import scipy.sparse.linalg  # takes longer to import than all of this package

    sparse = scipy.sparse.csc_array(np.where(np.abs(G) > ROUNDING * np.abs(G).max(initial=0.0), G, 0.0))
    normal = sparse.T @ sparse
    scale = normal.diagonal().max(initial=0.0) or 1.0
    normal = normal + damping * scale * scipy.sparse.eye_array(G.shape[1])
    return scipy.sparse.linalg.splu(normal.tocsc()).solve(sparse.T @ f)


def _cannot_close(model: Model, q: np.ndarray, kept: np.ndarray, t: float) -> InputError:
    f = _residual(model, q, t)
    couplings = model.pure.ties.couplings
    parts = np.split(f, np.cumsum([c.holonomic for c in couplings])[:-1])
    worst = int(np.argmax([np.abs(part).max(initial=0.0) for part in parts]))
    coupling, gap = couplings[worst], parts[worst]
    if not np.isfinite(gap).all():
        return InputError(f"'{coupling.name}' has no value where the joints start; start elsewhere", coupling.place)
    row = coupling.law.rows[int(np.argmax(np.abs(gap)))]
    mend = "change lengths or frames" if coupling.frames else "change its figures"
    left = f"{np.abs(gap).max():.3g} {row.of} are left at best"
    return InputError(f"'{coupling.name}' cannot close: {left}; {mend}{_opening(model, kept)}", coupling.place)


def _wrong_way(model: Model, coupling: BodyConstraint, kept: np.ndarray) -> InputError:
    what = f"'{coupling.name}' closes only the wrong way round, half a turn off"
    return InputError(f"{what}; turn its frame on one of the bodies{_opening(model, kept)}", coupling.place)


def _opening(model: Model, kept: np.ndarray) -> str:
    """The part of a mend that names positions which are kept."""
    held = [repr(name) for name, stays in zip(model.dof_names, kept, strict=True) if stays]
    return f", or leave the initial position of {' or '.join(held[:4])} open" if held else ""


def moving(
    model: Model, q: np.ndarray, v: np.ndarray, kept: np.ndarray, t: float = 0.0, prescribed: Collection[str] = ()
) -> np.ndarray:
    """Velocities near the guess that satisfy the rates of the constraints, changing only dofs that are not kept."""
    rate = np.asarray(model.pure.constraints(q, v, t)[1], dtype=float)
    G, free = np.asarray(model.pure.constraint_jacobian(q, t), dtype=float), ~kept
    v = np.array(v, dtype=float)
    v[free] -= np.linalg.lstsq(G[:, free], rate, rcond=1e-12)[0]
    left = np.abs(np.asarray(model.pure.constraints(q, v, t)[1], dtype=float))
    if left.max(initial=0.0) > 1e-8 * max(1.0, np.abs(v).max(initial=0.0)):
        row = int(left.argmax())
        coupling = model.constraint_rows[row].rsplit("/", 1)[0]
        unit = [r.of for c in model.pure.ties.couplings for r in c.law.rows][row]
        unit += "/s" if model.pure.ties.holonomic[row] else ""
        held = [name for name, stays in zip(model.dof_names, kept, strict=True) if stays]
        given = [repr(name) for name in held if name not in prescribed]
        who, mend = "the initial velocities", "start elsewhere"
        if given:
            mend = f"change that of {' or '.join(given)} or leave it open"
        elif held:
            who, mend = f"the motions given to {' and '.join(map(repr, held))}", "change one of them"
        what = f"{who} contradict '{coupling}' ({left[row]:.3g} {unit} are left)"
        raise InputError(f"{what}; {mend}", _place(model, row))
    return v


def find_redundant(
    model: Model, q: np.ndarray, held: np.ndarray, t: float = 0.0, released: Sequence[str] = ()
) -> tuple[int, ...]:
    """Rows that follow from those before them, at q and in configurations near it, whatever is `released`.

    Raises InputError where rows are dependent at q only: a singular configuration, with its condition number.
    """
    free = ~held
    here = np.asarray(model.pure.constraint_jacobian(q, t), dtype=float)[:, free]
    if not np.isfinite(here).all():
        row = int(np.argmin(np.isfinite(here).all(axis=1)))
        name = model.constraint_rows[row].rsplit("/", 1)[0]
        raise InputError(f"'{name}' has no direction where the joints start; start elsewhere", _place(model, row))
    nearby = _nearby(model, q, here, free, t)
    near = here if nearby is None else np.asarray(model.pure.constraint_jacobian(nearby, t), dtype=float)[:, free]
    sizes, rank = _sizes(here), _rank(_sizes(near))
    if _rank(sizes) < rank:
        condition = sizes[0] / sizes[rank - 1] if len(sizes) >= rank and sizes[rank - 1] > 0.0 else np.inf
        names = ", ".join(dict.fromkeys(repr(c.name) for c in model.pure.ties.couplings))
        what = (
            f"the configuration at the start is singular for {names}: its constraints have a condition number of"
            f" {condition:.1e}; start elsewhere"
        )
        raise InputError(what, _place(model, 0))
    ties = model.pure.ties
    return _dependent(near, [ties.couplings[k].name for k in ties.owners], released)


def _nearby(model: Model, q: np.ndarray, G: np.ndarray, free: np.ndarray, t: float) -> np.ndarray | None:
    """A configuration near q with closed loops, None where none is found."""
    dice = np.random.default_rng(1)
    G = _scaled(G)
    for _ in range(3):
        step = np.zeros(model.nv)
        step[free] = chance = 0.1 * dice.normal(size=G.shape[1])
        step[free] -= _least(G, G @ chance, LEAST)
        nearby, gap = _descend(model, model.pure.integrate(q, step), free, t)
        if gap < CLOSED:
            return nearby
    return None


def _scaled(G: np.ndarray) -> np.ndarray:
    """The rows that are not nothing with length 1."""
    sizes = np.linalg.norm(G, axis=1, keepdims=True)
    return G / np.where(sizes > 1e-12, sizes, np.inf)


def _sizes(G: np.ndarray) -> np.ndarray:
    """Singular values of the rows with length 1, largest first."""
    scaled = _scaled(G)
    return np.linalg.svd(scaled[scaled.any(axis=1)], compute_uv=False)


def _rank(sizes: np.ndarray) -> int:
    return int((sizes * ILL_CONDITIONED > sizes.max(initial=0.0)).sum())


def _dependent(G: np.ndarray, owners: Sequence[str], released: Sequence[str]) -> tuple[int, ...]:
    """The rows that add nothing to those before them. Rows of couplings that may be released come last, and do not
    count for one another."""
    groups = [[r for r, owner in enumerate(owners) if owner not in released]]
    groups += [[r for r, owner in enumerate(owners) if owner == name] for name in released]
    scaled, lasting, dependent = _scaled(G), np.empty((0, G.shape[1])), []
    for group in groups:
        basis, n = np.vstack([lasting, np.empty((len(group), G.shape[1]))]), len(lasting)
        for r in group:
            left = scaled[r]
            for _ in range(2):  # twice is enough (Kahan)
                left = left - (basis[:n] @ left) @ basis[:n]
            size = np.linalg.norm(left)
            if size * ILL_CONDITIONED > 1.0:
                basis[n], n = left / size, n + 1
            else:
                dependent.append(r)
        if group is groups[0]:
            lasting = basis[:n]
    return tuple(sorted(dependent))


def _place(model: Model, row: int) -> SourceLocation | None:
    """Where the constraint of a row is written."""
    ties = model.pure.ties
    return ties.couplings[ties.owners[row]].place
