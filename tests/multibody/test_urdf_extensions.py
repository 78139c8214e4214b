"""Extensions of URDF files: what is taken over, and what is warned of, against Pinocchio and the equations of ROS."""

import numpy as np
import pytest

from cosim.core.errors import RunWarning
from cosim.mechanics.multibody.description.urdf import parse_robot, read_urdf
from cosim.mechanics.multibody.model import Model

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LINKS = '<link name="a"/>' + "".join(f'<link name="{name}">{INERTIAL}</link>' for name in "bc")
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="20"/>{}</joint>
"""


def robot(*parts, i="", j="", kind="revolute"):
    """Joints i and j of links a, b, c; i, j: what is inside of them."""
    return (
        f'<robot name="r">\n{LINKS}\n{JOINT.format("i", kind, "a", "b", i)}{JOINT.format("j", kind, "b", "c", j)}'
        + ("\n".join([*parts, "</robot>"]))
    )


def read(*parts, **inside):
    return parse_robot(robot(*parts, **inside), "r.urdf")


def soft(lower, upper):
    return f'<safety_controller soft_lower_limit="{lower}" soft_upper_limit="{upper}" k_velocity="1"/>'


def transmission(kind, joints, actuators):
    def part(tag, name, ratio):
        return f'<{tag} name="{name}"><mechanicalReduction>{ratio}</mechanicalReduction></{tag}>'

    inside = [part("joint", *given) for given in joints] + [part("actuator", *given) for given in actuators]
    return f'<transmission name="t"><type>transmission_interface/{kind}</type>{"".join(inside)}</transmission>'


def control(inside, name="i"):
    return f'<ros2_control name="s" type="system"><joint name="{name}">{inside}</joint></ros2_control>'


def interface(kind, name, **params):
    given = "".join(f'<param name="{key}">{value}</param>' for key, value in params.items())
    return f'<{kind}_interface name="{name}">{given}</{kind}_interface>'


def test_soft_limits_are_limits_of_the_rig_and_not_of_the_mechanism():
    found = read(i=soft(-1.5, 1), j=soft(-3, 1.9))
    assert found.limits == {"i": {"lower": -1.5, "upper": 1}, "j": {"upper": 1.9}}  # the narrower ones
    assert [(joint.lower, joint.upper) for joint in found.mechanism.joints] == [(-2, 2), (-2, 2)]
    assert read(i=soft(0, 0)).limits == {} and read(i=soft(0, 0)).mechanism.warnings == ()  # none are given


@pytest.mark.parametrize(
    ("name", "low", "high", "limits"),
    [
        ("position", -1, 1.2, {"lower": -1, "upper": 1.2}),
        ("position", -9, 9, {}),
        ("velocity", -2, 2, {"velocity": 2}),
        ("effort", -30, 30, {}),
        ("effort", -10, 8, {"effort": 8}),
        ("effort", 0, 8, {"effort": 8}),
    ],
)
def test_limits_of_command_interfaces(name, low, high, limits):
    found = read(control(interface("command", name, min=low, max=high)))
    assert found.limits == ({"i": limits} if limits else {})
    assert bool(found.mechanism.warnings) == (low != -high and name != "position")


def test_the_narrower_of_soft_limits_and_those_of_ros2_control_counts():
    command = interface("command", "position", min=-1, max=1.5)
    assert read(control(command), i=soft(-1.2, 1.3)).limits == {"i": {"lower": -1, "upper": 1.3}}


@pytest.mark.parametrize(
    ("limits", "multiplier", "wanted"),
    [((-0.5, 1.0), 2, (-0.25, 0.5)), ((-0.5, 1.0), -2, (-0.5, 0.25)), ((5, 6), 1, None)],
)
def test_soft_limits_of_a_follower_are_limits_of_its_leader(limits, multiplier, wanted):
    found = read(j=soft(*limits) + f'<mimic joint="i" multiplier="{multiplier}"/>')
    assert found.limits == ({} if wanted is None else {"i": dict(zip(("lower", "upper"), wanted, strict=True))})
    assert [("no range" in line, "'j'" in line) for line in found.mechanism.warnings] == [(True, True)] * (not wanted)


def test_initial_values_are_the_start():
    states = interface("state", "position", initial_value=0.3) + interface("state", "velocity", initial_value=-1)
    found = read(control(states))
    assert (found.start.positions, found.start.velocities) == ({"i": (0.3,)}, {"i": (-1.0,)})
    assert read(control(interface("state", "position"))).start is None


def test_a_simple_transmission_multiplies_the_effort_of_its_motor():
    (motor,) = read(transmission("SimpleTransmission", [("i", 2)], [("m", -50)])).actuators
    assert (motor.name, motor.type, motor.joints) == ("m", "ideal", {"i": -100.0})


def test_the_motors_of_a_differential_act_on_both_joints():
    """The efforts are power-conjugate to the motions, x_1 = (a_1 / n_1 + a_2 / n_2) / (2 m_1) and
    x_2 = (a_1 / n_1 - a_2 / n_2) / (2 m_2): the transposed inverse of that matrix."""
    n, m = (30.0, 20.0), (2.0, 3.0)
    found = read(transmission("DifferentialTransmission", zip("ij", m, strict=True), zip("ab", n, strict=True)))
    motion = np.array([[1 / n[0], 1 / n[1]], [1 / n[0], -1 / n[1]]]) / (2 * np.array(m)[:, None])
    efforts = np.array([[motor.joints[joint] for motor in found.actuators] for joint in "ij"])
    assert efforts == pytest.approx(np.linalg.inv(motion).T, rel=1e-14)
    (warning,) = found.mechanism.warnings
    assert "transmission 't': the motors of a DifferentialTransmission act on 'i', 'j' together" in warning


def test_springs_of_gazebo_act(tmp_path):
    """effort = −k (q − reference): the motion of a harmonic oscillator about the reference."""
    spring = '<gazebo reference="i"><springStiffness>4</springStiffness><springReference>0.5</springReference></gazebo>'
    lock = 'type="fixed"'
    text = robot(spring).replace('name="j" type="revolute"', f'name="j" {lock}')
    (tmp_path / "r.urdf").write_text(text)
    model = Model.from_urdf(tmp_path / "r.urdf", gravity=(0, 0, 0))
    acceleration = model.forward_dynamics(np.array([0.8]), np.zeros(1), np.zeros(1))
    assert acceleration == pytest.approx([-4 * 0.3 / 2], rel=1e-14)  # both links turn with the inertia 1


LOST = {
    "gravity that is off": '<gazebo reference="b"><turnGravityOff>true</turnGravityOff></gazebo>'
    '<gazebo reference="c"><gravity>0</gravity></gazebo>',
    "the attribute of it": '<gazebo reference="b"><turnGravityOff value="true"/></gazebo>',
    "a kinematic link": '<gazebo reference="b"><kinematic>1</kinematic></gazebo>',
    "a robot at rest": "<gazebo><static>true</static></gazebo>",
    "a loop": '<gazebo><joint name="loop" type="revolute"><parent>a</parent><child>c</child></joint></gazebo>',
    "a plug-in that moves": '<gazebo><plugin name="p" filename="libmimic_joint.so"><joint>i</joint></plugin></gazebo>',
    "a spring of several dofs": '<gazebo reference="i"><springStiffness>1</springStiffness></gazebo>',
    "a stiffness in words": '<gazebo reference="i"><springStiffness>much</springStiffness></gazebo>',
    "a negative stiffness": '<gazebo reference="i"><springStiffness>-1</springStiffness></gazebo>',
    "a transmission of nothing": transmission("SimpleTransmission", [("k", 1)], [("m", 1)]),
    "a reduction of 0": transmission("SimpleTransmission", [("i", 1)], [("m", 0)]),
    "four bars": transmission("FourBarLinkageTransmission", [("i", 1), ("j", 1)], [("m", 1), ("n", 1)]),
    "control of nothing": control("", "k"),
    "a mimic of ros2_control": control('<param name="mimic">j</param>'),
    "a limit in words": control(interface("command", "effort", max="much")),
    "soft limits without a range": "",
    "friction where onshape-to-robot has it": "",
    "a loop of onshape-to-robot": '<link name="closing_rod_1"/><link name="closing_rod_2"/>'
    + "".join(
        f'<joint name="frame_{k}" type="fixed"><parent link="{link}"/><child link="closing_rod_{k}"/></joint>'
        for k, link in ((1, "a"), (2, "c"))
    ),
}
INSIDE = {
    "soft limits without a range": soft(1, -1),
    "friction where onshape-to-robot has it": '<joint_properties friction="0.1" damping="0.0"/>',
}


@pytest.mark.parametrize("case", LOST)
def test_what_is_lost_is_warned_of(case, said, tmp_path):
    kind = "planar" if case == "a spring of several dofs" else "revolute"
    text = robot(LOST[case], i=INSIDE.get(case, ""), kind=kind)
    (warning,) = parse_robot(text, "r.urdf").mechanism.warnings
    said(warning)
    (tmp_path / "r.urdf").write_text(text)
    with pytest.warns(RunWarning, match="r.urdf:"):
        Model.from_urdf(tmp_path / "r.urdf")


LEFT_ALONE = """
<gazebo reference="b"><gravity>1</gravity><mu1>0.5</mu1><selfCollide>true</selfCollide></gazebo>
<gazebo reference="i"><implicitSpringDamper>1</implicitSpringDamper><stopKp>1</stopKp></gazebo>
<gazebo><plugin name="c" filename="libgazebo_ros_control.so"><robotNamespace>/r</robotNamespace></plugin></gazebo>
<gazebo reference="c"><sensor name="s"><plugin filename="libimu_of_a_windmill.so" name="p"/></sensor></gazebo>
"""


def test_contacts_solvers_sensors_and_control_of_gazebo_are_left_alone():
    found = read(LEFT_ALONE)
    assert (found.mechanism.warnings, found.mechanism.notes, found.actuators) == ((), (), ())


FUSION = {
    "gripper.xacro": """<?xml version="1.0" ?>
