"""Rigs as kernels of a GPU: their PTX, run on the CPU, against the functions of the same rig for one run."""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.apps.deploy.command import Choices, build
from cosim.apps.deploy.gpu_kernels import ptx_files
from cosim.apps.deploy.tick_code import tick_code
from cosim.core.compile.object_code import object_code
from cosim.core.compile.targets import PTX, targets
from tests.kit.linked_code import linked
from tests.kit.ptx_on_cpu import PtxProgram, addresses
from tests.kit.ptxas import assemble
from tests.kit.samples import FOLDER

RUNS = 3


JUMPS = "given motions that jump"


def jumping() -> dict:
    """A base and a joint that follow tables, with four breaks in 30 ticks, two of them in one; two are jumps."""
    spline = {"type": "spline", "ends": "natural", "degree": 3}
    bodies = [
        {"name": "cart", "type": "prismatic", "axis": [1, 0, 0], "mass": 2.0},
        {"name": "pendulum", "axis": [0.5, 1, 0.2], "mass": 1.0, "com": [0, 0, -0.5], "inertia": [0.02] * 3},
    ]
    base = {"y": {**spline, "points": [0.1, 0.3], "times": ["101 ms", "211 ms"]}}
    cart = {"prescribed": {**spline, "points": [0.1, 0.3], "times": ["104 ms", "250 ms"]}}
    return {
        "name": "jumping",
        "mechanism": {"moving_base": base, "bodies": bodies},
        "joints": {"cart": cart, "pendulum": {"actuator": {"type": "ideal"}}},
        "controllers": [{"type": "pd_gravity", "name": "hold", "kp": 5.0, "kd": 1.0}],
        "schedule": {"step": "10 ms", "duration": "300 ms", "integrator": "rk4"},
    }


class Kernels:
    """The kernels of a rig and the interleaved memories of RUNS runs."""

    def __init__(self, name: str) -> None:
        self.rig = load_rig(FOLDER / f"{name}.yaml") if name != JUMPS else Rig.from_dict(jumping())
        files = ptx_files(self.rig, "rig", targets()[PTX])
        self.facts = json.loads(files[".json"])
        self.program = PtxProgram(files[".ptx"].decode())
        self.memory = np.full((self.facts["memory"], RUNS), np.nan)
        self.call("reset")

    def call(self, function: str, *given: np.ndarray | int) -> None:
        """A kernel with the memories, other arrays, how many runs there are, other numbers."""
        arrays = [self.memory, *(each for each in given if isinstance(each, np.ndarray))]
        numbers = [RUNS, *(each for each in given if isinstance(each, int))]
        values = np.array([*(array.ctypes.data for array in arrays), *numbers], dtype=np.int64)
        self.program.launch(f"rig_{function}")(2, 2, addresses(values))


def bits(array):
    return np.ascontiguousarray(array).view(np.int64)


@pytest.mark.parametrize("name", ["mechanisms/four_bar", "drives/servo_axis", JUMPS])
def test_each_run_has_the_bits_of_the_functions_for_one(name):
    kernels = Kernels(name)
    code = tick_code(kernels.rig.tick_model, "rig")
    objects = [object_code(code.ir)]
    gains = [parameter["place"] for parameter in kernels.facts["parameters"]]
    scales = np.array([1.0, 0.95, 0.9])
    kernels.memory[gains] *= scales
    done = np.zeros(RUNS, dtype=np.int64)
    signals, poses = np.empty((len(kernels.facts["signals"]), RUNS)), np.empty((12 * kernels.facts["bodies"], RUNS))
    for first, count in ((0, 1), (1, 29)):
        kernels.call("ticks", done, first, count)
        assert done.tolist() == [count] * RUNS
    kernels.call("signals", signals)
    kernels.call("poses", poses)
    for k, scale in enumerate(scales):
        memory, own_signals, own_poses = np.empty(code.size), np.empty(len(signals)), np.empty(len(poses))
        linked(objects, "rig_reset")(memory.ctypes.data)
        memory[gains] *= scale
        assert linked(objects, "rig_ticks", ctypes.c_int32)(memory.ctypes.data, 0, 30) == 30
        linked(objects, "rig_signals")(memory.ctypes.data, own_signals.ctypes.data)
        linked(objects, "rig_poses")(memory.ctypes.data, own_poses.ctypes.data)
        np.testing.assert_array_equal(bits(kernels.memory[:, k]), bits(memory))
        np.testing.assert_array_equal(bits(signals[:, k]), bits(own_signals))
        np.testing.assert_array_equal(bits(poses[:, k]), bits(own_poses))


def test_the_functions_for_one_run_pass_breaks_as_the_engine_does():
    rig = Rig.from_dict(jumping())
    breaks = rig.plant.breaks
    assert (len(breaks.before), breaks.jumps.sum(), breaks.most_within(rig.tick_model.step)) == (5, 2, 2)
    code, run = tick_code(rig.tick_model, "rig"), rig.run()
    objects, memory = [object_code(code.ir)], np.empty(code.size)
    linked(objects, "rig_reset")(memory.ctypes.data)
    assert linked(objects, "rig_ticks", ctypes.c_int32)(memory.ctypes.data, 0, 31) == 31
    names = [signal["name"] for signal in json.loads(ptx_files(rig, "rig", targets()[PTX])[".json"])["signals"]]
    values = np.empty(len(names))
    linked(objects, "rig_signals")(memory.ctypes.data, values.ctypes.data)
    for name in ("pendulum/position", "pendulum/velocity", "cart/effort", "energy/work"):
        assert values[names.index(name)] == pytest.approx(run[name][-1], rel=1e-12), name


def test_a_run_that_the_guard_stopped_stays_as_it_is():
    kernels = Kernels("ur5_sim")
    plant = kernels.facts["places"]["plant.position"]["at"]
    kernels.memory[plant + 1, 1] += 10.0
    done = np.full(RUNS, -1, dtype=np.int64)
    kernels.call("ticks", done, 0, 5)
    assert done.tolist() == [5, 0, 5]
    before = kernels.memory.copy()
    kernels.call("ticks", done, 5, 5)
    assert done.tolist() == [5, 0, 5]
    np.testing.assert_array_equal(bits(kernels.memory[:, 1]), bits(before[:, 1]))
    assert (kernels.memory[plant + 1, [0, 2]] != before[plant + 1, [0, 2]]).any()


def test_the_files_of_the_command(tmp_path, capsys, said):
    build(FOLDER / "two_link.yaml", [], "ptx", tmp_path, Choices("sm_90"))
    facts = json.loads((tmp_path / "two_link.json").read_text())
    text = (tmp_path / "two_link.ptx").read_text()
    assert facts["functions"] == [f"two_link_{each}" for each in ("reset", "ticks", "signals", "poses")]
    assert facts["prototypes"][1] == (
        "void two_link_ticks(double *memory, int64_t *done, int64_t runs, int64_t first, int64_t count)"
    )
    assert facts["target"]["cpu"] == "sm_90" and ".target sm_90" in text
    assert all(f".visible .entry {name}(" in text for name in facts["functions"])
    assert facts["note"].startswith("experimental: ")
    said(capsys.readouterr().out, r"[\d.]+ kB")
    assert assemble(text, "sm_90", tmp_path).registers <= 255
