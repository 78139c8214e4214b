"""The recording of a run with faults, for those that failed."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import numpy as np

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.faulty_run import FaultyRun
from cosim.core.compile import BatchFunction
from cosim.rig.run.outputs import open_outputs
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.run_recorder import evaluation_of
from cosim.simulation.tick.tick_block import TickBlock


def record_run(armed: ArmedRig, run: FaultyRun, folder: Path, name: str) -> str:
    """Write `<name>.mcap` with all ticks, the faults and the stop; the path."""
    path = folder / (re.sub(r"[^\w-]+", "_", name) + ".mcap")
    step_ns, count = armed.rig.tick_model.step_ns, len(run.rows)
    with ExitStack() as stack:
        evaluation = evaluation_of(armed.rig)
        evaluation.observe = cast(BatchFunction, armed.own_signals)  # of rows with the numbers of the plant
        outputs = open_outputs(armed.rig, run_metadata_of(armed.rig), stack, path, evaluation)
        evaluation(TickBlock(np.arange(count), run.rows, np.zeros((count, 0)), armed.start), outputs.sinks)
        for tick, what in run.events:
            outputs.event(tick * step_ns, what, "warning")
        for sink in outputs.sinks if run.fault else ():
            sink.fault(run.last * step_ns, run.fault)
    return str(path)
