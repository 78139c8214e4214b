"""Candidates of a session on real drives, emulated with 20 % more inertia and friction than their model has."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import METRICS, InputError, RunError, load_rig, load_run, tune
from cosim.apps.tuning.hardware import HardwareReplay, figures_of_run, steps_between
from cosim.apps.tuning.hardware_report import write_hardware_report
from cosim.apps.tuning.hardware_trials import HardwareTrials
from cosim.apps.tuning.notebook import open_session
from cosim.apps.tuning.session_data import Trial
from cosim.apps.tuning.setup import evaluator_of
from cosim.rig.reading.yaml_source import read_overlay
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.sections.tuning import TuningKeys
from tests.kit.command import Command
from tests.kit.simulated_drives import simulated_drives
from tests.tuning.textbook import turntable

RIGS = Path(__file__).parents[2] / "rigs"
GAINS = {"arm.kp": "x1.5..x3", "arm.kd": "x1..x3"}
MARGINS = {"disk_margin": 0.9, "phase_margin": "52 deg", "gain_margin": 3.0}
MORE = 1.2  # times the masses, inertias and frictions of the model has the emulated arm
JOINTS = ["base", "shoulder"]


def rig_file(folder: Path, name: str, **changes) -> Path:
    """`arm_sim.yaml` or `arm_can.yaml` with a stiff elbow and a short motion."""
    data = yaml.safe_load((RIGS / f"{name}.yaml").read_text())
    for driver in data["drivers"]:
        del driver["joints"]["elbow"]
    data["mechanism"]["bodies"][-1] |= {"type": "fixed", "origin": {"xyz": ["250 mm", 0, 0], "rpy": [0, "80 deg", 0]}}
    del data["joints"]["elbow"]
    (controller,) = data["controllers"]
    controller |= {"kp": controller["kp"][:2], "kd": controller["kd"][:2]}
    controller["trajectory"] |= {"goal": ["15 deg", "-50 deg"], "duration": 0.3, "delay": 0.1}
    data["schedule"]["duration"] = 0.8
    data["mechanism"]["gravity"] = [0, 0, 0]  # an arm without torque stays where it is between two runs
    for section, change in changes.items():
        data[section] = {**data[section], **change}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(data))
    return file


def heavier(rig: Path) -> list[str]:
    """What makes the arm heavier and gives it more friction than the model has."""
    numbers = {f"joints.all.actuator.viscous={MORE * 0.05}", f"joints.all.actuator.rotor_inertia={MORE * 0.4} kg*cm^2"}
    for body in yaml.safe_load(rig.read_text())["mechanism"]["bodies"]:
        place = f"mechanism.bodies.{body['name']}"
        numbers.add(f"{place}.mass={MORE * float(body['mass'].removesuffix('kg'))}")
        numbers.add(f"{place}.inertia={[MORE * value for value in body['inertia']]}")
    return sorted(numbers)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with both rigs and a session."""
    folder = tmp_path_factory.mktemp("hardware")
    rig_file(folder, "arm_can")
    rig = load_rig(rig_file(folder, "arm_sim"), interpret=False)
    plants, limits = {"inertia": "20 %", "friction": "20 %"}, {**MARGINS, "error_max": 0.2}
    tune(rig, GAINS, plants=plants, limits=limits, trials=12, folder=folder / "s")
    return folder


@pytest.fixture(scope="module")
def spec(place):
    file = place / "arm_can.yaml"
    return read_rig(file, heavier(file))


@pytest.fixture
def bench(place, spec):
    """Emulated drives whose arm is at its start."""
    with simulated_drives(spec):
        yield place


@pytest.fixture(scope="module")
def real(place, spec):
    with simulated_drives(spec):
        return load_rig(place / "arm_can.yaml", interpret=False)


@pytest.fixture
def promising(place, tmp_path):
    """A copy of the session, for runs of its own."""
    shutil.copytree(place / "s", tmp_path / "s")
    return open_session(tmp_path / "s")


@pytest.fixture
def session(promising):
    """… without margins, which take more runs."""
    objective = promising.evaluator.objective
    limits = tuple(limit for limit in objective.limits if not limit.measure.is_margin)
    promising.evaluator.objective = replace(objective, limits=limits)
    return promising


def replay(session, rig, asked=None, said=None, factor=1.8):
    ask = (lambda lines: None) if asked is None else asked.append
    return HardwareReplay(session, rig, ask, print if said is None else said.append, factor)


def another(session, *values, **changes):
    """Trial 1 of the session becomes one with these gains."""
    session.trials[1] = Trial(1, values, session.trials[0].outcome)
    if changes:
        session.evaluator.objective = replace(session.evaluator.objective, **changes)


# --- replays --------------------------------------------------------------------------------------------


