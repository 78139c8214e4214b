"""Emulated moteus drives on their own: modes, watchdog, faults, registers, the console, any bytes at all."""

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
    arbitration,
    command_tail,
    decode,
    encode_command,
    pad,
    poll,
    read,
    tunnel,
    write,
)
from cosim.drivers.moteus.device.servo import Servo
from cosim.drivers.moteus.device.trajectory import advance
from cosim.drivers.moteus.emulator import Emulator
from cosim.drivers.moteus.registers import Mode
from cosim.drivers.transport import CanFrame
from cosim.units import TURN

MS = 1_000_000
POSITION = write(reg.MODE, INT8, [Mode.POSITION])
ON = POSITION + write(reg.COMMAND_TIMEOUT, FLOAT, [math.nan])  # no watchdog


class Bench:
    """Drives 1 and 2."""

    def __init__(self) -> None:
        self.rotors = [Rotor(), Rotor()]
        self.emulator = Emulator([1, 2], self.rotors)
        self.servo, self.rotor = self.emulator.servos[0], self.rotors[0]
        self.t_ns = 0

    def run(self, ms: int) -> None:
        for _ in range(ms):
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.t_ns += MS
            self.emulator.process(self.t_ns)

    def tell(self, data: bytes, node: int = 1) -> None:
        assert self.emulator.handle(CanFrame(arbitration(0, node), pad(data), False, True, True), self.t_ns) == []

    def ask(self, data: bytes, node: int = 1) -> list[Any]:
        (answer,) = self.emulator.handle(
            CanFrame(arbitration(0, node, reply=True), pad(data), True, True, True), self.t_ns
        )
        assert answer.id == node << 8 and answer.fd and len(answer.data) in (*range(9), 12, 16, 20, 24, 32, 48, 64)
        found, whole = decode(answer.data)
        assert whole
        return found

    def get(self, register: int, resolution: int = FLOAT) -> float:
        (answer,) = self.ask(read(register, resolution))
        assert isinstance(answer, Reply)
        return answer.values[0]

    def say(self, text: str) -> str:
        """A line to the console, and its whole answer."""
        self.tell(tunnel(CLIENT_DATA, 1, text.encode() + b"\n"))
        heard = b""
        while True:
            (answer,) = self.ask(poll(1, 60))
            assert isinstance(answer, Tunnel)
            if not answer.data:
                return heard.decode("latin1")
            heard += answer.data

    def start(self, data: bytes = b"") -> None:
        self.tell(ON + data)
        self.run(15)
        assert self.servo.mode == Mode.POSITION


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- modes ---------------------------------------------------------------------------------------


def test_starting_up_takes_its_time(bench: Bench) -> None:
    modes = []
    bench.tell(ON)
    for _ in range(15):
        modes.append(bench.servo.mode)
        bench.run(1)
    assert modes == sorted(modes) and set(modes) >= {Mode.ENABLING, Mode.CALIBRATING} and modes.count(3) == 9
    assert bench.get(reg.MODE, INT8) == Mode.POSITION


@pytest.mark.parametrize("mode", [*range(1, 5), 16, 100, -1])
def test_modes_that_cannot_be_commanded(bench: Bench, mode: int) -> None:
    bench.tell(write(reg.MODE, INT8, [mode]))
    bench.run(20)
    assert bench.servo.mode == Mode.STOPPED


def test_position_mode_follows_the_control_law(bench: Bench) -> None:
    bench.start(write(0x020, FLOAT, [0.1, 0.0, 0.25, 0.5, 2.0]) + write(0x028, INT8, [-1, -1]))
    assert bench.servo.config["servo.pid_position.kp"] == 4.0
    position, velocity = bench.rotor.position / TURN, bench.rotor.velocity / TURN
    bench.emulator.process(bench.t_ns)
    assert bench.rotor.effort == pytest.approx(4.0 * 0.5 * (0.1 - position) + 0.05 * 2.0 * (0.0 - velocity) + 0.25)
    assert bench.get(0x030) == pytest.approx(4.0 * 0.5 * (0.1 - position), rel=1e-6)
    assert bench.get(0x03B) == pytest.approx(position - 0.1, rel=1e-5)
    assert bench.get(0x03A) == pytest.approx(bench.rotor.effort) and bench.get(0x038) == pytest.approx(0.1)


