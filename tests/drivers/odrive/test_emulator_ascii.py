"""An emulated ODrive on a serial link: the ASCII protocol."""

from math import inf

import pytest

from cosim.drivers.common.motor import Rotor
from cosim.drivers.odrive import ascii_codec, codes
from cosim.drivers.odrive.ascii_emulator import AsciiEmulator
from tests.kit.clock import MS


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
