"""Drives with other units behind the driver: what is commanded arrives, and what is measured is true."""

import math

import pytest

from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.cia402 import configuration
from tests.drivers.bench import refused
from tests.drivers.cia402.conftest import JOINT
from tests.drivers.cia402.unit_variants import VARIANTS

DEGREE = math.pi / 180.0
KNOWN = [name for name, variant in VARIANTS.items() if variant.known]


def sense(name: str) -> float:
    return -1.0 if VARIANTS[name].drive.get("reversed") else 1.0


@pytest.fixture
def made(bench):
    """made(name, mode, …) -> the drive of a variant."""

    def make(name, mode="effort", effort=2.0, wired=None, **options):
        variant = VARIANTS[name]
        joint = JOINT(id=3, **variant.wired, **wired or {})
        return bench(joint, mode=mode, drive=variant.drive, effort=effort, **options)

    return make


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_commanded_arrives_and_what_is_measured_is_true(made, name):
    b = made(name).start()
    b.cycle(200, effort=0.02)
    motor = b.motors[0]
    assert motor.velocity * sense(name) > 2.0
    assert b.out.velocity * sense(name) == pytest.approx([motor.velocity], rel=0.06)  # rpm are coarse
    assert motor.effort * sense(name) == pytest.approx(0.02, abs=1e-3)
    assert b.out.effort == pytest.approx([0.02], abs=1e-3)
    b.cycle(100, effort=0.0)
    assert b.out.velocity * sense(name) == pytest.approx([motor.velocity], rel=0.03)
    if VARIANTS[name].known:
        b.driver.enable("velocity")
        b.cycle(200, velocity=7.0)
        assert motor.velocity * sense(name) == pytest.approx(7.0, abs=0.06)
        assert b.out.velocity == pytest.approx([7.0], abs=0.12)
    goal = b.out.position[0] + 30 * DEGREE
    b.driver.enable("position")
    b.cycle(550, position=goal, velocity=0.0)
    assert motor.position * sense(name) == pytest.approx(goal, abs=1e-3)
    assert b.out.position == pytest.approx([goal], abs=1e-3)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in KNOWN])
def test_no_velocity_is_commanded_in_an_unknown_unit(made, name, said):
    said(refused(made(name, "velocity").driver.open))
    b = made(name, "position").start()
    b.cycle(2, velocity=7.0)
    assert b.node().value(0x60B100) == 0
    said(refused(made(name, wired={"homing": cia402.Homing(method=34, slow=1.0)}).driver.open))


def test_a_rated_torque_in_another_unit_is_refused_before_anything_is_enabled(bench, said):
    found = {
        refused(bench(JOINT(id=3), mode=mode, drive={"torque_unit": "uN*m"}, effort=2.0).driver.open)
        for mode in ("effort", "velocity", "position")
    }
    said(found)


@pytest.mark.parametrize("name", KNOWN)
def test_limits_of_the_drive_are_those_of_the_shaft(made, name):
    wide = made(name, velocity=101.0)
    assert "the velocity limit is 101 rad/s at node 3, whose own limit is 100.0" in refused(wide.driver.open)
    strong = made(name, effort=2.1)
    assert "the effort limit is 2.1 N*m at node 3, whose own limit is " in refused(strong.driver.open)
    b = made(name, effort=1.0)
    b.driver.open()
    assert 1e-6 * b.node().rated * b.node().value(0x607200) == pytest.approx(1.0, abs=1e-3)


def test_software_position_limits_of_the_drive(made, said):
    b = made("feed constant and factor", effort=math.inf, wired={"zero": 0.5})
    b.context.limits.lower[:], b.context.limits.upper[:] = -1.0, 2.0
    b.node().values |= {0x607D01: -4000, 0x607D02: 2000}  # of 10000 per turn
    said(refused(b.driver.open))
    b.node().values |= {0x607D02: 3000}
    b.driver.open()


@pytest.mark.parametrize("name", KNOWN)
def test_speeds_of_homing_are_in_the_units_of_the_drive(made, name):
    b = made(name, "position", wired={"homing": cia402.Homing(method=34, slow=20.0, timeout=2.0)}).start()
    node, place = b.node(), b.motors[0].position * sense(name)
    assert node.rate_of(0x609902) * node.step == pytest.approx(20.0, abs=0.06)
    assert place >= 2 * math.pi
    assert b.read().position == pytest.approx([place - 2 * math.pi], abs=2e-3)


def test_a_drive_with_two_answers_to_one_question_is_not_opened(bench, said):
    b = bench(JOINT(id=3, cpr=10000), drive={"encoder_resolution": 131072, "feed_constant": 20000})
    said(refused(b.driver.open))
    assert all(frame.id != 0x203 for frame in b.sent), "no process data"


def test_a_counter_that_wraps_does_not_jump_in_the_velocity(made):
    b = made("rpm that it does not report")
    b.node().zero -= 2**31 - 400
    b.start()
    b.motors[0].velocity = 5.0
    seen = [float(b.cycle(1).velocity[0]) for _ in range(40)]
    assert b.node().actual() > 2**31 and max(map(abs, seen)) < 6.0


def test_the_factor_group_is_restored_before_numbers_in_its_units(running, said):
    b = running(JOINT(id=3), drive=VARIANTS["feed constant"].drive)
    saved = configuration.read(b.driver, 0)
    assert (saved["6092.1 feed"], saved["608F.1 encoder increments"]) == (10000, 131072)
    before = b.node().value(0x608100)
    changes = {"6081 profile velocity": before + 1, "6092.1 feed": 20000}
    said(refused(configuration.write, b.driver, 0, changes))
    assert b.node().value(0x608100) == before
