"""Loops measured on a rig: experiments with a joint at rest that a feedforward effort excites, run or recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cosim.apps.analysis.frequency import poles
from cosim.apps.analysis.linearisation import LinearRig, linearise
from cosim.apps.analysis.measured import MeasuredLoop, beside, excited_dof, measured_response
from cosim.core.errors import InputError, did_you_mean
from cosim.core.units import TURN
from cosim.rig.reading.yaml_source import Override, overrides_of
from cosim.rig.rig import Rig, load_rig
from cosim.rig.run.run import Run, StoppedRun, open_recording

Kind = Literal["multisine", "chirp"]
AMPLITUDE_FRACTION = 0.01  # of the largest effort of the joint
HIGHEST_FREQUENCY = 1.0 / 3.0  # of the rate
LOWEST_FREQUENCY = 0.2  # times the slowest pole
LONGEST, SHORTEST = 20.0, 0.2  # s of a period
PERIODS = 5
SINES = 60
FADED_FRACTION = 0.1  # of a chirp, at each end
HELD_TRAJECTORY = {"type": "sine", "amplitude": 0, "frequency": 0}
REST_FRACTION = 0.5  # of a chirp, before and after it


@dataclass(frozen=True)
class Excitation:
    """The effort that excites one joint in an experiment: its form, amplitude and frequencies. amplitude: of the effort
    [SI]; period: of a multisine, and the duration of a chirp [s]; f0, f1 [Hz]."""

    kind: Kind
    joint: str
    amplitude: float
    period: float
    f0: float
    f1: float

    def trajectory(self, joints: tuple[str, ...]) -> dict[str, Any]:
        """Of a controller of these joints: others than the excited one are held."""
        amplitudes = [self.amplitude if name == self.joint else 0.0 for name in joints]
        common = {"type": self.kind, "of": "effort", "amplitude": amplitudes, "f0": self.f0, "f1": self.f1}
        if self.kind == "multisine":
            return common | {"period": self.period, "periods": PERIODS, "count": SINES}
        return common | {"duration": self.period, "ramp": FADED_FRACTION * self.period, "delay": self.settled}

    @property
    def settled(self) -> float:
        """When the rig is in the state about which it is measured [s]."""
        return self.period if self.kind == "multisine" else REST_FRACTION * self.period

    @property
    def duration(self) -> float:
        return self.period * (PERIODS if self.kind == "multisine" else 1.0 + 2.0 * REST_FRACTION)

    def overlay(self, rig: Rig) -> Mapping[str, object]:
        """The values that make a rig this experiment: nothing else moves, prescribed joints neither."""
        values: dict[str, object] = {
            f"controllers.{controller.name}.trajectory": self.trajectory(controller.joints)
            for controller in rig.spec.controllers
        }
        held = {name: HELD_TRAJECTORY for name, joint in rig.spec.joints.items() if joint.prescribed is not None}
        values |= {f"joints.{name}.prescribed": still for name, still in held.items()}
        for name, joint in rig.spec.multi_dof_joints.items():
            if joint.prescribed is not None:
                at = rig.plant.rotations[name].quaternions[0].tolist()
                values[f"joints.{name}.prescribed"] = {"orientations": [at], "times": [1.0]}
        return values | {"schedule.duration": f"{self.duration!r} s"}


def excitation_of(
    rig: Rig,
    linear: LinearRig,
    joint: str,
    kind: Kind = "multisine",
    amplitude: float | None = None,
    lowest: float | None = None,
) -> Excitation:
    """To a third of the rate. amplitude: of the effort, by default 1 % of the largest one; lowest: frequency [Hz], by
    default below the slowest pole.

    Raises InputError for a joint that no controller drives, and for one without a limit of its effort or an amplitude.
    """
    dof = linear.dofs.index(joint)
    loop = next((loop for loop in rig.tick_model.loops if dof in loop.index), None)
    if loop is None:
        raise InputError(f"joint '{joint}' has no controller whose loop could be measured", "--measure")
    if amplitude is None:
        amplitude = AMPLITUDE_FRACTION * float(rig.limits.effort[dof])
        if not math.isfinite(amplitude):
            raise InputError(f"joint '{joint}' has no limit of its effort; give --amplitude", "--measure")
    highest = HIGHEST_FREQUENCY / linear.step
    period = min(LONGEST, max(SHORTEST, 1.0 / (_below_poles(linear, highest) if lowest is None else lowest)))
    period = math.ceil(period / linear.step - 1e-9) * linear.step  # whole ticks: bins of the discrete transform
    return Excitation(kind, joint, amplitude, period, 1.0 / period, highest)


def _below_poles(linear: LinearRig, highest: float) -> float:
    """A frequency below the slowest pole's, all in Hz."""
    speeds = np.abs(poles(linear))
    return LOWEST_FREQUENCY * float(np.min(speeds[speeds > 1e-9 / linear.step], initial=TURN * highest)) / TURN


