"""Emulated moteus drives: registers, frames, console; bytes of any content."""

import math
import random
import struct
from typing import Any

import pytest

from cosim.drivers.common.motor import Rotor
from cosim.drivers.moteus import registers as reg
from cosim.drivers.moteus.codec import (
    CLIENT_DATA,
    FLOAT,
    INT8,
    INT16,
    INT32,
    QUERY,
    STOP,
    Failure,
    Reply,
    Tunnel,
    command_tail,
    encode_command,
    pad,
    poll,
    read,
    tunnel,
    write,
)
from cosim.drivers.moteus.device.servo import Servo
from cosim.drivers.moteus.registers import Mode
from cosim.drivers.transport import CanFrame
from cosim.units import TURN
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
    assert device.ask(read(0x000, FLOAT, 8) + read(0x020, FLOAT, 14)) == [
        device.ask(read(0x000, FLOAT, 8))[0],
        Failure(0x020, 2, True),
    ]
    found = device.ask(b"".join(read(k, FLOAT) for k in range(1, 16) if k not in (8, 9)))
    assert len(found) == 7, "no further subframe when less than 23 bytes are left"
    assert device.ask(read(0x007, INT8, 3) + read(0x000, INT8)) == [Failure(0x008, 1, True)]


def test_configuration(device: Bench) -> None:
    assert device.say("conf get servo.pid_position.kp") == "4.000000\r\n"
    assert device.say("conf get id.id") == "1\r\n"
    assert device.say("conf get servopos.position_min") == "nan\r\n"
    assert device.say("conf set servo.pid_position.kp 2.5") == "OK\r\n"
    assert device.say("conf get servo.pid_position.kp") == "2.500000\r\n"
    assert device.say("conf get nonsense.x") == "ERR unknown group\r\n"
    assert device.say("conf get servo.nonsense") == "ERR error reading\r\n"
    assert device.say("conf set servo.nonsense 1") == "ERR error setting\r\n"
    assert device.say("conf set servo.timeout_mode x") == "ERR error setting\r\n"
    assert device.say("conf fly") == "ERR unknown subcommand\r\n" and device.say("fly") == "ERR unknown command\r\n"
    assert device.say("conf enumerate id") == "id.id 1\r\nOK\r\n"
    everything = device.say("conf enumerate").split("\r\n")
    assert everything[-2:] == ["OK", ""] and len(everything) == len(device.servo.config) + 2
    assert "servo" in device.say("conf list").split()
    device.say("conf load")
    assert device.say("conf get servo.pid_position.kp") == "4.000000\r\n"
    device.say("conf set servo.max_voltage 1")
    device.say("conf default")
    assert device.servo.config == device.servo.saved
    device.say("conf set motor_position.output.sign -1")
    device.start()
    device.say("conf set motor_position.output.sign 1")
    assert device.servo.fault == 41


def test_commands_on_the_console(device: Bench) -> None:
    assert device.say("d pos nan 0 1.5 p0 d0 f0.25") == "OK\r\n"
    device.run(200)
    assert device.servo.mode == Mode.POSITION and device.rotor.effort == pytest.approx(0.25)
    assert device.say("d stop") == "OK\r\n" and device.servo.mode == Mode.STOPPED and device.rotor.effort == 0.0
    assert device.say("d exact 3") == "OK\r\n" and device.say("d nearest x") == "ERR missing index value\r\n"
    assert device.say("d within -1 1") == "ERR missing value\r\n" == device.say("d pos 0 0 x")
    assert device.say("d pos 0 0 1 z3") == "ERR unknown option\r\n" == device.say("d pos 0 0 1 px")
    assert device.say("d fly") == "ERR unknown command\r\n"
    for line, mode in (("d brake", 15), ("d zero nan 0 nan", 12), ("d within -1 1 1", 13), ("d dq 0 1", 9)):
        device.say(line)
        device.run(15)
        assert device.servo.mode == mode


def test_telemetry(device: Bench) -> None:
    assert device.say("tel list") == "firmware\r\ngit\r\nservo_stats\r\nmotor_position\r\nOK\r\n"
    assert device.say("tel get nothing") == "ERR unknown name\r\n"
    assert device.say("tel get git").startswith("emit git\r\n\x1d\x00\x00\x00")
    assert device.say("tel fmt servo_stats 1") == "OK\r\n"
    assert "servo_stats.bus_V 24.000000\r\n" in device.say("tel get servo_stats")
    assert device.say("tel text") == device.say("tel stop") == "OK\r\n"
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


def _mutated(source: random.Random, seeds: list[bytes]) -> bytes:
    data = bytearray(source.choice(seeds))
    for _ in range(source.randrange(4)):
        at = source.randrange(len(data) + 1)
        match source.randrange(3):
            case 0:
                data[at:at] = source.randbytes(source.randrange(4))
            case 1:
                del data[at : at + source.randrange(1, 5)]
            case _:
                data[at : at + 1] = source.randbytes(1)
    return bytes(data[:64])


def test_any_frames_at_all(device: Bench) -> None:
    source = random.Random(1)
    texts = (
        b"conf get servo.pid_position.kp\n",
        b"d pos nan 0 1 f0.1\n",
        b"tel get servo_stats\n",
        b"conf enumerate\n",
    )
    seeds = [encode_command(command_tail(0.1, False), 0.1, 0.2, 0.3, 1.0, 1.0, 1.0), STOP, QUERY]
    seeds += [tunnel(CLIENT_DATA, 1, text) for text in texts] + [poll(1, 48), bytes((0x44, 1, 0, 48))]
    for k in range(4000):
        data = source.randbytes(source.randrange(65)) if k % 2 else _mutated(source, seeds)
        id = source.choice((0x8001, 0x8002, 0x807F, 0x0001, source.getrandbits(29)))
        for answer in device.emulator.handle(CanFrame(id, data, id > 0x7FF, True, True), device.t_ns):
            assert len(answer.data) in (*range(9), 12, 16, 20, 24, 32, 48, 64)
        if k % 4 == 0:
            device.run(1)
        assert all(math.isfinite(r.effort) and math.isfinite(r.position) for r in device.rotors)
    device.emulator.reset(device.t_ns)
    device.run(20)
    assert all(r.effort == 0.0 for r in device.rotors)


def test_noise_moves_no_motor(device: Bench) -> None:
    """Without a whole write of a mode to its register nothing starts."""
    source = random.Random(2)
    for _ in range(3000):
        data = bytes(source.choice((0x50, 0x10, 0x20, 0x41, 0x7F, 0xFF)) for _ in range(source.randrange(65)))
        device.emulator.handle(CanFrame(0x807F, data, True, True), device.t_ns)
        device.run(1)
        assert all(r.effort == 0.0 for r in device.rotors)


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
