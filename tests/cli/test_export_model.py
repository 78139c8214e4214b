"""`cosim export model` as a user calls it: each format, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.export.writer import ENDINGS
from cosim.mechanics.multibody.description.robot_formats import format_of, read_robot

RIGS = Path(__file__).parents[2] / "rigs"
FOUR_BAR = RIGS / "mechanisms" / "four_bar.yaml"
MOVING = RIGS / "mechanisms" / "arm_on_moving_base.yaml"


@pytest.fixture
def export(command):
    return lambda *words: command("export", "model", *words)


@pytest.mark.parametrize("ending", [*ENDINGS, ".SDF"])
def test_each_format_holds_the_mechanism_of_the_rig(ending, export, command, said):
    code, out, err = export("rig.yaml", "-o", f"m{ending}")
    assert (code, err) == (0, [])
    said(out)
    robot = read_robot(Path(f"m{ending}"), format_of(Path(f"m{ending}")))
    assert [joint.name for joint in robot.mechanism.joints if joint.kind != "fixed"] == ["hinge"]
    code, out, err = command("export", "model", f"m{ending}", "-o", "again.urdf")
    assert (code, err) == (0, []) and Model.from_urdf("again.urdf").joint_names == ("hinge",)


def test_values_of_the_command_line_are_written(export):
    assert export("rig.yaml", "-o", "m.urdf", "--set", "joints.hinge.limits.velocity=2.5")[0] == 0
    (hinge,) = (joint for joint in Model.from_urdf("m.urdf").joints if joint.kind != "fixed")
    assert hinge.max_velocity == 2.5


def test_an_earlier_output_is_replaced(export):
    Path("m.sdf").write_text("old")
    assert export("rig.yaml", "-o", "m.sdf")[0] == 0
    assert Path("m.sdf").read_text().startswith("<?xml")


REFUSED = {
    "another ending": ("rig.yaml", "-o", "m.txt"),
    "no ending": ("rig.yaml", "-o", "m"),
    "an ending that is only read": ("rig.yaml", "-o", "m.usda"),
    "no output": ("rig.yaml",),
    "no folder": ("rig.yaml", "-o", "none/m.sdf"),
    "a folder": ("rig.yaml", "-o", "folder.sdf"),
    "no rig": ("none.yaml", "-o", "m.sdf"),
    "its own robot file": ("rig_of_robot.yaml", "-o", "robot.urdf"),
    "itself": ("robot.urdf", "-o", "robot.urdf"),
    "a value of a robot file": ("robot.urdf", "-o", "m.sdf", "--set", "joints.hinge.latched=true"),
    "a loop in URDF": (str(FOUR_BAR), "-o", "m.urdf"),
    "a joint of user code": (str(MOVING), "-o", "m.sdf"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_leaves_no_file_and_changes_none(case, export, said):
    export("rig.yaml", "-o", "robot.urdf")
    Path("rig_of_robot.yaml").write_text("mechanism: {urdf: robot.urdf}\nschedule: {duration: 1 s}\n")
    Path("folder.sdf").mkdir()
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    code, out, err = export(*REFUSED[case])
    assert (code, out) == (2, "")
    said([line.replace(str(RIGS), "rigs") for line in err])
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
