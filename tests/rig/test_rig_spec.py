"""Rig files: what a good one becomes, and what is said of one with many mistakes."""

import math
from pathlib import Path

import pytest

from cosim.core.errors import InputError
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.given import beside
from tests.kit.refusals import raised

GIVEN = beside(__file__)

ARM = """\
controllers:
  - name: arm
    type: pd
    kp: 1
"""

URDF = """\
<robot name="two">
  <link name="a"/>
  <link name="b"><inertial>
    <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>
  <joint name="hinge" type="continuous"><parent link="a"/><child link="b"/></joint>
</robot>
"""


def test_a_small_rig_has_defaults(rigs):
    rig = rigs.read(rigs.mechanism)
    assert (rig.name, rig.path, rig.description) == ("rig", Path("rig.yaml"), "")
    assert rig.mechanism.gravity == (0.0, 0.0, -9.81)
    assert rig.mechanism.urdf is None
    assert rig.mechanism.description.name == "rig"
    assert list(rig.joints) == ["shoulder", "elbow", "lift"]
    assert rig.controllers == ()
    schedule = rig.schedule
    assert (schedule.step_ns, schedule.duration_ns) == (1_000_000, 5_000_000_000)
    assert (schedule.integrator, schedule.substeps, schedule.seed) == ("rk4", 1, 0)
    assert (rig.telemetry.publish, rig.telemetry.rate) == (None, 50.0)
    assert rig.source.text == rigs.mechanism


def test_a_joint_without_settings_is_free(rigs):
    joint = rigs.read(rigs.mechanism).joints["elbow"]
    assert joint.actuator is joint.encoder is joint.prescribed is None
    assert (joint.initial_position, joint.initial_velocity) == (0.0, 0.0)
    assert joint.limits.pop("lower") == -math.inf
    assert set(joint.limits.values()) == {math.inf}


FULL = GIVEN["full"]


def test_joints_of_a_full_rig(rigs):
    rig = rigs.read(rigs.mechanism + FULL)
    shoulder, elbow, lift = rig.joints.values()
    assert shoulder.actuator.module.__name__ == "cosim.plugins.actuators.motor"
    assert (shoulder.actuator.params.resistance, shoulder.actuator.params.gear) == (2.0, 1.0)
    assert (elbow.actuator.params.resistance, elbow.actuator.params.gear) == (0.5, 100.0)
    assert (shoulder.encoder.cpr, shoulder.encoder.delay) == (None, 1)
    assert (elbow.encoder.cpr, elbow.encoder.delay) == (4096, 0)
    assert shoulder.initial_position == pytest.approx(math.pi / 6)
    assert shoulder.initial_velocity == 0.5
    assert (shoulder.limits["lower"], shoulder.limits["effort"]) == (-1.0, 9.0)
    assert (shoulder.limits["upper"], shoulder.limits["velocity"]) == (
        pytest.approx(math.pi / 3),
        pytest.approx(math.pi / 2),
    )
    assert lift.actuator is None
    assert lift.prescribed.params.goal == (0.005,)


LIMITS = """\
joints:
  all:
    limits: {lower: -0.5, velocity: 3, effort: 4, actions: {velocity: stop, effort: warn}}
  shoulder: {limits: {effort: 5, velocity: null, actions: {effort: saturate}}}
  elbow: {limits: {}}
  lift: {limits: null}
"""


def test_limits_of_a_joint_go_one_by_one_before_those_of_all(rigs):
    joints = rigs.read(rigs.mechanism + LIMITS).joints
    keys = ("lower", "velocity", "effort")
    found = {name: tuple(joint.limits[key] for key in keys) for name, joint in joints.items()}
    assert found == {
        "shoulder": (-0.5, math.inf, 5.0),
        "elbow": (-0.5, 3.0, 4.0),
        "lift": (-math.inf, math.inf, math.inf),
    }
    stop = {"velocity": "stop"}
    assert [joint.actions for joint in joints.values()] == [
        stop | {"effort": "saturate"},
        stop | {"effort": "warn"},
        {},
    ]


def test_an_override_of_one_limit_keeps_those_of_all(rigs):
    text = rigs.mechanism + "joints: {all: {limits: {velocity: 3, effort: 4}}}\n"
    joints = rigs.read(text, "joints.elbow.limits.effort=5").joints
    found = [(joint.limits["velocity"], joint.limits["effort"]) for joint in joints.values()]
    assert found == [(3.0, 4.0), (3.0, 5.0), (3.0, 4.0)]


