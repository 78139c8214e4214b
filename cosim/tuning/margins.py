"""Margins of the loops of a rig with many parameters, by the exact linearisation of its tick at t = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.analysis.frequency import respond
from cosim.analysis.linearisation import LinearRig, Slopes, check_linear, linearise_at, slopes_of
from cosim.analysis.loops import closed_dofs, disk_margin, is_stable, margins_of
from cosim.rig.open_numbers import with_numbers
from cosim.rig.parameter_arrays import ParameterArrays, read_arrays
from cosim.rig.rig import Rig
from cosim.tick.tick_model import TickModel
from cosim.tuning.measures import MARGINS
from cosim.types import Array

POINTS = 400  # frequencies of a response
MOST_PLANTS = 64  # whose derivatives are kept


class MarginFinder:
    """Linear models of one rig with other parameters; what is compiled is kept between them."""

    def __init__(self, rig: Rig, unknown: frozenset[str] = frozenset()) -> None:
        """unknown: see `Rig.rollouts`. Raises InputError for a rig without a linear model."""
        check_linear(rig, rig.tick_model)
        self._rig, self._unknown = rig, unknown
        self._plants: dict[bytes, tuple[TickModel, Slopes]] = {}

    def find(self, parameters: Mapping[str, Array], figures: Sequence[str]) -> dict[str, Array]:
        """figure -> (k, nv), NaN of dofs without a loop; 0 where the rig is unstable. parameters: as rollouts take
        them."""
        given = read_arrays(self._rig, parameters)
        found = {figure: np.full((given.k or 1, len(self._rig.joints)), np.nan) for figure in figures}
        for k in range(given.k or 1):
            linear = self.linear(given, k)
            response, stable = respond(linear, POINTS), is_stable(linear)
            for dof in closed_dofs(response):
                own = (
                    loop_margins(response.loop(dof), response.omega, figures) if stable else dict.fromkeys(figures, 0.0)
                )
                for figure, value in own.items():
                    found[figure][k, dof] = value
        return found

    def linear(self, given: ParameterArrays, k: int) -> LinearRig:
        """The tick at t = 0 with the k-th parameters."""
        model, slopes = self._plant(given.numbers, given.values[k])
        memory = model.memory()
        memory[model.layout.place("parameters").where] = given.gains[k]
        return linearise_at(model, memory, slopes)

    def _plant(self, names: tuple[str, ...], values: Array) -> tuple[TickModel, Slopes]:
        """The ticks with these numbers of the plant, and their derivatives, which candidates have in common."""
        if (key := values.tobytes()) not in self._plants:
            model = with_numbers(self._rig, names, values, self._unknown) if names else self._rig.tick_model
            if len(self._plants) >= MOST_PLANTS:
                self._plants.clear()
            self._plants[key] = model, slopes_of(model)
        return self._plants[key]


def loop_margins(loop: Array, omega: Array, figures: Sequence[str], whole: bool = True) -> dict[str, float]:
    """figure -> value of a stable loop (m,); whole: see `margins_of`."""
    found = {"disk_margin": disk_margin(1.0 / (1.0 + loop)).alpha}
    if any(MARGINS[figure].needs_control for figure in figures):
        margins = margins_of(loop, omega, whole)
        found |= {"gain_margin": margins.gain, "phase_margin": margins.phase}
    return {figure: found[figure] for figure in figures}
