"""Emulated Dynamixel drives: access to the table, modes, limits, watchdog and faults as in the maker's manual."""

import random
from collections.abc import Callable

import pytest

from cosim.drivers.common.motor import Rotor
from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.dynamixel.emulator import Emulator
from cosim.drivers.dynamixel.node import FIRMWARE, Node

MS = 1_000_000
MODEL = t.MODELS["XM430-W350"]


class Bench:
    """Drives on a line, and time."""

    def __init__(self, *ids: int, model: t.ServoModel = MODEL) -> None:
        self.rotors = [Rotor(inertia=1e-2, friction=1e-2) for _ in ids]
        for rotor in self.rotors:
            rotor.max_velocity = 5.0
        self.emulator = Emulator(
            [Node(id, model, model.effort(None), rotor) for id, rotor in zip(ids, self.rotors, strict=True)]
        )
        self.t_ns = 1000 * MS
        self.emulator.reset(self.t_ns)

    def say(self, data: bytes) -> list[codec.Packet]:
        return [p for answer in self.emulator.handle(data, self.t_ns) for p in codec.Decoder().feed(answer)]

    def ask(self, data: bytes) -> tuple[int, bytes]:
        """The error byte and the data of the one drive that answers."""
        [packet] = self.say(data)
        return packet.params[0], packet.params[1:]

    def read(self, register: t.Register, id: int = 1) -> int:
        error, data = self.ask(codec.read(id, register.address, register.size))
        assert error & ~codec.ALERT == 0
        return int.from_bytes(data, "little", signed=register.size == 4 or register == t.PRESENT_CURRENT)

    def write(self, register: t.Register, value: int, id: int = 1) -> int:
        return self.ask(codec.write(id, register.address, register.pack(value)))[0]

    def run(self, ms: int, feed: bool = False) -> None:
        for _ in range(ms):
            self.t_ns += MS
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.emulator.process(self.t_ns)
            if feed:
                self.say(codec.packet(codec.BROADCAST, codec.ACTION))

    def start(self, mode: int) -> None:
        for register, value in ((t.OPERATING_MODE, mode), (t.GOAL_CURRENT, 0), (t.TORQUE_ENABLE, 1)):
            assert self.write(register, value) == 0


def test_who_is_there() -> None:
    bench = Bench(2, 1)
    about = MODEL.number.to_bytes(2, "little") + bytes((FIRMWARE,))
    assert bench.ask(codec.packet(1, codec.PING)) == (0, about)
    found = bench.say(codec.packet(codec.BROADCAST, codec.PING))
    assert [(p.id, p.params) for p in found] == [(1, b"\0" + about), (2, b"\0" + about)]
    assert bench.say(codec.packet(3, codec.PING)) == []
    assert bench.say(codec.read(codec.BROADCAST, 0, 2)) == []


def test_initial_values_are_the_makers() -> None:
    bench = Bench(1)
    registers = (
        t.MODEL_NUMBER,
        t.ID,
        t.RETURN_DELAY_TIME,
        t.OPERATING_MODE,
        t.CURRENT_LIMIT,
        t.SHUTDOWN,
        t.RETURN_LEVEL,
    )
    assert [bench.read(r) for r in registers] == [1020, 1, 250, 3, 1193, 52, 2]
    assert [bench.read(r) for r in (t.PRESENT_VOLTAGE, t.PRESENT_TEMPERATURE)] == [240, 25]


ON = codec.write(1, 64, b"\1")
CUT_LONG = bytes.fromhex("FFFFFD00 01 FF0F 03")  # announces more than ever comes