def test_integral(bench: Bench) -> None:
    bench.servo.config |= {"servo.pid_position.ki": 100.0, "servo.pid_position.ilimit": 0.5}
    bench.start(write(0x020, FLOAT, [1.0]) + write(0x023, INT8, [0, 0]) + write(0x028, INT8, [-1, -1]))
    bench.run(50)
    assert bench.get(0x031) == pytest.approx(0.5) and bench.rotor.effort == pytest.approx(0.5)


def test_effort_saturates(bench: Bench) -> None:
    bench.start(write(0x020, FLOAT, [math.nan, 0.0, 1.0, 0.0, 0.0, 0.5]))
    bench.run(2)
    assert bench.rotor.effort == pytest.approx(0.5) and bench.get(reg.FAULT, INT8) == 102
    bench.tell(ON + write(0x020, FLOAT, [math.nan, 0.0, 5.0, 0.0, 0.0]))
    bench.run(2)
    assert bench.rotor.effort == pytest.approx(2.0) and bench.get(reg.FAULT, INT8) == 99
    assert bench.get(reg.Q_CURRENT) == pytest.approx(20.0) and bench.get(reg.TORQUE, INT16) in (199, 200)


def test_no_torque_beyond_the_largest_velocity(bench: Bench) -> None:
    bench.servo.config["servo.max_velocity"] = 1.0
    bench.start(write(0x020, FLOAT, [math.nan, 0.0, 1.0, 0.0, 0.0]))
    bench.run(300)
    assert 1.0 < bench.get(reg.VELOCITY) < 3.0 and bench.get(reg.FAULT, INT8) == 96


def test_trajectories_are_limited(bench: Bench) -> None:
    bench.servo.config |= {"servo.pid_position.kp": 50.0, "servo.pid_position.kd": 1.0}
    bench.start(write(0x020, FLOAT, [1.0]) + write(0x028, FLOAT, [2.0, 10.0]))
    fastest, arrived = 0.0, None
    for ms in range(1500):
        bench.run(1)
        fastest = max(fastest, bench.get(0x039))
        if arrived is None and bench.get(reg.TRAJECTORY_COMPLETE, INT8):
            arrived = ms
    assert fastest == pytest.approx(2.0)
    assert arrived is not None and arrived + 4 == pytest.approx(1000.0 * (1.0 / 2.0 + 2.0 / 10.0), abs=10)
    assert bench.get(reg.POSITION) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("gap", "goal"), [(1.0, 0.0), (-0.3, 0.0), (0.5, 0.4), (0.2, -1.0), (0.0, 0.0), (None, -2.0)])
def test_set_points_arrive_within_their_limits(gap: float | None, goal: float) -> None:
    place, velocity, target, fastest, acceleration, dt = 0.0, 0.7, gap, 1.5, 8.0, 1e-3
    for _ in range(5000):
        rest = None if target is None else target - place
        new, step, arrived = advance(rest, velocity, goal, fastest, acceleration, dt)
        assert abs(new) <= fastest + 1e-9 and abs(new - velocity) <= acceleration * dt + 1e-9
        assert abs(step) <= (fastest + 2 * acceleration * dt) * dt
        place, velocity, target = place + step, new, None if target is None else target + goal * dt
        if arrived:
            break
    assert arrived and velocity == max(-fastest, min(goal, fastest))
    assert target is None or place == pytest.approx(target, abs=1e-9)


def test_zero_velocity_and_brake_damp(bench: Bench) -> None:
    for mode in (Mode.ZERO_VELOCITY, Mode.BRAKE):
        bench.rotor.velocity = 5.0
        bench.tell(write(reg.MODE, INT8, [mode]))
        bench.run(15)
        assert bench.servo.mode == mode and bench.rotor.effort < 0 < bench.rotor.velocity < 5.0
    bench.tell(STOP[:3])
    assert bench.rotor.effort == 0.0


