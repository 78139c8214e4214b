"""Emulated moteus drives: registers, frames, console; bytes of any content."""

import math
import struct
from collections.abc import Callable
from typing import Any

import pytest

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.moteus import registers as reg
from cosim.plugins.drivers.moteus.codec import (
    CLIENT_DATA,
    FLOAT,
    INT8,
    INT16,
    INT32,
    QUERY,
    Failure,
    Reply,
    Tunnel,
    pad,
    read,
    tunnel,
    write,
)
from cosim.plugins.drivers.moteus.device.servo import Servo
from cosim.plugins.drivers.moteus.registers import Mode
from cosim.plugins.drivers.transport import CanFrame
from tests.drivers.moteus.emulator_bench import ON, Bench
from tests.kit.clock import MS


def test_identity(device: Bench) -> None:
    assert device.ask(read(reg.MODEL, INT32, 3)) == [Reply(reg.MODEL, INT32, (0, 0x010100, 5))]
    assert device.ask(read(reg.SERIAL_NUMBER, INT32, 3))[0].values[0] & 0xFFFF == 1
    (uuid,) = device.ask(read(reg.UUID, INT32, 4))
    assert struct.pack("<4i", *uuid.values) == device.servo.uuid != device.emulator.servos[1].uuid
    assert device.ask(read(reg.UUID_MASK_CAPABLE, INT8)) == [Reply(reg.UUID_MASK_CAPABLE, INT8, (1,))]
    assert device.ask(read(reg.MODEL, INT8)) == [Failure(reg.MODEL, 1, True)]


def test_measured_values(device: Bench) -> None:
    device.rotor.position, device.rotor.velocity = 0.25 * TURN, -2.0 * TURN
    found = device.ask(read(reg.MODE, INT16, 4) + read(reg.VOLTAGE, INT8, 3))
    assert found == [Reply(0, INT16, (0, 2500, -8000, 0)), Reply(reg.VOLTAGE, INT8, (48, 25, 0))]
    device.run(7)
    assert device.get(reg.MILLISECONDS, INT32) == 7 and device.get(reg.HOME_STATE, INT8) == 2


def test_every_documented_register_answers_or_refuses(device: Bench) -> None:
    readable = [r for r in range(0x160) if isinstance(device.ask(read(r, INT32))[0], Reply)]
    gaps = {0x008, 0x009, 0x013, 0x017, 0x01F, 0x02E, 0x02F, 0x035, 0x03E, 0x049, 0x056, 0x05A, 0x065, 0x06D}
    assert gaps.isdisjoint(readable) and set(range(8)) <= set(readable) and set(range(0x020, 0x02E)) <= set(readable)
    assert {0x110, 0x130, 0x131, 0x132, 0x133, 0x154}.isdisjoint(readable)
    for register in (reg.POSITION, reg.FAULT, reg.MODEL, reg.UUID, reg.MULTIPLEX_ID):
        assert device.ask(write(register, INT8, [1])) == [Failure(register, 2, False)]
    assert device.ask(write(0x300, INT8, [1])) == [Failure(0x300, 1, False)]


def test_commands_read_back(device: Bench) -> None:
    device.tell(write(reg.MODE, INT8, [10]) + write(0x020, INT16, [1000, -(1 << 15), 150]) + write(0x027, INT8, [20]))
    assert device.get(0x020) == pytest.approx(0.1) and math.isnan(device.get(0x021))
    assert device.get(0x042) == pytest.approx(1.5) and device.get(0x046) == pytest.approx(0.2)
    assert device.get(0x021, INT32) == -(1 << 31)


def test_a_command_without_a_mode_is_none(device: Bench) -> None:
    device.start(write(0x020, FLOAT, [math.nan, 0.0, 0.1, 0.0, 0.0]))
    device.tell(write(0x022, FLOAT, [1.9]))
    device.run(5)
    assert device.rotor.effort == pytest.approx(0.1)


