"""The velocity of a joint by its positions: a lower bound that noise, counts and uneven samples do not raise."""

import numpy as np
import pytest

from cosim.control.differentiated import SampleTrack, followed, initial, larger

STEP, TICKS = 1e-3, 4000  # s
T = STEP * np.arange(TICKS)
RNG = np.random.default_rng(3)


def bounds(position: np.ndarray, stamps: np.ndarray, step: float = STEP) -> np.ndarray:
    """(k, n) of joints side by side, tick by tick, by their positions and times of the samples (k, n)."""
    track, found = SampleTrack(**initial(position.shape[1])), []
    since = np.diff(stamps, axis=0, prepend=stamps[:1])
    for k in range(len(position)):
        track = followed(track, position[k], since[k], step, k == 0)
        found.append(track.bound)
    return np.array(found)


@pytest.mark.parametrize("step", [1e-3, 4e-3, 2e-2])
def test_an_axis_that_is_too_fast_is_seen_within_a_few_ticks(step):
    t = step * np.arange(round(1.0 / step))
    since = np.maximum(t - 0.2, 0.0)  # it starts at 20 rad/s² and keeps its speed
    speed = np.minimum(20.0 * since, 7.0)
    position = np.where(speed < 7.0, 10.0 * since**2, 7.0 * since - 1.225)
    found = bounds(np.array([position, -position]).T, np.array([t, t]).T, step)
    seen = int(np.argmax(speed >= 7.0)) + round(max(0.02, 2 * step) / step)
    assert (np.abs(found[seen]) > 5.0).all() and np.abs(found).max() <= 7.0 + 1e-9
    assert found[-1] == pytest.approx([7.0, -7.0], rel=0.1)


def counts(resolution):
    return resolution * np.floor(0.05 * T / resolution), T, 0.05


def noise(deviation):
    """At rest; a limit of 5 rad/s at 1 mrad: 0.7."""
    return RNG.normal(0.0, deviation, TICKS), T, 700.0 * deviation


def uneven():
    """Each is stamped up to JITTER after it was measured."""
    return 4.0 * T, np.maximum.accumulate(T + RNG.uniform(0.0, 3e-3, TICKS)), 4.0 + 1e-9


def pause(length):
    """After it a sample may be as old as the one before it, and the next one is not."""
    stamps = np.where(np.arange(TICKS) < 500, T, T + length)
    measured = stamps.copy()
    measured[500] = T[500]
    return 4.0 * measured, stamps, 4.0 + 1e-9


def test_counts_noise_and_uneven_samples_are_no_higher_velocity():
    joints = [*map(counts, (2 * np.pi / 4096, 1e-4)), *map(noise, (1e-4, 1e-3, 1e-2)), uneven()]
    joints += map(pause, (0.005, 0.02, 0.1))
    position, stamps, most = (np.array(values).T for values in zip(*joints, strict=True))
    found = np.abs(bounds(position, stamps))
    found[:100, 2:5] = 0.0  # the first ticks know no noise yet
    assert (found.max(axis=0) <= most).all()


def test_ticks_without_a_sample_change_nothing():
    t = T[:200, None]
    held = np.repeat(3.0 * t, 3, axis=0), np.repeat(t, 3, axis=0)
    np.testing.assert_allclose(bounds(*held)[::3], bounds(3.0 * t, t), rtol=1e-12)


def test_the_larger_velocity_counts():
    found = larger(np.array([0.1, -9.0, np.nan]), np.array([-5.0, 3.0, 1.0]))
    np.testing.assert_array_equal(found, [-5.0, -9.0, np.nan])