def test_current_mode(bench: Bench) -> None:
    bench.tell(write(reg.MODE, INT8, [Mode.CURRENT]) + write(reg.COMMAND_Q_CURRENT, FLOAT, [3.0, 0.0]))
    bench.run(15)
    assert bench.rotor.effort == pytest.approx(0.3)
    bench.run(200)
    assert bench.servo.mode == Mode.CURRENT, "the watchdog is that of position and within modes only"


def test_stay_within(bench: Bench) -> None:
    within = write(reg.MODE, INT8, [Mode.STAY_WITHIN]) + write(0x046, FLOAT, [math.nan])
    bench.tell(within + write(0x040, FLOAT, [-0.1, 0.1, 0.02]))
    bench.run(15)
    assert bench.rotor.effort == pytest.approx(0.02)
    bench.rotor.position, bench.rotor.velocity = 0.2 * TURN, 0.0
    bench.emulator.process(bench.t_ns)
    assert bench.rotor.effort == pytest.approx(-4.0 * 0.1 + 0.02)


# --- watchdog and faults ---------------------------------------------------------------------------


def test_the_watchdog_is_100_ms_by_default(bench: Bench) -> None:
    bench.rotor.velocity = 3.0
    bench.tell(POSITION + write(0x020, FLOAT, [math.nan, 0.0, 0.5, 0.0]))
    bench.run(99)
    assert bench.servo.mode == Mode.POSITION and bench.rotor.effort > 0.2
    bench.run(1)
    assert bench.servo.mode == Mode.TIMEOUT and bench.rotor.effort < 0.0 < bench.rotor.velocity  # damped
    bench.tell(ON)
    bench.run(20)
    assert bench.servo.mode == Mode.TIMEOUT, "only stopping ends it"
    bench.tell(STOP)
    bench.tell(ON)
    bench.run(20)
    assert bench.servo.mode == Mode.POSITION


@pytest.mark.parametrize(("timeout_mode", "still"), [(0, False), (10, True), (12, False), (13, False), (15, False)])
def test_what_a_drive_does_then_is_configured(bench: Bench, timeout_mode: int, still: bool) -> None:
    bench.servo.config["servo.timeout_mode"] = timeout_mode
    bench.tell(POSITION)
    bench.run(120)
    assert bench.servo.mode == Mode.TIMEOUT
    bench.rotor.position += 0.5
    bench.run(1)
    assert (bench.rotor.effort < -0.1) == still


@pytest.mark.parametrize(
    ("cause", "code"), [("overtemperature", 38), ("overcurrent", 33), ("undervoltage", 40), ("encoder", 35)]
)
def test_fault_causes_of_the_motor(bench: Bench, cause: str, code: int) -> None:
    bench.start(write(0x020, FLOAT, [math.nan, 0.0, 0.5]))
    bench.rotor.fault_cause = cause
    bench.run(1)
    assert (bench.get(reg.MODE, INT8), bench.get(reg.FAULT, INT8), bench.rotor.effort) == (Mode.FAULT, code, 0.0)
    bench.rotor.fault_cause = ""
    bench.tell(ON)
    bench.run(30)
    assert bench.servo.mode == Mode.FAULT
    bench.tell(STOP)
    assert (bench.get(reg.MODE, INT8), bench.get(reg.FAULT, INT8)) == (Mode.STOPPED, 0)


@pytest.mark.parametrize(
    ("name", "value", "code"), [("temperature", 81.0, 38), ("voltage", 3.9, 40), ("voltage", 46.5, 34)]
)
def test_measured_values_out_of_bounds(bench: Bench, name: str, value: float, code: int) -> None:
    bench.start()
    setattr(bench.rotor, name, value)
    bench.run(1)
    assert bench.servo.fault == code


def test_a_stopped_drive_has_no_faults(bench: Bench) -> None:
    bench.rotor.fault_cause = "overcurrent"
    bench.run(5)
    assert bench.servo.mode == Mode.STOPPED and bench.servo.fault == 0


