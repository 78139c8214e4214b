"""Commands and answers of VESCs: by the firmware's source, and any bytes."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.common.cycle import FAULTY, STATE_EFFORT, STATE_POSITION, STATE_TEMPERATURE, STATE_VELOCITY
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import TELL, frames, packet
from cosim.plugins.drivers.vesc import codec, cycle, values
from cosim.plugins.drivers.vesc.faults import FAULTS
from cosim.plugins.drivers.vesc.params import JointParams
from cosim.plugins.drivers.vesc.wires import PortWire
from tests.kit.cycles import commanded, state_in

IDS = (10,)
RECEPTION = cycle.reception(IDS, 128, 0)
SETTINGS = [1.0, 1.0, 0.0]  # in rpm of the field and A, from 0


def setpoint(mode: str, **command: float) -> CanFrame:
    """rad, rpm of the field and A."""
    transmission = cycle.transmission(mode, IDS, ())
    (data,) = commanded(RECEPTION, transmission, SETTINGS, **command)
    return transmission.frames[0].frame._replace(data=data)


def state(content: bytes) -> list[float] | None:
    """As measured: rad, rpm of the field, A, °C, whether there is a fault; None if that is no measurement."""
    return state_in(RECEPTION, SETTINGS, *(frame.data for frame in frames(138, 10, content, TELL)))


def encoded(mask: int = codec.VALUES, **quantities: float) -> bytes:
    return bytes([codec.GET_VALUES_SELECTIVE]) + mask.to_bytes(4, "big") + values.encode(quantities, mask)


def test_setpoints_as_the_firmware_reads_them():
    """comm/commands.c and comm/comm_can.c of vedderb/bldc: current in mA, rpm as it is, angle in 10⁻⁶ °."""
    frame = setpoint("effort", effort=-1.5)
    assert (frame.id, frame.extended, frame.data.hex()) == (0x10A, True, "fffffa24")
    assert setpoint("velocity", velocity=4200.0).data.hex() == "00001068"
    assert setpoint("position", position=0.5 * math.pi).data.hex() == "055d4a80"
    assert [setpoint(mode).id for mode in ("velocity", "position")] == [0x30A, 0x40A]
    port = PortWire([JointParams(id=10, forward=True, pole_pairs=1, torque_constant=1.0)])
    assert port.encode(frame) == packet(bytes([34, 10, 6]) + frame.data)


def test_a_request_and_its_answer_as_the_firmware_sends_them():
    """COMM_GET_VALUES_SELECTIVE of comm/commands.c: the mask, then what its bits select, in their order."""
    assert codec.VALUES == 0x2180A2 and codec.VALUES | codec.VALUES_ID == 0x2380A2
    answer = bytes.fromhex("32002180a2" + "00fb" + "ffffff38" + "000003e8" + "04" + "055d4a80" + "01")
    assert state(answer) == pytest.approx([0.5 * math.pi, 1000.0, -2.0, 25.1, 1.0])
    assert encoded(temperature=25.1, current=-2.0, erpm=1000, fault=4, angle=90.0, status=1) == answer
    assert FAULTS[answer[cycle.FAULT]][0] == "absolute overcurrent"
    on_port = encoded(codec.VALUES | codec.VALUES_ID, temperature=25.1, angle=90.0, id=10)
    port = PortWire([JointParams(id=10, pole_pairs=1, torque_constant=1.0)])
    bare = encoded(temperature=25.1, angle=90.0)
    assert port.measured(on_port) == frames(138, 10, bare, TELL) and not port.measured(bare)


def test_parts_of_two_answers_are_no_measurement():
    first, second = (frames(138, 10, encoded(erpm=erpm), TELL) for erpm in (1000, 70000))
    interpreted = InterpretedCycle(RECEPTION, [SETTINGS])
    for frame in (*first, second[0], second[1], *first[2:]):
        interpreted.take(frame._replace(t_ns=7))
    assert interpreted.lost == 1 and interpreted.times == [0]
    interpreted.measure()
    assert interpreted.times == [7] and interpreted.states[0][STATE_VELOCITY] == 1000.0
    assert all(interpreted.take(frame) is None for frame in frames(138, 10, b"other content", TELL))
    assert interpreted.lost == 1


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
    quantities = {"temperature": temperature, "current": current, "erpm": erpm, "fault": fault, "angle": angle}
    got = state(encoded(**quantities, status=timed_out))
    assert got is not None and bool(got[FAULTY]) == (timed_out or fault > 0)
    turned = math.degrees(got[STATE_POSITION]) - angle
    assert abs(turned - 360.0 * round(turned / 360.0)) <= 0.51e-6
    for k, b, step in (
        (STATE_TEMPERATURE, temperature, 0.1),
        (STATE_EFFORT, current, 0.01),
        (STATE_VELOCITY, erpm, 1.0),
    ):
        assert abs(got[k] - b) <= 0.5001 * step


@given(st.sampled_from(list(codec.SETPOINTS)), st.floats(-300, 300))
def test_a_setpoint_arrives_within_half_a_step(mode, value):
    steps = codec.SETPOINTS[mode][2]
    wanted = min(max(math.radians(value), -cycle.LARGEST_TURN), cycle.LARGEST_TURN) if mode == "position" else value
    got = struct.unpack(">i", setpoint(mode, **{mode: wanted}).data)[0] / steps
    assert abs(got - (math.degrees(wanted) % 360.0 if mode == "position" else value)) <= 0.5001 / steps


@pytest.mark.parametrize("mask", [0, 1, codec.VALUES ^ 2, 0xFFFFFFFF])
def test_values_with_another_mask_are_no_measurement(mask):
    answer = encoded(temperature=1, current=1, erpm=1, fault=1, angle=1)
    assert state(answer) is not None
    assert state(answer[:1] + mask.to_bytes(4, "big") + answer[5:]) is None
