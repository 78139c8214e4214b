"""The cascade of a drive on numbers, against the formulas; and in the coordinates of an emulated drive."""

import math

import numpy as np
import pytest

from cosim.core.servo import brake, cascade, encoder
from cosim.core.servo.brake import HoldingBrake
from cosim.core.servo.cascade import (
    CurrentLoop,
    DriveLimits,
    Measured,
    PositionLoop,
    ServoLoops,
    Setpoints,
    VelocityLoop,
    next_integral,
)
from cosim.core.servo.commanded import CommandedLoops
from cosim.core.servo.encoder import ShaftEncoder
from cosim.core.types import BRAKE

VELOCITY = VelocityLoop(gain=2.0, integral_time=0.01, limit=3.0, rate=1000.0)  # T / T_i = 0.1
POSITION = PositionLoop(gain=5.0, feedforward=0.5, rate=500.0)
LOOPS = ServoLoops(velocity=VELOCITY, position=POSITION)
START = {"velocity_setpoint": 0.25, "integral": 0.75, "effort_setpoint": -1.0}


GIVEN = {"mode": "position", "measured": (0.1, 0.2, 1.0), "limits": (math.inf, math.inf), "due": (True, True)}
# what is given beside that -> setpoint of the velocity, integral, setpoint of the effort
SAMPLES = {
    # v* = 0.5 · 0.4 + 5 (0.3 − 0.1) = 1.2; M = 2 (1.2 − 0.2) + 0.75 + 0.6; I' = 0.75 + 0.1 · 2
    "position": ({}, [1.2, 0.95, 3.35]),
    # the velocity itself; M = 2 (0.4 − 0.2) + 0.75 + 0.6; I' = 0.75 + 0.1 · 0.4
    "velocity": ({"mode": "velocity"}, [0.4, 0.79, 1.75]),
    "effort": ({"mode": "effort"}, [0.0, 0.0, 0.6]),
    # the velocity loop follows the held setpoint: M = 2 (0.25 − 0.2) + 0.75 + 0.6
    "position not due": ({"due": (False, True)}, [0.25, 0.76, 1.45]),
    "nothing due": ({"due": (False, False)}, list(START.values())),
    "velocity not due": ({"mode": "velocity", "due": (False, False)}, list(START.values())),
    # v* within 0.5; M = 2 (0.5 − 0.2) + 0.75 + 0.6 = 1.95
    "limit of velocity": ({"limits": (0.5, math.inf)}, [0.5, 0.81, 1.95]),
    # M wanted 3.35, given 1: I' = 0.75 + 0.1 (2 + 1 − 3.35)
    "limit of effort": ({"limits": (math.inf, 1.0)}, [1.2, 0.715, 1.0]),
    "limit of an effort": ({"mode": "effort", "limits": (math.inf, 0.5)}, [0.0, 0.0, 0.5]),
    # the position loop is open
    "angle unknown": ({"measured": (0.1, 0.2, 0.0)}, [0.2, 0.75, 1.35]),
}


@pytest.mark.parametrize(("given", "expected"), SAMPLES.values(), ids=SAMPLES)
def test_a_sample(given, expected) -> None:
    mode, measured, limits, due = (GIVEN | given).values()
    wanted = Setpoints(0.3, 0.4, 0.6)
    after = cascade.followed(LOOPS, mode, START, wanted, Measured(*measured), DriveLimits(*limits), due)
    assert [float(after[name]) for name in START] == pytest.approx(expected, abs=1e-12)


def test_the_integral_behind_a_limit() -> None:
    assert next_integral(1.0, 0.1, 2.0, 5.0, 4.0) == pytest.approx(1.1)


