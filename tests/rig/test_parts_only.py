"""Rigs of parts without a mechanism: every engine, every output, every command, and bad input."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig, load_run
from cosim.rig.run.run_warnings import coarse_coupling_warnings
from cosim.simulation.coupling import CoupledParts
from tests.fmi import fmus
from tests.kit.coupled import quarter_car, quarter_car_exact
from tests.kit.given import beside
from tests.kit.refusals import refusal

GIVEN = beside(__file__)

SAMPLE = Path(__file__).parents[2] / "rigs" / "cosimulation"
FILES = ("quarter_car.yaml", "chassis.py", "wheel.py")
CONSTANT = "couplings.step_control=null"
UNTRACED = ('stretch = x["height"]', 'stretch = float(x["height"])')


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The sample, in the current folder."""
    for file in FILES:
        shutil.copy(SAMPLE / file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_python(folder):
    """Let the chassis run in Python."""
    file = folder / "chassis.py"
    text = file.read_text()
    assert text.count(UNTRACED[0]) == 1
    file.write_text(text.replace(*UNTRACED))


def rig_text(**changes):
    """The text of a file without a mechanism, with sections replaced or added."""
    sections = {
        "parts": "[{name: chassis, type: chassis.py, params: {mass: 1, stiffness: 1, damping: 0}}]",
        "couplings": "{wires: []}",
    }
    return "".join(f"{name}: {text}\n" for name, text in (sections | changes).items())


@pytest.mark.parametrize(("master", "order"), [("gauss_seidel", 0), ("gauss_seidel", 2), ("jacobi", 1)])
def test_it_equals_coupled_parts_in_python(folder, master, order):
    settings = f"couplings.master={master}", f"couplings.order={order}", "schedule.step=2 ms"
    rig = load_rig(folder / FILES[0], (CONSTANT, *settings))
    run = rig.run(0.1)
    parts, bond = quarter_car(1e-4)
    expected = CoupledParts(parts, [bond], master, order, 2e-3).run(0.1)
    assert rig.native
    np.testing.assert_allclose(run.t, expected.t, atol=1e-12)
    for part, output, found in (("chassis", "position", "height"), ("wheel", "velocity", "velocity")):
        np.testing.assert_allclose(run[f"{part}/{found}"], expected[f"{part}.{output}"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run["chassis-wheel/residual_energy"], expected.residuals["chassis-wheel"], atol=1e-9)


def test_the_error_falls_with_the_square_of_the_step(folder):
    errors = []
    for step in ("1 ms", "0.5 ms"):
        run = load_rig(FILES[0], (CONSTANT, f"schedule.step={step}", "parts.wheel.step=0.05 ms")).run(0.5)
        errors.append(np.abs(run["wheel/height"] - quarter_car_exact(run.t)[:, 1]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)


def test_a_rig_has_no_signals_of_a_mechanism(folder):
    rig = load_rig(FILES[0], (CONSTANT,))
    run = rig.run(0.1)
    bond = ["chassis-wheel/power", "chassis-wheel/residual_energy"]
    assert list(run.signals) == ["chassis/force", "chassis/height", "wheel/velocity", "wheel/height", *bond]
    assert run.summary["energy"] is run.summary["integrator"] is run.summary["substeps"] is None
    assert run.summary["joints"] == {} and "plant" not in run.summary["engine"]
    assert repr(rig) == "<Rig quarter_car: 0 dofs, no controller>"


def test_snapshots_rollouts_and_pickles(folder):
    import pickle

    rig = load_rig(FILES[0])
    engine, ends = rig.engine(), []
    engine.run(5)
    snapshot = engine.snapshot()
    for _ in range(2):
        engine.restore(snapshot)
        ends.append(engine.run(10)[0])
    np.testing.assert_array_equal(*ends)
    run = rig.run(0.2)
    batch = rig.rollouts(duration=0.2, keep="all")
    np.testing.assert_array_equal(batch["wheel/height"][0], run["wheel/height"])
    again = pickle.loads(pickle.dumps(rig)).run(0.2)
    np.testing.assert_array_equal(again.values, run.values)


@fmus.needs_gcc
def test_an_fmu_alone(tmp_path):
    """Its input keeps its start value."""
    file = fmus.build(tmp_path, "turntable", 2)
    (tmp_path / "alone.yaml").write_text(f"parts: [{{name: table, fmu: {file.name}}}]\nschedule: {{step: 10 ms}}\n")
    run = load_rig(tmp_path / "alone.yaml").run(0.1)
    assert len(run.t) == 11 and run.units["table/angle"] == "rad"
    assert run.rig.engine == {"part table": "Python: an FMU", "loop": "Python: the part 'table' is in Python"}


def test_run_writes_every_file_and_prints_no_joints(folder, command):
    out = command.prints(
        "run", FILES[0], "--set", CONSTANT, "--record", "a.mcap", "--plot", "a.png", "--json", "a.json"
    )
    title, bond, speed, engine, warning, wrote = out.splitlines()
    assert title.startswith("quarter_car  ") and wrote.startswith("wrote    plot a.png, summary a.json, recording a.")
    assert re.fullmatch(r"bond     chassis-wheel: residual energy \S+ J, at most \S+ J; power at most \S+ W", bond)
    assert re.fullmatch(r"speed    400 ticks of 10 ms, [\d,]+ ticks/s, [\d,.]+ × real time", speed)
    assert engine == "engine   part chassis, part wheel, loop: compiled"
    assert warning.startswith("warning  the coupling is too coarse: bond 'chassis-wheel' has created or lost 0.0")
    assert json.loads(Path("a.json").read_bytes())["bonds"].keys() == {"chassis-wheel"}
    assert Path("a.png").stat().st_size > 10_000
    recorded = load_run("a.mcap")
    assert recorded.rig.bonds == ("chassis-wheel",) and recorded.joints == ()
    command.prints("run", FILES[0], "--set", CONSTANT, "--set", "parts.chassis.params.mass=500", "--record", "b.mcap")
    assert "equal, to the bit" in command.prints("compare", "a.mcap", "a.mcap")
    assert "chassis/height" in command.prints("compare", "a.mcap", "b.mcap")
    assert "to the bit" in command.prints("replay", "a.mcap", "--rerun")
    assert command.prints("plot", "a.mcap", "-o", "one.png") == "wrote    one.png\n"
    assert command.prints("plot", "a.mcap", "b.mcap", "-o", "two.png") == "wrote    two.png\n"
    assert command.prints("export", "recording", "a.mcap", "--to", "csv") == "wrote    a.csv: 401 ticks, 6 signals\n"
    assert command.prints("export", "recording", "a.mcap", "-o", "b.csv") == "wrote    b.csv: 401 ticks, 6 signals\n"
    (line,) = command.refuses("export", "recording", "a.mcap")
    assert line == "--to: name the format, csv, parquet, mat, ros2, or a file of it by -o"
    for program in ("foxglove", "plotjuggler"):
        command.prints("export", "layout", FILES[0], "--for", program)
    assert "chassis-wheel" in Path("quarter_car.foxglove.json").read_text()


def test_check_describes_the_parts(folder, command, said):
    said(command.prints("check", FILES[0], "--set", CONSTANT).splitlines()[2:])


def test_real_time_with_telemetry_and_control(folder, command):
    sockets = "--telemetry", "tcp://127.0.0.1:*", "--control", "tcp://127.0.0.1:*"
    out = command.prints("run", FILES[0], "--realtime", "--duration", "0.2", "--record", "rt.mcap", *sockets)
    assert "timing   wake-up latency" in out and "stream   tcp://127.0.0.1:" in out
    np.testing.assert_array_equal(load_run("rt.mcap")["wheel/height"], load_rig(FILES[0]).run(0.2)["wheel/height"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tune gains", ""),
        ("analyze", ""),
        ("analyze", "--measure multisine"),
        ("tune feedforward", "--save l.csv"),
        ("identify", "--excite"),
        ("emulate", ""),
        *(("derive", option) for option in ("--graph", "--compare", "--bondgraph", "g.svg --picture", "--equations")),
        *(("run", option) for option in ("--reference", "--clear-faults", "--plot p.png --plot-joints wheel")),
    ],
)
def test_commands_for_joints_refuse(folder, command, said, name, options):
    said(command.refuses(*name.split(), FILES[0], *options.split()))


@pytest.mark.parametrize("changes", GIVEN["what_acts_on_a_mechanism_is_refused"], ids=str)
def test_what_acts_on_a_mechanism_is_refused(folder, said, changes):
    Path("r.yaml").write_text(rig_text(**changes))
    said(refusal(load_rig, "r.yaml"))


CONSTANT_SPEED = GIVEN["constant_speed"]


def speed_rig(wire: str) -> str:
    Path("source.py").write_text(CONSTANT_SPEED)
    return f"""parts:
  - {{name: source, type: source.py}}
  - {{name: chassis, type: chassis.py, params: {{mass: 1 kg, stiffness: 1 N/m, damping: 1 N*s/m}}}}
couplings:
  wires: [{{output: source.speed, input: chassis.velocity, {wire}}}]
schedule: {{step: 1 ms, duration: 0.1 s}}
"""


@pytest.mark.parametrize(
    ("wire", "same"),
    [
        ("offset: 500 mm/s", "offset: 0.5"),
        ("factor: 2, offset: -500 mm/s", "factor: 2, offset: '-0.5'"),
        ("initial: 2000 mm/s", "initial: 2"),
    ],
)
def test_numbers_of_wires_have_the_unit_of_the_input(folder, wire, same):
    runs = []
    for each in (wire, same, "initial: 5"):
        Path("r.yaml").write_text(speed_rig(each))
        runs.append(load_rig("r.yaml").run())
    np.testing.assert_array_equal(runs[0].values, runs[1].values)
    assert not np.array_equal(runs[0].values, runs[2].values)


@pytest.mark.parametrize("wire", ["offset: 2 bar", "offset: 50 %", "initial: 2 m", "initial: 2 ell", "initial: two"])
def test_numbers_of_wires_with_another_unit_are_refused(folder, said, wire):
    Path("r.yaml").write_text(speed_rig(wire))
    said(refusal(load_rig, "r.yaml"))


@pytest.mark.parametrize(
    ("settings", "coarse"), [(("couplings.order=0", "couplings.master=jacobi"), True), (("schedule.step=1 ms",), False)]
)
def test_a_coupling_that_creates_energy_is_warned_of(folder, said, settings, coarse):
    """The summary has the residual energy relative to a bound of the energy that went through the bond."""
    run = load_rig(FILES[0], (CONSTANT, *settings)).run(1.0)
    power, residual = run["chassis-wheel/power"], run["chassis-wheel/residual_energy"]
    bond = run.summary["bonds"]["chassis-wheel"]
    most = np.sqrt(np.mean(power**2)) * run.t[-1]
    assert bond["residual_relative"] == pytest.approx(np.abs(residual).max() / most)
    assert np.trapezoid(np.abs(power), run.t) < 1.01 * most
    lines = coarse_coupling_warnings(run.summary)
    assert len(lines) == coarse
    said(lines)
