"""Emulated ODrives on a CAN bus."""

import struct
from math import inf
from typing import Any

import pytest

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.odrive import ascii_codec, codes, properties
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive.ascii_emulator import AsciiEmulator
from cosim.plugins.drivers.odrive.axis import Axis
from cosim.plugins.drivers.odrive.emulator import Emulator
from cosim.plugins.drivers.transport import CanFrame
from tests.kit.clock import MS


class Bus:
    def __init__(self, ids=(0, 1)):
        self.rotors = [Rotor() for _ in ids]
        self.emulator = Emulator(self.rotors, ids, [False] * len(ids))
        self.axes = [node.axis for node in self.emulator.nodes]
        self.t_ns = 0

    def send(self, *frames):
        answers = [answer for frame in frames for answer in self.emulator.handle(frame, self.t_ns)]
        return [can.decode(answer) for answer in answers]

    def run(self, seconds):
        frames = []
        for _ in range(round(seconds * 1000)):
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.t_ns += MS
            frames += self.emulator.process(self.t_ns)
        return frames


@pytest.fixture
def bus():
    return Bus()


def test_cyclic_messages(bus):
    frames = bus.run(1.0)
    count = {number: sum(frame.id == number for frame in frames) for number in {frame.id for frame in frames}}
    assert count == {0x001: 10, 0x021: 10, 0x009: 100, 0x029: 100}
    bus.axes[0].torques_ms, bus.axes[0].encoder_ms = 50, 0
    frames = [frame.id for frame in bus.run(1.0)]
    assert (frames.count(0x01C), frames.count(0x009), frames.count(0x029)) == (21, 0, 100)  # the first at once


def test_every_answer(bus):
    bus.rotors[1].position = TURN
    for command in can.ANSWERS:
        (answer,) = bus.send(can.request(1, command))
        assert answer[:2] == (1, command)
    assert bus.send(can.request(1, can.GET_VERSION))[0].values == (2, 5, 2, 0, 0, 6, 10, 0)
    assert bus.send(can.request(1, can.GET_ENCODER_ESTIMATES))[0].values == pytest.approx((TURN, 0.0))
    assert bus.send(can.request(1, can.GET_BUS_VOLTAGE_CURRENT))[0].values == (24.0, 0.0)
    assert bus.send(CanFrame(1 << 5 | can.GET_IQ, b""))[0].command == can.GET_IQ
    assert bus.send(can.request(2, can.GET_IQ)) == []


def test_every_command_that_sets(bus):
    axis = bus.axes[0]
    bus.send(
        can.encode(0, can.SET_CONTROLLER_MODE, 2, 3),
        can.encode(0, can.SET_LIMITS, 4 * TURN, 7.0),
        can.encode(0, can.SET_TRAJ_VEL_LIMIT, 3 * TURN),
        can.encode(0, can.SET_TRAJ_ACCEL_LIMITS, 5 * TURN, 6 * TURN),
        can.encode(0, can.SET_TRAJ_INERTIA, 0.5 / TURN),
        can.encode(0, can.SET_POS_GAIN, 11.0),
        can.encode(0, can.SET_VEL_GAINS, 0.5 / TURN, 0.25 / TURN),
        can.encode(0, can.SET_ABSOLUTE_POSITION, 0.75 * TURN),
        can.encode(0, can.SET_INPUT_POS, 8 * TURN, 0.5 * TURN, -0.125),
    )
    assert (axis.control_mode, axis.input_mode) == (2, 3)
    assert (axis.vel_limit, axis.current_soft_max) == pytest.approx((4.0, 7.0))
    assert (axis.traj_vel_limit, axis.traj_accel_limit, axis.traj_decel_limit) == pytest.approx((3.0, 5.0, 6.0))
    assert (axis.inertia, axis.pos_gain, axis.vel_gain, axis.vel_integrator_gain) == pytest.approx((0.5, 11, 0.5, 0.25))
    assert axis.pos_estimate == pytest.approx(0.75)
    assert (axis.input_pos, axis.input_vel, axis.input_torque) == pytest.approx((8.0, 0.5, -0.125))
    bus.send(can.encode(0, can.SET_INPUT_VEL, 2 * TURN, 0.25))
    assert (axis.input_vel, axis.input_torque) == pytest.approx((2.0, 0.25))
    bus.send(can.encode(0, can.SET_INPUT_TORQUE, 0.5))
    assert axis.input_torque == 0.5


def test_every_frame_to_an_axis_feeds_its_watchdog(bus):
    bus.run(0.01)
    for frame in (can.request(0, can.GET_IQ), can.encode(0, can.SET_INPUT_TORQUE, 0.0), can.endpoint(0, can.READ, 1)):
        bus.axes[0].fed_ns = 0
        bus.send(frame)
        assert bus.axes[0].fed_ns == bus.t_ns
        assert bus.axes[1].fed_ns == 0
    bus.send(can.encode(can.BROADCAST, can.CLEAR_ERRORS, 0))
    assert bus.axes[1].fed_ns == 0


