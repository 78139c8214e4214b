"""The figure `misfit`: how far runs are from a log of the machine, and sessions that make the simulation like it."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import Rig, load_rig, tune
from cosim.apps.tuning.dask_workers import Package, evaluate_part
from cosim.apps.tuning.hardware import figures_of_run
from cosim.apps.tuning.misfit import LogColumn, TargetLog
from cosim.apps.tuning.notebook import open_session, rerun_trial, show_session
from cosim.apps.tuning.setup import evaluator_of, request_json, request_of
from cosim.core.errors import InputError
from cosim.rig.rig_files import files_of
from tests.kit.command import Command
from tests.kit.messages import Said
from tests.kit.refusals import raised
from tests.tuning.test_parameters import ARM

MOTION = {"type": "quintic", "start": [0, 0], "goal": ["60 deg", "-40 deg"], "duration": 0.3}
RIG = {
    **ARM,
    "name": "machine",
    "controllers": [{**ARM["controllers"][0], "trajectory": MOTION}],
    "schedule": {"duration": 0.4},
}
ELBOW = {"friction": {"model": "smooth", "coulomb": 0.9, "viscous": 0.4}}  # wrong, the machine has 0.5 and 0.1
NUMBERS = {"joints.elbow.friction.coulomb": "0.2..1", "joints.elbow.friction.viscous": "0..0.5"}


def table(run, rows, joints=("shoulder", "elbow"), quantities=("position", "velocity", "effort"), begin=7.25):
    """The text of a log: these rows of a run, whose times begin elsewhere."""
    names = [f"{joint}/{quantity}" for joint in joints for quantity in quantities]
    columns = np.stack([run.t + begin, *(run[name] for name in names)], axis=1)[rows]
    return "\n".join([",".join(["t", *names]), *(",".join(f"{x:.12g}" for x in row) for row in columns), ""])


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A folder with the rig, its run in three forms, and the rig with wrong friction."""
    folder = tmp_path_factory.mktemp("machine")
    (folder / "rig.yaml").write_text(yaml.safe_dump(RIG))
    (folder / "wrong.yaml").write_text(yaml.safe_dump({**RIG, "joints": {"elbow": ELBOW}}))
    run = load_rig(folder / "rig.yaml").run(record=folder / "log.mcap")
    run.save(folder / "log.npz")
    (folder / "log.csv").write_text(table(run, slice(None)))
    return folder


@pytest.fixture(scope="module")
def rig(machine):
    return load_rig(machine / "rig.yaml")


@pytest.fixture(scope="module")
def wrong(machine):
    return load_rig(machine / "wrong.yaml")


