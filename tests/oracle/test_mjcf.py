"""Mechanisms from MJCF files accelerate as MuJoCo computes from the same file."""

import math
import warnings
from pathlib import Path

import mujoco
import pytest

from cosim import load_rig
from cosim.core.errors import InputErrors, RunWarning
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.mjcf.reader import read_mjcf
from cosim.mechanics.multibody.description.robot_formats import format_of
from tests.kit.refusals import raised
from tests.oracle.mujoco_pair import compare, written

SHIPPED = Path(mujoco.__file__).parent / "testdata" / "model.xml"

INERTIAL = '<inertial pos="0.1 0.02 -0.2" mass="1.5" diaginertia="0.03 0.02 0.04" euler="20 -30 40"/>'
LIGHT = '<inertial pos="0 0.1 0.05" mass="0.4" fullinertia="0.003 0.002 0.004 0.0002 -0.0003 0.0001"/>'

# joints with anchors beside the body, references and springs, several per body, a ball, a free body, fixed bodies
FILES = {
    "chain": f"""
      <body name="a" pos="0.1 0.2 0.3" euler="10 20 30">{INERTIAL}
        <joint name="h1" axis="0 1 0.3" pos="0.1 -0.2 0.05" damping="0.2" armature="0.3"/>
        <body name="b" pos="0.4 0 0" euler="0 50 0">{LIGHT}
          <joint name="s1" type="slide" axis="1 0.2 0" ref="0.1" damping="0.4" stiffness="30" springref="0.2"/>
          <joint name="h2" axis="0 0 1" ref="25" pos="0 0.1 0" stiffness="5" springref="-20" armature="0.01"/>
          <body name="c" pos="0 0.3 0"><joint name="h3" axis="1 0 0" range="-90 120" limited="true"/>{LIGHT}</body>
        </body>
      </body>""",
    "fixed": f"""
      <body name="post" pos="0 0 1" euler="0 0 70">{INERTIAL}
        <body name="head" pos="0.1 0 0" euler="0 30 0"><joint name="pan" axis="0 0 1"/>{LIGHT}
          <body name="eye" pos="0.05 0.02 0" euler="15 0 0">{LIGHT}</body>
        </body>
      </body>""",
    "ball": f"""
      <body name="arm" pos="0 0 1" euler="30 0 0">{INERTIAL}
        <joint name="shoulder" type="ball" pos="0.05 0 0.1" damping="0.1" stiffness="7"/>
        <body name="hand" pos="0.3 0 0"><joint name="wrist" axis="0 1 0"/>{LIGHT}</body>
      </body>""",
    "free": f"""
      <body name="base" pos="0 0 2" euler="10 0 0"><freejoint name="float"/>{INERTIAL}
        <body name="leg" pos="0.2 0 0"><joint name="hip" axis="0 1 0" pos="0 0 0.1" armature="0.05"/>{LIGHT}</body>
      </body>""",
    "side by side": f"""
      <body name="x"><joint name="x" axis="1 0 0"/>{LIGHT}</body>
      <body name="y"><joint name="y" axis="0 1 0"/>{LIGHT}</body>""",
}


@pytest.mark.parametrize("name", [*FILES, "the file that ships with MuJoCo"])
def test_accelerations(name, tmp_path):
    path = written(tmp_path, FILES[name]) if name in FILES else SHIPPED
    pair = compare(path, len(name), speed=2.0 if name in FILES else 0.0)
    assert pair.model.nv == pair.reference.nv


def test_what_joints_have(tmp_path):
    path = written(tmp_path, FILES["chain"])
    assert format_of(path) == "mjcf"
    mechanism = read_mjcf(path).mechanism
    joints = {joint.name: joint for joint in mechanism.joints if joint.kind != "fixed"}
    assert list(joints) == ["h1", "s1", "h2", "h3"]
    assert (joints["h1"].damping, joints["h1"].rotor_inertia, joints["h1"].lower) == (0.2, 0.3, -math.inf)
    assert (joints["s1"].kind, joints["s1"].stiffness, joints["s1"].rest) == ("prismatic", 30.0, 0.2)
    assert (joints["h3"].lower, joints["h3"].upper) == pytest.approx((-math.pi / 2, math.radians(120)))
    assert (mechanism.name, mechanism.root, mechanism.notes) == ("m", "world", ())


