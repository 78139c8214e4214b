"""Loops measured on a rig: the experiments of its joints, run or recorded, beside the rig linearised at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cosim.apps.analysis.comparison import MeasuredLoop
from cosim.apps.analysis.excitation import Excitation, Kind, excitation_of
from cosim.apps.analysis.linearisation import LinearRig, linearise
from cosim.apps.analysis.measured import excited_dof, linear_loop, measured_response
from cosim.core.errors import InputError, did_you_mean
from cosim.rig.reading.yaml_source import Override, overrides_of
from cosim.rig.rig import Rig, load_rig
from cosim.rig.run.run import Run, StoppedRun, open_recording


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
        run = load_rig(path, [*overrides, *overrides_of(excitation.overlay(rig))]).run()
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
    return MeasuredLoop(response, linear_loop(linear, response))


def _any_joint(rig: Rig) -> str:
    """Raises InputError for a rig without controllers."""
    for controller in rig.spec.controllers:
        return controller.joints[0]
    raise InputError("the rig has no controller whose loop could be measured", "--measure")
