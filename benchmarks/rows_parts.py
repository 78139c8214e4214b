"""Ticks of rigs with one part that is not compiled: a block in Python, and an FMU in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.paired_timing import Budget, Samples, StopwatchClock, repetitions, undisturbed
from benchmarks.rows import BenchCase, Measurement, Target
from benchmarks.rows_fmu_parts import fmu
from cosim import load_rig
from cosim.core.errors import RunError

RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
joints:
  shaft: {initial: {velocity: 5 rad/s}}
parts:
  - PART
COUPLINGS
schedule: {step: 1 ms}
"""
BONDED = """couplings:
  bonds:
    - {effort: [wheel.torque, mechanism.shaft/effort], flow: [mechanism.shaft/velocity, wheel.speed]}"""
WHEEL = "{name: wheel, type: wheel.py, params: {inertia: 0.05, stiffness: 20}, step: 1 ms}"
# a wheel behind a torsional spring; `math` keeps it in Python
BLOCK = """
import math
from cosim.plugin import Signal, param, params


@params
class Params:
    inertia: float = param(unit="kg*m^2", above=0)
    stiffness: float = param(unit="N*m/rad", above=0)


class Wheel:
    inputs = {"speed": Signal((), "rad/s")}
    outputs = {"torque": Signal((), "N*m")}

    def __init__(self, params):
        self.params = params

    def initial(self):
        return {"twist": 0.0, "speed": 0.0}

    def flow(self, t, p, x, u):
        torque = p.stiffness * math.sin(x["twist"])
        return {"twist": u["speed"] - x["speed"], "speed": torque / p.inertia}, {"torque": -torque}


def load(params):
    return Wheel(params)
"""


@contextmanager
def block_rig() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        Path(folder, "wheel.py").write_text(BLOCK)
        path = Path(folder, "rig.yaml")
        path.write_text(RIG.replace("PART", WHEEL).replace("COUPLINGS", BONDED))
        yield path


@contextmanager
def fmu_rig() -> Iterator[Path]:
    with fmu(2, 1.0) as file:
        path = file.parent / "rig.yaml"
        path.write_text(RIG.replace("PART", f"{{name: table, fmu: {file.name}}}").replace("COUPLINGS", ""))
        yield path


def ticks(path: Path, clock: StopwatchClock, budget: Budget) -> Measurement:
    """Time of a tick in the Python engine."""
    rig = load_rig(path, interpret=False)
    with closing(rig.engine()) as engine:
        engine.open()
        engine.arm()

        def run(n: int) -> None:
            rows, stopped = engine.run(n)
            if stopped or len(rows) < n:
                raise RunError(f"the rig stopped while it was timed: {stopped}", str(path))

        with undisturbed(all_processors=True):
            # a run begins with a thread of its own: long ones, as in `rig.run`
            count = repetitions(run, 10 * budget.block, clock)
            times = []
            for _ in range(budget.pairs):
                begun = clock()
                run(count)
                times.append((clock() - begun) / count)
    return Measurement(Samples(np.array(times)))


def with_block(budget: Budget) -> Measurement:
    with block_rig() as path:
        return ticks(path, time.process_time, budget)  # the ticks have a thread of their own


def with_fmu(budget: Budget) -> Measurement:
    with fmu_rig() as path:
        return ticks(path, time.perf_counter, budget)  # another process does a part of the work


CASES = (
    BenchCase(
        "tick part in python",
        "a tick of one joint with a block in Python (two states, RK4) on a power bond, order 1, CPU time",
        with_block,
        target=Target("ours", 100.0, at_most=True),
    ),
    BenchCase(
        "tick fmu in own process",
        "a tick of one joint with an FMU of two outputs in a process of its own",
        with_fmu,
        target=Target("ours", 100.0, at_most=True),
    ),
)
