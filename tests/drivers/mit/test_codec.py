"""Frames of the Mini Cheetah protocol: from manuals and another client, and any bytes."""

import math
from types import SimpleNamespace

import pytest
from damiao_motor import MOTOR_TYPE_PRESETS, DaMiaoMotor
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.common.cycle import FAULTY, STATE_TEMPERATURE
from cosim.plugins.drivers.mit import codec, cycle
from cosim.plugins.drivers.mit.codec import CanFrame, DriveState, Ranges
from cosim.plugins.drivers.mit.models import MODELS
from tests.kit.cycles import commanded, numbers_in, state_in

RANGES = Ranges(12.5, 30.0, 10.0, 500.0, 5.0)
fractions = st.floats(-1.0, 1.0)
shares = st.floats(0.0, 1.0)

MINI, DAMIAO = cycle.CycledNode(1, 0x11, False, 8), cycle.CycledNode(1, 0x11, True, 8)


def settings(kp: float = 0.0, kd: float = 0.0, damiao: bool = False) -> list[float]:
    return [*RANGES, math.inf, kp, kd, float(damiao)]


def command(position: float, velocity: float, kp: float, kd: float, effort: float) -> bytes:
    """As the loops of a drive get it."""
    reception, transmission = cycle.reception([MINI]), cycle.transmission("position", [MINI])
    wanted = {"position": position, "velocity": velocity, "effort": effort}
    (data,) = commanded(reception, transmission, settings(kp, kd), **wanted)
    return data


def state(data: bytes, drive: cycle.CycledNode) -> list[float]:
    """Position, velocity, effort, temperature, not 0 for a fault."""
    found = state_in(cycle.reception([drive]), settings(damiao=drive.damiao), data)
    assert found is not None
    return found


def test_frames_of_the_manuals():
    """The zero command as clients of AK and Damiao drives send it, which round down: 7FFF, 7FF, 0, 0, 7FF."""
    assert command(0.0, 0.0, 0.0, 0.0, 0.0).hex() == "7fff7ff0000007ff"
    # all bits of a field by the formula of the AK manual, section 5.3: (x - min) · (2ⁿ - 1) / (max - min)
    assert command(12.5, 30.0, 500.0, 5.0, 10.0).hex() == "f" * 16
    assert command(-99.0, -99.0, -1.0, -1.0, -99.0).hex() == "0" * 16
    assert command(0.0, 0.0, 500.0, 0.0, 10.0).hex() == "7fff7fffff000fff"
    # AK manual, section 5.3, and the manual of Damiao drives: enter and exit motor mode, clear the error
    assert codec.special(1, codec.ENTER) == CanFrame(1, bytes.fromhex("fffffffffffffffc"))
    assert codec.special(1, codec.EXIT).data[7] == 0xFD
    assert codec.special(1, codec.CLEAR).data[7] == 0xFB


def test_registers():
    """Manual of Damiao drives: 7FFh, id, 33h to read and 55h to write, register; CCh requests the state."""
    assert codec.register(0x7FF, 0x102, codec.READ, 21) == CanFrame(0x7FF, bytes.fromhex("0201331500000000"))
    assert codec.register(0x7FF, 1, codec.REFRESH).data == bytes.fromhex("0100cc0000000000")
    written = codec.register(0x7FF, 1, codec.WRITE, codec.TIMEOUT, 2000)  # 100 ms
    assert written.data == bytes.fromhex("01005509d0070000")
    assert codec.decode_register(written) == (1, codec.WRITE, 9, 2000)
    assert codec.decode_register(codec.register(0, 1, codec.READ, 21, 12.5)) == (1, codec.READ, 21, 12.5)


