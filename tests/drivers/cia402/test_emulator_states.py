"""The emulated CiA 402 drive: network, objects, states, faults and watchdog."""

import math
import struct

import numpy as np
import pytest

from cosim.plugins.drivers.cia402 import sdo
from cosim.plugins.drivers.transport import CanFrame
from tests.drivers.cia402.emulator_bench import COUNTS, TURN, Rig, map_pdo

HEX = bytes.fromhex
DISABLED, QUICK_STOP, REACTING, FAULT, ENABLED = 0x40, 0x07, 0x0F, 0x08, 0x27


def test_boot_up_then_pre_operational(rig):
    assert rig.heard == [CanFrame(0x705, b"\x00")]
    rig.write(0x1017, 0, "H", 10)
    rig.run(21)
    assert [f for f in rig.heard if f.id == 0x705][1:] == [CanFrame(0x705, b"\x7f")] * 3
    rig.send(0, "01 05")
    rig.heard.clear()
    rig.run(10)
    assert [f for f in rig.heard if f.id == 0x705] == [CanFrame(0x705, b"\x05")]


def test_commands_to_the_network(rig):
    rig.send(0, "01 06")  # to another node
    rig.send(0, "01")
    assert not rig.status & 0x200
    rig.send(0, "01 00")
    assert rig.status & 0x200
    rig.send(0, "02 05")  # a stopped node answers nothing
    assert rig.send(0x605, "40 41 60 00 00 00 00 00") == []
    rig.send(0, "80 05")
    assert rig.state == DISABLED


def test_resets(rig):
    rig.write(0x1017, 0, "H", 10)
    rig.write(0x6085, 0, "I", 77)
    rig.send(0, "82 05")
    rig.heard.clear()
    rig.run(2)
    assert rig.heard == [CanFrame(0x705, b"\x00")]
    assert (rig.read(0x1017, kind="H"), rig.read(0x6085)) == (0, 77)
    rig.enable(10)
    rig.write(0x6071, 0, "h", 1000)
    rig.run(5)
    rig.send(0, "81 05")
    assert rig.motor.effort == 0
    rig.run(2)
    assert rig.read(0x6085) != 77 and rig.state == DISABLED


def test_objects_by_sdo(rig):
    assert rig.ask(HEX("40 00 10 00 00 00 00 00")) == HEX("43 00 10 00 92 01 02 00")
    assert rig.ask(HEX("2B 40 60 00 06 00 00 00")) == HEX("60 40 60 00 00 00 00 00")
    assert rig.transfer(sdo.upload(0x1008, 0)) == b"emulated CiA 402 drive"
    assert (rig.read(0x608F, 1), rig.read(0x6076), rig.read(0x6072, kind="H")) == (COUNTS, 667, 2999)
    assert (rig.read(0x6080), rig.read(0x1018, 2)) == (955, 0x402)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ("40 00 50 00 00 00 00 00", 0x06020000),
        ("40 18 10 09 00 00 00 00", 0x06090011),
        ("2B 41 60 00 00 00 00 00", 0x06010002),
        ("2F 40 60 00 00 00 00 00", 0x06070013),
        ("23 40 60 00 00 00 00 00", 0x06070012),
        ("2F 60 60 00 4D 00 00 00", 0x06090030),
        ("60 00 00 00 00 00 00 00", 0x05040001),
        ("A0 08 10 00 00 00 00 00", 0x05040001),
        ("21 40 60 00 FF FF 00 00", 0x05040005),
        ("21 41 60 00 02 00 00 00", 0x06010002),
        ("23 01 14 01 85 01 00 00", 0x08000022),
        ("23 01 14 01 05 06 00 80", 0x06090030),
        ("23 00 16 01 20 00 41 60", 0x08000022),
        ("2F 00 16 00 00 00 00 00", 0x08000022),
    ],
)
def test_requests_that_are_refused(rig, request_, code):
    assert rig.code(request_) == code


def test_segments_and_their_toggle_bit(rig):
    assert rig.ask(HEX("21 85 60 00 04 00 00 00"))[0] == 0x60
    assert rig.ask(HEX("0A 01 02 00 00 00 00 00")) == HEX("20 00 00 00 00 00 00 00")
    assert rig.code("01 00 00 00 00 00 00 00") == 0x05030000
    rig.ask(HEX("21 85 60 00 04 00 00 00"))
    assert rig.ask(HEX("07 01 02 00 00 00 00 00"))[0] == 0x20
    assert rig.read(0x6085) == 0x201
    rig.ask(HEX("40 08 10 00 00 00 00 00"))
    assert rig.send(0x605, "80 08 10 00 00 00 04 05") == []  # aborted by the client
    assert rig.code("60 00 00 00 00 00 00 00") == 0x05040001


