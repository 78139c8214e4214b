"""A formulation of the equations of motion with rotors that turn with several joints, whatever its equations are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation, InChosenCoordinates
from cosim.mechanics.multibody.coupled_inertia import CoupledInertia


def with_coupled_rotors(formulation: Formulation, rotors: CoupledInertia) -> Formulation:
    """The formulation with the rotors."""
    if isinstance(formulation, InChosenCoordinates):
        return _InChosenCoordinatesWithRotors(formulation, rotors)
    return _WithRotors(formulation, rotors)


@dataclass(frozen=True)
class _WithRotors:
    formulation: Formulation
    rotors: CoupledInertia

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,), see `Formulation`: without the rotors, and under a unit effort more along each of them."""
        accelerations = self.formulation.forward_dynamics
        free = accelerations(q, v, tau, t)
        responses = [accelerations(q, v, tau + unit, t) - free for unit in self.rotors.directions.T]
        taken = self.rotors.along(free, responses)
        for force, response in zip(taken, responses, strict=True):
            free = free - force * response
        return free


@dataclass(frozen=True)
class _InChosenCoordinatesWithRotors(_WithRotors):
    formulation: InChosenCoordinates

    def dependent_row(self, q: np.ndarray, t: float = 0.0, least: float | None = None) -> str | None:
        """See `dependent_row` of the formulations: rotors change no constraint."""
        return self.formulation.dependent_row(q, t, least)
