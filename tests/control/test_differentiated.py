"""The velocity of a joint by its positions: a lower bound that noise, counts and uneven samples do not raise."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.control.differentiated import SampleTrack, followed, initial, larger

STEP = 1e-3  # s


def bounds(position: np.ndarray, interval: np.ndarray, step: float = STEP) -> np.ndarray:
    """(k,) of one joint, tick by tick."""
    track, found = SampleTrack(**initial(1)), []
    for k, (q, since) in enumerate(zip(position, interval, strict=True)):
        track = followed(track, np.array([q]), np.array([since]), step, k == 0)
        found.append(track.bound.item())
    return np.array(found)


def sampled(t: np.ndarray) -> np.ndarray:
    return np.diff(t, prepend=t[0])


@pytest.mark.parametrize("velocity", [7.0, -7.0])
@pytest.mark.parametrize("step", [1e-3, 4e-3, 2e-2])
def test_an_axis_that_is_too_fast_is_seen_within_a_few_ticks(velocity, step):
    t = step * np.arange(1000)
    since = np.maximum(t - 0.2, 0.0)  # it starts at 20 rad/s² and keeps its speed
    speed = np.minimum(20.0 * since, abs(velocity))
    position = np.sign(velocity) * np.where(speed < 7.0, 10.0 * since**2, 7.0 * since - 1.225)
    found = bounds(position, sampled(t), step)
    above = int(np.argmax(speed >= 7.0))
    assert np.abs(found[above + round(max(0.02, 2 * step) / step)]) > 5.0
    assert np.abs(found).max() <= 7.0 + 1e-9
    assert found[-1] == pytest.approx(velocity, rel=0.1)


@pytest.mark.parametrize("resolution", [2 * np.pi / 4096, 1e-4])
def test_counts_of_a_slow_joint_are_no_velocity(resolution):
    t = STEP * np.arange(4000)
    q = resolution * np.floor(0.05 * t / resolution)
    assert np.abs(bounds(q, sampled(t))).max() <= 0.05


@pytest.mark.parametrize("deviation", [1e-4, 1e-3, 1e-2])
def test_noise_of_a_joint_at_rest_is_no_velocity(deviation):
    t = STEP * np.arange(6000)
    q = np.random.default_rng(3).normal(0.0, deviation, len(t))
    assert np.abs(bounds(q, sampled(t))[100:]).max() <= 600.0 * deviation  # a limit of 5 rad/s at 1 mrad: 0.6


def test_uneven_samples_of_a_steady_motion_are_no_higher_velocity():
    """Each is stamped up to JITTER after it was measured."""
    rng = np.random.default_rng(5)
    t = STEP * np.arange(4000)
    stamps = np.maximum.accumulate(t + rng.uniform(0.0, 3e-3, len(t)))
    assert np.abs(bounds(4.0 * t, sampled(stamps))).max() <= 4.0 + 1e-9


@pytest.mark.parametrize("pause", [0.005, 0.02, 0.1])
def test_what_comes_late_after_a_pause_is_no_higher_velocity(pause):
    """After a pause a sample may be as old as the one before it, and the next one is not."""
    t = STEP * np.arange(1000)
    gap = round(pause / STEP)
    measured, stamps = np.delete(t, slice(500, 500 + gap)), np.delete(t, slice(500, 500 + gap))
    measured[500] = t[500]
    assert np.abs(bounds(4.0 * measured, sampled(stamps))).max() <= 4.0 + 1e-9


def test_ticks_without_a_sample_change_nothing():
    t = STEP * np.arange(600)
    q, interval = 3.0 * t, sampled(t)
    held, since = np.repeat(q, 3), np.zeros(3 * len(t))
    since[::3] = interval
    np.testing.assert_allclose(bounds(held, since)[::3], bounds(q, interval), rtol=1e-12)


def test_the_larger_velocity_counts():
    found = larger(np.array([0.1, -9.0, np.nan]), np.array([-5.0, 3.0, 1.0]))
    np.testing.assert_array_equal(found, [-5.0, -9.0, np.nan])