def test_starting_outside_the_bounds(bench: Bench) -> None:
    bench.servo.config["servopos.position_max"] = -0.5
    bench.tell(ON)
    bench.run(20)
    assert bench.servo.fault == 39
    bench.tell(STOP)
    bench.tell(ON + write(0x02D, INT8, [1]))
    bench.run(20)
    assert bench.servo.mode == Mode.POSITION


def test_bounds_hold_the_control_position(bench: Bench) -> None:
    bench.servo.config |= {"servopos.position_min": -0.1, "servopos.position_max": 0.1}
    bench.start(write(0x020, FLOAT, [0.4, 0.2]))
    bench.run(200)
    assert bench.get(0x038) == pytest.approx(0.1) and bench.get(0x039) == 0.0


def test_torque_that_leads_out_of_the_bounds_fades(bench: Bench) -> None:
    bench.start(write(0x020, FLOAT, [math.nan, 0.0, 1.0, 0.0, 0.0]))
    bench.servo.config["servopos.position_max"] = 0.1
    for over, effort, code in ((-0.001, 1.0, 0), (0.01, 0.5, 103), (0.02, 0.0, 103), (0.5, 0.0, 103)):
        bench.rotor.position, bench.rotor.velocity = (0.1 + over) * TURN, 0.0
        bench.emulator.process(bench.t_ns)
        assert bench.rotor.effort == pytest.approx(effort, abs=1e-9) and bench.servo.fault == code


def test_recapturing_goes_on_from_where_the_motor_is(bench: Bench) -> None:
    bench.start(write(0x020, FLOAT, [math.nan]))
    bench.rotor.position = 0.2
    bench.emulator.process(bench.t_ns)
    assert bench.rotor.effort < -0.1
    bench.tell(write(reg.RECAPTURE, INT8, [1]))
    bench.emulator.process(bench.t_ns)
    assert bench.rotor.effort == pytest.approx(0.0, abs=1e-9)


def test_a_stop_position_needs_free_trajectories(bench: Bench) -> None:
    bench.tell(ON + write(0x026, FLOAT, [0.1]))
    assert bench.servo.fault == 45


def test_power_comes_back(bench: Bench) -> None:
    bench.say("conf set servo.pid_position.kp 7")
    bench.say("conf write")
    bench.say("conf set servo.pid_position.kp 9")
    bench.start(write(0x020, FLOAT, [math.nan, 0.0, 0.5]))
    bench.emulator.reset(bench.t_ns)
    assert bench.rotor.effort == 0.0 and bench.servo.mode == Mode.STOPPED
    assert bench.servo.config["servo.pid_position.kp"] == 7.0
    bench.run(20)
    assert bench.rotor.effort == 0.0


# --- registers -------------------------------------------------------------------------------------


def test_identity(bench: Bench) -> None:
    assert bench.ask(read(reg.MODEL, INT32, 3)) == [Reply(reg.MODEL, INT32, (0, 0x010100, 5))]
    assert bench.ask(read(reg.SERIAL_NUMBER, INT32, 3))[0].values[0] & 0xFFFF == 1
    (uuid,) = bench.ask(read(reg.UUID, INT32, 4))
    assert struct.pack("<4i", *uuid.values) == bench.servo.uuid != bench.emulator.servos[1].uuid
    assert bench.ask(read(reg.UUID_MASK_CAPABLE, INT8)) == [Reply(reg.UUID_MASK_CAPABLE, INT8, (1,))]
    assert bench.ask(read(reg.MODEL, INT8)) == [Failure(reg.MODEL, 1, True)]


def test_measured_values(bench: Bench) -> None:
    bench.rotor.position, bench.rotor.velocity = 0.25 * TURN, -2.0 * TURN
    found = bench.ask(read(reg.MODE, INT16, 4) + read(reg.VOLTAGE, INT8, 3))
    assert found == [Reply(0, INT16, (0, 2500, -8000, 0)), Reply(reg.VOLTAGE, INT8, (48, 25, 0))]
    bench.run(7)
    assert bench.get(reg.MILLISECONDS, INT32) == 7 and bench.get(reg.HOME_STATE, INT8) == 2


