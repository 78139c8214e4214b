"""Acceleration from sampled positions: what the filter is exactly, its poles, response, noise and lag."""

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid

from cosim.control.observer import (
    JointMotion,
    at_start,
    correct,
    extrapolate,
    gains,
    initial,
    is_gap,
    predict,
    time_constant,
    update,
)
from cosim.core import ops
from cosim.core.compile import compile
from cosim.core.units import TURN
from tests.compile.calls import ports

H = 1e-3  # s
BANDWIDTHS = [5.0, 50.0, 300.0]  # Hz

bandwidths = pytest.mark.parametrize("bandwidth", BANDWIDTHS)


def observe(x, measured, new, h, k):
    """x one step of h [s] later, corrected where there is a new sample, predicted elsewhere."""
    predicted = predict(x, h)
    return correct(predicted, ops.where(new, measured - predicted.position, 0.0), k)


def theta(bandwidth, h=H):
    return np.exp(-TURN * bandwidth * h)


def matrices(bandwidth, h=H):
    """(A, B) of x⁺ = A x + B measured, from the functions themselves: they are linear."""
    k = gains(bandwidth, h)

    def step(state, measured):
        return np.concatenate(observe(JointMotion(*state[:, None]), np.array([measured]), True, h, k))

    return np.array([step(row, 0.0) for row in np.eye(3)]).T, step(np.zeros(3), 1.0)


def filtered(samples, bandwidth, start=(0.0, 0.0), h=H):
    """(k, 3) the motion of one joint after each sample."""
    k, x = gains(bandwidth, h), initial(*(np.array([value]) for value in start))
    found = []
    for sample in samples:
        x = observe(x, np.array([sample]), True, h, k)
        found.append(np.concatenate(x))
    return np.array(found)


def test_gains_are_those_of_the_books():
    """Brookner's table of g, h, k for the critically damped filter, θ = 0.5 and a step of 2 s."""
    k = gains(np.log(2.0) / TURN / 2.0, 2.0)
    np.testing.assert_allclose(k, [0.875, 0.5625 / 2.0, 2 * 0.0625 / 4.0], rtol=1e-14)


