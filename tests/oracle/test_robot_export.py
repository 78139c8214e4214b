"""Mechanisms that `cosim export model` writes move as before in this program, in Pinocchio and in MuJoCo.

Drake's figures for SDF are in `test_sdf`.
"""

from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin
import pytest

from cosim.core.errors import InputError
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.export.writer import robot_text
from cosim.mechanics.multibody.description.robot_formats import format_of, read_robot
from cosim.mechanics.multibody.description.urdf import read_urdf
from cosim.mechanics.multibody.mechanism import GRAVITY
from tests.kit.refusals import refusal
from tests.kit.samples import is_rig
from tests.multibody.random_frames import error
from tests.oracle.conftest import ROBOTS, covering_robots
from tests.oracle.mujoco_pair import compare
from tests.oracle.pinocchio_reference import TOLERANCE, Reference, numbers
from tests.oracle.test_pinocchio import KNOWN
from tests.oracle.written_robot import WrittenRobot

ENDINGS = (".urdf", ".xml", ".sdf")
EXACT = 1e-12
ROBOT_NAMES = covering_robots(KNOWN)
RIGS = Path(__file__).parents[2] / "rigs"
MECHANISMS = sorted(path for path in (RIGS / "mechanisms").glob("*.yaml"))
# mechanism -> why no format has it
IN_NO_FORMAT = {
    "arm_on_moving_base": "of type general",
    "car_axis": "of type general",
    "release": "free against a link that moves",
}
# mechanisms whose constraints or force laws no format has: their motion is another one, of which they warn
CONSTRAINED = {"grab_jaw", "point_pendulum", "rolling_wheel", "skate"}
# what is lost in one format alone
LOST = {
    ".urdf": {"flyball_governor", "solar_array_fixed", "solar_array_fixed_augmented", "solar_array_free"}
    | {"solar_array_free_augmented", "stick_slip", "coupled_wrist"},
    ".xml": {"parallelogram", "stick_slip"},
    ".sdf": {"andrews", "flyball_governor", "stick_slip", "coupled_wrist"},
}