def test_every_documented_register_answers_or_refuses(bench: Bench) -> None:
    readable = [r for r in range(0x160) if isinstance(bench.ask(read(r, INT32))[0], Reply)]
    gaps = {0x008, 0x009, 0x013, 0x017, 0x01F, 0x02E, 0x02F, 0x035, 0x03E, 0x049, 0x056, 0x05A, 0x065, 0x06D}
    assert gaps.isdisjoint(readable) and set(range(8)) <= set(readable) and set(range(0x020, 0x02E)) <= set(readable)
    assert {0x110, 0x130, 0x131, 0x132, 0x133, 0x154}.isdisjoint(readable)
    for register in (reg.POSITION, reg.FAULT, reg.MODEL, reg.UUID, reg.MULTIPLEX_ID):
        assert bench.ask(write(register, INT8, [1])) == [Failure(register, 2, False)]
    assert bench.ask(write(0x300, INT8, [1])) == [Failure(0x300, 1, False)]


def test_commands_read_back(bench: Bench) -> None:
    bench.tell(write(reg.MODE, INT8, [10]) + write(0x020, INT16, [1000, -(1 << 15), 150]) + write(0x027, INT8, [20]))
    assert bench.get(0x020) == pytest.approx(0.1) and math.isnan(bench.get(0x021))
    assert bench.get(0x042) == pytest.approx(1.5) and bench.get(0x046) == pytest.approx(0.2)
    assert bench.get(0x021, INT32) == -(1 << 31)


def test_a_command_without_a_mode_is_none(bench: Bench) -> None:
    bench.start(write(0x020, FLOAT, [math.nan, 0.0, 0.1, 0.0, 0.0]))
    bench.tell(write(0x022, FLOAT, [1.9]))
    bench.run(5)
    assert bench.rotor.effort == pytest.approx(0.1)


def test_setting_the_output(bench: Bench) -> None:
    bench.rotor.position = 0.3 * TURN
    bench.start(write(0x020, FLOAT, [math.nan]))
    bench.tell(write(reg.SET_EXACT, FLOAT, [5.0]))
    bench.run(5)
    assert bench.get(reg.POSITION) == pytest.approx(5.0, abs=1e-6) and abs(bench.rotor.effort) < 1e-6
    bench.tell(ON + write(0x020, FLOAT, [5.0]) + write(0x028, INT8, [-1, -1]))
    bench.emulator.process(bench.t_ns)
    assert abs(bench.rotor.effort) < 1e-6 and bench.get(0x038) == pytest.approx(5.0)
    bench.tell(write(reg.REQUIRE_REINDEX, INT8, [1]))
    assert bench.get(reg.POSITION) == pytest.approx(0.3, abs=1e-6) and bench.get(reg.HOME_STATE, INT8) == 0
    bench.tell(write(reg.SET_NEAREST, FLOAT, [2.0]))
    assert bench.get(reg.POSITION) == pytest.approx(2.3, abs=1e-6) and bench.get(reg.HOME_STATE, INT8) == 2
    bench.tell(write(reg.SET_EXACT, FLOAT, [math.nan]))
    assert bench.get(reg.POSITION) == pytest.approx(2.3, abs=1e-6)


def test_gpio_keeps_what_is_written(bench: Bench) -> None:
    bench.tell(write(0x05C, INT8, [3, 5]))
    assert bench.ask(read(0x05C, INT8, 2)) == [Reply(0x05C, INT8, (3, 5))]
    assert bench.ask(read(reg.AUX1_GPIO_STATUS, INT8, 2)) == [Reply(reg.AUX1_GPIO_STATUS, INT8, (0, 0))]


# --- frames ----------------------------------------------------------------------------------------


def test_who_answers(bench: Bench) -> None:
    def ids(id: int, **more: Any) -> list[int]:
        return [f.id for f in bench.emulator.handle(CanFrame(id, QUERY, id > 0x7FF, True, **more), 0)]

    assert ids(0x8001) == [0x100] and ids(0x8501) == [0x105] and ids(0x807F) == [0x100, 0x200]
    assert ids(0x0001) == ids(0x8003) == ids(0x8081) == ids(0x1_8001) == ids(0x8001, remote=True) == []
    bench.servo.config["can.prefix"] = 1
    assert ids(0x1_8001) == [0x1_0100] and ids(0x8001) == []


