"""`cosim new`: the rig that it writes runs as it is; wrong files and names get one line."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import load_rig
from cosim.apps.new.rig_size import check_number_of_joints
from cosim.core.errors import InputError
from cosim.mechanics.multibody.mechanism import Joint, Link, Mechanism, Pose
from tests.kit.refusals import raised
from tests.new.robots import ARM, LIMIT, joint, link, one_joint, robot


@pytest.fixture
def new(command, tmp_path):
    """`cosim new rig.yaml` for the text of a robot -> (exit code, stdout, lines of stderr)."""
    Path("rig.yaml").unlink()

    def write(text, *options, rig="rig.yaml", file="robot.urdf"):
        Path(file).write_text(text)
        return command("new", rig, file, *options)

    return write


def test_the_rig_of_an_arm_in_full(new, said):
    code, out, err = new(ARM)
    assert (code, err) == (0, [])
    said(out)
    said(Path("rig.yaml").read_text())


def test_the_rig_runs_as_it_is_and_tracks(new, command):
    new(ARM)
    run = load_rig("rig.yaml").run()
    for name in ("shoulder", "elbow"):
        assert run[f"{name}/position"].max() == pytest.approx(0.0873, abs=1e-4)
        assert run.summary["joints"][name]["error_max"] < 1e-4
    assert run.summary["guard"] == {}


# what a robot file may have: joints of every kind, names that YAML takes for values, no usable figures
ODD = robot(
    *(link(name, 0) for name in ("base", "dummy")),
    *(link(name) for name in ("column", "hand", "left", "right", "wheel", "lid", "load")),
    joint("yes", "base", "column", "prismatic", 'lower="0.1" upper="0.6" effort="0" velocity="0"'),
    joint("mount", "column", "dummy", "fixed"),
    joint("wrist: 1", "dummy", "hand", limit='lower="0" upper="0" effort="0" velocity="0"'),
    joint("grip", "hand", "left", "prismatic", 'lower="0" upper="0.02" effort="1000000" velocity="1e5"'),
    joint("follow", "hand", "right", "prismatic", LIMIT, '<mimic joint="grip" multiplier="-1"/>'),
    joint("7", "column", "wheel", "continuous", inside='<dynamics damping="0.01" friction="3"/>'),
    joint("hinge", "column", "lid", limit='lower="0.3" upper="0.3" effort="5" velocity="1"'),
    joint("loose", "column", "load", "floating"),
    name="odd",
)


def test_a_robot_with_everything_runs_as_it_is(new, said):
    code, out, err = new(ODD)
    assert (code, err) == (0, [])
    said(out)
    rig = load_rig("rig.yaml")
    joints = {name: (spec.actuator and spec.actuator.name, spec.latched) for name, spec in rig.spec.joints.items()}
    assert [joints[name] for name in ("yes", "wrist: 1", "grip")] == [("ideal", False)] * 3
    assert (joints["7"], joints["hinge"]) == (("dc_motor", False), (None, True))
    assert rig.spec.multi_dof_joints["loose"].latched
    run = rig.run(duration=1.5)
    travels = {"yes": 0.01, "wrist: 1": 0.0873, "grip": 0.002, "7": 0.0873}
    for name, travel in travels.items():
        assert run.summary["joints"][name]["error_max"] < 0.01 * travel
    assert run.summary["guard"] == {}


def test_the_base_may_be_free(new):
    code, out, _ = new(ARM.replace(link("base", 0), link("base")), "--floating")
    assert (code, out.splitlines()[0]) == (0, "wrote    rig.yaml: arm, 2 joints that move, base free")
    text = Path("rig.yaml").read_text()
    assert "  floating_base: true  # joint 'root_joint': nothing holds the base, so it falls\n" in text
    run = load_rig("rig.yaml").run(duration=0.5)
    assert run["root_joint.z/position"][-1] == pytest.approx(-9.81 * 0.5**2 / 2, rel=0.05)


def test_a_robot_without_joints_is_free(new):
    _, out, _ = new(robot(link("body"), name="drone"))
    assert out.splitlines()[0] == "wrote    rig.yaml: drone, 0 joints that move, base free"
    assert "controllers" not in yaml.safe_load(Path("rig.yaml").read_text())
    assert load_rig("rig.yaml").run(duration=0.1).summary["outcome"] == "finished"


def test_the_name_of_a_robot_with_a_line_break_stays_in_its_line(new):
    assert new(one_joint().replace('name="bot"', 'name="b&#10;ot: x"'))[0] == 0
    assert list(load_rig("rig.yaml").spec.joints) == ["j"]


def test_names_with_line_breaks_are_refused(new):
    code, _, err = new(one_joint().replace('"base"', '"ba&#10;- se: #"').replace('"j"', '"j&#10;: #1"'))
    assert code == 2 and len(err) == 2
    for kind, name, line in zip(("link", "joint"), (r"ba\n- se: #", r"j\n: #1"), err, strict=True):
        what = f"the name of a {kind} must be one line of printable characters, is '{name}'; rename it"
        assert line.endswith(f" {kind} '{name}': {what}")


def test_motors_and_bandwidth_are_options(new):
    new(one_joint(), "--actuator", "dc_motor", "--bandwidth", "20 Hz")
    data = yaml.safe_load(Path("rig.yaml").read_text())
    assert data["joints"]["j"]["actuator"]["type"] == "dc_motor"
    assert data["controllers"][0]["bandwidth"] == "20 Hz"
    assert data["schedule"]["step"] == "0.5 ms"
    run = load_rig("rig.yaml").run()
    assert run.summary["joints"]["j"]["error_max"] < 0.02 * 0.0873


DRIVEN = ARM.replace(
    "</robot>",
    """<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="shoulder"/>
