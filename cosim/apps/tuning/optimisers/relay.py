"""Relay experiment: the ultimate gain and period of each joint, and the gains of well-known rules.

A relay in the place of the controller makes a joint oscillate where its phase is −180° (Åström and Hägglund, Automatic
tuning of simple regulators, Automatica 20(5), 1984): Ku = 4 d / (π a). A trial is proposed for each rule. It suits
joints whose drive and friction turn the phase through −180° well below the rate of the ticks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cosim.apps.analysis.relay import limit_cycle, with_relay
from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.gains_by_name import JointGains, Proposals, joint_gains, positions_within
from cosim.apps.tuning.optimisers import Optimiser, SearchProblem
from cosim.core.errors import SectionError
from cosim.core.types import Array
from cosim.rig.rig import Rig

ABOUT = "relay experiment: the ultimate gain and period, and the gains of well-known rules; built in"
AMPLITUDE = 0.2  # of the effort limit, or of all efforts that hold the joint


class Rule(NamedTuple):
    """kp / Ku, Ti / Tu and Td / Tu."""

    kp: float
    integral: float
    derivative: float


# Ziegler and Nichols 1942 (PID), Pessen 1954, some and no overshoot (Seborg et al., Process Dynamics and Control),
# Tyreus and Luyben 1992; and softer ones of the first
RULES = (
    Rule(0.6, 0.5, 0.125),
    Rule(0.7, 0.4, 0.15),
    Rule(0.33, 0.5, 0.33),
    Rule(0.2, 0.5, 0.33),
    Rule(0.45, 2.2, 0.16),
    Rule(0.3, 1.0, 0.25),
    Rule(0.1, 2.0, 0.5),
)


def load(problem: SearchProblem) -> Optimiser:
    """Raises InputError for parameters that are not gains, and for joints without a limit cycle."""
    evaluator = problem.evaluator
    gains = joint_gains(evaluator, "relay")
    found: dict[int, tuple[float, float]] = {}
    for controller in dict.fromkeys(joint.controller for joint in gains):
        own = [joint for joint in gains if joint.controller == controller]
        found |= _experiment(evaluator, controller, own)
    positions = positions_within(evaluator, [_candidate(gains, found, rule) for rule in RULES])
    if not len(positions):
        shown = ", ".join(f"{joint.joint} {found[joint.dof][0]:.4g}" for joint in gains)
        what = f"no rule gives gains that are all within their bounds; the ultimate gains are {shown}"
        raise SectionError(f"{what}; widen the bounds", ("optimiser",))
    return Proposals(positions)


def _candidate(gains: list[JointGains], found: Mapping[int, tuple[float, float]], rule: Rule) -> Mapping[int, float]:
    """dimension -> value."""
    values: dict[int, float] = {}
    for joint in gains:
        ultimate, period = found[joint.dof]
        kp = rule.kp * ultimate
        values |= {joint.kp: kp, joint.kd: kp * rule.derivative * period}
        if joint.ki is not None:
            values[joint.ki] = kp / (rule.integral * period)
    return values


def _experiment(evaluator: TrialEvaluator, controller: str, gains: list[JointGains]) -> dict[int, tuple[float, float]]:
    """dof -> (Ku, Tu [s]) of the joints of a controller, one relay at a time."""
    rig = with_relay(evaluator.rig, controller, {})
    loop = next(loop for loop in rig.tick_model.loops if loop.name == controller)
    dofs = loop.index.tolist()
    full = _amplitudes(rig)[dofs]
    rows = np.array([np.where(np.array(dofs) == joint.dof, full, 0.0) for joint in gains])
    signals = [f"{joint.joint}/position" for joint in gains]
    batch = rig.rollouts({f"{controller}.amplitude": rows}, duration=evaluator.duration, signals=signals)
    found = {}
    for k, joint in enumerate(gains):
        if batch.stopped[k]:
            what = f"under a relay of {rows[k].max():.4g} the run is stopped: {batch.faults[k]}"
            raise SectionError(f"joint '{joint.joint}': {what}; use --optimiser shape", ("optimiser",))
        try:
            amplitude, period = limit_cycle(batch[f"{joint.joint}/position"][k])
        except ValueError as error:
            what = f"joint '{joint.joint}' {error} under a relay"
            raise SectionError(f"{what}; use --optimiser shape", ("optimiser",)) from None
        found[joint.dof] = 4.0 * rows[k].max() / (np.pi * amplitude), period * rig.tick_model.step
    return found


def _amplitudes(rig: Rig) -> Array:
    """(nv,) a fraction of the effort limits; without one, of the largest effort that holds any joint."""
    model = rig.plant.model
    held = float(np.abs(model.nonlinear_effects(model.coordinates(rig.plant.position), np.zeros(model.nv))).max())
    return np.where(np.isfinite(rig.limits.effort), AMPLITUDE * rig.limits.effort, max(AMPLITUDE * held, 1.0))
