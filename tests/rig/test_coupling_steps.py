"""Several steps of the coupling in a tick: of constant length, and by the residual energy (ECCO)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim import InputErrors, StoppedRun, load_rig, load_run
from cosim.coupling import CoupledParts, EnergyControl, PowerBond
from cosim.coupling.python_master import PythonMaster
from cosim.errors import SourceLocation
from cosim.rig.build.coupling_steps import check_coupling_steps
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.parts import CouplingsSpec
from tests.kit.coupled import quarter_car, quarter_car_exact
from tests.kit.levels import one_of_each
from tests.rig.test_parts_only import FILES, SAMPLE, folder, in_python

__all__ = ["folder"]

COARSE = "parts.chassis.step=1 ms", "parts.wheel.step=1 ms"
CONTROL = "couplings.step_control={{relative: 1e-2, absolute: 1e-2, shortest: {}, longest: {}, repeats: {}}}"


def control(shortest="0.1 ms", longest="10 ms", repeats="no"):
    return CONTROL.format(shortest, longest, repeats)


# --- numbers --------------------------------------------------------------------------------------------


@one_of_each
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("master", ["gauss_seidel", "jacobi"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_long_tick_equals_coupled_parts_with_the_same_control(folder, master, order, repeats):
    settings = f"couplings.master={master}", f"couplings.order={order}", "schedule.step=0.2 s", "couplings.step=1 ms"
    rig = load_rig(FILES[0], (control(longest="50 ms", repeats="yes" if repeats else "no"), *settings))
    run = rig.run(0.2)
    parts, bond = quarter_car(1e-4)
    chosen = EnergyControl(1e-4, 5e-2, relative=1e-2, absolute=1e-2, repeats=repeats)
    expected = CoupledParts(parts, [bond], master, order, 1e-3, chosen).run(0.2)
    assert rig.native
    assert run.summary["coupling_steps"] == {"count": len(expected.t) - 1, "repeated": expected.repeated}
    for part, output, found in (("chassis", "position", "height"), ("wheel", "velocity", "velocity")):
        assert run[f"{part}/{found}"][-1] == pytest.approx(expected[f"{part}.{output}"][-1], rel=1e-9)
    residual = expected.residuals["chassis-wheel"][-1]
    assert run["chassis-wheel/residual_energy"][-1] == pytest.approx(residual, rel=1e-9)
    assert run["coupling/step"][-1] == pytest.approx(np.diff(expected.t)[-1], abs=1e-12)


@one_of_each
@pytest.mark.parametrize(
    "steps", [control(), control("1 ms", repeats="yes"), "couplings={step: 2 ms, bonds: BONDS}"], ids=lambda s: s[:30]
)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_parts_in_python_and_the_interpreter_equal_compiled_ones(folder, steps, order):
    settings = *constant("2 ms", steps), f"couplings.order={order}", *COARSE
    runs = [load_rig(FILES[0], settings).run(0.06), load_rig(FILES[0], settings, interpret=True).run(0.06)]
    in_python(folder)
    runs.append(load_rig(FILES[0], settings).run(0.06))
    assert [run.rig.engine.get("loop") for run in runs[:2]] == ["compiled", None]
    assert runs[2].rig.engine["loop"].startswith("Python: the part '")
    for name in runs[0].signals:
        for run in runs[1:]:
            np.testing.assert_allclose(run[name], runs[0][name], rtol=1e-9, atol=1e-9, err_msg=name)


def constant(step, steps=""):
    """The settings of steps of constant length, or those of a step control."""
    return (steps,) if "step_control" in steps else ("couplings.step_control=null", f"couplings.step={step}")


@pytest.mark.parametrize("master", ["gauss_seidel", "jacobi"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_constant_steps_in_a_tick_equal_shorter_ticks(folder, master, order):
    settings = f"couplings.master={master}", f"couplings.order={order}", "couplings.step_control=null", *COARSE
    within = load_rig(FILES[0], (*settings, "couplings.step=2 ms")).run(0.1)
    ticks = load_rig(FILES[0], (*settings, "schedule.step=2 ms")).run(0.1)
    assert within.summary["coupling_steps"] == {"count": 50, "repeated": 0}
    assert ticks.summary["coupling_steps"] is None
    for name in ticks.signals:
        np.testing.assert_allclose(within[name], ticks[name][::5], rtol=1e-9, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(within["coupling/step"], 2e-3)
    np.testing.assert_array_equal(within["coupling/steps"], 5.0 * np.arange(11))


@pytest.mark.parametrize("repeats", ["no", "yes"])
@pytest.mark.parametrize("master", ["gauss_seidel", "jacobi"])
def test_chosen_steps_have_a_fifth_of_the_error_of_constant_ones_at_equal_cost(folder, master, repeats):
    settings = f"couplings.master={master}", "schedule.step=0.1 s"
    chosen = load_rig(FILES[0], (control("0.01 ms", "50 ms", repeats), *settings)).run()
    cost = sum(chosen.summary["coupling_steps"].values())
    per_tick = -(-cost // 40)  # more than chosen
    even = load_rig(FILES[0], (*constant(f"{100.0 / per_tick} ms"), *settings)).run()
    assert 300 < cost <= even.summary["coupling_steps"]["count"] == 40 * per_tick < 700
    assert (errors(chosen) < 0.2 * errors(even)).all()


def errors(run):
    """Mean absolute error of the heights [m]."""
    exact = quarter_car_exact(run.t).T
    return np.array(
        [np.abs(run[f"{part}/height"] - x).mean() for part, x in zip(("chassis", "wheel"), exact, strict=True)]
    )


@pytest.mark.parametrize("repeats", ["no", "yes"])
def test_no_step_crosses_the_end_of_a_tick(folder, monkeypatch, repeats):
    in_python(folder)
    made, step = [], PythonMaster.step

    def recorded(master, h):
        made.append((master.t, h))
        step(master, h)

    monkeypatch.setattr(PythonMaster, "step", recorded)
    load_rig(FILES[0], (control("0.2 ms", "7 ms", repeats), *COARSE)).run(0.1)
    begin, length = np.array(made).T
    end = np.floor(begin / 1e-2 + 1e-6) * 1e-2 + 1e-2
    assert (begin + length <= end + 1e-12).all()
    assert (length > 1e-9).all() and length.max() <= 7e-3
    for tick in range(1, 11):
        assert np.abs(begin + length - 1e-2 * tick).min() < 1e-12


def test_a_tick_ends_however_small_the_tolerance(folder):
    tight = "couplings.step_control={relative: 1e-12, absolute: 1e-12, shortest: 1 ms, repeats: yes}"
    run = load_rig(FILES[0], (tight, *COARSE)).run(0.2)
    np.testing.assert_array_equal(run["coupling/steps"], 10.0 * np.arange(21))
    assert run.summary["coupling_steps"]["repeated"] == 0  # the first step is the shortest, and no other is planned


def test_most_steps_is_a_bound():
    """The worst case: after each accepted step the longest is planned, and refused down to the shortest."""
    worst = EnergyControl(1e-3, 1e-2, repeats=True)
    steps, t = 0, 0.0
    while t < 1e-1 - 1e-12:
        planned = worst.longest
        while planned > worst.shortest * (1.0 + 1e-9):
            planned, steps = float(worst.repeated_length(planned, 1.0)), steps + 1
        t, steps = t + planned, steps + 1
    assert steps <= worst.most_steps(1e-1) < 2 * steps


def test_a_step_that_is_cut_off_leaves_the_plan_and_the_error():
    chosen = EnergyControl(1e-4, 1e-2)
    assert chosen.plan(1e-4, 3e-3, 1e-6, 0.5) == (3e-3, 0.5)
    length, error = chosen.plan(1e-3, 3e-3, 10.0, 0.5)  # even the short one was too long
    assert (length, error) == (chosen.next_length(1e-3, 10.0, 0.5), 10.0) and length < 1e-3
    assert chosen.plan(1e-3, 1e-3, 0.2, 0.5) == (chosen.next_length(1e-3, 0.2, 0.5), 0.2)


def test_rollouts_and_the_fmu_of_the_rig_equal_its_run(folder, command):
    for file in FILES:
        shutil.copy(SAMPLE / file, ".")
    rig = load_rig(FILES[0])
    run = rig.run(0.3)
    batch = rig.rollouts(duration=0.3, keep="all")
    np.testing.assert_array_equal(batch["coupling/steps"][0], run["coupling/steps"])
    np.testing.assert_array_equal(batch["wheel/height"][0], run["wheel/height"])
    code, _, err = command("fmu", FILES[0], "-o", "car.fmu")
    assert (code, err) == (0, [])
    Path("via.yaml").write_text("parts: [{name: car, fmu: car.fmu, process: no}]\nschedule: {step: 10 ms}\n")
    again = load_rig("via.yaml").run(0.3)
    for name in run.signals:
        np.testing.assert_array_equal(again[f"car/{name}"], run[name], err_msg=name)


# --- what is reported -----------------------------------------------------------------------------------


def test_the_report_counts_the_steps(folder, command):
    for file in FILES:
        shutil.copy(SAMPLE / file, ".")
    code, out, err = command("run", FILES[0], "--set", control(repeats="yes"), "--json", "s.json", "--record", "r.mcap")
    assert (code, err) == (0, [])
    steps = json.loads(Path("s.json").read_bytes())["coupling_steps"]
    assert steps["count"] > 400 and steps["repeated"] > 0
    line = f"coupling {steps['count']:,} steps, {steps['repeated']:,} more made again with a shorter one"
    assert line in out.splitlines()
    recorded = load_run("r.mcap")
    assert recorded.summary["coupling_steps"] == steps
    assert [recorded.units[f"coupling/{name}"] for name in ("step", "steps", "repeated")] == ["s", "1", "1"]
    _, out, _ = command("check", FILES[0], "--set", control(repeats="yes"))
    by = "steps of 100 us to 10 ms by the residual energy, repeated where it is too large, the first of 100 us"
    assert f"  couplings: Gauss–Seidel, extrapolation of order 1, {by}" in out.splitlines()
    _, out, _ = command("check", FILES[0], *(word for each in constant("2 ms") for word in ("--set", each)))
    assert "  couplings: Gauss–Seidel, extrapolation of order 1, steps of 2 ms" in out.splitlines()


# --- bad input ------------------------------------------------------------------------------------------

SAMPLED = """
from cosim.types import Signal, param, params


