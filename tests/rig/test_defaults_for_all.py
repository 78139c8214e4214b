"""Which dofs `joints.all` and a controller without `joints` reach: joints with one dof, never a base."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.kit.given import beside
from tests.kit.refusals import refusal

GIVEN = beside(__file__)

URDF = """\
<robot name="walker">
  <link name="trunk"><inertial><mass value="10"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="leg"><inertial><origin xyz="0 0 -0.2"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="hip" type="continuous"><parent link="trunk"/><child link="leg"/><axis xyz="0 1 0"/></joint>
</robot>
"""
MOTOR = """{type: dc_motor, resistance: 1, inductance: 1 mH, torque_constant: 0.1, rotor_inertia: 1e-4, ratio: 100}"""
FALL = f"""
joints:
  all: {{actuator: {MOTOR}, encoder: {{cpr: 4096}}, limits: {{velocity: 3, effort: 50}}}}
schedule: {{duration: 1 s}}
"""
FLOATING = "mechanism: {urdf: walker.urdf, floating_base: true}" + FALL
CRAFT = (
    """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: craft, joint: base, type: planar, mass: 10, inertia: [1, 1, 1]}
    - {name: panel, joint: hinge, mass: 1, inertia: [1, 1, 1]}
    - {name: flap, mimic: {joint: hinge}, mass: 1, inertia: [1, 1, 1]}
"""
    + FALL
)


@pytest.fixture
def floating(tmp_path, rig_of):
    (tmp_path / "walker.urdf").write_text(URDF)
    return lambda text="", *overrides: rig_of(FLOATING + text, *overrides)


@pytest.mark.parametrize("controllers", ["", "controllers: [{type: pid, kp: 100, ki: 0, kd: 5}]\n"])
def test_a_floating_base_falls_freely(floating, controllers):
    run = floating(controllers).run()
    assert run["root_joint.z/position"][-1] == pytest.approx(-0.5 * 9.81 * run.t[-1] ** 2, rel=1e-9)


def test_settings_for_all_are_for_joints_of_one_dof(floating):
    joints = floating().spec.joints
    assert {name for name, joint in joints.items() if joint.actuator or joint.encoder} == {"hip"}
    assert {name for name, joint in joints.items() if joint.limits["velocity"] == 3.0} == {"hip"}


BOUNDED = """
mechanism:
  bodies:
    - {name: arm, axis: [0, 1, 0], mass: 1, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01],
       limits: {lower: -0.5, upper: 0.7}}
    - {name: rod, axis: [0, 1, 0], mass: 1, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], limits: {upper: 1}}
    - {name: wheel, type: continuous, axis: [0, 1, 0], mass: 1, inertia: [0.01, 0.01, 0.01]}
    - {name: cart, type: prismatic, parent: base, mass: 1, limits: {lower: 0, upper: 1}}
joints:
  cart: {prescribed: {type: quintic, goal: 0.5, duration: 0.5}}
"""


def test_limits_of_the_mechanism_become_stops(rig_of):
    """Of each side that has one; not where the rig gives a stop, and not of a joint whose motion is given."""
    rig = rig_of(f"{BOUNDED}  all: {{stops: limits}}\n  rod: {{stops: {{at: limits, lower: -2}}}}\n")
    assert {name: joint.stops for name, joint in rig.spec.joints.items()} == {
        "arm": ((-1.0, -0.5), (1.0, 0.7)),
        "rod": ((-1.0, -2.0), (1.0, 1.0)),
        "wheel": (),
        "cart": (),
    }
    run = rig.run()
    assert run["arm/position"].max() == pytest.approx(0.7, abs=1e-9)
    given = rig_of(
        f"{BOUNDED}  arm: {{stops: {{lower: -0.5, upper: 0.7}}}}\n  rod: {{stops: {{lower: -2, upper: 1}}}}\n"
    )
    assert np.array_equal(run["rod/position"], given.run()["rod/position"])


def test_a_controller_without_joints_commands_joints_of_one_dof(floating):
    (controller,) = floating("controllers: [{type: pid, kp: 100, ki: 0, kd: 5}]\n").spec.controllers
    assert controller.joints == ("hip",)


def test_a_dof_of_a_base_is_driven_by_name(floating):
    text = "controllers: [{type: passthrough, interface: effort, joints: [hip, root_joint.z]}]\n"
    joints = floating(text, "joints.root_joint={initial: {velocity: [0, 0, 1, 0, 0, 0]}}").spec.joints
    assert [name for name, joint in joints.items() if joint.actuator] == ["root_joint.z", "hip"]
    joints = floating("", "joints={root_joint.z: {actuator: {type: ideal}}, all: {encoder: {cpr: 9}}}").spec.joints
    assert [name for name, joint in joints.items() if joint.actuator] == ["root_joint.z"]
    assert [name for name, joint in joints.items() if joint.encoder] == ["hip"]


@pytest.mark.parametrize(
    "text", GIVEN["no_joint_is_left_to_command"], ids=["no joint of one dof", "all are prescribed"]
)
def test_no_joint_is_left_to_command(rig_of, said, text):
    said(refusal(rig_of, text))


ELASTIC = """
mechanism:
  bodies: [{name: arm, joint: hub}]
  elastic: [{link: arm, beam: {length: 1, stiffness: {mass: 1, EI: [100, 100]}, modes: {bend_y: 2}}}]