def test_answers_are_of_the_kind_that_asked(bench: Bench) -> None:
    for fd, switched, data in ((False, False, b"\x11\x00"), (True, True, b"\x11\x00"), (True, False, QUERY)):
        (answer,) = bench.emulator.handle(CanFrame(0x8001, data, True, fd, switched), 0)
        assert (answer.fd, answer.switched, answer.extended) == (fd, switched, False)
    (answer,) = bench.emulator.handle(CanFrame(0x8001, b"\x50", True), 0)
    assert answer.data == b""


def test_a_frame_for_another_uuid_is_not_obeyed(bench: Bench) -> None:
    masks = struct.unpack("<4i", bench.emulator.servos[1].uuid)
    data = write(reg.UUID_MASK, INT32, masks) + write(reg.MODE, INT8, [Mode.BRAKE]) + read(reg.MODE, INT8)
    answers = bench.emulator.handle(CanFrame(0x807F, pad(data), True, True), 0)
    assert [frame.id for frame in answers] == [0x200]
    assert [servo.mode for servo in bench.emulator.servos] == [Mode.STOPPED, Mode.ENABLING]


def test_an_answer_has_64_bytes(bench: Bench) -> None:
    assert bench.ask(read(0x000, FLOAT, 8) + read(0x020, FLOAT, 14)) == [
        bench.ask(read(0x000, FLOAT, 8))[0],
        Failure(0x020, 2, True),
    ]
    found = bench.ask(b"".join(read(k, FLOAT) for k in range(1, 16) if k not in (8, 9)))
    assert len(found) == 7, "no further subframe when less than 23 bytes are left"
    assert bench.ask(read(0x007, INT8, 3) + read(0x000, INT8)) == [Failure(0x008, 1, True)]


# --- the console -----------------------------------------------------------------------------------


def test_configuration(bench: Bench) -> None:
    assert bench.say("conf get servo.pid_position.kp") == "4.000000\r\n"
    assert bench.say("conf get id.id") == "1\r\n"
    assert bench.say("conf get servopos.position_min") == "nan\r\n"
    assert bench.say("conf set servo.pid_position.kp 2.5") == "OK\r\n"
    assert bench.say("conf get servo.pid_position.kp") == "2.500000\r\n"
    assert bench.say("conf get nonsense.x") == "ERR unknown group\r\n"
    assert bench.say("conf get servo.nonsense") == "ERR error reading\r\n"
    assert bench.say("conf set servo.nonsense 1") == "ERR error setting\r\n"
    assert bench.say("conf set servo.timeout_mode x") == "ERR error setting\r\n"
    assert bench.say("conf fly") == "ERR unknown subcommand\r\n" and bench.say("fly") == "ERR unknown command\r\n"
    assert bench.say("conf enumerate id") == "id.id 1\r\nOK\r\n"
    everything = bench.say("conf enumerate").split("\r\n")
    assert everything[-2:] == ["OK", ""] and len(everything) == len(bench.servo.config) + 2
    assert "servo" in bench.say("conf list").split()
    bench.say("conf load")
    assert bench.say("conf get servo.pid_position.kp") == "4.000000\r\n"
    bench.say("conf set servo.max_voltage 1")
    bench.say("conf default")
    assert bench.servo.config == bench.servo.saved
    bench.say("conf set motor_position.output.sign -1")
    bench.start()
    bench.say("conf set motor_position.output.sign 1")
    assert bench.servo.fault == 41