def test_candidates_are_approached_in_small_steps_and_shown_beside_their_simulation(session, bench, real):
    asked, said = [], []
    found = replay(session, real, asked, said)
    found.try_all(HardwareTrials(real, (), 1, 1.5).candidates(session))
    best = session.best
    assert found.runs[0].name == "gains of the rig" and found.runs[0].values == pytest.approx([30, 60, 1.5, 3])
    assert found.runs[-1].name == f"trial {best.number}" and found.runs[-1].values == best.values
    assert all(run.failure == "" for run in found.runs), said
    values = np.array([run.values for run in found.runs])
    assert np.abs(np.diff(np.log(values), axis=0)).max() <= math.log(1.8) + 1e-9 and len(values) > 2
    # each of them was confirmed, with what moves before the first one, and with how far its joints go
    assert len(asked) == 2 * len(found.runs) and asked[0][0] == "arm_can moves real motors:"
    assert all(lines[-1].startswith(f"{run.name}: ") for lines, run in zip(asked[::2], found.runs, strict=True))
    assert all([line.split()[0] for line in lines] == JOINTS for lines in asked[1::2])
    for run in found.runs:  # heavier than the model, so the errors are larger
        assert run.simulated["error_rms"] < run.real["error_rms"] < 30.0 * run.simulated["error_rms"]
        assert run.costs[1] == run.real["error_rms"] and run.real["error_max"] < 0.2
    assert found.runs[-1].costs[1] < found.runs[0].costs[1]

    write_hardware_report(found, found.folder / "report.html")
    text = (found.folder / "report.html").read_text()
    assert text.count("<svg ") == len(JOINTS) * len(found.runs) and "http" not in text
    overlay = read_overlay(found.gains_file)
    assert load_rig(bench / "arm_sim.yaml", overlay).parameters["arm.kp"] == pytest.approx(found.best.values[:2])
    assert load_run(found.folder / "run_0.mcap").rig.roles == dict.fromkeys(JOINTS, "real")


def test_a_run_that_the_guard_stops_ends_it_and_the_rig_returns_with_the_last_safe_gains(session, bench, tmp_path):
    """The real rig has a limit of the tracking error that the model does not have; a soft candidate exceeds it."""
    said = []
    joints = yaml.safe_load((RIGS / "arm_can.yaml").read_text())["joints"]["all"]
    tight = {"all": {**joints, "limits": {**joints["limits"], "tracking": 0.03}}}
    another(session, 4.0, 8.0, 0.2, 0.4, limits=())
    found = replay(
        session, load_rig(rig_file(tmp_path, "arm_can", joints=tight), interpret=False), said=said, factor=10
    )
    with pytest.raises(RunError) as failed:
        found.try_all(HardwareTrials(found.rig, [1], 1, 1.5).candidates(session))
    names = [run.name for run in found.runs]
    assert names == ["gains of the rig", "trial 1", "return with the last safe gains"], said
    first, stopped, back = found.runs
    assert re.search(r"joint '\w+' is 0\.03\d* rad", stopped.failure) and back.failure == ""
    assert back.values == first.values
    assert str(failed.value) == f"tune: trial 1: {stopped.failure}; the last safe gains are in {found.gains_file}"
    start, end = (back.run["shoulder/position"][k] for k in (0, -1))
    assert abs(start + math.radians(40.0)) > 0.01 and end == pytest.approx(math.radians(-40.0), abs=0.005)
    assert found.best is first


def test_a_limit_that_the_real_rig_does_not_hold_ends_it(session, bench, real):
    """The gains of the rig hold it."""
    first = replay(session, real)
    first.try_all([])
    bound = 1.3 * first.runs[0].real["error_max"]
    (limit,) = (limit for limit in session.evaluator.objective.limits if limit.measure.name == "error_max")
    another(session, 12.0, 24.0, 0.8, 1.5, limits=(replace(limit, bound=bound),))
    found = replay(session, real)
    found._refused = lambda ladder: ""  # the simulation would refuse it
    why = rf"^tune: trial 1.*: error_max is [\d.]+ rad, above its limit of {bound:.4g} rad; the last"
    with pytest.raises(RunError, match=why):
        found.try_all(HardwareTrials(real, [1], 1, 1.5).candidates(session))
    assert found.runs[-1].failure and "return" not in found.runs[-1].name  # the motion had ended by itself


def test_a_candidate_that_the_simulation_refuses_does_not_run(session, bench, real):
    said = []
    another(session, 9e4, 9e4, 0.01, 0.01)
    found = replay(session, real, said=said)
    found.try_all(HardwareTrials(real, [1], 1, 1.5).candidates(session))
    assert [run.name for run in found.runs] == ["gains of the rig"]
    assert said[-1].startswith("trial 1 is left out: ")


