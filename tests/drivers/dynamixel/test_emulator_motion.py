"""Emulated Dynamixel drives: modes, limits, watchdog and faults."""

import math

import pytest

from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.node import FIRMWARE
from tests.drivers.dynamixel.emulator_bench import MODEL, Bench
from tests.kit.clock import MS

AMPERE = 2.69e-3 * 1.783  # N·m per count of the current


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_current_control(bench):
    bench.start(t.CURRENT_MODE, GOAL_CURRENT=-100)
    bench.run(1)
    assert bench.rotor.effort == pytest.approx(-100 * AMPERE)
    bench.run(1)
    assert bench.read(t.PRESENT_CURRENT) == -100
    bench.write(t.GOAL_CURRENT, 1193)
    bench.run(1)
    assert bench.rotor.effort == 2.0  # all that the motor has


def test_velocity_control(bench):
    bench.start(t.VELOCITY_MODE, GOAL_VELOCITY=50)
    bench.run(1500)
    assert bench.read(t.PRESENT_VELOCITY) == 50
    assert bench.rotor.velocity == pytest.approx(50 * 0.229 * 2 * math.pi / 60, rel=0.02)


@pytest.mark.parametrize("mode", [t.POSITION_MODE, t.EXTENDED_MODE, t.CURRENT_POSITION_MODE])
def test_position_control(bench, mode):
    bench.start(mode, GOAL_CURRENT=1193, GOAL_POSITION=1024)
    bench.run(2000)
    assert bench.read(t.PRESENT_POSITION) == pytest.approx(1024, abs=2)
    assert bench.rotor.position == pytest.approx(math.pi / 2, abs=4e-3)


def test_the_goal_current_bounds_the_effort_of_position_control(bench):
    bench.start(t.CURRENT_POSITION_MODE, GOAL_CURRENT=10, GOAL_POSITION=100_000)
    bench.run(1)
    assert bench.rotor.effort == pytest.approx(10 * AMPERE)


def test_pwm_control(bench):
    bench.start(t.PWM_MODE, GOAL_PWM=885)
    bench.run(1)
    assert bench.rotor.effort == pytest.approx(2.0) and bench.read(t.PRESENT_PWM) == 0  # as of the step before
    bench.run(1)
    assert bench.read(t.PRESENT_PWM) == 885


def test_a_change_of_mode_resets_gains_and_goals(bench):
    bench.write(t.POSITION_P, 5)
    bench.write(t.GOAL_CURRENT, 5)
    bench.write(t.OPERATING_MODE, t.VELOCITY_MODE)
    assert bench.reads(t.POSITION_P, t.GOAL_CURRENT, t.GOAL_PWM) == [800, 1193, 885]


def test_a_reversed_drive_counts_and_turns_the_other_way(bench):
    bench.write(t.DRIVE_MODE, t.REVERSE)
    bench.start(t.CURRENT_MODE, GOAL_CURRENT=100)
    bench.run(50)
    assert bench.rotor.position < 0
    assert min(bench.reads(t.PRESENT_POSITION, t.PRESENT_VELOCITY, t.PRESENT_CURRENT)) > 0


def test_whole_turns_are_forgotten_without_power_and_by_clear():
    for forget in (lambda b: b.ask(codec.packet(1, codec.CLEAR, codec.MULTI_TURN)), lambda b: b.emulator.reset(b.t_ns)):
        bench = Bench()
        bench.rotor.position = -4.5 * math.pi
        bench.run(1)
        assert bench.read(t.PRESENT_POSITION) == -1024 - 2 * 4096
        forget(bench)
        bench.run(1)
        assert bench.read(t.PRESENT_POSITION) == 3072


def test_clear_needs_a_standstill(bench):
    bench.rotor.velocity = 3.0
    bench.run(1)
    assert bench.ask(codec.packet(1, codec.CLEAR, codec.MULTI_TURN))[0] == codec.RESULT_FAIL


GOAL = {t.CURRENT_MODE: t.GOAL_CURRENT, t.VELOCITY_MODE: t.GOAL_VELOCITY, t.EXTENDED_MODE: t.GOAL_POSITION}


