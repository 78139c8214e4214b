"""Mechanisms from MJCF files accelerate as MuJoCo computes from the same file."""

import math
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

from cosim import load_rig
from cosim.core.errors import InputErrors, RunWarning
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.mjcf import read_mjcf
from cosim.mechanics.multibody.description.robot_formats import format_of
from tests.kit.refusals import raised

TOLERANCE = 1e-9
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


def written(folder, body, more=""):
    path = folder / "model.xml"
    path.write_text(f'<mujoco model="m">{more}<worldbody>{body}</worldbody></mujoco>')
    return path


class Pair:
    """A model and MuJoCo's of the same file, without what the model does not have."""

    def __init__(self, path):
        self.reference = mujoco.MjModel.from_xml_path(str(path))
        self.reference.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.reference.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        self.reference.opt.density = self.reference.opt.viscosity = 0.0
        self.reference.body_gravcomp[:] = 0.0
        self.data = mujoco.MjData(self.reference)
        self.model = Model(read_mjcf(path).mechanism, gravity=self.reference.opt.gravity.tolist())

    def number(self, joint):
        found = mujoco.mj_name2id(self.reference, mujoco.mjtObj.mjOBJ_JOINT, joint)
        return found if found >= 0 else int(joint.rpartition("_")[2])

    def accelerations(self, q, v, tau):
        """(nv,) of MuJoCo in the coordinates of the model: its quaternions begin with w, and the linear velocity of a
        free joint is along the axes of the world there, of the body here."""
        joints = []
        for joint in self.model.joints:
            n = self.number(joint.name)
            at, dof = self.reference.jnt_qposadr[n], self.reference.jnt_dofadr[n]
            own = [k for k, name in enumerate(self.model.coordinate_names) if name.partition(".")[0] == joint.name]
            dofs = [k for k, name in enumerate(self.model.dof_names) if name.partition(".")[0] == joint.name]
            values, speeds, efforts = q[own].copy(), v[dofs].copy(), tau[dofs].copy()
            rotation = np.eye(3)
            if joint.kind in ("free", "spherical"):
                values[-4:] = np.roll(values[-4:], 1)
            if joint.kind == "free":
                mujoco.mju_quat2Mat(flat := np.zeros(9), values[-4:])
                rotation = flat.reshape(3, 3)
                efforts[:3], speeds[:3] = rotation @ efforts[:3], rotation @ speeds[:3]
            joints.append((joint.kind, dof, dofs, rotation))
            self.data.qpos[at : at + len(own)] = values
            self.data.qvel[dof : dof + len(dofs)] = speeds
            self.data.qfrc_applied[dof : dof + len(dofs)] = efforts
        mujoco.mj_forward(self.reference, self.data)
        found = np.zeros(self.model.nv)
        for kind, dof, dofs, rotation in joints:
            found[dofs] = self.data.qacc[dof : dof + len(dofs)]
            if kind == "free":  # v_world = R v, so a = Rᵀ a_world − ω × v
                found[dofs[:3]] = rotation.T @ found[dofs[:3]] - np.cross(v[dofs[3:]], v[dofs[:3]])
        return found


def compare(path, seed):
    pair, random = Pair(path), np.random.default_rng(seed)
    model = pair.model
    assert (model.nq, model.nv) == (pair.reference.nq, pair.reference.nv)
    for _ in range(3):
        q = model.random_configuration(random)
        v, tau = random.uniform(-2.0, 2.0, model.nv), random.uniform(-5.0, 5.0, model.nv)
        effort = tau - model.friction_effort(v)
        expected = pair.accelerations(q, v, tau)
        found = model.forward_dynamics(q, v, effort)
        assert np.abs(found - expected).max() < TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("name", [*FILES, "the file that ships with MuJoCo"])
def test_accelerations(name, tmp_path):
    compare(written(tmp_path, FILES[name]) if name in FILES else SHIPPED, len(name))


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
    with pytest.warns(RunWarning, match="forces of the fluid"):
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
        assert len(run.warnings) == 1 and "dropped: forces of the fluid" in run.warnings[0]
        assert caught[0].filename == __file__


def test_what_is_lost_is_said_by_every_command(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rig = rig_of(tmp_path, MOON).name
    for arguments in (["run", rig], ["check", rig], ["new", "new.yaml", "model.xml"]):
        code, out, _ = command(*arguments)
        assert code == 0 and "dropped: forces of the fluid" in str(out)
    assert "gravity 0, 0, -1.62 m/s^2" in str(command("check", rig)[1])
    assert "gravity: [0, 0, -1.62]" in (tmp_path / "new.yaml").read_text()
