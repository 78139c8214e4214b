"""The emulated CiA 402 drive: process data and motion; frames of any content."""

import struct

import pytest

from cosim.plugins.drivers.cia402 import sdo
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.transport import CanFrame
from tests.drivers.cia402.emulator_bench import COUNTS, TURN, Rig, map_pdo


def test_values_count_from_sync_on(rig):
    map_pdo(rig, 0x1400, 0x205, 1, 0x60400010, 0x60710010)
    map_pdo(rig, 0x1800, 0x185, 1, 0x60410010, 0x60610008, 0x60640020)
    rig.enable(10)
    rig.run(1)
    rig.send(0x205, "0F 00 64 00")
    assert rig.read(0x6071, kind="h") == 0
    assert rig.send(0x80) == [CanFrame(0x185, bytes.fromhex("37 12 0A 00 00 00 00"))]
    assert rig.read(0x6071, kind="h") == 100
    rig.write(0x6071, 0, "h", 7)
    rig.send(0x80)  # nothing was received since
    assert rig.read(0x6071, kind="h") == 7
    rig.send(0, "80 05")
    assert rig.send(0x80) == []


def test_other_transmission_types(rig):
    map_pdo(rig, 0x1800, 0x40000185, 3, 0x60410010)
    rig.send(0, "01 05")
    assert [len(rig.send(0x80)) for _ in range(6)] == [0, 0, 1, 0, 0, 1]
    map_pdo(rig, 0x1800, 0x40000185, 0, 0x60410010)
    assert [len(rig.send(0x80)) for _ in range(3)] == [1, 0, 0]
    rig.control(6)
    assert [len(rig.send(0x80)) for _ in range(2)] == [1, 0]
    map_pdo(rig, 0x1800, 0x185, 253, 0x60410010)
    assert rig.emulator.handle(CanFrame(0x185, b"", remote=True), rig.t)[0].data == struct.pack("<H", rig.status)


def test_sent_on_change_and_by_timer(rig):
    map_pdo(rig, 0x1801, 0x40000285, 255, 0x60410010)
    rig.send(0, "01 05")
    assert rig.count(0x285, 10) == 1
    rig.control(6)
    assert rig.count(0x285, 10) == 1
    rig.write(0x1801, 5, "H", 5)
    assert rig.count(0x285, 20) in (4, 5)
    rig.write(0x1801, 3, "H", 100)  # not twice within 10 ms
    assert rig.count(0x285, 20) == 2


def test_mappings_that_are_refused(rig):
    rig.write(0x1400, 1, "I", 0x80000205)
    rig.write(0x1600, 0, "B", 0)
    assert rig.refused(0x1600, 1, "I", 0x60410010) == sdo.NO_MAPPING  # cannot be received
    assert rig.refused(0x1600, 1, "I", 0x60400020) == sdo.NO_MAPPING  # another length
    assert rig.refused(0x1600, 1, "I", 0x50000010) == sdo.NO_OBJECT
    for k in range(3):
        rig.write(0x1600, k + 1, "I", 0x607A0020)
    assert rig.refused(0x1600, 0, "B", 3) == sdo.MAPPING_TOO_LONG
    assert rig.refused(0x1400, 2, "B", 245) == sdo.BAD_VALUE


def test_too_few_bytes_are_none_at_all(rig):
    map_pdo(rig, 0x1400, 0x205, 255, 0x60710010, 0x60B20010)
    rig.send(0, "01 05")
    rig.send(0x205, "64 00 01")
    assert rig.read(0x6071, kind="h") == 0
    assert rig.emergencies() == [0x8210]
    rig.send(0x205, "64 00 01 00 FF")
    assert rig.read(0x6071, kind="h") == 100


def test_torque_in_thousandths_of_the_rated_torque(rig):
    rig.enable(10)
    rig.write(0x6071, 0, "h", 1000)
    rig.write(0x60B2, 0, "h", 500)
    rig.run(1)
    assert rig.motor.effort == pytest.approx(1.5 * 0.667)
    assert rig.read(0x6077, kind="h") == 1500
    rig.write(0x6072, 0, "H", 300)
    rig.run(1)
    assert rig.motor.effort == pytest.approx(0.3 * 0.667)
    assert rig.status & 0x800


def test_torque_ends_at_the_greatest_speed(rig):
    rig.enable(10)
    rig.write(0x6080, 0, "I", 60)
    rig.write(0x6071, 0, "h", 1000)
    rig.run(500)
    assert rig.motor.velocity == pytest.approx(TURN, abs=1.0)