<actuator name="m"><mechanicalReduction>-50</mechanicalReduction></actuator></transmission>
<ros2_control name="s" type="system"><joint name="elbow">
<command_interface name="position"><param name="min">-1</param><param name="max">1.5</param></command_interface>
<command_interface name="velocity"><param name="min">-2</param><param name="max">2</param></command_interface>
<state_interface name="position"><param name="initial_value">0.3</param></state_interface></joint></ros2_control>
</robot>""",
)


def test_gears_limits_and_starts_of_the_robot_file_are_in_the_rig(new, said):
    code, out, err = new(DRIVEN, "--actuator", "dc_motor")
    assert (code, err) == (0, []) and "chosen" not in "".join(out)
    text = Path("rig.yaml").read_text()
    joints = yaml.safe_load(text)["joints"]
    said([line for line in text.splitlines() if "the robot file" in line or "gear 50" in line])
    assert joints["shoulder"]["actuator"]["ratio"] == 50 and "limits" not in joints["shoulder"]
    rig = load_rig("rig.yaml")
    lower, upper, velocity = rig.limits.lower, rig.limits.upper, rig.limits.velocity
    assert (lower.tolist(), upper.tolist()) == (pytest.approx([-2, -1]), pytest.approx([2, 1.5]))
    assert velocity == pytest.approx([3, 2], rel=1e-5)  # as the rig writes it
    assert [joint.initial_position for joint in rig.spec.joints.values()] == pytest.approx([0, 0.3], abs=1e-9)
    assert rig.run().summary["joints"]["elbow"]["error_max"] < 0.02 * 0.0873


def test_the_path_of_the_robot_is_relative_to_the_rig(new):
    Path("rigs").mkdir()
    Path("robots").mkdir()
    new(ARM, rig="rigs/a.yaml", file="robots/arm.urdf")
    assert yaml.safe_load(Path("rigs/a.yaml").read_text())["mechanism"] == {"urdf": "../robots/arm.urdf"}


XACRO = Path(__file__).with_name("robot.xacro").read_text(encoding="utf-8")
MAST = Path(__file__).with_name("mast.xacro").read_text(encoding="utf-8")


def test_arguments_and_packages_of_xacro_are_in_the_rig(new):
    Path("ws/parts").mkdir(parents=True)
    Path("ws/parts/mast.xacro").write_text(MAST)
    code, _, err = new(XACRO, "--arg", "height:=2", "--packages", "ws", file="robot.xacro")
    assert (code, err) == (0, [])
    mechanism = {"urdf": "robot.xacro", "packages": ["ws"], "xacro_arguments": {"height": "2"}}
    assert yaml.safe_load(Path("rig.yaml").read_text())["mechanism"] == mechanism
    rig = load_rig("rig.yaml", ["mechanism.xacro_arguments.height=1.5"])
    assert rig.limits.upper.tolist() == [1.5]
    assert load_rig("rig.yaml").limits.upper.tolist() == [2.0]


@pytest.mark.parametrize("folder", ["~", "$ROBOTS", "${ROBOTS}", "package://bots"])
def test_a_path_from_elsewhere_stays_as_written(command, folder, tmp_path, monkeypatch):
    bots = tmp_path / "far" / "bots"
    bots.mkdir(parents=True)
    (bots / "robot.urdf").write_text(ARM)
    monkeypatch.setenv("HOME", str(bots))
    monkeypatch.setenv("ROBOTS", str(bots))
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "far"))
    assert command("new", "new.yaml", f"{folder}/robot.urdf")[0] == 0
    assert yaml.safe_load(Path("new.yaml").read_text())["mechanism"] == {"urdf": f"{folder}/robot.urdf"}


MJCF = Path(__file__).with_name("crane.xml").read_text(encoding="utf-8")


def test_a_rig_of_an_mjcf_file(new, command, said):
    code, out, err = new(MJCF, file="crane.xml")
    assert (code, err) == (0, [])
    said(out)
    assert yaml.safe_load(Path("rig.yaml").read_text())["mechanism"] == {"mjcf": "crane.xml", "gravity": [0, 0, -9.81]}
    assert "warning" not in str(command("check", "rig.yaml")[1])
    rig = load_rig("rig.yaml")
    assert rig.spec.joints["slew"].limits["effort"] == 30.0
    run = rig.run()
    assert run.summary["joints"]["slew"]["error_max"] < 1e-4


FLOATING = robot(
    link("world", 0),
    link("base", 20.0),
    link("arm", 3.0),
    joint("root", "world", "base", "floating"),
    joint("h", "base", "arm", limit=LIMIT),
    name="fl",
)
FREE = Path(__file__).with_name("floating.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "file"), [(FLOATING, "robot.urdf"), (FREE, "robot.xml")])
def test_an_arm_on_a_root_that_is_held_tracks(new, command, text, file):
    assert new(text, file=file)[0] == 0
    run = load_rig("rig.yaml").run()
    assert np.ptp(run["root.z/position"]) == 0.0
    assert run.summary["joints"]["h"]["error_max"] < 1e-4
    assert run.summary["guard"] == {}
    lines = command("check", "rig.yaml")[1].splitlines()
    for dof in ("x", "y", "z", "rx", "ry", "rz"):
        assert f"    root.{dof}: passive, latched, from 0 {'m' if len(dof) == 1 else 'rad'}" in lines


def test_an_existing_rig_is_kept(new):
    Path("rig.yaml").write_text("mine")
    assert new(ARM) == (2, "", ["rig.yaml: exists already; choose another name, or overwrite it with --force"])
    assert Path("rig.yaml").read_text() == "mine"
    assert new(ARM, "--force")[0] == 0
    assert Path("rig.yaml").read_text().startswith("# A first rig for arm")


def test_a_robot_that_cannot_be_used_leaves_the_rig_as_it_was(new):
    """`all` stands for all joints in a rig."""
    text = robot(link("base", 0), link("tip"), joint("all", "base", "tip", limit=LIMIT))
    what = "the joint name 'all' is reserved for the settings of all joints; rename the joint"
    (said,) = new(text)[2]
    assert re.fullmatch(rf"robot\.urdf:\d+ joint 'all': {what}", said), said
    assert not Path("rig.yaml").exists()
    Path("rig.yaml").write_text("mine")
    assert new(text, "--force")[0] == 2
    assert Path("rig.yaml").read_text() == "mine"


def test_a_robot_of_too_many_joints_is_refused_before_it_is_planned(said):
    """By the fewest values that joints have in a rig, 7 of 10,000, and 4 with actuators of the file."""

    def chain(count):
        links = tuple(Link(f"l{k}") for k in range(count + 1))
        moving = (Joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", Pose.identity()) for k in range(count))
        return Mechanism("chain", "l0", links, tuple(moving))

    check_number_of_joints(chain(1428), "robot.urdf", "auto")
    check_number_of_joints(chain(2500), "robot.urdf", "file")
    said(str(raised(InputError, check_number_of_joints, chain(1429), "robot.urdf", "auto")))


def test_a_rig_that_grows_too_large_names_the_robot(new, monkeypatch, said):
    """Where limits that the robot lacks make it so."""
    monkeypatch.setattr("cosim.rig.reading.yaml_values.MOST_VALUES", 10)
    said(new(ARM)[2])
    assert not Path("rig.yaml").exists()


def test_an_error_of_the_rig_that_is_not_kept_is_one_of_the_robot(new, monkeypatch, said):
    monkeypatch.setattr("cosim.rig.sections.tick_size.MOST_INSTRUCTIONS", 10)
    said(new(ARM)[2])
    assert not Path("rig.yaml").exists()


MISTAKES = [
    "robot.urdf new.yaml",
    "new robot.urdf",
    "new.yaml rig.yaml",
    "no/new.yaml robot.urdf",
    "folder.yaml robot.urdf",
]
FILES = ["robt.urdf", "broken.urdf", "bots", "empty", "/dev/null", "page.xml", "world.sdf", "package://none/robot.urdf"]
MISTAKES += [f"new.yaml {file}" for file in (*FILES, "$NOWHERE/robot.urdf", "bots/deep/b.xacro")]
OPTIONS = ["--bandwidth 0", "--bandwidth '3 m'", "--arg a=b", "--arg a:=b"]
OPTIONS += ["--packages nope", "--packages robot.urdf", "--packages bots --packages no/pe"]
MISTAKES += [f"new.yaml robot.urdf {option}" for option in OPTIONS]


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line(command, words, said, monkeypatch):
    for variable in ("NOWHERE", "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)
    Path("bots/deep").mkdir(parents=True)
    Path("bots/a.urdf").write_text(ARM)
    Path("bots/deep/b.xacro").write_text("<robot>\n<xacro:arm/></robot>")
    Path("empty").mkdir()
    Path("page.xml").write_text("<html/>")
    Path("world.sdf").write_text("<sdf/>")
    Path("robot.urdf").write_text(ARM)
    Path("broken.urdf").write_text("<robot>\n")
    Path("folder.yaml").mkdir()
    (line,) = command.refuses("new", *shlex.split(words))
    said(line)
    assert not Path("new.yaml").exists()
