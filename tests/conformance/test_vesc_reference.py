"""The package `pyvesc` of other authors as a client of emulated VESCs, over a real pseudo terminal.

It only frames and reads messages, so that the drives run in the time of the test. It has the layout of an old
firmware for measured values; today's are in `tests/drivers/vesc/test_values.py`.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from .served import Served

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its syntax, where it is compiled when it is imported
    import pyvesc
    from pyvesc.messages import getters, setters

CONSTANT, POLE_PAIRS, RESISTANCE, INERTIA, SUPPLY = 0.1, 7, 0.5, 1e-3, 24.0
ERPM = 60 * POLE_PAIRS / (2 * math.pi)  # rpm of the field per rad/s
FORWARD = 34  # COMM_FORWARD_CAN


class Line(Served):
    """A client of a drive (id 1) and of one behind it (2), whose time passes in `after` alone."""

    def __init__(self, folder: Path, windings: bool) -> None:
        wired = {"pole_pairs": POLE_PAIRS, "torque_constant": CONSTANT}
        motor = {"type": "dc_motor", "torque_constant": CONSTANT, "ratio": 1, "rotor_inertia": 0}
        motor |= {"resistance": RESISTANCE, "inductance": 1e-4}
        joint: dict[str, Any] = {"limits": {"velocity": 100, "effort": 1}} | ({"actuator": motor} if windings else {})
        driver = {"type": "vesc", "port": {"port": str(folder / "vesc"), "baudrate": 115200}}
        both = [{"id": 1, **wired}, {"id": 2, "forward": True, **wired}]
        super().__init__(folder, driver, both, INERTIA, in_thread=False, each=0, **joint)

    def __enter__(self) -> Line:
        super().__enter__()
        self.port = serial.Serial(self.connection.link.name, 115200, timeout=30.0)
        return self

    def __exit__(self, *error: object) -> None:
        self.port.close()
        super().__exit__(*error)

    def after(self, seconds: float, *messages: Any, behind: bool = False) -> Any:
        """The first motor after this time, during which the messages are sent."""
        self.run(seconds, lambda: [self.send(pyvesc.encode(message), behind) for message in messages])
        return self.motors[0]

    def send(self, packet: bytes, behind: bool = False) -> None:
        """To the drive with the port, or to the one behind it."""
        if behind:
            content, _ = pyvesc.packet.codec.unframe(packet)
            packet = pyvesc.packet.codec.frame(bytes([FORWARD, 2]) + content)
        self.port.write(packet)
        self.pump(len(packet))

    def ask(self, behind: bool = False) -> Any:
        """The measured values as the client reads them."""
        self.send(pyvesc.encode_request(getters.GetValues), behind)
        received, message = b"", None
        while message is None:
            byte = self.port.read(1)
            assert byte, "no answer"
            received += byte
            message, _ = pyvesc.decode(received)
        return message


@pytest.fixture(params=[True, False], ids=["windings", "ideal"])
def line(request, tmp_path) -> Iterator[Line]:
    with Line(tmp_path, request.param) as line:
        line.after(0.2)  # while it boots
        yield line


def test_measured_values_and_a_fault_are_read(line):
    line.motors[1].temperature = 41.0
    mine, other = line.ask(), line.ask(behind=True)
    # drive and motor are where the old firmware had the temperatures of two transistors
    assert (mine.temp_mos1, other.temp_mos1, other.temp_mos2) == (25.0, 41.0, 41.0)
    assert mine.mc_fault_code == b"\0"
    line.motors[0].fault_cause = "undervoltage"
    line.after(0.01)
    line.send(pyvesc.packet.codec.frame(b"\x32" + (1 << 15).to_bytes(4, "big")))  # GET_VALUES_SELECTIVE: the fault
    content, _ = pyvesc.packet.codec.unframe(line.port.read(11))
    assert content == b"\x32" + (1 << 15).to_bytes(4, "big") + b"\x02"


def test_a_current_is_a_torque(line):
    motor = line.after(0.1, setters.SetCurrent(2000))
    assert motor.requested == pytest.approx(2.0 * CONSTANT)
    assert motor.velocity == pytest.approx(0.1 * 2.0 * CONSTANT / INERTIA, rel=0.05)
    line.after(0.1, setters.SetCurrent(-3000), behind=True)
    assert line.motors[1].requested == pytest.approx(-3.0 * CONSTANT) and not motor.enabled


def test_a_speed_is_held_and_a_position_is_reached(line):
    assert line.after(1.0, setters.SetRPM(round(20.0 * ERPM))).velocity == pytest.approx(20.0, rel=0.02)
    assert line.after(1.0, setters.SetPosition(90.0)).position % math.tau == pytest.approx(math.pi / 2, rel=0.02)


@pytest.mark.parametrize("duty", [0.4, -0.2])
def test_a_duty_cycle_is_a_voltage(line, duty):
    """Without load the induced voltage equals the duty cycle's between two phases: √3 · 2/3 K ω = d V."""
    speed = duty * SUPPLY * 1.5 / math.sqrt(3) / CONSTANT
    assert line.after(1.0, setters.SetDutyCycle(round(1e5 * duty))).velocity == pytest.approx(speed, rel=0.02)
    assert abs(line.after(1.0, setters.SetDutyCycle(0)).velocity) < 0.02 * abs(speed)  # shortened phases


@pytest.mark.parametrize("direction", [1, -1])
def test_a_brake_current_opposes_the_motion_and_ends_with_it(line, direction):
    before = direction * line.after(0.2, setters.SetCurrent(direction * 2000)).velocity
    rows = []
    for _ in range(50):
        motor = line.after(0.01, setters.SetCurrentBrake(1000))
        rows.append((direction * motor.velocity, direction * motor.requested))
    speeds, efforts = zip(*rows, strict=True)
    assert efforts[0] == pytest.approx(-1.0 * CONSTANT)
    assert speeds[0] == pytest.approx(before - 0.01 * 1.0 * CONSTANT / INERTIA, rel=0.05)
    assert all(-1.001 * CONSTANT <= effort <= 1e-9 for effort in efforts)
    assert all(later <= sooner + 1e-9 for sooner, later in itertools.pairwise(speeds))
    assert -1e-9 <= speeds[-1] < 0.01 * before


def test_without_messages_it_is_released(line):
    for message in (setters.SetDutyCycle(20000), setters.SetCurrentBrake(1000), setters.SetCurrent(1000)):
        assert line.after(0.05, message).enabled
        motor = line.after(0.15)
        assert not motor.enabled and motor.requested == 0.0


def test_unknown_commands_are_shown_once(line):
    for _ in range(3):
        line.send(pyvesc.packet.codec.frame(b"\x60"))  # of a battery
        line.after(0.001)
    assert line.shown == ["vesc: a request that the emulation does not know: VESC 1: command 96"]
