"""Sessions: their folder, an interruption and going on, and what does not fit."""

import json
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import cosim
from cosim import FailedTuning, InputError, load_rig, tune
from cosim.apps.tuning.notebook import open_session, rerun_trial, show_session
from cosim.apps.tuning.optimisers import SearchProblem, known_optimisers, load_optimiser
from cosim.apps.tuning.session_folder import SessionFolder, read_trials
from cosim.apps.tuning.setup import evaluator_of, request_of
from cosim.rig.reading.yaml_source import read_overlay
from tests.kit.refusals import raised
from tests.tuning.textbook import TURNTABLE, turntable

GIVEN = {"parameters": {"arm.kp": "10..1000", "arm.kd": "1..100"}, "trials": 40, "batch": 8}
SEARCHES = {"cma": (1, 30), "de": (17,), "gradient": (17,), "sobol": (5,), "tpe": (17,)}  # where they are cut


@pytest.fixture
def rig(tmp_path):
    return rig_in(tmp_path)


def rig_in(folder: Path, **changes):
    (folder / "rig.yaml").write_text(yaml.safe_dump({**TURNTABLE, **changes}))
    return load_rig(folder / "rig.yaml")


def test_infinite_gains_and_figures_are_as_they_were_after_reading(rig, tmp_path):
    """A PID without a bound of its integral."""
    given = {"parameters": {"arm.kp": "10..1000"}, "limits": {"gain_margin": 2}, "trials": 4, "batch": 4}
    session = tune(rig, folder=tmp_path / "session", **given)
    opened = open_session(tmp_path / "session")
    assert opened.trials == session.trials
    np.testing.assert_array_equal(opened.evaluator.rig.tick_model.parameters, rig.tick_model.parameters)
    assert np.isinf(rig.tick_model.parameters).any()
    trial, _ = rerun_trial(opened, 2, None)
    assert trial == session.trials[2]


# --- the same seed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimiser", SEARCHES)
def test_the_same_seed_gives_the_same_session_and_another_seed_another(rig, tmp_path, optimiser):
    """Also where it was interrupted: at any trial, in the middle of a batch and of a line."""
    whole, folder = tune(rig, optimiser=optimiser, folder=tmp_path / "whole", **GIVEN), tmp_path / "whole"
    other = tune(rig, optimiser=optimiser, seed=4, **GIVEN)
    # a descent is the same until it begins again at a random place
    assert (whole.trials[9:] != other.trials[9:]) is (optimiser != "gradient") and len(whole.trials) == 41
    lines = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    for count in SEARCHES[optimiser]:
        cut = shutil.copytree(folder, tmp_path / f"cut at {count}")
        (cut / "trials.jsonl").write_bytes(b"".join(lines[:count]) + lines[count][:20])
        again = tune(rig, folder=cut, resume=True)
        assert again.trials == whole.trials and again.found == whole.found
        for name in ("trials.jsonl", "gains.yaml"):
            assert (cut / name).read_bytes() == (folder / name).read_bytes()


def test_more_trials_continue_a_session_that_has_ended(rig, tmp_path):
    short = tune(rig, optimiser="cma", folder=tmp_path / "s", **{**GIVEN, "trials": 20})
    longer = tune(rig, folder=tmp_path / "s", resume=True, trials=40)
    assert longer.trials == tune(rig, optimiser="cma", **GIVEN).trials
    assert longer.trials[:21] == short.trials
    assert json.loads((tmp_path / "s" / "session.json").read_text())["request"]["trials"] == 40


def test_ctrl_c_in_python_raises_with_the_session(rig):
    def interrupt(session):
        if len(session.trials) > 10:
            raise KeyboardInterrupt

    with pytest.raises(FailedTuning, match=r"^tune: interrupted after 16 of 40 trials, the best is trial ") as failed:
        tune(rig, progress=interrupt, **GIVEN)
    assert len(failed.value.session.trials) == 17


def test_all_keys_of_a_session_reach_it(rig):
    given = {"robust": "mean", "samples": 2, "optimiser": "sobol", "trials": 3, "batch": 2, "seed": 9, "duration": 0.5}
    named = {"minimise": {"iae": 2.0}, "limits": {"effort_max": 1e4}, "plants": {"inertia": 0.1}}
    session = tune(rig, {"arm.kp": "10..1000"}, **named, **given)
    for key, value in {**given, **named, "parameters": {"arm.kp": "10..1000"}}.items():
        assert getattr(session.request, key) == value, key
    assert session.best.outcome.cost == pytest.approx(np.mean(session.best.outcome.costs), rel=1e-14)
    assert len(session.best.outcome.costs) == 3