@pytest.mark.parametrize(
    ("before", "question", "error"),
    [
        (b"", codec.write(1, 0, b"ab"), codec.NO_ACCESS),  # read only
        (b"", codec.write(1, 14, b"a"), codec.NO_ACCESS),  # no such register
        (b"", codec.write(1, 660, b"abcd"), codec.NO_ACCESS),  # beyond the table
        (b"", codec.read(1, 660, 4), codec.NO_ACCESS),
        (b"", codec.read(1, 0, 0), codec.NO_ACCESS),
        (b"", codec.write(1, 116, b"ab"), codec.BAD_LENGTH),
        (b"", codec.write(1, 118, b"ab"), codec.BAD_LENGTH),
        (b"", codec.packet(1, codec.WRITE, b"ab"), codec.BAD_LENGTH),
        (b"", codec.packet(1, codec.READ, b"ab"), codec.BAD_LENGTH),
        (b"", codec.write(1, 11, b"\2"), codec.BAD_RANGE),  # no such operating mode
        (b"", codec.write(1, 64, b"\2"), codec.BAD_RANGE),
        (b"", codec.write(1, 102, (1194).to_bytes(2, "little")), codec.BEYOND_LIMIT),
        (b"", codec.write(1, 104, (201).to_bytes(4, "little")), codec.BEYOND_LIMIT),
        (b"", codec.write(1, 116, (4096).to_bytes(4, "little")), codec.BEYOND_LIMIT),
        (ON, codec.write(1, 11, b"\1"), codec.NO_ACCESS),  # EEPROM is locked
        (ON, codec.write(1, 65, b"\1"), 0),
        (b"", codec.packet(1, 0x77), codec.BAD_INSTRUCTION),
        (b"", codec.packet(1, codec.ACTION), codec.BAD_INSTRUCTION),  # nothing registered
        (b"", codec.packet(1, codec.FACTORY_RESET, b"\xff"), codec.RESULT_FAIL),
        (b"", codec.packet(1, codec.CLEAR, b"\1abcd"), codec.BAD_RANGE),
        (b"", codec.packet(1, codec.PING)[:-1] + b"\0", codec.BAD_CRC),
    ],
)
def test_errors(before: bytes, question: bytes, error: int) -> None:
    bench = Bench(1)
    bench.say(before)
    was = bytes(bench.emulator.nodes[0].table)
    assert bench.ask(question)[0] == error
    if error:
        assert bytes(bench.emulator.nodes[0].table) == was


def test_status_return_level() -> None:
    bench = Bench(1)
    for level, answered in ((0, 1), (1, 2), (2, 3)):
        bench.say(codec.write(1, t.RETURN_LEVEL.address, bytes((level,))))
        questions = (codec.packet(1, codec.PING), codec.read(1, 0, 2), codec.write(1, 65, b"\1"))
        assert sum(len(bench.say(q)) for q in questions) == answered
        assert len(bench.say(codec.sync_read(0, 2, [1]))) == (level > 0)


def test_registered_writes_wait_for_action() -> None:
    bench = Bench(1, 2)
    for id in (1, 2):
        assert bench.ask(codec.reg_write(id, t.LED.address, b"\1")) == (0, b"")
    assert [bench.read(t.LED), bench.read(t.REGISTERED)] == [0, 1]
    assert bench.say(codec.packet(codec.BROADCAST, codec.ACTION)) == []
    assert [bench.read(t.LED, 2), bench.read(t.REGISTERED, 2)] == [1, 0]


def test_several_at_once() -> None:
    bench = Bench(1, 2, 3)
    assert bench.say(codec.sync_write(t.LED.address, 1, b"\1\1\3\1")) == []
    assert [bench.read(t.LED, id) for id in (1, 2, 3)] == [1, 0, 1]
    assert bench.say(codec.bulk_write([(1, 65, b"\0"), (2, 76, b"\5\0")])) == []
    assert [bench.read(t.LED), bench.read(t.VELOCITY_I, 2)] == [0, 5]
    answers = bench.say(codec.sync_read(7, 1, [3, 1]))
    assert [(p.id, p.params) for p in answers] == [(3, b"\0\3"), (1, b"\0\1")]
    answers = bench.say(codec.bulk_read([(2, 7, 1), (1, 0, 2)]))
    assert [(p.id, p.params) for p in answers] == [(2, b"\0\2"), (1, b"\0\xfc\3")]


def test_chained_answers() -> None:
    bench = Bench(1, 2)
    [answer] = bench.emulator.handle(codec.sync_read(7, 1, [2, 1], fast=True), bench.t_ns)
    assert answer == codec.chained([codec.RegisterBlock(0, 2, b"\2"), codec.RegisterBlock(0, 1, b"\1")], 10)
    [answer] = bench.emulator.handle(codec.bulk_read([(1, 660, 9), (2, 7, 1)], fast=True), bench.t_ns)
    assert answer == codec.chained(
        [codec.RegisterBlock(codec.NO_ACCESS, 1, bytes(9)), codec.RegisterBlock(0, 2, b"\2")], 18
    )


