"""Filters, noises and searches by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cosim.apps.identification.equation_error import EquationError
from cosim.apps.identification.fit import SampledError, search
from cosim.apps.identification.recorded_motion import WIDTH, MotionSamples, RecordedMotion, samples_of
from cosim.apps.identification.variables import choose


@pytest.fixture(scope="module")
def error(arm_file):
    """Of 4000 samples in which the second joint moves half of the time."""
    from cosim import load_rig

    rig = load_rig(arm_file)
    variables = choose(rig, ["friction"])
    k = 4000
    moving = np.ones((k, 2), dtype=bool)
    moving[k // 2 :, 1] = False
    none = np.zeros((k, 2))
    samples = MotionSamples(np.arange(k) * 0.05, none, none, none, none, none, 0.0, np.arange(k), moving)
    return SampledError(variables, EquationError(rig, variables.names, "current"), samples)


def test_the_filter_has_its_cutoff():
    """Both parts together are one Gaussian: a wave of this frequency keeps 1/√2 of its height."""
    t, cutoff = np.arange(0, 8.0, 1e-3), 10.0
    wave = np.sin(2 * np.pi * cutoff * t)
    position, drive = np.column_stack([np.sin(t), np.cos(t)]), np.column_stack([wave, t])
    motion = RecordedMotion("f", ("a", "b"), t, position, drive, "current")
    samples = samples_of(motion, cutoff)
    assert np.diff(samples.t[samples.kept]) == pytest.approx(0.5 / cutoff)
    samples = replace(samples, kept=np.arange(100, len(samples.t) - 100))  # all, to see the wave
    left = samples.smoothed(samples.drive)
    kept = samples.t[samples.kept]
    phase = np.column_stack([np.sin(2 * np.pi * cutoff * kept), np.cos(2 * np.pi * cutoff * kept)])
    height = np.linalg.norm(np.linalg.lstsq(phase, left[:, 0], rcond=None)[0])
    assert height == pytest.approx(np.exp(-0.5 * (2 * np.pi * WIDTH) ** 2), rel=0.01)
    assert height == pytest.approx(np.sqrt(0.5), rel=0.01)
    np.testing.assert_allclose(left[:, 1], kept, atol=1e-9)
    np.testing.assert_allclose(samples.velocity[samples.kept][:, 0], np.cos(kept), atol=1e-4)
    np.testing.assert_allclose(samples.acceleration[samples.kept][:, 0], -np.sin(kept), atol=1e-4)


def test_noise_is_that_of_moving_samples_less_the_numbers(error):
    found = np.where(error.samples.moving, 2.0, 0.0)
    rows = np.array([4000, 2000]) - error.variables.size / 2
    np.testing.assert_allclose(error.noise(found, np.zeros(2)), 2.0 * np.sqrt(np.array([4000, 2000]) / rows))
    np.testing.assert_array_equal(error.noise(found, np.array([5.0, 0.1]))[0], 5.0)


def test_errors_that_are_alike_count_more(error):
    rng = np.random.default_rng(0)
    white = rng.normal(size=(4000, 2))
    found = white.copy()
    for k in range(1, len(found)):
        found[k] = 0.6 * found[k - 1] + white[k]
    moving = error.samples.moving
    np.testing.assert_allclose(error.correlated(np.where(moving, found, 0.0)), 2.0, rtol=0.1)  # √(1.6 / 0.4)
    np.testing.assert_allclose(error.correlated(np.where(moving, white, 0.0)), 1.0, atol=0.06)


def test_the_search_ends_at_the_least_sum():
    """Rosenbrock's valley."""

    def residual(x):
        return np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]), np.array([[-20.0 * x[0], 10.0], [-1.0, 0.0]])

    np.testing.assert_allclose(search(residual, np.array([-1.2, 1.0])), [1.0, 1.0], atol=1e-5)
