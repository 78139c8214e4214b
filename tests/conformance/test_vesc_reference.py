"""The package `pyvesc` of other authors as a client of emulated VESCs, over a real pseudo terminal.

It only frames and reads messages, so that the time of the drives is that of the test. It has the layout of an old
firmware for measured values; those of today's are in `tests/drivers/vesc/test_values.py`.
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

from cosim.drivers.transport import now
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.clock import MS, FakeClock

from .families import write_rig

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its syntax, where it is compiled when it is imported
    import pyvesc
    from pyvesc.messages import getters, setters

CONSTANT, POLE_PAIRS, RESISTANCE, INERTIA, SUPPLY = 0.1, 7, 0.5, 1e-3, 24.0
ERPM = 60 * POLE_PAIRS / (2 * math.pi)  # rpm of the field per rad/s
FORWARD = 34  # COMM_FORWARD_CAN


class Line:
    """A client of a drive (id 1) and of one behind it (2), whose time passes in `run` alone."""

    def __init__(self, folder: Path, windings: bool) -> None:
        port = str(folder / "vesc")
        wired = {"pole_pairs": POLE_PAIRS, "torque_constant": CONSTANT}
        motor = {"type": "dc_motor", "torque_constant": CONSTANT, "ratio": 1, "rotor_inertia": 0}
        motor |= {"resistance": RESISTANCE, "inductance": 1e-4}
        joint: dict[str, Any] = {"limits": {"velocity": 100, "effort": 1}} | ({"actuator": motor} if windings else {})
        data = {
            "mechanism": {
                "gravity": [0, 0, 0],
                "bodies": [{"name": name, "mass": 0.1, "inertia": [INERTIA] * 3} for name in "ab"],
            },
            "joints": {"a": joint, "b": joint},
            "drivers": [
                {
                    "type": "vesc",
                    "port": {"port": port, "baudrate": 115200},
                    "joints": {"a": {"id": 1, **wired}, "b": {"id": 2, "forward": True, **wired}},
                }
            ],
            "emulator": {"voltage": SUPPLY},
            "schedule": {"step": "1 ms"},
        }
        self.shown: list[str] = []
        self.clock = FakeClock()
        spec = read_rig(write_rig(folder / "rig.yaml", data))
        self.emulation = emulation_of(spec, clock=self.clock, report=self.shown.append)
        (self.connection,) = self.emulation.connections
        self.motors = self.emulation.motors.motors
        self.emulation.open()
        self.port = serial.Serial(port, 115200, timeout=2.0)

    def close(self) -> None:
        self.port.close()
        self.emulation.close()

    def run(self, seconds: float, *messages: Any, behind: bool = False) -> None:
        """Time passes; the messages are sent every 20 ms."""
        for k in range(round(1e3 * seconds)):
            if k % 20 == 0:
                for message in messages:
                    self.send(pyvesc.encode(message), behind)
            self.emulation.advance_once()
            self.clock.time = self.emulation.due_ns

    def send(self, packet: bytes, behind: bool = False) -> None:
        """To the drive with the port, or to the one behind it."""
        if behind:
            content, _ = pyvesc.packet.codec.unframe(packet)
            packet = pyvesc.packet.codec.frame(bytes([FORWARD, 2]) + content)
        self.port.write(packet)
        taken = 0
        while taken < len(packet):
            item = self.connection.link.receive(now() + 2000 * MS)
            assert item is not None
            taken += len(item)
            self.connection.take(item, self.clock.time)

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
    line = Line(tmp_path, request.param)
    line.run(0.2)  # while it boots
    yield line
    line.close()


def test_measured_values_are_read(line):
    line.motors[1].temperature = 41.0
    mine, other = line.ask(), line.ask(behind=True)
    # the places where the old firmware had the temperatures of two transistors are those of drive and motor
    assert (mine.temp_mos1, other.temp_mos1, other.temp_mos2) == (25.0, 41.0, 41.0)
    assert mine.mc_fault_code == b"\0"


def test_a_current_is_a_torque(line):
    line.run(0.1, setters.SetCurrent(2000))
    assert line.motors[0].requested == pytest.approx(2.0 * CONSTANT)
    assert line.motors[0].velocity == pytest.approx(0.1 * 2.0 * CONSTANT / INERTIA, rel=0.05)
    line.run(0.1, setters.SetCurrent(-3000), behind=True)
    assert line.motors[1].requested == pytest.approx(-3.0 * CONSTANT) and not line.motors[0].enabled


def test_a_speed_is_held(line):
    line.run(1.0, setters.SetRPM(round(20.0 * ERPM)))
    assert line.motors[0].velocity == pytest.approx(20.0, rel=0.02)


def test_a_position_is_reached(line):
    line.run(1.0, setters.SetPosition(90.0))
    assert line.motors[0].position == pytest.approx(math.pi / 2, rel=0.02)


@pytest.mark.parametrize("duty", [0.4, -0.2])
def test_a_duty_cycle_is_a_voltage(line, duty):
    """Without load the induced voltage is that of the duty cycle between two phases: √3 · 2/3 K ω = d V."""
    line.run(1.0, setters.SetDutyCycle(round(1e5 * duty)))
    speed = duty * SUPPLY * 1.5 / math.sqrt(3) / CONSTANT
    assert line.motors[0].velocity == pytest.approx(speed, rel=0.02)
    line.run(1.0, setters.SetDutyCycle(0))  # shortened phases
    assert abs(line.motors[0].velocity) < 0.02 * abs(speed)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_brake_current_opposes_the_motion_and_ends_with_it(line, direction):
    line.run(0.2, setters.SetCurrent(direction * 2000))
    before, speeds, efforts = direction * line.motors[0].velocity, [], []
    for _ in range(50):
        line.run(0.01, setters.SetCurrentBrake(1000))
        speeds.append(direction * line.motors[0].velocity)
        efforts.append(direction * line.motors[0].requested)
    assert efforts[0] == pytest.approx(-1.0 * CONSTANT)
    assert speeds[0] == pytest.approx(before - 0.01 * 1.0 * CONSTANT / INERTIA, rel=0.05)
    assert all(-1.001 * CONSTANT <= effort <= 1e-9 for effort in efforts)
    assert all(later <= sooner + 1e-9 for sooner, later in itertools.pairwise(speeds))
    assert -1e-9 <= speeds[-1] < 0.01 * before


def test_without_messages_it_is_released(line):
    for message in (setters.SetDutyCycle(20000), setters.SetCurrentBrake(1000), setters.SetCurrent(1000)):
        line.run(0.05, message)
        assert line.motors[0].enabled
        line.run(0.15)
        assert not line.motors[0].enabled and line.motors[0].requested == 0.0


def test_a_fault_is_read(line):
    line.motors[0].fault_cause = "undervoltage"
    line.run(0.01)
    line.send(pyvesc.packet.codec.frame(b"\x32" + (1 << 15).to_bytes(4, "big")))  # GET_VALUES_SELECTIVE: the fault
    content, _ = pyvesc.packet.codec.unframe(line.port.read(11))
    assert content == b"\x32" + (1 << 15).to_bytes(4, "big") + b"\x02"


def test_unknown_commands_are_shown_once(line):
    for _ in range(3):
        line.send(pyvesc.packet.codec.frame(b"\x60"))  # of a battery
        line.run(0.001)
    assert line.shown == ["vesc: a request that the emulation does not know: VESC 1: command 96"]
