"""Emulated ODrives: states, controller, limits, watchdog, errors, and that no bytes move a motor by accident."""

import random
import struct
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.drivers.common.motor import Rotor
from cosim.drivers.odrive import ascii_codec, codes, properties
from cosim.drivers.odrive import can_codec as can
from cosim.drivers.odrive.ascii_emulator import AsciiEmulator
from cosim.drivers.odrive.axis import Axis
from cosim.drivers.odrive.emulator import Emulator
from cosim.drivers.transport import CanFrame
from cosim.units import TURN

MS = 1_000_000


class Bench:
    """A motor behind an axis, and time."""

    def __init__(self, endstop=False):
        self.rotor = Rotor()
        self.axis = Axis(self.rotor, 0, endstop)
        self.t_ns = 0

    def run(self, seconds, feed=True):
        for _ in range(round(seconds * 1000)):
            self.rotor.advance(1e-3)
            self.t_ns += MS
            if feed:
                self.axis.feed(self.t_ns)
            self.axis.process(self.t_ns)

    def on(self, mode):
        self.axis.control_mode = mode
        self.axis.request(codes.CLOSED_LOOP, self.t_ns)
        return self.axis


@pytest.fixture
def bench():
    return Bench()


# --- the axis ---------------------------------------------------------------------------------------------


def test_power_up(bench):
    assert bench.axis.state == codes.IDLE
    bench.axis.input_torque, bench.axis.control_mode = 1.0, codes.TORQUE_CONTROL
    bench.run(0.01)
    assert bench.rotor.effort == 0.0


