"""Emulated Dynamixel drives: modes, limits, watchdog and faults."""

import math
from collections.abc import Callable

import pytest

from cosim.drivers.common.motor import Rotor
from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel import tables as t
from tests.drivers.dynamixel.emulator_bench import Bench
from tests.kit.clock import MS

CUT_LONG = bytes.fromhex("FFFFFD00 01 FF0F 03")  # announces more than ever comes


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


def test_the_watchdog_is_off_with_the_torque_and_fed_by_packets_to_its_drive() -> None:
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


def test_a_truncated_packet_does_not_damage_the_next() -> None:
    bench = Bench(1)
    ping = codec.packet(1, codec.PING)
    assert bench.say(ping[:6]) == []
    assert len(bench.say(ping)) == 1
    assert bench.say(CUT_LONG) == []
    bench.t_ns += 101 * MS
    assert len(bench.say(ping)) == 1


# e-Manual, "Profile": velocity and acceleration -> type of the profile in the moving status
PROFILES = {(0, 0): 0b00, (0, 20): 0b00, (60, 0): 0b01, (60, 20): 0b11, (300, 20): 0b10}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_goal_position_is_reached_on_the_profile(profile: tuple[int, int]) -> None:
    velocity, acceleration = profile
    bench = Bench(1)
    bench.start(t.EXTENDED_MODE)
    bench.write(t.PROFILE_VELOCITY, velocity)
    bench.write(t.PROFILE_ACCELERATION, acceleration)
    bench.write(t.GOAL_POSITION, 4000)
    rows = []
    for _ in range(6000):
        bench.run(1)
        rows.append((bench.read(t.POSITION_TRAJECTORY), bench.read(t.VELOCITY_TRAJECTORY), bench.read(t.MOVING_STATUS)))
        if rows[-1][0] == 4000:
            break
    seconds, fastest = 1e-3 * len(rows), max(row[1] for row in rows)
    top = velocity * 0.229 / 60 * 4096  # counts/s
    slope = acceleration * 214.577 / 3600 * 4096  # counts/s²
    kind = PROFILES[profile]
    if kind == 0b00:
        assert seconds < 0.01
        return
    assert {row[2] >> 4 & 3 for row in rows[:-1]} == {kind} and all(row[2] & 2 for row in rows[:-1])
    if kind == 0b10:
        assert seconds == pytest.approx(2.0 * math.sqrt(4000 / slope), rel=0.01) and fastest < velocity
    else:
        ramp = top / slope if slope else 0.0
        assert seconds == pytest.approx(4000 / top + ramp, rel=0.01) and fastest == velocity
    bench.run(500)
    assert bench.read(t.MOVING_STATUS) & 2 == 0 and bench.read(t.PRESENT_POSITION) == pytest.approx(4000, abs=40)


def test_a_profile_given_as_times_takes_this_time() -> None:
    bench = Bench(1)
    bench.write(t.DRIVE_MODE, t.TIMED_PROFILE)
    bench.start(t.EXTENDED_MODE)
    bench.write(t.PROFILE_VELOCITY, 800)
    bench.write(t.PROFILE_ACCELERATION, 600)  # at most half of it counts
    bench.write(t.GOAL_POSITION, 1000)
    bench.run(400)
    assert bench.read(t.POSITION_TRAJECTORY) == pytest.approx(500, abs=5)
    bench.run(390)
    assert bench.read(t.MOVING_STATUS) & 2
    bench.run(15)
    assert bench.read(t.POSITION_TRAJECTORY) == 1000 and not bench.read(t.MOVING_STATUS) & 2


def test_a_goal_velocity_is_reached_with_the_profile_acceleration() -> None:
    bench = Bench(1)
    bench.start(t.VELOCITY_MODE)
    bench.write(t.PROFILE_ACCELERATION, 10)
    bench.write(t.GOAL_VELOCITY, 100)
    bench.run(100)
    per_second = 10 * 214.577 / 60 / 0.229
    assert bench.read(t.VELOCITY_TRAJECTORY) == pytest.approx(0.1 * per_second, abs=1)
    bench.run(round(1e3 * 100 / per_second))
    assert bench.read(t.VELOCITY_TRAJECTORY) == 100


def test_a_new_goal_continues_from_the_trajectory() -> None:
    bench = Bench(1)
    bench.start(t.EXTENDED_MODE)
    bench.write(t.PROFILE_VELOCITY, 60)
    bench.write(t.PROFILE_ACCELERATION, 20)
    bench.write(t.GOAL_POSITION, 4000)
    bench.run(600)
    before, moving = bench.read(t.POSITION_TRAJECTORY), bench.read(t.VELOCITY_TRAJECTORY)
    bench.write(t.GOAL_POSITION, 0)
    bench.run(1)
    assert moving > 30 and before < bench.read(t.POSITION_TRAJECTORY) < before + 3
    assert moving - 5 <= bench.read(t.VELOCITY_TRAJECTORY) <= moving
    bench.run(3000)
    assert bench.read(t.POSITION_TRAJECTORY) == 0