@dataclass(frozen=True)
class Measuring:
    """What is measured beside the linear rig. kind: of the excitation, None for no experiment in software; amplitude:
    of its effort [SI]; recordings: of experiments."""

    kind: Kind | None = None
    amplitude: float | None = None
    recordings: Sequence[Path] = ()

    def __bool__(self) -> bool:
        return self.kind is not None or bool(self.recordings)

    def loops(
        self, path: Path, overrides: Sequence[Override], linear: LinearRig, joints: Sequence[str]
    ) -> list[MeasuredLoop]:
        """Of these joints by experiments, and of the recordings. linear: the rig at rest."""
        kind, amplitude = self.kind, self.amplitude
        run = [measure(path, overrides, linear, joint, kind, amplitude) for joint in joints] if kind else []
        return run + [_of_recording(recording, linear, path) for recording in self.recordings]


def at_rest(path: Path, overrides: Sequence[Override]) -> tuple[Rig, float]:
    """The rig that holds its initial posture, and the time [s] after which its motion has decayed."""
    rig = load_rig(path, overrides)
    rig.require_joints("cosim analyze")
    linear = linearise(rig)
    held = excitation_of(rig, linear, _any_joint(rig), "multisine", 0.0)
    return load_rig(path, [*overrides, *overrides_of(held.overlay(rig))]), held.settled


def measure(
    path: Path, overrides: Sequence[Override], linear: LinearRig, joint: str, kind: Kind, amplitude: float | None
) -> MeasuredLoop:
    """Run the experiment of a joint in software; linear: the rig at rest. Raises InputError where it stops."""
    rig = load_rig(path, overrides)
    excitation = excitation_of(rig, linear, joint, kind, amplitude)
    try:
        run = load_rig(path, [*overrides, *overrides_of(excitation.overlay(rig))]).run(keep="all")
    except StoppedRun as stopped:
        what = f"the experiment of {joint} ended early: {stopped.run.fault}"
        raise InputError(f"{what}; give a smaller --amplitude", "--measure") from None
    return _beside(run, linear)


def experiment_of(
    path: Path, overrides: Sequence[Override], joint: str, kind: Kind, amplitude: float | None
) -> tuple[Rig, Excitation]:
    """The rig, and the excitation of one of its joints. Raises InputError for a joint that is not in it."""
    rig, settled = at_rest(path, overrides)
    linear = linearise(rig, settled)
    if joint not in linear.dofs:
        raise InputError(f"there is no joint '{joint}'{did_you_mean(joint, linear.dofs)}", "--joint")
    return rig, excitation_of(rig, linear, joint, kind, amplitude)


def _of_recording(recording: Path, linear: LinearRig, path: Path) -> MeasuredLoop:
    run = open_recording(recording)
    dof = excited_dof(run, str(recording))
    if dof not in linear.dofs:
        raise InputError(f"joint '{dof}' is not in {path}; give the rig of the recording", str(recording))
    return _beside(run, linear, str(recording))


def _beside(run: Run, linear: LinearRig, place: str | None = None) -> MeasuredLoop:
    phases = {dof: phase for dof, phase in zip(linear.dofs, linear.phases, strict=True) if phase is not None}
    response = measured_response(run, linear.step / linear.ticks, place, linear.ticks, phases)
    return beside(response, linear)


def _any_joint(rig: Rig) -> str:
    """Raises InputError for a rig without controllers."""
    for controller in rig.spec.controllers:
        return controller.joints[0]
    raise InputError("the rig has no controller whose loop could be measured", "--measure")
