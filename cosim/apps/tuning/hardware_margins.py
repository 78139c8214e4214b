"""Margins of loops on the real rig: an experiment for each joint that a limit is for, beside the loop as simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.experiment import Excitation, excitation_of
from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.analysis.loops import Margins, closed_dofs, crossover_of, feedback_of
from cosim.apps.analysis.measured import MeasuredLoop, beside, measured_response
from cosim.apps.analysis.measured_margins import measured_margins
from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.objective import Limit
from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.core.units import TURN, quantity_unit, unit_sign
from cosim.rig.reading.yaml_source import overrides_of
from cosim.rig.rig import Rig
from cosim.rig.run.run import Run
from cosim.rig.sections.rig_spec import read_rig

LOWEST_FREQUENCY = 0.2  # frequency, of the crossover: margins are decided above it
AMPLITUDE_FRACTION = 0.05  # of the largest effort of the joint: above the resolution and the friction of a real drive

# figure -> of the measured margins
FIGURES: Mapping[str, Callable[[Margins], float]] = {
    "disk_margin": lambda margins: margins.disk.alpha,
    "gain_margin": lambda margins: margins.gain,
    "phase_margin": lambda margins: margins.phase,
}


@dataclass(frozen=True)
class RealMargins:
    """Margins of a joint's loop. name: of the gains; each figure -> value: with the plant of the rig, the smallest of
    all plants, and measured; loop: its response beside the rig's; failure: which limit does not hold, else ""."""

    name: str
    joint: str
    simulated: Mapping[str, float]
    promised: Mapping[str, float]
    measured: Mapping[str, float]
    loop: MeasuredLoop
    failure: str


@dataclass(frozen=True)
class MarginExperiment:
    """The experiment that measures the limited margins of one joint on the real rig. linear: the rig of the session
    with the gains; limits: of this joint; unit: of its effort."""

    linear: LinearRig
    excitation: Excitation
    limits: tuple[Limit, ...]
    simulated: Mapping[str, float]
    promised: Mapping[str, float]
    unit: str

    @property
    def joint(self) -> str:
        return self.excitation.joint

    @property
    def what(self) -> str:
        """What the motors do, in one line."""
        e = self.excitation
        return f"an effort of {e.amplitude:.3g} {self.unit} in {self.joint}, {e.f0:.3g} to {e.f1:.3g} Hz"

    def rig(self, real: Rig) -> Rig:
        """The real rig, which holds its posture while the joint is excited."""
        overlay = self.excitation.overlay(real)
        return Rig(read_rig(real.spec.source, overrides_of(overlay)), real.interpret)

    def result(self, name: str, run: Run, step: float) -> RealMargins:
        """step: of the ticks of the run [s]. Raises InputError for a run that cannot be evaluated."""
        response = measured_response(run, step)
        margins = measured_margins(response.loop, response.omega)
        measured = {limit.measure.figure: FIGURES[limit.measure.figure](margins) for limit in self.limits}
        failure = ""
        for limit in self.limits:
            value = measured[limit.measure.figure]
            if value < limit.bound and not failure:
                failure = limit.breach(value, f"of {self.joint}", "as measured")
        loop = beside(response, self.linear)
        return RealMargins(name, self.joint, self.simulated, self.promised, measured, loop, failure)


def margin_experiments(
    evaluator: TrialEvaluator, values: Array, real: Rig, note: Callable[[str], None]
) -> list[MarginExperiment]:
    """Of each joint with a limit of a margin, with the parameters (d,); note: why a loop cannot be measured."""
    limits = [limit for limit in evaluator.objective.limits if limit.measure.is_margin]
    if not limits:
        return []
    linear, margins = evaluator.linear(values), evaluator.margins(values)
    found = list[MarginExperiment]()
    for dof in closed_dofs(linear):
        joint = linear.dofs[dof]
        own = tuple(limit for limit in limits if limit.measure.joint in (None, dof))
        if not own:
            continue
        crossover = crossover_of(feedback_of(linear, [dof])) / linear.step / TURN
        lowest = LOWEST_FREQUENCY * crossover if math.isfinite(crossover) else None  # a gain that is never 1
        try:
            excitation = _excitation(
                evaluator.rig, linear, joint, AMPLITUDE_FRACTION * float(real.limits.effort[dof]), lowest
            )
        except InputError as error:
            note(f"the loop of {joint} is not measured: {error.what}")
            continue
        own_margins = {limit.measure.figure: margins[limit.measure.figure][:, dof] for limit in own}
        found.append(
            MarginExperiment(
                linear,
                excitation,
                own,
                {figure: float(plants[0]) for figure, plants in own_margins.items()},
                {figure: float(np.min(plants)) for figure, plants in own_margins.items()},
                unit_sign(quantity_unit("joint effort", real.plant.model.dof_units[dof])),
            )
        )
    return found


def _excitation(rig: Rig, linear: LinearRig, joint: str, amplitude: float, lowest: float | None) -> Excitation:
    """Raises InputError for a joint that cannot be excited."""
    if not math.isfinite(amplitude):
        raise InputError(f"joint '{joint}' has no limit of its effort; set limits.effort", f"joints.{joint}")
    return excitation_of(rig, linear, joint, "multisine", amplitude, lowest)