def test_answers_of_both_kinds():
    assert state(bytes.fromhex("017fff7ff7ff4102"), MINI)[STATE_TEMPERATURE:] == [25, 1]
    short = state(bytes.fromhex("017fff7ff7ff"), MINI._replace(size=6))
    assert math.isnan(short[STATE_TEMPERATURE]) and short[FAULTY] == 0
    data = bytes.fromhex("d1ffffffffff1e28")
    position, velocity, effort, temperature, faulty = state(data, DAMIAO)
    numbers = numbers_in(cycle.reception([DAMIAO]), data)
    assert numbers is not None and (temperature, faulty, numbers[cycle.STATE]) == (40, 1, 13)
    assert position == pytest.approx(12.5, abs=2e-4)
    assert (velocity, effort) == (pytest.approx(30.0, abs=8e-3), pytest.approx(10.0, abs=3e-3))
    assert state(bytes.fromhex("11ffffffffff1e28"), DAMIAO)[FAULTY] == 0


@given(fractions, fractions, shares, shares, fractions)
def test_a_command_arrives_within_half_a_step(position, velocity, kp, kd, effort):
    wanted = position * 12.5, velocity * 30.0, kp * 500.0, kd * 5.0, effort * 10.0
    frame = CanFrame(7, command(*wanted))
    steps = 25 / 65535, 60 / 4095, 500 / 4095, 5 / 4095, 20 / 4095
    for value, sent, step in zip(codec.decode_command(frame, RANGES), wanted, steps, strict=True):
        assert abs(value - sent) <= 0.5 * step * (1 + 1e-9)


@given(fractions, fractions, fractions, st.booleans())
def test_a_state_arrives_within_half_a_step(position, velocity, effort, damiao):
    own = DriveState(position * 12.5, velocity * 30.0, effort * 10.0, 0.0, 0)
    frame = codec.state(0x11, 0x11 if damiao else 0x01, RANGES, own, b"\x19\x19")
    found = state(frame.data, DAMIAO if damiao else MINI)
    for value, sent, step in zip(found[:3], own[:3], (25 / 65535, 60 / 4095, 20 / 4095), strict=True):
        assert abs(value - sent) <= 0.5 * step * (1 + 1e-9)


# --- another client ---------------------------------------------------------------------------------


def motor(model: str = "4310") -> DaMiaoMotor:
    return DaMiaoMotor(1, 0x11, SimpleNamespace(), motor_type=model)


def test_the_ranges_of_damiao_models_are_those_of_another_client():
    """damiao-motor has the manufacturer's table."""
    own = {name.removeprefix("DM"): value for name, value in MODELS.items() if name.startswith("DM")}
    theirs = {name: tuple(row[f"{key}_max"] for key in "pvt") for name, row in MOTOR_TYPE_PRESETS.items()}
    shared = own.keys() & theirs.keys()
    assert len(shared) >= 8
    assert {name: own[name] for name in shared} == {name: theirs[name] for name in shared}


@given(fractions, fractions, shares, shares, fractions)
def test_commands_are_those_of_another_client_but_for_its_rounding_down(position, velocity, kp, kd, effort):
    wanted = position * 12.5, velocity * 30.0, kp * 500.0, kd * 5.0, effort * 10.0
    theirs = motor().encode_cmd_msg(wanted[0], wanted[1], wanted[4], wanted[2], wanted[3])
    ours = int.from_bytes(command(*wanted), "big")
    word, fields = int.from_bytes(theirs, "big"), ((48, 0xFFFF), (36, 0xFFF), (24, 0xFFF), (12, 0xFFF), (0, 0xFFF))
    for shift, mask in fields:
        assert (ours >> shift & mask) - (word >> shift & mask) in (0, 1)


@given(st.binary(min_size=8, max_size=8))
def test_states_are_decoded_as_by_another_client(data):
    """It takes the lower end of each step; we take the middle."""
    theirs = motor().decode_sensor_feedback(data)
    drive = DAMIAO._replace(id=data[0] & 0xF)
    ours, numbers = state(data, drive), numbers_in(cycle.reception([drive]), data)
    assert numbers is not None and numbers[cycle.STATE] == theirs["status_code"]
    assert ours[STATE_TEMPERATURE] == max(theirs["t_mos"], theirs["t_rotor"])
    for name, value, step in zip(("pos", "vel", "torq"), ours[:3], (25 / 65535, 60 / 4095, 20 / 4095), strict=True):
        assert value - theirs[name] == pytest.approx(0.5 * step, rel=1e-9)