def test_the_misfit_to_a_log_is_of_what_the_drives_measured(session, bench, real, tmp_path):
    """The log is the run of the model, which the real arm is heavier than."""
    rig = session.evaluator.rig
    run = rig.run()
    names = [f"{joint}/{what}" for joint in JOINTS for what in ("position", "velocity", "effort")]
    rows = np.column_stack([run.t, *(run[name] for name in names)])
    np.savetxt(tmp_path / "log.csv", rows, "%.17g", ",", header=",".join(["t", *names]), comments="")
    keys = TuningKeys(parameters=session.request.parameters, minimise={"misfit": None}, measured=f"{tmp_path}/log.csv")
    session.evaluator = evaluator_of(rig, keys)
    found = replay(session, real)
    found.try_all([])
    (first,) = found.runs
    expected = 0.0
    for joint in JOINTS:
        squares = []
        for real_name, what in (("measured_position", "position"), ("measured_velocity", "velocity"), ("effort",) * 2):
            values, log = first.run[f"{joint}/{real_name}"][: len(run.t)], run[f"{joint}/{what}"]
            squares.append(np.nanmean((values - log) ** 2) / np.var(log))
        expected += math.sqrt(np.mean(squares))
    assert first.good and first.real["misfit"] == pytest.approx(expected, rel=1e-9)
    assert 0.0 < first.simulated["misfit"] < first.real["misfit"] < 1.0


def test_nothing_runs_without_confirmation(session, real):
    def refuse(lines):
        raise InputError("not confirmed, the motors stay off")

    found = HardwareReplay(session, real, refuse, print)
    with pytest.raises(InputError, match=r"^not confirmed, the motors stay off$"):
        found.try_all(HardwareTrials(real, (), 1, 1.5).candidates(session))
    assert found.runs == [] and not found.gains_file.exists()


# --- margins --------------------------------------------------------------------------------------------


def test_the_margins_that_a_session_promises_are_those_of_a_rig_that_is_heavier(promising, bench, real):
    """Tuned on plants of ± 20 %, measured through the driver on a plant that nobody has seen."""
    asked, said = [], []
    found = replay(promising, real, asked, said)
    found.try_all(HardwareTrials(real, (), 1, 1.5).candidates(promising))
    best, bounds = found.best, {limit.measure.figure: limit.bound for limit in promising.evaluator.objective.limits}
    assert best.name == f"trial {promising.best.number}", said
    assert [margins.joint for margins in found.margins] == JOINTS
    for margins in found.margins:
        assert margins.name == best.name and margins.failure == ""
        for figure, value in margins.measured.items():
            assert bounds[figure] <= margins.promised[figure] <= margins.simulated[figure]
            assert value >= bounds[figure], margins.joint
        # it is another plant: heavier, and so are the joints that it is coupled with; around the crossover
        hertz = margins.loop.response.omega / (2.0 * math.pi)
        ratio = np.abs(margins.loop.response.loop / margins.loop.linear)[(hertz > 10.0) & (hertz < 100.0)]
        assert len(ratio) > 15 and 0.7 < np.median(ratio) < 0.93, margins.joint
    refused = [trial.outcome for trial in promising.trials if "margin is" in trial.outcome.failed]
    assert refused and not any(outcome.stopped for outcome in refused)  # the limits decided
    assert [lines[-1] for lines in asked[-2 * len(JOINTS) :: 2]] == [
        f"{best.name}: an effort of 0.5 N·m in {m.joint}, {m.loop.response.omega[0] / 2 / math.pi:.3g} to 333 Hz"
        for m in found.margins
    ]
    write_hardware_report(found, found.folder / "report.html")
    text = (found.folder / "report.html").read_text()
    assert "<h2>Margins</h2>" in text and text.count("<svg ") == len(JOINTS) * (len(found.runs) + 2)


def test_gains_that_lack_a_margin_on_the_real_rig_are_no_result(promising, bench, real):
    """Half of the damping: the simulation would refuse it."""
    another(promising, 60.0, 120.0, 0.9, 1.8)
    found = replay(promising, real, factor=10.0)
    found._refused = lambda ladder: ""
    with pytest.raises(RunError) as failed:
        found.try_all(HardwareTrials(real, [1], 1, 1.5).candidates(promising))
    assert [run.name for run in found.runs] == ["gains of the rig", "trial 1"]
    (measured,) = [margins for margins in found.margins if margins.name == "trial 1"]
    assert 0.1 < measured.measured["disk_margin"] < 0.9
    value = f"{measured.measured['disk_margin']:.4g}"
    why = rf"tune: trial 1: disk_margin of base is {value} as measured, below its limit of 0\.9"
    rest = rf"; the best gains that hold it are in {re.escape(str(found.gains_file))}"
    assert re.fullmatch(why + rest, str(failed.value))
    assert found.best is found.runs[0] and found.gains_file.exists()


