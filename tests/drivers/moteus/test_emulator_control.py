"""Emulated moteus drives: modes, control loop, watchdog and faults."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.common.trajectory import advance
from cosim.plugins.drivers.common.windings import MAGNET_ANGLE, PHASES, POLE_PAIRS, Windings
from cosim.plugins.drivers.moteus import registers as reg
from cosim.plugins.drivers.moteus.codec import FLOAT, INT8, INT16, STOP, write
from cosim.plugins.drivers.moteus.registers import TORQUE_FACTOR, Mode
from tests.drivers.moteus.emulator_bench import ON, POSITION, Bench
from tests.hardware.emulation_helpers import motor_of


def test_starting_up_takes_its_time(device: Bench) -> None:
    modes = []
    device.tell(ON)
    for _ in range(15):
        modes.append(device.servo.mode)
        device.run(1)
    assert modes == sorted(modes) and set(modes) >= {Mode.ENABLING, Mode.CALIBRATING} and modes.count(3) == 9
    assert device.get(reg.MODE, INT8) == Mode.POSITION


def test_modes_that_cannot_be_commanded(device: Bench) -> None:
    for mode in (*range(1, 5), 16, 100, -1):
        device.tell(write(reg.MODE, INT8, [mode]))
        device.run(20)
        assert device.servo.mode == Mode.STOPPED, mode


def test_position_mode_follows_the_control_law(device: Bench) -> None:
    device.start(write(0x020, FLOAT, [0.1, 0.0, 0.25, 0.5, 2.0]) + write(0x028, INT8, [-1, -1]))
    assert device.servo.config["servo.pid_position.kp"] == 4.0
    position, velocity = device.rotor.position / TURN, device.rotor.velocity / TURN
    device.emulator.process(device.t_ns)
    assert device.rotor.effort == pytest.approx(4.0 * 0.5 * (0.1 - position) + 0.05 * 2.0 * (0.0 - velocity) + 0.25)
    assert device.get(0x030) == pytest.approx(4.0 * 0.5 * (0.1 - position), rel=1e-6)
    assert device.get(0x03B) == pytest.approx(position - 0.1, rel=1e-5)
    assert device.get(0x03A) == pytest.approx(device.rotor.effort) and device.get(0x038) == pytest.approx(0.1)


def test_integral(device: Bench) -> None:
    device.servo.config |= {"servo.pid_position.ki": 100.0, "servo.pid_position.ilimit": 0.5}
    device.start(write(0x020, FLOAT, [1.0]) + write(0x023, INT8, [0, 0]) + write(0x028, INT8, [-1, -1]))
    device.run(50)
    assert device.get(0x031) == pytest.approx(0.5) and device.rotor.effort == pytest.approx(0.5)


def test_effort_saturates(device: Bench) -> None:
    device.start(write(0x020, FLOAT, [math.nan, 0.0, 1.0, 0.0, 0.0, 0.5]))
    device.run(2)
    assert device.rotor.effort == pytest.approx(0.5) and device.get(reg.FAULT, INT8) == 102
    device.tell(ON + write(0x020, FLOAT, [math.nan, 0.0, 5.0, 0.0, 0.0]))
    device.run(2)
    assert device.rotor.effort == pytest.approx(2.0) and device.get(reg.FAULT, INT8) == 99
    assert device.get(reg.Q_CURRENT) == pytest.approx(20.0) and device.get(reg.TORQUE, INT16) in (199, 200)


def test_no_torque_beyond_the_largest_velocity(device: Bench) -> None:
    device.servo.config["servo.max_velocity"] = 1.0
    device.start(write(0x020, FLOAT, [math.nan, 0.0, 1.0, 0.0, 0.0]))
    device.run(300)
    assert 1.0 < device.get(reg.VELOCITY) < 3.0 and device.get(reg.FAULT, INT8) == 96


def test_trajectories_are_limited(device: Bench) -> None:
    device.servo.config |= {"servo.pid_position.kp": 50.0, "servo.pid_position.kd": 1.0}
    device.start(write(0x020, FLOAT, [1.0]) + write(0x028, FLOAT, [2.0, 10.0]))
    fastest, arrived = 0.0, None
    for ms in range(1500):
        device.run(1)
        fastest = max(fastest, device.get(0x039))
        if arrived is None and device.get(reg.TRAJECTORY_COMPLETE, INT8):
            arrived = ms
    assert fastest == pytest.approx(2.0)
    assert arrived is not None and arrived + 4 == pytest.approx(1000.0 * (1.0 / 2.0 + 2.0 / 10.0), abs=10)
    assert device.get(reg.POSITION) == pytest.approx(1.0, abs=1e-3)


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


@pytest.mark.parametrize("mode", [Mode.ZERO_VELOCITY, Mode.BRAKE])
def test_zero_velocity_and_brake_damp(device: Bench, mode: Mode) -> None:
    device.rotor.velocity = 5.0
    device.tell(write(reg.MODE, INT8, [mode]))
    device.run(15)
    assert device.servo.mode == mode and device.rotor.effort < 0 < device.rotor.velocity < 5.0
    device.tell(STOP[:3])
    assert device.rotor.effort == 0.0


def test_current_mode(device: Bench) -> None:
    device.tell(write(reg.MODE, INT8, [Mode.CURRENT]) + write(reg.COMMAND_Q_CURRENT, FLOAT, [3.0, 0.0]))
    device.run(15)
    assert device.rotor.effort == pytest.approx(0.3)
    device.run(200)
    assert device.servo.mode == Mode.CURRENT, "the watchdog acts in position and within modes only"


def test_stay_within(device: Bench) -> None:
    within = write(reg.MODE, INT8, [Mode.STAY_WITHIN]) + write(0x046, FLOAT, [math.nan])
    device.tell(within + write(0x040, FLOAT, [-0.1, 0.1, 0.02]))
    device.run(15)
    assert device.rotor.effort == pytest.approx(0.02)
    device.rotor.position, device.rotor.velocity = 0.2 * TURN, 0.0
    device.emulator.process(device.t_ns)
    assert device.rotor.effort == pytest.approx(-4.0 * 0.1 + 0.02)


def test_the_watchdog_is_100_ms_by_default(device: Bench) -> None:
    device.rotor.velocity = 3.0
    device.tell(POSITION + write(0x020, FLOAT, [math.nan, 0.0, 0.5, 0.0]))
    device.run(99)
    assert device.servo.mode == Mode.POSITION and device.rotor.effort > 0.2
    device.run(1)
    assert device.servo.mode == Mode.TIMEOUT and device.rotor.effort < 0.0 < device.rotor.velocity  # damped
    device.tell(ON)
    device.run(20)
    assert device.servo.mode == Mode.TIMEOUT, "only stopping ends it"
    device.tell(STOP)
    device.tell(ON)
    device.run(20)
    assert device.servo.mode == Mode.POSITION


@pytest.mark.parametrize(("timeout_mode", "still"), [(0, False), (10, True), (12, False), (13, False), (15, False)])
def test_the_reaction_to_a_time_out_is_configured(device: Bench, timeout_mode: int, still: bool) -> None:
    device.servo.config["servo.timeout_mode"] = timeout_mode
    device.tell(POSITION)
    device.run(120)
    assert device.servo.mode == Mode.TIMEOUT
    device.rotor.position += 0.5
    device.run(1)
    assert (device.rotor.effort < -0.1) == still


CAUSES = {"overtemperature": 38, "overcurrent": 33, "undervoltage": 40, "encoder": 35}
TROUBLE = {
    **{cause: ({"fault_cause": cause}, code) for cause, code in CAUSES.items()},
    "hot": ({"temperature": 81.0}, 38),
    "low voltage": ({"voltage": 3.9}, 40),
    "high voltage": ({"voltage": 46.5}, 34),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_faults_last_until_the_drive_is_stopped(device: Bench, trouble: str) -> None:
    changes, code = TROUBLE[trouble]
    device.start(write(0x020, FLOAT, [math.nan, 0.0, 0.5]))
    vars(device.rotor).update(changes)
    device.run(1)
    assert (device.get(reg.MODE, INT8), device.get(reg.FAULT, INT8), device.rotor.effort) == (Mode.FAULT, code, 0.0)
    vars(device.rotor).update(fault_cause="", temperature=25.0, voltage=24.0)
    device.tell(ON)
    device.run(30)
    assert device.servo.mode == Mode.FAULT
    device.tell(STOP)
    assert (device.get(reg.MODE, INT8), device.get(reg.FAULT, INT8)) == (Mode.STOPPED, 0)


def test_a_stopped_drive_has_no_faults(device: Bench) -> None:
    device.rotor.fault_cause = "overcurrent"
    device.run(5)
    assert device.servo.mode == Mode.STOPPED and device.servo.fault == 0


def test_starting_outside_the_bounds(device: Bench) -> None:
    device.servo.config["servopos.position_max"] = -0.5
    device.tell(ON)
    device.run(20)
    assert device.servo.fault == 39
    device.tell(STOP)
    device.tell(ON + write(0x02D, INT8, [1]))
    device.run(20)
    assert device.servo.mode == Mode.POSITION


def test_bounds_hold_the_control_position(device: Bench) -> None:
    device.servo.config |= {"servopos.position_min": -0.1, "servopos.position_max": 0.1}
    device.start(write(0x020, FLOAT, [0.4, 0.2]))
    device.run(200)
    assert device.get(0x038) == pytest.approx(0.1) and device.get(0x039) == 0.0


def test_torque_that_leads_out_of_the_bounds_fades(device: Bench) -> None:
    device.start(write(0x020, FLOAT, [math.nan, 0.0, 1.0, 0.0, 0.0]))
    device.servo.config["servopos.position_max"] = 0.1
    for over, effort, code in ((-0.001, 1.0, 0), (0.01, 0.5, 103), (0.02, 0.0, 103), (0.5, 0.0, 103)):
        device.rotor.position, device.rotor.velocity = (0.1 + over) * TURN, 0.0
        device.emulator.process(device.t_ns)
        assert device.rotor.effort == pytest.approx(effort, abs=1e-9) and device.servo.fault == code


def test_recapturing_goes_on_from_where_the_motor_is(device: Bench) -> None:
    device.start(write(0x020, FLOAT, [math.nan]))
    device.rotor.position = 0.2
    device.emulator.process(device.t_ns)
    assert device.rotor.effort < -0.1
    device.tell(write(reg.RECAPTURE, INT8, [1]))
    device.emulator.process(device.t_ns)
    assert device.rotor.effort == pytest.approx(0.0, abs=1e-9)


def test_a_stop_position_needs_free_trajectories(device: Bench) -> None:
    device.tell(ON + write(0x026, FLOAT, [0.1]))
    assert device.servo.fault == 45


def test_power_cycle(device: Bench) -> None:
    device.say("conf set servo.pid_position.kp 7")
    device.say("conf write")
    device.say("conf set servo.pid_position.kp 9")
    device.start(write(0x020, FLOAT, [math.nan, 0.0, 0.5]))
    device.emulator.reset(device.t_ns)
    assert device.rotor.effort == 0.0 and device.servo.mode == Mode.STOPPED
    assert device.servo.config["servo.pid_position.kp"] == 7.0
    device.run(20)
    assert device.rotor.effort == 0.0


# --- emulated moteus drives that command voltages: currents, speed and field, and how the modes end ---

RESISTANCE, INDUCTANCE = 0.3, 3e-4  # as of a DC motor


class Motor(Rotor):
    """A rotor with windings."""

    resistance, inductance = RESISTANCE, INDUCTANCE

    def __init__(self) -> None:
        super().__init__(inertia=2e-4, friction=2e-4)


@pytest.fixture
def wound() -> Bench:
    return Bench(Motor)


def mean_current(bench: Bench) -> complex:
    samples = []
    for _ in range(50):
        bench.run(1)
        samples.append(bench.servo.dq_current())
    return sum(samples) / len(samples)


def test_a_fixed_field_turns_the_magnet_to_it(wound: Bench) -> None:
    assert wound.say("d pwm 1.5 0.4") == "OK\r\n"
    wound.run(1500)
    angle = POLE_PAIRS * wound.rotor.position + MAGNET_ANGLE
    assert wound.servo.mode == Mode.VOLTAGE_FOC
    assert math.remainder(angle - 1.5, math.tau) == pytest.approx(0.0, abs=1e-3)
    assert abs(mean_current(wound)) == pytest.approx(0.4 / (RESISTANCE / PHASES), rel=0.02)
    assert wound.get(reg.D_CURRENT) == pytest.approx(2.0, abs=0.25)


def test_the_field_turns_at_the_commanded_rate(wound: Bench) -> None:
    wound.say(f"d pwm 0 0.4 {math.tau}")
    wound.run(1000)
    assert wound.rotor.velocity == pytest.approx(math.tau / POLE_PAIRS, rel=0.1)


def test_the_speed_at_a_voltage_is_that_of_the_back_emf(wound: Bench) -> None:
    wound.say("d vdq 0 2")
    wound.run(3000)
    volts_per_hz = TURN * wound.rotor.torque_constant / PHASES
    assert wound.get(reg.VELOCITY) == pytest.approx(2.0 / volts_per_hz, rel=0.02)
    assert 60.0 / math.sqrt(3.0) / volts_per_hz == pytest.approx(TORQUE_FACTOR / wound.rotor.torque_constant)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_sum_of_current_changes_gives_the_inductance(wound: Bench, axis: int) -> None:
    wound.say("d pos nan 0 nan o0.4 b1")
    wound.run(1000)
    assert wound.say(f"d ind 0.5 4 o0.4 q{axis}") == "OK\r\n"
    wound.run(1000)
    assert wound.servo.mode == Mode.MEASURE_INDUCTANCE
    assert 0.5 / wound.servo.inductance.sum == pytest.approx(INDUCTANCE / PHASES, rel=0.01)


def test_a_jump_of_the_encoder_leaves_the_magnet_where_it_is() -> None:
    motor = motor_of(resistance=RESISTANCE, inductance=INDUCTANCE, shaft_position=0.1, position=0.1)
    windings = Windings(motor)
    torque = windings.impose(2.0, 1e-3)
    motor.position += 0.3
    assert windings.impose(2.0, 1e-3) == torque != 0.0


def test_braking_is_that_of_closed_windings(wound: Bench) -> None:
    wound.say("d brake")
    wound.run(20)
    wound.rotor.velocity = 10.0
    wound.emulator.process(wound.t_ns)
    braking = wound.rotor.effort
    shorted, constant = Windings(wound.rotor), wound.rotor.torque_constant
    torque = [shorted.apply(0.0, 0.0, 1e-3) for _ in range(20)][-1]
    assert braking == pytest.approx(-(constant**2) * 10.0 / RESISTANCE)
    assert torque == pytest.approx(braking, rel=0.01)


def test_energy_of_the_windings() -> None:
    """With the shaft turned at a constant speed: supplied = lost in the resistance + mechanical + change of stored."""
    motor = Motor()
    motor.velocity = 40.0
    windings, step, voltage, rate = Windings(motor), 1e-5, 2.0 + 1.0j, POLE_PAIRS * 40.0
    supplied = spent = 0.0
    for _ in range(2000):
        torque = windings.apply(voltage, rate, step)
        middle = 0.5 * (windings.current + windings.next)
        along = voltage * complex(math.cos(0.5 * rate * step), math.sin(0.5 * rate * step))
        supplied += PHASES * (along * middle.conjugate()).real * step
        spent += (motor.resistance * abs(middle) ** 2 + torque * motor.velocity) * step
        voltage *= complex(math.cos(rate * step), math.sin(rate * step))
        motor.position += step * motor.velocity
    assert supplied == pytest.approx(spent + 0.5 * INDUCTANCE * abs(windings.next) ** 2, rel=1e-3)


def test_the_voltage_is_within_that_of_the_supply(wound: Bench) -> None:
    wound.say("d pwm 0 1e9")
    wound.run(30)
    assert abs(wound.servo.dq_current()) < 1.1 * 24.0 / math.sqrt(3.0) / (RESISTANCE / PHASES)


def test_numbers_that_are_none_give_no_torque(wound: Bench) -> None:
    for line in ("d pwm inf nan inf", "d vdq nan inf", "d ind nan 3 oinf", "d pos nan nan nan cinf"):
        wound.say(line)
        wound.run(30)
        assert wound.rotor.effort == 0.0 and wound.rotor.position == 0.0, line


# how it ends -> what happens, and the mode afterwards
ENDS: dict[str, tuple[Callable[[Bench], object], int]] = {
    "stop": (lambda bench: bench.say("d stop"), 0),
    "fault": (lambda bench: setattr(bench.rotor, "fault_cause", "overcurrent"), 1),
    "no angle": (lambda bench: setattr(bench.rotor, "position", math.nan), 1),
    "power off": (lambda bench: bench.emulator.reset(bench.t_ns), 0),
}


@pytest.mark.parametrize("line", ["pwm 0 0.4", "vdq 0 2", "ind 0.4 3 o0.4", "pos nan 0 nan c2", "cal 0.4", "cali i2"])
@pytest.mark.parametrize("end", ENDS)
def test_the_motor_is_off_at_the_end(wound: Bench, line: str, end: str) -> None:
    wound.say(f"d {line}")
    wound.run(100)
    assert wound.servo.windings and wound.servo.windings.current
    action, mode = ENDS[end]
    action(wound)
    wound.run(2)
    assert wound.servo.mode == mode and wound.rotor.effort == 0.0 and wound.servo.windings.current == 0.0
    wound.run(20)
    assert wound.servo.mode == mode and wound.servo.sweep is None


def test_another_command_ends_a_sweep(wound: Bench) -> None:
    wound.say("d cal 0.4")
    wound.run(50)
    wound.tell(write(reg.MODE, INT8, [Mode.STOPPED]))
    wound.run(20)
    assert wound.servo.mode == Mode.STOPPED and wound.servo.sweep is None


def test_a_sweep_that_a_fault_ends_says_so(wound: Bench) -> None:
    assert wound.say("d cal 0.4 s2") == "CAL start 2\r\n"
    wound.run(25)
    wound.rotor.fault_cause = "overcurrent"
    wound.run(2)
    assert wound.say("").endswith("CAL fault\r\n")


def test_a_sweep_without_a_turn_of_the_encoder_ends_in_time(wound: Bench) -> None:
    wound.say("d cal 0 s100")
    wound.run(2001)
    assert wound.servo.sweep is None and wound.servo.mode == Mode.STOPPED
    assert wound.servo.outbox.endswith(b"CAL timeout\r\n")


REFUSED = (
    *("d pwm 1", "d vdq 1", "d ind 1 0", "d ind 1 128", "d ind 1 nan", "d cal", "d cal x", "d cal 1 i2", "d cali s"),
    "conf set motor.phase_invert 1",
)


def test_what_the_console_refuses(wound: Bench, said: Any) -> None:
    said(f"{line}: {wound.say(line).strip()}" for line in REFUSED)
    assert wound.servo.mode == Mode.STOPPED and wound.servo.sweep is None


def test_a_motor_without_windings_is_refused(device: Bench) -> None:
    for line in ("pwm 0 1", "vdq 0 1", "ind 1 3", "cal 1", "cali i1"):
        assert device.say(f"d {line}") == "ERR motor not configured\r\n"
    device.tell(write(reg.MODE, INT8, [Mode.VOLTAGE_DQ]) + write(0x01B, FLOAT, [1.0]))
    device.run(30)
    assert device.rotor.effort == 0.0
