"""Why the energy balance of a run does not close: the same rig again, with half the step of its integrator.

An error of the step shrinks with it; what a force or law adds to the energy does not, in the same motion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core.errors import CosimError
from cosim.rig.run.run import Run
from cosim.rig.run.session import run_session
from cosim.rig.sections.keep import keep_of
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.wiring.wired_rig import WiredRig

LONGEST = 5.0  # s of processor time of the run with half the step
SHRUNK = 0.75  # of the residual, from which on it has shrunk with half the step: by order 1 it is half
KEPT = 0.9  # of the residual, from which on it has not
SAME_MOTION = 0.05  # of the range of a joint, within which both runs end
FIX = "try a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"


class _Balance(NamedTuple):
    """The end of a run: its relative energy residual, the positions of its joints and their ranges (n,)."""

    residual: float
    position: np.ndarray
    extent: np.ndarray


def can_compare(rig: WiredRig) -> bool:
    """Whether a run can be made again without anybody noticing, and its steps be halved alone: a run as fast as
    possible, without Python code of the user, and not with drives that have steps of their own."""
    schedule, telemetry = rig.run_spec.schedule, rig.run_spec.telemetry
    seen = telemetry.publish is not None or telemetry.control is not None
    if rig.hardware or schedule.pacing is not None or seen or not rig.native or not rig.joints:
        return False
    return rig.spec.schedule.integrator != "multirate" and not rig.spec.schedule.adaptive


def cause_of_residual(rig: WiredRig, run: Run) -> str:
    """The cause with its evidence; empty where it is not found. run: of this rig, finished, whose balance does not
    close."""
    speed = run.summary["speed"]
    if not can_compare(rig) or run.changes or speed is None:
        return ""
    ticks = run.summary["ticks"]
    most = int(LONGEST * speed["ticks_per_second"] / 2.0)
    duration = min(ticks, max(most, 1)) * rig.run_spec.schedule.step_ns * 1e-9
    try:
        whole, half = _balance(rig, duration), _balance(_with_half_step(rig), duration)
    except CosimError:  # stopped, or not at all possible with these steps
        return ""
    return _cause(whole, half)


def _with_half_step(rig: WiredRig) -> WiredRig:
    finer = type(rig)(read_rig(rig.spec.source, [f"schedule.substeps={2 * rig.spec.schedule.substeps}"]), False)
    finer.tick_model.parameters[:] = rig.tick_model.parameters
    return finer


def _balance(rig: WiredRig, duration: float) -> _Balance:
    run = run_session(rig, duration, keep=keep_of("final"))
    energy, joints = run.summary["energy"], run.summary["joints"]
    position = np.array([run[f"{name}/position"][-1] for name in joints])
    extent = np.array([joint["position_max"] - joint["position_min"] for joint in joints.values()])
    return _Balance(np.inf if energy is None else energy["residual_relative"], position, extent)


def _cause(whole: _Balance, half: _Balance) -> str:
    seen = f"with half the step the residual is {half.residual:.2g} of the energy instead of {whole.residual:.2g}"
    if half.residual <= SHRUNK * whole.residual:
        return f"the step is too coarse: {seen}; {FIX}"
    same = np.all(np.abs(half.position - whole.position) <= SAME_MOTION * np.maximum(whole.extent, half.extent))
    if same and KEPT * whole.residual <= half.residual <= whole.residual / KEPT:
        what = "a model error: a force or law does not balance its energy"
        fix = "check the energy, power and loss of laws, joints and drives of your own"
        return f"{what}, {seen} in the same motion; {fix}"
    return f"its cause is not known: {seen}; compare with cosim run --reference"
