"""Named frames: signals of their pose and velocity, events on them, their names in controllers; mistakes."""

import numpy as np
import pytest

from cosim.core.recordings.reader import read_recording
from tests.kit.rigs import controller, rig_in, signal_units

RIG = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies:
    - {name: upper, joint: a, axis: [0, 1, 0], mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.02, 0.02]}
    - {name: fore, joint: b, axis: [0, 0, 1], origin: {xyz: [0.4, 0, 0]}, mass: 1 kg, com: [0.2, 0, 0],
       inertia: [0.01, 0.02, 0.02]}
  frames:
    - {name: tip, link: fore, origin: {xyz: [30 cm, 0, 10 cm], rpy: [20 deg, 0, 0]}}
    - {name: mark, link: base, origin: {xyz: [1, 2, 3]}}
joints: {a: {initial: {position: 0.3, velocity: 1}}, b: {initial: {position: -0.4, velocity: 2}}}
schedule: {step: 1 ms, duration: 0.2, integrator: rk4}
"""


def test_pose_and_velocity_are_signals(tmp_path):
    rig = rig_in(tmp_path, RIG)
    run, model = rig.run(), rig.plant.model
    q, v = (np.column_stack([run[f"{name}/{what}"] for name in "ab"]) for what in ("position", "velocity"))
    pose, jacobian = model.frame_pose(q, "tip"), model.frame_jacobian(q, "tip")
    for k, axis in enumerate("xyz"):
        np.testing.assert_allclose(run[f"tip.{axis}/position"], pose[:, k, 3], atol=1e-14)
        np.testing.assert_allclose(run[f"tip.{axis}/velocity"], (jacobian[:, k] * v).sum(axis=1), atol=1e-13)
        change = np.gradient(run[f"tip.{axis}/position"], run.t)[1:-1]
        np.testing.assert_allclose(run[f"tip.{axis}/velocity"][1:-1], change, atol=1e-3)
        assert set(run[f"mark.{axis}/position"]) == {1.0 + k} and set(run[f"mark.{axis}/velocity"]) == {0.0}
    roll, pitch, yaw = (run[f"tip.{angle}/position"] for angle in ("roll", "pitch", "yaw"))
    np.testing.assert_allclose(pose[:, 2, 0], -np.sin(pitch), atol=1e-14)
    np.testing.assert_allclose(pose[:, 2, 1], np.cos(pitch) * np.sin(roll), atol=1e-14)
    np.testing.assert_allclose(pose[:, 1, 0], np.cos(pitch) * np.sin(yaw), atol=1e-14)
    units = signal_units(rig)
    assert [units[f"tip.{name}"] for name in ("x/position", "z/velocity", "yaw/position")] == ["m", "m/s", "rad"]


def test_an_event_happens_where_the_tip_passes_a_height(tmp_path):
    event = "events: [{do: latch, of: b, when: {signal: tip.z/position, below: -20 cm}}]\n"
    run = rig_in(tmp_path, RIG + event).run()
    (found,) = run.events
    k = int(np.searchsorted(run.t, found.t))
    z = run["tip.z/position"]
    assert z[0] > -0.2 and z[k - 1] > -0.2 > z[k + 1]
    assert abs(np.interp(found.t, run.t[k - 1 : k + 1], z[k - 1 : k + 1]) + 0.2) < 1e-5
    assert set(run["b/velocity"][k + 1 :]) == {0.0}


def test_a_controller_takes_the_frame_by_its_name(tmp_path):
    lines = "effort = self.model.frame_jacobian(self.model.coordinates(u['all_position']), 'tip')[2, :1]"
    push = controller(lines).replace("params, []", "params, []; self.model = context.model")
    push = push.replace(
        "joint_signals(FEEDBACK, 1)", "{**joint_signals(FEEDBACK, 1), **joint_signals(('all_position',), 2)}"
    )
    rig = rig_in(tmp_path, RIG + "controllers: [{type: push.py, joints: [a]}]\n", push=push)
    assert rig.tick_model.untraceable == {}
    run = rig.run()
    jacobian = rig.plant.model.frame_jacobian(np.column_stack([run["a/position"], run["b/position"]]), "tip")
    np.testing.assert_allclose(run["a/command_effort"], jacobian[:, 2, 0], atol=1e-13)


MISTAKES = {
    "no such link": ("link: fore", "link: fort"),
    "the name of a link": ("name: tip", "name: fore"),
    "a name twice": ("name: mark", "name: tip"),
    "the name of a joint": ("name: tip", "name: a"),
    "no link": ("link: fore, ", ""),
    "a bound in another unit": (
        "schedule:",
        "events: [{do: latch, of: b, when: {signal: tip.z/position, below: 10 deg}}]\nschedule:",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(command, tmp_path, said, case):
    (tmp_path / "rig.yaml").write_text(RIG.replace(*MISTAKES[case]).lstrip("\n"))
    (line,) = command.refuses("check", "rig.yaml")
    said(line)


def test_they_are_plotted_and_recorded(command, tmp_path):
    (tmp_path / "rig.yaml").write_text(RIG)
    signals = ("--plot", "a.png", "--plot-signals", "tip.x/position,tip.yaw/position,tip.z/velocity")
    code, _, err = command("run", "rig.yaml", "--duration", "0.05", "--record", "a.mcap", *signals)
    assert (code, err) == (0, [])
    samples = read_recording("a.mcap").signals
    assert set(samples["mark.y/position"]) == {2.0} and len(set(samples["tip.x/position"])) > 40
    assert (tmp_path / "a.png").stat().st_size > 10_000