def test_commands_by_hand(bench: Bench) -> None:
    assert bench.say("d pos nan 0 1.5 p0 d0 f0.25") == "OK\r\n"
    bench.run(200)
    assert bench.servo.mode == Mode.POSITION and bench.rotor.effort == pytest.approx(0.25)
    assert bench.say("d stop") == "OK\r\n" and bench.servo.mode == Mode.STOPPED and bench.rotor.effort == 0.0
    assert bench.say("d exact 3") == "OK\r\n" and bench.say("d nearest x") == "ERR missing index value\r\n"
    assert bench.say("d within -1 1") == "ERR missing value\r\n" == bench.say("d pos 0 0 x")
    assert bench.say("d pos 0 0 1 z3") == "ERR unknown option\r\n" == bench.say("d pos 0 0 1 px")
    assert bench.say("d fly") == "ERR unknown command\r\n"
    for line, mode in (("d brake", 15), ("d zero nan 0 nan", 12), ("d within -1 1 1", 13), ("d dq 0 1", 9)):
        bench.say(line)
        bench.run(15)
        assert bench.servo.mode == mode


def test_telemetry(bench: Bench) -> None:
    assert bench.say("tel list") == "firmware\r\ngit\r\nservo_stats\r\nOK\r\n"
    assert bench.say("tel get nothing") == "ERR unknown name\r\n"
    assert bench.say("tel get git").startswith("emit git\r\n\x1d\x00\x00\x00")
    assert bench.say("tel fmt servo_stats 1") == "OK\r\n"
    assert "servo_stats.bus_V 24.000000\r\n" in bench.say("tel get servo_stats")
    assert bench.say("tel text") == bench.say("tel stop") == "OK\r\n"
    assert "firmware.serial_number.2 " in bench.say("tel get firmware")


def test_counted_packets_are_held_until_they_are_acknowledged(bench: Bench) -> None:
    def flow(acknowledged: int, limit: int = 10) -> tuple[int, bytes]:
        (answer,) = bench.ask(bytes((0x44, 1, acknowledged, limit)))
        assert isinstance(answer, Tunnel)
        return answer.packet, answer.data

    assert flow(0) == (1, b"")
    bench.tell(tunnel(CLIENT_DATA, 1, b"conf enumerate id\n"))
    assert flow(1) == (2, b"id.id 1\r\nO") == flow(1), "an answer that was lost comes again"
    assert flow(2) == (3, b"K\r\n") and flow(3) == (4, b"")


def test_other_channels(bench: Bench) -> None:
    assert bench.ask(tunnel(CLIENT_DATA, 2, b"hello")) == [Tunnel(0x41, 2, b"", 0, 0)]
    assert bench.ask(tunnel(CLIENT_DATA, 9, b"hello") + QUERY) == []


# --- any bytes at all --------------------------------------------------------------------------------


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


def test_any_frames_at_all(bench: Bench) -> None:
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
        for answer in bench.emulator.handle(CanFrame(id, data, id > 0x7FF, True, True), bench.t_ns):
            assert len(answer.data) in (*range(9), 12, 16, 20, 24, 32, 48, 64)
        if k % 4 == 0:
            bench.run(1)
        assert all(math.isfinite(r.effort) and math.isfinite(r.position) for r in bench.rotors)
    bench.emulator.reset(bench.t_ns)
    bench.run(20)
    assert all(r.effort == 0.0 for r in bench.rotors)


def test_noise_moves_no_motor(bench: Bench) -> None:
    """Without a whole write of a mode to its register nothing starts."""
    source = random.Random(2)
    for _ in range(3000):
        data = bytes(source.choice((0x50, 0x10, 0x20, 0x41, 0x7F, 0xFF)) for _ in range(source.randrange(65)))
        bench.emulator.handle(CanFrame(0x807F, data, True, True), bench.t_ns)
        bench.run(1)
        assert all(r.effort == 0.0 for r in bench.rotors)


def test_state_is_plain(bench: Bench) -> None:
    """A copy of a drive's attributes is the whole drive."""
    bench.start(write(0x020, FLOAT, [0.3, 0.1]))
    saved = {name: value for name, value in vars(bench.servo).items() if name != "motor"}
    saved = {name: dict(value) if isinstance(value, dict) else value for name, value in saved.items()}
    twin = Servo(1, Rotor())
    twin.motor.position, twin.motor.velocity = bench.rotor.position, bench.rotor.velocity
    vars(twin).update(saved)
    for servo in (bench.servo, twin):
        servo.process(bench.t_ns + MS)
    assert twin.motor.effort == bench.rotor.effort != 0.0