def test_trials_are_read_as_they_were_written(rig, tmp_path):
    given = {"plants": {"inertia": "30 %"}, "limits": {"overshoot": 0.5}, "minimise": {"settling_time": 1}}
    session = tune(rig, folder=tmp_path / "s", **{**GIVEN, **given, "trials": 16})
    assert read_trials(tmp_path / "s") == session.trials
    assert any(not np.isfinite(trial.outcome.cost) for trial in session.trials)
    assert any(a != b for trial in session.trials for a, b in trial.outcome.figures.values())


def test_a_parameter_that_was_set_in_python_is_a_change_of_the_rig(ended, rig, refused):
    rig.set("arm.ki", 3.0)
    refused(lambda: tune(rig, folder=ended, resume=True))


# --- results --------------------------------------------------------------------------------------------


def test_the_overlay_runs_the_rig_with_the_best_gains(rig, tmp_path):
    session = tune(rig, folder=tmp_path / "s", **GIVEN)
    overlay = yaml.safe_load((tmp_path / "s" / "gains.yaml").read_text())
    assert overlay == {f"controllers.{name}": value for name, value in session.parameters.items()}
    run = load_rig(tmp_path / "rig.yaml", read_overlay(tmp_path / "s" / "gains.yaml")).run()
    assert run.summary["joints"]["axis"]["error_rms"] == pytest.approx(session.best.outcome.cost, rel=1e-12)


def test_numbers_of_drives_are_tuned_and_written_too(tmp_path):
    friction = {"model": "smooth", "coulomb": 0.1, "viscous": 1.0}
    rig = rig_in(tmp_path, joints={"axis": {"friction": friction}})
    session = tune(rig, {"joints.axis.friction.viscous": "1..40"}, folder=tmp_path / "s", trials=40, batch=8)
    assert session.parameters["joints.axis.friction.viscous"] == pytest.approx(6.0, abs=1.0)  # with kd = 4, ζ = 0.5
    run = load_rig(tmp_path / "rig.yaml", read_overlay(tmp_path / "s" / "gains.yaml")).run()
    assert run.summary["joints"]["axis"]["error_rms"] == pytest.approx(session.best.outcome.cost, rel=1e-9)


@pytest.mark.parametrize("own", [None, {"limits": {"velocity": 99.0}}], ids=["no entry", "another section"])
def test_numbers_of_a_section_of_all_joints_are_written_with_the_section(tmp_path, own):
    """A joint with a part of the section would have nothing else of it."""
    friction = {"model": "smooth", "coulomb": 0.1, "viscous": 1.0}
    rig = rig_in(tmp_path, joints={"all": {"friction": friction}, **({} if own is None else {"axis": own})})
    ranges = {"joints.axis.friction.viscous": "2..40", "joints.axis.friction.coulomb": "0.2..0.5"}
    session = tune(rig, ranges, folder=tmp_path / "s", trials=4, optimiser="sobol")
    viscous, coulomb = session.best.values
    overlay = yaml.safe_load((tmp_path / "s" / "gains.yaml").read_text())
    assert overlay == {"joints.axis.friction": {"model": "smooth", "coulomb": coulomb, "viscous": viscous}}
    run = load_rig(tmp_path / "rig.yaml", read_overlay(tmp_path / "s" / "gains.yaml")).run()
    assert run.summary["joints"]["axis"]["error_rms"] == pytest.approx(session.best.outcome.cost, rel=1e-9)
    assert rerun_trial(open_session(tmp_path / "s"), 2, None)[0] == session.trials[2]


def test_masses_are_tuned_and_written_too(rig, tmp_path):
    """∫e² = kd / (2 kp) + J / (2 kd), with kp = 100 and kd = 4."""
    parameters = {"mechanism.table.inertia/2": "0.05..1"}
    session = tune(rig, parameters, folder=tmp_path / "s", trials=40, batch=8, optimiser="cma")
    overlay = yaml.safe_load((tmp_path / "s" / "gains.yaml").read_text())
    assert overlay["mechanism.numbers.table.inertia"][2] == session.best.values[0]
    expected = np.sqrt((4.0 / 200.0 + session.best.values[0] / 8.0) / 4.0)
    assert session.best.outcome.cost == pytest.approx(expected, rel=0.02) and session.best.values[0] < 0.1
    run = load_rig(tmp_path / "rig.yaml", read_overlay(tmp_path / "s" / "gains.yaml")).run()
    assert run.summary["joints"]["axis"]["error_rms"] == pytest.approx(session.best.outcome.cost, rel=1e-9)


