"""Several steps of the coupling in a tick: of constant length, and by the residual energy (ECCO)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim import StoppedRun, load_rig, load_run
from cosim.core.errors import SourceLocation
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.parts import CouplingsSpec
from cosim.rig.wiring.coupling import check_coupling_steps
from cosim.simulation.coupling import CoupledParts, EnergyControl, PowerBond
from cosim.simulation.coupling.calling_master import CallingMaster
from tests.kit.coupled import quarter_car, quarter_car_exact
from tests.kit.given import beside
from tests.kit.refusals import refusal
from tests.rig.test_parts_only import FILES, SAMPLE, folder, in_python

GIVEN = beside(__file__)

__all__ = ["folder"]

COARSE = "parts.chassis.step=1 ms", "parts.wheel.step=1 ms"
CONTROL = "couplings.step_control={{relative: 1e-2, absolute: 1e-2, shortest: {}, longest: {}, repeats: {}}}"


def control(shortest="0.1 ms", longest="10 ms", repeats="no"):
    return CONTROL.format(shortest, longest, repeats)


@pytest.mark.parametrize(
    ("master", "order", "repeats"),
    [("gauss_seidel", 0, True), ("gauss_seidel", 1, False), ("jacobi", 1, True), ("jacobi", 2, False)],
)
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


@pytest.mark.parametrize(
    ("steps", "order"),
    [(control(), 1), (control("1 ms", repeats="yes"), 2), ("couplings={step: 2 ms, bonds: BONDS}", 0)],
    ids=["chosen", "repeated", "constant"],
)
def test_parts_in_python_and_the_interpreter_equal_compiled_ones(folder, steps, order):
    settings = *constant("2 ms", steps), f"couplings.order={order}", *COARSE
    runs = [load_rig(FILES[0], settings, interpret=interpret).run(0.03) for interpret in (False, True)]
    in_python(folder)
    runs.append(load_rig(FILES[0], settings).run(0.03))
    assert [run.rig.engine.get("loop") for run in runs[:2]] == ["compiled", None]
    assert runs[2].rig.engine["loop"].startswith("Python: the part '")
    for name in runs[0].signals:
        for run in runs[1:]:
            np.testing.assert_allclose(run[name], runs[0][name], rtol=1e-9, atol=1e-9, err_msg=name)


def constant(step, steps=""):
    """The settings of steps of constant length, or of a step control."""
    return (steps,) if "step_control" in steps else ("couplings.step_control=null", f"couplings.step={step}")


@pytest.mark.parametrize(("master", "order"), [("gauss_seidel", 2), ("jacobi", 0), ("jacobi", 1)])
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


@pytest.mark.parametrize(("master", "repeats"), [("gauss_seidel", "yes"), ("jacobi", "no")])
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
    made, step = [], CallingMaster.step

    def recorded(master, memory, h):
        made.append((master.layout.unpack(memory)["t"], h))
        return step(master, memory, h)

    monkeypatch.setattr(CallingMaster, "step", recorded)
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
    command.prints("export", "fmu", FILES[0], "-o", "car.fmu")
    Path("via.yaml").write_text("parts: [{name: car, fmu: car.fmu, process: no}]\nschedule: {step: 10 ms}\n")
    again = load_rig("via.yaml").run(0.3)
    for name in run.signals:
        np.testing.assert_array_equal(again[f"car/{name}"], run[name], err_msg=name)


def test_the_report_counts_the_steps(folder, command):
    for file in FILES:
        shutil.copy(SAMPLE / file, ".")
    out = command.prints("run", FILES[0], "--set", control(repeats="yes"), "--json", "s.json", "--record", "r.mcap")
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


SAMPLED = GIVEN["sampled"]
OFF = "couplings.step_control=null"


@pytest.mark.parametrize(
    "settings",
    [
        [control(longest="20 ms")],
        [control("8 ms", "5 ms")],
        [control("1e-9")],
        [control(), "couplings.step=20 ms"],
        [OFF, "couplings.step=3 ms"],
        [OFF, "couplings.step=20 ms"],
        ["couplings.correction={gain: 1}"],
        ["couplings.step_control={relative: 0}"],
    ],
    ids=str,
)
def test_bad_settings(folder, said, settings):
    said(refusal(load_rig, FILES[0], settings))


def test_steps_of_any_length_need_parts_that_have_them_and_a_bond(folder, said):
    Path("sampled.py").write_text(SAMPLED)
    text = Path(FILES[0]).read_text()
    more = (
        "  - {name: sensor, type: sampled.py}\n\ncouplings:\n  wires: [{output: wheel.height, input: sensor.height}]\n"
    )
    Path("r.yaml").write_text(text.replace("\ncouplings:\n", more))
    line = Path("r.yaml").read_text().splitlines().index("  - {name: sensor, type: sampled.py}") + 1
    words = refusal(load_rig, "r.yaml")
    assert words.startswith(f"r.yaml:{line} parts[2]: ")
    said(words)
    assert load_rig("r.yaml", (OFF,)).run(0.05).summary["coupling_steps"] is None
    said(refusal(load_rig, "r.yaml", (OFF, "couplings.step=2 ms")))
    said(refusal(load_rig, FILES[0], ("couplings.bonds=[]", "couplings.wires=[]")))


def test_a_correction_needs_a_bond(folder, said):
    ends = ("chassis.force", "wheel.force"), ("wheel.velocity", "chassis.velocity")
    wires = ", ".join(f"{{output: {a}, input: {b}}}" for a, b in ends)
    settings = OFF, "couplings.correction={gain: 1}", "couplings.bonds=[]", f"couplings.wires=[{wires}]"
    said(refusal(load_rig, FILES[0], settings))


def test_parts_that_are_no_blocks_need_variable_steps_and_repeats(said):
    """As an FMU declares them."""
    errors = []
    reading = Reading(SourceLocation, errors, Path())
    bond = PowerBond(("chassis.force", "wheel.force"), ("wheel.velocity", "chassis.velocity"))
    fixed = {name: SimpleNamespace(variable=name == "a", repeats=False) for name in "ab"}
    keys = {name: ("parts", k) for k, name in enumerate(fixed)}
    chosen, spec = EnergyControl(1e-4, 1e-2, repeats=True), CouplingsSpec(members=(bond,))
    check_coupling_steps(spec, chosen, fixed, keys, 1e-2, False, reading)
    said(f"{error.place.file}: {error.what}" for error in errors)


def test_a_stop_names_the_tolerances(folder):
    text = Path(FILES[0]).read_text()
    limited = "flow: [wheel.velocity, chassis.velocity]"
    Path(FILES[0]).write_text(text.replace(limited, f"{limited}\n      residual_limit: 1e-3 J"))
    fix = r"try smaller tolerances of couplings\.step_control or another couplings\.order$"
    with pytest.raises(StoppedRun, match=fix):
        load_rig(FILES[0]).run()
    with pytest.raises(StoppedRun, match=r"try a smaller couplings\.step, a couplings\.correction or another"):
        load_rig(FILES[0], constant("2 ms")).run()


@pytest.mark.parametrize("setting", ["couplings.step_control={repeats: no}", "couplings.step=0.5 ms"])
def test_a_mechanism_steps_once_per_tick(said, setting):
    said(refusal(load_rig, SAMPLE / "winch.yaml", [setting]))


def test_a_name_of_the_coupling_is_taken(folder, said):
    text = Path(FILES[0]).read_text().replace("chassis.f", "coupling.f").replace("chassis.v", "coupling.v")
    Path("r.yaml").write_text(text.replace("name: chassis", "name: coupling"))
    said(refusal(load_rig, "r.yaml"))
