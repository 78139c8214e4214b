"""An FMU in other programs gives what a run of its rig gives."""

from __future__ import annotations

import subprocess
import sys
from itertools import cycle
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from cosim import Rig
from cosim.rig.run.recorded_run import Change
from tests.fmu_export.elf import needed_libraries, newest_c_library, symbols
from tests.fmu_export.instances import VERSIONS, imported, written

# drives, closed loops, modes and events, backlash, hydraulics, user code, links that bend, many bodies as loops, parts,
# a rotor on two joints
RIGS = (
    *("ur5_sim", "mechanisms/four_bar", "mechanisms/release", "drives/backlash", "drives/hydraulic_boom", "cart_pole"),
    *("elastic/single_link_tip", "pendulum_chain", "cosimulation/winch", "mechanisms/coupled_wrist"),
)
TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}


def differing(rig: Rig, result: np.ndarray, **changes) -> list[str]:
    """Signals of a run of the rig that the result of an importer does not have."""
    names = [name for name in result.dtype.names if name != "time"]
    run = rig.run(duration=float(result["time"][-1]), **changes)
    np.testing.assert_allclose(result["time"], run.t, rtol=0.0, atol=1e-9)
    assert names == list(rig.tick_model.signals.names)
    return [name for name in names if not np.allclose(result[name], run[name], equal_nan=True, **TOLERANCE)]


@pytest.mark.parametrize(("name", "version"), list(zip(RIGS, cycle(VERSIONS), strict=False)))
def test_every_signal_of_every_tick_is_that_of_a_run(shared_rig, exported, name, version):
    rig, file = shared_rig(name), exported(name, version)
    assert validate_fmu(str(file)) == []
    step = rig.tick_model.step
    result = fmpy.simulate_fmu(str(file), stop_time=300 * step, step_size=step, output_interval=step)
    assert len(result) == 301
    assert differing(rig, result) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_parameters_are_those_of_the_rig_and_change_between_ticks(shared_rig, exported, tmp_path, version):
    rig = shared_rig("ur5_sim")
    changed = (Change(40, "arm.kp", (300.0,)), Change(90, "arm.kd", (10.0,)))
    run = rig.run(duration=0.2, changes=changed)
    names = ("elbow_joint/position", "elbow_joint/command_effort", "energy/work")
    with imported(exported("ur5_sim", version), tmp_path / "unzipped") as unit:
        joints = rig.joints
        starts = {item.name: float(item.start) for item in unit.description.modelVariables if item.start}
        assert [starts[f"arm.kp/{joint}"] for joint in joints] == rig.parameters["arm.kp"]
        unit.begin()
        for tick in range(201):
            for change in changed:
                if change.tick == tick:
                    for joint in joints:
                        unit.set(f"{change.name}/{joint}", change.value[0])
            expected = [run[name][tick] for name in names]
            np.testing.assert_allclose(unit[names], expected, **TOLERANCE)
            unit.advance(1)
    assert abs(run["elbow_joint/position"][-1] - rig.run(duration=0.2)["elbow_joint/position"][-1]) > 1e-9


def test_parameters_of_parts_are_tunable(sample, tmp_path):
    """A change of damping, which the state at the start does not depend on."""
    rig = sample("cosimulation/winch", "couplings.order=0")
    changed = sample("cosimulation/winch", "couplings.order=0", "parts.hoist.params.damping=900").run(duration=0.3)
    file = written(rig, tmp_path, 3)
    declared = {item.name: item for item in fmpy.read_model_description(str(file)).modelVariables}
    damping = declared["hoist.damping"]
    assert (damping.causality, damping.variability, damping.unit) == ("parameter", "tunable", "N*s/m")
    assert (float(damping.start), float(damping.min), damping.max) == (200.0, 0.0, None)
    assert damping.description == "of the rope"
    assert {"hoist.mass", "hoist.radius", "hoist.stiffness"} <= set(declared)
    settings = {"step_size": 1e-3, "output_interval": 1e-3, "start_values": {"hoist.damping": 900.0}}
    result = fmpy.simulate_fmu(str(file), stop_time=0.3, **settings)
    names = ("winch/position", "hoist/tension", "hoist-mechanism/residual_energy", "hoist-mechanism/power")
    for name in names:
        np.testing.assert_allclose(result[name], changed[name], rtol=1e-9, atol=1e-10)
    assert np.abs(changed["hoist/tension"] - rig.run(duration=0.3)["hoist/tension"]).max() > 1.0


ALONE = """
import sys
for name in ("cosim", "casadi", "llvmlite"):
    sys.modules[name] = None  # cannot be imported
import fmpy
result = fmpy.simulate_fmu(sys.argv[1], stop_time=0.1, step_size=0.001, output_interval=0.001)
print(repr(float(result["elbow_joint/position"][-1])))
assert not [line for line in open("/proc/self/maps") if "llvm" in line.lower() or "casadi" in line.lower()]
"""


def test_it_runs_where_nothing_of_cosim_can_be_imported(shared_rig, exported, tmp_path):
    rig = shared_rig("ur5_sim")
    words = [sys.executable, "-c", ALONE, str(exported("ur5_sim", 3))]
    found = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert float(found) == pytest.approx(rig.run(duration=0.1)["elbow_joint/position"][-1], rel=1e-12)


def test_another_importer_gives_the_same(shared_rig, exported, capfd):
    """libcosim, in C++ on FMI Library."""
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    rig = shared_rig("ur5_sim")
    execution = CosimExecution.from_step_size(1_000_000)  # ns
    slave = execution.add_local_slave(CosimLocalSlave(str(exported("ur5_sim", 2)), "ur5"))
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    for _ in range(50):
        assert execution.step()
    names = rig.tick_model.signals.names
    found = observer.last_real_values(slave_index=slave, variable_references=list(range(1, len(names) + 1)))
    run = rig.run(duration=0.05)
    np.testing.assert_allclose(found, [run[name][-1] for name in names], **TOLERANCE)
    assert "[error]" not in "".join(capfd.readouterr())


def test_the_binary_needs_the_c_library_only(exported, tmp_path):
    for version in VERSIONS:
        file = exported("drives/hydraulic_boom", version)
        folder = Path(fmpy.extract(str(file), str(tmp_path / str(version))))
        (binary,) = folder.glob("binaries/*/*.so")
        assert newest_c_library(binary) <= (2, 17)  # linked by ziglang
        assert needed_libraries(binary) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
        assert all(name.startswith(f"fmi{version}") for name in symbols(binary, "--defined-only"))
        foreign = ("Py", "_Py", "cosim", "llvm", "ticks")
        assert not [name for name in symbols(binary, "--undefined-only") if name.startswith(foreign)]
