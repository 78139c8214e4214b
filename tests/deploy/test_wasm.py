"""Rigs as modules of WebAssembly: the same run as in the engine, and the same bits as native code without fused
multiply-add."""

import ctypes
import platform

import numpy as np
import pytest

from cosim import load_rig
from cosim.compile.object_code import object_code
from cosim.compile.targets import targets
from cosim.deploy.lane_code import LANE_FUNCTIONS
from cosim.deploy.tick_code import tick_code
from cosim.execution.native_engine import NativeEngine
from tests.kit.linked_code import linked
from tests.kit.samples import FOLDER, covering_samples, without_drivers
from tests.kit.wasm import WasmRig, module

TICKS, LANES = 1000, 2
# of a value, or of 1 where it is smaller: products and sums are fused in the engine and not in WebAssembly
TOLERANCE = 1e-10
# … of rigs in which rounding grows: a last place at the start changes the first by 5e-8 in the engine itself; the step
# length of the second follows an error estimate that is all rounding; forces of constraints between stiff bodies
SENSITIVE = {"drives/industrial_arm": 1e-6, "drives/lossy_gear": 1e-8, "elastic/slider_crank": 1e-9}
NAMES = [str(file.relative_to(FOLDER).with_suffix("")) for file in without_drivers("**/*.yaml")]


def machine_code(path):
    """The rig, or None where its ticks are not machine code alone."""
    rig = load_rig(path, ["schedule.realtime=no"])
    return rig if rig.native and not rig.tick_model.coupled_in_python else None


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code without fused operations is for x86-64")
@pytest.mark.parametrize("name", covering_samples(NAMES, "schedule"))
def test_a_sample_rig_runs_as_in_the_engine(name):
    rig = machine_code(FOLDER / f"{name}.yaml")
    if rig is None:
        pytest.skip("it has parts in Python")
    model = rig.tick_model
    engine, code = NativeEngine(model), tick_code(model, "rig")
    rows, why = engine.run(TICKS)

    wasm = WasmRig(code, module(code).code)
    done = wasm.ticks(0, TICKS)
    assert done == len(rows) - bool(why)
    memory, signals = wasm.read(code.size), wasm.result("signals", len(model.signals.names))
    tolerance = SENSITIVE.get(name, TOLERANCE)
    assert_close(memory, np.concatenate([engine.memory, rows[-1]]), tolerance)
    assert_close(signals, rig.observe(engine.view("bumpless_start"), rows[-1:])[0], tolerance)

    plain = targets()["x86_64"]._replace(cpu="x86-64-v2")
    objects, native = [object_code(code.ir, plain)], np.zeros(code.size)
    linked(objects, "rig_reset")(native.ctypes.data)
    assert linked(objects, "rig_ticks", ctypes.c_int32)(native.ctypes.data, 0, TICKS) == done
    np.testing.assert_array_equal(native, memory)


def assert_close(found, expected, tolerance):
    assert (np.isnan(found) == np.isnan(expected)).all()
    with np.errstate(invalid="ignore"):
        far = np.abs(found - expected) > tolerance * np.maximum(1.0, np.abs(expected))
    assert not far.any(), (found[far], expected[far])


def test_runs_side_by_side_are_those_of_single_runs():
    """The second lane has gains with which its guard stops it."""
    model = load_rig(FOLDER / "two_link.yaml").tick_model
    code = tick_code(model, "rig", lanes=LANES)
    wasm = WasmRig(code, module(code, LANE_FUNCTIONS).code)
    gains, fault = model.layout.place("parameters").where, model.program.fault
    memories, done = [], []
    for factor in (1.1, -3.0):
        wasm.call("reset")
        wasm.write(factor * model.parameters, gains.start)
        done.append(wasm.ticks(0, TICKS))
        memories.append(wasm.read(code.size))
    assert done[0] == TICKS > done[1] > 0
    assert memories[1][fault] > 0.0

    wasm.call("lanes_reset")
    both = wasm.read(LANES * code.size).reshape(code.size, LANES).copy()
    both[gains] *= (1.1, -3.0)
    wasm.write(both.ravel())
    assert wasm.call("lanes_ticks", 0, TICKS) == done[1]
    found = wasm.read(LANES * code.size).reshape(code.size, LANES)
    np.testing.assert_array_equal(found[:, 1], memories[1])
    # the other one goes on alone, after the tick in which its neighbour was stopped
    signals = wasm.lane_signals(LANES, len(model.signals.names))
    wasm.write(found[:, 0])
    np.testing.assert_array_equal(signals[:, 0], wasm.result("signals", len(model.signals.names)))
    assert wasm.ticks(done[1] + 1, TICKS - done[1] - 1) == TICKS - done[1] - 1
    np.testing.assert_array_equal(wasm.read(code.size), memories[0])
