"""How long frames and bytes take: published lengths, stuffing counted in another way, shares of a line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams, Traffic, TrafficMeter, estimate, seconds
from cosim.plugins.drivers.transport.bus_load import FD_LENGTHS, exact_bits, frame_weight, weights, worst_bits

CLASSIC = CanParams("virtual", "x", bitrate=1e6)
FAST = CanParams("virtual", "x", bitrate=1e6, data_bitrate=5e6, fd=True)


@pytest.mark.parametrize(
    ("length", "extended", "fd", "bits"),
    [
        # Davis, Burns, Bril, Lukkien: Controller Area Network (CAN) schedulability analysis, 2007, equation 1
        (8, False, False, 135),
        (0, False, False, 55),
        (8, True, False, 160),
        (0, True, False, 80),
        # the longest CAN FD frames, as the Linux kernel has them (include/linux/can/length.h)
        (64, False, True, 712),
        (64, True, True, 736),
    ],
)
def test_worst_lengths_are_the_published_ones(length, extended, fd, bits):
    assert worst_bits(length, extended, fd) == (bits, 0)


@pytest.mark.parametrize(("extended", "switched"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("length", FD_LENGTHS)
def test_a_switched_frame_has_the_same_bits_at_two_rates(length, extended, switched):
    slow, fast = worst_bits(length, extended, True, switched)
    assert slow + fast == sum(worst_bits(length, extended, True))
    head = 36 if extended else 17
    assert slow == (head + (head - 1) // 4 + 12 if switched else slow + fast)


def test_data_of_can_fd_are_filled_up_to_a_length_that_there_is():
    assert worst_bits(9, fd=True) == worst_bits(12, fd=True) > worst_bits(8, fd=True)
    assert worst_bits(65, fd=True) == worst_bits(64, fd=True)
    sixteen, twenty = sum(worst_bits(16, fd=True)), sum(worst_bits(20, fd=True))
    assert twenty - sixteen == 32 + 8 + 4 + 1  # data, their stuff bits, a longer CRC, its stuff bit


def test_frames_without_runs_or_data():
    # 44 bits of fields (Bosch, CAN Specification 2.0, part B), 64 of data, 3 of intermission, no run of five
    assert exact_bits(CanFrame(0x555, b"\x55" * 8)) - _stuff_bits(CanFrame(0x555, b"\x55" * 8)) == 111
    assert exact_bits(CanFrame(0x5555555, b"\x55" * 8, extended=True)) >= 131
    # a remote frame carries no data whatever is asked for
    asked = CanFrame(0x2AA, bytes(8), remote=True)
    assert exact_bits(asked) - _stuff_bits(asked) == 47
    assert frame_weight(asked, weights(1e6, None)) == 55


frames = st.booleans().flatmap(
    lambda extended: st.builds(
        CanFrame,
        st.integers(0, 0x1FFFFFFF if extended else 0x7FF),
        st.binary(max_size=8) | st.sampled_from([bytes(8), b"\xff" * 8, b"\x0f\x83\xe0\xf8\x3e\x0f\x83\xe0"]),
        st.just(extended),
        *[st.just(False)] * 3,
    )
)


@given(frames)
def test_stuffing_is_exact_and_never_worse_than_the_worst(frame):
    bare = (67 if frame.extended else 47) + 8 * len(frame.data)
    assert exact_bits(frame) == bare + _stuff_bits(frame)
    assert bare <= exact_bits(frame) <= worst_bits(len(frame.data), frame.extended)[0]


def test_the_worst_case_is_nearly_met():
    # the length code ends in three zeros, two more make a run; then each stuff bit begins a run of five
    found = max(exact_bits(CanFrame(number, b"\x3c" * 8)) for number in range(0x800))
    assert 130 <= found <= 135


def _stuff_bits(frame):
    """Of a classic frame: text and integers instead of lists and shifts."""
    if frame.extended:
        head = f"0{frame.id >> 18:011b}11{frame.id & 0x3FFFF:018b}{frame.remote:b}00"
    else:
        head = f"0{frame.id:011b}{frame.remote:b}00"
    bits = head + f"{len(frame.data):04b}" + ("" if frame.remote else "".join(f"{byte:08b}" for byte in frame.data))
    rest, polynomial = int(bits, 2) << 15, 0xC599  # x^15 + x^14 + x^10 + x^8 + x^7 + x^4 + x^3 + 1
    while rest.bit_length() > 15:
        rest ^= polynomial << rest.bit_length() - 16
    bits += f"{rest:015b}"
    count, start = 0, 0
    while found := re.compile("00000|11111").search(bits, start):
        end = found.end()
        bits = bits[:end] + ("1" if bits[end - 1] == "0" else "0") + bits[end:]
        count, start = count + 1, end
    return count


def test_time_on_the_wire_and_its_share():
    assert seconds(CanFrame(1, bytes(8)), CLASSIC) == pytest.approx(135e-6)
    slow, fast = worst_bits(64, False, True, True)
    assert seconds(CanFrame(1, bytes(64), fd=True, switched=True), FAST) == pytest.approx(slow * 1e-6 + fast * 0.2e-6)
    assert seconds(CanFrame(1, bytes(64), fd=True), FAST) == pytest.approx(712e-6)
    assert seconds(b"twelve bytes", SerialParams("x", 1e6)) == pytest.approx(120e-6)
    # the share of a cycle
    six = [CanFrame(k, bytes(8)) for k in range(6)]
    assert estimate(Traffic(six, six), CLASSIC, 1e-3) == pytest.approx(12 * 0.135)
    assert estimate(Traffic([b"x" * 10], [b"y" * 40]), SerialParams("x", 1e6), 1e-3) == pytest.approx(0.5)
    assert estimate(Traffic([], []), CLASSIC, 1e-3) == 0
    # the meter gives the share that was used
    meter = TrafficMeter()
    meter.sent(135)
    meter.received(55)
    meter.received(55)
    assert (meter.items_out, meter.items_in, meter.bits_out, meter.bits_in) == (1, 2, 135, 110)
    assert meter.load(1e-3, 1e6) == pytest.approx(0.245)