def test_a_drive_that_is_missing_ends_the_chain() -> None:
    bench = Bench(1, 3)
    assert [p.id for p in bench.say(codec.sync_read(7, 1, [1, 2, 3]))] == [1]
    [answer] = bench.emulator.handle(codec.sync_read(7, 1, [1, 2, 3], fast=True), bench.t_ns)
    assert answer == codec.chained([codec.RegisterBlock(0, 1, b"\1")], 15)
    assert bench.say(codec.sync_read(7, 1, [2, 1])) == []


def test_indirect_registers() -> None:
    bench = Bench(1)
    gathered = (t.LED.address, t.GOAL_VELOCITY.address, t.GOAL_VELOCITY.address + 1)
    bench.ask(codec.write(1, 168, b"".join(a.to_bytes(2, "little") for a in gathered)))
    bench.ask(codec.write(1, t.GOAL_VELOCITY.address, b"\x64\0\0\0"))
    assert bench.ask(codec.read(1, 224, 4)) == (0, b"\0\x64\0\0")
    assert bench.ask(codec.write(1, 224, b"\1")) == (0, b"")
    assert bench.read(t.LED) == 1
    assert bench.ask(codec.write(1, 225, b"\1\0"))[0] == codec.BAD_LENGTH  # half of a register
    assert bench.ask(codec.write(1, 168, b"\x0b\0"))[0] == codec.BAD_RANGE  # the EEPROM is out of reach


def test_current_control() -> None:
    bench = Bench(1)
    bench.start(t.CURRENT_MODE)
    assert bench.write(t.GOAL_CURRENT, -100) == 0
    bench.run(1)
    effort = -100 * 2.69e-3 * 1.783
    assert bench.rotors[0].effort == pytest.approx(effort)
    bench.run(1)
    assert bench.read(t.PRESENT_CURRENT) == -100
    assert bench.write(t.GOAL_CURRENT, 1193) == 0
    bench.run(1)
    assert bench.rotors[0].effort == 2.0  # all that the motor has


def test_velocity_control() -> None:
    bench = Bench(1)
    bench.start(t.VELOCITY_MODE)
    bench.write(t.GOAL_VELOCITY, 50)
    bench.run(1500)
    assert bench.read(t.PRESENT_VELOCITY) == 50
    assert bench.rotors[0].velocity == pytest.approx(50 * 0.229 * 2 * 3.14159265 / 60, rel=0.02)


@pytest.mark.parametrize("mode", [t.POSITION_MODE, t.EXTENDED_MODE, t.CURRENT_POSITION_MODE])
def test_position_control(mode: int) -> None:
    bench = Bench(1)
    bench.start(mode)
    bench.write(t.GOAL_CURRENT, 1193)
    bench.write(t.GOAL_POSITION, 1024)
    bench.run(3000)
    assert bench.read(t.PRESENT_POSITION) == pytest.approx(1024, abs=2)
    assert bench.rotors[0].position == pytest.approx(3.14159265 / 2, abs=4e-3)


def test_the_goal_current_bounds_the_effort_of_position_control() -> None:
    bench = Bench(1)
    bench.start(t.CURRENT_POSITION_MODE)
    bench.write(t.GOAL_CURRENT, 10)
    bench.write(t.GOAL_POSITION, 100_000)
    bench.run(1)
    assert bench.rotors[0].effort == pytest.approx(10 * 2.69e-3 * 1.783)


def test_pwm_control() -> None:
    bench = Bench(1)
    bench.start(t.PWM_MODE)
    bench.write(t.GOAL_PWM, 885)
    bench.run(1)
    assert bench.rotors[0].effort == pytest.approx(2.0)
    assert bench.read(t.PRESENT_PWM) == 0  # as of the step before
    bench.run(1)
    assert bench.read(t.PRESENT_PWM) == 885


def test_a_change_of_mode_resets_gains_and_goals() -> None:
    bench = Bench(1)
    bench.write(t.POSITION_P, 5)
    bench.write(t.GOAL_CURRENT, 5)
    bench.write(t.OPERATING_MODE, t.VELOCITY_MODE)
    assert [bench.read(r) for r in (t.POSITION_P, t.GOAL_CURRENT, t.GOAL_PWM)] == [800, 1193, 885]


def test_a_reversed_drive_counts_and_turns_the_other_way() -> None:
    bench = Bench(1)
    bench.write(t.DRIVE_MODE, t.REVERSE)
    bench.start(t.CURRENT_MODE)
    bench.write(t.GOAL_CURRENT, 100)
    bench.run(50)
    assert bench.rotors[0].position < 0
    assert [bench.read(r) > 0 for r in (t.PRESENT_POSITION, t.PRESENT_VELOCITY, t.PRESENT_CURRENT)] == [True] * 3


