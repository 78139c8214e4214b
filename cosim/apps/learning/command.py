"""`cosim tune feedforward`: a table of feedforward efforts from runs of a rig, or from one recording."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cosim.apps.learning.iteration import Repetition, learn, next_feedforward, relative_error
from cosim.apps.learning.recorded_rig import check_recording, check_run
from cosim.core.errors import RunError
from cosim.core.units import show_percent
from cosim.output.console import options_named, refuse_inputs
from cosim.output.output_files import check_output, identity
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files
from cosim.rig.run.run import load_run


def learn_rig(
    path: Path,
    overrides: Sequence[Override],
    save: Path,
    iterations: int,
    gain: float,
    cutoff: float,
    recording: Path | None,
) -> None:
    """Print the error of each repetition, and write the feedforward.

    Raises InputError, StoppedRun, and RunError where a later run stops, after what was learned before is written.
    """
    check_output(save, "--save", (".csv",), {identity(path): "the rig itself"})
    rig, failure = load_rig(path, overrides), ""
    rig.require_joints("cosim tune feedforward")
    refuse_inputs(input_files(rig, overrides), save, "--save")
    if recording is not None:
        check_recording(rig, recording)
        run = load_run(recording)
        check_run(rig, run, str(recording))
        with options_named():
            feedforward = next_feedforward(rig, run, gain, cutoff)
    else:
        first: list[Repetition] = []

        def show(repetition: Repetition) -> None:
            first.append(repetition)
            size = relative_error(repetition.error_rms, first[0].error_rms)
            print(f"run {repetition.number:<3} error RMS {show_percent(size)} of run 0", flush=True)

        with options_named():
            learned = learn(rig, iterations, gain, cutoff, show)
        feedforward = learned.feedforward
        if learned.stopped:
            kept = f"the feedforward of run {learned.best.number} is kept"
            failure = f"{learned.stopped}; {kept}; lower --gain or --cutoff"
        elif learned.best.number < iterations:
            print(f"the error of run {learned.best.number} is the smallest; lower --cutoff or --gain to go on")
    feedforward.save(save)
    file = os.path.relpath(save, path.parent)
    print(f"wrote     feedforward {save}; use it with trajectory: {{feedforward: {{file: {file}}}}}")
    if failure:
        raise RunError(failure, str(path))
