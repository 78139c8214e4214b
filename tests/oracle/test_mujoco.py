"""Accelerations equal MuJoCo's for the same URDF text, with damping and rotors on both sides."""

import math
import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from tests.kit.samples import FOLDER
from tests.oracle.conftest import ROBOTS

TOLERANCE = 1e-9

OWN_UR5 = FOLDER / "robots" / "ur5.urdf"

# Two arms on a tilted wall and a slider on the second; no inertia is along the axes of its link.
PENDULUM = """
<robot name="pendulum">
  <link name="wall"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0.02 -0.4" rpy="0.3 0.2 -0.1"/><mass value="2.5"/>
      <inertia ixx="0.12" iyy="0.11" izz="0.03" ixy="0.004" ixz="-0.006" iyz="0.002"/>
    </inertial>
  </link>
  <link name="lower">
    <inertial>
      <origin xyz="0 0.05 -0.3" rpy="0 0 0.7"/><mass value="1.25"/>
      <inertia ixx="0.05" iyy="0.06" izz="0.02" ixy="0.001" ixz="0.003" iyz="-0.002"/>
    </inertial>
  </link>
  <link name="bead">
    <inertial><mass value="0.4"/>
      <inertia ixx="0.002" iyy="0.002" izz="0.003" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="shoulder" type="continuous">
    <parent link="wall"/><child link="upper"/>
    <origin xyz="0.2 -0.1 1.5" rpy="0.4 -0.3 0.2"/><axis xyz="0 1 0"/><dynamics damping="0.3"/>
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="lower"/>
    <origin xyz="0 0.1 -0.8" rpy="0 0.2 1.1"/><axis xyz="0.6 0 0.8"/>
    <limit lower="-3" upper="3" velocity="10" effort="100"/><dynamics damping="0.15" friction="0"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="lower"/><child link="bead"/>
    <origin xyz="0 0 -0.2"/><axis xyz="0 0.28 -0.96"/>
    <limit lower="-0.5" upper="0.5" velocity="10" effort="100"/><dynamics damping="0.7"/>
  </joint>
</robot>
"""

PANDA = "panda_description/urdf/panda.urdf"
LEG = "solo_description/robots/solo12.urdf"


def source(name):
    """A robot of bodies and joints only; every joint moves on its own and without Coulomb friction."""
    if name == "inline":
        return PENDULUM
    robot = ET.parse(OWN_UR5 if name == "own ur5" else ROBOTS / name).getroot()
    for link in robot.findall("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    for joint in robot.findall("joint"):
        # limits of zero, as some files have them, would only make MuJoCo write warnings into a file
        for part in [*joint.findall("mimic"), *joint.findall("limit")]:
            joint.remove(part)
        for dynamics in joint.findall("dynamics"):
            dynamics.set("friction", "0")
    return ET.tostring(robot, encoding="unicode")


def mujoco_model(text):
    """The same text in MuJoCo: bodies as they are, no limits, no contacts."""
    robot = ET.fromstring(text)
    extension = ET.SubElement(robot, "mujoco")
    ET.SubElement(extension, "compiler", balanceinertia="false", fusestatic="true", discardvisual="true")
    model = mujoco.MjModel.from_xml_string(ET.tostring(robot, encoding="unicode"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


@pytest.mark.parametrize(("name", "rotors"), [("inline", True), ("own ur5", False), (PANDA, True), (LEG, False)])
def test_accelerations(name, rotors):
    text = source(name)
    model, reference = Model(parse_urdf(text)), mujoco_model(text)
    random = np.random.default_rng(len(text))
    if rotors:
        inertia = random.uniform(0.0, 2.0, model.nv)
        model = model.with_rotor_inertia(inertia)
    joints = [reference.joint(name) for name in model.joint_names]
    order = [joint.dofadr[0] for joint in joints]
    assert [joint.qposadr[0] for joint in joints] == order
    assert reference.nv == model.nv
    damping = model.friction_effort(np.ones(model.nv))
    np.testing.assert_array_equal(damping, np.ravel(reference.dof_damping)[order])
    assert damping.any() == (name in ("inline", PANDA))  # it enters both models
    reference.dof_armature[order] = inertia if rotors else 0.0
    data = mujoco.MjData(reference)
    for _ in range(5):
        q, v = random.uniform(-math.pi, math.pi, model.nq), random.uniform(-3.0, 3.0, model.nv)
        tau = random.uniform(-20.0, 20.0, model.nv)
        data.qpos[order], data.qvel[order], data.qfrc_applied[order] = q, v, tau
        mujoco.mj_forward(reference, data)
        expected = data.qacc[order]
        found = model.forward_dynamics(q, v, tau - model.friction_effort(v))
        assert np.abs(found - expected).max() < TOLERANCE * np.abs(expected).max()
