"""Loop shaping: the gains that give each loop a crossover and a phase margin, from the exact linear model.

With all gains of a joint at 0, its linear model is the plant P from effort to position. kp + ki / (jω) + jω kd is then
given by L(jω) = −exp(j φ) at the crossover ω with the phase margin φ; the integral acts at a tenth of the crossover.
All joints have the same crossover, and a trial is proposed for each of many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.gains_by_name import JointGains, Proposals, joint_gains, positions_within
from cosim.apps.tuning.margins import MarginFinder
from cosim.apps.tuning.optimisers import Optimiser, SearchProblem
from cosim.core.errors import SectionError
from cosim.core.types import Array
from cosim.rig.parameter_arrays import ParameterArrays, read_arrays

ABOUT = "loop shaping: gains for a crossover and a phase margin, for many of them; built in"
PHASE_MARGINS = (math.radians(60.0), math.radians(45.0), math.radians(75.0))
CROSSOVERS = 60
DECADES = 4  # below a tenth of the rate of the ticks
INTEGRAL = 0.1  # of the crossover, where the integral begins to act


def load(problem: SearchProblem) -> Optimiser:
    """Raises InputError for parameters that are not gains, a rig without a linear model, and where no crossover gives
    gains within their bounds."""
    evaluator = problem.evaluator
    gains = joint_gains(evaluator, "shape")
    linear = _open_loops(evaluator, gains)
    highest = 0.2 * math.pi / linear.step
    omega = np.geomspace(highest * 10.0**-DECADES, highest, CROSSOVERS)
    plants = _plants(linear, [joint.dof for joint in gains], omega)
    candidates = [
        candidate
        for margin in PHASE_MARGINS
        for k in range(CROSSOVERS)
        if (candidate := _candidate(gains, plants[k], float(omega[k]), margin)) is not None
    ]
    positions = positions_within(evaluator, candidates)
    if not len(positions):
        what = "no crossover gives gains that are all within their bounds"
        raise SectionError(f"{what}; widen them, or use --optimiser de", ("optimiser",))
    return Proposals(positions)


def _open_loops(evaluator: TrialEvaluator, gains: list[JointGains]) -> LinearRig:
    """The rig with the gains that are varied at 0."""
    space = evaluator.space
    given = read_arrays(evaluator.rig, space.arrays(space.start[None]))
    rows = given.gains.copy()
    index = _places(evaluator, gains)
    rows[0, index] = 0.0
    return MarginFinder(evaluator.rig).linear(ParameterArrays(rows, given.numbers, given.values, 1), 0)


def _places(evaluator: TrialEvaluator, gains: list[JointGains]) -> list[int]:
    """Of kp, ki and kd of these joints among all parameters of the controllers, varied or not."""
    from cosim.rig.parameter_table import table_of

    known, dimensions, found = table_of(evaluator.rig).live, evaluator.space.dimensions, list[int]()
    for joint in gains:
        element = dimensions[joint.kp].element
        names = (f"{joint.controller}.{word}" for word in ("kp", "ki", "kd"))
        found += [known[name].where.start + element for name in names if name in known]
    return found


def _plants(linear: LinearRig, dofs: list[int], omega: Array) -> Array:
    """(m, joints) position per effort at these frequencies."""
    nv, identity = len(linear.dofs), np.eye(len(linear.A))
    z = np.exp(1j * omega * linear.step)[:, None, None]
    B, C = linear.B[:, dofs].astype(complex), linear.C[[nv + dof for dof in dofs]]
    full = C @ np.linalg.solve(z * identity - linear.A, B[None]) + linear.D[np.ix_([nv + dof for dof in dofs], dofs)]
    return np.diagonal(full, axis1=1, axis2=2)


def _candidate(gains: list[JointGains], plant: Array, omega: float, margin: float) -> Mapping[int, float] | None:
    """dimension -> value; None where a gain would not be positive."""
    found: dict[int, float] = {}
    for joint, p in zip(gains, plant, strict=True):
        controller = -np.exp(1j * margin) / p
        kp = float(controller.real)
        ki = joint.fixed_ki if joint.ki is None else INTEGRAL * kp * omega
        kd = float(controller.imag) / omega + ki / omega**2
        if kp <= 0.0 or kd <= 0.0:
            return None
        found |= {joint.kp: kp, joint.kd: kd}
        if joint.ki is not None:
            found[joint.ki] = ki
    return found