def test_the_rest_of_a_full_rig(rigs):
    rig = rigs.read(rigs.mechanism + FULL)
    (controller,) = rig.controllers
    assert (controller.name, controller.joints) == ("pd", ("shoulder", "elbow"))
    assert (controller.period_ns, controller.ticks) == (4_000_000, 2)
    assert controller.plugin.module.__name__ == "cosim.plugins.controllers.pd"
    assert (controller.plugin.params.kp, controller.plugin.params.kd) == ((1.0, 2.0), (0.0, 0.0))
    assert controller.trajectory.params.goal == (pytest.approx(math.pi / 4), 0.0)
    assert (rig.name, rig.description) == ("full", "every section")
    assert (rig.schedule.step_ns, rig.schedule.duration_ns) == (2_000_000, 60_000_000_000)
    assert (rig.schedule.integrator, rig.schedule.substeps, rig.schedule.seed) == ("rosenbrock", 3, 7)
    assert (rig.telemetry.publish, rig.telemetry.rate) == ("tcp://127.0.0.1:5556", 20.0)


def test_a_commanded_joint_has_an_ideal_actuator(rigs):
    rig = rigs.read(rigs.mechanism + ARM + "    joints: [elbow]\n")
    assert rig.joints["elbow"].actuator.module.__name__ == "cosim.plugins.actuators.ideal"
    assert rig.joints["shoulder"].actuator is None
    assert rig.controllers[0].trajectory is None
    assert (rig.controllers[0].period_ns, rig.controllers[0].ticks) == (1_000_000, 1)


def test_overrides(rigs):
    overrides = ("controllers.arm.kp=[1, 2, 3]", "schedule={step: 500 us}", "name=other")
    rig = rigs.read(rigs.mechanism + ARM, *overrides)
    assert rig.controllers[0].plugin.params.kp == (1.0, 2.0, 3.0)
    assert rig.controllers[0].period_ns == rig.schedule.step_ns == 500_000
    assert rig.name == "other"


def test_a_period_may_be_rounded_by_binary_fractions(rigs):
    rig = rigs.read(rigs.mechanism + ARM + "    period: 0.3\nschedule: {step: 0.1}\n")
    assert (rig.controllers[0].ticks, rig.controllers[0].period_ns) == (3, 300_000_000)


def test_a_urdf_is_found_beside_the_rig(rigs, tmp_path):
    (tmp_path / "rigs").mkdir()
    Path("rigs/two.urdf").write_text(URDF)
    Path("rigs/two.yaml").write_text("mechanism: {urdf: two.urdf, gravity: [0, 0, 0]}\n")
    rig = read_rig("rigs/two.yaml")
    assert list(rig.joints) == ["hinge"]
    assert (rig.mechanism.urdf, rig.mechanism.gravity) == (Path("rigs/two.urdf"), (0.0, 0.0, 0.0))


def test_a_controller_in_a_file_of_its_own(rigs):
    Path("mine.py").write_text(rigs.head + "    gain: PerJoint = param(unit='joint effort', default=2)\n")
    controllers = "controllers: [{type: mine.py, joints: [lift, elbow], gain: [1 N, 2 N*m]}]\n"
    rig = rigs.read(rigs.mechanism + controllers)
    assert rig.controllers[0].name == "mine"
    assert rig.controllers[0].plugin.params.gain == (1.0, 2.0)


def test_overrides_name_themselves(rigs, said):
    overrides = ("controllers.arn.kp=3", "controllers.arm.kp=-3", "schedule={step: x}")
    said(rigs.mistakes(rigs.mechanism + ARM, *overrides))


WRONG = GIVEN["wrong"]


def test_many_mistakes_in_the_order_of_their_lines(rigs, said):
    Path("two.urdf").write_text(URDF)
    said(rigs.mistakes(WRONG))


def test_mistakes_of_other_files_come_last(rigs):
    Path("two.urdf").write_text(URDF.replace("continuous", "hinge").replace('value="1"', 'value="x"'))
    found = rigs.mistakes(WRONG)
    assert found[0] == "rig.yaml:1 name: expected text, got 7; put it in quotes"
    assert [line.split(" ")[0] for line in found[-2:]] == ["two.urdf:4", "two.urdf:6"]


def test_without_a_mechanism_no_errors_of_joints_are_reported(rigs, said):
    said(rigs.mistakes(WRONG))


def test_a_urdf_that_is_nearly_named_right(rigs, said):
    Path("two.urdf").touch()
    said(rigs.mistakes("mechanism: {urdf: twoo.urdf}\n"))


def test_broken_yaml_is_one_error(rigs):
    Path("rig.yaml").write_text("mechanism: [\n")
    caught = raised(InputError, read_rig, "rig.yaml")
    assert str(caught).startswith("rig.yaml:2: broken YAML: ")
    assert caught.exit_code == 2
