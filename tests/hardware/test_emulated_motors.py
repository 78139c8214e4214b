"""Emulated motors: units of the drive, limits, temperature."""

import math

import numpy as np
import pytest

from cosim.execution.hardware.emulation.motors import EmulatedMotors
from tests.hardware.emulation_helpers import Plant, motor_of, wired


@pytest.mark.parametrize("scale", [1.0, -1.0, 9.0, -0.25])
def test_a_motor_measures_its_joint_through_direction_ratio_and_zero(scale):
    plant, motor = Plant(), motor_of()
    motors = EmulatedMotors(plant, [motor], [wired(1, scale, 0.3)], 1e-3)
    for values, value in zip(plant.sample, (0.7, -2.0, 1.5), strict=True):
        values[1] = value
    motor.request(0.1)
    motors.measure()
    seen = (motor.position, motor.velocity, motor.effort, motor.current)
    assert seen == pytest.approx((scale * 0.4, scale * -2.0, 1.5 / scale, 1.5 / scale / 0.5))
    assert motor.velocity * motor.effort == pytest.approx(-3.0)  # power is the same on both sides
    motor.request(1.2)
    motors.write_requests()
    assert plant.requested.tolist() == [0.0, pytest.approx(1.2 * scale)]
    assert motors.scale_of(motor) == scale


def test_an_encoder_that_jumped_stays_off():
    plant, motor = Plant(), motor_of(jump=0.5)
    EmulatedMotors(plant, [motor], [wired(0, 2.0)], 1e-3).measure()
    assert motor.position == 0.5


def test_a_frozen_encoder_keeps_its_position_and_a_blind_one_has_none():
    plant, motor = Plant(), motor_of()
    motors = EmulatedMotors(plant, [motor], [wired(0, 2.0)], 1e-3)
    plant.sample[0][0], plant.sample[1][0] = 0.25, 1.0
    motors.measure()
    motor.frozen, plant.sample[0][0] = True, 0.5
    motors.measure()
    assert (motor.position, motor.velocity) == (0.5, 0.0)
    motor.frozen, motor.blind = False, True
    motors.measure()
    assert math.isnan(motor.position) and math.isnan(motor.velocity)
    motor.blind = False
    motors.measure()
    assert (motor.position, motor.velocity) == (1.0, 2.0)


def test_the_noise_of_an_encoder_has_its_standard_deviation_and_is_reproducible():
    rows = []
    for seed in (1, 1, 2):
        plant, motor = Plant(), motor_of(noise=0.02)
        motors = EmulatedMotors(plant, [motor], [wired(0, 2.0)], 1e-3, seed)
        plant.sample[0][0], plant.sample[1][0] = 0.25, 1.0
        rows.append([(motors.measure(), motor.position)[1] for _ in range(2000)])
        assert motor.velocity == 2.0
    assert rows[0] == rows[1] != rows[2]
    assert np.mean(rows[0]) == pytest.approx(0.5, abs=2e-3) and np.std(rows[0]) == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize(
    ("asked", "given"), [(1.0, 1.0), (2.5, 2.0), (-9.0, -2.0), (math.inf, 2.0), (-math.inf, -2.0), (math.nan, 0.0)]
)
def test_requested_efforts_are_clipped_to_the_limit_of_the_motor(asked, given):
    motor = motor_of()
    motor.request(1.0)
    motor.request(asked)
    assert motor.requested == given


@pytest.mark.parametrize("fraction", [0.0, 0.5, -1.0])
def test_a_motor_warms_up_by_the_square_of_its_effort(fraction):
    """τ dT/dt = ambient + temperature_rise · fraction² − T: 63 % of the rise after one time constant."""
    plant, motor = Plant(), motor_of()
    motors = EmulatedMotors(
        plant, [motor], [wired(0, 2.0, ambient=25.0, temperature_rise=40.0, thermal_time_constant=1.0)], 1e-3
    )
    plant.sample[2][0] = fraction * 2.0 * 2.0
    motor.request(fraction)
    for _ in range(1000):
        motors.measure()
    end = 25.0 + 40.0 * fraction * fraction
    assert motor.temperature == pytest.approx(25.0 + (1.0 - math.exp(-1.0)) * (end - 25.0), abs=0.02)
    for _ in range(14_000):
        motors.measure()
    assert motor.temperature == pytest.approx(end, abs=1e-3)
    assert motors.value(0, "temperature") == motor.temperature


def test_signals_of_conditions_are_those_of_the_joint():
    plant = Plant()
    motors = EmulatedMotors(plant, [motor_of(), motor_of(temperature=60.0)], [wired(1, -9.0), wired(0, 2.0, 0.4)], 1e-3)
    for k, values in enumerate(plant.sample):
        values[:] = 10.0 * k + 1.0, 10.0 * k + 2.0
    assert [motors.value(j, "effort") for j in (0, 1)] == [0.0, 0.0]  # they are off
    for motor in motors.motors:
        motor.request(0.1)
    motors.measure()
    found = [[motors.value(j, what) for what in ("position", "velocity", "effort", "temperature")] for j in (0, 1)]
    assert [row[:3] for row in found] == [[1.0, 11.0, 21.0], [2.0, 12.0, 22.0]]
    assert [row[3] for row in found] == pytest.approx([60.0, 25.0], abs=0.1)


def test_a_drifting_encoder_is_off_by_the_rate_times_the_time():
    plant, motor = Plant(), motor_of()
    motors = EmulatedMotors(plant, [motor], [wired()], 1e-3)
    plant.sample[0][0], plant.sample[1][0] = 0.5, 2.0
    motor.drift_rate = 0.3
    for _ in range(1000):
        motors.measure()
    assert motor.position == pytest.approx(0.5 + 0.3) and motor.velocity == 2.3
    assert (motor.shaft_position, motor.shaft_velocity) == (0.5, 2.0)


def test_a_motor_has_less_effort_at_speed_when_its_supply_sags():
    """A DC motor: torque K (U − K ω) / R."""
    motor = motor_of(max_effort=100.0, resistance=2.0, undervoltage=5.0)
    motor.shaft_velocity = 8.0
    motor.request(50.0)
    assert motor.requested == 50.0
    motor.set_faults(0.5, -math.inf, "")
    motor.request(50.0)
    assert motor.voltage == 12.0 and motor.requested == pytest.approx(0.5 * (12.0 - 0.5 * 8.0) / 2.0)
    assert motor.fault_cause == ""
    motor.set_faults(0.2, -math.inf, "")
    assert motor.fault_cause == "undervoltage"
    motor.set_faults(1.0, -math.inf, "")
    motor.request(50.0)
    assert (motor.voltage, motor.requested, motor.fault_cause) == (24.0, 50.0, "")


def test_a_hot_winding_is_hot_and_has_the_resistance_of_hot_copper():
    """IEC 60034-1: R ∝ 235 °C + T."""
    plant, motor = Plant(), motor_of(resistance=2.0)
    motors = EmulatedMotors(plant, [motor], [wired(thermal_time_constant=0.01)], 1e-3)
    motor.set_faults(1.0, 135.0, "")
    motors.measure()
    assert motor.temperature == 135.0 and motor.resistance == pytest.approx(2.0 * (235.0 + 135.0) / (235.0 + 25.0))
    motor.set_faults(1.0, -math.inf, "")
    for _ in range(100):
        motors.measure()
    assert motor.temperature == pytest.approx(25.0, abs=0.1) and motor.resistance == 2.0