def test_whole_turns_are_forgotten_without_power_and_by_clear() -> None:
    for forget in (lambda b: b.ask(codec.packet(1, codec.CLEAR, codec.MULTI_TURN)), lambda b: b.emulator.reset(b.t_ns)):
        bench = Bench(1)
        bench.rotors[0].position = -3.14159265 / 2 - 4 * 3.14159265
        bench.run(1)
        assert bench.read(t.PRESENT_POSITION) == -1024 - 2 * 4096
        forget(bench)
        bench.run(1)
        assert bench.read(t.PRESENT_POSITION) == 3072


def test_clear_needs_a_standstill() -> None:
    bench = Bench(1)
    bench.rotors[0].velocity = 3.0
    bench.run(1)
    assert bench.ask(codec.packet(1, codec.CLEAR, codec.MULTI_TURN))[0] == codec.RESULT_FAIL


GOAL = {t.CURRENT_MODE: t.GOAL_CURRENT, t.VELOCITY_MODE: t.GOAL_VELOCITY, t.EXTENDED_MODE: t.GOAL_POSITION}


@pytest.mark.parametrize("mode", GOAL)
def test_bus_watchdog(mode: int) -> None:
    # e-Manual, "Bus Watchdog (98) Example"
    bench = Bench(1)
    bench.start(mode)
    bench.write(GOAL[mode], 50)
    bench.write(t.BUS_WATCHDOG, 2)
    bench.run(300, feed=True)
    assert bench.read(t.BUS_WATCHDOG) == 2
    bench.run(40)
    assert bench.read(t.BUS_WATCHDOG) == 2
    bench.run(41)
    assert bench.read(t.BUS_WATCHDOG) == 255
    assert bench.read(t.TORQUE_ENABLE) == 1
    assert bench.write(GOAL[mode], 60) == codec.BAD_RANGE
    bench.run(1000)
    assert bench.rotors[0].effort == 0 if mode == t.CURRENT_MODE else abs(bench.rotors[0].velocity) < 0.03
    assert bench.write(t.BUS_WATCHDOG, 2) == codec.BAD_RANGE
    assert bench.write(t.BUS_WATCHDOG, 0) == 0
    assert bench.write(GOAL[mode], 60) == 0


def test_the_watchdog_sleeps_while_the_torque_is_off_and_hears_what_is_for_its_drive() -> None:
    bench = Bench(1, 2)
    bench.write(t.BUS_WATCHDOG, 1)
    bench.run(100)
    assert bench.read(t.BUS_WATCHDOG) == 1
    bench.start(t.CURRENT_MODE)
    for _ in range(30):
        bench.run(1)
        bench.read(t.ID, 2)
    assert bench.read(t.BUS_WATCHDOG) == 255


def cause(name: str) -> Callable[[Rotor], None]:
    return lambda rotor: setattr(rotor, "fault_cause", name)


@pytest.mark.parametrize(
    ("cause", "bit", "shuts"),
    [
        (cause("overtemperature"), 0x04, True),
        (cause("overcurrent"), 0x20, True),
        (cause("undervoltage"), 0x01, False),
        (cause("encoder"), 0x08, False),
        (lambda rotor: setattr(rotor, "temperature", 80.5), 0x04, True),
        (lambda rotor: setattr(rotor, "voltage", 9.0), 0x01, False),
    ],
)
def test_hardware_errors(cause: Callable[[Rotor], None], bit: int, shuts: bool) -> None:
    bench = Bench(1)
    bench.start(t.CURRENT_MODE)
    bench.write(t.GOAL_CURRENT, 100)
    bench.run(1)
    cause(bench.rotors[0])
    bench.run(1)
    assert bench.ask(codec.read(1, 70, 1)) == (codec.ALERT, bytes((bit,)))
    assert (bench.rotors[0].effort == 0) is shuts  # by the shutdown mask as delivered
    bench.rotors[0].fault_cause, bench.rotors[0].temperature, bench.rotors[0].voltage = "", 25.0, 12.0
    bench.run(1)
    assert bench.read(t.HARDWARE_ERROR) == bit  # it stays
    if shuts:
        assert bench.write(t.TORQUE_ENABLE, 1) == codec.RESULT_FAIL | codec.ALERT
        assert bench.read(t.TORQUE_ENABLE) == 0
    assert bench.ask(codec.packet(1, codec.REBOOT)) == (codec.ALERT, b"")
    assert [bench.read(t.HARDWARE_ERROR), bench.read(t.TORQUE_ENABLE)] == [0, 0]
    assert bench.write(t.TORQUE_ENABLE, 1) == 0