def test_setting_the_output(device: Bench) -> None:
    device.rotor.position = 0.3 * TURN
    device.start(write(0x020, FLOAT, [math.nan]))
    device.tell(write(reg.SET_EXACT, FLOAT, [5.0]))
    device.run(5)
    assert device.get(reg.POSITION) == pytest.approx(5.0, abs=1e-6) and abs(device.rotor.effort) < 1e-6
    device.tell(ON + write(0x020, FLOAT, [5.0]) + write(0x028, INT8, [-1, -1]))
    device.emulator.process(device.t_ns)
    assert abs(device.rotor.effort) < 1e-6 and device.get(0x038) == pytest.approx(5.0)
    device.tell(write(reg.REQUIRE_REINDEX, INT8, [1]))
    assert device.get(reg.POSITION) == pytest.approx(0.3, abs=1e-6) and device.get(reg.HOME_STATE, INT8) == 0
    device.tell(write(reg.SET_NEAREST, FLOAT, [2.0]))
    assert device.get(reg.POSITION) == pytest.approx(2.3, abs=1e-6) and device.get(reg.HOME_STATE, INT8) == 2
    device.tell(write(reg.SET_EXACT, FLOAT, [math.nan]))
    assert device.get(reg.POSITION) == pytest.approx(2.3, abs=1e-6)


def test_gpio_keeps_what_is_written(device: Bench) -> None:
    device.tell(write(0x05C, INT8, [3, 5]))
    assert device.ask(read(0x05C, INT8, 2)) == [Reply(0x05C, INT8, (3, 5))]
    assert device.ask(read(reg.AUX1_GPIO_STATUS, INT8, 2)) == [Reply(reg.AUX1_GPIO_STATUS, INT8, (0, 0))]


def test_addressed_drives_answer(device: Bench) -> None:
    def ids(id: int, **more: Any) -> list[int]:
        return [f.id for f in device.emulator.handle(CanFrame(id, QUERY, id > 0x7FF, True, **more), 0)]

    assert ids(0x8001) == [0x100] and ids(0x8501) == [0x105] and ids(0x807F) == [0x100, 0x200]
    assert ids(0x0001) == ids(0x8003) == ids(0x8081) == ids(0x1_8001) == ids(0x8001, remote=True) == []
    device.servo.config["can.prefix"] = 1
    assert ids(0x1_8001) == [0x1_0100] and ids(0x8001) == []


def test_answers_are_of_the_kind_that_asked(device: Bench) -> None:
    for fd, switched, data in ((False, False, b"\x11\x00"), (True, True, b"\x11\x00"), (True, False, QUERY)):
        (answer,) = device.emulator.handle(CanFrame(0x8001, data, True, fd, switched), 0)
        assert (answer.fd, answer.switched, answer.extended) == (fd, switched, False)
    (answer,) = device.emulator.handle(CanFrame(0x8001, b"\x50", True), 0)
    assert answer.data == b""


def test_a_frame_for_another_uuid_is_not_obeyed(device: Bench) -> None:
    masks = struct.unpack("<4i", device.emulator.servos[1].uuid)
    data = write(reg.UUID_MASK, INT32, masks) + write(reg.MODE, INT8, [Mode.BRAKE]) + read(reg.MODE, INT8)
    answers = device.emulator.handle(CanFrame(0x807F, pad(data), True, True), 0)
    assert [frame.id for frame in answers] == [0x200]
    assert [servo.mode for servo in device.emulator.servos] == [Mode.STOPPED, Mode.ENABLING]


def test_an_answer_has_64_bytes(device: Bench) -> None:
    (eight,) = device.ask(read(0x000, FLOAT, 8))
    assert device.ask(read(0x000, FLOAT, 8) + read(0x020, FLOAT, 14)) == [eight, Failure(0x020, 2, True)]
    found = device.ask(b"".join(read(k, FLOAT) for k in range(1, 16) if k not in (8, 9)))
    assert len(found) == 7, "no further subframe when less than 23 bytes are left"
    assert device.ask(read(0x007, INT8, 3) + read(0x000, INT8)) == [Failure(0x008, 1, True)]


@pytest.fixture
def talk(device: Bench, said: Any) -> Callable[..., None]:
    """talk(*lines): what the console answers to each."""
    return lambda *lines: said(f"{line}: {' | '.join(device.say(line).splitlines())}" for line in lines)


