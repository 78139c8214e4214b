"""Parts as FMUs: in the place of the block in its rig, in other programs, and on their own against the block."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu
from scipy.integrate import solve_ivp

from cosim import load_rig
from cosim.apps.deploy.fmu_export.fmu_file import fmu_of, fmu_of_part
from cosim.rig.reading.yaml_source import load_yaml
from cosim.simulation.coupling.stepped_block import SteppedBlock
from cosim.simulation.fmi import FmuPart
from tests.fmu_export.elf import needed_libraries, symbols
from tests.fmu_export.instances import VERSIONS, imported
from tests.fmu_export.parts import FILES, RIG
from tests.kit.given import beside
from tests.kit.rigs import rig_in
from tests.kit.samples import FOLDER

GIVEN = beside(__file__)

STEP = 1e-3
WINCH = FOLDER / "cosimulation/winch.yaml"
SPEED, BIAS = np.array([[0.3, -0.2], [40.0, 10.0], [-3e3, 2e3]]), np.array([0.1, 5.0, -700.0])
TURN = np.array([[0.1, -0.3], [2.0, 3.0], [500.0, -900.0]])


class Exported:
    """A rig, its parts, and FMUs of these, each made once."""

    def __init__(self, rig, folder):
        self.rig, self.folder, self.parts = rig, folder, rig.tick_model.coupling.parts

    def file(self, name, version):
        path = self.folder / f"{name}{version}.fmu"
        if not path.exists():
            path.write_bytes(fmu_of_part(self.rig, name, version))
        return path

    def opened(self, name, version, **options):
        return FmuPart(self.file(name, version), name, process=False, **options)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return Exported(rig_in(folder, RIG, **FILES), folder)


@pytest.fixture(scope="module")
def winch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("winch")
    shutil.copy(WINCH.parent / "hoisted_load.py", folder)
    shutil.copy(WINCH, folder)
    return Exported(load_rig(folder / "winch.yaml"), folder)


def with_fmu(exported, file, name, version, *overrides):
    """The rig of a file with the FMU of a part in the place of its block."""
    number = next(k for k, part in enumerate(load_yaml(file).data["parts"]) if part["name"] == name)
    part = {"name": name, "fmu": str(exported.file(name, version)), "process": False}
    return load_rig(file, [f"parts.{number}={part}".replace("'", '"').replace("False", "false"), *overrides])


@pytest.mark.parametrize(("version", "order"), [(2, 0), (3, 0), (2, 1)])
def test_in_the_place_of_the_block_the_run_is_the_same(winch, version, order):
    override = f"couplings.order={order}"
    file = winch.folder / "winch.yaml"
    run = load_rig(file, [override]).run(duration=0.5)
    found = with_fmu(winch, file, "hoist", version, override).run(duration=0.5)
    assert run["hoist/height"][-1] > 1e-3
    for name in ("winch/position", "winch/velocity", "hoist/torque", "hoist/height"):
        np.testing.assert_allclose(found[name], run[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["pair", "governor"])
def test_arrays_and_samples_are_those_of_the_block(pairs, name):
    """An implicit method with machine-made derivatives, and two samples in a step."""
    run = pairs.rig.run()
    found = with_fmu(pairs, pairs.folder / "rig.yaml", name, 3).run()
    names = [signal for signal in run.signals if "/" in signal and signal.split("/")[0] in ("pair", "governor")]
    assert len(names) == 8 and np.ptp(run["pair/torque_1"]) > 1.0 and run["governor/bias"][-1] == 399.0
    for signal in names:
        np.testing.assert_allclose(found[signal], run[signal], rtol=1e-11, atol=1e-11)


def test_the_whole_rig_has_the_parameters_of_its_parts(pairs):
    file = pairs.folder / "whole.fmu"
    file.write_bytes(fmu_of(pairs.rig, 3))
    assert validate_fmu(str(file)) == []
    declared = fmpy.read_model_description(str(file)).modelVariables
    assert [item.name for item in declared if item.causality == "parameter"] == [
        *("governor.gain", "pair.stiffness", "pair.damping/0", "pair.damping/1")
    ]
    run = pairs.rig.run(duration=0.1)
    result = fmpy.simulate_fmu(str(file), stop_time=0.1, step_size=STEP, output_interval=STEP)
    names = [name for name in result.dtype.names if name != "time"]
    assert "pair/torque_2" in names and "governor/bias" in names
    for name in names:
        np.testing.assert_allclose(result[name], run[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["pair", "governor"])
def test_the_description(pairs, name, version):
    file = pairs.file(name, version)
    assert validate_fmu(str(file)) == []
    description = fmpy.read_model_description(str(file))
    variables = {item.name: item for item in description.modelVariables}
    continuous = name == "pair"
    assert description.coSimulation.canHandleVariableCommunicationStepSize == continuous
    assert description.coSimulation.canInterpolateInputs == (version == 2)
    assert description.coSimulation.canGetAndSetFMUstate and description.coSimulation.canSerializeFMUstate
    assert (description.defaultExperiment.stepSize, description.defaultExperiment.stopTime) == ("0.001", "0.2")
    labels = (lambda each: [each]) if version == 3 else (lambda each: [f"{each}_1", f"{each}_2"])
    needed = {item.variable.name: sorted(each.name for each in item.dependencies) for item in description.outputs}
    if not continuous:
        assert needed == {label: [] for label in (*labels("speed"), "bias")}
        return
    assert description.description == "Two springs that get stiffer."
    speeds = labels("speed")
    expected = {label: speeds for label in labels("torque")} | {label: [] for label in labels("turn")}
    assert needed == expected | {"total": sorted([*speeds, "bias"])}
    assert [variables[label].unit for label in (*labels("torque"), *labels("turn"))][:: len(speeds)] == ["N*m", "rad"]
    parameters = {
        item.name: (float(item.start), item.min and float(item.min), item.max and float(item.max), item.unit)
        for item in description.modelVariables
        if item.causality == "parameter"
    }
    # without the constant, and without the one on which the code depends
    assert parameters == {
        "stiffness": (20.0, 0.0, 1e4, "N*m/rad"),
        "damping/0": (0.1, 1e-15, None, "N*m*s/rad"),
        "damping/1": (0.4, 1e-15, None, "N*m*s/rad"),
    }
    assert variables["stiffness"].variability == "tunable" and variables["stiffness"].description == "of both springs"


@pytest.mark.parametrize("version", VERSIONS)
def test_fmpy_simulates_it(winch, version):
    """The load is lifted by a rope that is wound at a constant speed."""
    file = str(winch.file("hoist", version))
    assert validate_fmu(file) == []
    result = fmpy.simulate_fmu(file, stop_time=2.0, step_size=0.01, output_interval=0.01, start_values={"speed": 2.0})
    block = SteppedBlock(winch.parts["hoist"])
    y = block.start(0.0, {"speed": np.array(2.0)})
    for k in range(200):
        np.testing.assert_allclose(result["tension"][k], y["tension"], rtol=1e-12)
        y = block.step(k * 0.01, 0.01, {"speed": np.array([2.0])})
    assert result["height"][-1] == pytest.approx(0.1 * 2.0 * 2.0, rel=1e-2)


def test_with_derivatives_of_its_input_it_follows_a_ramp(winch, tmp_path):
    """In steps of 10 ms, against an integrator of scipy; inputs that are constant in a step lag behind."""
    mass, radius, stiffness, damping, gravity = 60.0, 0.1, 4e4, 200.0, 9.81

    def flow(t, y):
        rate = radius * 3.0 * t - y[2]
        return [rate, y[2], (stiffness * y[0] + damping * rate) / mass - gravity]

    times = np.arange(51) * 0.01
    start = [mass * gravity / stiffness, 0.0, 0.0]
    exact = solve_ivp(flow, (0.0, 0.5), start, "DOP853", times, rtol=1e-12, atol=1e-14).y
    heights = {}
    for known in (True, False):
        with imported(winch.file("hoist", 2), tmp_path / str(known)) as unit:
            unit.begin()
            heights[known] = []
            for k in range(51):
                unit.set("speed", 3.0 * times[k])
                unit.fmu.setRealInputDerivatives([unit.references["speed"]], [1], [3.0 * known])
                heights[known] += unit[("height",)]
                unit.advance(1, 10)
    np.testing.assert_allclose(heights[True], exact[1], rtol=0.0, atol=1e-9)
    assert np.abs(heights[False] - exact[1]).max() > 1e-4


def test_libcosim_runs_it(winch, capfd):
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimManipulator import CosimManipulator
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    execution = CosimExecution.from_step_size(1_000_000)  # ns
    slave = execution.add_local_slave(CosimLocalSlave(str(winch.file("hoist", 2)), "hoist"))
    manipulator, observer = CosimManipulator.create_override(), CosimObserver.create_last_value()
    execution.add_manipulator(manipulator)
    execution.add_observer(observer)
    assert manipulator.slave_real_values(slave, [4], [2.0])  # the input, which has this number
    for _ in range(50):
        assert execution.step()
    found = observer.last_real_values(slave_index=slave, variable_references=[1, 2, 3])
    result = fmpy.simulate_fmu(
        str(winch.file("hoist", 2)), stop_time=0.05, step_size=STEP, output_interval=STEP, start_values={"speed": 2.0}
    )
    np.testing.assert_allclose(found, [result[name][-1] for name in ("torque", "height", "tension")], rtol=1e-9)
    assert "[error]" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_binary_needs_the_c_library_only(pairs, version, tmp_path):
    (binary,) = Path(fmpy.extract(str(pairs.file("pair", version)), str(tmp_path))).glob("binaries/*/*.so")
    assert needed_libraries(binary) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
    assert all(name.startswith(f"fmi{version}") for name in symbols(binary, "--defined-only"))
    foreign = ("Py", "_Py", "cosim", "llvm", "unit")
    assert not [name for name in symbols(binary, "--undefined-only") if name.startswith(foreign)]


def steps(part, inputs, lengths, start=0.5):
    """The outputs at the ends of steps from `start` [s], side by side; inputs: coefficients by name."""
    t, found = start, [part.start(start, {name: rows[0] for name, rows in inputs.items()})]
    for h in lengths:
        found.append(part.step(t, h, inputs))
        t += h
    return np.array([np.concatenate([np.ravel(values[name]) for name in part.outputs]) for values in found])


LENGTHS = (1e-3, 2e-4, 0.7e-3, 5e-3, 0.31e-3)


@pytest.mark.parametrize("version", VERSIONS)
def test_steps_of_any_length_of_a_continuous_part(pairs, version):
    if version == 2:
        pairs_in = {"speed_1": SPEED[:, 0], "speed_2": SPEED[:, 1], "bias": BIAS}
    else:
        pairs_in = {"speed": SPEED, "bias": BIAS}
    fmu = pairs.opened("pair", version)
    assert fmu.variable and fmu.repeats and fmu.order == (1 if version == 2 else 0)
    inputs = {"speed": SPEED[: fmu.order + 1], "bias": BIAS[: fmu.order + 1]}
    expected = steps(SteppedBlock(pairs.parts["pair"]), inputs, LENGTHS)
    found = steps(fmu, {name: rows[: fmu.order + 1] for name, rows in pairs_in.items()}, LENGTHS)
    fmu.close()
    assert np.ptp(expected[:, 0]) > 1.0
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("name", "inputs"), [("pair", {"speed": SPEED, "bias": BIAS}), ("governor", {"turn": TURN})])
def test_second_derivatives_of_inputs_are_followed(pairs, tmp_path, name, inputs):
    """In steps of two periods; outputs at the end are with the inputs there, which go on."""
    block = SteppedBlock(pairs.parts[name])
    block.start(0.0, {each: rows[0] for each, rows in inputs.items()})
    with imported(pairs.file(name, 2), tmp_path / "unzipped") as unit:
        flat = {
            (each if rows.ndim == 1 else f"{each}_{k + 1}"): np.reshape(rows, (3, -1))[:, k]
            for each, rows in inputs.items()
            for k in range(np.reshape(rows, (3, -1)).shape[1])
        }
        for each, rows in flat.items():
            unit.set(each, rows[0])
            for order in (1, 2):
                unit.fmu.setRealInputDerivatives([unit.references[each]], [order], [order * rows[order]])
        unit.begin()
        moved = {each: rows.copy() for each, rows in inputs.items()}
        for k in range(5):  # the derivatives are given once
            y = block.step(k * STEP, STEP, moved)
            unit.advance(1)
            moved = {
                each: np.array([r[0] + STEP * (r[1] + STEP * r[2]), r[1] + 2.0 * STEP * r[2], r[2]])
                for each, r in moved.items()
            }
            outputs = [item.variable.name for item in unit.description.outputs]
            expected = np.concatenate([np.ravel(values) for values in y.values()])
            np.testing.assert_allclose(unit[outputs], expected, rtol=1e-9, atol=1e-9)
        assert unit[("speed_1" if name == "pair" else "turn_1",)][0] == pytest.approx(
            np.ravel(next(iter(moved.values()))[0])[0], rel=1e-12
        )


SOURCE = GIVEN["source"]


@pytest.mark.parametrize(("kind", "level"), [("flow", np.cos(0.005)), ("update", np.cos(0.004))])
def test_a_part_without_inputs_state_and_parameters(tmp_path, kind, level):
    """A function of time; a sampled one is of the beginning of its last period."""
    text = RIG.partition("parts:")[0] + "parts: [{name: source, type: source.py}]\nschedule: {step: 1 ms}\n"
    exported = Exported(rig_in(tmp_path, text, source=SOURCE.format(kind=kind)), tmp_path)
    for version in VERSIONS:
        file = exported.file("source", version)
        assert validate_fmu(str(file)) == []
        with imported(file, tmp_path / str(version)) as unit:
            unit.begin()
            assert unit[("level",)] == [1.0]
            unit.advance(5)
            assert unit[("level",)] == [pytest.approx(level, rel=1e-15)]


def test_arrays_have_all_their_elements(pairs, tmp_path):
    with imported(pairs.file("pair", 3), tmp_path / "unzipped") as unit:
        unit.begin()
        speed = unit.references["speed"]
        unit.fmu.setFloat64([speed], [1.0, 2.0])
        assert list(unit.fmu.getFloat64([speed], nValues=2)) == [1.0, 2.0]
        with pytest.raises(FMICallException):
            unit.fmu.setFloat64([speed], [3.0])
        assert unit.messages == ["there are 1 values for variables with 2 elements"]
        assert list(unit.fmu.getFloat64([speed], nValues=2)) == [1.0, 2.0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_parameter_changes_between_steps(pairs, said, tmp_path, version):
    part, new = pairs.parts["pair"], {"stiffness": 300.0, "damping": (0.5, 0.05)}
    blocks = [
        SteppedBlock(part),
        SteppedBlock(replace(part, block=type(part.block)(replace(part.block.params, **new)))),
    ]
    inputs = {"speed": np.zeros((1, 2)), "bias": np.zeros(1)}
    for block in blocks:
        block.start(0.0, {name: rows[0] for name, rows in inputs.items()})
    total = []
    with imported(pairs.file("pair", version), tmp_path / "unzipped") as unit:
        unit.begin()
        for k in range(6):
            if k == 3:
                blocks[1].restore(blocks[0].save())
                for name, value in (("stiffness", 300.0), ("damping/0", 0.5), ("damping/1", 0.05)):
                    unit.set(name, value)
            y = blocks[k >= 3].step(k * STEP, STEP, inputs)
            unit.advance(1)
            np.testing.assert_allclose(unit[("total",)], y["total"], rtol=1e-11)
            total.append(y["total"])
        assert unit[("stiffness", "damping/0", "damping/1")] == [300.0, 0.5, 0.05]
        for value in (-1.0, 1e5, np.nan):
            with pytest.raises(FMICallException):
                unit.set("stiffness", value)
        said(unit.messages)
    assert np.ptp(total) > 1.0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["pair", "governor"])
def test_a_state_is_restored_to_the_bit(pairs, tmp_path, name, version):
    outputs = {"pair": ("total",), "governor": ("bias",)}[name]
    with (
        imported(pairs.file(name, version), tmp_path / "a") as unit,
        imported(pairs.file(name, version), tmp_path / "b") as other,
    ):
        unit.begin(start=2.0)
        unit.number = round(2.0 / STEP)
        unit.advance(5)
        number, state = unit.number, unit.fmu.getFMUState()
        content = unit.fmu.serializeFMUState(state)
        unit.advance(7)
        first = unit[outputs]
        unit.fmu.setFMUState(state)
        unit.number = number
        unit.advance(7)
        assert unit[outputs] == first
        other.begin()
        copy = other.fmu.deserializeFMUState(content)
        other.fmu.setFMUState(copy)
        other.number = number
        other.advance(7)
        assert other[outputs] == first
        unit.fmu.freeFMUState(state)
        other.fmu.freeFMUState(copy)
        unit.fmu.reset()
        unit.begin(start=2.0)
        unit.number = round(2.0 / STEP)
        unit.advance(12)
        assert unit[outputs] == first
        assert not unit.messages + other.messages


@pytest.mark.parametrize("version", VERSIONS)
def test_outputs_that_are_not_finite_end_it(pairs, tmp_path, version):
    file = pairs.file("pair", version)
    with imported(file, tmp_path / "unzipped") as unit:
        unit.begin()
        unit.advance(2)
        name = "bias"
        unit.set(name, np.inf)
        with pytest.raises(FMICallException):
            unit.advance(1)
        hint = "check its inputs and parameters"
        assert unit.messages == [f"its output 'total' is inf at t = 0.003 s; {hint}"]
        with pytest.raises(FMICallException):
            unit.advance(1)
        assert unit.messages[-1] == f"fmi{version}DoStep is not allowed after a fault"
        unit.fmu.reset()
        unit.begin()
        unit.number = 0
        unit.advance(3)


@pytest.mark.parametrize(
    ("name", "steps"),
    [("pair", (0.0, -1e-3, np.nan, 301.0)), ("governor", (0.75e-3, 1e-4, 0.0))],
    ids=["pair", "governor"],
)
def test_steps_that_cannot_be_taken_are_refused(pairs, tmp_path, said, name, steps):
    with imported(pairs.file(name, 3), tmp_path / "unzipped") as unit:
        unit.begin()
        unit.advance(1)
        for step in steps:
            with pytest.raises(FMICallException):
                unit.fmu.doStep(STEP, step)
        with pytest.raises(FMICallException):
            unit.fmu.doStep(0.5, STEP)
        said(unit.messages)
        unit.advance(1)


def test_derivatives_that_cannot_be_given(pairs, said, tmp_path):
    with imported(pairs.file("pair", 2), tmp_path / "unzipped") as unit:
        unit.begin()
        bias, stiffness = unit.references["bias"], unit.references["stiffness"]
        for variable, order, value in ((bias, 3, 1.0), (bias, 0, 1.0), (bias, 1, np.nan), (stiffness, 1, 1.0)):
            with pytest.raises(FMICallException):
                unit.fmu.setRealInputDerivatives([variable], [order], [value])
        said(unit.messages)