@pytest.mark.parametrize("name", ROBOT_NAMES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_robot_reads_back_as_it_was_written(name, ending, tmp_path):
    pair, random = WrittenRobot(ROBOTS / name, tmp_path / f"robot{ending}"), numbers(name)
    before, after = pair.inverse_dynamics(random)
    assert error(after, before) < EXACT
    joints = {joint.name: joint for joint in pair.after.mechanism.joints}
    keys = ["lower", "upper", "max_effort", "damping", "friction", *(["max_velocity"] if ending != ".xml" else [])]
    for joint in (joint for joint in pair.before.mechanism.joints if joint.kind not in ("fixed", "free", "planar")):
        for key in keys:
            wanted, found = getattr(joint, key), getattr(joints[joint.name], key)
            unlimited = min(abs(wanted), abs(found)) >= 1e16 and np.sign(wanted) == np.sign(found)
            useless = ending == ".xml" and key == "max_effort" and wanted == 0.0
            assert unlimited or useless or found == wanted
        assert joint.mimic == joints[joint.name].mimic


@pytest.mark.parametrize("name", ROBOT_NAMES)
def test_urdf_is_the_same_in_pinocchio(name, tmp_path):
    WrittenRobot(ROBOTS / name, tmp_path / "robot.urdf")
    model, random = Model.from_urdf(ROBOTS / name), numbers(name)
    reference = Reference(model, pin.buildModelFromUrdf(str(tmp_path / "robot.urdf")))
    q, v, qdd = model.random_configuration(random), *random.uniform(-3, 3, (2, model.nv))
    assert error(model.equations.inverse_dynamics(q, v, qdd), reference.inverse(q, v, qdd)) < TOLERANCE


@pytest.mark.parametrize("name", ROBOT_NAMES)
def test_mjcf_is_the_same_in_mujoco(name, tmp_path):
    WrittenRobot(ROBOTS / name, tmp_path / "robot.xml")
    if Model.from_mjcf(tmp_path / "robot.xml").nv:
        compare(tmp_path / "robot.xml", len(name), tolerance=1e-8, states=1)


@pytest.mark.parametrize("path", MECHANISMS, ids=[path.stem for path in MECHANISMS])
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_sample_mechanism(path, ending, tmp_path, capsys):
    output = tmp_path / f"mechanism{ending}"
    if path.stem in IN_NO_FORMAT:
        assert IN_NO_FORMAT[path.stem] in refusal(WrittenRobot, path, output)
        return
    try:
        pair = WrittenRobot(path, output)
    except InputError as refused:
        assert ending == ".urdf" and "URDF has no loops" in str(refused)
        return
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning")]
    usual = pair.before.gravity.tolist() == list(GRAVITY)
    assert ("URDF has no gravity" in str(warnings)) == (ending == ".urdf" and not usual)
    warned = any("gravity" not in line for line in warnings)
    assert warned == (path.stem in CONSTRAINED | LOST[ending])
    if not warned:
        before, after = pair.accelerations(numbers(path.stem))
        assert error(after, before) < EXACT or path.stem == "swinging_cylinder"


SAMPLES = sorted(path for path in RIGS.rglob("*.yaml") if is_rig(path) and path not in MECHANISMS)
# what a refusal says, of rigs without a mechanism and of those that a format does not have
REASONS = ("this rig has no mechanism", "is elastic, which", "URDF has no loops")
READ_BACK = ("URDF has no gravity", "Drake reads that of")  # this program reads it, or the test gives it


@pytest.mark.parametrize("path", SAMPLES, ids=[path.relative_to(RIGS).as_posix() for path in SAMPLES])
def test_every_sample_rig(path, tmp_path, capsys):
    """Without a warning of a loss the motion is the same; a rig that no format has is refused with its reason."""
    for ending in ENDINGS:
        try:
            pair = WrittenRobot(path, tmp_path / f"rig{ending}")
        except InputError as refused:
            assert any(reason in str(refused) for reason in REASONS)
            continue
        warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning")]
        lost = [line for line in warnings if not any(part in line for part in READ_BACK)]
        before, after = pair.accelerations(numbers(path.stem))
        assert lost or error(after, before) < EXACT


@pytest.mark.parametrize("ending", [".xml", ".sdf"])
def test_the_rotors_of_drives_are_written(ending, tmp_path):
    pair = WrittenRobot(RIGS / "ur5_sim.yaml", tmp_path / f"arm{ending}")
    before, after = pair.accelerations(np.random.default_rng(0))
    assert max(pair.before.drive_rotors.values()) > 0.0
    assert error(after, before) < EXACT


ODD = [
    "a b",
    "<a>",
    "a&b",
    "a'b",
    'a"b',
    "ä",
    "关节",
    "🤖",
    "1",
    "1.5",
    "-",
    ".",
    "a.b",
    "a/b",
    "a\\b",
    "a:b",
    "a;b",
    "a,b",
]
ODD += [
    "a=b",
    "#a",
    "$a",
    "%a",
    "{a}",
    "[a]",
    "null",
    "yes",
    "x" * 300,
    "a::b",
    "__a__",
    "world",
    "joint",
    "true",
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_odd_names_are_written_and_read(ending, tmp_path):
    """In SDF, where `::` and `__` are reserved and joints share their names with links, some are changed."""
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f"<link name={quoteattr('l' + name)}>{inertia}</link>" for name in ODD)
    ends = "<joint name={} type='continuous'><parent link='root'/><child link={}/></joint>"
    joints = "".join(ends.format(quoteattr(name), quoteattr("l" + name)) for name in ODD)
    source = tmp_path / "odd.urdf"
    source.write_text(f"<robot name='&lt;r&gt;'><link name='root'/>{links}{joints}</robot>")
    robot = read_urdf(source)
    written = robot_text(robot.mechanism, ending, GRAVITY)
    output = tmp_path / f"again{ending}"
    output.write_text(written.text)
    names = [joint.name for joint in read_robot(output, format_of(output)).mechanism.joints if joint.kind != "fixed"]
    changed = {"a::b": "a_b", "__a__": "_a_", "world": "world_"} if ending == ".sdf" else {}
    assert names == [changed.get(name, name) for name in ODD]
    assert bool(written.notes) == bool(changed)
