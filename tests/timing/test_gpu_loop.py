"""The body of the kernel of many runs, the same IR in a loop over the runs on the CPU: every bit of the engine's."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.core.compile.object_code import object_code
from cosim.rig.rollouts import accumulation_of
from cosim.simulation.loop.gpu_loop import ARRAYS, KERNEL, NUMBERS, GpuLoop
from tests.kit.linked_code import linked
from tests.kit.samples import FOLDER

POINTERS = ", ".join(f"ptr %{name}" for name in ARRAYS)
WHOLE = ", ".join(f"i64 %{name}" for name in NUMBERS)
HOST = f"""
define void @{KERNEL.name}.host({POINTERS}, {WHOLE}) {{
entry:
  br label %next
next:
  %run = phi i64 [ 0, %entry ], [ %run.next, %next ]
  call void @{KERNEL.name}.run({POINTERS}, {WHOLE}, i64 %run)
  %run.next = add i64 %run, 1
  %more = icmp slt i64 %run.next, %runs
  br i1 %more, label %next, label %end
end:
  ret void
}}
"""
RUNS = 5


class Host:
    """The body for RUNS runs on the CPU, and its arrays."""

    def __init__(self, loop: GpuLoop, memories: np.ndarray, accumulators: np.ndarray, places: int) -> None:
        self.call = linked([object_code(loop.code + HOST)], f"{KERNEL.name}.host")
        program = loop.program
        self.memories = np.ascontiguousarray(memories.T)
        self.accumulated = np.repeat(accumulators[:, None], len(memories), axis=1)
        self.kept = np.full((places, program.sampled, len(memories)), np.nan)
        self.last = np.empty((*program.signals.output_sizes, len(memories)))
        self.ran = np.zeros(len(memories), dtype=np.int64)

    def run(self, first: int, until: int, every: int = 1) -> None:
        arrays = [getattr(self, name).ctypes.data for name in ARRAYS]
        self.call(*arrays, self.memories.shape[1], first, until, every)


def memories_of(rig) -> np.ndarray:
    """RUNS memories at t = 0 with their own gains."""
    model = rig.tick_model
    memories = np.repeat(model.memory()[None], RUNS, axis=0)
    memories[:, model.layout.place("parameters").where] *= np.linspace(0.9, 1.0, RUNS)[:, None]
    return memories


def engine_with(rig, memory):
    engine = rig.engine()
    engine.memory[:] = memory
    return engine


@pytest.mark.parametrize("name", ["ur5_sim", "mechanisms/release", "drives/servo_axis"])
def test_memories_and_signals_are_those_of_the_engine(name):
    rig, ticks = load_rig(FOLDER / f"{name}.yaml"), 60
    model = rig.tick_model
    memories = memories_of(rig)
    host = Host(model.gpu_loop(None, ()), memories, np.zeros(0), 0)
    for first, until in ((0, 1), (1, 37), (37, ticks)):  # it goes on where it ended
        host.run(first, until)
    for k, memory in enumerate(memories):
        engine = engine_with(rig, memory)
        rows, why = engine.run(ticks)
        assert (host.ran[k], why) == (ticks, "")
        np.testing.assert_array_equal(host.memories[:, k].view(np.int64), engine.memory.view(np.int64))
        np.testing.assert_array_equal(host.last[:, k], rig.observe(engine.view("bumpless_start"), rows)[-1])


def test_samples_and_metrics_are_those_of_the_signals():
    rig, ticks, every = load_rig(FOLDER / "two_link.yaml"), 50, 7
    model, names = rig.tick_model, rig.tick_model.signals.names
    kept = (names[3], names[0])
    accumulation = accumulation_of(model, ["effort_max", "error_max"], ticks - 1)
    host = Host(model.gpu_loop(accumulation, kept), memories_of(rig), accumulation.initial(), 8)
    for first, until, places in ((0, 8, slice(0, 2)), (8, 14, slice(0, 0)), (14, ticks, slice(2, 8))):
        host.kept[:] = np.nan
        host.run(first, until, every)
        taken = host.kept[: places.stop - places.start].copy()
        assert np.isnan(host.kept[len(taken) :]).all()
        for k, memory in enumerate(memories_of(rig)):
            engine = engine_with(rig, memory)
            values = rig.observe(engine.view("bumpless_start"), engine.run(ticks)[0])
            columns = [names.index(name) for name in kept]
            np.testing.assert_array_equal(taken[:, :, k], values[::every][places][:, columns])
    metrics = accumulation.results(host.accumulated.T, host.ran)
    for k, memory in enumerate(memories_of(rig)):
        engine = engine_with(rig, memory)
        values = rig.observe(engine.view("bumpless_start"), engine.run(ticks)[0])
        for j, joint in enumerate(rig.joints):
            assert metrics["effort_max"][k, j] == np.abs(values[:, names.index(f"{joint}/effort")]).max()


def test_a_run_with_a_fault_stays_as_it_is():
    rig = load_rig(FOLDER / "ur5_sim.yaml")
    model, memories = rig.tick_model, memories_of(rig)
    plant = model.layout.place("plant").where
    memories[3, plant.start + 1] += 10.0  # outside the limits of its joint
    host = Host(model.gpu_loop(None, ()), memories, np.zeros(0), 0)
    host.run(0, 20)
    stopped = host.memories[:, 3].copy(), host.last[:, 3].copy()
    host.run(20, 40)
    assert host.ran.tolist() == [40, 40, 40, 1, 40]
    np.testing.assert_array_equal(host.memories[:, 3], stopped[0])
    np.testing.assert_array_equal(host.last[:, 3], stopped[1])
    engine = engine_with(rig, memories[3])
    assert engine.run(20)[1] and engine.memory[model.program.fault] != 0.0
    np.testing.assert_array_equal(host.memories[:, 3], engine.memory)