def test_configuration(device: Bench, talk: Callable[..., None]) -> None:
    set_kp = "conf set servo.pid_position.kp 2.5"
    talk(*(f"conf get {name}" for name in ("servo.pid_position.kp", "id.id", "servopos.position_min")))
    talk(set_kp, "conf get servo.pid_position.kp", "conf enumerate id")
    talk("conf get nonsense.x", "conf get servo.nonsense", "conf set servo.nonsense 1", "conf set servo.timeout_mode x")
    talk("conf fly", "fly")
    everything = device.say("conf enumerate").split("\r\n")
    assert everything[-2:] == ["OK", ""] and len(everything) == len(device.servo.config) + 2
    assert "servo" in device.say("conf list").split()
    talk("conf load", "conf get servo.pid_position.kp")
    device.say("conf set servo.max_voltage 1")
    device.say("conf default")
    assert device.servo.config == device.servo.saved
    device.say("conf set motor_position.output.sign -1")
    device.start()
    device.say("conf set motor_position.output.sign 1")
    assert device.servo.fault == 41


def test_commands_on_the_console(device: Bench, talk: Callable[..., None]) -> None:
    assert device.say("d pos nan 0 1.5 p0 d0 f0.25") == "OK\r\n"
    device.run(200)
    assert device.servo.mode == Mode.POSITION and device.rotor.effort == pytest.approx(0.25)
    assert device.say("d stop") == "OK\r\n" and device.servo.mode == Mode.STOPPED and device.rotor.effort == 0.0
    talk("d exact 3", "d nearest x", "d within -1 1", "d pos 0 0 x", "d pos 0 0 1 z3", "d pos 0 0 1 px", "d fly")
    for line, mode in (("d brake", 15), ("d zero nan 0 nan", 12), ("d within -1 1 1", 13), ("d dq 0 1", 9)):
        device.say(line)
        device.run(15)
        assert device.servo.mode == mode


def test_telemetry(device: Bench, talk: Callable[..., None]) -> None:
    talk("tel list", "tel get nothing")
    assert device.say("tel get git").startswith("emit git\r\n\x1d\x00\x00\x00")
    talk("tel fmt servo_stats 1", "tel text", "tel stop")
    assert "servo_stats.bus_V 24.000000\r\n" in device.say("tel get servo_stats")
    assert "firmware.serial_number.2 " in device.say("tel get firmware")


def test_counted_packets_are_held_until_they_are_acknowledged(device: Bench) -> None:
    def flow(acknowledged: int, limit: int = 10) -> tuple[int, bytes]:
        (answer,) = device.ask(bytes((0x44, 1, acknowledged, limit)))
        assert isinstance(answer, Tunnel)
        return answer.packet, answer.data

    assert flow(0) == (1, b"")
    device.tell(tunnel(CLIENT_DATA, 1, b"conf enumerate id\n"))
    assert flow(1) == (2, b"id.id 1\r\nO") == flow(1), "an answer that was lost comes again"
    assert flow(2) == (3, b"K\r\n") and flow(3) == (4, b"")


def test_other_channels(device: Bench) -> None:
    assert device.ask(tunnel(CLIENT_DATA, 2, b"hello")) == [Tunnel(0x41, 2, b"", 0, 0)]
    assert device.ask(tunnel(CLIENT_DATA, 9, b"hello") + QUERY) == []


def test_state_is_plain(device: Bench) -> None:
    """A copy of a drive's attributes is the whole drive."""
    device.start(write(0x020, FLOAT, [0.3, 0.1]))
    saved = {name: value for name, value in vars(device.servo).items() if name != "motor"}
    saved = {name: dict(value) if isinstance(value, dict) else value for name, value in saved.items()}
    twin = Servo(1, Rotor())
    twin.motor.position, twin.motor.velocity = device.rotor.position, device.rotor.velocity
    vars(twin).update(saved)
    for servo in (device.servo, twin):
        servo.process(device.t_ns + MS)
    assert twin.motor.effort == device.rotor.effort != 0.0
