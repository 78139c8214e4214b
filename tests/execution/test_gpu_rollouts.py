"""Rollouts on a GPU: from a rig to the calls of CUDA's driver, whose stand-in runs the PTX on the CPU."""

import os
import re
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cosim import InputError, Rig, RunError, load_rig
from cosim.core.compile import ptx, stack_array
from cosim.core.compile.ptx import LOCAL_BYTES
from cosim.execution import gpu_rollouts
from cosim.execution.cuda_device import MEMORY_FRACTION
from cosim.execution.gpu_rollouts import MOST_TICKS, next_ticks
from tests.kit import cuda_library
from tests.kit.cuda_driver import PROCESSORS, THREADS, CUresult, StandInDriver
from tests.kit.ptxas import assemble
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER

ROOT = FOLDER.parent

BODY = {"mass": 1.0, "com": [0.2, 0, 0], "inertia": [0.01, 0.02, 0.02], "axis": [0, 1, 0]}
ARM = {
    "name": "arm",
    "mechanism": {
        "bodies": [
            {"name": "upper", "joint": "shoulder", **BODY},
            {"name": "fore", "parent": "upper", "joint": "elbow", "origin": {"xyz": [0.4, 0, 0]}, **BODY},
        ]
    },
    "joints": {"all": {"actuator": {"type": "ideal"}, "limits": {"effort": 30, "lower": -2, "upper": 2}}},
    "controllers": [
        {
            "name": "hold",
            "type": "pd_gravity",
            "kp": 100,
            "kd": [5, 3],
            "trajectory": {"type": "quintic", "goal": 0.5, "duration": 0.05},
        }
    ],
    "schedule": {"step": "1 ms", "duration": 0.1},
}
K = 19


@pytest.fixture(scope="module")
def arm():
    return Rig.from_dict(ARM)


@pytest.fixture
def driver_of(monkeypatch):
    """A stand-in that `cuda.bindings` gives; everything is given back at the end."""
    made = []

    def make(**keys: Any) -> StandInDriver:
        made.append(StandInDriver(**keys))
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", made[-1])
        return made[-1]

    yield make
    assert all(driver.clean for driver in made)


def gains():
    rng = np.random.default_rng(0)
    return {"hold.kp": rng.uniform(20.0, 300.0, (K, 2)), "hold.kd": rng.uniform(1.0, 8.0, K)}


def speeds():
    """Three of them leave the position limits."""
    speed = np.zeros(K)
    speed[[2, 3, 11]] = 60.0, 150.0, -90.0
    return {"elbow/velocity": speed}


def memory_for(rig, size, *samples):
    """Bytes of a GPU of which, beside the memory of its threads, so many are for arrays."""
    local = rig.tick_model.gpu_loop(None, samples).local
    return int((size + local * PROCESSORS * THREADS) / MEMORY_FRACTION)


def assert_equal(gpu, cpu):
    for found, expected in ((gpu.samples, cpu.samples), (gpu.metrics, cpu.metrics), (gpu.final, cpu.final)):
        assert list(found) == list(expected)
        for name, values in expected.items():
            bits = (np.ascontiguousarray(each).view(np.int64) for each in (found[name], values))
            np.testing.assert_array_equal(*bits, err_msg=name)
    for name in ("t", "ticks", "stopped"):
        np.testing.assert_array_equal(getattr(gpu, name), getattr(cpu, name), err_msg=name)


KEPT = {
    "the last tick and metrics": {
        "metrics": ["error_rms", "effort_max", lambda t, signals: signals["elbow/effort"] ** 2 + t]
    },
    "some signals of some ticks": {"signals": ["elbow/position", "energy/kinetic"], "every": 7},
    "all signals of two ticks": {"duration": 0.001, "keep": "all"},
}


@pytest.mark.parametrize("name", KEPT)
def test_every_bit_of_rollouts_on_the_cpu(arm, driver_of, name):
    driver = driver_of()
    given = KEPT[name]
    found = arm.rollouts(gains(), speeds(), device="cuda", **given)
    assert_equal(found, cpu := arm.rollouts(gains(), speeds(), **given))
    assert list(found.faults) == list(cpu.faults) and len(driver.launches) >= 1
    assert (driver.launches[0][0], driver.launches[0][1][0]) == (128, K)


