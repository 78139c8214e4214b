"""The residuals of a real joint: the momentum observer in its usual form, and samples whose residuals are known."""

import itertools
import math

import numpy as np
import pytest

from cosim.control.shadow import EncoderSample, clock_slip, filtered, remaining, slip
from tests.kit.rigs import rig_in

L1, LC1, LC2, M1, M2, I1, I2, G = 0.25, 0.12, 0.11, 0.9, 0.5, 0.0058, 0.0026, 9.81
RIG = f"""
mechanism:
  bodies:
    - {{name: a, joint: one, axis: [0, 1, 0], mass: {M1}, com: [{LC1}, 0, 0], inertia: [0.006, {I1}, 0.006]}}
    - {{name: b, parent: a, joint: two, origin: {{xyz: [{L1}, 0, 0]}}, axis: [0, 1, 0], mass: {M2}, com: [{LC2}, 0, 0],
       inertia: [0.003, {I2}, 0.003]}}
"""


def motion(t):
    """Two sines: q, v, a (2, k)."""
    w, phase, size = np.array([[5.0], [7.0]]), np.array([[0.3], [1.1]]), np.array([[0.8], [1.1]])
    return size * np.sin(w * t + phase), size * w * np.cos(w * t + phase), -size * w**2 * np.sin(w * t + phase)


def mass_matrix(q2):
    """Of a planar arm of two links: Siciliano et al., Robotics, 2009, section 7.3.2."""
    c2 = math.cos(q2)
    m12 = I2 + M2 * (LC2**2 + L1 * LC2 * c2)
    m11 = I1 + I2 + M1 * LC1**2 + M2 * (L1**2 + LC2**2 + 2.0 * L1 * LC2 * c2)
    return np.array([[m11, m12], [m12, I2 + M2 * LC2**2]])


def coriolis(q2, v):
    h = -M2 * L1 * LC2 * math.sin(q2)
    return np.array([[h * v[1], h * (v[0] + v[1])], [-h * v[0], 0.0]])


def gravity(q):
    """About the y axis, along which a positive angle lowers the arm."""
    second = M2 * LC2 * math.cos(q[0] + q[1])
    return -G * np.array([(M1 * LC1 + M2 * L1) * math.cos(q[0]) + second, second])


def unexplained(t):
    """Effort on the joints beside the drives': a step and a sine."""
    return np.array([np.where(t > 0.2, 0.5, 0.0), 0.2 * np.sin(9.0 * t)])


def of_momentum(t, q, v, tau, K):
    """r = K (p − ∫ (τ + Cᵀv − g + r) dt − p(0)), by Heun's method."""
    r, found = np.zeros(2), [np.zeros(2)]
    momenta = [mass_matrix(q[1, k]) @ v[:, k] for k in range(len(t))]
    known = [tau[:, k] + coriolis(q[1, k], v[:, k]).T @ v[:, k] - gravity(q[:, k]) for k in range(len(t))]
    total = np.zeros(2)
    for k in range(1, len(t)):
        h = t[k] - t[k - 1]
        middle = 0.5 * (known[k] + known[k - 1])
        guess = K * (momenta[k] - momenta[0] - total - h * (middle + r))
        total = total + h * (middle + 0.5 * (r + guess))
        r = K * (momenta[k] - momenta[0] - total)
        found.append(r)
    return np.array(found).T


@pytest.mark.parametrize("bandwidth", [2.0, 8.0])
def test_the_filtered_residual_is_that_of_the_momentum_observer(tmp_path, bandwidth):
    model = rig_in(tmp_path, RIG).plant.model
    errors = []
    for h in (1e-3, 0.5e-3):
        t = np.arange(0.0, 1.5, h)
        q, v, a = motion(t)
        tau = np.asarray(model.inverse_dynamics(q.T, v.T, a.T)).T - unexplained(t)
        expected = of_momentum(t, q, v, tau, 2.0 * math.pi * bandwidth)
        found = [np.zeros(2)]
        for k in range(1, len(t)):
            required = np.asarray(model.inverse_dynamics(q[:, k], v[:, k], (v[:, k] - v[:, k - 1]) / h))
            found.append(filtered(found[-1], required - tau[:, k], bandwidth, h))
        errors.append(np.abs(np.array(found).T - expected).max())
        assert np.abs(expected).max() > 0.4
    assert errors[0] < 0.02 and errors[1] == pytest.approx(0.5 * errors[0], rel=0.15)


def test_it_follows_a_constant_effort_with_its_bandwidth():
    r = 0.0
    for _ in range(100):  # 0.1 s at 2 Hz
        r = filtered(r, 3.0, 2.0, 1e-3)
    assert r == pytest.approx(3.0 * (1.0 - math.exp(-2.0 * math.pi * 2.0 * 0.1)), rel=1e-12)


def sample(t, drift=0.0, delay=0.0):
    """Of a joint with q = t²: the trapezoidal rule is exact."""
    at = t - delay
    return EncoderSample(np.array([at * at + drift * at]), np.array([2.0 * at]), np.array([t]), np.array([delay]))


@pytest.mark.parametrize("times", [np.arange(0.0, 3.0, 0.01), np.cumsum([0.001, 0.02, 0.003] * 100)])
def test_a_drift_slips_by_its_rate_times_the_window(times):
    for drift in (0.0, 0.03):
        slipped = np.zeros(1)
        for before, now in itertools.pairwise(times):
            slipped = slip(slipped, sample(before, drift), sample(now, drift), now - before, 0.5)
        passed = times[-1] - times[0]
        assert slipped[0] == pytest.approx(drift * 0.5 * (1.0 - math.exp(-passed / 0.5)), rel=0.03, abs=1e-12)


def test_without_a_new_sample_nothing_is_forgotten():
    assert remaining(2.0, 0.0) == 1.0
    assert slip(np.ones(1), sample(1.0), sample(1.0), 0.0, 0.5)[0] == 1.0


def test_time_that_is_none_of_the_ticks():
    last, now = sample(1.0, delay=0.003), sample(1.002, delay=0.001)
    # sampled at 0.997 and 1.001 s
    assert clock_slip(last, now, 0.004)[0] == pytest.approx(0.0, abs=1e-15)
    assert clock_slip(last, now, 0.014)[0] == pytest.approx(0.010)
