"""Figures of merit of one run that is over, such as a real rig's: the definitions of rollouts, on its signals.

Of a real joint they use its samples, each of which counts until the next one, and not the estimated motion.
"""

from __future__ import annotations

import numpy as np

from cosim.apps.tuning.objective import Objective
from cosim.core.types import Array
from cosim.rig.rig import Rig
from cosim.rig.run.run import Run
from cosim.simulation.tick.accumulation import SIGNALS
from cosim.simulation.tick.metrics import METRICS, Ending, JointSample

INTERFACES = ("position", "velocity", "effort", "command_effort")


def figures_of_run(run: Run, rig: Rig, objective: Objective, ticks: int) -> dict[str, Array]:
    """figure -> (1, joints) of a metric, (1, 1) of a signal, for its first ticks; NaN of joints without it. Margins are
    not among them: they have experiments of their own."""
    found = {name: _metric(run, rig, name, ticks)[None] for name in objective.metrics}
    for name in objective.signals:
        found[name] = np.array([[np.nanmax(np.abs(run[name][:ticks]))]])
    return found


def _metric(run: Run, rig: Rig, name: str, ticks: int) -> Array:
    """(joints,)"""
    metric, n = METRICS[name], len(rig.joints)
    courses = {what: _courses(run, rig, what)[:ticks] for what in INTERFACES}
    reference = _courses(run, rig, "reference_position")[:ticks]
    error = _courses(run, rig, "measured_error")[:ticks]
    error = np.where(np.isnan(error), reference - courses["position"], error)
    error = np.where(np.isnan(reference), 0.0, error)
    target = np.nan_to_num(reference[-1])
    accumulators = np.repeat(np.array(metric.initial)[:, None], n, axis=1)
    for k, t in enumerate(run.t[:ticks] - run.t[0]):
        position, velocity, effort, request = (np.nan_to_num(courses[what][k]) for what in INTERFACES)
        sample = JointSample(t, position, velocity, effort, error[k], request, rig.limits.effort, target)
        accumulators = np.array(metric.update(accumulators, sample))
    count = len(run.t[:ticks])
    end = Ending(np.array([[count]]), np.array([[run.t[count - 1] - run.t[0]]]), rig.tick_model.step, target)
    with np.errstate(all="ignore"):
        values = metric.result(accumulators[None], end)[0]
    has = [f"{joint}/{SIGNALS[metric.needs]}" in run.signals for joint in rig.joints]
    return np.where(has, values, np.nan)


def _courses(run: Run, rig: Rig, what: str) -> Array:
    """(ticks, joints) of a signal of each joint, of real joints as measured; NaN of those without it."""
    nothing = np.full(len(run.t), np.nan)
    names = (f"{joint}/{what}" for joint in rig.joints)
    if what in ("position", "velocity"):
        real = {joint for joint, role in run.rig.roles.items() if role == "real"}
        names = (f"{joint}/measured_{what}" if joint in real else f"{joint}/{what}" for joint in rig.joints)
    return np.stack([run[name] if name in run.signals else nothing for name in names], axis=1)