def test_torque(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_torque = 0.5
    bench.run(0.01)
    assert bench.rotor.effort == 0.5
    axis.input_torque = 50.0
    bench.run(0.01)
    assert axis.torque == bench.rotor.max_effort
    axis.torque_soft_max = 0.3
    bench.run(0.01)
    assert axis.torque == 0.3
    axis.torque_soft_min, axis.torque_soft_max = 1.0, -1.0  # nonsense
    bench.run(0.01)
    assert axis.torque == 0.0


def test_torque_falls_with_velocity_when_told_so(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.enable_torque_mode_vel_limit, axis.vel_limit = True, 2.0
    axis.input_torque = 1.0
    bench.run(3.0)
    assert 1.5 < axis.vel_estimate < 2.0
    assert axis.armed


def test_velocity(bench):
    axis = bench.on(codes.VELOCITY_CONTROL)
    axis.input_vel = 3.0
    bench.run(2.0)
    assert bench.rotor.velocity == pytest.approx(3.0 * TURN, rel=0.01)
    axis.input_vel = 1000.0
    bench.run(2.0)
    assert axis.vel_estimate == pytest.approx(axis.vel_limit, rel=0.02)


def test_position(bench):
    axis = bench.on(codes.POSITION_CONTROL)
    axis.move(1.5)
    bench.run(2.0)
    assert bench.rotor.position == pytest.approx(1.5 * TURN, abs=5e-3)


def test_closing_the_loop_does_not_jump(bench):
    bench.rotor.position = 10.0
    bench.axis.input_pos = -5.0
    bench.on(codes.POSITION_CONTROL)
    bench.run(0.1)
    assert bench.rotor.position == pytest.approx(10.0, abs=1e-9)


def test_velocity_ramp(bench):
    axis = bench.on(codes.VELOCITY_CONTROL)
    axis.input_mode, axis.vel_ramp_rate, axis.input_vel = codes.VEL_RAMP, 2.0, 3.0
    bench.run(0.5)
    assert axis.vel_setpoint == pytest.approx(1.0)
    bench.run(1.5)
    assert axis.vel_setpoint == 3.0


def test_torque_ramp(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_mode, axis.torque_ramp_rate, axis.input_torque = codes.TORQUE_RAMP, 1.0, 0.25
    bench.run(0.1)
    assert axis.torque == pytest.approx(0.1)
    bench.run(0.3)
    assert axis.torque == 0.25


def test_position_filter(bench):
    axis = bench.on(codes.POSITION_CONTROL)
    axis.input_mode, axis.input_filter_bandwidth = codes.POS_FILTER, 10.0
    axis.move(1.0)
    bench.run(0.1)
    assert 0.2 < axis.pos_setpoint < 0.8
    bench.run(2.0)
    assert axis.pos_setpoint == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("goal", [2.0, -2.0, 0.001])
def test_trapezoidal_trajectory(bench, goal):
    axis = bench.on(codes.POSITION_CONTROL)
    axis.input_mode = codes.TRAP_TRAJ
    axis.traj_vel_limit, axis.traj_accel_limit, axis.traj_decel_limit = 1.0, 4.0, 2.0
    axis.move(goal)
    fastest = 0.0
    for _ in range(3500):
        bench.run(0.001)
        fastest = max(fastest, abs(axis.vel_setpoint))
    assert axis.trajectory_done
    assert axis.pos_setpoint == goal
    assert axis.vel_setpoint == 0.0
    assert fastest <= 1.0 + 1e-9
    if abs(goal) > 1:
        assert fastest == pytest.approx(1.0)


def test_inputs_are_passed_over_when_inactive(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_mode, axis.input_torque = codes.INACTIVE, 1.0
    bench.run(0.01)
    assert bench.rotor.effort == 0.0


def test_an_input_mode_that_is_not_there(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_mode = 77
    bench.run(0.01)
    assert axis.disarm_reason == codes.BAD_CONFIG


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_inputs_that_are_no_numbers(bench, bad):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_torque = bad
    bench.run(0.01)
    assert axis.disarm_reason == codes.MISSING_INPUT
    assert bench.rotor.effort == 0.0


def test_watchdog(bench):
    bench.axis.watchdog_timeout, bench.axis.enable_watchdog = 0.05, True
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_torque = 0.1
    bench.run(0.1)
    assert axis.armed
    bench.run(0.05, feed=False)
    assert axis.armed
    bench.run(0.001, feed=False)
    assert not axis.armed
    assert axis.disarm_reason == codes.WATCHDOG_EXPIRED
    assert axis.procedure_result == codes.DISARMED
    assert bench.rotor.effort == 0.0


def test_a_watchdog_of_no_number_trips(bench):
    bench.axis.watchdog_timeout, bench.axis.enable_watchdog = float("nan"), True
    axis = bench.on(codes.TORQUE_CONTROL)
    bench.run(0.001)
    assert axis.disarm_reason == codes.WATCHDOG_EXPIRED


def test_faults_are_cleared_by_clearing_only(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    bench.rotor.temperature = 90.0
    bench.run(0.001)
    assert (axis.active_errors, axis.disarm_reason) == (codes.MOTOR_OVER_TEMP, codes.MOTOR_OVER_TEMP)
    bench.rotor.temperature = 30.0
    bench.run(0.001)
    assert (axis.active_errors, axis.disarm_reason) == (0, codes.MOTOR_OVER_TEMP)
    axis.request(codes.CLOSED_LOOP, bench.t_ns)
    assert not axis.armed
    axis.clear_errors()
    axis.request(codes.CLOSED_LOOP, bench.t_ns)
    assert axis.armed


def test_clearing_does_not_help_while_the_cause_lasts(bench):
    bench.rotor.fault_cause = "undervoltage"
    bench.axis.clear_errors()
    bench.axis.request(codes.CLOSED_LOOP, 0)
    assert not bench.axis.armed


def test_overspeed(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    bench.rotor.velocity = 1.3 * bench.rotor.max_velocity
    bench.run(0.001)
    assert axis.disarm_reason == codes.VELOCITY_VIOLATION


def test_emergency_stop(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.estop()
    assert axis.disarm_reason == codes.ESTOP_REQUESTED
    assert not axis.armed


def test_states_that_are_not_emulated(bench):
    bench.axis.request(3, 0)
    assert (bench.axis.state, bench.axis.procedure_result) == (codes.IDLE, codes.INVALID_STATE)


def test_homing():
    bench = Bench(endstop=True)
    bench.rotor.position = 1.0
    bench.axis.reset(0)
    assert bench.axis.pos_estimate == 0.0  # an encoder that counts from where it is
    bench.axis.request(codes.HOMING, 0)
    assert bench.axis.procedure_result == codes.BUSY
    bench.run(2.0)
    assert bench.axis.is_homed
    assert (bench.axis.state, bench.axis.procedure_result) == (codes.IDLE, codes.SUCCESS)
    assert bench.axis.pos_estimate == pytest.approx(bench.rotor.position / TURN)


def test_setting_the_position_moves_nothing(bench):
    axis = bench.on(codes.POSITION_CONTROL)
    axis.set_position(3.0)
    bench.run(0.1)
    assert axis.pos_estimate == pytest.approx(3.0)
    assert bench.rotor.position == 0.0
    axis.set_position(float("nan"))
    assert axis.pos_estimate == pytest.approx(3.0)


def test_power_cycle_keeps_what_was_saved(bench):
    bench.axis.pos_gain = 5.0
    bench.axis.reset(0)
    assert bench.axis.pos_gain == 20.0
    bench.axis.pos_gain = 5.0
    bench.axis.save()
    bench.on(codes.TORQUE_CONTROL)
    bench.axis.reset(0)
    assert (bench.axis.pos_gain, bench.axis.state) == (5.0, codes.IDLE)


# --- CAN --------------------------------------------------------------------------------------------------


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
        can.input_position(0, 8 * TURN, 0.5 * TURN, -0.125),
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
    # as the maker's can_enumerate.py does it: no byte of a connection
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


def safe(rotors):
    return all(rotor.effort == 0.0 for rotor in rotors)


@given(st.lists(st.tuples(st.integers(-9, 1 << 29), st.binary(max_size=64), st.booleans(), st.booleans()), max_size=20))
def test_any_frames_at_all(frames):
    bus = Bus()
    for number, data, extended, remote in frames:
        for answer in bus.emulator.handle(CanFrame(number, data, extended=extended, remote=remote), bus.t_ns):
            assert can.decode(answer) is not None
        bus.run(0.002)


def test_noise_moves_no_motor(bus):
    """Random frames, except those that ask for a state: whatever they set, the motors stay off."""
    noise = random.Random(1)
    state = {can.SET_AXIS_STATE, can.RX_SDO}
    for n in range(5000):
        frame = CanFrame(noise.randrange(0x800), noise.randbytes(noise.randrange(9)), remote=noise.random() < 0.1)
        if frame.id & 31 in state:
            continue
        bus.emulator.handle(frame, bus.t_ns)
        if n % 16 == 0:
            bus.run(0.001)
            assert safe(bus.rotors)


def test_frames_that_are_cut_off_do_nothing(bus):
    bus.send(
        CanFrame(can.SET_AXIS_STATE, b"\x08"),
        CanFrame(can.SET_AXIS_STATE, b""),
        CanFrame(can.SET_AXIS_STATE, b"\x08\0\0"),
    )
    assert not bus.axes[0].armed
    bus.send(CanFrame(can.SET_AXIS_STATE, b"\x08\0\0\0"))  # four bytes, as the maker's can_simple.py sends it
    assert bus.axes[0].armed


# --- ASCII ------------------------------------------------------------------------------------------------


@pytest.fixture
def board():
    return AsciiEmulator([Rotor(), Rotor()], [0, 1], [False, False])


def said(board, text, t_ns=MS):
    return b"".join(board.handle(text, t_ns)).decode()


def test_conversation(board):
    assert said(board, b"r vbus_voltage\n") == "24.000000\r\n"
    assert said(board, b"r vbus_voltage *93\n") == "24.000000*40\r\n"
    assert ascii_codec.checksum(b"24.000000") == 40
    assert said(board, b"r vbus_voltage *94\n") == ""
    assert said(board, b"f 0 ; where is it\n") == "0.000000 0.000000\r\n"
    assert said(board, b"w axis0.requested_state 8\n") == ""
    assert board.axes[0].armed
    assert said(board, b"r axis0.current_state\nr axis1.current_state\r\n") == "8\r\n1\r\n"
    assert (
        said(board, b"i\n") == "Hardware version: 5.2-0V\r\nFirmware version: 0.6.10\r\nSerial number: 394300000000\r\n"
    )
    assert said(board, b"h\n").startswith("Please see documentation")


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
def test_complaints(board, text, answer):
    assert said(board, text) == answer


def test_commands_to_an_axis(board):
    axis = board.axes[1]
    said(board, b"p 1 -2 0.5 0.25\n")
    assert (axis.control_mode, axis.input_pos) == (codes.POSITION_CONTROL, -2.0)
    assert (axis.input_vel, axis.input_torque) == (0.5, 0.25)
    said(board, b"p 1 3\n")
    assert (axis.input_pos, axis.input_vel, axis.input_torque) == (3.0, 0.5, 0.25)
    said(board, b"q 1 -2 3\n")
    assert (axis.vel_limit, axis.torque_soft_max, axis.torque_soft_min) == (3.0, inf, -inf)
    said(board, b"q 1 -2 1 0.1\n")
    assert (axis.vel_limit, axis.torque_soft_max, axis.torque_soft_min) == (1.0, 0.1, -0.1)
    said(board, b"v 1 1 0\n")
    assert (axis.control_mode, axis.input_vel, axis.input_torque) == (codes.VELOCITY_CONTROL, 1.0, 0.0)
    said(board, b"c 1 0.75\n")
    assert (axis.control_mode, axis.input_torque) == (codes.TORQUE_CONTROL, 0.75)
    said(board, b"t 1 -2\n")
    assert (axis.input_mode, axis.input_pos, axis.trajectory_done) == (codes.TRAP_TRAJ, -2.0, False)


def test_what_feeds_the_watchdog(board):
    for text, feeds in ((b"u 0", 1), (b"c 0 0", 1), (b"t 0 0", 1), (b"f 0", 0), (b"r axis0.current_state", 0)):
        board.axes[0].fed_ns = 0
        said(board, text + b"\n", 5 * MS)
        assert (board.axes[0].fed_ns == 5 * MS) == bool(feeds), text


def test_system_commands(board):
    axis = board.axes[0]
    axis.disarm(codes.ESTOP_REQUESTED)
    said(board, b"sc\n")
    assert axis.disarm_reason == 0
    said(board, b"w axis0.controller.config.pos_gain 7\nss\nw axis0.controller.config.pos_gain 8\nsr\n")
    assert axis.pos_gain == 7.0
    said(board, b"se\n")
    assert axis.pos_gain == 20.0


def test_types_of_parameters(board):
    said(board, b"w axis0.config.enable_watchdog 1\nw axis0.config.can.heartbeat_msg_rate_ms 50\n")
    assert board.axes[0].enable_watchdog is True
    assert board.axes[0].heartbeat_ms == 50
    assert said(board, b"r axis0.config.enable_watchdog\n") == "1\r\n"


@given(st.lists(st.binary(max_size=80), max_size=10))
def test_any_bytes_at_all(chunks):
    board = AsciiEmulator([Rotor()], [0], [False])
    for k, chunk in enumerate(chunks):
        for answer in board.handle(chunk, k * MS):
            assert answer.endswith(b"\r\n")
        board.process(k * MS)


LETTERS = st.sampled_from(
    [*"pqvctfurwshie", "es", "w axis0.", "r axis0.", "axis1.requested_state", "nan", "-inf", "1e999"]
)


@given(
    st.lists(st.lists(st.one_of(LETTERS, st.sampled_from(sorted(properties.PARAMETERS)), st.integers(-3, 9).map(str))))
)
def test_any_words_at_all(lines):
    rotor = Rotor()
    board = AsciiEmulator([rotor], [0], [False])
    for k, words in enumerate(lines):
        board.handle((" ".join(words) + "\n").encode(), k * MS)
        board.process(k * MS)
        assert abs(rotor.effort) <= rotor.max_effort