def test_no_gains_in_the_bounds_that_stabilise_the_rig(tmp_path):
    """The session ends with all its trials, a report and the reason."""
    rig = rig_in(tmp_path, joints={"axis": {"limits": {"lower": -0.5, "upper": 0.5}}})
    with pytest.raises(FailedTuning) as failed:
        tune(rig, {"arm.kp": "10..20"}, folder=tmp_path / "s", trials=16)
    message = str(failed.value)
    assert message.startswith("tune: none of 16 trials ran to its end; the nearest is trial ")
    assert "joint 'axis' is at 0.5" in message
    assert message.endswith("; widen the bounds of the parameters or the limits")
    assert len(read_trials(tmp_path / "s")) == 17 and not (tmp_path / "s" / "gains.yaml").exists()
    assert "ran to its end" in (tmp_path / "s" / "report.html").read_text()
    assert failed.value.session.found is None and failed.value.exit_code == 1


def test_no_gains_in_the_bounds_that_hold_a_limit(rig):
    with pytest.raises(FailedTuning, match=r"none of 16 trials holds all limits; .* trial \d+: overshoot is"):
        tune(rig, {"arm.kd": "0.1..3"}, limits={"overshoot": 0.01}, trials=16)


def test_gains_of_the_rig_beyond_the_bounds_are_not_the_nearest_ones(rig, said):
    """They hold all limits, and may not be the result."""
    with pytest.raises(FailedTuning) as failed:
        tune(rig, {"arm.kp": "1e4..1e5"}, {"settling_time": 1}, trials=8, optimiser="de")
    nearest = failed.value.session.trials[1]
    assert failed.value.session.start.outcome.feasible and nearest.outcome.score == 2.0
    said(failed.value)
    assert repr(failed.value.session) == "<TuningSession turntable: 9 trials, best none>"


def test_the_report_is_one_file_without_resources_of_a_network(rig, tmp_path):
    session = tune(rig, plants={"inertia": "20 %"}, limits={"overshoot": 0.5}, **GIVEN)
    session.save_report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "http:" not in text and "https:" not in text and "<img" not in text
    assert text.count("<svg ") == 1 + 2 + 2 + 2 + 1  # trials, parameters, a joint in time, its loop, plants
    ElementTree.fromstring(text[text.index("<body>") : text.index("</html>")])  # well formed
    assert "<link" not in text and "<script" not in text and "url(" not in text
    for word in ("Gains", "Figures", "Parameters against cost", "Start and best in time", "Loops and margins"):
        assert f"<h2>{word}</h2>" in text
    assert f"{session.parameters['arm.kp']:.6g}" in text and "inertia" in text


# --- what does not fit ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a rig and its session, which has ended."""
    folder = tmp_path_factory.mktemp("kept")
    tune(rig_in(folder), folder=folder / "s", optimiser="cma", **{**GIVEN, "trials": 8})
    return folder


@pytest.fixture
def ended(kept, tmp_path):
    """A copy of it in the folder of the test: the session."""
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    return tmp_path / "s"


@pytest.fixture
def refused(said):
    """Calls that are refused, and why."""

    def refused(*calls):
        for call in calls:
            said(raised(InputError, call))

    return refused


@pytest.mark.parametrize(
    ("changes", "given"),
    [
        ({"name": "other"}, {}),
        ({"schedule": {"step": "2 ms", "duration": 4.0}}, {}),
        ({}, {"parameters": {"arm.kp": "10..900"}}),
        ({}, {"optimiser": "de"}),
    ],
    ids=str,
)
def test_a_session_of_another_rig_or_with_other_settings(ended, changes, given, refused):
    refused(lambda: tune(rig_in(ended.parent, **changes), folder=ended, resume=True, **given))


def test_a_section_of_the_rig_that_was_changed_does_not_matter(ended):
    rig = rig_in(ended.parent, tuning={"parameters": ["arm.ki"], "trials": 3})
    assert len(tune(rig, folder=ended, resume=True).trials) == 9