"""
FOUR_BAR = GIVEN["four_bar"]


@pytest.mark.parametrize(
    "mechanism",
    [CRAFT, ELASTIC, FOUR_BAR],
    ids=["dofs that are left out", "modes that are left out", "drives that act against each other"],
)
def test_check_notes(command, said, mechanism):
    Path("rig.yaml").write_text(mechanism + "controllers: [{name: hold, type: pid, kp: 1, ki: 0, kd: 0}]\n")
    out = command.prints("check", "rig.yaml")
    said(line for line in out.splitlines() if "leave" in line or "driven" in line)


PAIR = """
mechanism:
  bodies:
    - {name: upper, joint: shoulder, axis: [0, 1, 0], mass: 1, inertia: [1, 1, 1]}
    - {name: fore, joint: elbow, axis: [0, 1, 0], mass: 1, inertia: [1, 1, 1]}
joints:
  all: {actuator: {type: drive, motor: {type: dc_machine, resistance: 1, inductance: 1e-3, torque_constant: 1}}}
  elbow: {actuator: {gears: [{ratio: 20}]}}
"""


def test_a_section_of_a_joint_in_place_of_all(rig_of, said):
    """The section for all joints is not merged, which the line says where a type is missing; not elsewhere."""
    said(refusal(rig_of, PAIR), "of all")
    said(refusal(rig_of, PAIR.replace("  all: {", "  shoulder: {")), "of another joint")
    merged = PAIR.replace("actuator: {type", "actuator: &motor {type").replace("{gears", "{<<: *motor, gears")
    assert {joint.actuator.type for joint in rig_of(merged).spec.joints.values()} == {"drive"}


OF_FILE = {"lower": -1.0, "upper": 1.5, "velocity": 3.0, "effort": 20.0}
BOUNDS = {"lower": -0.5, "upper": 0.5, "velocity": 1.0, "effort": 10.0}
EDGE = """<limit lower="-2" upper="2" velocity="9" effort="90"/>
    <safety_controller soft_lower_limit="-1" soft_upper_limit="1.5" k_velocity="1"/></joint>"""
CONTROL = """<ros2_control name="c" type="system"><joint name="hip">
    <command_interface name="velocity"><param name="min">-3</param><param name="max">3</param></command_interface>
    <command_interface name="effort"><param name="min">-20</param><param name="max">20</param></command_interface>
  </joint></ros2_control></robot>"""


@pytest.mark.parametrize("own", [None, *BOUNDS])
@pytest.mark.parametrize("common", [None, *BOUNDS])
def test_limits_are_those_of_the_joint_then_of_all_then_of_the_robot_file(own, common, tmp_path, rig_of):
    """Key by key: what a rig gives of one leaves the others as they are."""
    text = URDF.replace('"continuous"', '"revolute"').replace("</joint>", EDGE).replace("</robot>", CONTROL)
    (tmp_path / "walker.urdf").write_text(text)
    entries = [("hip", own, 1.0), ("all", common, 0.8)]
    given = {name: {key: factor * BOUNDS[key]} for name, key, factor in entries if key is not None}
    lines = "".join(f"  {name}: {{limits: {json.dumps(limits)}}}\n" for name, limits in given.items())
    rig = rig_of(
        "mechanism: {urdf: walker.urdf}\n" + (f"joints:\n{lines}" if lines else "") + "schedule: {duration: 1 s}\n"
    )
    found = {key: rig.spec.joints["hip"].limits[key] for key in OF_FILE}
    assert found == {**OF_FILE, **given.get("all", {}), **given.get("hip", {})}
