"""Which dofs `joints.all` and a controller without `joints` reach: those of joints with one dof, never a base."""

import pytest

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
BASE = [f"root_joint.{dof}" for dof in ("x", "y", "z", "rx", "ry", "rz")]


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


def test_no_joint_of_one_dof_is_left(command, tmp_path):
    (tmp_path / "rig.yaml").write_text(
        "mechanism: {bodies: [{name: puck, type: planar, mass: 1, inertia: [1, 1, 1]}]}\n"
        "controllers: [{type: pid, kp: 1, ki: 0, kd: 0}]\n"
        "joints: {all: {encoder: {cpr: 9}}}\n"
    )
    assert command.refuses("check", "rig.yaml") == [
        "rig.yaml:2 controllers[0]: there is no joint of one dof to command; name dofs in 'joints', such as puck.x",
        "rig.yaml:3 joints.all: there is no joint of one dof to set; name dofs, such as puck.x",
    ]


def test_a_controller_whose_joints_are_all_prescribed_is_named(command, tmp_path):
    (tmp_path / "rig.yaml").write_text(
        "mechanism: {bodies: [{name: arm, joint: hub, mass: 1, inertia: [1, 1, 1]}]}\n"
        "controllers: [{type: pid, kp: 1, ki: 0, kd: 0}]\n"
        "joints: {hub: {prescribed: {type: quintic, goal: 1, duration: 1 s}}}\n"
    )
    assert command.refuses("check", "rig.yaml") == [
        "rig.yaml:2 controllers[0]: joint 'hub' is prescribed and needs no controller, and there is no other one to"
        " command; take out the controller or 'prescribed'"
    ]


def test_check_lists_what_is_left_out(command, tmp_path):
    (tmp_path / "craft.yaml").write_text(CRAFT + "controllers: [{name: hold, type: pid, kp: 1, ki: 0, kd: 0}]\n")
    code, out, err = command("check", "craft.yaml")
    assert (code, err) == (0, [])
    left_out = "base (several dofs: by name, such as base.x) and flap (follows 'hinge')"
    assert f"  joints.all and controller hold leave out {left_out}\n" in out
    assert "joints are driven" not in out


def test_check_lists_the_modes_of_elastic_links_that_are_left_out(command, tmp_path):
    (tmp_path / "arm.yaml").write_text(
        "mechanism:\n"
        "  bodies: [{name: arm, joint: hub}]\n"
        "  elastic: [{link: arm, beam: {length: 1, stiffness: {mass: 1, EI: [100, 100]}, modes: {bend_y: 2}}}]\n"
        "controllers: [{name: hold, type: pid, kp: 1, ki: 0, kd: 0}]\n"
    )
    code, out, err = command("check", "arm.yaml")
    assert (code, err) == (0, [])
    left_out = "the modes of arm (several dofs: by name, such as arm.bend_y_1)"
    assert f"  controller hold leaves out {left_out}\n" in out


FOUR_BAR = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: crank, mass: 1 kg, com: [10 cm, 0, 0], inertia: [0, 0.01, 0.01]}
    - {name: coupler, origin: {xyz: [20 cm, 0, 0]}, mass: 2 kg, com: [25 cm, 0, 0], inertia: [0, 0.05, 0.05]}
    - {name: rocker, parent: base, origin: {xyz: [50 cm, 0, 0]}, mass: 1 kg, inertia: [0, 0.02, 0.02]}
  loops:
    - {name: pin, parent: rocker, child: coupler, origin: {xyz: [40 cm, 0, 0]}, child_origin: {xyz: [50 cm, 0, 0]}}
joints: {crank: {initial: {position: 0}}, coupler: {initial: {guess: -53 deg}}, rocker: {initial: {guess: -90 deg}}}
"""


def test_check_notes_drives_that_act_against_each_other(command, tmp_path):
    (tmp_path / "bars.yaml").write_text(FOUR_BAR + "controllers: [{type: pid, kp: 1, ki: 0, kd: 0}]\n")
    code, out, err = command("check", "bars.yaml")
    assert (code, err) == (0, [])
    what = "note: 3 joints are driven and 1 dof is independent"
    assert f"  {what}; if not all of them have a motor, name those that do in joints and controllers\n" in out
