"""Iterative learning: the error of a repeated motion falls from run to run, tables, recordings, the command, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.apps.learning.iteration import Feedforward, learn, next_feedforward, relative_error, with_feedforward
from cosim.apps.learning.recorded_rig import feedback_effort, feedforward_in, learning_loops
from cosim.core.errors import InputErrors
from tests.kit.engines import python_rows
from tests.kit.given import beside
from tests.kit.messages import Said
from tests.kit.refusals import raised, refusal
from tests.kit.rigs import controller
from tests.kit.samples import FOLDER

GIVEN = beside(__file__)

UR5 = FOLDER / "ur5_sim.yaml"
PAYLOAD = GIVEN["payload"]
TWO_LINK = GIVEN["two_link"]
CONTROLLERS = {
    "feedforward_pd": "type: feedforward_pd, kp: [300, 150], kd: [20, 8], friction: false",
    "computed_torque": "type: computed_torque, bandwidth: 5 Hz, friction: false",
    "pd_gravity": "type: pd_gravity, kp: [300, 150], kd: [20, 8]",
    "pid": "type: pid, kp: [300, 150], ki: [200, 100], kd: [20, 8]",
    "joint_impedance": "type: joint_impedance, stiffness: [300, 150], friction: false",
}


@pytest.fixture
def two_link(tmp_path: Path) -> Any:
    def make(control: str = CONTROLLERS["feedforward_pd"], more: str = "", *overrides: str) -> Rig:
        (tmp_path / "payload.py").write_text(PAYLOAD)
        text = TWO_LINK.replace("CONTROLLER", control).replace("MORE", more)
        (tmp_path / "rig.yaml").write_text(text.replace("\n    ", "\n"))
        return load_rig(tmp_path / "rig.yaml", overrides)

    return make


def test_the_error_of_a_ur5_falls_from_run_to_run(tmp_path: Path) -> None:
    """Its drives have friction that its model lacks, and it carries an unknown load of 2 kg."""
    (tmp_path / "payload.py").write_text(PAYLOAD)
    payload = "{name: payload, type: %s, between: [tool0], known: false, params: {weight: 20 N}}" % (
        tmp_path / "payload.py"
    )
    rig = load_rig(UR5, [f"mechanism.forces=[{payload}]"])
    learned = learn(rig, 4)
    assert learned.best.number == 4
    assert (np.diff(learned.error) < 0.0).all()
    assert learned.error[1] < 0.15 and learned.error[-1] < 0.01
    for name, rms in learned.error_rms.items():
        assert (np.diff(rms) < 0.0).all(), name
        assert learned.error_max[name][-1] < 0.1 * learned.error_max[name][0]


def test_it_falls_to_the_noise_of_the_encoders(tmp_path: Path) -> None:
    """The noise is another one in each run. What is left is the error that the exact feedforward has with it."""
    noise = ["joints.all.encoder.noise=0.2 mrad", "schedule.duration=4.6 s"]
    rig = load_rig(UR5, noise)
    learned = learn(rig, 7, gain=0.5, cutoff=6.0)
    exact = learn(load_rig(UR5, noise[1:]), 6, cutoff=6.0)
    summary = with_feedforward(rig, exact.feedforward, tmp_path / "exact.csv", 99).run().summary
    floor = np.array([summary["joints"][name]["error_rms"] for name in rig.joints])
    assert (floor > 5.0 * np.array([exact.error_rms[name][-1] for name in rig.joints])).all()  # it is the noise
    first = np.array([rms[0] for rms in learned.error_rms.values()])
    least = relative_error(floor, first)
    assert learned.error[-1] < 1.2 * least < 0.25
    assert (np.diff(learned.error[learned.error > 1.3 * least]) < 0.0).all()
    assert (learned.error > 1.3 * least).sum() >= 3


@pytest.mark.parametrize("name", CONTROLLERS)
def test_every_controller_with_feedback_learns(two_link: Any, name: str) -> None:
    learned = learn(two_link(CONTROLLERS[name]), 5, cutoff=15.0)
    assert (np.diff(learned.error) < 0.0).all()
    assert learned.error[-1] < 0.1


def test_a_smaller_gain_learns_more_slowly(two_link: Any) -> None:
    whole, half = (learn(two_link(), 3, gain=gain).error for gain in (1.0, 0.5))
    assert half[1] == pytest.approx(0.5, abs=0.15) and whole[-1] < half[-1]


def test_a_cutoff_beyond_the_loop_diverges_and_the_best_run_is_kept(two_link: Any) -> None:
    rig = two_link("type: feedforward_pd, kp: [300, 150], kd: [1, 0.5], friction: false")
    learned = learn(rig, 6, cutoff=100.0)
    assert learned.error[-1] > learned.error.min()
    assert learned.best.number == int(np.argmin(learned.error))


def test_the_feedback_is_that_of_the_gains(two_link: Any) -> None:
    rig = two_link()
    run = rig.run()
    (loop,) = learning_loops(rig)
    found = feedback_effort(rig, loop, run)
    for k, (name, kp, kd) in enumerate((("shoulder", 300.0, 20.0), ("elbow", 150.0, 8.0))):
        error = run[f"{name}/reference_position"] - run[f"{name}/position"]
        rate = run[f"{name}/reference_velocity"] - run[f"{name}/velocity"]
        np.testing.assert_allclose(found[:, k], kp * error + kd * rate, atol=1e-9)


def test_what_is_learned_is_the_effort_that_the_model_lacks(two_link: Any) -> None:
    """At the end of the motion: the moments of the unknown weight."""
    learned = learn(two_link(), 8)
    q = np.radians([60.0, 20.0])  # of the links, downwards
    elbow = -8.0 * 0.3 * np.cos(q[1])
    shoulder = elbow - 8.0 * 0.4 * np.cos(q[0])
    final = {name: efforts[-1] for name, efforts in learned.feedforward.efforts.items()}
    assert final["elbow"] == pytest.approx(elbow, rel=2e-2)
    assert final["shoulder"] == pytest.approx(shoulder, rel=2e-2)


def test_a_recording_is_learned_from_like_its_run(two_link: Any, tmp_path: Path, command: Any) -> None:
    rig = two_link()
    rig.run().save(tmp_path / "run.npz")
    out = command.prints(
        "tune", "feedforward", tmp_path / "rig.yaml", "--save", tmp_path / "a.csv", "--from", tmp_path / "run.npz"
    )
    assert (
        out == f"wrote     feedforward {tmp_path / 'a.csv'}; use it with trajectory: {{feedforward: {{file: a.csv}}}}\n"
    )
    assert (tmp_path / "a.csv").read_text() == next_feedforward(rig, rig.run()).csv()
    once = two_link(more=", feedforward: {file: a.csv}").run()
    assert once.summary["joints"]["elbow"]["error_rms"] < 0.3 * rig.run().summary["joints"]["elbow"]["error_rms"]


def test_the_command_prints_the_error_of_each_run(two_link: Any, tmp_path: Path, command: Any) -> None:
    two_link()
    out = command.prints("tune", "feedforward", tmp_path / "rig.yaml", "--save", tmp_path / "a.csv", "--iterations", 2)
    lines = out.splitlines()
    assert lines[0] == "run 0   error RMS 100 % of run 0"
    assert [line.split("  ")[0] for line in lines] == ["run 0", "run 1", "run 2", "wrote"]
    errors = [float(line.split("RMS ")[1].split()[0]) for line in lines[:3]]
    assert errors == sorted(errors, reverse=True)
    assert (tmp_path / "a.csv").read_text().startswith("t,shoulder,elbow\n0,")


def test_a_run_that_is_stopped_ends_the_learning_and_nothing_is_lost(
    two_link: Any, tmp_path: Path, command: Any
) -> None:
    two_link("type: feedforward_pd, kp: [300, 150], kd: [1, 0.5], friction: false")
    fast = ("--set", "joints.all.limits.velocity=3 rad/s", "--cutoff", 100, "--iterations", 40)
    code, out, (why,) = command("tune", "feedforward", tmp_path / "rig.yaml", "--save", tmp_path / "a.csv", *fast)
    *runs, wrote = out.splitlines()
    errors = [float(line.split("RMS ")[1].split()[0]) for line in runs]
    best, last = int(np.argmin(errors)), len(runs)
    assert code == 1 and wrote.startswith("wrote     feedforward")
    assert why.startswith(f"{tmp_path / 'rig.yaml'}: run {last}: stopped at tick ")
    assert why.endswith(f"; the feedforward of run {best} is kept; lower --gain or --cutoff")
    assert (tmp_path / "a.csv").read_text().startswith("t,shoulder,elbow\n0,")


def test_the_command_says_where_learning_went_wrong(two_link: Any, tmp_path: Path, command: Any) -> None:
    two_link("type: feedforward_pd, kp: [300, 150], kd: [1, 0.5], friction: false")
    words = (
        "tune",
        "feedforward",
        tmp_path / "rig.yaml",
        "--save",
        tmp_path / "a.csv",
        "--iterations",
        4,
        "--cutoff",
        100,
    )
    code, out, err = command(*words)
    lines = out.splitlines()
    errors = [float(line.split("RMS ")[1].split()[0]) for line in lines[:5]]
    assert (code, err) == (0, []) and min(errors) < errors[-1]
    best = errors.index(min(errors))
    assert lines[5] == f"the error of run {best} is the smallest; lower --cutoff or --gain to go on"


def test_a_table_has_twenty_rows_per_period_of_the_cutoff_and_the_last_tick(two_link: Any) -> None:
    rig = two_link()
    run = rig.run(duration=0.123)
    steps = np.diff(next_feedforward(rig, run, cutoff=10.0).t)
    np.testing.assert_allclose(steps[:-1], 5e-3, rtol=1e-9)
    assert next_feedforward(rig, run, cutoff=10.0).t[-1] == run.t[-1] and 0.0 < steps[-1] < 5e-3


def test_each_repetition_has_a_noise_of_its_own(two_link: Any, tmp_path: Path) -> None:
    rig, table = two_link(), Feedforward(np.array([0.0, 1.0]), {name: np.zeros(2) for name in ("shoulder", "elbow")})
    seeds = [with_feedforward(rig, table, tmp_path / "a.csv", *k).spec.schedule.seed for k in ((), (1,), (5,))]
    assert np.subtract(seeds, rig.spec.schedule.seed).tolist() == [0, 1, 5]


def test_learning_goes_on_from_what_was_learned(two_link: Any, tmp_path: Path) -> None:
    first = learn(two_link(), 2)
    first.feedforward.save(tmp_path / "a.csv")
    rig = two_link(more=", feedforward: {file: a.csv}")
    (loop,) = learning_loops(rig)
    t = np.array([0.0, 0.31, 0.77])
    table = np.stack([np.interp(t, first.feedforward.t, e) for e in first.feedforward.efforts.values()], axis=1)
    np.testing.assert_allclose(feedforward_in(loop, t), table, atol=1e-8)
    second = learn(rig, 2)
    whole = learn(two_link(), 4)
    for name in ("shoulder", "elbow"):
        np.testing.assert_allclose(second.error_rms[name], whole.error_rms[name][2:], rtol=1e-3)


def test_a_table_adds_to_the_effort_of_the_reference_in_both_engines(two_link: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,elbow,shoulder\n0.2,1,-2\n0.6,3,0\n1,0,0\n")
    keys = ", feedforward: {file: a.csv}, shaping: {type: zv, frequency: 5}"
    rig = two_link(more=keys)
    loop = rig.tick_model.loops[0]
    for t, expected in ((0.0, (-2, 1)), (0.3, (-1.5, 1.5)), (0.6, (0, 3)), (0.8, (0, 1.5)), (9.0, (0, 0))):
        np.testing.assert_allclose(loop.trajectory.sample(t)["effort"], expected, atol=1e-12)
    assert loop.trajectory.end == pytest.approx(1.0)
    np.testing.assert_allclose(python_rows(rig, 300), rig.run().values[:300], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("keys", ["{file: a.csv}", "{file: b.csv}", "{}"])
def test_errors_of_a_table_are_reported(two_link: Any, tmp_path: Path, keys: str, said: Said) -> None:
    (tmp_path / "a.csv").write_text("t,elbow\n0,1\n1,x\n")
    said(raised(InputErrors, two_link, more=f", feedforward: {keys}"))


def test_a_feedforward_is_written_as_a_table() -> None:
    table = Feedforward(np.array([0.0, 0.5]), {"a": np.array([1.0, 1.0 / 3.0]), "b": np.array([0.0, -2.0])})
    assert table.csv() == "t,a,b\n0,1,0\n0.5,0.333333333,-2\n"


def test_settings_out_of_range_are_refused(two_link: Any, said: Said) -> None:
    rig = two_link()
    for keys in ({"iterations": 0}, {"gain": 1.5}, {"gain": 0.0}, {"cutoff": 400.0}):
        said(refusal(learn, rig, **{"iterations": 1, **keys}))


@pytest.mark.parametrize("name", ["pendulum_chain", "arm_can"])
def test_rigs_that_cannot_learn(name: str, said: Said) -> None:
    """One follows no trajectory, the other has real motors, which do not return to their start by themselves."""
    path = FOLDER / f"{name}.yaml"
    said(refusal(learn, load_rig(path)).replace(str(path), path.name))


def test_a_controller_in_python_is_refused(tmp_path: Path, said: Said) -> None:
    source = controller("effort = np.array([5.0 if float(q[0]) < float(u['reference_position'][0]) else -5.0])")
    source = source.replace("joint_signals(FEEDBACK, 1)", "joint_signals((*FEEDBACK, 'reference_position'), 1)")
    (tmp_path / "push.py").write_text(source)
    (tmp_path / "rig.yaml").write_text(
        "mechanism:\n  bodies: [{name: a, joint: j, mass: 1 kg, inertia: [1, 1, 1]}]\n"
        "controllers:\n  - {type: push.py, trajectory: {type: quintic, goal: 1, duration: 0.1}}\n"
        "schedule: {duration: 0.2}\n"
    )
    said(refusal(learn, load_rig(tmp_path / "rig.yaml"), 1))


@pytest.mark.parametrize("sample", [True, False], ids=["another rig", "not all signals"])
def test_runs_that_do_not_fit_are_refused(
    two_link: Any, tmp_path: Path, command: Any, sample: bool, said: Said
) -> None:
    two_link()
    path = FOLDER / "two_link.yaml" if sample else tmp_path / "rig.yaml"
    load_rig(path, ["keep.signals=['shoulder/*']"]).run(duration=0.2).save(tmp_path / "run.npz")
    said(
        command.refuses("tune", "feedforward", tmp_path / "rig.yaml", "--save", "a.csv", "--from", tmp_path / "run.npz")
    )


def test_a_recording_of_another_rig_with_the_same_joints_is_refused(
    two_link: Any, tmp_path: Path, command: Any, said: Said
) -> None:
    two_link().run(record=tmp_path / "run.mcap")
    words = (
        "tune",
        "feedforward",
        tmp_path / "rig.yaml",
        "--save",
        tmp_path / "a.csv",
        "--from",
        tmp_path / "run.mcap",
    )
    assert command(*words)[0] == 0
    goal = "controllers.0.trajectory.goal=[60 deg, -30 deg]"
    for change in ("controllers.0.kd=[20, 9]", goal, "mechanism.bodies.1.mass=1.2"):
        said(command.refuses(*words, "--set", change))


def test_another_file_of_the_rig_is_refused(two_link: Any, tmp_path: Path, command: Any, said: Said) -> None:
    """The table that the recorded run had."""
    (tmp_path / "a.csv").write_text("t,elbow,shoulder\n0,0,0\n1,0,0\n")
    two_link(more=", feedforward: {file: a.csv}").run(record=tmp_path / "run.mcap")
    (tmp_path / "a.csv").write_text("t,elbow,shoulder\n0,0,0\n1,2,0\n")
    words = (
        "tune",
        "feedforward",
        tmp_path / "rig.yaml",
        "--save",
        tmp_path / "b.csv",
        "--from",
        tmp_path / "run.mcap",
    )
    said(command.refuses(*words))


def test_a_saved_run_of_another_trajectory_is_refused(two_link: Any, tmp_path: Path, said: Said) -> None:
    run = two_link().run()
    rig = load_rig(tmp_path / "rig.yaml", ["controllers.0.trajectory.delay=0.11 s"])
    said(refusal(next_feedforward, rig, run))


@pytest.mark.parametrize("words", GIVEN["the_command_refuses_wrong_options"])
def test_the_command_refuses_wrong_options(command: Any, words: str, said: Said) -> None:
    said(command.refuses("tune", "feedforward", "rig.yaml", "--save", *words.split())[-1:])
