"""The stability of load emulation: against the criterion of Nyquist, and against loops of the observer itself."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from cosim.control.load_emulation import SUMS, added_load, delay, is_stable, largest_ratio, summed
from cosim.control.observer import JointMotion, correct, gains, predict


def by_nyquist(bandwidth, delay):
    """κ at the frequency where the loop has a phase of −180°."""
    omega = 2.0 * math.pi * bandwidth
    w = brentq(lambda w: w * delay + 3.0 * math.atan(w / omega) - math.pi, 1e-3, 2.0 * omega)
    return (1.0 + (w / omega) ** 2) ** 1.5


def test_without_delay_three_poles_allow_eight():
    assert by_nyquist(50.0, 0.0) == pytest.approx(8.0)
    assert largest_ratio(50.0, 2e-5, 0) == pytest.approx(8.0, rel=0.02)


@pytest.mark.parametrize("delay", [1e-3, 2e-3, 4e-3])
def test_with_short_steps_it_is_the_criterion_of_nyquist(delay):
    step = 1e-4  # held for half of it on average
    found = largest_ratio(50.0, step, round(delay / step))
    assert found == pytest.approx(by_nyquist(50.0, delay + 0.5 * step), rel=0.03)
    assert found < largest_ratio(50.0, step, round(delay / step) - 5)


def velocities(ratio, bandwidth, step, steps, count):
    """Of the shaft, tick by tick, with the functions of the observer."""
    k, q, v = gains(bandwidth, step), 0.0, 0.0
    x, waiting = JointMotion(1e-3, 0.0, 0.0), [0.0] * steps
    found = []
    for _ in range(count):
        x = correct(x, q - x.position, k)
        waiting.append(-ratio * x.acceleration)
        a = waiting.pop(0)
        q, v = q + step * v + 0.5 * step**2 * a, v + step * a
        x = predict(x, step)
        found.append(x.velocity - v)
    return np.abs(found)


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("bandwidth", [20.0, 50.0])
def test_the_loop_of_the_observer_grows_beyond_the_bound_only(bandwidth, steps):
    bound = largest_ratio(bandwidth, 1e-3, steps)
    calm, wild = (velocities(factor * bound, bandwidth, 1e-3, steps, 4000) for factor in (0.97, 1.03))
    assert calm[-50:].max() < 0.1 * calm[:50].max()
    assert wild[-50:].max() > 10.0 * wild[:50].max()


def test_less_than_the_inertia_of_the_bench_is_stable_down_to_that_of_the_motor():
    assert is_stable(-0.95, 50.0, 1e-3, 0) and not is_stable(-1.05, 50.0, 1e-3, 0)


# --- tracking ---

STEP = 2e-4
T = np.arange(0.0, 1.0, STEP)
V, A = 2.0 * np.sin(7.0 * T) + np.cos(3.0 * T), 14.0 * np.cos(7.0 * T) - 3.0 * np.sin(3.0 * T)


def sums_of(error, rate):
    sums = np.zeros((SUMS, 1))
    for e, r, a, v in zip(error, rate, A, V, strict=True):
        sums = summed(sums, np.array([[e], [r], [a], [v]]))
    return sums


@pytest.mark.parametrize("late", [0.0, 1e-3, 4e-3])
def test_a_delay_is_found(late):
    def command(t):
        return 0.3 * np.sin(5.0 * t) + 0.1 * np.sin(11.0 * t)

    rate = np.gradient(command(T), STEP)
    assert delay(sums_of(command(T - late) - command(T), rate))[0] == pytest.approx(late, rel=0.02, abs=1e-12)


def test_a_further_inertia_and_damping_are_found():
    inertia, damping = added_load(sums_of(-(0.003 * A - 0.02 * V), 0.0 * T))
    assert (inertia[0], damping[0]) == (pytest.approx(0.003, rel=1e-9), pytest.approx(-0.02, rel=1e-9))


def test_at_rest_nothing_is_known():
    none = np.zeros((SUMS, 2))
    assert delay(none).tolist() == [0.0, 0.0]
    assert [part.tolist() for part in added_load(none)] == [[0.0, 0.0]] * 2