def test_one_producer_is_monitored_once(rig):
    rig.write(0x1016, 1, "I", 0x7F0064)
    assert rig.refused(0x1016, 2, "I", 0x7F0032) == sdo.INCOMPATIBLE
    rig.write(0x1016, 2, "I", 0x7E0032)


def test_the_temperature_has_a_second_key():
    rig = Rig(temperature=0x222201)
    assert rig.ask(HEX("40 22 22 01 00 00 00 00")) == HEX("4B 22 22 01 FA 00 00 00")
    assert rig.refused(0x2222, 1, "h", 0) == sdo.READ_ONLY
    map_pdo(rig, 0x1800, 0x40000185, 1, 0x22220110)
    rig.send(0, "01 05")
    assert rig.send(0x80) == [CanFrame(0x185, b"\xfa\x00")]


def test_a_motor_without_limits():
    rig = Rig(rated_torque=0.0125)
    rig.motor.max_effort = rig.motor.max_velocity = math.inf
    rig.send(0, "81 05")
    rig.run(2)
    assert all(0 < rig.read(index) < 2**32 for index in (0x6080, 0x6081, 0x6083, 0x6085)) and rig.read(0x6076) == 12
    rig.enable(9)
    rig.run(10)
    assert rig.motor.effort == 0.0


# state -> controlwords that lead to it
TRANSITIONS = {
    0x21: ((6,), (6, 7, 6), (6, 7, 15, 6)),
    0x23: ((6, 7), (6, 7, 15, 7)),
    ENABLED: ((6, 7, 15), (6, 15), (6, 7, 15, 0x80)),
    DISABLED: ((7,), (15,), (6, 0), (6, 2), (6, 7, 2), (6, 7, 0), (6, 7, 15, 0), (6, 7, 15, 2, 0)),
    QUICK_STOP: ((6, 7, 15, 2), (6, 7, 15, 2, 15)),
}


@pytest.mark.parametrize("state", TRANSITIONS)
def test_transitions(state):
    for words in TRANSITIONS[state]:
        rig = Rig()
        rig.control(*words)
        assert rig.state == state, words


@pytest.mark.parametrize("mode", [8, 9, 10])
def test_a_quick_stop_of_the_cyclic_modes_ramps_without_a_jump_and_ends_off(rig, mode):
    speed = 4 * TURN
    rig.enable(mode)
    if mode == 8:
        rig.write(0x60B1, 0, "i", 4 * COUNTS)
    for k in range(600):
        if mode == 8:
            rig.write(0x607A, 0, "i", round(4 * COUNTS * (k + 1) * 1e-3))
        elif mode == 9:
            rig.write(0x60FF, 0, "i", 4 * COUNTS)
        else:
            rig.write(0x6071, 0, "h", round(1e3 * (0.05 * (speed - rig.motor.velocity) + 1e-3 * speed) / 0.667))
        rig.run(1)
    assert rig.motor.velocity == pytest.approx(speed, rel=0.05)
    rig.write(0x6085, 0, "I", 20 * COUNTS)  # 0.2 s from this speed
    velocity, effort = [rig.motor.velocity], [rig.motor.effort]
    rig.control(2)
    while rig.state == QUICK_STOP:
        rig.run(1)
        velocity.append(rig.motor.velocity)
        effort.append(rig.motor.effort)
        assert len(velocity) < 400
    ramp = np.maximum(speed - 20e-3 * TURN * np.arange(len(velocity)), 0.0)
    assert len(velocity) > 195 and np.abs(np.array(velocity) - ramp).max() < 0.1 * speed
    assert np.abs(np.diff(effort[:-1])).max() < 0.1
    assert abs(rig.motor.velocity) < 1.1  # 606Dh: a hundredth of the greatest velocity
    assert (rig.state, rig.motor.effort) == (DISABLED, 0.0)
    rig.control(15)
    rig.run(5)
    assert (rig.state, rig.motor.effort) == (DISABLED, 0.0)


def test_a_quick_stop_that_holds_can_be_left(rig):
    rig.write(0x605A, 0, "h", 6)
    rig.enable(9)
    rig.control(2)
    rig.run(100)
    assert rig.state == QUICK_STOP
    rig.control(15)
    assert rig.state == ENABLED
    rig.write(0x605A, 0, "h", 0)
    rig.control(2)
    assert rig.state == DISABLED


