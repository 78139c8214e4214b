"""The tests of SimBenchmark (Hwangbo, Lee and Hutter, IEEE RA-L 3(2), 2018) that are about robots; of single bodies see
tests/plant/test_contact_benchmarks.py, of robots under PD drives test_legged_robots.py."""

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin
import pytest

from benchmarks.legged_robots import ANYMAL, BASE
from cosim import load_rig
from tests.oracle.pinocchio_reference import Reference

G = 9.81
POSTURE = {"HAA": 0.03, "HFE": 0.4, "KFE": -0.8}  # rad, of the left front leg
BALL, SPEED, RADIUS = 10.0, 5.0, 0.2  # kg, m/s, m

# the root link of ANYmal has next to no inertia
pytestmark = pytest.mark.filterwarnings("ignore:.*link 'base'. the inertia is physically impossible")


def posture(joint):
    side, kind = joint.split("_")
    mirrored = side[0] == "R" if kind == "HAA" else side[1] == "H"
    return -POSTURE[kind] if mirrored else POSTURE[kind]


def floating(tree, name, link):
    joint = ET.SubElement(tree, "joint", name=name, type="floating")
    ET.SubElement(joint, "parent", link="world")
    ET.SubElement(joint, "child", link=link)


class LimpRobot:
    """ANYmal 2 m above the ground without drives, with a ball in the same file."""

    def __init__(self, folder):
        tree = ET.fromstring(ANYMAL.text)
        ET.SubElement(tree, "link", name="world")
        inertial = ET.SubElement(ET.SubElement(tree, "link", name="ball"), "inertial")
        ET.SubElement(inertial, "mass", value=str(BALL))
        moment, nothing = str(0.4 * BALL * RADIUS**2), {"ixy": "0", "ixz": "0", "iyz": "0"}
        ET.SubElement(inertial, "inertia", {"ixx": moment, "iyy": moment, "izz": moment} | nothing)
        floating(tree, BASE, "base")
        floating(tree, "ball", "ball")
        self.urdf, self.folder = folder / "robot.urdf", folder
        self.urdf.write_text(ET.tostring(tree, encoding="unicode"))

    def run(self, step, duration, mechanism="", rates=0.0, ball=(0.0,) * 6, place=(5.0, 0.0, 2.0)):
        """(run, model); rates: of its joints [rad/s]; ball: its velocity [m/s, rad/s]; place: where it begins [m]."""
        joints = "".join(
            f"  {name}: {{initial: {{position: {posture(name)}, velocity: {rate}}}}}\n"
            for name, rate in zip(ANYMAL.joints, np.broadcast_to(rates, len(ANYMAL.joints)), strict=True)
        )
        (self.folder / "rig.yaml").write_text(f"""\
name: limp
mechanism:
  urdf: {self.urdf.name}
{mechanism}joints:
  all: {{limits: {{lower: -1000, upper: 1000, velocity: 1e5}}}}
  {BASE}: {{initial: {{position: [0, 0, 2, 0, 0, 0, 1]}}}}
  ball: {{initial: {{position: {[*place, 0.0, 0.0, 0.0, 1.0]}, velocity: {list(ball)}}}}}
{joints}schedule: {{step: {step * 1e6:g} us, duration: {duration}, integrator: moreau}}
""")
        rig = load_rig(self.folder / "rig.yaml")
        return rig.run(), rig.plant.model

    def momentum(self, found, model, ticks):
        """(ticks, 6): linear, and angular about the origin, by Pinocchio."""
        reference = Reference(model, pin.buildModelFromUrdf(str(self.urdf)))
        rows = []
        for tick in ticks:
            q = np.array([found[f"{name}/position"][tick] for name in model.coordinate_names])
            v = np.array([found[f"{name}/velocity"][tick] for name in model.dof_names])
            full, T, _ = reference.at(q, v)
            total = pin.computeCentroidalMomentum(reference.reference, reference.data, full, T @ v)
            rows.append([*total.linear, *(total.angular + np.cross(reference.data.com[0], total.linear))])
        return np.array(rows)


def test_a_ball_that_hits_a_robot_in_space_gives_its_momentum(tmp_path):
    law = "friction: 0.5, stiffness: rigid"
    other = "{link: base, box: [0.53, 0.24, 0.24]}"
    hit = f"  gravity: [0, 0, 0]\n  contacts: [{{name: hit, link: ball, sphere: {RADIUS}, with: {other}, {law}}}]\n"
    robot, errors = LimpRobot(tmp_path), []
    for step in (1e-3, 2.5e-4):
        found, model = robot.run(step, 0.6, hit, ball=[0.0, SPEED, 0.0, 0.0, 0.0, 0.0], place=[0.1, -1.0, 2.05])
        assert found["hit/touches"][-1] >= 1.0 and found["contacts/residual"].max() < 1e-10
        total = robot.momentum(found, model, range(0, len(found.t), len(found.t) // 20))
        at_first = BALL * SPEED * np.array([0.0, 1.0, 0.0, -2.05, 0.0, 0.1])
        np.testing.assert_allclose(total[0], at_first, rtol=0, atol=1e-9)
        errors.append(np.abs(total - at_first).max() / (BALL * SPEED))
    assert errors[0] < 1e-3
    assert errors[1] < 0.3 * errors[0], errors


def test_a_robot_in_flight_keeps_its_energy(tmp_path):
    robot, errors = LimpRobot(tmp_path), []
    rates = np.random.default_rng(1).uniform(-3.0, 3.0, len(ANYMAL.joints))
    for step in (1e-3, 2.5e-4):
        found, _ = robot.run(step, 0.5, rates=rates)
        energy = found["energy/kinetic"] + found["energy/potential"]
        errors.append(np.abs(energy - energy[0]).max() / energy[0])
    assert errors[0] < 1e-7
    assert errors[1] < 0.08 * errors[0], errors  # of order 2


def test_a_limp_robot_that_falls_down_loses_what_its_contacts_take(tmp_path):
    feet = "".join(
        f"    - {{name: {link}, link: {link}, sphere: {radius}, with: ground, friction: 0.7, stiffness: rigid}}\n"
        for link, _, radius in ANYMAL.feet
    )
    trunk = "    - {name: trunk, link: base, box: [0.53, 0.24, 0.24], with: ground, friction: 0.7, stiffness: 1e5}\n"
    robot, errors = LimpRobot(tmp_path), []
    for step in (1e-3, 2.5e-4):
        found, _ = robot.run(step, 1.0, "  ground: {xyz: [0, 0, 1.4]}\n  contacts:\n" + feet + trunk)
        assert found["contacts/residual"].max() <= 1e-10 and found["trunk/touches"][-1] >= 1.0
        errors.append(abs(found.summary["energy"]["residual"]) / (ANYMAL.mass * G * 0.1))
    assert errors[0] < 2e-3
    assert errors[1] < 0.4 * errors[0], errors