def test_the_eeprom_survives_and_the_rest_does_not() -> None:
    bench = Bench(1)
    bench.write(t.RETURN_DELAY_TIME, 0)
    bench.start(t.VELOCITY_MODE)
    bench.emulator.reset(bench.t_ns)
    registers = (t.RETURN_DELAY_TIME, t.OPERATING_MODE, t.TORQUE_ENABLE, t.GOAL_CURRENT)
    assert [bench.read(r) for r in registers] == [0, t.VELOCITY_MODE, 0, 1193]


def test_a_model_without_current() -> None:
    bench = Bench(1, model=t.MODELS["XL430-W250"])
    gains, delivered = (t.VELOCITY_I, t.POSITION_D, t.POSITION_P), [1000, 4000, 640]
    assert [bench.read(r) for r in gains] == delivered
    assert bench.write(t.OPERATING_MODE, t.CURRENT_MODE) == codec.BAD_RANGE
    assert bench.write(t.OPERATING_MODE, t.CURRENT_POSITION_MODE) == codec.BAD_RANGE
    assert bench.write(t.GOAL_CURRENT, 1) == codec.NO_ACCESS
    bench.write(t.POSITION_P, 5)
    bench.write(t.OPERATING_MODE, t.PWM_MODE)
    assert [bench.read(r) for r in gains] == delivered
    bench.write(t.TORQUE_ENABLE, 1)
    bench.write(t.GOAL_PWM, 177)
    bench.run(2)
    assert bench.read(t.PRESENT_CURRENT) == pytest.approx(1000 * 0.4 / 1.5, abs=2)  # the load, of 1.5 N·m


def test_a_packet_that_was_cut_does_not_spoil_the_next() -> None:
    bench = Bench(1)
    ping = codec.packet(1, codec.PING)
    assert bench.say(ping[:6]) == []
    assert len(bench.say(ping)) == 1
    assert bench.say(CUT_LONG) == []
    bench.t_ns += 101 * MS
    assert len(bench.say(ping)) == 1


def test_no_bytes_move_a_motor_by_accident() -> None:
    chance, bench = random.Random(2), Bench(1, 2, 3)
    questions = [
        codec.packet(1, codec.PING),
        codec.read(2, 132, 4),
        codec.write(1, 116, bytes(4)),
        codec.reg_write(2, 104, b"\x10\0\0\0"),
        codec.packet(codec.BROADCAST, codec.ACTION),
        codec.sync_read(224, 15, [1, 2, 3]),
        codec.sync_read(224, 15, [1, 9, 3], fast=True),
        codec.sync_write(102, 2, b"\1ab\2cd"),
        codec.bulk_read([(1, 0, 4), (2, 600, 90)], fast=True),
        codec.bulk_write([(1, 102, b"ab"), (3, 104, b"abcd")]),
        codec.packet(3, codec.REBOOT),
        codec.status(1, 0, b"abc"),
    ]
    for k in range(6000):
        data = bytearray(chance.choice(questions))
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(data) + 1)
            data[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        if k % 3 == 0:
            address = chance.choice((7, 11, 70, 98, 102, 116, 132, 168, 224, 600)).to_bytes(2, "little")
            instruction = chance.choice((1, 2, 3, 4, 5, 6, 8, 16, 0x82, 0x83, 0x8A, 0x92, 0x93, 0x9A))
            params = address + chance.randbytes(chance.randrange(20))
            data = bytearray(codec.packet(chance.choice((1, 2, 254)), instruction, params))
        for answer in bench.emulator.handle(bytes(data), bench.t_ns):
            assert answer.startswith(codec.HEADER)
        bench.run(1)
        assert [rotor.effort for rotor in bench.rotors] == [0, 0, 0]
        if k % 100 == 0:
            bench = Bench(1, 2, 3)
    for item in (None, 5, "text", (1, 2)):
        assert bench.emulator.handle(item, bench.t_ns) == []
