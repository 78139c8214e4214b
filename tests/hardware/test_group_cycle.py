"""What machine code says of feedback is what the manager says of it."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cosim import load_rig
from cosim.core.driver_contract import CycleOutcome
from cosim.core.errors import RunError
from cosim.core.types import COMMAND
from cosim.execution.hardware.compiled_groups import CompiledGroups
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.manager import HardwareManager
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.hardware import HardwareStub

MS, HOUR = 1_000_000, 3_600_000_000_000  # ns
CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
RIG = Path(__file__).parents[2] / "rigs" / "dynamometer" / "elbow.yaml"


class Playing(HardwareStub):
    """A drive, and its cycle for machine code, whose samples (t_ns, position, velocity) are set by a test."""

    joints = ("elbow",)

    def __init__(self) -> None:
        self.sample = (0, 0.0, 0.0)
        self.commands, self.states, self.t_ns = np.zeros((1, len(COMMAND))), np.zeros((1, 4)), np.zeros(1, np.int64)
        self._played = CALL(self._play)
        self.address = ctypes.cast(self._played, ctypes.c_void_p).value

    def compile(self) -> Cycle:
        return Cycle(self)

    def read(self, out, deadline_ns):
        out.t_ns, out.position[:], out.velocity[:] = self.sample

    def _play(self, *_: int) -> int:
        self.t_ns[0], self.states[0, :2] = self.sample[0], self.sample[1:]
        return CycleOutcome.NOMINAL


class Cycle:
    """Of a drive that plays."""

    def __init__(self, drive: Playing) -> None:
        self.commands, self.states, self.t_ns = drive.commands, drive.states, drive.t_ns
        self.read = self.write = self.stop = drive.address
        self.context = 0

    def hand_back(self) -> None:
        return None


class Bench(NamedTuple):
    manager: HardwareManager
    plant: VirtualPlant
    motor: Playing
    load: Playing

    def reads(self, due: int) -> bool:
        """Whether the manager takes the feedback of a tick."""
        try:
            self.manager.read(due, lambda: due, due)
        except RunError:
            return False
        return True


@pytest.fixture(scope="module")
def bench_of():
    rig = load_rig(RIG)
    index = np.array([rig.joints.index("elbow")])

    def make() -> Bench:
        plant, motor, load = VirtualPlant(rig.tick_model), Playing(), Playing()
        groups = [DriverGroup(motor, index, real=True), DriverGroup(load, np.array([0]), real=True, load=True)]
        return Bench(HardwareManager(groups, plant), plant, motor, load)

    return make


# ms since the sample before (0: no new one), change of the position, age of the sample of the load motor at the tick
# [ns], velocity of its shaft
ROW = st.tuples(
    st.sampled_from([0, 1, 1, 1, 2, 30]),
    st.sampled_from([0.0, 0.005, -0.01, 0.02, 0.23, 0.4, np.nan]),
    st.sampled_from([0, 0, 0, 5 * MS, 2 * HOUR]),
    st.sampled_from([0.0, 0.0, 0.0, 1.5, np.nan]),
)


@given(rows=st.lists(ROW, max_size=6))
@example(rows=[(1, 0.4, 0, 0.0)])  # each cause alone: a jump, one without a new sample, one after a pause of the
@example(rows=[(0, 0.4, 0, 0.0)])  # feedback, a silent load motor, a shaft that slips, and what was sampled apart
@example(rows=[(30, 0.01, 0, 0.0), (1, 0.23, 0, 0.0)])
@example(rows=[(1, 0.01, 0, 0.0), (1, 0.23, 0, 0.0)])
@example(rows=[(1, 0.0, 2 * HOUR, 0.0)])
@example(rows=[(1, 0.0, 0, 1.5)])
@example(rows=[(1, 0.0, 5 * MS, 1.5)])
def test_verdicts_samples_and_memory_are_those_of_the_manager(bench_of, rows):
    """In both the first sample has none before it. The clock of machine code is the real one, an hour before the ticks:
    no feedback is stale, except where its sample is two hours old."""
    python, machine = bench_of(), bench_of()
    groups = CompiledGroups(machine.manager)
    due, position = time.monotonic_ns() + HOUR, 0.0
    for dt, step, age, turning in [(1, 0.0, 0, 0.0), *rows]:
        due, position = due + dt * MS, position + step
        for bench in (python, machine):
            bench.motor.sample, bench.load.sample = (due, position, 0.0), (due - age, 0.0, turning)
        memory = machine.plant.memory.ctypes.data
        ended = [CALL(function)(record, memory, due, due) for function, record in groups.table[0].tolist()]
        assert python.reads(due) is not any(ended)
        assert groups.suspects == [(k, due) for k, end in enumerate(ended) if end]
        if any(ended):
            return
        for path in (("measured",), ("sample_interval",), ("sample_delay",), ("load_measured",), ("load_interval",)):
            np.testing.assert_equal(machine.plant.view(*path), python.plant.view(*path))
    groups.hand_back()
    np.testing.assert_equal(machine.manager.samples[0], python.manager.samples[0])
