"""Emulated Dynamixel drives: access to the control table."""

import pytest

from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.dynamixel.node import FIRMWARE
from tests.drivers.dynamixel.emulator_bench import MODEL, Bench


def test_ping() -> None:
    bench = Bench(2, 1)
    about = MODEL.number.to_bytes(2, "little") + bytes((FIRMWARE,))
    assert bench.ask(codec.packet(1, codec.PING)) == (0, about)
    found = bench.say(codec.packet(codec.BROADCAST, codec.PING))
    assert [(p.id, p.params) for p in found] == [(1, b"\0" + about), (2, b"\0" + about)]
    assert bench.say(codec.packet(3, codec.PING)) == []
    assert bench.say(codec.read(codec.BROADCAST, 0, 2)) == []


def test_initial_values_are_the_manufacturers() -> None:
    kept = (t.MODEL_NUMBER, t.ID, t.RETURN_DELAY_TIME, t.OPERATING_MODE, t.CURRENT_LIMIT, t.SHUTDOWN, t.RETURN_LEVEL)
    assert Bench().reads(*kept) == [1020, 1, 250, 3, 1193, 52, 2]
    assert Bench().reads(t.PRESENT_VOLTAGE, t.PRESENT_TEMPERATURE) == [240, 25]


ON = codec.write(1, 64, b"\1")


def value(size: int, number: int) -> bytes:
    return number.to_bytes(size, "little")


# error -> requests that are answered with it
ERRORS = {
    codec.NO_ACCESS: (
        codec.write(1, 0, b"ab"),  # read only
        codec.write(1, 14, b"a"),  # no such register
        codec.write(1, 660, b"abcd"),  # beyond the table
        codec.read(1, 660, 4),
        codec.read(1, 0, 0),
    ),
    codec.BAD_LENGTH: (
        codec.write(1, 116, b"ab"),
        codec.write(1, 118, b"ab"),
        codec.packet(1, codec.WRITE, b"ab"),
        codec.packet(1, codec.READ, b"ab"),
    ),
    codec.BAD_RANGE: (
        codec.write(1, 11, b"\2"),  # no such operating mode
        codec.write(1, 64, b"\2"),
        *(codec.packet(1, codec.FACTORY_RESET, option) for option in (b"\3", b"")),
        codec.packet(1, codec.CLEAR, b"\1abcd"),
    ),
    codec.BEYOND_LIMIT: tuple(
        codec.write(1, address, value(size, number))
        for address, size, number in ((102, 2, 1194), (104, 4, 201), (116, 4, 4096))
    ),
    codec.BAD_INSTRUCTION: (codec.packet(1, 0x77), codec.packet(1, codec.ACTION)),  # nothing registered
    codec.BAD_CRC: (codec.packet(1, codec.PING)[:-1] + b"\0",),
}


@pytest.mark.parametrize("error", ERRORS)
def test_errors(error: int) -> None:
    bench = Bench()
    was = bytes(bench.emulator.nodes[0].table)
    for question in ERRORS[error]:
        assert bench.ask(question)[0] == error
        assert bytes(bench.emulator.nodes[0].table) == was


def test_the_eeprom_is_locked_while_the_torque_is_on() -> None:
    bench = Bench()
    bench.say(ON)
    assert [bench.ask(codec.write(1, address, b"\1"))[0] for address in (11, 65)] == [codec.NO_ACCESS, 0]


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


def test_instructions_to_several_drives() -> None:
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


# option -> id and baud rate afterwards, of id 5 and baud rate 3
RESET = {b"\xff": (1, 1), b"\1": (5, 1), b"\2": (5, 3)}


@pytest.mark.parametrize("option", RESET)
def test_a_factory_reset_restores_the_memory_but_for_what_its_option_keeps(option: bytes) -> None:
    bench = Bench(5)
    node = bench.emulator.nodes[0]
    fresh = bytes(node.table[:64])
    for register, value in ((t.BAUD_RATE, 3), (t.OPERATING_MODE, 1), (t.MIN_POSITION, 7), (t.TORQUE_ENABLE, 1)):
        assert bench.write(register, value, id=5) == 0
    assert bench.ask(codec.packet(5, codec.FACTORY_RESET, option)) == (0, b"")
    id, baud = RESET[option]
    assert (node.id, node.get(t.BAUD_RATE), node.torque) == (id, baud, False)
    assert node.table[9:64] == fresh[9:64] and node.table[:7] == fresh[:7]


def test_all_drives_at_once_are_not_reset_with_their_ids() -> None:
    bench = Bench(5, 6)
    for id in (5, 6):
        bench.write(t.MIN_POSITION, 7, id=id)
    assert bench.say(codec.packet(codec.BROADCAST, codec.FACTORY_RESET, b"\xff")) == []
    assert [node.get(t.MIN_POSITION) for node in bench.emulator.nodes] == [7, 7]
    assert bench.say(codec.packet(codec.BROADCAST, codec.FACTORY_RESET, b"\1")) == []
    assert [(node.id, node.get(t.MIN_POSITION)) for node in bench.emulator.nodes] == [(5, 0), (6, 0)]