SHORT = VelocityLoop(gain=1.0, rate=1e3, integral_time=0.9e-3)
WRONG = {
    "no multiple": {"velocity": VelocityLoop(gain=1.0, rate=900.0), "position": PositionLoop(gain=1.0, rate=400.0)},
    "position faster": {"velocity": VelocityLoop(gain=1.0, rate=1e3), "position": PositionLoop(gain=1.0, rate=4e3)},
    "no position": {"velocity": SHORT},
    "short integral time": {"mode": "velocity", "velocity": SHORT},
    "no loop": {"mode": "effort"},
}


@pytest.mark.parametrize("loops", WRONG.values(), ids=WRONG)
def test_loops_that_do_not_fit_together(loops, said) -> None:
    with pytest.raises(ValueError, match="; ") as caught:
        ServoLoops(**loops)
    said(caught.value)


def test_rates_periods_bounds_and_defaults() -> None:
    shortest = VelocityLoop(gain=1.0, rate=1e3, integral_time=1e-3)
    assert ServoLoops(velocity=shortest, position=PositionLoop(gain=0.0, rate=1e3)).period == 1e-3
    loops = ServoLoops(mode="effort", current=CurrentLoop(rate=8e3), velocity=shortest)
    assert (list(loops.loops), loops.period) == (["current"], 1.0 / 8e3)
    assert (HoldingBrake(1.0).opens, HoldingBrake(1.0).closes) == (0.05, 0.03)
    assert (CurrentLoop().rate, CurrentLoop().delay) == (16e3, 1)
    # rates and periods
    velocity, position = VelocityLoop(gain=1.0), PositionLoop(gain=1.0)
    loops = ServoLoops(current=CurrentLoop(), velocity=velocity, position=position)
    assert (loops.period, loops.every("position"), loops.every("velocity")) == (1.0 / 16e3, 16, 4)
    held = ServoLoops(mode="effort", velocity=velocity)
    assert (held.period, held.every("velocity"), held.every("position")) == (1.0 / 4e3, 1, 1)


@pytest.mark.parametrize(("scale", "zero"), [(1.0, 0.0), (-20.0, 0.3), (0.25, -1.0)])
@pytest.mark.parametrize("encoder", [None, ShaftEncoder(cpr=1 << 30, offset=0.02)])
def test_an_emulated_drive_runs_the_loops_of_its_joint(scale: float, zero: float, encoder: ShaftEncoder | None) -> None:
    """In its own coordinates, drive position = scale · (joint position − zero), the power is the same."""
    loops = ServoLoops(velocity=VELOCITY, position=POSITION, encoder=encoder)
    commanded = CommandedLoops(loops, 7.0, scale, zero, every=2)
    x, limits = cascade.initial(), DriveLimits(2.0, 4.0)
    motion = 0.3 + 0.2 * 1e-3 * np.arange(8)
    for k, q in enumerate(motion):
        # the speed of an encoder is a difference, which begins with the drive's
        v, known = (0.2 if encoder is None or k else 0.0), q + (0.0 if encoder is None else 0.02 / 7.0)
        goal = 0.5 + 0.02 * k
        wanted = Setpoints(goal, 0.0, 0.0)
        x = cascade.followed(loops, "position", x, wanted, Measured(known, v, 1.0), limits, (k % 2 == 0, True))
        found = commanded.effort(
            "position", scale * (goal - zero), scale * (q - zero), scale * 0.2, abs(scale) * 2.0, 4.0 / abs(scale)
        )
        assert found * scale == pytest.approx(float(x["effort_setpoint"]), abs=1e-4)
    # the setpoint of sample 6
    assert float(x["velocity_setpoint"]) == pytest.approx(5.0 * (0.62 - motion[6] - (0.02 / 7.0 if encoder else 0.0)))