def test_endpoints(bus):
    table: Any = properties.S1_0_6_10.table
    axis = bus.axes[0]
    number, value = table["config.watchdog_timeout"]
    assert bus.send(can.endpoint(0, can.WRITE, number, value.pack(0.25))) == []  # 0.6.10 does not confirm
    assert axis.watchdog_timeout == 0.25
    assert bus.send(can.endpoint(0, can.READ, number)) == [(0, can.TX_SDO, (0, number, value.pack(0.25)))]
    for name, (number, value) in table.items():
        answers = bus.send(can.endpoint(0, can.READ, number))
        assert len(answers) == (value is not None), name
    number, value = table["requested_state"]
    bus.send(can.endpoint(0, can.WRITE, number, value.pack(8)))
    assert axis.armed
    bus.send(can.endpoint(0, can.WRITE, table["pos_estimate"].number, struct.pack("<f", 9.0)))
    assert axis.pos_estimate == 0.0  # it may only be read
    assert bus.send(can.endpoint(0, can.READ, 9999)) == []
    bus.run(0.01)
    axis.fed_ns = 0
    bus.send(can.endpoint(0, can.WRITE, table[properties.FUNCTION].number))
    assert axis.fed_ns == bus.t_ns


def test_endpoints_cover_the_parameters_that_firmware_has():
    missing = set(properties.S1_0_6_10.table) - set(properties.PARAMETERS)
    assert missing == {properties.FUNCTION}
    assert len({endpoint.number for endpoint in properties.S1_0_6_10.table.values()}) == len(properties.S1_0_6_10.table)
    axis = Axis(Rotor(), 0)
    assert all(hasattr(axis, attribute) for attribute, _ in properties.PARAMETERS.values())


def test_addressing(bus):
    answers = bus.send(can.request(can.BROADCAST, can.ADDRESS))
    assert [answer.values[0] for answer in answers] == [0, 1]
    serial = answers[0].values[1]
    # as the manufacturer's can_enumerate.py does it: no byte of a connection
    bus.send(CanFrame(can.BROADCAST << 5 | can.ADDRESS, bytes([1]) + serial))
    assert [axis.node_id for axis in bus.axes] == [1, can.BROADCAST]  # who had it is unaddressed now
    assert len(bus.send(can.request(1, can.HEARTBEAT))) == 1
    bus.send(CanFrame(can.BROADCAST << 5 | can.ADDRESS, bytes([9]) + b"nobody"))
    assert [axis.node_id for axis in bus.axes] == [1, can.BROADCAST]
    assert {frame.id >> 5 for frame in bus.run(0.2)} == {1}


def test_reboots(bus):
    axis = bus.axes[0]
    axis.pos_gain = 3.0
    bus.send(can.encode(0, can.SET_AXIS_STATE, 8), can.encode(0, can.REBOOT, codes.REBOOT_ONLY))
    assert (axis.pos_gain, axis.armed) == (20.0, False)
    axis.pos_gain = 3.0
    bus.send(can.encode(0, can.REBOOT, codes.REBOOT_SAVE))
    assert axis.pos_gain == 3.0
    bus.send(can.encode(0, can.REBOOT, codes.REBOOT_ERASE))
    assert axis.pos_gain == 20.0


def test_the_bootloader_is_silent_until_power_comes_back(bus):
    bus.send(can.encode(0, can.SET_AXIS_STATE, 8), can.encode(0, can.ENTER_DFU_MODE))
    assert not bus.axes[0].armed
    assert bus.send(can.request(0, can.GET_VERSION)) == []
    assert {frame.id >> 5 for frame in bus.run(0.2)} == {1}
    bus.emulator.reset(bus.t_ns)
    assert len(bus.send(can.request(0, can.GET_VERSION))) == 1


def test_broadcasts(bus):
    bus.send(can.encode(0, can.SET_AXIS_STATE, 8), can.encode(1, can.SET_AXIS_STATE, 8))
    bus.send(can.encode(can.BROADCAST, can.ESTOP))
    assert [axis.disarm_reason for axis in bus.axes] == [codes.ESTOP_REQUESTED] * 2
    bus.send(can.encode(can.BROADCAST, can.CLEAR_ERRORS, 0), can.encode(can.BROADCAST, can.SET_AXIS_STATE, 8))
    assert [axis.disarm_reason for axis in bus.axes] == [0, 0]
    assert not any(axis.armed for axis in bus.axes)  # not for everybody at once


