"""FMUs of FMI 2.0 and 3.0 with a solver of their own, beside fmpy's simulation of the same files."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from cosim.core.types import Signal
from cosim.simulation.coupling.part import Part
from tests.fmi import fmus
from tests.fmi.fmus import opened

pytestmark = fmus.needs_gcc


def constant(value) -> np.ndarray:
    return np.array([value], float)


def values_of(inputs) -> dict[str, np.ndarray]:
    """At the beginning of a step."""
    return {name: coefficients[0] for name, coefficients in inputs.items()}


def simulated(part: Part, n: int, h: float, inputs=lambda t: {}) -> dict[str, np.ndarray]:
    """The outputs of n steps, with the start in front."""
    rows = [part.start(0.0, values_of(inputs(0.0)))]
    rows += [part.step(i * h, h, inputs(i * h)) for i in range(n)]
    part.close()
    return {name: np.array([row[name] for row in rows]) for name in part.outputs}


def by_fmpy(path, h: float, stop: float, **options) -> np.ndarray:
    import fmpy

    description = fmpy.read_model_description(str(path))
    if description.fmiVersion == "3.0" and options.get("fmi_type") != "ModelExchange":
        options |= {"use_event_mode": True, "early_return_allowed": True}
    return fmpy.simulate_fmu(str(path), output_interval=h, stop_time=stop, record_events=False, **options)


def at_times(result: np.ndarray, name: str, times: np.ndarray) -> np.ndarray:
    """A result of fmpy, the last of the values at an event."""
    return result[name][[np.flatnonzero(abs(result["time"] - t) < 1e-9)[-1] for t in times]]


@pytest.mark.parametrize("version", (2, 3))
@pytest.mark.parametrize("model", ("ball", "oscillator"))
def test_the_outputs_of_an_fmu_are_those_that_fmpy_simulates(tmp_path, model, version):
    path = fmus.build(tmp_path, model, version)
    ours = simulated(opened(path), 120, 0.02)
    theirs = by_fmpy(path, 0.02, 2.4)
    for name, values in ours.items():
        np.testing.assert_allclose(values, at_times(theirs, name, 0.02 * np.arange(121)), atol=1e-9)


@pytest.mark.parametrize("version", (2, 3))
def test_van_der_pol_has_its_published_amplitude(tmp_path, version):
    """The amplitude of the limit cycle for mu = 1 is 2.00862 (Urabe 1960)."""
    ours = simulated(opened(fmus.build(tmp_path, "oscillator", version)), 3000, 0.01)
    assert abs(ours["x0"][2000:]).max() == pytest.approx(2.00862, abs=2e-5)


@pytest.mark.parametrize("version", (2, 3))
def test_signals_have_the_units_of_this_program_and_values_in_si(tmp_path, version):
    part = opened(fmus.build(tmp_path, "turntable", version), outputs=("angle", "double", "temperature"))
    assert part.inputs == {"rate": Signal((), "rad/s")}
    assert part.outputs == {"angle": Signal((), "rad"), "double": Signal((), "m/s"), "temperature": Signal((), "degC")}
    assert part.feedthrough == {("rate", "double"), ("rate", "temperature")}  # a local variable's is not declared
    start = part.start(0.0, {"rate": np.array(0.5)})
    after = part.step(0.0, 0.1, {"rate": constant(0.5)})
    part.close()
    assert after["angle"] == pytest.approx(0.05)
    assert start["double"] == pytest.approx(np.rad2deg(0.5) * 2.0 * 201.168)
    assert start["temperature"] == 20.0


def test_an_fmu_that_interpolates_its_inputs_follows_their_slope(tmp_path):
    """The angle after a step is the integral of a rate that grows: 0.5·0.1 + 3·0.1²/2."""
    rising = {"rate": np.array([0.5, 3.0, 7.0])}  # the second derivative is not followed
    part = opened(fmus.build(tmp_path, "turntable", 2))
    assert part.order == 1
    part.start(0.0, values_of(rising))
    assert part.step(0.0, 0.1, rising)["angle"] == pytest.approx(0.065, rel=1e-12)
    assert part.step(0.1, 0.1, {"rate": constant(0.8)})["angle"] == pytest.approx(0.145, rel=1e-12)
    part.close()
    held = opened(fmus.build(tmp_path, "turntable", 2, capable=False))
    assert (held.order, held.repeats, held.variable) == (0, False, False)
    held.start(0.0, values_of(rising))
    assert held.step(0.0, 0.1, rising)["angle"] == pytest.approx(0.05, rel=1e-12)
    held.close()


@pytest.mark.parametrize("version", (2, 3))
def test_a_step_can_be_repeated(tmp_path, version):
    part = opened(fmus.build(tmp_path, "oscillator", version))
    assert part.repeats and part.variable
    part.start(0.0, {"u": np.array(0.0)})
    saved = part.save()
    first = part.step(0.0, 0.1, {"u": constant(1.0)})
    part.restore(saved)
    other = part.step(0.0, 0.1, {"u": constant(-1.0)})
    part.restore(saved)
    again = part.step(0.0, 0.1, {"u": constant(1.0)})
    part.close()
    assert first == again and first["x0"] != other["x0"]


@pytest.mark.parametrize("version", (2, 3))
def test_numbers_of_every_type_pass(tmp_path, version):
    part = opened(fmus.build(tmp_path, "passing", version))
    assert part.feedthrough >= {("real_in", "real_out"), ("real_in", "mode_out"), ("switch_in", "mode_out")}
    assert ("switch_in", "real_out") not in part.feedthrough
    values = {name: 1.0 if name.startswith(("switch", "mode")) else 2.0 + n for n, name in enumerate(part.inputs)}
    part.start(0.0, {name: np.array(0.0) for name in values})
    part.step(0.0, 0.1, {name: constant(0.0) for name in values})
    outputs = part.step(0.1, 0.1, {name: constant(value) for name, value in values.items()})
    part.close()
    assert len(values) == {2: 4, 3: 13}[version]
    assert {name.replace("_out", "_in"): float(value) for name, value in outputs.items()} == values


def test_arrays_are_signals_with_the_shape_that_structural_parameters_give(tmp_path):
    """x' = A x + B u from its matrices, beside the exponential of the matrix."""
    from scipy.linalg import expm

    path = fmus.build(tmp_path, "linear", 3)
    a = np.array([[0.0, 1.0, 0.0], [-4.0, -0.4, 0.0], [0.0, 0.5, -1.0]])
    parameters = {"n": 3, "A": a, "B": np.eye(3).tolist(), "x": [1.0, 0.0, 2.0]}
    part = opened(path, parameters=parameters)
    assert part.inputs == {"u": Signal((3,), "1")} and part.outputs == {"y": Signal((3,), "N*m")}
    part.start(0.0, {"u": np.zeros(3)})
    for i in range(10):
        y = part.step(0.1 * i, 0.1, {"u": constant([0.0, 0.0, 0.0])})["y"]
    part.close()
    np.testing.assert_allclose(y, expm(a) @ [1.0, 0.0, 2.0], rtol=1e-8)
    small = opened(path)
    assert small.inputs["u"].shape == (2,)
    small.close()