def test_commanded_loops() -> None:
    commanded = CommandedLoops(ServoLoops(mode="velocity", velocity=VELOCITY), scale=-2.0)
    # v* = 1/−2, v = 0.2/−2: M = 2 (−0.5 + 0.1) at the joint
    assert commanded.effort("velocity", 1.0, 5.0, 0.2, 100.0, 100.0) == pytest.approx(0.4)
    # a command that is no number gives none and leaves the loops as they are
    loops = CommandedLoops(ServoLoops(mode="velocity", velocity=VelocityLoop(gain=1.0, integral_time=0.1)))
    assert math.isnan(loops.effort("velocity", math.nan, 0.0, 0.0, 10.0, 5.0))
    assert loops.effort("velocity", 2.0, 0.0, 0.0, 10.0, 5.0) == 2.0
    assert loops.effort("velocity", 2.0, 0.0, 0.0, 10.0, 5.0) == pytest.approx(2.0 + 2.0 / 400.0)
    loops.reset()
    assert loops.effort("velocity", math.inf, 0.0, 0.0, 3.0, 2.5) == 2.5


# --- the encoder and the brake of a drive on numbers: counts, speeds, index, times ---

TURN = 2.0 * math.pi


def motion(p: ShaftEncoder, angles: np.ndarray, period: float = 1e-3) -> list[dict]:
    x, found = encoder.initial(p, angles[0], 0.0), []
    for angle in angles:
        x = encoder.sampled(p, x, angle, period)
        found.append(x)
    return found


def test_counts_are_the_nearest() -> None:
    p = ShaftEncoder(cpr=8)
    angles = np.array([0.0, 0.06, 0.07, -0.06, -0.07, 1.0]) * TURN
    assert [round(float(encoder.counted(p, a)) / TURN * 8) for a in angles] == [0, 0, 1, 0, -1, 8]
    assert encoder.counted(ShaftEncoder(), 0.123) == 0.123


def test_a_difference_has_the_resolution_of_a_count_per_sample() -> None:
    angles = 0.3 * TURN * 1e-3 * np.arange(500)
    speeds = [float(x["speed"]) / TURN for x in motion(ShaftEncoder(cpr=1000), angles)]
    assert {round(speed, 9) for speed in speeds} == {0.0, 1.0}


def test_an_observer_has_no_lag_at_constant_speed_and_two_equal_poles() -> None:
    p, period = ShaftEncoder(velocity="observer", bandwidth=50.0), 1e-3
    samples = motion(p, 3.0 * period * np.arange(400))
    assert samples[-1]["speed"] == pytest.approx(3.0, abs=1e-9)
    # the error of a critically damped filter: (a + b k) poleᵏ
    pole = math.exp(-TURN * 50.0 * period)
    errors = [(3.0 - float(x["speed"])) / pole**k for k, x in enumerate(samples[:40])]
    np.testing.assert_allclose(np.diff(errors, 2), 0.0, atol=1e-9)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_the_index_makes_the_angle_known_from_its_pulse_on(way: float) -> None:
    p = ShaftEncoder(reference="index", index=2.0, offset=0.5)
    angles = 1.0 + way * np.arange(0.0, 6.0, 0.01)
    samples = motion(p, angles)
    known = [float(encoder.known(p, x)) for x in samples]
    first = known.index(1.0)
    # upwards at 2, downwards at 2 − 2π
    passed = 2.0 if way > 0.0 else 2.0 - TURN
    assert abs(angles[first] - passed) <= 0.0101 and known == [0.0] * first + [1.0] * (len(known) - first)
    assert float(encoder.read(p, samples[first - 1])) == pytest.approx(angles[first - 1] - 1.0)
    assert float(encoder.read(p, samples[first])) == pytest.approx(angles[first] + 0.5)


def test_the_brake_follows_its_drive_after_its_times() -> None:
    p, period = HoldingBrake(effort=1.0, opens=0.005, closes=0.003), 1e-3
    enabled = [1.0] * 8 + [0.0] * 6 + [1.0] * 2 + [0.0] * 8
    x, closed = brake.initial(), []
    for on in enabled:
        x = brake.sampled(p, x, on, period)
        closed.append(int(x[BRAKE]))
    # opens 5 ms after the start, closes 3 ms after sample 8, does not open in 2 ms
    assert closed == [1] * 5 + [0] * 6 + [1] * 13