def test_truncated_frames_have_no_effect(bus):
    bus.send(*(CanFrame(can.SET_AXIS_STATE, data) for data in (b"\x08", b"", b"\x08\0\0")))
    assert not bus.axes[0].armed
    bus.send(CanFrame(can.SET_AXIS_STATE, b"\x08\0\0\0"))  # four bytes, as the manufacturer's can_simple.py sends it
    assert bus.axes[0].armed


# --- an emulated ODrive on a serial link: the ASCII protocol ---


@pytest.fixture
def board():
    return AsciiEmulator([Rotor(), Rotor()], [0, 1], [False, False])


def answer_to(board, text, t_ns=MS):
    return b"".join(board.handle(text, t_ns)).decode()


def test_conversation(board):
    assert ascii_codec.checksum(b"24.000000") == 40
    version = "Hardware version: 5.2-0V\r\nFirmware version: 0.6.10\r\nSerial number: 394300000000\r\n"
    for asked, answer in (
        (b"r vbus_voltage\n", "24.000000\r\n"),
        (b"r vbus_voltage *93\n", "24.000000*40\r\n"),
        (b"r vbus_voltage *94\n", ""),
        (b"f 0 ; where is it\n", "0.000000 0.000000\r\n"),
        (b"w axis0.requested_state 8\n", ""),
        (b"r axis0.current_state\nr axis1.current_state\r\n", "8\r\n1\r\n"),
        (b"i\n", version),
    ):
        assert answer_to(board, asked) == answer
    assert board.axes[0].armed
    assert answer_to(board, b"h\n").startswith("Please see documentation")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (b"x 1\n", "unknown command\r\n"),
        (b"p 0\n", "invalid command format\r\n"),
        (b"p 7 1\n", "invalid motor 7\r\n"),
        (b"f\n", "invalid command format\r\n"),
        (b"r\n", "invalid command format\r\n"),
        (b"w\n", "invalid command format\r\n"),
        (b"r axis0.nothing\n", "invalid property\r\n"),
        (b"r axis7.current_state\n", "invalid property\r\n"),
        (b"w axis0.pos_estimate 1\n", "not implemented\r\n"),
        (b"w axis0.controller.config.pos_gain\n", "not implemented\r\n"),
        (b"w axis0.requested_state nan\n", "not implemented\r\n"),
        (b"\n\r;\n", ""),
    ],
)
def test_error_answers(board, text, answer):
    assert answer_to(board, text) == answer


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (b"p 1 -2 0.5 0.25", {"control_mode": 3, "input_pos": -2.0, "input_vel": 0.5, "input_torque": 0.25}),
        (b"p 1 3", {"input_pos": 3.0, "input_vel": 9.0, "input_torque": 9.0}),
        (b"q 1 -2 3", {"vel_limit": 3.0, "torque_soft_max": inf, "torque_soft_min": -inf}),
        (b"q 1 -2 1 0.1", {"vel_limit": 1.0, "torque_soft_max": 0.1, "torque_soft_min": -0.1}),
        (b"v 1 1 0", {"control_mode": 2, "input_vel": 1.0, "input_torque": 0.0}),
        (b"c 1 0.75", {"control_mode": 1, "input_torque": 0.75}),
        (b"t 1 -2", {"input_mode": codes.TRAP_TRAJ, "input_pos": -2.0, "trajectory_done": False}),
    ],
)
def test_commands_to_an_axis(board, text, changed):
    axis = board.axes[1]
    axis.input_vel = axis.input_torque = 9.0
    assert answer_to(board, text + b"\n") == ""
    assert {name: getattr(axis, name) for name in changed} == changed


def test_what_feeds_the_watchdog(board):
    for text, feeds in ((b"u 0", 1), (b"c 0 0", 1), (b"t 0 0", 1), (b"f 0", 0), (b"r axis0.current_state", 0)):
        board.axes[0].fed_ns = 0
        answer_to(board, text + b"\n", 5 * MS)
        assert (board.axes[0].fed_ns == 5 * MS) == bool(feeds), text


def test_system_commands(board):
    axis = board.axes[0]
    axis.disarm(codes.ESTOP_REQUESTED)
    answer_to(board, b"sc\n")
    assert axis.disarm_reason == 0
    answer_to(board, b"w axis0.controller.config.pos_gain 7\nss\nw axis0.controller.config.pos_gain 8\nsr\n")
    assert axis.pos_gain == 7.0
    answer_to(board, b"se\n")
    assert axis.pos_gain == 20.0


def test_types_of_parameters(board):
    answer_to(board, b"w axis0.config.enable_watchdog 1\nw axis0.config.can.heartbeat_msg_rate_ms 50\n")
    assert board.axes[0].enable_watchdog is True
    assert board.axes[0].heartbeat_ms == 50
    assert answer_to(board, b"r axis0.config.enable_watchdog\n") == "1\r\n"
