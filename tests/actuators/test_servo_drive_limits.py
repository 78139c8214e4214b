"""The sampled loops of a drive in their limits and behind their encoder, against a simulation by hand."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.linalg import expm

from tests.kit.rigs import controller

R, L, K, B, J = 0.5, 2e-3, 0.05, 2e-4, 4e-4  # of the motor, with the load
RATIO, CURRENT, VOLTAGE, SPEED = 5.0, 6.0, 5.0, 12.0  # limits of A, V, and rad/s of the joint
GAIN, TIME, POSITION_GAIN, RATE = 3.0, 10e-3, 60.0, 2.0 * math.pi * 700.0
RIG = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: disc, joint: axis, axis: [0, 0, 1], mass: 1, inertia: [1, 1, {J * RATIO**2}], damping: {B * RATIO**2}}}
joints:
  axis:
    actuator:
      type: drive
      motor: {{type: dc_machine, resistance: {R}, inductance: {L}, torque_constant: {K}}}
      control: {{bandwidth: 700, current_limit: {CURRENT}, voltage_limit: {VOLTAGE}}}
      gears: [{{ratio: {RATIO}}}]
      loops:
        current: {{rate: 16 kHz}}
        velocity: {{rate: 4 kHz, gain: {GAIN}, integral_time: {TIME}, limit: {SPEED}}}
        position: {{rate: 1 kHz, gain: {POSITION_GAIN}, feedforward: 0.5}}
controllers: [{{type: push.py}}]
schedule: {{step: 1 ms, duration: 0.18 s, integrator: rk4, substeps: 32}}
"""
PUSH = controller("effort = 0.0 * q").replace(
    '"position": rest, "velocity": rest', '"position": rest + 1.5, "velocity": rest + 4.0'
)
LOOPS = "joints.axis.actuator.loops"


class Encoder:
    """By hand: counts of the motor's angle, the speed by differences or by an observer, the index pulse."""

    def __init__(self, cpr: int, observer: float = 0.0, offset: float = 0.0, index: float | None = None) -> None:
        self.size, self.offset, self.index, self.observer = 2.0 * math.pi / cpr, offset, index, observer
        self.angle = self.estimate = self.speed = 0.0
        self.known = index is None

    def sample(self, angle: float, period: float) -> None:
        now = self.size * round(angle / self.size)
        if self.observer:
            pole = math.exp(-2.0 * math.pi * self.observer * period)
            residual = now - (self.estimate + period * self.speed)
            self.estimate += period * self.speed + (1.0 - pole**2) * residual
            self.speed += (1.0 - pole) ** 2 / period * residual
        else:
            self.speed = (now - self.angle) / period
        if self.index is not None:
            turn = 2.0 * math.pi
            self.known |= (now - self.index) // turn != (self.angle - self.index) // turn
        self.angle = now

    @property
    def reading(self) -> float:
        return self.angle + (self.offset if self.known else 0.0)


def clip(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)


def by_hand(setpoint: float, setpoint_velocity: float, encoder: Encoder | None) -> Iterator[tuple[float, ...]]:
    """Every ms: angle, speed and voltage of the motor before the sample, setpoints of velocity and effort of the
    joint."""
    period = 1.0 / 16e3
    flow = np.array([[0, 1, 0, 0], [0, -B / J, K / J, 0], [0, -K / L, -R / L, 1 / L], [0.0] * 4])
    motion, x = expm(flow * period), np.zeros(4)
    velocity = integral = effort = following = total = 0.0
    for k in range(181 * 16):
        if k % 16 == 0:
            yield x[0], x[1], x[3], velocity, effort
        angle, speed, current, _ = x
        if encoder is not None:
            if k % 4 == 0:
                encoder.sample(angle, 4.0 * period)
            angle, speed = encoder.reading, encoder.speed
        if k % 16 == 0:
            error = setpoint - angle / RATIO if encoder is None or encoder.known else 0.0
            velocity = clip(0.5 * setpoint_velocity + POSITION_GAIN * error, SPEED)
        if k % 4 == 0:
            proportional = GAIN * (velocity - speed / RATIO)
            effort = clip(proportional + integral, RATIO * K * CURRENT)
            # with the tracking time TIME: beyond the limit towards effort − proportional
            integral += 4.0 * period / TIME * (effort - integral)
        proportional = RATE * L * (clip(effort / (RATIO * K), CURRENT) - current)
        wanted = proportional + total + K * speed
        given = clip(wanted, VOLTAGE)
        total += period * R / L * (proportional + given - wanted)
        x[3], following = following, given
        x = motion @ x