def test_folders_that_do_not_fit(ended, rig, refused):
    (ended.parent / "file").touch()
    for folder, given in ((ended, GIVEN), (ended.parent / "file", GIVEN), (ended.parent / "file" / "t", GIVEN)):
        refused(lambda folder=folder, given=given: tune(rig, folder=folder, **given))
    for folder in (ended.parent, ended.parent / "file"):
        refused(lambda folder=folder: tune(rig, folder=folder, resume=True))
    refused(lambda: tune(rig, resume=True), lambda: tune(rig, folder="", **GIVEN))
    held = SessionFolder.open(ended)
    refused(lambda: tune(rig, folder=ended, resume=True))
    held.close()


HEADERS = [
    ('"optimiser":', '"optimizer":'),
    ('"trials": 8', '"trials": "x"'),
    ('"trials": 8', '"trials": 0'),
    ('"request":', '"requst":'),
    ('"gains": [', '"gains": ["x",'),
    ('"version": 2', '"version": 1'),
    ("{", "{{"),
]


@pytest.mark.parametrize(("old", "new"), HEADERS)
def test_a_damaged_header(ended, rig, old, new, refused):
    header = ended / "session.json"
    text = header.read_text()
    assert old in text
    header.write_text(text.replace(old, new, 1))
    refused(lambda: tune(rig, folder=ended, resume=True), lambda: open_session(ended))


def test_a_header_with_other_parameters_than_its_rig(ended, refused):
    header = json.loads((ended / "session.json").read_text())
    (ended / "session.json").write_text(json.dumps(header | {"gains": header["gains"][:2]}))
    refused(lambda: open_session(ended))


def test_damaged_trials(ended, rig, refused):
    """Nonsense, a key that is missing, values that the optimiser would not propose, and no trials at all."""
    file = ended / "trials.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    other = json.loads(lines[3])
    other["values"][0] += 1.0
    for damaged in ("nonsense\n", lines[3].replace('"score"', '"scores"'), json.dumps(other) + "\n"):
        file.write_text("".join([*lines[:3], damaged, *lines[4:]]))
        refused(lambda: tune(rig, folder=ended, resume=True))
    file.unlink()
    refused(lambda: tune(rig, folder=ended, resume=True))
    assert "trials     0 of 8 by cma, seed 0, 0 failed" in show_session(open_session(ended))


def test_what_cannot_be_tuned(refused):
    still = turntable(controllers=[{**TURNTABLE["controllers"][0], "trajectory": None}])
    interpreted = cosim.Rig.from_dict(TURNTABLE, interpret=True)
    refused(
        lambda: tune(still, {"arm.kp": "1..9"}, {"settling_time": 1}),
        lambda: tune(interpreted, {"arm.kp": "1..9"}),
        lambda: tune(turntable(), optimiser="tpee", **GIVEN),
    )


# --- optimisers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tpe", "cma", "de"])
def test_an_optimiser_finds_the_bottom_of_a_bowl(name):
    evaluator = evaluator_of(turntable(), request_of(turntable(), {"parameters": GIVEN["parameters"]}))
    optimiser = load_optimiser(name, SearchProblem(4, np.full(4, 0.5), 0, 10, evaluator))
    target, best = np.array([0.2, 0.9, 0.4, 0.65]), np.inf
    for _ in range(30):
        x = optimiser.ask(10)
        assert x.shape == (10, 4) and x.min() >= 0.0 and x.max() <= 1.0
        scores = ((x - target) ** 2).sum(axis=1)
        optimiser.tell(x, scores)
        best = min(best, float(scores.min()))
    assert best < 0.01


def test_every_optimiser_has_a_line():
    assert set(known_optimisers()) == {"cma", "de", "gradient", "relay", "shape", "sobol", "tpe"}
    assert all(known_optimisers().values())


@pytest.mark.parametrize(("name", "package"), [("tpe", "optuna"), ("cma", "cmaes")])
def test_an_optimiser_that_is_not_installed(rig, monkeypatch, name, package, refused):
    monkeypatch.setitem(sys.modules, package, None)
    refused(lambda: tune(rig, optimiser=name, **GIVEN))


@pytest.mark.parametrize(
    "parameters",
    [
        {"arm.kp": "1..1e4"},
        {"arm.kp": "1..1e4", "arm.integral_limit": "1..2"},
        {"arm.kp": "1..2", "arm.kd": "900..990"},
    ],
    ids=str,
)
def test_parameters_that_loop_shaping_does_not_set(parameters, refused):
    rig = turntable(controllers=[{**TURNTABLE["controllers"][0], "integral_limit": 5.0}])
    refused(lambda: tune(rig, parameters, optimiser="shape"))