def test_what_is_dropped_is_noted(tmp_path, said):
    body = FILES["side by side"].replace("</body>", '<geom size="0.1"/></body>')
    more = """
      <option gravity="0 0 -1.6" density="1.2"/>
      <tendon><fixed name="t"><joint joint="x" coef="1"/></fixed></tendon>
      <equality><joint joint1="x" joint2="y"/></equality>
      <actuator><motor joint="x"/></actuator>"""
    said(read_mjcf(written(tmp_path, body, more)).mechanism.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", ""),
        ("<mujoco>\n<worldbdy/></mujoco>", "Schema violation: "),
    ],
)
def test_a_file_that_mujoco_refuses(tmp_path, text, message):
    path = tmp_path / "wrong.xml"
    path.write_text(text)
    (line,) = str(raised(InputErrors, read_mjcf, path)).splitlines()
    assert line.startswith(str(path)) and f"MuJoCo cannot compile the file: {message}" in line


MOON = """<mujoco model="moon"><option gravity="0 0 -1.62" density="1.2"/><worldbody>
  <body name="a"><joint name="h" axis="0 1 0"/><inertial pos="0.3 0 0" mass="2" diaginertia="0.01 0.02 0.02"/></body>
</worldbody></mujoco>"""
RIG = "mechanism: {{mjcf: model.xml{more}}}\nschedule: {{step: 1 ms, duration: 10 ms}}\n"


def rig_of(folder, text, more=""):
    """The file of a rig with an MJCF file."""
    (folder / "model.xml").write_text(text)
    file = folder / "rig.yaml"
    file.write_text(RIG.format(more=more))
    return file


@pytest.mark.parametrize(("more", "gravity"), [("", 1.62), (", gravity: [0, 0, -5]", 5.0)])
def test_the_gravity_of_the_file_acts_unless_the_rig_gives_one(tmp_path, more, gravity):
    with pytest.warns(RunWarning, match="the forces of the fluid"):
        rig = load_rig(rig_of(tmp_path, MOON, more))
    assert rig.plant.model.gravity.tolist() == [0.0, 0.0, -gravity]
    acceleration = rig.plant.model.forward_dynamics([0.0], [0.0], [0.0])
    assert acceleration == pytest.approx([gravity * 2.0 * 0.3 / (0.02 + 2.0 * 0.09)])


def test_a_flag_of_the_file_takes_gravity_away(tmp_path):
    text = MOON.replace("<worldbody>", '<option><flag gravity="disable"/></option><worldbody>')
    (tmp_path / "model.xml").write_text(text)
    with pytest.warns(RunWarning):
        assert Model.from_mjcf(tmp_path / "model.xml").gravity.tolist() == [0.0, 0.0, 0.0]
    with pytest.warns(RunWarning):
        assert Model.from_mjcf(tmp_path / "model.xml", gravity=[0, 0, -2]).gravity.tolist() == [0.0, 0.0, -2.0]


def test_what_is_lost_is_warned_of_once_and_kept_with_the_run(tmp_path):
    file = rig_of(tmp_path, MOON)
    for _ in range(2):  # the second one is restored from the cache
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = load_rig(file).run()
        assert [str(one.message) for one in caught] == list(run.warnings)
        assert len(run.warnings) == 1 and "the forces of the fluid" in run.warnings[0]
        assert caught[0].filename == __file__


def test_what_is_lost_is_said_by_every_command(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rig = rig_of(tmp_path, MOON).name
    for arguments in (["run", rig], ["check", rig], ["new", "new.yaml", "model.xml"]):
        code, out, _ = command(*arguments)
        assert code == 0 and "the forces of the fluid" in str(out)
    assert "gravity 0, 0, -1.62 m/s^2" in str(command("check", rig)[1])
    assert "gravity: [0, 0, -1.62]" in (tmp_path / "new.yaml").read_text()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('armature="0.1"', "its armature acts along the axes of the world there"),
        ('frictionloss="0.1"', "its friction loss acts along"),
        ('armature="0.1" frictionloss="0.1"', "its armature and friction loss act along"),
        ('armature="0" damping="0.1"', ""),
    ],
)
def test_what_acts_along_other_axes_on_a_free_joint_is_warned_of(tmp_path, keys, said):
    """Damping is the same along all axes."""
    body = f'<body name="a"><joint name="f" type="free" {keys}/>{LIGHT}</body>'
    found = read_mjcf(written(tmp_path, body, "")).mechanism.warnings
    assert len(found) == bool(said) and said in "".join(found)
