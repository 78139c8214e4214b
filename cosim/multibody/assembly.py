"""Closing loops: coordinates and velocities that satisfy the constraints, near a guess; which rows repeat others.

Everything here runs once, on numbers, before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from cosim.errors import InputError, Place
from cosim.multibody.model import Model

CLOSED = 1e-10  # residual [m or rad] and rate [1/s of these] that count as none
PATIENCE = 200  # steps of Levenberg and Marquardt
ATTEMPTS = 40  # starts about the guess, ever further away
ILL_CONDITIONED = (
    1e8  # ratio of the largest to the least singular value of G at which a configuration counts as singular
)


@dataclass(frozen=True)
class Start:
    """q (nq,), v (nv,) on the constraints; `redundant` rows follow from the others, here and nearby."""

    q: np.ndarray
    v: np.ndarray
    redundant: tuple[int, ...] = ()


def start(model: Model, q: np.ndarray, v: np.ndarray, kept_q: np.ndarray, kept_v: np.ndarray, t: float = 0.0) -> Start:
    """The consistent state nearest to the guess (q, v); kept_q, kept_v: (nv,) dofs whose position or velocity stays.

    Raises InputError, at the place of the constraint that is worst, where loops cannot close, velocities contradict
    each other, or the configuration is singular.
    """
    if not model.constraint_rows:
        return Start(model.pure.normalised(np.asarray(q, dtype=float)), np.asarray(v, dtype=float))
    q = closed(model, q, kept_q, t)
    redundant = find_redundant(model, q, kept_q, t)
    return Start(q, moving(model, q, v, kept_v, t), redundant)


def closed(model: Model, guess: np.ndarray, kept: np.ndarray, t: float = 0.0) -> np.ndarray:
    """Coordinates near the guess with closed loops, moving only dofs that are not kept."""
    dice, free = np.random.default_rng(0), ~kept
    best, gap = model.pure.normalised(np.asarray(guess, dtype=float)), np.inf
    for attempt in range(ATTEMPTS):
        spread = np.where(free, dice.normal(size=model.nv) * 3.0 * attempt / ATTEMPTS, 0.0)
        q, found = _descend(model, model.pure.integrate(np.asarray(guess, dtype=float), spread), free, t)
        if found < gap:
            best, gap = q, found
        if gap < CLOSED or not free.any():
            break
    if gap >= CLOSED:
        raise _cannot_close(model, best, kept, t)
    return best


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
        while damping < 1e12:
            stacked = np.vstack([G, np.sqrt(damping) * np.eye(G.shape[1])])
            step = np.zeros(model.nv)
            step[free] = np.linalg.lstsq(stacked, np.concatenate([-f, np.zeros(G.shape[1])]), rcond=None)[0]
            trial = model.pure.normalised(model.pure.integrate(q, step))
            after = _residual(model, trial, t)
            if after @ after < f @ f:
                q, f, damping = trial, after, max(0.1 * damping, 1e-18)
                break
            damping *= 10.0
        else:
            break
    return q, float(np.abs(f).max(initial=0.0))


def _cannot_close(model: Model, q: np.ndarray, kept: np.ndarray, t: float) -> InputError:
    f = _residual(model, q, t)
    couplings = model.pure.ties.couplings
    parts = np.split(f, np.cumsum([c.holonomic for c in couplings])[:-1])
    worst = int(np.argmax([np.abs(part).max(initial=0.0) for part in parts]))
    coupling, gap = couplings[worst], parts[worst]
    row = coupling.law.rows[int(np.argmax(np.abs(gap)))]
    held = [name for name, stays in zip(model.dof_names, kept, strict=True) if stays]
    mend = "change lengths or frames"
    if held:
        mend += f", or leave out the initial position of {' or '.join(repr(name) for name in held[:4])}"
    what = f"'{coupling.name}' cannot close: {np.abs(gap).max():.3g} {row.of} are left at best; {mend}"
    return InputError(what, coupling.place)


def moving(model: Model, q: np.ndarray, v: np.ndarray, kept: np.ndarray, t: float = 0.0) -> np.ndarray:
    """Velocities near the guess that satisfy the rates of the constraints, changing only dofs that are not kept."""
    rate = np.asarray(model.pure.constraints(q, v, t)[1], dtype=float)
    G, free = np.asarray(model.pure.constraint_jacobian(q, t), dtype=float), ~kept
    v = np.array(v, dtype=float)
    v[free] -= np.linalg.lstsq(G[:, free], rate, rcond=1e-12)[0]
    left = np.abs(np.asarray(model.pure.constraints(q, v, t)[1], dtype=float))
    if left.max(initial=0.0) > 1e-8 * max(1.0, np.abs(v).max(initial=0.0)):
        row = int(left.argmax())
        held = [name for name, stays in zip(model.dof_names, kept, strict=True) if stays]
        names = " or ".join(repr(name) for name in held[:4])
        what = (
            f"the initial velocities contradict '{model.constraint_rows[row].rsplit('/', 1)[0]}' ({left[row]:.3g} per s are"
            f" left); leave out that of {names}"
        )
        raise InputError(what, _place(model, row))
    return v


def find_redundant(model: Model, q: np.ndarray, held: np.ndarray, t: float = 0.0) -> tuple[int, ...]:
    """Rows that follow from those before them, at q and in configurations near it.

    Raises InputError where rows are dependent at q only: a singular configuration, with its condition number.
    """
    free = ~held
    here = np.asarray(model.pure.constraint_jacobian(q, t), dtype=float)[:, free]
    dice, near = np.random.default_rng(1), here
    rank_here, rank = _rank(here), -1
    for _ in range(3):
        step = np.zeros(model.nv)
        step[free] = _null(here) @ (dice.normal(size=_null(here).shape[1]) * 0.1)
        try:
            nearby, gap = _descend(model, model.pure.integrate(q, step), free, t)
        except np.linalg.LinAlgError:
            continue
        if gap < CLOSED:
            G = np.asarray(model.pure.constraint_jacobian(nearby, t), dtype=float)[:, free]
            if _rank(G) > rank:
                near, rank = G, _rank(G)
    rank = max(rank, rank_here)
    if rank_here < rank:
        sizes = np.linalg.svd(here, compute_uv=False)
        condition = sizes[0] / max(sizes[rank - 1], np.finfo(float).tiny)
        names = ", ".join(dict.fromkeys(repr(c.name) for c in model.pure.ties.couplings))
        what = (
            f"the configuration at the start is singular for {names}: its constraints have a condition number of"
            f" {condition:.1e}; start elsewhere"
        )
        raise InputError(what, _place(model, 0))
    return _dependent(near, rank)


def _scaled(G: np.ndarray) -> np.ndarray:
    sizes = np.linalg.norm(G, axis=1, keepdims=True)
    return G / np.where(sizes > 1e-12, sizes, np.inf)


def _rank(G: np.ndarray) -> int:
    sizes = np.linalg.svd(_scaled(G), compute_uv=False)
    return int((sizes * ILL_CONDITIONED > sizes.max(initial=0.0)).sum()) if sizes.max(initial=0.0) > 0.0 else 0


def _null(G: np.ndarray) -> np.ndarray:
    return scipy.linalg.null_space(_scaled(G)) if len(G) else np.eye(G.shape[1])


def _dependent(G: np.ndarray, rank: int) -> tuple[int, ...]:
    """The rows that add nothing to those before them."""
    kept: list[np.ndarray] = []
    dependent = []
    for r, row in enumerate(_scaled(G)):
        left = row.copy()
        for _ in range(2):  # twice is enough (Kahan)
            for other in kept:
                left -= (other @ left) * other
        size = np.linalg.norm(left)
        if size * ILL_CONDITIONED > 1.0 and len(kept) < rank:
            kept.append(left / size)
        else:
            dependent.append(r)
    return tuple(dependent)


def _place(model: Model, row: int) -> Place | None:
    """Where the constraint of a row is written."""
    owners = [c for c in model.pure.ties.couplings for _ in c.law.rows]
    return owners[row].place


def names_of(model: Model, rows: Sequence[int]) -> str:
    return ", ".join(model.constraint_rows[r] for r in rows)
