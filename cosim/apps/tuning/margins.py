"""Margins of the loops of a rig with many parameters, by the exact linearisation of its ticks at moments of a run.

At rest dry friction damps a loop more than it does in motion, and an arm in another posture is another plant: the
margins at the start alone would be promises that the motion does not keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from cosim.apps.analysis.circle import SampledSystem
from cosim.apps.analysis.linearisation import LinearRig, Slopes, check_linear, linearise_at, slopes_of
from cosim.apps.analysis.loops import (
    closed_dofs,
    disk_margin,
    feedback_of,
    gain_margins,
    is_stable,
    phase_margins,
)
from cosim.core.types import Array
from cosim.execution.native_engine import NativeEngine
from cosim.rig.parameter_arrays import ParameterArrays, read_arrays
from cosim.rig.parametrised_rig import with_numbers
from cosim.rig.rig import Rig
from cosim.rig.rollouts import first_memories, opened_model
from cosim.simulation.loop.tick_ring import LoopStatus, TickRing
from cosim.simulation.tick.tick_model import TickModel

MOST_PLANTS = 64  # whose derivatives are kept


class MarginFinder:
    """Linear models of one rig with other parameters; what is compiled is kept between them."""

    def __init__(self, rig: Rig, unknown: frozenset[str] = frozenset()) -> None:
        """unknown: see `Rig.rollouts`. Raises InputError for a rig without a linear model."""
        check_linear(rig, rig.tick_model)
        self._rig, self._unknown = rig, unknown
        self._plants: dict[bytes, tuple[TickModel, Slopes]] = {}

    def find(
        self, parameters: Mapping[str, Array], figures: Sequence[str], moments: Sequence[int] = (0,)
    ) -> dict[str, Array]:
        """figure -> (k, nv), the smallest of all moments; NaN of dofs without a loop; 0 where the rig is unstable or
        the run stops before a moment. parameters: as rollouts take them; moments: numbers of ticks, ascending."""
        given = read_arrays(self._rig, parameters)
        found = {figure: np.full((given.k or 1, len(self._rig.joints)), np.nan) for figure in figures}
        for k in range(given.k or 1):
            for linear in self.along(given, k, moments):
                own = dict.fromkeys(figures, np.zeros(len(self._rig.joints)))
                if linear is not None:
                    own = _margins(linear, figures)
                for figure, values in own.items():
                    found[figure][k] = np.fmin(found[figure][k], values)
        return found

    def linear(self, given: ParameterArrays, k: int) -> LinearRig:
        """The first tick with the k-th parameters."""
        model, slopes = self._plant(given.numbers, given.values[k])
        memory = model.memory()
        memory[model.layout.place("parameters").where] = given.gains[k]
        return linearise_at(model, memory, slopes)

    def along(self, given: ParameterArrays, k: int, moments: Sequence[int]) -> Iterator[LinearRig | None]:
        """The tick at each moment of a run with the k-th parameters; None, the last one, where the run stops before."""
        model, slopes = self._plant(given.numbers, given.values[k])
        run = self._run(given, k)
        for moment in moments:
            if not moment:
                yield self.linear(given, k)
                continue
            ring = TickRing(run.program, moment - run.number)
            run.run_ticks(ring, moment - run.number)
            if ring.status is LoopStatus.FAULT:
                yield None
                return
            yield linearise_at(model, _moved(run, model), slopes)

    def _run(self, given: ParameterArrays, k: int) -> NativeEngine:
        """Of the k-th parameters, before its first tick."""
        model = opened_model(self._rig, given.numbers, self._unknown)
        engine = NativeEngine(model)
        engine.memory[:] = first_memories(self._rig, model, given)(slice(k, k + 1))[0]
        return engine

    def _plant(self, names: tuple[str, ...], values: Array) -> tuple[TickModel, Slopes]:
        """The ticks with these numbers of the plant, and their derivatives, which candidates have in common."""
        if (key := values.tobytes()) not in self._plants:
            model = with_numbers(self._rig, names, values, self._unknown) if names else self._rig.tick_model
            if len(self._plants) >= MOST_PLANTS:
                self._plants.clear()
            self._plants[key] = model, slopes_of(model)
        return self._plants[key]


def _moved(run: NativeEngine, model: TickModel) -> Array:
    """The memory of these ticks in the state of a run, whose numbers of the plant are inputs."""
    memory, theirs = model.memory(), run.tick_model.layout.places
    for path, (where, _) in model.layout.places.items():
        if path == ("numbers",):  # constants here
            continue
        memory[where] = run.memory[theirs[path][0]]
    memory[model.layout.place("t").where] = run.number * model.step
    return memory


# figure -> of a stable loop with S − 1 of one dof, and the step from one of its samples to the next [s]
FIGURES: Mapping[str, Callable[[SampledSystem, float], float]] = {
    "disk_margin": lambda feedback, step: disk_margin(feedback, step).alpha,
    "gain_margin": lambda feedback, step: gain_margins(feedback)[1],
    "phase_margin": lambda feedback, step: phase_margins(feedback, step)[0],
}


def _margins(linear: LinearRig, figures: Sequence[str]) -> dict[str, Array]:
    """figure -> (nv,), NaN of dofs without a loop, 0 of an unstable rig."""
    stable = is_stable(linear)
    found = {figure: np.full(len(linear.dofs), np.nan) for figure in figures}
    for dof in closed_dofs(linear):
        feedback = feedback_of(linear, [dof])
        for figure in figures:
            found[figure][dof] = FIGURES[figure](feedback, linear.step) if stable else 0.0
    return found
