"""A tick in an FMU of a rig, called by an importer, beside a tick of the compiled loop."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, RepeatedCall
from benchmarks.peers import import_peer, relative_difference
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, beside
from cosim import load_rig
from cosim.apps.deploy.fmu_export.fmu_file import fmu_of
from cosim.core.errors import RunError

NAMES = tuple(f"{joint}_joint/position" for joint in ("shoulder_pan", "shoulder_lift", "elbow"))
COMPARED = 1000  # ticks


class StartedFmu:
    """An instance of FMI 2.0 in FMPy; number: of ticks so far."""

    def __init__(self, content: bytes, step: float) -> None:
        fmpy = import_peer("fmpy")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rig.fmu")
            file.write_bytes(content)
            description = fmpy.read_model_description(str(file))
            self.fmu: Any = fmpy.instantiate_fmu(fmpy.extract(str(file), folder), description, "CoSimulation")
        references = {item.name: item.valueReference for item in description.modelVariables}
        self.shown, self.step, self.number = [references[name] for name in NAMES], step, 0
        self.fmu.setupExperiment(startTime=0.0)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()

    def run(self, ticks: int) -> None:
        """One step of so many ticks."""
        self.fmu.doStep(self.number * self.step, ticks * self.step)
        self.number += ticks


def fmu_tick(budget: Budget) -> Measurement:
    """Ours: the ticks in the FMU. Other: ticks of the loop, with the rows that they leave for the recording."""
    path = sample_rig()
    rig = load_rig(path, interpret=False)
    engine, content = rig.engine(), fmu_of(rig, 2)
    unit = StartedFmu(content, rig.tick_model.step)

    def peer() -> tuple[RepeatedCall, float]:
        compared = StartedFmu(content, rig.tick_model.step)
        compared.run(COMPARED)
        run = rig.run(duration=COMPARED * rig.tick_model.step)
        found, expected = compared.fmu.getReal(compared.shown), [run[name][-1] for name in NAMES]
        return loop, relative_difference(np.array(found), np.array(expected))

    def loop(n: int) -> None:
        rows, stopped = engine.run(n)
        if stopped or len(rows) < n:
            raise RunError("the guard stopped the rig while it was timed", str(path))

    return beside(unit.run, peer, budget)


CASES = (
    BenchCase(
        "fmu tick ur5_sim",
        "UR5 with six drives: a tick in its FMU, many in a step, called by FMPy",
        fmu_tick,
        "the compiled loop of `cosim run`",
    ),
)