def test_runs_that_do_not_fit_together_go_one_chunk_after_the_other(arm, driver_of):
    """Memory for 5 runs: the last chunk has 4."""
    model = arm.tick_model
    each = 8 * (model.layout.size + len(model.signals.names) + 1 + 2 * 101)
    driver = driver_of(memory=memory_for(arm, 5.5 * each, "elbow/position", "elbow/effort"))
    given = {"signals": ["elbow/position", "elbow/effort"]}
    assert_equal(arm.rollouts(gains(), speeds(), device="cuda", **given), arm.rollouts(gains(), speeds(), **given))
    assert [numbers[0] for _, numbers in driver.launches if numbers[1] == 0] == [5, 5, 5, 4]


@pytest.mark.parametrize("ticks", [1, 50])
def test_the_length_of_launches_changes_nothing(arm, driver_of, monkeypatch, ticks):
    monkeypatch.setattr(gpu_rollouts, "FIRST_TICKS", ticks)
    monkeypatch.setattr(gpu_rollouts, "next_ticks", lambda before, took: ticks)
    driver = driver_of()
    given = {"signals": ["elbow/position"], "every": 4, "metrics": ["effort_rms"]}
    assert_equal(arm.rollouts(gains(), speeds(), device="cuda", **given), arm.rollouts(gains(), speeds(), **given))
    assert [numbers[1:3] for _, numbers in driver.launches] == [(a, min(a + ticks, 101)) for a in range(0, 101, ticks)]


def test_no_launch_after_all_runs_stopped(arm, driver_of):
    driver = driver_of()
    outside = {"elbow/position": np.array([2.5, -2.6, 2.7])}
    found = arm.rollouts(initial=outside, device="cuda", keep="all")
    assert_equal(found, arm.rollouts(initial=outside, keep="all"))
    assert (len(driver.launches), found.ticks.tolist()) == (1, [0, 0, 0])
    assert found.faults[0].startswith("stopped at tick 0 (t = 0 s): joint 'elbow' is at 2.5 rad")


def test_numbers_of_the_plant(arm, driver_of):
    driver_of()
    mass = {"mechanism.fore.mass": np.linspace(0.5, 2.0, 6)}
    found = arm.rollouts(mass, device="cuda", keep="all")
    assert_equal(found, arm.rollouts(mass, keep="all"))
    assert len(set(found.final["elbow/position"])) == 6


def test_events_of_each_run(driver_of):
    from tests.rig.test_rollouts import PENDULUM

    driver_of()
    rig = Rig.from_dict(PENDULUM)
    initial = {"pivot/velocity": np.linspace(-0.4, 11.0, 7), "pivot/position": np.linspace(-0.5, 0.9, 7)}
    assert_equal(rig.rollouts(initial=initial, keep="all", device="cuda"), rig.rollouts(initial=initial, keep="all"))


def test_a_mechanism_whose_arrays_are_on_the_heap_of_the_cpu(driver_of, tmp_path, monkeypatch):
    driver_of()
    monkeypatch.setattr(stack_array, "STACK_BYTES", 1 << 10)  # of a smaller mechanism
    bodies = [{"name": "b0", "joint": "j0", **BODY}]
    for k in range(1, 5):
        origin = {"xyz": [0.4, 0, 0]}
        bodies.append({"name": f"b{k}", "parent": f"b{k - 1}", "joint": f"j{k}", "origin": origin, **BODY})
    rig = Rig.from_dict({**ARM, "mechanism": {"bodies": bodies}, "controllers": []})
    text = rig.tick_model.gpu_loop(None, ()).ptx
    assert stack_array.STACK_BYTES < assemble(text, "sm_75", tmp_path).stack < LOCAL_BYTES
    initial = {"j3/velocity": np.array([0.0, 0.1, 0.2])}
    given = {"duration": 0.01, "keep": "all"}
    assert_equal(rig.rollouts(initial=initial, device="cuda", **given), rig.rollouts(initial=initial, **given))