@pytest.mark.parametrize("inertia", [1e-3, 1e-2, 1.0])
def test_the_loops_of_a_strong_drive_are_stable_with_any_inertia(inertia):
    motor = Rotor(inertia, 1e-3, max_effort=100.0)
    motor.max_velocity = 10.0
    rig = Rig(motor)
    rig.enable(9)
    rig.write(0x60FF, 0, "i", COUNTS // 4)
    rig.run(1000)
    for _ in range(100):
        rig.run(1)
        assert motor.velocity == pytest.approx(TURN / 4, rel=0.02)
    rig.write(0x60FF, 0, "i", 0)
    rig.enable(8)
    goal = rig.position + COUNTS // 8
    rig.write(0x607A, 0, "i", goal)
    rig.run(2000)
    assert (rig.position, motor.velocity) == (pytest.approx(goal, abs=3), pytest.approx(0.0, abs=0.01))


def test_cyclic_position_follows_a_line(rig):
    rig.write(0x60C2, 1, "B", 10)
    rig.enable(8)
    rig.write(0x607A, 0, "i", 1000)
    rig.run(5)
    assert rig.read(0x6062, kind="i") == 500
    rig.run(600)
    assert rig.position == pytest.approx(1000, abs=2)
    assert rig.status & 0x1000


def test_cyclic_position_does_not_jump_when_enabled(rig):
    rig.write(0x607A, 0, "i", 3000)
    rig.enable(8)
    rig.run(100)
    assert rig.position == 0


def test_software_limits(rig):
    rig.write(0x607D, 2, "i", 500)
    rig.enable(8)
    rig.write(0x607A, 0, "i", 1000)
    rig.run(600)
    assert rig.position == pytest.approx(500, abs=10)
    assert rig.status & 0x800
    rig.write(0x6060, 0, "b", 10)
    rig.motor.position = 600 / COUNTS * TURN
    rig.write(0x6071, 0, "h", 100)
    rig.run(1)
    assert rig.motor.effort == 0
    rig.write(0x6071, 0, "h", -100)
    rig.run(1)
    assert rig.motor.effort < 0


def test_profile_velocity_and_halt(rig):
    rig.enable(3)
    rig.write(0x6083, 0, "I", 20 * COUNTS)
    rig.write(0x60FF, 0, "i", 4 * COUNTS)
    rig.run(100)
    assert rig.motor.velocity == pytest.approx(2 * TURN, rel=0.1)
    assert not rig.status & 0x400
    rig.run(400)
    assert rig.motor.velocity == pytest.approx(4 * TURN, rel=0.02)
    assert rig.status & 0x400
    rig.control(0x10F)
    rig.run(400)
    assert abs(rig.motor.velocity) < 1.0
    assert rig.status & 0x400
    rig.control(0x0F)
    rig.run(500)
    assert rig.motor.velocity == pytest.approx(4 * TURN, rel=0.02)


def test_profile_position(rig):
    rig.enable(1)
    rig.write(0x6081, 0, "I", 2 * COUNTS)
    rig.write(0x607A, 0, "i", COUNTS)
    rig.run(20)
    assert rig.position == 0  # before the edge of bit 4
    rig.control(0x1F)
    assert not rig.status & 0x400
    rig.run(300)
    assert rig.motor.velocity == pytest.approx(2 * TURN, rel=0.1)
    assert rig.status & 0x1000
    rig.run(800)
    assert rig.status & 0x400
    assert rig.position == pytest.approx(COUNTS, abs=4)
    rig.control(0x0F, 0x5F)  # as far again
    rig.run(1500)
    assert rig.position == pytest.approx(2 * COUNTS, abs=4)


@pytest.mark.parametrize(("method", "home"), [(34, COUNTS), (33, 0), (18, COUNTS), (-3, 0)])
def test_homing_on_the_index_pulse(rig, method, home):
    rig.motor.position = 0.7 * TURN
    rig.run(1)
    rig.write(0x6098, 0, "b", method)
    rig.write(0x607C, 0, "i", 100)
    rig.enable(6)
    assert rig.status & 0x3400 == 0x0400
    rig.control(0x1F)
    assert rig.status & 0x3400 == 0
    rig.run(3000)
    assert rig.status & 0x3400 == 0x1400
    raw = round(rig.motor.position / TURN * COUNTS)
    assert rig.position == pytest.approx(raw - home + 100, abs=1)


def test_homing_in_place_and_aborted(rig):
    rig.motor.position = 0.7 * TURN
    rig.write(0x6098, 0, "b", 37)
    rig.enable(6)
    rig.control(0x1F)
    rig.run(1)
    assert rig.position == 0
    rig.write(0x6098, 0, "b", 34)
    rig.control(0x0F, 0x1F)
    rig.run(2)
    rig.control(0x0F)
    assert rig.status & 0x3400 == 0x0400