@pytest.mark.parametrize("mode", GOAL)
def test_bus_watchdog(bench, mode):
    # e-Manual, "Bus Watchdog (98) Example"
    bench.start(mode)
    bench.write(GOAL[mode], 50)
    bench.write(t.BUS_WATCHDOG, 2)
    for ms, feed, seen in ((300, True, 2), (40, False, 2), (41, False, 255)):
        bench.run(ms, feed)
        assert bench.read(t.BUS_WATCHDOG) == seen
    assert bench.read(t.TORQUE_ENABLE) == 1
    assert bench.write(GOAL[mode], 60) == codec.BAD_RANGE
    bench.run(1000)
    assert bench.rotor.effort == 0 if mode == t.CURRENT_MODE else abs(bench.rotor.velocity) < 0.03
    assert bench.write(t.BUS_WATCHDOG, 2) == codec.BAD_RANGE
    assert bench.write(t.BUS_WATCHDOG, 0) == bench.write(GOAL[mode], 60) == 0


def test_the_watchdog_is_off_with_the_torque_and_fed_by_packets_to_its_drive():
    bench = Bench(1, 2)
    bench.write(t.BUS_WATCHDOG, 1)
    bench.run(100)
    assert bench.read(t.BUS_WATCHDOG) == 1
    bench.start(t.CURRENT_MODE)
    for _ in range(30):
        bench.run(1)
        bench.read(t.ID, 2)
    assert bench.read(t.BUS_WATCHDOG) == 255


@pytest.mark.parametrize(
    ("trouble", "bit", "shuts"),
    [
        ({"fault_cause": "overtemperature"}, 0x04, True),
        ({"fault_cause": "overcurrent"}, 0x20, True),
        ({"fault_cause": "undervoltage"}, 0x01, False),
        ({"fault_cause": "encoder"}, 0x08, False),
        ({"temperature": 80.5}, 0x04, True),
        ({"voltage": 9.0}, 0x01, False),
    ],
)
def test_hardware_errors(bench, trouble, bit, shuts):
    bench.start(t.CURRENT_MODE, GOAL_CURRENT=100)
    bench.run(1)
    vars(bench.rotor).update(trouble)
    bench.run(1)
    assert bench.ask(codec.read(1, 70, 1)) == (codec.ALERT, bytes((bit,)))
    assert (bench.rotor.effort == 0) is shuts  # by the shutdown mask as delivered
    vars(bench.rotor).update(fault_cause="", temperature=25.0, voltage=12.0)
    bench.run(1)
    assert bench.read(t.HARDWARE_ERROR) == bit  # it stays
    if shuts:
        assert bench.write(t.TORQUE_ENABLE, 1) == codec.RESULT_FAIL | codec.ALERT
        assert bench.read(t.TORQUE_ENABLE) == 0
    assert bench.ask(codec.packet(1, codec.REBOOT)) == (codec.ALERT, b"")
    assert bench.reads(t.HARDWARE_ERROR, t.TORQUE_ENABLE) == [0, 0]
    assert bench.write(t.TORQUE_ENABLE, 1) == 0


def test_the_eeprom_survives_and_the_rest_does_not(bench):
    bench.write(t.RETURN_DELAY_TIME, 0)
    bench.start(t.VELOCITY_MODE)
    bench.emulator.reset(bench.t_ns)
    registers = (t.RETURN_DELAY_TIME, t.OPERATING_MODE, t.TORQUE_ENABLE, t.GOAL_CURRENT)
    assert bench.reads(*registers) == [0, t.VELOCITY_MODE, 0, 1193]


def test_a_model_without_current():
    bench = Bench(1, model=t.MODELS["XL430-W250"])
    gains, delivered = (t.VELOCITY_I, t.POSITION_D, t.POSITION_P), [1000, 4000, 640]
    assert bench.reads(*gains) == delivered
    for mode in (t.CURRENT_MODE, t.CURRENT_POSITION_MODE):
        assert bench.write(t.OPERATING_MODE, mode) == codec.BAD_RANGE
    assert bench.write(t.GOAL_CURRENT, 1) == codec.NO_ACCESS
    bench.write(t.POSITION_P, 5)
    bench.write(t.OPERATING_MODE, t.PWM_MODE)
    assert bench.reads(*gains) == delivered
    bench.write(t.TORQUE_ENABLE, 1)
    bench.write(t.GOAL_PWM, 177)
    bench.run(2)
    assert bench.read(t.PRESENT_CURRENT) == pytest.approx(1000 * 0.4 / 1.5, abs=2)  # the load, of 1.5 N·m


