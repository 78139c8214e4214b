"""Drives with other units behind the driver: what is commanded arrives, and what is measured is true."""

from __future__ import annotations

import math

import pytest

from cosim.drivers import cia402
from cosim.drivers.cia402 import configuration
from tests.drivers.cia402.driver_bench import JOINT, refused
from tests.drivers.cia402.unit_variants import VARIANTS

DEGREE = math.pi / 180.0
MODES = ("effort", "velocity", "position")
KNOWN = [name for name, variant in VARIANTS.items() if variant.known]


def sense(name: str) -> float:
    return -1.0 if VARIANTS[name].drive.get("reversed") else 1.0


@pytest.fixture
def opened(bench):
    def make(name, mode, **options):
        variant = VARIANTS[name]
        b = bench(JOINT(id=3, **variant.wired), mode=mode, drive=variant.drive, effort=2.0, **options)
        b.driver.open()
        return b

    return make


@pytest.mark.parametrize("name", VARIANTS)
def test_a_goal_of_30_degrees_turns_the_shaft_by_30_degrees(opened, name):
    b = opened(name, "position")
    b.driver.enable("position")
    b.cmd.position[:] = 30 * DEGREE
    b.cycle(1500)
    assert b.motors[0].position * sense(name) == pytest.approx(30 * DEGREE, abs=1e-3)
    assert b.out.position == pytest.approx([30 * DEGREE], abs=1e-3)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_true_speed_and_torque_are_measured_and_an_effort_arrives(opened, name):
    b = opened(name, "effort")
    b.driver.enable("effort")
    b.cmd.effort[:] = 0.02
    b.cycle(200)
    motor = b.motors[0]
    assert motor.velocity * sense(name) > 2.0
    assert b.out.velocity * sense(name) == pytest.approx([motor.velocity], rel=0.06)  # rpm are coarse
    assert motor.effort * sense(name) == pytest.approx(0.02, abs=1e-3)
    assert b.out.effort == pytest.approx([0.02], abs=1e-3)
    b.cmd.effort[:] = 0.0
    b.cycle(100)
    assert b.out.velocity * sense(name) == pytest.approx([motor.velocity], rel=0.03)


@pytest.mark.parametrize("name", KNOWN)
def test_a_velocity_is_held(opened, name):
    b = opened(name, "velocity")
    b.driver.enable("velocity")
    b.cmd.velocity[:] = 7.0
    b.cycle(1000)
    assert b.motors[0].velocity * sense(name) == pytest.approx(7.0, abs=0.06)
    assert b.out.velocity == pytest.approx([7.0], abs=0.12)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in KNOWN])
def test_no_velocity_is_commanded_in_an_unknown_unit(opened, bench, name):
    assert refused(opened, name, "velocity") == (
        "rig.yaml:7 joints.joint0.id: node 3 does not report its unit of velocity (60A9h), which velocity mode needs;"
        " give 'velocity_unit', such as 'rpm' or 'counts/s', from its manual"
    )
    b = opened(name, "position")
    b.driver.enable("position")
    b.cmd.velocity[:] = 7.0
    b.cycle(2)
    assert b.node().value(0x60B100) == 0
    homing = cia402.Homing(method=34, slow=1.0)
    b = bench(JOINT(id=3, homing=homing), mode="effort", drive=VARIANTS[name].drive)
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: node 3 does not report its unit of velocity (60A9h), which speeds of homing"
        " needs; give 'velocity_unit', such as 'rpm' or 'counts/s', from its manual"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_rated_torque_in_another_unit_is_refused_before_anything_is_enabled(bench, mode):
    b = bench(JOINT(id=3), mode=mode, drive={"torque_unit": "uN*m"}, effort=2.0)
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: node 3 has a rated torque of 667 N*m (6076h: 667000), 334 times as much: the"
        " joint's limit of effort is 2 N*m there; is 6076h in another unit, as uN*m? Give 'rated_torque', that of the"
        " motor"
    )


@pytest.mark.parametrize("name", KNOWN)
def test_limits_of_the_drive_are_those_of_the_shaft(bench, name):
    variant = VARIANTS[name]
    b = bench(JOINT(id=3, **variant.wired), drive=variant.drive, velocity=101.0)
    assert "the velocity limit is 101 rad/s at node 3, whose own limit is 100.0" in refused(b.driver.open)
    b = bench(JOINT(id=3, **variant.wired), drive=variant.drive, effort=2.1)
    assert "the effort limit is 2.1 N*m at node 3, whose own limit is " in refused(b.driver.open)
    b = bench(JOINT(id=3, **variant.wired), drive=variant.drive, effort=1.0)
    b.driver.open()
    assert 1e-6 * b.node().rated * b.node().value(0x607200) == pytest.approx(1.0, abs=1e-3)


def test_software_position_limits_of_the_drive(bench):
    b = bench(JOINT(id=3, zero=0.5), drive=VARIANTS["feed constant and factor"].drive)
    b.context.limits.lower[:], b.context.limits.upper[:] = -1.0, 2.0
    b.node().values |= {0x607D01: -4000, 0x607D02: 2000}  # of 10000 per turn
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: the upper position limit is 1.5 rad at node 3, whose own limit is 1.25664 rad"
        " (607Dh.2); lower the joint's limit or raise the drive's"
    )
    b.node().values |= {0x607D02: 3000}
    b.driver.open()


@pytest.mark.parametrize("name", KNOWN)
def test_speeds_of_homing_are_in_the_units_of_the_drive(bench, name):
    variant = VARIANTS[name]
    homing = cia402.Homing(method=34, slow=20.0, timeout=2.0)
    b = bench(JOINT(id=3, homing=homing, **variant.wired), mode="position", drive=variant.drive, effort=2.0)
    b.driver.open()
    b.driver.enable("position")
    node = b.node()
    assert node.rate_of(0x609902) * node.step == pytest.approx(20.0, abs=0.06)
    assert b.motors[0].position * sense(name) >= 2 * math.pi
    assert b.read().position == pytest.approx([b.motors[0].position * sense(name) - 2 * math.pi], abs=2e-3)


def test_a_drive_with_two_answers_to_one_question_is_not_opened(bench):
    b = bench(JOINT(id=3, cpr=10000), drive={"encoder_resolution": 131072, "feed_constant": 20000})
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: node 3 has 20000 position units per revolution (feed constant, 6092h), the rig"
        " has 'cpr: 10000'; take 'cpr' out or correct the drive"
    )
    assert all(frame.id != 0x203 for frame in b.sent), "no process data"


def test_a_counter_that_wraps_does_not_jump_in_the_velocity(opened):
    b = opened("rpm that it does not report", "effort")
    b.driver.enable("effort")
    b.node().zero -= 2**31 - 400
    b.motors[0].velocity = 5.0
    seen = []
    for _ in range(40):
        b.cycle(1)
        seen.append(float(b.out.velocity[0]))
    assert b.node().actual() > 2**31 and max(map(abs, seen)) < 6.0


def test_the_factor_group_is_restored_before_numbers_in_its_units(running):
    b = running(JOINT(id=3), drive=VARIANTS["feed constant"].drive)
    saved = configuration.read(b.driver, 0)
    assert (saved["6092.1 feed"], saved["608F.1 encoder increments"]) == (10000, 131072)
    before = b.node().value(0x608100)
    changes = {"6081 profile velocity": before + 1, "6092.1 feed": 20000}
    assert refused(configuration.write, b.driver, 0, changes) == (
        "joint 'joint0': node 3 refused its set-up: read-only object (abort code 0x06010002); see the drive's manual"
    )
    assert b.node().value(0x608100) == before