@pytest.fixture
def place(machine, tmp_path, monkeypatch):
    """A copy of the folder, in which the test is."""
    shutil.copytree(machine, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluator(rig, log, **keys):
    given = {"parameters": {"arm.kp/elbow": "10..1000"}, "minimise": ["misfit"], "measured": log, **keys}
    return evaluator_of(rig, request_of(rig, given))


def misfit(rig, log, **keys):
    """(joints,) of the rig as it is."""
    found = evaluator(rig, log, **keys)
    outcome = found.evaluate(found.space.start[None])[0]
    return outcome.figures["misfit"][0]


# --- the figure -----------------------------------------------------------------------------------------


def test_a_misfit_by_hand():
    """Of three runs of a ramp, at times between the ticks, with the mean and the variance of NumPy."""
    t, times = np.linspace(0.0, 1.0, 11), np.array([0.0, 0.13, 0.2, 0.55, 0.999, 1.0])
    q, v = np.sin(3.0 * times), np.array([1.0, np.nan, 2.0, 2.5, 4.0, 0.0])
    known = ~np.isnan(v)
    columns = (
        LogColumn(2, "position", "c/position", q, float(np.var(q))),
        LogColumn(2, "velocity", "c/velocity", v, float(np.var(v[known]))),
        LogColumn(0, "position", "a/position", 2.0 * q, float(np.var(2.0 * q))),
    )
    log = TargetLog("log.csv", "", times, columns, 4, ())
    slopes = np.array([[0.5], [1.0], [-2.0]])
    ramps = slopes * t
    ramps[2, 6:] = np.nan  # it is stopped after 0.5 s
    found = log.misfit(t, lambda column: ramps if column.quantity == "position" else 0.0 * ramps + 1.5)
    for k, (slope, end) in enumerate(zip(slopes[:, 0], (6, 6, 3), strict=True)):
        of_q = np.mean((slope * times[:end] - q[:end]) ** 2) / np.var(q)
        of_v = np.nanmean((1.5 - v[:end]) ** 2) / np.var(v[known])
        of_a = np.mean((slope * times[:end] - 2.0 * q[:end]) ** 2) / np.var(2.0 * q)
        expected = [np.sqrt(of_a), np.nan, np.sqrt((of_q + of_v) / 2.0), np.nan]
        np.testing.assert_allclose(found[k], expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["log.csv", "log.npz", "log.mcap"])
def test_a_rig_is_like_its_own_log(rig, machine, name):
    assert misfit(rig, machine / name) < 1e-6


def test_a_log_at_other_times_gives_the_same_but_for_interpolation(rig, wrong, tmp_path, machine):
    run, random = rig.run(), np.random.default_rng(1)
    t = np.sort(np.append(random.uniform(0.0, run.t[-1], 300), [0.0, run.t[-1] + 0.01]))
    uneven = replace(run, t=t, values=np.stack([np.interp(t, run.t, run[name]) for name in run.signals], axis=1))
    (tmp_path / "uneven.csv").write_text(table(uneven, slice(None)))
    assert misfit(rig, tmp_path / "uneven.csv") < 2e-3
    assert misfit(wrong, tmp_path / "uneven.csv") == pytest.approx(misfit(wrong, machine / "log.csv"), rel=0.1)


@pytest.mark.parametrize("quantities", [("position",), ("velocity", "effort"), ("position", "velocity", "effort")])
def test_it_is_the_mean_over_the_quantities_that_the_log_has_and_the_sum_over_joints(rig, wrong, tmp_path, quantities):
    true, run = rig.run(), wrong.run()
    (tmp_path / "log.csv").write_text(table(true, slice(None), quantities=quantities))
    expected = 0.0
    for joint in rig.joints:
        names = [f"{joint}/{quantity}" for quantity in quantities]
        expected += math.sqrt(np.mean([np.mean((run[n] - true[n]) ** 2) / np.var(true[n]) for n in names]))
    assert misfit(wrong, tmp_path / "log.csv") == pytest.approx(expected, rel=1e-7) and expected > 0.01


def test_a_joint_without_columns_or_at_rest_does_not_count(rig, wrong, tmp_path):
    true = rig.run()
    still = replace(true, values=true.values.copy())
    still.values[:, still.signals.index("shoulder/position")] = 0.1 + 1e-5 * np.sin(9.0 * true.t)
    (tmp_path / "one.csv").write_text(table(true, slice(None), ["elbow"]))
    (tmp_path / "still.csv").write_text(table(still, slice(None)))
    alone = misfit(wrong, tmp_path / "one.csv")
    assert misfit(wrong, tmp_path / "still.csv") == pytest.approx(alone, rel=1e-12)
    log = evaluator(wrong, tmp_path / "still.csv", minimise={"elbow/misfit": 2}).log
    assert log is not None and log.notes[-1] == "at rest, and without misfit: shoulder"


def test_it_is_a_limit_and_is_found_on_all_plants(rig, machine):
    found = evaluator(rig, machine / "log.csv", limits={"elbow/misfit": "1 %"}, plants={"inertia": "20 %"})
    (outcome,) = found.evaluate(found.space.start[None])
    assert outcome.costs[0] < 1e-6 and min(outcome.costs[1:]) > 0.01
    assert outcome.failed.startswith("elbow/misfit is ") and ", with inertia ×" in outcome.failed


def test_a_run_that_is_stopped_has_no_cost(machine):
    limits = {"elbow": {**ARM["joints"]["elbow"], "limits": {"lower": "-20 deg", "upper": "90 deg"}}}
    found = evaluator(Rig.from_dict({**RIG, "joints": limits}), machine / "log.csv", limits={"misfit": 5})
    (outcome,) = found.evaluate(found.space.start[None])
    assert outcome.stopped and outcome.cost == math.inf and "'elbow'" in outcome.failed


# --- sessions -------------------------------------------------------------------------------------------


def test_a_session_finds_the_numbers_of_the_machine(wrong, machine):
    session = tune(wrong, NUMBERS, ["misfit"], measured=machine / "log.csv", optimiser="de", trials=160)
    coulomb, viscous = session.best.values
    assert session.best.outcome.cost < 0.05 * session.start.outcome.cost
    assert abs(coulomb - 0.5) < 0.05 and abs(viscous - 0.1) < 0.05


def test_the_section_of_a_rig_has_the_log_relative_to_it_and_how_it_is_read(machine, tmp_path, monkeypatch, rig):
    run = rig.run()
    rows = [f"{t:.6g};{math.degrees(q):.9g}" for t, q in zip(run.t, run["elbow/position"], strict=True)]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").write_text("\n".join(["t;q2", *rows]))
    section = {"measured": "logs/a.csv", "columns": {"elbow": "q2"}, "units": {"elbow": "deg"}, "minimise": ["misfit"]}
    section |= {"parameters": {"arm.kp/elbow": "10..1000"}, "trials": 2, "batch": 2, "optimiser": "sobol"}
    (tmp_path / "rig.yaml").write_text(yaml.safe_dump({**RIG, "tuning": section}))
    monkeypatch.chdir(machine)
    session = tune(load_rig(tmp_path / "rig.yaml"), folder=tmp_path / "s")
    assert session.request.measured == str(tmp_path / "logs" / "a.csv") and session.start.outcome.cost < 1e-6


def test_a_session_with_a_log_goes_on_elsewhere_and_is_run_again(place, monkeypatch, said: Said):
    """Until its log is another one."""
    given = {"optimiser": "de", "batch": 4, "folder": place / "s"}
    rig = load_rig(place / "wrong.yaml")
    tune(rig, NUMBERS, ["misfit"], measured="log.csv", trials=4, **given)
    whole = tune(rig, NUMBERS, ["misfit"], measured="log.csv", trials=8, **{**given, "folder": place / "whole"})
    monkeypatch.chdir(place / "s")
    assert tune(rig, trials=8, resume=True, folder=place / "s").trials == whole.trials
    assert rerun_trial(open_session(place / "s"), 3, None)[0] == whole.trials[3]
    assert f"measured   {place}/log.csv" in show_session(open_session(place / "s"))
    said(raised(InputError, tune, rig, measured="../log.npz", resume=True, folder=place / "s"))
    (place / "log.csv").write_text((place / "log.csv").read_text().replace("7.25,0,", "7.25,1e-9,"))
    for call in (lambda: tune(rig, resume=True, folder=place / "s"), lambda: open_session(place / "s")):
        said(raised(InputError, call))


def test_a_worker_reads_the_log_again_and_refuses_another_one(place, said: Said):
    rig = load_rig(place / "wrong.yaml")
    request = request_of(rig, {"parameters": NUMBERS, "minimise": ["misfit"], "measured": "log.csv"})
    found, files = evaluator_of(rig, request), files_of(rig)
    assert found.log is not None
    values, gains = np.array([[0.5, 0.1], [0.7, 0.2]]), tuple(rig.tick_model.parameters.tolist())
    package = Package("a", files.contents, files.as_run, gains, request_json(request), found.log.digest)
    assert evaluate_part(package, values, threads=1) == found.evaluate(values)
    (place / "log.csv").write_text((place / "log.csv").read_text() + "\n")
    said(raised(InputError, evaluate_part, replace(package, key="b"), values, threads=1))


def test_a_session_of_a_former_version_has_no_log(place):
    tune(load_rig("rig.yaml"), {"arm.kp/elbow": "10..1000"}, trials=2, folder=place / "s", optimiser="sobol")
    header = json.loads((place / "s" / "session.json").read_text())
    assert header.pop("log") == ""
    (place / "s" / "session.json").write_text(json.dumps(header))
    assert open_session(place / "s").evaluator.log is None


def test_the_command_prints_what_was_guessed_and_the_report_draws_the_log(command: Command, place):
    run = load_rig("rig.yaml").run()
    rows = [f"{t:.6g},{q:.9g}" for t, q in zip(run.t, np.degrees(run["elbow/position"]), strict=True)]
    Path("deg.csv").write_text("\n".join(["t,elbow", *rows]))
    words = ("tune", "gains", "wrong.yaml", "--parameter", "joints.elbow.friction.viscous=0..1", "--minimise", "misfit")
    words = (*words, "--trials", "2", "--optimiser", "sobol", "--measured", "deg.csv")
    out = command.prints(*words)
    assert f"\nnote     {place}/deg.csv: elbow/position is " in "\n" + out and "--unit elbow/position=deg" in out
    out = command.prints(*words, "--unit", "elbow=deg", "--column", "elbow=elbow", "--session", "s")
    assert "note" not in out
    page = Path("s/report.html").read_text()
    assert (
        "Log and runs" in page
        and "elbow: position [rad]" in page
        and "elbow: position − log [rad]" in page
        and f"{place}/deg.csv" in page
    )


# --- the real rig ---------------------------------------------------------------------------------------


def test_the_misfit_of_a_run_on_hardware_is_that_of_its_measured_signals(wrong, machine):
    found = evaluator(wrong, machine / "log.csv")
    run = wrong.run()
    ticks = len(run.t)
    expected = found.evaluate(found.space.start[None])[0].cost
    assert figures_of_run(run, wrong, found.objective, ticks, found.log)["misfit"].sum() == pytest.approx(expected)
    real = run.chosen(["elbow/position", "elbow/velocity"])
    names = [*run.signals, *(f"{name.replace('/', '/measured_')}" for name in real)]
    measured = replace(
        run,
        rig=replace(run.rig, roles={**run.rig.roles, "elbow": "real"}, units=dict.fromkeys(names, "1")),
        values=np.column_stack([run.values, *real.values()]),
    )
    for name in real:
        measured.values[:, names.index(name)] = np.nan  # the estimated motion
    again = figures_of_run(measured, wrong, found.objective, ticks, found.log)["misfit"].sum()
    assert again == pytest.approx(expected, rel=1e-12)


def test_a_real_rig_needs_the_quantities_of_the_log(wrong, rig, machine, said: Said):
    log = evaluator(wrong, machine / "log.csv").log
    assert log is not None
    log.check_signals(rig)
    current = replace(log, columns=(replace(log.columns[0], quantity="current"),))
    said(str(raised(InputError, current.check_signals, rig)).replace(str(machine), "<machine>"))


# --- refused --------------------------------------------------------------------------------------------

OTHER = "t,knee/position\n0,0\n0.2,1\n0.4,2\n"
STILL = "t,elbow/position\n" + "".join(f"{0.1 * k:g},0.1\n" for k in range(5))
REFUSED = [
    "--minimise misfit",
    "--limit elbow/misfit=0.1",
    "--unit elbow=deg --minimise error_rms",
    "--measured log.csv",
    "--measured log.csv --minimise misfit --limit misfit",
    "--measured logs.csv --minimise misfit",
    "--measured $NOWHERE/log.csv --minimise misfit",
    "--measured . --minimise misfit",
    "--measured other.csv --minimise misfit",
    "--measured still.csv --minimise misfit",
    "--measured one.csv --minimise shoulder/misfit",
    "--measured log.csv --minimise misfit --duration 2",
    "--measured log.csv --minimise misfit --unit elbow=deeg",
    "--measured log.csv --minimise misfit --column elbow=q7",
    "--measured log.csv --minimise misfit --gain knee=2",
    "--measured log.csv --minimise misfit --optimiser gradient",
    "--measured other.npz --minimise misfit",
    "--measured slide.npz --minimise misfit",
]


@pytest.fixture(scope="module")
def strangers(machine):
    """Logs that do not fit, beside the others."""
    run = load_rig(machine / "rig.yaml").run()
    (machine / "other.csv").write_text(OTHER)
    (machine / "still.csv").write_text(STILL)
    (machine / "one.csv").write_text(table(run, slice(None), ["elbow"]))
    data = yaml.safe_load((machine / "rig.yaml").read_text())
    for body, joint in zip(data["mechanism"]["bodies"], ("hip", "knee"), strict=True):
        body["joint"] = joint
    Rig.from_dict({**data, "joints": {}}).run().save(machine / "other.npz")
    data = yaml.safe_load((machine / "rig.yaml").read_text())
    data["mechanism"]["bodies"][1]["type"] = "prismatic"
    data["controllers"][0]["trajectory"] = {**MOTION, "goal": [0.1, 0.1]}
    Rig.from_dict({**data, "joints": {}}).run().save(machine / "slide.npz")


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_fit(command: Command, strangers, place, words, said: Said):
    given = ("tune", "gains", "rig.yaml", "--parameter", "arm.kp/elbow=10..1000", "--trials", "2", *words.split())
    said(command.refuses(*given))


def test_what_does_not_fit_in_the_file_has_its_line(command: Command, place, said: Said):
    text = Path("rig.yaml").read_text()
    for section in ("minimise: [misfit]", "measured: log.csv", "units: {elbow: deg}", "measured: $NOWHERE/log.csv"):
        Path("rig.yaml").write_text(f"{text}tuning:\n  parameters: {{arm.kp/elbow: 10..1000}}\n  {section}\n")
        said(command.refuses("tune", "gains", "rig.yaml"))