def test_a_relay_on_real_drives(command: Command, bench):
    """The heavier arm, through the driver: about 1.2 times the effort for the same swing."""
    relay = ("--measure", "relay", "--joint", "base", "--amplitude", "0.5", "--hysteresis", "0", "--yes")
    code, out, err = command("analyze", bench / "arm_can.yaml", *relay, "--json", "r.json")
    assert (code, err) == (0, []), out
    found = json.loads(Path("r.json").read_text())["relay"]["base"]
    plant, linear = (complex(found[side]["real"], found[side]["imag"]) for side in ("plant", "linear"))
    assert 0.6 < abs(plant / linear) < 1.05


# --- the command ----------------------------------------------------------------------------------------


@pytest.fixture
def on_hardware(command: Command, place, tmp_path):
    shutil.copytree(place / "s", tmp_path / "s")
    return lambda *words: command(
        "tune", "gains", place / "arm_sim.yaml", "--on-hardware", place / "arm_can.yaml", *words
    )


def test_the_command_replays_a_session(on_hardware, bench):
    code, out, err = on_hardware("--replay", "s", "--candidates", "1", "--step-factor", "9", "--yes")
    assert (code, err) == (0, [])
    lines = out.splitlines()
    assert lines[0] == "arm_can moves real motors:"
    assert any(re.fullmatch(r"gains of the rig: cost [\d.]+, simulated [\d.]+", line) for line in lines)
    assert any(re.fullmatch(r"trial \d+: cost [\d.]+, simulated [\d.]+", line) for line in lines)
    assert lines[-2:] == ["wrote    report s/hardware_1/report.html", "wrote    gains s/hardware_1/gains.yaml"]


def test_without_a_terminal_it_must_be_confirmed_on_the_command_line(on_hardware, said):
    code, out, err = on_hardware("--replay", "s")
    assert code == 2 and out.startswith("arm_can moves real motors:\n")
    said(err)


@pytest.mark.parametrize("words", [("--replay", "nowhere"), ("--trial", "99"), ("--step-factor", "1")], ids=" ".join)
def test_options_that_do_not_fit(on_hardware, words, said):
    code, _, err = on_hardware(*(("--replay", "s") if "--replay" not in words else ()), *words)
    assert code == 2
    said(err)


def test_a_replay_needs_a_real_rig(command: Command, place, tmp_path, said):
    shutil.copytree(place / "s", tmp_path / "s")
    rig = shutil.copy(place / "arm_sim.yaml", tmp_path)
    for words in ((), ("--on-hardware", rig)):
        said(command.refuses("tune", "gains", rig, "--replay", "s", *words))


def test_trials_that_failed_or_will_not_be_are_not_tried(session, real):
    failed = next(trial.number for trial in session.trials if not trial.outcome.feasible)
    with pytest.raises(InputError, match=rf"^--trial: trial {failed} failed in simulation: .*; choose another$"):
        HardwareTrials(session.evaluator.rig, [failed], 1, 1.5).candidates(session)
    with pytest.raises(InputError, match=r"^--trial: there will be no trial 99; its trials are 0 to \d+$"):
        HardwareTrials(real, [99], 1, 1.5).check(session.evaluator, session.request)


# --- parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "goal", "factor", "expected"),
    [
        ([1.0], [8.0], 2.0, [[2], [4], [8]]),
        ([8.0], [1.0], 2.0, [[4], [2], [1]]),
        ([2.0, 1.0], [2.0, 4.0], 2.0, [[2, 2], [2, 4]]),
        ([0.0], [10.0], 2.0, [[2.5], [5], [7.5], [10]]),
        ([0.0], [0.0], 2.0, [[0.0]]),
        ([3.0], [3.0], 1.5, [[3.0]]),
    ],
)
def test_steps(start, goal, factor, expected):
    np.testing.assert_allclose(steps_between(np.array(start), np.array(goal), factor), expected, rtol=1e-12)


def test_figures_of_a_run_are_those_of_rollouts():
    """All metrics, of the same run."""
    rig = turntable(joints={"axis": {"limits": {"effort": 80.0}}}, schedule={"duration": 1.0})
    request = TuningKeys(parameters={"arm.kp": "1..9"}, minimise=dict.fromkeys(METRICS), limits={"axis/velocity": 99})
    objective = evaluator_of(rig, request).objective
    run = rig.run()
    found = figures_of_run(run, rig, objective, len(run.t))
    batch = rig.rollouts(metrics=list(METRICS))
    for name in METRICS:
        np.testing.assert_allclose(found[name], batch[name], rtol=1e-9, err_msg=name)
    assert found["axis/velocity"] == np.abs(run["axis/velocity"]).max()
