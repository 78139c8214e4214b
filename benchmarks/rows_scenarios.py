"""The time that the scenarios of a rig with drives take: start of the program's work, all runs, all results."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import yaml

from benchmarks.paired_timing import FULL, Budget, Samples
from benchmarks.robots import rig_path
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from cosim.apps.scenario.command import ScenarioFiles, run_scenarios
from cosim.core.errors import RunError
from cosim.execution.hardware.emulation.fault_injection import KINDS, AtJoint
from cosim.rig.sections.scenario import COMPLETED

RIG = "rigs/arm_can.yaml"
COUNT, QUICK_COUNT, CORES, DURATION = 200, 50, 2, 2.0  # s
JOINTS = ("base", "shoulder", "elbow")
MOVING = 0.5, 1.5  # s, in which the faults begin
SEED = 1


def scenarios_of(count: int) -> Iterator[tuple[str, dict]]:
    """Name and section of as many scenarios, all kinds of faults in turn at random times; no one is to be stopped."""
    dice, at_joint = random.Random(SEED), set(AtJoint.__args__)
    for k in range(count):
        kind = list(KINDS)[k % len(KINDS)]
        fault = {"kind": kind, "at": round(dice.uniform(*MOVING), 3)}
        if kind in at_joint:
            fault["joint"] = dice.choice(JOINTS)
        if "fraction" in KINDS[kind].keys:
            fault["fraction"] = round(dice.uniform(0.01, 0.5), 2)
        yield f"{k} {kind}", {"faults": [fault], "expect": COMPLETED, "duration": DURATION}


def _children_time() -> float:
    """Processor time of the processes that have ended [s]."""
    times = os.times()
    return times.children_user + times.children_system


def scenarios(budget: Budget) -> Measurement:
    """Wall time with a process on each of two cores."""
    if len(os.sched_getaffinity(0)) < CORES:
        raise NotMeasured(f"needs {CORES} cores; run it on a machine that has them")
    count = COUNT if budget == FULL else budget.of(QUICK_COUNT)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenarios.yaml"
        file.write_text(yaml.safe_dump({"scenario": dict(scenarios_of(count))}))
        begun, used = time.perf_counter(), _children_time()
        results = run_scenarios(ScenarioFiles(rig_path(RIG), (file,)), jobs=CORES)
        seconds = (time.perf_counter() - begun) * COUNT / count
        used = (_children_time() - used) * COUNT / count
    if crashed := [result for result in results if result.happened == "crashed"]:
        raise RunError(crashed[0].sentence, crashed[0].name)
    completed = sum(result.happened == COMPLETED for result in results)
    note = f"{count} runs of {DURATION:g} s at 1 kHz with three drives, {completed} of them not stopped by their fault"
    note = f"{note}; {used:.0f} s of processor time"
    return Measurement(Samples(np.array([seconds])), note=note)


CASES = (
    BenchCase(
        f"{COUNT} scenarios",
        "arm_can: drivers, buses and emulated drives in simulated time, every kind of fault, two processes, wall time",
        scenarios,
        unit="s",
        target=Target("ours", 60.0, at_most=True),
        on_request=True,
    ),
)
