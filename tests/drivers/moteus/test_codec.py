"""The frames of moteus drives: those that mjbots documents byte by byte, round trips, and any bytes at all.

Documents, all of the repository mjbots/moteus: [can] docs/protocol/can.md, [fd] docs/integration/can-fd.md,
[cpp] the frames that lib/cpp's own protocol test expects; scalings: docs/protocol/registers.md.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.core.units import TURN
from cosim.plugins.drivers.moteus import cycle
from cosim.plugins.drivers.moteus import registers as reg
from cosim.plugins.drivers.moteus.codec import (
    BRAKE,
    CLIENT_DATA,
    CLIENT_POLL,
    CLIENT_POLL_FLOW,
    FLOAT,
    INT8,
    INT16,
    INT32,
    QUERY,
    SERVER_DATA_FLOW,
    STOP,
    Failure,
    Read,
    Reply,
    ServoFeedback,
    Tunnel,
    Write,
    arbitration,
    command_tail,
    decode,
    encode_feedback,
    failure,
    pad,
    poll,
    read,
    reply,
    reply_size,
    tunnel,
    varuint,
    write,
)
from cosim.plugins.drivers.moteus.registers import to_raw, to_value
from tests.kit.cycles import data_of, numbers_in

SCALED = (0.25, 0.5, 1.0, 0.25, 0.125, 8.0, 2.0, 0.2, 5.0, 2.0, 4.0)
# bytes, what they are made of, the document
GOLDEN = [
    (
        "01000a07206000200150ff140400130d",  # [can]
        write(0x000, INT8, [10]) + write(0x020, INT16, [0x60, 0x120, -0xB0]) + read(0, INT16, 4) + read(0xD, INT8, 3),
    ),
    (
        "2404000a005000000170ff230d181400",  # [can]
        reply(Read(0, INT16, 4, False), [10, 80, 256, -144]) + reply(Read(0x00D, INT8, 3, True), [0x18, 0x14, 0]),
    ),
    ("1100110f", read(0x000, INT8) + read(0x00F, INT8)),  # [fd]
    ("01000a0e200000803f0000004011001f01130d", write(0, INT8, [10]) + write(0x020, FLOAT, [1.0, 2.0]) + QUERY),  # [fd]
    (
        "01000a040b20c409d0076400ff1fff0f2003204ec800204ed0072800",  # [cpp]
        write(0, INT8, [10]) + write(0x020, INT16, [int(to_raw(0x020 + k, INT16, v)) for k, v in enumerate(SCALED)]),
    ),
    (
        "01000d0c07400000003f0000803f000000400000803e0000003f00000040cdcc4c3d",  # [cpp]
        write(0x000, INT8, [13]) + write(0x040, FLOAT, [0.5, 1.0, 2.0, 0.25, 0.5, 2.0, 0.05]),
    ),
    ("01000f", write(0x000, INT8, [15])),  # [cpp], as all that follow
    ("0100090e1c000000400000803f", write(0, INT8, [9]) + write(0x1C, FLOAT, [2, 1])),
    ("025c0204", write(0x05C, INT8, [2, 4])),
    ("125e", read(0x05E, INT8, 2)),
    ("0db00200000040", write(0x130, FLOAT, [2.0])),
    ("01b20201", write(0x132, INT8, [1])),
    ("097105000000", write(0x071, INT32, [5])),
    (
        "05769919057d3233",
        write(0x076, INT16, [int(to_raw(0x076, INT16, 0.2))]) + write(0x07D, INT16, [int(to_raw(0x07D, INT16, 0.4))]),
    ),
    (
        "11001c070110060a125e1e50",
        read(0, INT8) + read(1, FLOAT, 7) + read(0x00A, INT8, 6) + read(0x05E, INT8, 2) + read(0x050, FLOAT, 2),
    ),
    ("40010974656c2073746f700a", tunnel(CLIENT_DATA, 1, b"tel stop\n")),
    ("420130", poll(1, 48)),
    ("4401c830", bytes((0x44, 1, 200, 48))),
    ("43010503616263", tunnel(SERVER_DATA_FLOW, 1, b"abc", 5)),
]


@pytest.mark.parametrize(("text", "made"), GOLDEN)
def test_documented_frames(text: str, made: bytes) -> None:
    """What is decoded of them is in `test_subframes_round_trip` and below."""
    assert made.hex() == text and decode(made)[1]


def test_what_is_decoded_of_documented_frames() -> None:
    def found(text: str) -> list:
        return decode(bytes.fromhex(text))[0]

    head = [Write(0x000, INT8, (10,))]
    reads = [Read(0x000, INT16, 4, False), Read(0x00D, INT8, 3, True)]
    query = [Read(0x000, INT8, 1, True), Read(0x001, FLOAT, 3, True), Read(0x00D, INT8, 3, True)]
    assert found(GOLDEN[0][0]) == [*head, Write(0x020, INT16, (0x60, 0x120, -0xB0)), *reads]
    assert found(GOLDEN[1][0]) == [Reply(0x000, INT16, (10, 80, 256, -144)), Reply(0x00D, INT8, (0x18, 0x14, 0))]
    assert found(GOLDEN[3][0]) == [*head, Write(0x020, FLOAT, (1.0, 2.0)), *query]
    assert found("40010974656c2073746f700a") == [Tunnel(CLIENT_DATA, 1, b"tel stop\n", 9, 0)]
    assert found("4401c830") == [Tunnel(CLIENT_POLL_FLOW, 1, b"", 48, 200)]
    assert found("43010503616263") == [Tunnel(SERVER_DATA_FLOW, 1, b"abc", 3, 5)]
    assert found("420130") == [Tunnel(CLIENT_POLL, 1, b"", 48, 0)]


def test_identifiers_and_commands_that_request_the_state() -> None:
    assert arbitration(0, 1, reply=True) == 0x8001  # [can]
    assert arbitration(1, 0) == 0x100  # [can]
    assert arbitration(0, 127, prefix=0x1234, reply=True) == 0x1234_807F
    # stop and brake commands request the state
    assert QUERY.hex() == "11001f01130d"
    assert STOP.hex() == "010000" + QUERY.hex() + "505050"
    assert BRAKE.hex() == "01000f" + QUERY.hex() + "505050"


@pytest.mark.parametrize(
    ("register", "resolution", "raw", "value"),
    [
        (reg.POSITION, INT16, 0x50, 0.008),  # [can]: 2.88 degrees
        (reg.VELOCITY, INT16, 0x100, 0.064),  # [can]: 23.04 degrees/s
        (reg.TORQUE, INT16, -144, -1.44),  # [can]
        (reg.VOLTAGE, INT8, 0x18, 12.0),  # [can]
        (reg.TEMPERATURE, INT8, 0x14, 20.0),  # [can]
        (reg.POSITION, INT8, 127, 1.27),  # registers.md: range of -1.27 to 1.27
        (reg.POSITION, INT16, -32767, -3.2767),
        (reg.POSITION, INT32, 100000, 1.0),
        (reg.VELOCITY, INT8, 10, 1.0),
        (reg.VELOCITY, INT32, 100000, 1.0),
        (reg.TORQUE, INT8, 3, 1.5),
        (reg.TORQUE, INT32, 1500, 1.5),
        (reg.Q_CURRENT, INT8, 3, 3.0),
        (reg.D_CURRENT, INT16, 35, 3.5),
        (reg.POWER, INT8, 2, 20.0),
        (reg.POWER, INT16, 100, 5.0),
        (reg.VOLTAGE, INT16, 240, 24.0),
        (reg.MOTOR_TEMPERATURE, INT16, 251, 25.1),
        (reg.COMMAND_TIMEOUT, INT8, 10, 0.1),
        (reg.COMMAND_TIMEOUT, INT16, 100, 0.1),
        (reg.COMMAND_TIMEOUT, INT32, 100000, 0.1),
        (0x023, INT8, 127, 1.0),
        (0x024, INT16, 32767, 1.0),
        (0x02B, INT32, 2147483647, 1.0),
        (0x029, INT8, 20, 1.0),
        (0x029, INT16, 1000, 1.0),
        (0x029, INT32, 100000, 1.0),
        (reg.MODE, INT16, 10, 10),
        (reg.UUID, INT32, -(1 << 31), -(1 << 31)),  # whole numbers have no "not a number"
        (reg.SET_EXACT, FLOAT, 0.25, 0.25),
    ],
)
def test_scalings(register: int, resolution: int, raw: float, value: float) -> None:
    assert to_value(register, resolution, raw) == pytest.approx(value, rel=1e-9)
    assert to_raw(register, resolution, value + math.copysign(1e-9, value) * (resolution != FLOAT)) == raw


@pytest.mark.parametrize(("resolution", "limit"), [(INT8, 127), (INT16, 32767), (INT32, 2147483647)])
def test_integers_saturate_and_say_what_is_not_a_number(resolution: int, limit: int) -> None:
    assert to_raw(reg.POSITION, resolution, 1e9) == limit and to_raw(reg.POSITION, resolution, -1e9) == -limit
    assert to_raw(reg.POSITION, resolution, math.nan) == -limit - 1
    assert math.isnan(to_value(reg.POSITION, resolution, -limit - 1))
    assert to_raw(reg.MILLISECONDS, resolution, limit + 1) == -limit - 1  # counters wrap
    assert to_raw(reg.POSITION, FLOAT, -1e39) == -math.inf


def command_of(tail: bytes, *numbers: float) -> bytes:
    (data,) = data_of(cycle.transmission("effort", tail, [0x8001]), *numbers)
    return data


def test_the_command_byte_by_byte() -> None:
    tail = command_tail(0.1, integral=False)
    frame = command_of(tail, 0.25, -0.5, 1.5, 0.5, 0.25, 2.0)
    assert frame.hex(" ") == (
        "01 00 0a"  # mode: position
        " 0c 06 20 00 00 80 3e 00 00 00 bf 00 00 c0 3f 00 00 00 3f 00 00 80 3e 00 00 00 40"
        " 07 27 64 00 ff ff ff ff"  # 100 ms; no velocity limit, no acceleration limit
        " 01 2b 00"  # no integral
        " 11 00 1f 01 13 0d 50"
    )
    assert decode(frame)[1] and len(frame) == 48
    assert command_tail(0.0001, integral=True)[2:4] == b"\x01\x00" and command_tail(99.0, integral=True)[10] == 127
    assert command_tail(99.0, integral=True)[2:4] == b"\xff\x7f"
    assert command_of(tail, math.nan, 0.0, 0.0, 0.0, 0.0, 0.0)[6:10] == b"\x00\x00\xc0\x7f"


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6), st.floats(0.001, 30.0))
def test_commands_round_trip(values: list[float], watchdog: float) -> None:
    found, whole = decode(command_of(command_tail(watchdog, integral=True), *values))
    assert whole and found[0] == Write(0, INT8, (10,))
    command, timing = found[1], found[2]
    assert isinstance(command, Write) and isinstance(timing, Write)
    assert list(command.values) == pytest.approx(values, rel=1e-6)
    assert timing.values[0] * 1e-3 == pytest.approx(watchdog, abs=5.1e-4) and timing.values[1:] == (-1, -1)


@given(st.integers(0, 15), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.integers(0, 105))
def test_feedback_round_trips(mode: int, position: float, velocity: float, effort: float, fault: int) -> None:
    data = encode_feedback(ServoFeedback(mode, position, velocity, effort, 23.5, 41.0, fault))
    assert len(data) == 24 and decode(data)[1]
    back = numbers_in(cycle.reception([0x100]), data)
    assert back is not None and (back[cycle.MODE], *back[4:]) == (mode, 47, 41, fault)
    assert back[1:4] == pytest.approx((position / TURN, velocity / TURN, effort), rel=1e-6, abs=1e-30)


def test_feedback_that_is_not_measured() -> None:
    back = numbers_in(cycle.reception([0x100]), encode_feedback(ServoFeedback(0, 0.0, 0.0, 0.0, math.nan, math.nan, 0)))
    assert back is not None and all(math.isnan(cycle.known(back[k])) for k in (cycle.HALF_VOLTS, cycle.DEGREES))


@given(st.integers(0, 1 << 32), st.sampled_from([INT8, INT16, INT32, FLOAT]), st.integers(1, 12), st.booleans())
def test_subframes_round_trip(register: int, resolution: int, count: int, brief: bool) -> None:
    values = tuple(float(k) if resolution == FLOAT else k for k in range(count))
    query = Read(register, resolution, count, brief and count < 4)
    answer = reply(query, values)
    assert len(answer) == reply_size(query) and decode(answer) == ([Reply(register, resolution, values)], True)
    assert decode(write(register, resolution, values)) == ([Write(register, resolution, values)], True)
    assert decode(read(register, resolution, count)) == ([Read(register, resolution, count, count < 4)], True)
    assert decode(failure(register, 1, True) + pad(failure(register, 2, False))) == (
        [Failure(register, 1, True), Failure(register, 2, False)],
        True,
    )
    assert varuint(register) == varuint(register)[:-1] + bytes((register >> 7 * (len(varuint(register)) - 1),))


def test_padding() -> None:
    for length in range(65):
        data = pad(bytes(length))
        assert len(data) in (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64)
        assert data[:length] == bytes(length) and set(data[length:]) <= {0x50} and len(data) - length < 16


TRUNCATED = "0c 0c0620 0e200000803f 40010561626364 1c80 0ebcffffffffff 31 40 400105616263 51 ff 4401"


@pytest.mark.parametrize("text", TRUNCATED.split())
def test_truncated_frames(text: str) -> None:
    assert not decode(bytes.fromhex(text))[1]


def test_subframes_before_the_truncation_are_valid() -> None:
    found, whole = decode(bytes.fromhex("0100000e200000803f0000"))
    assert found == [Write(0, INT8, (0,)), Write(0x020, FLOAT, (1.0,))] and not whole


@given(st.binary(max_size=3), st.integers(0, 47))
def test_a_feedback_with_other_heads_is_none(noise: bytes, at: int) -> None:
    data = bytearray(encode_feedback(ServoFeedback(10, 0.1, 0.2, 0.3, 24.0, 25.0, 0)))
    data[at : at + len(noise)] = noise
    back = numbers_in(cycle.reception([0x100]), bytes(data))
    heads = data[0:2] + data[3:5] + data[17:19]
    assert (back is None) == (len(data) < 22 or heads != b"\x21\x00\x2f\x01\x23\x0d")