@pytest.mark.parametrize(("name", "function"), [("crane", "atan2"), ("drives/backlash", "pow")])
def test_functions_of_another_library_differ_by_rounding(driver_of, name, function):
    """GPUs have other functions than the C library."""
    driver_of()
    rig = load_rig(FOLDER / f"{name}.yaml")
    given = {"duration": 60 * rig.tick_model.step, "keep": "all"}
    found, expected = rig.rollouts(device="cuda", **given), rig.rollouts(**given)
    assert f"), {function}, (" in rig.tick_model.gpu_loop(None, tuple(expected.samples)).ptx
    for name in expected.samples:
        size = max(np.nanmax(np.abs(expected[name])), 1e-6)
        np.testing.assert_allclose(found[name], expected[name], rtol=0.0, atol=1e-9 * size, err_msg=name)


@pytest.mark.parametrize(
    ("ticks", "took", "after"),
    [(8, 1e-4, 32), (8, 0.0, 32), (100, 0.1, 200), (100, 0.4, 50), (MOST_TICKS, 1e-3, MOST_TICKS), (3, 60.0, 1)],
)
def test_launches_take_a_fraction_of_a_second(ticks, took, after):
    assert next_ticks(ticks, took) == after


def test_through_cuda_python_itself(tmp_path):
    """Whose library of the driver is the stand-in: its conversions of arguments, and its names and numbers."""
    pytest.importorskip("cuda.bindings.driver")
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler for a library with the names of the driver's")
    cuda_library.build(tmp_path)
    command = [sys.executable, "-m", cuda_library.__name__]
    run = subprocess.run(
        command, env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}, cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert re.fullmatch(r"equal after \d+ launches\n", run.stdout)


# --- what is wrong ----------------------------------------------------------------------------------

SETTING = {
    "no GPU": {"cuInit": CUresult.CUDA_ERROR_NO_DEVICE},
    "a driver of two versions": {"cuInit": CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH},
    "an old driver": {"cuModuleLoadData": CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    "a driver without compiler": {"cuModuleLoadData": CUresult.CUDA_ERROR_JIT_COMPILER_NOT_FOUND},
    "a full memory": {"cuMemAlloc": CUresult.CUDA_ERROR_OUT_OF_MEMORY},
}
RUNNING = {
    "a launch that took too long": {"cuCtxSynchronize": CUresult.CUDA_ERROR_LAUNCH_TIMEOUT},
    "anything else": {"cuLaunchKernel": CUresult.CUDA_ERROR_LAUNCH_FAILED},
}


@pytest.fixture
def refused(said):
    """The rollouts of a rig are refused."""

    def check(rig, kind=InputError, **keys):
        said(raised(kind, rig.rollouts, device="cuda", **keys))

    return check


@pytest.mark.parametrize("name", SETTING | RUNNING)
def test_a_driver_that_fails(arm, driver_of, refused, name):
    driver_of(fails=(SETTING | RUNNING)[name])
    refused(arm, RunError if name in RUNNING else InputError)


def test_an_old_gpu(arm, driver_of, refused):
    driver_of(capability=(6, 1))
    refused(arm)


def test_a_run_that_does_not_fit(arm, driver_of, refused):
    model = arm.tick_model
    needed = 8 * (model.layout.size + len(model.signals.names) + 1 + 101 * len(model.signals.names))
    driver_of(memory=memory_for(arm, 0.5 * needed, *model.signals.names))
    refused(arm, keep="all")
    driver_of(memory=90_000_000, local=21_000)  # all threads that run at the same time take 86 MB of them
    refused(arm)


def test_without_the_mathematics_of_gpus(driver_of, monkeypatch, refused):
    driver_of()
    monkeypatch.setattr(ptx, "LIBDEVICE", "nowhere/libdevice.10.bc")
    ptx.libdevice.cache_clear()
    try:
        refused(Rig.from_dict(ARM))
    finally:
        ptx.libdevice.cache_clear()


class WithoutDriver:
    """cuda-python raises RuntimeError where it does not find libcuda.so.1."""

    def cuInit(self, flags: int) -> None:
        raise RuntimeError("Failed to dlopen libcuda.so.1")


@pytest.mark.parametrize("module", [None, WithoutDriver()], ids=["cuda-python", "driver"])
def test_without(arm, monkeypatch, refused, module):
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", module)
    refused(arm)
