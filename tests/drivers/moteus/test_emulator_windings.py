"""Emulated moteus drives that command voltages: currents, speed and field, and how the modes end."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from cosim.drivers.common.motor import Rotor
from cosim.drivers.common.windings import MAGNET_ANGLE, PHASES, POLE_PAIRS, Windings
from cosim.drivers.moteus import registers as reg
from cosim.drivers.moteus.codec import FLOAT, INT8, write
from cosim.drivers.moteus.registers import TORQUE_FACTOR, Mode
from cosim.units import TURN
from tests.drivers.moteus.emulator_bench import Bench
from tests.hardware.emulation_helpers import motor_of

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