def test_a_truncated_packet_does_not_damage_the_next(bench):
    ping = codec.packet(1, codec.PING)
    assert bench.say(ping[:6]) == []
    assert len(bench.say(ping)) == 1
    assert bench.say(bytes.fromhex("FFFFFD00 01 FF0F 03")) == []  # announces more than ever comes
    bench.t_ns += 101 * MS
    assert len(bench.say(ping)) == 1


# e-Manual, "Profile": velocity and acceleration -> type of the profile in the moving status, and a way
PROFILES = {
    (0, 0): (0b00, 1500),
    (0, 20): (0b00, 1500),
    (60, 0): (0b01, 1500),
    (60, 20): (0b11, 1500),
    (300, 20): (0b10, 4000),
}
TRAJECTORY = (t.POSITION_TRAJECTORY, t.VELOCITY_TRAJECTORY, t.MOVING_STATUS)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_goal_position_is_reached_on_the_profile(bench, profile):
    (velocity, acceleration), (kind, way) = profile, PROFILES[profile]
    bench.start(t.EXTENDED_MODE, PROFILE_VELOCITY=velocity, PROFILE_ACCELERATION=acceleration, GOAL_POSITION=way)
    rows = []
    while not rows or rows[-1][0] != way:
        bench.run(1)
        rows.append(bench.reads(*TRAJECTORY))
        assert len(rows) < 6000
    seconds, fastest = 1e-3 * len(rows), max(row[1] for row in rows)
    top = velocity * 0.229 / 60 * 4096  # counts/s
    slope = acceleration * 214.577 / 3600 * 4096  # counts/s²
    if kind == 0b00:
        assert seconds < 0.01
        return
    assert {row[2] >> 4 & 3 for row in rows[:-1]} == {kind} and all(row[2] & 2 for row in rows[:-1])
    if kind == 0b10:
        assert seconds == pytest.approx(2.0 * math.sqrt(way / slope), rel=0.01) and fastest < velocity
    else:
        ramp = top / slope if slope else 0.0
        assert seconds == pytest.approx(way / top + ramp, rel=0.01) and fastest == velocity
    bench.run(500)
    assert bench.read(t.MOVING_STATUS) & 2 == 0 and bench.read(t.PRESENT_POSITION) == pytest.approx(way, abs=40)


def test_a_profile_given_as_times_takes_this_time(bench):
    bench.write(t.DRIVE_MODE, t.TIMED_PROFILE)
    # at most half of it is for the acceleration
    bench.start(t.EXTENDED_MODE, PROFILE_VELOCITY=800, PROFILE_ACCELERATION=600, GOAL_POSITION=1000)
    bench.run(400)
    assert bench.read(t.POSITION_TRAJECTORY) == pytest.approx(500, abs=5)
    bench.run(390)
    assert bench.read(t.MOVING_STATUS) & 2
    bench.run(15)
    assert bench.read(t.POSITION_TRAJECTORY) == 1000 and not bench.read(t.MOVING_STATUS) & 2


def test_a_goal_velocity_is_reached_with_the_profile_acceleration(bench):
    bench.start(t.VELOCITY_MODE, PROFILE_ACCELERATION=10, GOAL_VELOCITY=100)
    bench.run(100)
    per_second = 10 * 214.577 / 60 / 0.229
    assert bench.read(t.VELOCITY_TRAJECTORY) == pytest.approx(0.1 * per_second, abs=1)
    bench.run(round(1e3 * 100 / per_second))
    assert bench.read(t.VELOCITY_TRAJECTORY) == 100


def test_a_new_goal_continues_from_the_trajectory(bench):
    bench.start(t.EXTENDED_MODE, PROFILE_VELOCITY=60, PROFILE_ACCELERATION=20, GOAL_POSITION=4000)
    bench.run(600)
    before, moving = bench.reads(*TRAJECTORY[:2])
    bench.write(t.GOAL_POSITION, 0)
    bench.run(1)
    place, velocity = bench.reads(*TRAJECTORY[:2])
    assert moving > 30 and before < place < before + 3 and moving - 5 <= velocity <= moving
    bench.run(3000)
    assert bench.read(t.POSITION_TRAJECTORY) == 0


# --- emulated Dynamixel drives: access to the control table ---


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