@params
class Params:
    gain: float = param(default=1.0)


class Sampled:
    def __init__(self, params):
        self.params = params
        self.inputs = {"height": Signal((), "m")}
        self.outputs = {"height": Signal((), "m")}

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        return {}, {"height": p.gain * u["height"]}


def load(params):
    return Sampled(params)
"""
OFF = "couplings.step_control=null"


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        (
            [control(longest="20 ms")],
            ["{0}: must be at most the step of the schedule, 10 ms, is 20 ms"],
        ),
        (
            [control("8 ms", "5 ms")],
            ["{0}: must be at most the longest, 5 ms, is 8 ms"],
        ),
        (
            [control("1e-9")],
            ["{0}: must be at least 0.01 us, for 1,000,000 steps in a tick, is 0.001 us"],
        ),
        (
            [control(), "couplings.step=20 ms"],
            ["{1}: must be from the shortest to the longest of the step control, 100 us to 10 ms, is 20 ms"],
        ),
        (
            [OFF, "couplings.step=3 ms"],
            ["{1}: the step of the schedule, 10 ms, is no whole number of steps of 3 ms; use 3.333333333 ms"],
        ),
        (
            [OFF, "couplings.step=20 ms"],
            ["{1}: the step of the schedule, 10 ms, is no whole number of steps of 20 ms; use 10 ms"],
        ),
        (
            ["couplings.correction={gain: 1}"],
            ["{0}: is for steps of constant length; take it out, or take out `step_control`"],
        ),
        (
            ["couplings.step_control={relative: 0}"],
            ["{0}: must be above 0, is 0"],
        ),
    ],
)
def test_bad_settings(folder, settings, messages):
    with pytest.raises(InputErrors) as wrong:
        load_rig(FILES[0], settings)
    places = [f"--set {setting}" for setting in settings]
    assert [str(error) for error in wrong.value.errors] == [text.format(*places) for text in messages]


def test_steps_of_any_length_need_parts_that_have_them_and_a_bond(folder):
    Path("sampled.py").write_text(SAMPLED)
    text = Path(FILES[0]).read_text()
    more = (
        "  - {name: sensor, type: sampled.py}\n\ncouplings:\n  wires: [{output: wheel.height, input: sensor.height}]\n"
    )
    Path("r.yaml").write_text(text.replace("\ncouplings:\n", more))
    line = Path("r.yaml").read_text().splitlines().index("  - {name: sensor, type: sampled.py}") + 1
    what = "its steps cannot have any length; use `couplings.step` instead of `couplings.step_control`"
    assert refused("r.yaml") == [f"r.yaml:{line} parts[2]: {what}"]
    assert load_rig("r.yaml", (OFF,)).run(0.05).summary["coupling_steps"] is None
    assert refused("r.yaml", OFF, "couplings.step=2 ms") == [
        f"r.yaml:{line} parts[2].step: the step of the coupling, 0.002 s, is no whole number of its periods of 0.01 s"
    ]
    assert refused(FILES[0], "couplings.bonds=[]", "couplings.wires=[]")[0].endswith(
        "step_control: needs a power bond, whose residual energy is the error; add one, or take it out"
    )


def test_a_correction_needs_a_bond(folder):
    ends = ("chassis.force", "wheel.force"), ("wheel.velocity", "chassis.velocity")
    wires = ", ".join(f"{{output: {a}, input: {b}}}" for a, b in ends)
    settings = OFF, "couplings.correction={gain: 1}", "couplings.bonds=[]", f"couplings.wires=[{wires}]"
    what = "needs a power bond, whose residual energy it pays back; add one, or take it out"
    assert refused(FILES[0], *settings) == [f"--set {settings[1]}: {what}"]


def test_parts_that_are_no_blocks_need_variable_steps_and_repeats():
    """As an FMU declares them."""
    errors = []
    reading = Reading(SourceLocation, errors, Path())
    bond = PowerBond(("chassis.force", "wheel.force"), ("wheel.velocity", "chassis.velocity"))
    fixed = {name: SimpleNamespace(variable=name == "a", repeats=False) for name in "ab"}
    keys = {name: ("parts", k) for k, name in enumerate(fixed)}
    chosen, spec = EnergyControl(1e-4, 1e-2, repeats=True), CouplingsSpec(members=(bond,))
    check_coupling_steps(spec, chosen, fixed, keys, 1e-2, False, reading)
    again = "it cannot repeat a step; use a step control without `repeats`"
    length = "its steps cannot have any length; use `couplings.step` instead of `couplings.step_control`"
    assert [(error.place.file, error.what) for error in errors] == [
        (("parts", 0), again),
        (("parts", 1), length),
        (("parts", 1), again),
    ]


def test_a_stop_names_the_tolerances(folder):
    text = Path(FILES[0]).read_text()
    limited = "flow: [wheel.velocity, chassis.velocity]"
    Path(FILES[0]).write_text(text.replace(limited, f"{limited}\n      residual_limit: 1e-3 J"))
    fix = r"try smaller tolerances of couplings\.step_control or another couplings\.order$"
    with pytest.raises(StoppedRun, match=fix):
        load_rig(FILES[0]).run()
    with pytest.raises(StoppedRun, match=r"try a smaller couplings\.step, a couplings\.correction or another"):
        load_rig(FILES[0], constant("2 ms")).run()


def test_a_mechanism_steps_once_per_tick():
    winch = SAMPLE / "winch.yaml"
    what = "the mechanism steps once per tick; take it out, or use a smaller schedule.step"
    for setting in ("couplings.step_control={repeats: no}", "couplings.step=0.5 ms"):
        assert refused(winch, setting) == [f"--set {setting}: {what}"]


def test_a_name_of_the_coupling_is_taken(folder):
    text = Path(FILES[0]).read_text().replace("chassis.f", "coupling.f").replace("chassis.v", "coupling.v")
    Path("r.yaml").write_text(text.replace("name: chassis", "name: coupling"))
    assert refused("r.yaml") == [
        "r.yaml:7 parts[0].name: 'coupling' is the name of the coupling; give the part another one"
    ]


def refused(file, *settings):
    with pytest.raises(InputErrors) as wrong:
        load_rig(file, settings)
    return [str(error) for error in wrong.value.errors]
