"""The vibrations of elastic links that a motion excites, at its end with the joints held."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.control.elastic_modes import elastic_modes
from cosim.errors import SectionError, did_you_mean
from cosim.types import Array, Trajectory, TrajectoryContext

AUTO = "auto"
MOST_MODES = 3  # of auto: the number of impulses grows by each of them
LEAST_PART = 0.01  # of auto: deflection over that of the mode that deflects most
KEYS = ("shaping", "modes")


class Vibration(NamedTuple):
    """frequency: natural, Hz; damping: ratio."""

    frequency: float
    damping: float


def vibrations(names: Sequence[str], trajectory: Trajectory, context: TrajectoryContext | None) -> list[Vibration]:
    """Of the modes with these names, or with the name `auto` of those that the motion deflects most.

    A name stands for the vibration in which its coordinate has most energy. Raises SectionError for names that do not
    exist, and where there is no end or no model."""
    from scipy.linalg import eigh  # takes longer to import than most rigs to read

    if context is None:
        what = "the modes are computed with the model of the mechanism"
        raise SectionError(f"{what}; use them in the trajectory of a controller, or give 'frequency'", KEYS)
    model = context.model
    known = [model.dof_names[k] for k in model.elastic_dofs]
    if not known:
        raise SectionError("the mechanism has no elastic links; give 'frequency'", KEYS)
    if not math.isfinite(trajectory.end):
        raise SectionError("the trajectory has no end at which its modes are known; give 'frequency'", KEYS)
    if AUTO in names and len(names) > 1:
        raise SectionError("'auto' stands alone; take the other names out", KEYS)
    for name in names:
        if name != AUTO and name not in known:
            raise SectionError(f"there is no mode '{name}'{did_you_mean(name, known)}", KEYS)
    begin, end = (np.asarray(trajectory.sample(t)["position"], dtype=float) for t in (0.0, trajectory.end))
    positions = np.asarray(model.chart(context.position), dtype=float).copy()
    positions[context.index] = end
    found = elastic_modes(model, positions)
    squares, shapes = eigh(found.stiffness, found.own_mass(np.zeros(0, dtype=int)))
    omega = np.sqrt(np.maximum(squares, 0.0))
    dampings = np.einsum("ik,ij,jk->k", shapes, found.damping, shapes) / (2.0 * omega)
    if AUTO in names:
        pull = found.mass[np.ix_(found.modes, context.index)] @ (end - begin)
        chosen = _deflected(shapes, squares, pull)
    else:
        energy = shapes**2 * np.diag(found.stiffness)[:, None] / squares
        chosen = list(dict.fromkeys(int(energy[known.index(name)].argmax()) for name in names))
    return [Vibration(float(omega[k]) / (2.0 * math.pi), float(dampings[k])) for k in chosen]


def _deflected(shapes: Array, squares: Array, pull: Array) -> list[int]:
    """The vibrations that the inertial forces `pull` (m,) deflect most."""
    deflection = np.abs(shapes * (shapes.T @ pull / squares)).max(axis=0)
    order = np.argsort(-deflection, kind="stable")[:MOST_MODES]
    return [int(k) for k in order if deflection[k] > LEAST_PART * deflection[order[0]]]
