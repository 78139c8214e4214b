"""Rigs as modules of WebAssembly and as objects for other processors: the same run as in the engine. In WebAssembly and
in native code without fused multiply-add they have the same bits, on other processors the engine's."""

import ctypes
import platform
import shutil
from itertools import cycle

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.deploy.check import TOOLS, Played, played
from cosim.apps.deploy.tick_code import LANE_FUNCTIONS, tick_code
from cosim.core.compile.freestanding import with_signed_zeros
from cosim.core.compile.object_code import object_code
from cosim.core.compile.targets import HOST, targets
from cosim.execution.native_engine import NativeEngine
from tests.kit.levels import chosen
from tests.kit.linked_code import linked
from tests.kit.object_file import assert_freestanding
from tests.kit.samples import COVERED, FOLDER, kinds_of, size_of, without_drivers
from tests.kit.wasm import WasmRig, module

TICKS, LANES = 300, 2
# of a value, or of 1 where it is smaller: products and sums are fused in the engine and not in WebAssembly
TOLERANCE = 1e-10
SENSITIVE = {
    # forces of contacts follow from velocities that the solver leaves within 1e-10 m/s
    "contacts/quadruped_stand": 1e-5,
    "elastic/slider_crank": 1e-9,
}  # a rig in which rounding grows: stiff forces of constraints
NAMES = [str(file.relative_to(FOLDER).with_suffix("")) for file in without_drivers("**/*.yaml")]
# as few as have every method of integration and every kind of mechanism
SAMPLES = chosen(
    [name for name in NAMES if name not in COVERED],
    lambda name: {kind for kind in kinds_of(name) if kind[0] in ("schedule", "mechanism")},
    size_of,
)
# and as few others as have the further kinds of actuators, controllers, trajectories and parts
HAD = set[tuple[str, ...]]().union(*map(kinds_of, SAMPLES))
SAMPLES += chosen([name for name in NAMES if name not in COVERED], lambda name: kinds_of(name) - HAD, size_of)
OTHERS = [target for target in TOOLS if target != platform.machine()]
# rigs whose code is long enough to take seconds for each processor; their kinds of operations occur in others
LONG = {"bench/stiff_arm", "impedance/ur5_contact"}
on_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code without fused operations is for x86-64")


class Sample:
    """A rig, its code, and its run in the engine."""

    def __init__(self, name):
        rig = load_rig(FOLDER / f"{name}.yaml", ["schedule.realtime=no"])
        assert rig.native and not rig.tick_model.coupled_in_python
        engine, self.code = NativeEngine(rig.tick_model), tick_code(rig.tick_model, "rig")
        rows, why = engine.run(TICKS)
        self.ticks, self.memory = len(rows) - bool(why), np.concatenate([engine.memory, rows[-1]])
        self.signals = rig.observe(engine.view("bumpless_start"), rows)


@on_x86_64
@pytest.mark.parametrize(("name", "other"), list(zip(SAMPLES, cycle(OTHERS), strict=False)))
def test_a_sample_rig_runs_as_in_the_engine(name, other):
    """Every second one on each of the other processors, in its emulator, unless its code is long."""
    sample = Sample(name)
    code, names = sample.code, sample.signals.shape[1]
    wasm = WasmRig(code, module(code).code)
    assert wasm.ticks(0, TICKS) == sample.ticks
    memory, tolerance = wasm.read(code.size), SENSITIVE.get(name, TOLERANCE)
    assert_close(memory, sample.memory, tolerance)
    assert_close(wasm.result("signals", names), sample.signals[-1], tolerance)

    plain = targets()["x86_64"]._replace(cpu="x86-64-v2")
    objects, native = [object_code(code.ir, plain)], np.zeros(code.size)
    linked(objects, "rig_reset")(native.ctypes.data)
    assert linked(objects, "rig_ticks", ctypes.c_int32)(native.ctypes.data, 0, TICKS) == sample.ticks
    np.testing.assert_array_equal(native, memory)

    if name not in LONG and all(map(shutil.which, TOOLS[other][:2])) and "+fma" in targets()[HOST].features.split(","):
        content = object_code(with_signed_zeros(code.ir), targets()[other])
        assert_freestanding(content)
        (found,) = played([Played("rig", content, code.size, names, TICKS)], other)
        np.testing.assert_array_equal(found, sample.signals)
        numbers = ~np.isnan(found)
        assert (np.signbit(found) == np.signbit(sample.signals))[numbers].all()


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
