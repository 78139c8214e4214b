"""Commands and answers of VESCs: by the firmware's source, and any bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.vesc import codec
from cosim.plugins.drivers.vesc.codec import Values
from cosim.plugins.drivers.vesc.faults import FAULTS


def test_setpoints_as_the_firmware_reads_them():
    """comm/commands.c and comm/comm_can.c of vedderb/bldc: current in mA, rpm as it is, angle in 10⁻⁶ °."""
    assert codec.setpoint("effort", -1.5).hex() == "06" + struct.pack(">i", -1500).hex() == "06fffffa24"
    assert codec.setpoint("velocity", 4200.0).hex() == "0800001068"
    assert codec.setpoint("position", 90.0).hex() == "09055d4a80"
    frame = codec.setpoint_frame(10, "effort", 2.0)
    assert (frame.id, frame.extended, frame.data.hex()) == (0x10A, True, "000007d0")
    assert [codec.setpoint_frame(10, mode, 0.0).id for mode in ("velocity", "position")] == [0x30A, 0x40A]


def test_a_request_and_its_answer_as_the_firmware_sends_them():
    """COMM_GET_VALUES_SELECTIVE of comm/commands.c: the mask, then what its bits select, in their order."""
    assert codec.VALUES == 0x2180A2 and codec.VALUES | codec.VALUES_ID == 0x2380A2
    answer = bytes.fromhex("32002180a2" + "00fb" + "ffffff38" + "000003e8" + "04" + "055d4a80" + "01")
    values = Values(25.1, -2.0, 1000, 4, 90.0, None, True)
    assert codec.decode_values(answer) == values
    assert codec.encode_values(values, codec.VALUES) == answer
    assert FAULTS[values.fault][0] == "absolute overcurrent"


def test_configurations_as_the_firmware_serialises_them():
    """confgenerator.c of 6.05: signature, then pwm, commutation, motor and sensor mode and the currents; signature, id,
    timeout, brake current. Its float32_auto are the bits of an IEEE 754 number."""
    motor = struct.pack(">BIBBBBff", codec.GET_MCCONF, 0xDEADBEEF, 1, 0, 2, 2, 60.0, -40.0) + bytes(400)
    assert codec.decode_head(motor) == (codec.GET_MCCONF, (0xDEADBEEF, 1, 0, 2, 2, 60.0, -40.0))
    app = struct.pack(">BIBIf", codec.GET_APPCONF, 1, 7, 1000, 0.0) + bytes(400)
    assert codec.decode_head(app) == (codec.GET_APPCONF, (1, 7, 1000, 0.0))


def test_fault_codes_are_those_of_the_firmware():
    """mc_fault_code of datatypes.h has 0 (none) to 33."""
    assert sorted(FAULTS) == list(range(1, 34))
    assert [FAULTS[code][0] for code in (1, 5, 28, 33)] == [
        "overvoltage",
        "overtemperature of the MOSFETs",
        "encoder fault",
        "absolute overspeed",
    ]


@given(
    st.floats(-300, 300),
    st.floats(-2e5, 2e5),
    st.floats(-1e6, 1e6),
    st.integers(0, 255),
    st.floats(0, 360),
    st.booleans(),
)
def test_values_arrive_within_half_a_step(temperature, current, erpm, fault, angle, timed_out):
    for mask, id in ((codec.VALUES, None), (codec.VALUES | codec.VALUES_ID, 9)):
        sent = Values(temperature, current, erpm, fault, angle, id, timed_out)
        got = codec.decode_values(codec.encode_values(sent, mask))
        assert got is not None and (got.fault, got.id, got.timed_out) == (fault, id, timed_out)
        for a, b, step in ((0, temperature, 0.1), (1, current, 0.01), (2, erpm, 1.0), (4, angle, 1e-6)):
            assert abs(got[a] - b) <= 0.5001 * step


@given(st.sampled_from(list(codec.SETPOINTS)), st.floats(-300, 300))
def test_a_setpoint_arrives_within_half_a_step(mode, value):
    command, _, steps = codec.SETPOINTS[mode]
    content = codec.setpoint(mode, value)
    assert content[0] == command
    assert abs(struct.unpack(">i", content[1:])[0] / steps - value) <= 0.5001 / steps


@pytest.mark.parametrize("mask", [0, 1, codec.VALUES ^ 2, 0xFFFFFFFF])
def test_values_with_another_mask_are_none(mask):
    answer = codec.encode_values(Values(1, 1, 1, 1, 1, None, False), codec.VALUES)
    assert codec.decode_values(answer[:1] + mask.to_bytes(4, "big") + answer[5:]) is None
