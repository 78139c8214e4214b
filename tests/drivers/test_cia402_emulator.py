"""The emulated CiA 402 drive: states, faults, watchdog, modes, process data and objects, by frames and time alone."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pytest

from cosim.drivers import cia402
from cosim.drivers.cia402 import sdo
from cosim.drivers.common.motor import Rotor
from cosim.drivers.transport import CanFrame, CanParams
from cosim.errors import SourceLocation
from cosim.types import DriverContext, Limits

NODE, COUNTS = 5, 4096
MS = 1_000_000
TURN = 2 * math.pi


class Rig:
    """One emulated drive in front of a rotor; time goes by `run` only."""

    def __init__(self, motor: Rotor | None = None, **wired) -> None:
        limits = Limits(*np.full((4, 1), np.inf))
        joint = cia402.JointParams(id=NODE, cpr=COUNTS, **wired)
        context = DriverContext(("elbow",), (joint,), limits, 1e-3, "effort", lambda *keys: SourceLocation("rig.yaml"))
        params = cia402.Params(bus=CanParams(interface="virtual", channel="x"))
        self.motor = motor or Rotor()
        self.emulator = cia402.emulate(params, context, [self.motor])
        self.t = 0
        self.heard: list[CanFrame] = []
        self.run(2)

    def run(self, ms: int, beat: bool = False) -> None:
        for _ in range(ms):
            self.t += MS
            self.motor.advance(1e-3)
            if beat:
                self.send(0x77F, "05")
            self.heard += self.emulator.process(self.t)

    def send(self, cob_id: int, data: str | bytes = b"") -> list[CanFrame]:
        data = bytes.fromhex(data) if isinstance(data, str) else data
        answers = self.emulator.handle(CanFrame(cob_id, data), self.t)
        self.heard += answers
        return answers

    def ask(self, request: bytes) -> bytes:
        answers = [f.data for f in self.send(0x600 + NODE, request) if f.id == 0x580 + NODE]
        assert len(answers) == 1
        return answers[0]

    def transfer(self, transfer: sdo.Transfer) -> bytes:
        request = next(transfer)
        while True:
            try:
                request = transfer.send(self.ask(request))
            except StopIteration as done:
                return done.value

    def read(self, index: int, sub: int = 0, kind: str = "I") -> int:
        return struct.unpack("<" + kind, self.transfer(sdo.upload(index, sub)))[0]

    def write(self, index: int, sub: int, kind: str, value: int) -> None:
        self.transfer(sdo.download(index, sub, struct.pack("<" + kind, value)))

    def refused(self, index: int, sub: int, kind: str, value: int) -> int:
        with pytest.raises(sdo.Aborted) as refused:
            self.write(index, sub, kind, value)
        return refused.value.code

    def control(self, *words: int) -> None:
        for word in words:
            self.write(0x6040, 0, "H", word)

    @property
    def status(self) -> int:
        return self.read(0x6041, kind="H")

    @property
    def state(self) -> int:
        return self.status & 0x6F

    @property
    def position(self) -> int:
        return self.read(0x6064, kind="i")

    def enable(self, mode: int) -> None:
        self.send(0, bytes((1, NODE)))
        self.write(0x6060, 0, "b", mode)
        self.control(6, 7, 15)
        assert self.state == 0x27

    def emergencies(self) -> list[int]:
        return [struct.unpack("<H", f.data[:2])[0] for f in self.heard if f.id == 0x80 + NODE]


@pytest.fixture
def rig() -> Rig:
    return Rig()


# --- network ------------------------------------------------------------------------------------


def test_boot_up_then_pre_operational(rig):
    assert rig.heard == [CanFrame(0x705, b"\x00")]
    rig.write(0x1017, 0, "H", 10)
    rig.run(21)
    assert [f for f in rig.heard if f.id == 0x705][1:] == [CanFrame(0x705, b"\x7f")] * 3
    rig.send(0, "01 05")
    rig.heard.clear()
    rig.run(10)
    assert [f for f in rig.heard if f.id == 0x705] == [CanFrame(0x705, b"\x05")]


def test_commands_to_other_nodes_are_none_of_ours(rig):
    rig.send(0, "01 06")
    rig.send(0, "01")
    assert not rig.status & 0x200
    rig.send(0, "01 00")
    assert rig.status & 0x200


def test_a_stopped_node_answers_nothing(rig):
    rig.send(0, "02 05")
    assert rig.send(0x605, "40 41 60 00 00 00 00 00") == []
    rig.send(0, "80 05")
    assert rig.state == 0x40


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
    assert rig.read(0x6085) != 77
    assert rig.state == 0x40


# --- objects ------------------------------------------------------------------------------------


def test_objects_by_sdo(rig):
    assert rig.ask(bytes.fromhex("40 00 10 00 00 00 00 00")) == bytes.fromhex("43 00 10 00 92 01 02 00")
    assert rig.ask(bytes.fromhex("2B 40 60 00 06 00 00 00")) == bytes.fromhex("60 40 60 00 00 00 00 00")
    assert rig.transfer(sdo.upload(0x1008, 0)) == b"emulated CiA 402 drive"
    assert (rig.read(0x608F, 1), rig.read(0x6076), rig.read(0x6072, kind="H")) == (COUNTS, 667, 2999)
    assert rig.read(0x6080) == 955
    assert rig.read(0x1018, 2) == 0x402


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
    answer = rig.ask(bytes.fromhex(request_))
    assert answer[0] == 0x80
    assert struct.unpack("<I", answer[4:])[0] == code


def test_segments_and_their_toggle_bit(rig):
    assert rig.ask(bytes.fromhex("21 85 60 00 04 00 00 00"))[0] == 0x60
    assert rig.ask(bytes.fromhex("0A 01 02 00 00 00 00 00")) == bytes.fromhex("20 00 00 00 00 00 00 00")
    assert struct.unpack("<I", rig.ask(bytes.fromhex("01 00 00 00 00 00 00 00"))[4:])[0] == 0x05030000
    rig.ask(bytes.fromhex("21 85 60 00 04 00 00 00"))
    assert rig.ask(bytes.fromhex("07 01 02 00 00 00 00 00"))[0] == 0x20
    assert rig.read(0x6085) == 0x201


def test_a_transfer_given_up_by_the_client(rig):
    rig.ask(bytes.fromhex("40 08 10 00 00 00 00 00"))
    assert rig.send(0x605, "80 08 10 00 00 00 04 05") == []
    assert struct.unpack("<I", rig.ask(bytes.fromhex("60 00 00 00 00 00 00 00"))[4:])[0] == 0x05040001


def test_one_producer_is_watched_once(rig):
    rig.write(0x1016, 1, "I", 0x7F0064)
    assert rig.refused(0x1016, 2, "I", 0x7F0032) == sdo.INCOMPATIBLE
    rig.write(0x1016, 2, "I", 0x7E0032)


def test_the_temperature_where_another_maker_has_it():
    rig = Rig(temperature=0x222201)
    assert rig.ask(bytes.fromhex("40 22 22 01 00 00 00 00")) == bytes.fromhex("4B 22 22 01 FA 00 00 00")
    assert rig.refused(0x2222, 1, "h", 0) == sdo.READ_ONLY
    map_pdo(rig, 0x1800, 0x40000185, 1, 0x22220110)
    rig.send(0, "01 05")
    assert rig.send(0x80) == [CanFrame(0x185, b"\xfa\x00")]


def test_a_motor_without_limits():
    rig = Rig(rated_torque=0.0125)
    rig.motor.max_effort = rig.motor.max_velocity = math.inf
    rig.send(0, "81 05")
    rig.run(2)
    assert all(0 < rig.read(index) < 2**32 for index in (0x6080, 0x6081, 0x6083, 0x6085))
    assert rig.read(0x6076) == 12
    rig.enable(9)
    rig.run(10)
    assert rig.motor.effort == 0.0


# --- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ((6,), 0x21),
        ((6, 7), 0x23),
        ((6, 7, 15), 0x27),
        ((6, 15), 0x27),
        ((7,), 0x40),
        ((15,), 0x40),
        ((6, 7, 6), 0x21),
        ((6, 0), 0x40),
        ((6, 2), 0x40),
        ((6, 7, 2), 0x40),
        ((6, 7, 0), 0x40),
        ((6, 7, 15, 7), 0x23),
        ((6, 7, 15, 6), 0x21),
        ((6, 7, 15, 0), 0x40),
        ((6, 7, 15, 2), 0x07),
        ((6, 7, 15, 2, 15), 0x07),
        ((6, 7, 15, 2, 0), 0x40),
        ((6, 7, 15, 0x80), 0x27),
    ],
)
def test_transitions(rig, words, state):
    rig.control(*words)
    assert rig.status & 0x6F & (0x4F if state == 0x40 else 0x6F) == state


def test_a_quick_stop_ramps_down_and_switches_off(rig):
    rig.enable(9)
    rig.write(0x60FF, 0, "i", 10 * COUNTS)
    rig.run(200)
    assert rig.motor.velocity == pytest.approx(10 * TURN, rel=0.02)
    rig.write(0x6085, 0, "I", 100 * COUNTS)  # 0.1 s from this speed
    rig.control(2)
    rig.run(50)
    assert rig.state == 0x07
    assert rig.motor.velocity == pytest.approx(5 * TURN, abs=7.0)  # behind the ramp by 10 ms
    rig.run(100)
    assert rig.status & 0x4F == 0x40
    assert (rig.motor.effort, abs(rig.motor.velocity) < 2.0) == (0.0, True)


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
    while rig.state == 0x07:
        rig.run(1)
        velocity.append(rig.motor.velocity)
        effort.append(rig.motor.effort)
        assert len(velocity) < 400
    ramp = np.maximum(speed - 20e-3 * TURN * np.arange(len(velocity)), 0.0)
    assert len(velocity) > 195
    assert np.abs(np.array(velocity) - ramp).max() < 0.1 * speed
    assert np.abs(np.diff(effort[:-1])).max() < 0.1
    assert (rig.status & 0x4F, rig.motor.effort) == (0x40, 0.0)
    assert abs(rig.motor.velocity) < 1.1  # 606Dh: a hundredth of the greatest velocity
    rig.control(15)
    rig.run(5)
    assert (rig.status & 0x4F, rig.motor.effort) == (0x40, 0.0)


def test_a_quick_stop_that_stays_may_be_left(rig):
    rig.write(0x605A, 0, "h", 6)
    rig.enable(9)
    rig.control(2)
    rig.run(100)
    assert rig.state == 0x07
    rig.control(15)
    assert rig.state == 0x27
    rig.write(0x605A, 0, "h", 0)
    rig.control(2)
    assert rig.status & 0x4F == 0x40


# --- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "code", "register"),
    [
        ("overcurrent", 0x2310, 0x03),
        ("undervoltage", 0x3220, 0x05),
        ("overtemperature", 0x4310, 0x09),
        ("encoder", 0x7305, 0x21),
    ],
)
def test_fault_causes_of_the_motor(rig, cause, code, register):
    rig.enable(10)
    rig.write(0x6071, 0, "h", 500)
    rig.run(3)
    assert rig.motor.effort > 0
    rig.motor.fault_cause = cause
    rig.run(200)
    assert rig.status & 0x4F == 0x08
    assert rig.motor.effort == 0
    assert CanFrame(0x85, struct.pack("<HB5x", code, register)) in rig.heard
    assert rig.emergencies() == [code]
    assert (rig.read(0x603F, kind="H"), rig.read(0x1001, kind="B")) == (code, register)
    assert (rig.read(0x1003, 0, "B"), rig.read(0x1003, 1)) == (1, code)
    rig.control(0x80)
    rig.control(0, 0x80)
    assert rig.status & 0x4F == 0x08  # the cause persists
    rig.motor.fault_cause = ""
    rig.control(0x80)
    assert rig.status & 0x4F == 0x08  # no rising edge
    rig.control(0, 0x80)
    assert rig.status & 0x4F == 0x40
    assert rig.emergencies()[-1] == 0
    assert (rig.read(0x603F, kind="H"), rig.read(0x1001, kind="B")) == (0, 0)
    rig.write(0x1003, 0, "B", 0)
    assert rig.read(0x1003, 1) == 0


def test_too_warm(rig):
    rig.motor.temperature = 80.5
    rig.run(1)
    assert rig.emergencies() == [0x4310]
    assert rig.status & 0x4F == 0x08


def test_a_fault_with_a_reaction_brakes_first(rig):
    rig.enable(9)
    rig.write(0x60FF, 0, "i", 10 * COUNTS)
    rig.run(200)
    rig.write(0x6085, 0, "I", 100 * COUNTS)
    rig.motor.fault_cause = "overtemperature"
    rig.run(50)
    assert rig.status & 0x4F == 0x0F
    rig.run(100)
    assert rig.status & 0x4F == 0x08
    assert abs(rig.motor.velocity) < 2.0


def test_following_error(rig):
    rig.enable(8)
    rig.write(0x6065, 0, "I", 100)
    rig.write(0x6072, 0, "H", 0)  # nothing to move with
    rig.write(0x607A, 0, "i", 2000)
    rig.run(50)
    assert rig.status & 0x2000
    assert rig.state == 0x27
    rig.run(100)
    assert rig.emergencies() == [0x8611]


# --- watchdog -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "state"), [(1, 0x08), (2, 0x40), (3, 0x40), (0, 0x07)])
def test_a_heartbeat_that_stays_away(rig, option, state):
    rig.write(0x6007, 0, "h", option)
    rig.write(0x1029, 1, "B", 1)
    rig.write(0x1016, 1, "I", 0x7F0000 | 50)
    rig.enable(10)
    rig.write(0x6071, 0, "h", 100)
    rig.run(200)  # not watched before the first one
    assert rig.state == 0x27
    rig.run(20, beat=True)
    rig.run(50)
    assert rig.emergencies() == []
    rig.run(300)
    assert rig.emergencies() == [0x8130]
    assert rig.status & 0x4F == state
    assert (rig.motor.effort == 0) == (option != 0)
    assert rig.status & 0x200


def test_a_heartbeat_that_comes_back_ends_the_error(rig):
    rig.write(0x6007, 0, "h", 3)
    rig.write(0x1016, 1, "I", 0x7F0000 | 50)
    rig.run(2, beat=True)
    rig.run(60)
    assert rig.read(0x1001, kind="B") == 0x11
    rig.run(2, beat=True)
    assert rig.emergencies() == [0x8130, 0]
    assert rig.read(0x1001, kind="B") == 0


def test_a_lost_heartbeat_is_told_once_and_watched_from_the_next_one_on(rig):
    rig.write(0x1016, 1, "I", 0x7F0000 | 50)
    rig.run(2, beat=True)
    rig.run(60)
    assert rig.status & 0x4F == 0x08
    rig.control(0, 0x80)
    rig.run(100)
    assert rig.status & 0x4F == 0x40
    rig.run(2, beat=True)
    rig.run(60)
    assert rig.emergencies() == [0x8130, 0, 0x8130]


@pytest.mark.parametrize(("reaction", "answers"), [(0, True), (2, False)])
def test_the_network_state_after_a_lost_heartbeat(rig, reaction, answers):
    rig.write(0x1029, 1, "B", reaction)
    rig.write(0x1016, 1, "I", 0x7F0000 | 50)
    rig.enable(10)
    rig.run(2, beat=True)
    rig.run(60)
    assert bool(rig.send(0x605, "40 41 60 00 00 00 00 00")) == answers
    rig.send(0, "80 05")
    assert not rig.status & 0x200
    assert rig.motor.effort == 0


def test_leaving_operational_with_the_motor_on_is_a_lost_connection(rig):
    rig.enable(10)
    rig.write(0x6071, 0, "h", 100)
    rig.run(2)
    rig.send(0, "80 05")
    rig.run(500)
    assert rig.emergencies() == [0x8100]
    assert rig.motor.effort == 0


# --- process data -------------------------------------------------------------------------------


def map_pdo(rig: Rig, index: int, cob_id: int, kind: int, *objects: int) -> None:
    rig.write(index, 1, "I", 0x80000000 | cob_id)
    rig.write(index + 0x200, 0, "B", 0)
    for k, mapped in enumerate(objects):
        rig.write(index + 0x200, k + 1, "I", mapped)
    rig.write(index + 0x200, 0, "B", len(objects))
    rig.write(index, 2, "B", kind)
    rig.write(index, 1, "I", cob_id)


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
    rig.heard.clear()
    rig.run(10)
    assert len([f for f in rig.heard if f.id == 0x285]) == 1
    rig.control(6)
    rig.run(10)
    assert len([f for f in rig.heard if f.id == 0x285]) == 2
    rig.write(0x1801, 5, "H", 5)
    rig.heard.clear()
    rig.run(20)
    assert len([f for f in rig.heard if f.id == 0x285]) in (4, 5)
    rig.write(0x1801, 3, "H", 100)  # not twice within 10 ms
    rig.heard.clear()
    rig.run(20)
    assert len([f for f in rig.heard if f.id == 0x285]) == 2


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


# --- motion -------------------------------------------------------------------------------------


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
def test_the_loops_of_a_strong_drive_come_to_rest_whatever_they_move(inertia):
    motor = Rotor(inertia, 1e-3, max_effort=100.0)
    motor.max_velocity = 10.0
    rig = Rig(motor)
    rig.enable(9)
    rig.write(0x60FF, 0, "i", COUNTS // 4)
    rig.run(1500)
    speeds = []
    for _ in range(100):
        rig.run(1)
        speeds.append(motor.velocity)
    assert speeds == pytest.approx([TURN / 4] * 100, rel=0.02)
    rig.write(0x60FF, 0, "i", 0)
    rig.enable(8)
    rig.write(0x607A, 0, "i", rig.position + COUNTS // 8)
    goal = rig.position + COUNTS // 8
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


def test_homing_where_it_stands_and_broken_off(rig):
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


# --- anything at all ----------------------------------------------------------------------------


def test_any_frames_at_all():
    rig, rng = Rig(), random.Random(402)
    cob_ids = (0, 0x80, 0x77F, 0x605, 0x605, 0x205, 0x305, 0x405, 0x185, 0x85)
    for turn in range(20_000):
        cob_id = rng.choice(cob_ids) if rng.random() < 0.9 else rng.randrange(1 << 11)
        flags = {"extended": rng.random() < 0.02, "fd": rng.random() < 0.02, "remote": rng.random() < 0.05}
        frame = CanFrame(cob_id, rng.randbytes(rng.choice((0, 1, 2, 4, 8, 8, 8, 64))), **flags)
        if cob_id == 0x605 and rng.random() < 0.7:  # a request that makes sense
            index = rng.choice((0x6040, 0x6060, 0x607A, 0x1016, 0x1400, 0x1600, 0x1A01, 0x6085, 0x60C2))
            frame = CanFrame(
                0x605, struct.pack("<BHBI", rng.choice((0x2F, 0x2B, 0x23, 0x40)), index, rng.randrange(3), turn)
            )
        assert all(len(f.data) <= 8 and 0 <= f.id < 0x800 for f in rig.emulator.handle(frame, rig.t))
        if turn % 4 == 0:
            rig.run(1)
            rig.heard.clear()
        if turn % 50 == 0:
            rig.send(0, "01 05")
    assert math.isfinite(rig.motor.position)
    rig.emulator.reset(rig.t)
    rig.run(2)
    assert rig.state == 0x40
    assert rig.motor.effort == 0


def test_noise_moves_no_motor_that_is_off():
    rig, rng = Rig(), random.Random(7)
    rig.send(0, "01 05")
    for _ in range(20_000):
        cob_id = rng.choice((0x80, 0x77F, 0x305, 0x405, 0x505, 0x685, 0x125))
        rig.send(cob_id, rng.randbytes(rng.randrange(9)))
        if rng.random() < 0.2:
            rig.run(1)
    assert rig.motor.position == 0.0
