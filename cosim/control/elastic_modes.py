"""The modes of elastic links about their equilibrium, while the joints are held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.errors import InputError
from cosim.types import Array, MechanismModel

STEP = 1e-6  # m, rad, m/s or rad/s, of differences
ITERATIONS = 20  # of the equilibrium


@dataclass(frozen=True, eq=False)
class ElasticModes:
    """modes: (m,) indices of the dofs; position: (m,) in equilibrium; damping, stiffness: (m, m); mass: (nv, nv) of the
    whole mechanism."""

    modes: Array
    position: Array
    mass: Array
    damping: Array
    stiffness: Array

    def own_mass(self, yielding: Array) -> Array:
        """(m, m) of the modes while the dofs `yielding` move freely, and all others are held."""
        own = self.mass[np.ix_(self.modes, self.modes)]
        if not len(yielding):
            return own
        beside = self.mass[np.ix_(yielding, self.modes)]
        return own - beside.T @ np.linalg.solve(self.mass[np.ix_(yielding, yielding)], beside)


def elastic_modes(model: MechanismModel, positions: Array) -> ElasticModes:
    """positions: (nv,) of all dofs, those of the modes near their equilibrium. Raises InputError without stiffness."""
    equations, rest, time = model.equations, np.zeros(model.nv), (0.0,) if model.timed else ()
    modes, chart = model.elastic_dofs, positions.copy()

    def effort(position: Array, velocity: Array = rest) -> Array:
        """(m,) that would hold the modes"""
        q = np.asarray(model.coordinates(position), dtype=float)
        held = equations.inverse_dynamics(q, velocity, rest, *time) + equations.spring_effort(q)
        return np.asarray(held + equations.friction_effort(velocity), dtype=float)[modes]

    def slope(along_velocity: bool = False) -> Array:
        held = effort(chart)
        moved = [effort(chart, unit) if along_velocity else effort(chart + unit) for unit in units]
        return np.array([each - held for each in moved]).T / STEP

    units = STEP * np.eye(model.nv)[modes]
    for _ in range(ITERATIONS):
        try:
            change = np.linalg.solve(slope(), effort(chart))
        except np.linalg.LinAlgError:
            what = "the modes of elastic links have no equilibrium: one of them has no stiffness; give it a frequency"
            raise InputError(f"{what} above 0, or 'modes: measured'") from None
        chart[modes] -= change
        if np.abs(change).max() < STEP:
            break
    stiffness = slope()
    mass = np.asarray(model.mass_matrix(np.asarray(model.coordinates(chart)), *time), dtype=float)
    return ElasticModes(modes, chart[modes], mass, slope(along_velocity=True), 0.5 * (stiffness + stiffness.T))