<robot name="gripper" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:include filename="$(find gripper_description)/urdf/gripper.trans" />
<xacro:include filename="$(find gripper_description)/urdf/gripper.gazebo" />
<link name="base_link"/>
<link name="finger_v1_1"><inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="0.4"/>
<inertia ixx="0.001" iyy="0.001" izz="1e-06" ixy="0.0" iyz="-0.0" ixz="0.0"/></inertial></link>
<link name="screw_1"><inertial><origin xyz="0 0 0" rpy="0 0 0"/><mass value="0.0002"/>
<inertia ixx="0.0" iyy="0.0" izz="0.0" ixy="0.0" iyz="0.0" ixz="0.0"/></inertial></link>
<joint name="Revolute 1" type="continuous"><origin xyz="0 0 0.1" rpy="0 0 0"/><parent link="base_link"/>
<child link="finger_v1_1"/><axis xyz="0.0 1.0 -0.0"/></joint>
<joint name="Rigid 2" type="fixed"><origin xyz="0 0 0.1" rpy="0 0 0"/><parent link="finger_v1_1"/>
<child link="screw_1"/></joint>
</robot>""",
    "gripper.trans": """<?xml version="1.0" ?>
<robot name="gripper" xmlns:xacro="http://www.ros.org/wiki/xacro" >
<xacro:property name="gear" value="${2*6}" />
<transmission name="Revolute 1_tran"><type>transmission_interface/SimpleTransmission</type>
<joint name="Revolute 1"><hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>
<actuator name="Revolute 1_actr"><mechanicalReduction>${gear}</mechanicalReduction></actuator></transmission>
</robot>""",
    "gripper.gazebo": """<?xml version="1.0" ?>
<robot name="gripper" xmlns:xacro="http://www.ros.org/wiki/xacro" >
<xacro:property name="body_color" value="Gazebo/Silver" />
<gazebo><plugin name="control" filename="libgazebo_ros_control.so"/></gazebo>
<gazebo reference="finger_v1_1"><material>${body_color}</material><mu1>0.2</mu1><gravity>true</gravity></gazebo>
</robot>""",
}


def test_a_package_as_fusion2urdf_writes_it(tmp_path):
    """xacro with files of transmissions and of Gazebo; joints with blanks in their names, links that are points."""
    folder = tmp_path / "gripper_description" / "urdf"
    folder.mkdir(parents=True)
    for name, text in FUSION.items():
        (folder / name).write_text(text)
    found = read_urdf(folder / "gripper.xacro")
    assert (found.mechanism.warnings, found.mechanism.notes) == ((), ())
    (motor,) = found.actuators
    assert (motor.name, motor.joints) == ("Revolute 1_actr", {"Revolute 1": 12.0})
    inertia = 0.001 + 0.4 * 0.1**2 + 0.0002 * 0.1**2
    assert Model(found.mechanism).mass_matrix(np.zeros(1)) == pytest.approx(inertia, rel=1e-14)
