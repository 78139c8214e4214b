"""The two codecs of ODrives: frames of the maker's documents, round trips, and that nothing makes a decoder raise."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.drivers.odrive import ascii_codec as text
from cosim.drivers.odrive import can_codec as can
from cosim.drivers.transport import CanFrame
from cosim.units import TURN

# --- CAN --------------------------------------------------------------------------------------------------
# Layouts: manual/can-protocol of docs.odriverobotics.com,
# src/can_simple_messages.hpp of odriverobotics/ODriveArduino
# (made by the maker from its DBC of 0.6). Examples: can_simple.py, can_param_access.py, can_enumerate.py of
# odriverobotics/ODriveResources, candump of docs/can-guide.rst of odriverobotics/ODrive.

GOLDEN = [
    # Set_Axis_State: closed loop (8) to node 0; the maker's table has 8 bytes of payload
    (can.encode(0, can.SET_AXIS_STATE, 8), 0x007, "08 00 00 00 00 00 00 00"),
    # id = axis << 5 | command: 0x01 << 5 | 0x0C = 0x2C, the example of the manual
    (can.encode(1, can.SET_INPUT_POS, TURN, 0.0, 0.0), 0x02C, "00 00 80 3f 00 00 00 00"),
    # -2.5 turns, 1.5 turns/s and -0.25 N·m ahead, in steps of 0.001
    (can.input_position(1, -2.5 * TURN, 1.5 * TURN, -0.25), 0x02C, "00 00 20 c0 dc 05 06 ff"),
    (can.encode(0, can.SET_INPUT_VEL, TURN, 0.0), 0x00D, "00 00 80 3f 00 00 00 00"),
    (can.encode(2, can.SET_INPUT_TORQUE, 0.5), 0x04E, "00 00 00 3f 00 00 00 00"),
    (can.encode(0, can.SET_CONTROLLER_MODE, 3, 1), 0x00B, "03 00 00 00 01 00 00 00"),
    (can.encode(0, can.SET_LIMITS, 10 * TURN, 20.0), 0x00F, "00 00 20 41 00 00 a0 41"),
    (can.encode(0, can.SET_TRAJ_VEL_LIMIT, 2 * TURN), 0x011, "00 00 00 40 00 00 00 00"),
    (can.encode(0, can.SET_TRAJ_ACCEL_LIMITS, TURN, 2 * TURN), 0x012, "00 00 80 3f 00 00 00 40"),
    (can.encode(0, can.SET_TRAJ_INERTIA, 0.5 / TURN), 0x013, "00 00 00 3f 00 00 00 00"),
    (can.encode(0, can.SET_ABSOLUTE_POSITION, 0.25 * TURN), 0x019, "00 00 80 3e 00 00 00 00"),
    (can.encode(0, can.SET_POS_GAIN, 20.0), 0x01A, "00 00 a0 41 00 00 00 00"),
    (can.encode(0, can.SET_VEL_GAINS, 0.5 / TURN, 0.25 / TURN), 0x01B, "00 00 00 3f 00 00 80 3e"),
    (can.encode(5, can.ESTOP), 0x0A2, ""),
    (can.encode(5, can.REBOOT, 1), 0x0B6, "01"),
    (can.encode(0x3F, can.CLEAR_ERRORS, 0), 0x7F8, "00"),
    (can.encode(0, can.ENTER_DFU_MODE), 0x01F, ""),
    # candump of the guide: node 0 idle, node 1 in closed loop
    (can.encode(0, can.HEARTBEAT, 0, 1, 0, 0), 0x001, "00 00 00 00 01 00 00 00"),
    (can.encode(1, can.HEARTBEAT, 0, 8, 0, 0), 0x021, "00 00 00 00 08 00 00 00"),
    # 0.6: error, state, procedure result, trajectory done
    (can.encode(1, can.HEARTBEAT, 0x0100_0000, 1, 3, 1), 0x021, "00 00 00 01 01 03 01 00"),
    (can.encode(0, can.GET_ERROR, 0x2000, 0x0200_0000), 0x003, "00 20 00 00 00 00 00 02"),
    (can.encode(0, can.GET_ENCODER_ESTIMATES, TURN, -0.5 * TURN), 0x009, "00 00 80 3f 00 00 00 bf"),
    (can.encode(0, can.GET_IQ, 1.0, 2.0), 0x014, "00 00 80 3f 00 00 00 40"),
    (can.encode(0, can.GET_TEMPERATURE, 32.0, 64.0), 0x015, "00 00 00 42 00 00 80 42"),
    (can.encode(0, can.GET_BUS_VOLTAGE_CURRENT, 24.0, 0.5), 0x017, "00 00 c0 41 00 00 00 3f"),
    (can.encode(0, can.GET_TORQUES, 1.0, -1.0), 0x01C, "00 00 80 3f 00 00 80 bf"),
    (can.encode(0, can.GET_POWERS, 4.0, 2.0), 0x01D, "00 00 80 40 00 00 00 40"),
    # protocol 2, S1 (5.2.0), firmware 0.6.10, released
    (can.version(0, (5, 2, 0), (0, 6, 10)), 0x000, "02 05 02 00 00 06 0a 00"),
    (can.address(0x3F, 0x123456789ABC), 0x7E6, "3f bc 9a 78 56 34 12 00"),
    # '<BHB' + type: read endpoint 400; write 1.234 to it; call the function 549
    (can.endpoint(0, can.READ, 400), 0x004, "00 90 01 00"),
    (can.endpoint(0, can.WRITE, 400, struct.pack("<f", 1.234)), 0x004, "01 90 01 00 b6 f3 9d 3f"),
    (can.endpoint(3, can.WRITE, 549), 0x064, "01 25 02 00"),
    (can.endpoint(0, 0, 400, struct.pack("<f", 1.234), can.TX_SDO), 0x005, "00 90 01 00 b6 f3 9d 3f"),
]


@pytest.mark.parametrize(("frame", "number", "data"), GOLDEN)
def test_frames_of_the_manual(frame, number, data):
    assert frame == CanFrame(number, bytes.fromhex(data))


def test_requests_are_remote_frames():
    assert can.request(3, can.GET_ENCODER_ESTIMATES) == CanFrame(0x069, b"", remote=True)
    assert can.request_of(CanFrame(0x069, b"", remote=True)) == (3, can.GET_ENCODER_ESTIMATES)
    assert can.request_of(CanFrame(0x069, bytes(8), remote=True)) == (
        3,
        can.GET_ENCODER_ESTIMATES,
    )  # requests eight bytes
    assert can.request_of(CanFrame(0x069, b"")) == (3, can.GET_ENCODER_ESTIMATES)  # works too, says the manual
    assert can.request_of(CanFrame(0x062, b"", remote=True)) is None  # an emergency stop is not asked for
    assert can.request_of(CanFrame(0x069, bytes(8))) is None
    assert can.request_of(CanFrame(0x069, b"", extended=True, remote=True)) is None


def test_feedforward_is_cut_and_rounded():
    data = can.input_position(0, 0.0, 99 * TURN, -99.0).data
    assert struct.unpack("<fhh", data) == (0.0, 32767, -32767)
    assert struct.unpack("<fhh", can.input_position(0, 0.0, 0.0, 0.0016).data)[2] == 2
    assert can.feedforward_limit(can.FEEDFORWARD) == pytest.approx(32.767)


@pytest.mark.parametrize("command", sorted(set(can.LAYOUTS) - {can.ADDRESS}))
@given(data=st.binary(min_size=8, max_size=8))
def test_round_trip(command, data):
    layout = can.LAYOUTS[command]
    payload = data[: layout.least.size].ljust(layout.whole.size, b"\0")
    message = can.decode(CanFrame(7 << 5 | command, payload))
    assert message is not None
    assert message[:2] == (7, command)
    if not any(value != value for value in message.values):
        back = can.decode(can.encode(7, command, *message.values))
        # a float of the largest size may round
        assert back is not None
        assert back.values == pytest.approx(message.values, rel=1e-6, abs=1e-37)


@given(st.integers(-5, 1 << 30), st.binary(max_size=64), st.booleans(), st.booleans())
def test_decoding_never_raises(number, data, extended, remote):
    frame = CanFrame(number, data, extended=extended, remote=remote)
    message, asked = can.decode(frame), can.request_of(frame)
    if extended or not 0 <= number < 0x800:
        assert message is None
        assert asked is None
    if remote:
        assert message is None


def test_short_payloads_are_no_messages():
    for command, layout in can.LAYOUTS.items():
        if layout.least.size:
            assert can.decode(CanFrame(command, bytes(layout.least.size - 1))) is None
            assert can.decode(CanFrame(command, bytes(layout.least.size))) is not None
    assert can.decode(CanFrame(can.TX_SDO, bytes(3))) is None
    assert can.decode(CanFrame(0x08, bytes(8))) is None
    assert can.decode(CanFrame(0x69, bytes(8), fd=True)) is not None


# --- ASCII ------------------------------------------------------------------------------------------------
# docs/ascii-protocol.rst of odriverobotics/ODrive and the same page of docs.odriverobotics.com


def test_checksum_of_the_manual():
    """Its example of a valid checksum is `r vbus_voltage *93`."""
    assert text.checksum(b"r vbus_voltage ") == 93
    assert text.unwrap(b"r vbus_voltage *93") == ("r vbus_voltage", True)
    assert text.unwrap(b"r vbus_voltage *94") is None
    assert text.unwrap(b"r vbus_voltage ") == ("r vbus_voltage", False)
    assert text.line("r vbus_voltage ", True) == b"r vbus_voltage *93\n"


@given(st.binary(max_size=256))
def test_checksum_is_the_xor_of_all(data):
    whole = 0
    for byte in data:
        whole ^= byte
    assert text.checksum(data) == whole


def test_comments():
    assert text.unwrap(b"v 0 1 0 ; faster *12") == ("v 0 1 0", False)
    assert text.unwrap(b"r vbus_voltage *93 ; comment") == ("r vbus_voltage", True)


@pytest.mark.parametrize(
    ("said", "manual"),
    [
        (text.position(0, -2 * TURN, 0.0, 0.0), "p 0 -2 0 0"),
        (text.velocity(0, TURN, 0.0), "v 0 1 0"),
        (text.torque(1, -0.25), "c 1 -0.25"),
    ],
)
def test_commands_of_the_manual(said, manual):
    assert said == manual


def test_answers():
    assert text.number("24.087744") == 24.087744
    assert text.feedback("1.500000 -0.250000") == (1.5 * TURN, -0.25 * TURN)
    assert text.feedback("1.500000") is None
    assert text.feedback("invalid motor 1") is None
    assert text.number("invalid property") is None
    assert text.number("1_000") is None


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        ("q 0 -2 1 0.1", ("q", 0, (-2.0, 1.0, 0.1))),
        ("t 0 -2", ("t", 0, (-2.0,))),
        ("f 1", ("f", 1, ())),
        ("p 0 1 x 3", ("p", 0, (1.0,))),
        ("p 0 1e3 .5", ("p", 0, (1000.0, 0.5))),
        ("p -1 2", None),
        ("p", None),
        ("p ² 2", None),
    ],
)
def test_parsing(line, request_):
    assert text.parse(line) == request_


@given(st.floats(-1e6, 1e6), st.floats(-1e4, 1e4), st.floats(-1e3, 1e3))
def test_position_round_trip(angle, speed, effort):
    line = text.unwrap(text.line(text.position(1, angle, speed, effort), True).strip())
    assert line is not None
    assert line.checked
    request = text.parse(line.text)
    assert request is not None
    assert request.numbers == pytest.approx((angle / TURN, speed / TURN, effort), rel=1e-6, abs=1e-12)


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_lines_do_not_care_where_chunks_are_cut(chunks):
    whole, parts = text.AsciiDecoder(), text.AsciiDecoder()
    data = b"".join(chunks)
    assert whole.feed(data) == [line for chunk in chunks for line in parts.feed(chunk)]


def test_a_line_that_is_too_long_is_dropped_whole():
    lines = text.AsciiDecoder()
    assert lines.feed(b"x" * 300) == []
    assert lines.feed(b"c 0 9") == []
    assert lines.feed(b"\nc 0 1\r\n") == [b"c 0 1"]
    assert lines.dropped == 1


@given(st.binary(max_size=400))
def test_text_never_makes_it_raise(data):
    for raw in text.AsciiDecoder().feed(data + b"\n"):
        line = text.unwrap(raw)
        if line is not None:
            text.parse(line.text)
            text.feedback(line.text)
            text.number(line.text)