def test_it_begins_with_steady_motion_predicts_constant_acceleration_and_corrects_by_the_gains():
    x = initial(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(x, [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
    x = predict(JointMotion(np.array([1.0, 0.0]), np.array([2.0, -1.0]), np.array([3.0, 4.0])), 0.5)
    np.testing.assert_allclose(x, [[1.0 + 1.0 + 0.375, -0.5 + 0.5], [3.5, 1.0], [3.0, 4.0]], rtol=1e-15)
    k = gains(50.0, H)
    x = correct(JointMotion(*np.ones((3, 2))), np.array([0.1, 0.0]), k)
    np.testing.assert_allclose(x, np.array([[1 + 0.1 * gain, 1.0] for gain in k]), rtol=1e-15)


@bandwidths
@pytest.mark.parametrize("h", [1e-4, 1e-3, 0.02])
def test_all_three_poles_are_theta(bandwidth, h):
    """By the characteristic polynomial: eigenvalues of a triple pole are known to a third of the digits only."""
    scale = np.diag([1.0, h, h * h])
    a = scale @ matrices(bandwidth, h)[0] @ np.linalg.inv(scale)
    np.testing.assert_allclose(np.poly(a), np.poly([theta(bandwidth, h)] * 3), atol=1e-9)
    np.testing.assert_allclose(np.linalg.eigvals(a), theta(bandwidth, h), atol=1e-4)


@bandwidths
def test_what_a_jerk_leaves_is_the_published_truncation_error(bandwidth):
    """Zarchan and Musoff, "Fundamentals of Kalman Filtering", fading-memory filter of second order: for a₃ t³ the
    position is behind by 6 a₃ h³ (θ/(1−θ))³, the velocity by a₃ h² (2 + 5θ + 11θ²)/(1−θ)², the acceleration by
    6 a₃ h (1 + 2θ)/(1−θ)."""
    p, a3 = theta(bandwidth), 7.0
    k = int(40 / (TURN * bandwidth * H)) + 50
    t = H * np.arange(1, k + 1)
    behind = np.array([a3 * t**3, 3 * a3 * t**2, 6 * a3 * t]).T[-1] - filtered(a3 * t**3, bandwidth)[-1]
    lag = [6 * H**3 * (p / (1 - p)) ** 3, H**2 * (2 + 5 * p + 11 * p**2) / (1 - p) ** 2, 6 * H * (1 + 2 * p) / (1 - p)]
    np.testing.assert_allclose(behind, a3 * np.array(lag), rtol=1e-5, atol=1e-12)


# --- samples that do not come ---


def test_a_sample_that_is_not_new_is_not_looked_at():
    k = gains(50.0, H)
    x = JointMotion(np.array([1.0, 1.0, 1.0]), np.array([2.0, 2.0, 2.0]), np.array([3.0, 3.0, 3.0]))
    measured, new = np.array([np.nan, 9.0, 9.0]), np.array([False, False, True])
    after = np.array(observe(x, measured, new, H, k))
    expected = np.array(predict(x, H))
    np.testing.assert_array_equal(after[:, :2], expected[:, :2])
    np.testing.assert_allclose(after[:, 2], expected[:, 2] + (9.0 - expected[0, 2]) * np.array(k), rtol=1e-14)
    np.testing.assert_array_equal(np.array(observe(x, measured, False, H, k)), expected)


@bandwidths
@pytest.mark.parametrize("every", [2, 7])
def test_every_kth_sample_gives_what_a_longer_step_gives(bandwidth, every):
    samples = np.random.default_rng(1).uniform(-1.0, 1.0, 60)
    k, x = gains(bandwidth, every * H), initial(np.zeros(1), np.zeros(1))
    found = []
    for sample in samples:
        for i in range(every):
            x = observe(x, np.array([sample]), i == every - 1, H, k)
        found.append(np.concatenate(x))
    np.testing.assert_allclose(found, filtered(samples, bandwidth, h=every * H), rtol=1e-9, atol=1e-9)


@bandwidths
def test_gains_of_the_time_that_passed_stay_bounded_when_samples_are_lost_at_random(bandwidth):
    """Each joint has its own interval; with gains of the step alone, the fast ones would diverge."""
    rng = np.random.default_rng(2)
    x, interval, peak = initial(np.zeros(4), np.zeros(4)), np.zeros(4), 0.0
    for _ in range(2000):
        interval += H
        new = rng.uniform(size=4) < 0.4
        x = observe(x, rng.uniform(-1.0, 1.0, 4), new, H, gains(bandwidth, interval))
        interval[new] = 0.0
        peak = max(peak, np.max(np.abs(x.acceleration)))
    assert peak <= 10.0 / H**2


# --- machine code ---


def test_symbols_give_what_numbers_give():
    def step(q, v, a, measured, new, interval, bandwidth):
        k = gains(bandwidth, interval)
        return tuple(observe(JointMotion(q, v, a), measured, new > 0.5, H, k))

    shapes = dict.fromkeys(("q", "v", "a", "measured", "new", "interval"), (3,))
    compiled = compile(step, ports(**shapes, bandwidth=()), interpret=False)
    rng = np.random.default_rng(3)
    x = rng.uniform(-3.0, 3.0, (3, 3))
    for k in range(50):
        measured, new = rng.uniform(-3.0, 3.0, 3), rng.integers(0, 2, 3).astype(float)
        interval = H * rng.integers(1, 9, 3)
        measured[new < 0.5] = np.nan if k % 2 else 0.0
        inputs = (*x, measured, new, interval, np.float64(rng.uniform(5.0, 80.0)))
        expected = step(*inputs)
        for got, value in zip(compiled(*inputs), expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-9)
        x = np.array(expected)


# --- between samples and after gaps ---

AGES = np.arange(0.0, 0.5, 0.5e-3)  # s


def estimate(bandwidth, every=1, delay=0.0, seed=5):
    """Of four joints on sines, by samples on time, `every` ticks apart."""
    rng = np.random.default_rng(seed)
    size, rate = rng.uniform(-2.0, 2.0, 4), rng.uniform(0.5, 9.0, 4)
    x = at_start(np.zeros(4), size * rate)
    for k in range(1, 60):
        t, interval = k * every * H, np.full(4, every * H)
        q, v = size * np.sin(rate * t), size * rate * np.cos(rate * t)
        x = update(x, q, v, interval, np.full(4, delay), bandwidth, H)
    return x


def bounds(x, bandwidth):
    """(of |velocity|, of |position − sampled position|) at any age, from what is known at the sample."""
    T, h = time_constant(bandwidth), x.horizon
    velocity = np.abs(x.velocity) + np.abs(x.acceleration) * (h + T)
    return velocity, velocity * (h + 4.0 * T)


@bandwidths
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("delay", [0.0, 2e-3, 0.3])
def test_the_motion_without_samples_is_bounded_at_every_age(bandwidth, every, delay):
    x = estimate(bandwidth, every, delay)
    fastest, farthest = bounds(x, bandwidth)
    assert np.all(x.horizon <= every * H + 1.5 * H + 3.0 * time_constant(bandwidth) + 1e-12)
    for age in AGES:
        q, v, a = extrapolate(x, np.full(4, age), bandwidth)
        assert np.all(np.abs(q - x.position) <= farthest + 1e-12) and np.all(np.abs(v) <= fastest + 1e-12)
        assert np.all(np.abs(a) <= np.abs(x.acceleration))
    late = x.horizon + 40.0 * time_constant(bandwidth)
    for value in extrapolate(x, late, bandwidth)[1:]:
        np.testing.assert_allclose(value, 0.0, atol=1e-9)


@bandwidths
def test_the_motion_without_samples_is_the_equation_of_its_docstring(bandwidth):
    """The position is the integral of the velocity."""
    x, T = estimate(bandwidth), time_constant(bandwidth)
    q, v, a = (value[:, None] for value in predict(x.motion, x.horizon))
    s = np.linspace(0.0, 9.0 * T, 9001)
    held = v + a * T * (1.0 - np.exp(-np.minimum(s, 3.0 * T) / T))
    velocity = held * np.exp(-np.maximum(s - 3.0 * T, 0.0) / T)
    moved = cumulative_trapezoid(velocity, s, axis=1, initial=0.0)
    for k in range(0, len(s), 500):
        found = extrapolate(x, x.horizon + s[k], bandwidth)
        np.testing.assert_allclose(found.position, q[:, 0] + moved[:, k], rtol=0, atol=1e-6 * np.abs(moved).max())
        np.testing.assert_allclose(found.velocity, velocity[:, k], rtol=1e-9)
        np.testing.assert_allclose(found.acceleration, a[:, 0] * np.exp(-s[k] / T), rtol=1e-9)


@bandwidths
@pytest.mark.parametrize("every", [1, 7])
def test_samples_on_time_are_followed_as_by_the_filter_alone(bandwidth, every):
    """Also one tick late: the acceleration is constant between them."""
    x, k = estimate(bandwidth, every), gains(bandwidth, every * H)
    expected = predict(x.motion, every * H)
    for age in H * np.arange(0.0, every + 1.5):
        np.testing.assert_array_equal(extrapolate(x, np.full(4, age), bandwidth), predict(x.motion, age))
    after = update(x, expected.position + 0.01, np.full(4, 9.0), np.full(4, every * H), np.zeros(4), bandwidth, H)
    np.testing.assert_allclose(after.motion, correct(expected, np.full(4, 0.01), k), rtol=1e-12)


@bandwidths
def test_after_a_gap_the_estimate_begins_anew_with_what_is_measured(bandwidth):
    """Without a kick: to the parabola the joint has jumped."""
    x = estimate(bandwidth)
    gap = 2.0 * (x.horizon + 3.0 * time_constant(bandwidth))
    assert is_gap(x, gap, bandwidth).all() and not is_gap(x, x.horizon, bandwidth).any()
    after = update(x, np.arange(4.0), np.full(4, 0.5), gap, np.zeros(4), bandwidth, H)
    np.testing.assert_array_equal(after.motion, [np.arange(4.0), np.full(4, 0.5), np.zeros(4)])
    # the next sample is due as soon as the one before the gap was
    np.testing.assert_allclose(after.horizon, H + 1.5 * H, rtol=1e-12)
    unchanged = update(x, np.full(4, np.nan), np.full(4, np.nan), np.zeros(4), np.zeros(4), bandwidth, H)
    np.testing.assert_array_equal(unchanged, x)


@pytest.mark.parametrize("bandwidth", [50.0, 300.0])
@pytest.mark.parametrize("pause", [0.02, 0.09])
@pytest.mark.parametrize("come", [1, 5, 15])
def test_samples_that_were_queued_during_a_gap_are_no_faster_motion(bandwidth, pause, come):
    """They come within so many ticks, each stamped when it comes: 3 rad/s, measured all the time."""
    speed = 3.0
    x, found = at_start(np.zeros(1), np.full(1, speed)), []

    def take(q, interval):
        nonlocal x
        x = update(x, np.full(1, q), np.full(1, speed), np.full(1, interval), np.zeros(1), bandwidth, H)
        found.append(float(x.velocity[0]))

    for k in range(1, 100):
        take(speed * k * H, H)
    begun, missed = speed * 0.099, speed * pause
    take(begun, pause)  # measured before the pause
    for k in range(1, come + 1):
        take(begun + missed * k / come, H)
    for k in range(1, 100):
        take(begun + missed + speed * k * H, H)
    assert max(found) < 1.6 * speed and min(found) > 0.4 * speed
    assert found[-1] == pytest.approx(speed, rel=1e-6) and x.queued[0] == 0.0


def test_a_reversal_after_a_gap_is_followed():
    """Samples that fit the reported velocity are no queued ones."""
    x = estimate(50.0)
    x = update(x, x.position, np.full(4, -1.0), np.full(4, 0.05), np.zeros(4), 50.0, H)
    for _ in range(30):
        x = update(x, x.position - H, np.full(4, -1.0), np.full(4, H), np.zeros(4), 50.0, H)
    np.testing.assert_allclose(x.velocity, -1.0, rtol=1e-9)


def test_the_first_interval_is_no_gap_however_long_it_is():
    x = at_start(np.zeros(1), np.ones(1))
    assert not is_gap(x, np.array([0.2]), 50.0).any()
    after = update(x, np.array([0.2]), np.ones(1), np.array([0.2]), np.zeros(1), 50.0, H)
    np.testing.assert_allclose(after.velocity, 1.0)


def test_time_before_the_sample_is_not_extrapolated_further_than_after_it():
    x = estimate(50.0)
    np.testing.assert_array_equal(extrapolate(x, np.full(4, -1e-3), 50.0), predict(x.motion, -1e-3))
    np.testing.assert_array_equal(extrapolate(x, np.full(4, -9.0), 50.0), predict(x.motion, -x.horizon))