ENCODERS = {
    "exact": ("null", lambda: None),
    "differences": ("{cpr: 4096}", lambda: Encoder(4096)),
    "an observer": ("{cpr: 4096, velocity: observer, bandwidth: 200}", lambda: Encoder(4096, 200.0)),
    "an index": (
        "{cpr: 65536, offset: 0.4, reference: index, index: 2.5}",
        lambda: Encoder(65536, offset=0.4, index=2.5),
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_the_drive_is_that_by_hand_in_all_its_limits(rig_of, name: str) -> None:
    section, encoder = ENCODERS[name]
    run = rig_of(RIG, f"{LOOPS}.encoder={section}", push=PUSH).run()
    angle, speed, voltage, velocity, effort = np.array(list(by_hand(1.5, 4.0, encoder()))).T
    np.testing.assert_allclose(run["axis/position"], angle / RATIO, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run["axis/velocity"], speed / RATIO, rtol=0, atol=1e-6)
    np.testing.assert_allclose(run["axis/velocity_setpoint"], velocity, rtol=0, atol=1e-6)
    np.testing.assert_allclose(run["axis/effort_setpoint"], effort, rtol=0, atol=1e-5)
    np.testing.assert_allclose(run["axis/voltage"], voltage, rtol=0, atol=1e-4)
    # the limits acted: of velocity, current and voltage
    assert (np.abs(voltage).max(), effort.max()) == (VOLTAGE, pytest.approx(RATIO * K * CURRENT))
    if name == "exact":
        assert velocity.max() == SPEED


def test_the_index_pulse_closes_the_position_loop(rig_of) -> None:
    """Until then the drive follows the setpoint of the velocity; the offset belongs to the angle it then knows."""
    section = ENCODERS["an index"][0]
    run = rig_of(RIG, f"{LOOPS}.encoder={section}", "schedule.duration=0.6", push=PUSH).run()
    known = run["axis/referenced"] > 0.5
    first = int(np.flatnonzero(known)[0])
    assert RATIO * run["axis/position"][first] == pytest.approx(2.5, abs=0.15)
    assert (run["axis/velocity_setpoint"][1:first] == 2.0).all() and known[first:].all()
    np.testing.assert_allclose(run["axis/measured_position"][:first], run["axis/position"][:first], atol=0.015)
    # at rest 1.5 + g v / K_p by its own reading
    assert run["axis/measured_position"][-1] == pytest.approx(1.5 + 2.0 / POSITION_GAIN, abs=3e-3)
    assert run["axis/position"][-1] == pytest.approx(1.5 + 2.0 / POSITION_GAIN - 0.4 / RATIO, abs=3e-3)


def test_behind_an_elastic_gear_the_drive_knows_the_angle_of_its_motor(rig_of) -> None:
    """At rest the motor is at its setpoint and the joint hangs by the twist of the mesh, M / (k ratio²)."""
    settings = (
        "mechanism.gravity=[0, -9.81, 0]",
        "mechanism.bodies[0].com=[0.05, 0, 0]",
        f"mechanism.bodies[0].damping={20 * B * RATIO**2}",
        "joints.axis.actuator.gears=[{ratio: 5, stiffness: 6, damping: 0.01}]",
        "joints.axis.actuator.motor.inertia=1e-4",
        f"{LOOPS}.velocity.gain=0.4",
        f"{LOOPS}.velocity.integral_time=40 ms",
        f"{LOOPS}.position.gain=10",
        f"{LOOPS}.encoder={{}}",
        "schedule.integrator=rodas4",
        "schedule.duration=1.5 s",
        "schedule.substeps=16",
    )
    run = rig_of(RIG, *settings, push=controller("effort = 0.0 * q")).run()
    assert np.abs(run["axis/measured_position"][-1]) < 1e-4 < np.ptp(run["axis/measured_position"])
    twist = 1.0 * 9.81 * 0.05 / (6.0 * RATIO**2)
    assert run["axis/position"][-1] == pytest.approx(-twist, rel=0.02)
    # the state of the angle is the integral of the speed of the motor
    speed, step = run["axis/motor_speed"] / RATIO, 1e-3
    found = np.cumsum(0.5 * (speed[1:] + speed[:-1]) * step)
    # sampled up to 0.25 ms before
    slack = 0.3e-3 * np.abs(speed).max() + 1e-5
    assert np.abs(found - run["axis/measured_position"][1:]).max() < slack
    assert run.summary["energy"]["residual_relative"] == pytest.approx(0.0, abs=1e-6)
