"""Why the energy balance of a run does not close, or a constraint stays violated: the same rig again, with half the
step of its integrator.

An error of the step shrinks with it; what a force or law adds to the energy does not, in the same motion, and neither
does what a constraint cannot satisfy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cosim.core.errors import CosimError
from cosim.execution.stop_reason import finer_steps
from cosim.rig.run.run import Run
from cosim.rig.run.run_metadata import RunMetadata
from cosim.rig.run.session import make_engine, run_session
from cosim.rig.sections.keep import keep_of
from cosim.rig.wiring.cached_parts import CachedParts
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.contradictions import contradiction

LONGEST = 5.0  # s of processor time of the run with half the step
SHRUNK = 0.75  # of the residual, from which on it has shrunk with half the step: by order 1 it is half
KEPT = 0.9  # of the residual, from which on it has not
SAME_MOTION = 0.05  # of the range of a joint, within which both runs end
PROJECTION = "mechanism.loop_closure.drift: projection"


class Causes(NamedTuple):
    """Why the energy balance does not close, and of each signal of a violated constraint why it is; empty where it was
    not found."""

    balance: str = ""
    violations: Mapping[str, str] = {}


class _Outcome(NamedTuple):
    """A run: its relative energy residual, the positions of its joints at the end and their ranges (n,), and the
    peaks of the violations."""

    residual: float
    position: np.ndarray
    extent: np.ndarray
    violations: Mapping[str, float]


def can_compare(rig: WiredRig) -> bool:
    """Whether a run can be made again without anybody noticing, and its steps be halved alone: a run as fast as
    possible, without Python code of the user, and not with drives that have steps of their own."""
    schedule, telemetry = rig.run_spec.schedule, rig.run_spec.telemetry
    seen = telemetry.publish is not None or telemetry.control is not None
    if rig.hardware or schedule.pacing is not None or seen or not rig.native or not rig.joints:
        return False
    return rig.spec.schedule.integrator != "multirate" and not rig.spec.schedule.adaptive


def causes_of_residuals(rig: WiredRig, run: Run, balance: bool, violated: Iterable[str]) -> Causes:
    """The causes with their evidence. run: of this rig, finished, whose balance does not close (`balance`), or in which
    these signals are large."""
    speed = run.summary["speed"]
    if not can_compare(rig) or run.changes or speed is None:
        return Causes()
    ticks = run.summary["ticks"]
    most = int(LONGEST * speed["ticks_per_second"] / 2.0)
    step = rig.run_spec.schedule.step_ns * 1e-9
    duration = min(ticks, max(most, 1)) * step
    try:
        seen = duration == ticks * step and all(f"{name}/position" in run for name in run.joints)
        whole = _outcome(run if seen else _again(rig, duration))
        half = _outcome(_again(_with_half_step(rig), duration))
        of_violations = {name: _cause_of_violation(rig, duration, name, whole, half) for name in violated}
    except CosimError:  # stopped, or not at all possible with these steps
        return Causes()
    return Causes(_cause_of_balance(rig, whole, half) if balance else "", of_violations)


def _with_half_step(rig: WiredRig) -> WiredRig:
    """The rig, which is not read and wired again, with other ticks."""
    model = rig.tick_model
    finer = rig.with_ticks(replace(model, substeps=2 * model.substeps))
    finer.cached = CachedParts()
    finer.tick_model.parameters[:] = model.parameters
    return finer


def _again(rig: WiredRig, duration: float) -> Run:
    return run_session(rig, duration, keep=keep_of("final"))


def _outcome(run: Run) -> _Outcome:
    energy, joints = run.summary["energy"], run.summary["joints"]
    position = np.array([run[f"{name}/position"][-1] for name in joints])
    extent = np.array([joint["position_max"] - joint["position_min"] for joint in joints.values()])
    peaks = {name: run.summary["constraints"][owner][f"{what}_max"] for name, owner, what in drift_signals(run.rig)}
    return _Outcome(np.inf if energy is None else energy["residual_relative"], position, extent, peaks)


def drift_signals(metadata: RunMetadata) -> Iterable[tuple[str, str, str]]:
    """(signal, constraint, `violation` or `slip`) of all constraints."""
    for name, constraint in metadata.constraints.items():
        for what in constraint.drifts:
            yield f"{name}/{what}", name, what


def _shrunk(whole: float, half: float) -> bool:
    return half <= SHRUNK * whole


def _kept(whole: _Outcome, half: _Outcome, residuals: tuple[float, float]) -> bool:
    """Whether both runs have the same residual in the same motion."""
    first, second = residuals
    same = np.all(np.abs(half.position - whole.position) <= SAME_MOTION * np.maximum(whole.extent, half.extent))
    return bool(same) and KEPT * first <= second <= first / KEPT


def _cause_of_balance(rig: WiredRig, whole: _Outcome, half: _Outcome) -> str:
    seen = f"with half the step the residual is {half.residual:.2g} of the energy instead of {whole.residual:.2g}"
    if _shrunk(whole.residual, half.residual):
        return f"the step is too coarse: {seen}; try {finer_steps(rig.plant)}"
    if _kept(whole, half, (whole.residual, half.residual)):
        what = "a model error: a force or law does not balance its energy"
        fix = "check the energy, power and loss of laws, joints and drives of your own"
        return f"{what}, {seen} in the same motion; {fix}"
    return f"its cause is not known: {seen}; compare with cosim run --reference"


def _cause_of_violation(rig: WiredRig, duration: float, name: str, whole: _Outcome, half: _Outcome) -> str:
    first, second = whole.violations[name], half.violations[name]
    seen = f"with half the step it is {second:.2g} instead of {first:.2g}"
    if _shrunk(first, second):
        projection = "" if rig.plant.loop_closure.projection else f", or {PROJECTION}"
        return f"the step is too coarse: {seen}; try {finer_steps(rig.plant)}{projection}"
    if not _kept(whole, half, (first, second)):
        return f"its cause is not known: {seen}; compare with cosim run --reference"
    established = _established(rig, duration, name) or "no step makes it smaller"
    fix = "check the constraints, and the motion given to joints"
    return f"a model error: {established}, {seen} in the same motion; {fix}"


def _established(rig: WiredRig, duration: float, name: str) -> str:
    """What contradicts the constraint where its violation, the signal `name`, is largest."""
    run = run_session(rig, duration, keep=keep_of({"signals": [name]}))
    tick = int(np.argmax(np.abs(run[name])))
    engine = make_engine(rig)
    if tick:
        engine.run(tick)
    model, owner = rig.run_model, name.rpartition("/")[0]
    x = model.layout.unpack(engine.memory)["plant"]
    found = contradiction(rig.plant, tick * model.step, x, owner)
    return found.text(owner, rig.plant.model.dof_names)
