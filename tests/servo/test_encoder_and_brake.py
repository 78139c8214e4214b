"""The encoder and the brake of a drive on numbers: counts, speeds, index, times."""

import math

import numpy as np
import pytest

from cosim.servo import brake, encoder
from cosim.servo.brake import HoldingBrake
from cosim.servo.cascade import CurrentLoop, PositionLoop, ServoLoops, VelocityLoop
from cosim.servo.commanded import CommandedLoops
from cosim.servo.encoder import ShaftEncoder
from cosim.types import BRAKE

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


def test_rates_and_periods() -> None:
    velocity, position = VelocityLoop(gain=1.0), PositionLoop(gain=1.0)
    loops = ServoLoops(current=CurrentLoop(), velocity=velocity, position=position)
    assert (loops.period, loops.every("position"), loops.every("velocity")) == (1.0 / 16e3, 16, 4)
    held = ServoLoops(mode="effort", velocity=velocity)
    assert (held.period, held.every("velocity"), held.every("position")) == (1.0 / 4e3, 1, 1)


def test_a_command_that_is_no_number_gives_none_and_leaves_the_loops_as_they_are() -> None:
    loops = CommandedLoops(ServoLoops(mode="velocity", velocity=VelocityLoop(gain=1.0, integral_time=0.1)))
    assert math.isnan(loops.effort("velocity", math.nan, 0.0, 0.0, 10.0, 5.0))
    assert loops.effort("velocity", 2.0, 0.0, 0.0, 10.0, 5.0) == 2.0
    assert loops.effort("velocity", 2.0, 0.0, 0.0, 10.0, 5.0) == pytest.approx(2.0 + 2.0 / 400.0)
    loops.reset()
    assert loops.effort("velocity", math.inf, 0.0, 0.0, 3.0, 2.5) == 2.5
