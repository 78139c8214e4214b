"""`cosim new` of robots with closed loops: as many joints are actuated as move independently, and they follow."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import load_rig
from tests.kit.loop_robots import (
    LOOP_ROBOTS,
    mjcf_four_bar,
    mjcf_free_coupler,
    mjcf_joints,
    mjcf_parallelogram,
    mjcf_slider,
    mjcf_weld,
    sdf_four_bar,
)

FOLLOWS = 1e-3  # of the travel of a joint, what it may be off
BEHIND = 1e-2  # the same with motors, whose currents have a loop


@pytest.fixture
def new(command, tmp_path):
    """`cosim new rig.yaml` for the text of a robot -> (stdout, the rig)."""
    Path("rig.yaml").unlink()

    def write(text, file="robot.xml", *options):
        if file.endswith(".usda"):
            pytest.importorskip("pxr", reason="the package usd-core is not installed")
        Path(file).write_text(text)
        return command.prints("new", "rig.yaml", file, *options), yaml.safe_load(Path("rig.yaml").read_text())

    return write


def actuated_of(rig):
    return {name for name, joint in rig["joints"].items() if joint.get("actuator")}


def goals_of(rig):
    """Joint -> its goal, of the only controller."""
    (controller,) = rig["controllers"]
    return controller["trajectory"]["goal"]


def follows(off=FOLLOWS):
    """The run of a rig without objections that follows its goals with closed loops."""
    loaded = load_rig("rig.yaml")
    assert loaded.warnings == ([], [])
    run = loaded.run()
    summary = run.summary
    assert summary["outcome"] == "finished" and summary["guard"] == {}
    for name, joint in summary["joints"].items():
        if joint["error_max"] is not None:
            travel = np.ptp(run[f"{name}/reference_position"])
            assert travel > 0.0 and joint["error_max"] < off * travel
    assert all(constraint["violation_max"] < 1e-10 for constraint in summary["constraints"].values())
    return run


@pytest.mark.parametrize("kind", LOOP_ROBOTS)
def test_as_many_joints_are_driven_as_move_independently_and_they_follow(new, command, kind, said):
    robot = LOOP_ROBOTS[kind]
    out, rig = new(robot.text, robot.file)
    actuated = actuated_of(rig)
    assert len(actuated) == robot.independent
    assert all(len(actuated & any_of) == 1 for any_of in robot.actuated)
    assert set(goals_of(rig)) == actuated
    said([line for line in out.splitlines() if line.startswith("loops")])
    assert "warning" not in command.prints("check", "rig.yaml")
    follows()


@pytest.mark.parametrize("kind", LOOP_ROBOTS)
def test_motors_of_a_loop_follow(new, kind):
    """A motor has a rotor, whose inertia at the actuated joint alone is new."""
    robot = LOOP_ROBOTS[kind]
    _, rig = new(robot.text, robot.file, "--actuator", "dc_motor")
    kinds = {joint["actuator"]["type"] for joint in rig["joints"].values() if joint.get("actuator")}
    assert kinds == {"dc_motor"} and len(actuated_of(rig)) == robot.independent
    follows(BEHIND)


def test_the_rig_of_a_four_bar_in_full(new, said):
    new(mjcf_four_bar())
    said(Path("rig.yaml").read_text())


# what is special about a loop -> robot, actuated joint
SPECIAL = {
    "the slider is actuated at its dead centre": (mjcf_slider(0.0, "guide"), "guide"),
    "the slider is actuated beside its dead centre": (mjcf_slider(1.0, "guide"), "guide"),
    "the crank is actuated at the dead centre of the slider": (mjcf_slider(0.0, "turn"), "turn"),
    "two motions cross as drawn": (mjcf_parallelogram(0.0), "turn"),
    "a joint is drawn at its limit": (mjcf_parallelogram(60.0, 'range="0 1.5"'), "turn"),
    "a joint is drawn beyond its limits": (mjcf_parallelogram(60.0, 'range="0.3 1.5"'), "turn"),
    "a joint has a spring": (mjcf_weld().replace('name="turn"', 'name="turn" stiffness="5"'), "swing"),
    "a joint without drive has friction": (mjcf_weld().replace('name="pin"', 'name="pin" frictionloss="0.5"'), "turn"),
}


@pytest.mark.parametrize("what", SPECIAL)
def test_a_loop_starts_where_it_can_be_driven(new, what, said):
    text, actuated = SPECIAL[what]
    out, rig = new(text)
    assert actuated_of(rig) == {actuated}
    said([line for line in out.splitlines() if line.startswith("loops")])
    run = load_rig("rig.yaml").run()
    assert run.warnings == [] and run.summary["guard"] == {}
    travel = np.ptp(run[f"{actuated}/reference_position"])
    assert run.summary["joints"][actuated]["error_max"] < BEHIND * travel


def test_a_base_beside_a_loop_is_held_and_a_free_one_moves(new):
    base = '<worldbody><body name="b"><freejoint name="root"/><geom size="0.1" density="1000"/>'
    text = mjcf_four_bar().replace("<worldbody>", base).replace("</worldbody>", "</body></worldbody>")
    _, rig = new(text)
    assert rig["joints"]["root"] == {"latched": True} and actuated_of(rig) == {"swing"}
    assert np.ptp(follows()["root.y/position"]) == 0.0
    _, rig = new(text, "robot.xml", "--floating", "--force")
    assert "root" not in rig["joints"]
    assert np.ptp(follows()["root.y/position"]) > 1.0


def test_a_free_body_between_joints_is_not_held(new, said):
    out, rig = new(mjcf_free_coupler())
    said([line for line in out.splitlines() if line.startswith(("wrote", "loops"))])
    assert "float" not in rig["joints"] and actuated_of(rig) == {"turn"}
    assert np.ptp(follows()["float.x/position"]) > 1e-3


def test_actuators_of_the_file_that_would_work_against_others_are_left_out(new, command):
    for options in ([], ["--actuator", "file"]):
        _, rig = new(mjcf_joints(), "robot.xml", "--force", *options)
        assert "actuator" in rig["joints"]["second"] and rig["joints"]["second"]["actuator"] is None
        assert set(goals_of(rig)) == {"first"}
        assert "warning" not in command.prints("check", "rig.yaml")
        follows()


def test_limits_in_which_a_loop_cannot_close_are_refused(command, said):
    """The rocker stands at 0 wherever the crank may be: it swings by 0.5 rad at most."""
    limits = "<lower>1.5</lower><upper>2</upper>"
    Path("robot.sdf").write_text(sdf_four_bar().replace("<lower>-0.5</lower><upper>0.5</upper>", limits))
    said(command.refuses("new", "new.yaml", "robot.sdf"))
    assert not Path("new.yaml").exists()


@pytest.mark.parametrize("words", ["new rig.yaml robot.xml --force", "check rig.yaml", "run rig.yaml"])
def test_a_warning_of_the_robot_file_is_printed_once(new, command, words):
    new(mjcf_four_bar().replace("</worldbody>", '<body name="z"><geom size="0.1"/></body></worldbody>'), "robot.xml")
    text = Path("robot.xml").read_text().replace("<actuator>", '<option density="1.2"/><actuator>')
    Path("robot.xml").write_text(text)
    code, out, err = command(*words.split())
    assert code == 0
    assert sum("the forces of the fluid" in line for line in [*out.splitlines(), *err]) == 1


@pytest.mark.parametrize("range_", ["-0.001 3", "-0.001 0.01", "-0.001 0.1", "-0.00001 3", "0 3"])
def test_a_drawn_position_inside_of_the_limits_is_the_start(new, range_):
    """A steep polynomial, whose slide is drawn at 0 beside its lower limit or at it: s = 12 h + 200 h²."""
    body = '<body pos="0 {} 0"><joint {}/><geom type="box" size="0.1 0.02 0.02" mass="1"/></body>'
    hinge = body.format(0, 'name="h" axis="0 0 1" range="-180 180"')
    slide = body.format(1, f'name="s" type="slide" axis="1 0 0" range="{range_}"')
    law = '<equality><joint joint1="s" joint2="h" polycoef="0 12 200 0 0"/></equality>'
    _, rig = new(f"<mujoco><worldbody>{hinge}{slide}</worldbody>{law}</mujoco>")
    start = float(rig["joints"]["h"]["initial"]["position"].split()[0])
    assert (start == 0.0) == range_.startswith("-0.001 ")
    follows()
