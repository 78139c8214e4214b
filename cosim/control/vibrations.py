"""The vibrations of elastic links that a motion excites, at its end with the joints held.

Joints that nothing drives move with them: a floating base, a load on a spring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.control.elastic_modes import elastic_modes
from cosim.core.errors import SectionError, did_you_mean
from cosim.core.types import Array, Trajectory, TrajectoryContext

AUTO = "auto"
MOST_MODES = 3  # of auto: the number of impulses grows by each of them
LEAST_PART = 0.01  # of auto: deflection relative to the mode that deflects most
SLOWEST_SQUARE = 1e-2  # (rad/s)²; what is slower does not swing, such as a floating base
KEYS = ("shaping", "modes")


class Vibration(NamedTuple):
    """A damped oscillation of elastic links while the joints are held. frequency: natural, Hz; damping: ratio."""

    frequency: float
    damping: float


@dataclass(frozen=True, eq=False)
class Vibrations:
    """k vibrations of the m dofs `dofs` about `rest` (m,). deflection: (2 k, 2 m) from deviations and velocities of the
    dofs to the parts of each vibration in phase and a quarter period later, as the largest deflection of a mode."""

    modes: list[Vibration]
    dofs: Array
    rest: Array
    deflection: Array


def vibrations(names: Sequence[str], trajectory: Trajectory, context: TrajectoryContext) -> Vibrations:
    """Of the modes with these names, or with the name `auto` of those that the motion deflects most.

    A name stands for the vibration in which its coordinate has most energy. Raises SectionError for names that do not
    exist, and where there is no end."""
    from scipy.linalg import eigh  # takes longer to import than most rigs to read

    model = context.model
    known = [model.dof_names[k] for k in model.elastic_dofs]
    if not known:
        raise SectionError("the mechanism has no elastic links; give 'frequency'", KEYS)
    if model.constraint_rows:
        raise SectionError("the modes are known only without closed loops; give 'frequency'", KEYS)
    if not math.isfinite(trajectory.end):
        raise SectionError("the trajectory has no end at which its modes are known; give 'frequency'", KEYS)
    if AUTO in names and len(names) > 1:
        raise SectionError("'auto' stands alone; take the other names out", KEYS)
    for name in names:
        if name != AUTO and name not in known:
            raise SectionError(f"there is no mode '{name}'{did_you_mean(name, known)}", KEYS)
    held = [
        name
        for name, dof in zip(known, model.elastic_dofs, strict=True)
        if dof in (*context.index, *context.prescribed)
    ]
    if held:
        raise SectionError(f"the mode '{held[0]}' is itself prescribed or commanded; give 'frequency'", KEYS)
    begin, end = (np.asarray(trajectory.sample(t)["position"], dtype=float) for t in (0.0, trajectory.end))
    positions = context.positions_at(trajectory.end)
    positions[context.index] = end
    found, m = elastic_modes(model, positions, context.passive), len(known)
    squares, shapes = eigh(found.stiffness, found.own_mass(np.zeros(0, dtype=int)))
    squares, shapes = squares[squares > SLOWEST_SQUARE], shapes[:, squares > SLOWEST_SQUARE]
    omega = np.sqrt(squares)
    dampings = np.einsum("ik,ij,jk->k", shapes, found.damping, shapes) / (2.0 * omega)
    if AUTO in names:
        pull = found.mass[np.ix_(found.modes, context.index)] @ (end - begin)
        chosen = _deflected(shapes[:m], shapes.T @ pull / squares)
    else:
        energy = (shapes**2 * np.diag(found.stiffness)[:, None] / squares)[:m]
        chosen = list(dict.fromkeys(int(energy[known.index(name)].argmax()) for name in names))
    own, rate = shapes[:, chosen], omega[chosen]
    largest = np.abs(own[:m]).max(axis=0, initial=0.0)
    # by the stiffness, which does not see where dofs without springs have gone
    swung = (own.T @ found.stiffness) * (largest / rate**2)[:, None]
    moving = (own.T @ found.own_mass(np.zeros(0, dtype=int))) * (largest / rate)[:, None]
    parts = np.block([[swung, np.zeros_like(swung)], [np.zeros_like(moving), moving]])
    modes = [Vibration(float(omega[k]) / (2.0 * math.pi), float(dampings[k])) for k in chosen]
    return Vibrations(modes, found.modes, found.position, parts)


def _deflected(shapes: Array, amplitudes: Array) -> list[int]:
    """The vibrations with these shapes (m, k) and amplitudes (k,) that deflect modes most."""
    deflection = np.abs(shapes * amplitudes).max(axis=0)
    order = np.argsort(-deflection, kind="stable")[:MOST_MODES]
    return [int(k) for k in order if deflection[k] > LEAST_PART * deflection[order[0]]]