CAUSES = {
    "overcurrent": (0x2310, 0x03),
    "undervoltage": (0x3220, 0x05),
    "overtemperature": (0x4310, 0x09),
    "encoder": (0x7305, 0x21),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_fault_causes_of_the_motor(rig, cause):
    code, register = CAUSES[cause]
    rig.enable(10)
    rig.write(0x6071, 0, "h", 500)
    rig.run(3)
    assert rig.motor.effort > 0
    rig.motor.fault_cause = cause
    rig.run(200)
    assert rig.state == FAULT and rig.motor.effort == 0
    assert CanFrame(0x85, struct.pack("<HB5x", code, register)) in rig.heard and rig.emergencies() == [code]
    assert (rig.read(0x603F, kind="H"), rig.read(0x1001, kind="B")) == (code, register)
    assert (rig.read(0x1003, 0, "B"), rig.read(0x1003, 1)) == (1, code)
    rig.control(0x80, 0, 0x80)
    assert rig.state == FAULT  # the cause persists
    rig.motor.fault_cause = ""
    rig.control(0x80)
    assert rig.state == FAULT  # no rising edge
    rig.control(0, 0x80)
    assert rig.state == DISABLED and rig.emergencies()[-1] == 0
    assert (rig.read(0x603F, kind="H"), rig.read(0x1001, kind="B")) == (0, 0)
    rig.write(0x1003, 0, "B", 0)
    assert rig.read(0x1003, 1) == 0


def test_overtemperature(rig):
    rig.motor.temperature = 80.5
    rig.run(1)
    assert rig.emergencies() == [0x4310] and rig.state == FAULT


def test_a_fault_with_a_reaction_brakes_first(rig):
    rig.enable(9)
    rig.write(0x60FF, 0, "i", 10 * COUNTS)
    rig.run(200)
    assert rig.motor.velocity == pytest.approx(10 * TURN, rel=0.02)
    rig.write(0x6085, 0, "I", 100 * COUNTS)  # 0.1 s from this speed
    rig.motor.fault_cause = "overtemperature"
    rig.run(50)
    assert rig.state == REACTING
    assert rig.motor.velocity == pytest.approx(5 * TURN, abs=7.0)  # behind the ramp by 10 ms
    rig.run(100)
    assert rig.state == FAULT and abs(rig.motor.velocity) < 2.0


def test_following_error(rig):
    rig.enable(8)
    rig.write(0x6065, 0, "I", 100)
    rig.write(0x6072, 0, "H", 0)  # nothing to move with
    rig.write(0x607A, 0, "i", 2000)
    rig.run(50)
    assert rig.status & 0x2000 and rig.state == ENABLED
    rig.run(100)
    assert rig.emergencies() == [0x8611]


@pytest.fixture
def watched(rig):
    """watched(option, reaction) -> a drive that monitors heartbeats every 50 ms, and its motor on."""

    def make(option=1, reaction=0, on=True):
        rig.write(0x6007, 0, "h", option)
        rig.write(0x1029, 1, "B", reaction)
        rig.write(0x1016, 1, "I", 0x7F0000 | 50)
        if on:
            rig.enable(10)
        return rig

    return make


@pytest.mark.parametrize(("option", "state"), [(1, FAULT), (2, DISABLED), (3, DISABLED), (0, QUICK_STOP)])
def test_a_missing_heartbeat(watched, option, state):
    rig = watched(option, reaction=1)
    rig.write(0x6071, 0, "h", 100)
    rig.run(200)  # not watched before the first one
    assert rig.state == ENABLED
    rig.run(20, beat=True)
    rig.run(50)
    assert rig.emergencies() == []
    rig.run(300)
    assert rig.emergencies() == [0x8130]
    assert rig.status & 0x4F == state and rig.status & 0x200
    assert (rig.motor.effort == 0) == (option != 0)


def test_a_restored_heartbeat_ends_the_error(watched):
    rig = watched(3, on=False)
    rig.run(2, beat=True)
    rig.run(60)
    assert rig.read(0x1001, kind="B") == 0x11
    rig.run(2, beat=True)
    assert rig.emergencies() == [0x8130, 0] and rig.read(0x1001, kind="B") == 0


def test_a_lost_heartbeat_is_reported_once_and_monitored_from_the_next_one_on(watched):
    rig = watched(on=False)
    rig.run(2, beat=True)
    rig.run(60)
    assert rig.state == FAULT
    rig.control(0, 0x80)
    rig.run(100)
    assert rig.state == DISABLED
    rig.run(2, beat=True)
    rig.run(60)
    assert rig.emergencies() == [0x8130, 0, 0x8130]


@pytest.mark.parametrize(("reaction", "answers"), [(0, True), (2, False)])
def test_the_network_state_after_a_lost_heartbeat(watched, reaction, answers):
    rig = watched(reaction=reaction)
    rig.run(2, beat=True)
    rig.run(60)
    assert bool(rig.send(0x605, "40 41 60 00 00 00 00 00")) == answers
    rig.send(0, "80 05")
    assert not rig.status & 0x200 and rig.motor.effort == 0


def test_leaving_operational_with_the_motor_on_is_a_lost_connection(rig):
    rig.enable(10)
    rig.write(0x6071, 0, "h", 100)
    rig.run(2)
    rig.send(0, "80 05")
    rig.run(500)
    assert rig.emergencies() == [0x8100] and rig.motor.effort == 0
