"""What rigs take of an MJCF file beside its mechanism: the start, keyframes, carried bodies, actuators."""

import mujoco
import numpy as np
import pytest

from cosim import load_rig
from cosim.core.errors import InputErrors, RunWarning
from tests.kit.refusals import raised

STEP, TICKS = 5e-4, 400
LIGHT = '<inertial pos="0.1 0.02 0" mass="1" diaginertia="0.01 0.02 0.025"/>'
BODIES = f"""<body name="a" pos="0 0 1"><joint name="h" axis="0 1 0" ref="20"/>{LIGHT}
    <body name="c" pos="0.2 0 0" gravcomp="0.5"><joint name="ball" type="ball"/>{LIGHT}</body></body>
  <body name="b" pos="1 2 3" euler="0 0 90"><freejoint name="f"/>{LIGHT}</body>"""
HOME = 'qpos="0.5 1 0.2 0.1 0 0 1 5 0.5 0.5 0.5 0.5" qvel="0.1 0.2 0.3 0.4 1 2 3 0.1 0.2 0.3"'
TEXT = f'<mujoco><worldbody>{BODIES}</worldbody><keyframe><key name="home" {HOME}/></keyframe></mujoco>'


def rig_of(folder, text, keys="", more=""):
    (folder / "model.xml").write_text(text)
    file = folder / "rig.yaml"
    file.write_text(
        f"mechanism: {{mjcf: model.xml{keys}}}\n{more}schedule: {{step: {STEP * 1e3} ms, duration: 0.2 s}}\n"
    )
    return file


def end_of(text, keyframe=False, gravity=None):
    """Positions of the hinge and of the free body in MuJoCo after the run."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, STEP
    model.opt.gravity[:] = model.opt.gravity if gravity is None else gravity
    data = mujoco.MjData(model)
    if keyframe:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, TICKS)
    return np.array([data.joint("h").qpos[0], *data.joint("f").qpos[:3]])


def found_at_end(file):
    run = load_rig(file).run()
    return np.array([run[f"{name}/position"][-1] for name in ("h", "f.x", "f.y", "f.z")])


def test_a_rig_begins_where_the_file_is(tmp_path):
    assert np.abs(found_at_end(rig_of(tmp_path, TEXT)) - end_of(TEXT)).max() < 1e-8


def test_a_rig_begins_in_a_keyframe(tmp_path):
    assert np.abs(found_at_end(rig_of(tmp_path, TEXT, ", keyframe: home")) - end_of(TEXT, True)).max() < 1e-8


def test_what_the_rig_gives_wins(tmp_path):
    more = "joints: {h: {initial: {position: 0.1}}, f: {initial: {position: [0, 0, 9, 0, 0, 0, 1]}}}\n"
    spec = load_rig(rig_of(tmp_path, TEXT, ", keyframe: home", more)).spec
    assert spec.joints["h"].initial_position == 0.1 and spec.joints["h"].initial_velocity == 0.0
    assert spec.multi_dof_joints["f"].position[2] == 9.0
    assert spec.multi_dof_joints["ball"].velocity == (0.2, 0.3, 0.4)  # of the keyframe


def test_a_body_is_carried_against_the_gravity_of_the_rig(tmp_path):
    gravity = [1.0, 0.0, -4.0]
    file = rig_of(tmp_path, TEXT, f", gravity: {gravity}")
    assert np.abs(found_at_end(file) - end_of(TEXT, gravity=gravity)).max() < 1e-8


@pytest.mark.parametrize("keys", [", keyframe: hme", ", actuators: file", ", actuators: all"])
def test_mistakes(tmp_path, keys, said):
    said(raised(InputErrors, load_rig, rig_of(tmp_path, TEXT, keys)))


def test_a_keyframe_of_a_robot_without_one(tmp_path, said):
    text = TEXT.replace('<key name="home"', "<!--").replace("/></keyframe>", "--></keyframe>")
    said(raised(InputErrors, load_rig, rig_of(tmp_path, text, ", keyframe: home")))


ACTUATED = TEXT.replace("</worldbody>", '</worldbody><actuator><position name="servo" joint="h" kp="3"/></actuator>')


def test_actuators_that_are_not_taken_are_warned_of(tmp_path, said):
    with pytest.warns(RunWarning) as caught:
        load_rig(rig_of(tmp_path, ACTUATED))
    said([str(one.message) for one in caught])


DRIVEN = {
    "an actuator": "joints: {h: {actuator: {type: ideal}}}",
    "a motion": "joints: {h: {prescribed: {type: sine, amplitude: 0.1, frequency: 1}}}",
    "a latch": "joints: {h: {latched: true}}",
    "a controller": "controllers: [{type: passthrough, interface: effort, joints: [h]}]",
}


@pytest.mark.parametrize("by", DRIVEN)
def test_joints_that_the_rig_drives_are_not_warned_of(tmp_path, by):
    assert not load_rig(rig_of(tmp_path, ACTUATED, more=f"{DRIVEN[by]}\n")).spec.mechanism.warnings


def test_the_actuator_of_the_rig_wins(tmp_path):
    more = "joints: {h: {actuator: {type: ideal, max_effort: 2}}}\n"
    rig = load_rig(rig_of(tmp_path, ACTUATED, ", actuators: file", more))
    assert rig.plant.actuators["h"].params.max_effort == 2.0


def test_check_lists_what_is_taken(tmp_path, command, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    rig = rig_of(tmp_path, ACTUATED, ", actuators: file, keyframe: home").name
    said([line for line in command("check", rig)[1].splitlines() if "of the robot file" in line])


def test_a_new_rig_takes_the_actuators(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"""<mujoco><worldbody><body name="a" pos="0 0 1"><joint name="h" axis="0 0 1" damping="0.5"/>{LIGHT}
      <body name="c" pos="0.2 0 0"><joint name="k" axis="0 0 1" damping="0.1"/>{LIGHT}</body></body></worldbody>
      <actuator><position name="servo" joint="h" kp="800" kv="40" forcerange="-80 80"/>
        <motor name="motor" joint="k" gear="10" ctrlrange="-3 3"/></actuator></mujoco>"""
    (tmp_path / "model.xml").write_text(text)
    code, out, err = command("new", "mine.yaml", "model.xml", "--actuator", "file")
    assert code == 0, err
    rig = load_rig(tmp_path / "mine.yaml")
    assert rig.plant.actuators["h"].params.bias_position == -800.0
    assert rig.plant.actuators["k"].params.max_effort == 30.0
    assert {loop.name for loop in rig.tick_model.loops} == {"motion", "reference"}
    joints = rig.run().summary["joints"]
    assert joints["k"]["error_max"] < 2e-3 and joints["h"]["error_max"] < 0.02
    code, out, _ = command("new", "other.yaml", "model.xml")
    assert code == 0 and "take them with --actuator file" in str(out)
