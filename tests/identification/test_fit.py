"""Filters, searches, bounds and intervals by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.identification.blocks import about_centre, about_frame
from cosim.apps.identification.equation_error import sources_of
from cosim.apps.identification.fit import fit
from cosim.apps.identification.intervals import deviations_of_interval, jackknife
from cosim.apps.identification.levenberg import search
from cosim.apps.identification.recorded_errors import LoadedEquation, RecordedErrors, triangle
from cosim.apps.identification.recorded_motion import (
    CUTOFF,
    SLOWEST,
    WIDTH,
    RecordedMotion,
    default_cutoff,
    read_motion,
    samples_of,
)
from cosim.apps.identification.variables import choose


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


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-4, 3e-4])
def test_the_cutoff_leaves_a_small_part_of_noise_in_accelerations(noise):
    """As measured on the noise alone, behind the filter that the default chooses."""
    t = np.arange(0, 20.0, 5e-3)
    clean = np.sin(2 * np.pi * 0.8 * t)[:, None]
    noisy = noise * np.random.default_rng(0).normal(size=(len(t), 1))
    motion = RecordedMotion("f", ("a",), t, clean + noisy, clean, "effort")
    cutoff = default_cutoff(motion)
    assert cutoff <= CUTOFF
    if not noise:
        assert cutoff == CUTOFF
        return
    samples = samples_of(replace(motion, position=noisy), cutoff)
    rest = np.std(samples.smoothed(samples.acceleration)) / np.std(clean * (2 * np.pi * 0.8) ** 2)
    assert rest < 0.036
    assert cutoff in (CUTOFF, SLOWEST) or rest > 0.024


def test_the_search_ends_at_the_least_sum():
    """Rosenbrock's valley."""

    def residual(x):
        return np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]), np.array([[-20.0 * x[0], 10.0], [-1.0, 0.0]])

    np.testing.assert_allclose(search(residual, np.array([-1.2, 1.0])), [1.0, 1.0], atol=1e-5)


def test_numbers_about_the_frame_and_about_the_centre_are_the_same_body():
    numbers = np.array([2.0, 0.2, -0.1, 0.3, 0.02, 0.03, 0.04, 0.001, -0.002, 0.003])
    np.testing.assert_allclose(about_centre(about_frame(numbers)), numbers, atol=1e-14)


@pytest.mark.parametrize("name", ["mechanism.fore.*", "joints.elbow.actuator.viscous", "delay", "offset.elbow"])
def test_variables_follow_from_numbers(arm, name):
    block = choose(arm, [name]).blocks[0]
    x = np.random.default_rng(0).normal(scale=0.3, size=block.size)
    np.testing.assert_allclose(block.variables_of(np.asarray(block.values(x), float)), x, atol=1e-9)


# --- the least sum ---


def errors_of(rig, path, wanted):
    variables = choose(rig, wanted)
    motion = read_motion(rig, path, sources_of(rig))
    return variables, RecordedErrors(LoadedEquation(rig, variables, motion.source), samples_of(motion, 10.0))


def fitted(rig, path, wanted):
    variables, errors = errors_of(rig, path, wanted)
    return variables, fit(variables, [errors])


@pytest.fixture(scope="module")
def heavy(arm_file, recording):
    """The same arm with all numbers of its file wrong by far, in other ways."""
    of_fore = [f"{{mass: {m}, com: [{x}, 0.1, {z}], inertia: [{i}, {i}, {i}]}}" for m, x, z, i in OTHERS]
    return [load_rig(arm_file, [f"mechanism.numbers.fore={text}", *FRICTIONS]) for text in of_fore]


OTHERS = [(0.1, 0.0, 0.1, 1e-3), (30.0, -0.3, -0.2, 2.0)]
FRICTIONS = ["joints.all.actuator.viscous=0", "joints.elbow.actuator.coulomb=9"]


def test_no_start_matters(arm, heavy, recording):
    left = [fitted(rig, recording, ["inertia", "friction"])[1] for rig in (arm, *heavy)]
    for other in left[1:]:
        np.testing.assert_allclose(other.noise, left[0].noise, rtol=1e-3)
        assert (other.left < 1.02 * other.noise).all()


def test_possible_numbers_leave_what_the_least_squares_leave(arm, recording):
    _, found = fitted(arm, recording, ["inertia", "friction"])
    assert (found.left < 1.02 * found.noise).all()


def test_no_friction_is_negative(arm_file, recording, tmp_path):
    """A recording whose least squares have a negative one: of a motor that helps with its speed."""
    rig = load_rig(arm_file)
    variables, errors = errors_of(rig, recording, ["friction"])
    helped = errors.samples.drive - 0.5 * errors.samples.velocity
    helped[:, 0] = errors.samples.drive[:, 0]
    errors = replace(errors, samples=replace(errors.samples, drive=helped))
    found = fit(variables, [errors])
    values = dict(zip(variables.titles, variables.split(found.values), strict=True))
    assert values["joints.elbow.actuator.viscous"] == 0.0
    assert all(value >= 0.0 for value in values.values())
    _, alone = errors_of(rig, recording, ["friction"])
    assert found.left[0] == pytest.approx(fit(variables, [alone]).left[0], rel=1e-6)


# --- intervals ---


def problem(rng, slopes, noise):
    """Normal matrices and gradients of clusters at the least squares of y = A x + noise, and the error of x."""
    flat, right = slopes.reshape(-1, slopes.shape[2]), noise.reshape(-1)
    error = np.linalg.lstsq(flat, right, rcond=None)[0]
    left = noise - slopes @ error
    normals = np.einsum("cri,crj->cij", slopes, slopes)
    return normals, -np.einsum("cri,cr->ci", slopes, left), error


@pytest.mark.parametrize("alike", [False, True])
def test_intervals_hold_what_is_true(alike):
    """Of noise that is white, and of noise that is the same in a whole cluster, where naive ones do not hold."""
    rng, clusters, rows, n = np.random.default_rng(1), 12, 40, 4
    held, naive = 0, 0
    trials = 400
    for _ in range(trials):
        slopes = rng.normal(size=(clusters, rows, n)) + rng.normal(size=(clusters, 1, n))
        noise = rng.normal(size=(clusters, 1 if alike else rows)) * np.ones((clusters, rows))
        normals, scores, error = problem(rng, slopes, noise)
        spread = jackknife(normals, scores, np.zeros(n))
        held += np.sum(np.abs(error) < deviations_of_interval(clusters) * np.sqrt(np.diag(spread)))
        whole = np.linalg.inv(normals.sum(axis=0))
        naive += np.sum(np.abs(error) < 1.96 * np.sqrt(np.diag(whole)))
    assert 0.93 < held / (n * trials) < 0.99
    assert (naive / (n * trials) > 0.9) != alike


def test_what_nothing_determines_varies_as_is_known_beforehand():
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(10, 20, 3))
    slopes[..., 2] = 0.0
    normals, scores, _ = problem(rng, slopes, rng.normal(size=(10, 20)))
    spread = jackknife(normals, scores, np.array([0.0, 0.0, 1e-2]))
    assert spread[2, 2] == pytest.approx(100.0)
    assert spread[0, 0] < 0.1
    assert jackknife(normals, scores, np.zeros(3))[2, 2] > 1e9


def test_a_triangle_has_the_sums_of_its_rows():
    rows = np.random.default_rng(0).normal(size=(50, 4)) * [1.0, 1e6, 1e-6, 1.0]
    R = triangle(rows)
    np.testing.assert_allclose(R.T @ R, rows.T @ rows, rtol=1e-9)