def test_steps_end_early_at_events_and_go_on(tmp_path):
    """The counter goes up at the full seconds, whatever the steps."""
    part = opened(fmus.build(tmp_path, "stair", 3))
    ours = simulated(part, 12, 0.35)
    np.testing.assert_array_equal(ours["counter"], 1 + np.floor(0.35 * np.arange(13) + 1e-9))


def test_a_part_can_start_again(tmp_path):
    part = opened(fmus.build(tmp_path, "ball", 2), parameters={"h": 2.0, "g": "1.62"})
    first = [part.start(0.0, {}), part.step(0.0, 0.5, {})]
    assert [part.start(0.0, {}), part.step(0.0, 0.5, {})] == first
    assert first[0]["h"] == 2.0 and first[1]["h"] == pytest.approx(2.0 - 0.5 * 1.62 * 0.25)
    part.close()
    part.close()


def test_the_slope_of_an_input_that_is_not_interpolated_is_left_out(tmp_path):
    results = []
    for inputs in ({"u": np.array([0.4, 5.0])}, {"u": constant(0.4)}):
        part = opened(fmus.build(tmp_path, "oscillator", 3))
        part.start(0.0, values_of(inputs))
        results.append(part.step(0.0, 0.3, inputs))
        part.close()
    assert results[0] == results[1]


def test_matrices_keep_their_shape(tmp_path):
    a = [[1.0, 2.0], [3.0, 4.0]]
    part = opened(fmus.build(tmp_path, "linear", 3), parameters={"A": a}, outputs=("A", "x"))
    assert part.outputs["A"] == Signal((2, 2), "1")
    start = part.start(0.0, {})
    part.close()
    np.testing.assert_array_equal(start["A"], a)
    assert start["x"].shape == (2,)


@pytest.mark.parametrize("way", ("input", "output"))
def test_an_offset_of_one_variable_of_many_is_kept(tmp_path, way):
    """Temperatures in a unit that is not ours, with other quantities that need no conversion."""
    path = fmus.build(tmp_path, "oscillator", 3)
    unit = '<Unit name="C"><BaseUnit K="1" offset="273.15"/></Unit>'
    with zipfile.ZipFile(path) as read, zipfile.ZipFile(tmp_path / "warm.fmu", "w") as written:
        for name in read.namelist():
            data = read.read(name).decode() if name.endswith(".xml") else read.read(name)
            if isinstance(data, str):
                data = data.replace("<UnitDefinitions>", f"<UnitDefinitions>{unit}")
                marked = 'name="u"' if way == "input" else 'name="x0"'
                data = data.replace(marked, f'{marked} unit="C"')
            written.writestr(name, data)
    part = opened(tmp_path / "warm.fmu", outputs=("x0", "x1", "der(x1)"))
    start = part.start(0.0, {"u": np.array(300.0)})
    part.close()
    assert part.inputs["u"].unit == ("K" if way == "input" else "1")
    assert start["x1"] == 0.0
    assert start["x0"] == pytest.approx(2.0 if way == "input" else 275.15)
    assert start["der(x1)"] == pytest.approx(300.0 - 2.0 - (273.15 if way == "input" else 0.0))


def test_a_step_with_a_discrete_input_can_be_repeated(tmp_path):
    part = opened(fmus.build(tmp_path, "passing", 3), outputs=("sampled_out",))
    part.start(0.0, {"sampled_in": np.array(0.0)})
    saved = part.save()
    first = part.step(0.0, 0.1, {"sampled_in": constant(1.0)})
    part.restore(saved)
    assert part.step(0.0, 0.1, {"sampled_in": constant(1.0)}) == first == {"sampled_out": 1.0}
    part.close()
