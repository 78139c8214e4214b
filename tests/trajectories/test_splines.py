"""Splines and motions of least jerk against scipy, variations and the closed form; wrong points and times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from cosim.core.types import Trajectory
from cosim.plugins.trajectories import minimum_jerk, quintic, spline
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial, spline_coefficients
from tests.kit.messages import Said
from tests.kit.refusals import raised

JOINTS = ("shoulder", "elbow")
START = np.array([0.2, -0.4])
POINTS = ((1.0, 2.0), (0.0, 1.0), (3.0, 0.0))
TIMES = (1.0, 1.5, 3.0)
VIA = ((0.5, 0.0), (0.7, 2.0), (1.0, 1.0))
KEYS = ("position", "velocity", "acceleration")


def through(**keys: Any) -> PiecewisePolynomial:
    given: dict[str, Any] = {"points": POINTS, "times": TIMES, **keys}
    return spline.load(spline.Params(**given), JOINTS, Path(), START)


def smooth(**keys: Any) -> PiecewisePolynomial:
    given: dict[str, Any] = {"goal": (1.0, 2.0), "duration": 2.0, **keys}
    loaded = minimum_jerk.load(minimum_jerk.Params(**given), JOINTS, Path(), START)
    assert isinstance(loaded, PiecewisePolynomial)
    return loaded


def sampled(trajectory: Trajectory, times: np.ndarray, key: str) -> np.ndarray:
    return np.array([trajectory.sample(float(t))[key] for t in times])


@pytest.mark.parametrize("ends", ["clamped", "natural"])
def test_a_cubic_spline_is_that_of_scipy(ends: Any) -> None:
    times = np.linspace(0.0, 2.999, 77)
    reference = CubicSpline([0.0, *TIMES], [START, *POINTS], bc_type=ends)
    for k, key in enumerate(KEYS):
        np.testing.assert_allclose(sampled(through(degree=3, ends=ends), times, key), reference(times, k), atol=1e-12)


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("ends", ["clamped", "natural"])
def test_a_spline_passes_its_points_with_continuous_acceleration(degree: Any, ends: Any) -> None:
    trajectory = through(degree=degree, ends=ends)
    np.testing.assert_allclose(sampled(trajectory, np.array([0.0, *TIMES]), "position"), [START, *POINTS], atol=1e-13)
    for t in TIMES[:-1]:
        before, after = (trajectory.sample(t + shift) for shift in (-1e-9, 1e-9))
        for key in KEYS:
            np.testing.assert_allclose(before[key], after[key], atol=1e-6)


@pytest.mark.parametrize(("degree", "zero"), [(3, ("velocity",)), (5, ("velocity", "acceleration"))])
def test_clamped_ends_are_at_rest(degree: Any, zero: tuple[str, ...]) -> None:
    trajectory = through(degree=degree)
    for t in (0.0, TIMES[-1] - 1e-12):
        for key in zero:
            np.testing.assert_allclose(trajectory.sample(t)[key], 0.0, atol=1e-9)


@pytest.mark.parametrize(("degree", "order"), [(3, 2), (5, 3)])
@pytest.mark.parametrize("ends", ["clamped", "natural"])
def test_a_spline_has_the_least_bend_or_jerk_among_curves_through_its_points(
    degree: Any, order: int, ends: Any
) -> None:
    """Its derivative is orthogonal to every admissible variation's."""
    trajectory = through(degree=degree, ends=ends)
    t = (np.arange(1500) + 0.5) * TIMES[-1] / 1500  # no sample at a knot
    top = sampled(trajectory, t, "acceleration")
    top = np.gradient(top, t, axis=0) if order == 3 else top
    free = {"natural": 0, "clamped": order - 1}[ends]
    for power in range(3):
        polynomial = np.polynomial.Polynomial.fromroots(TIMES[:-1]) * np.polynomial.Polynomial([-0.5, 1.0]) ** power
        for end in (0.0, TIMES[-1]):
            polynomial = polynomial * np.polynomial.Polynomial.fromroots([end]) ** (1 + free)
        variation = polynomial.deriv(order)(t)
        product = (top[:, 0] * variation).sum()
        size = np.sqrt((top[:, 0] ** 2).sum() * (variation**2).sum())
        assert abs(product) < 1e-3 * size


def test_without_via_points_the_least_jerk_is_the_quintic() -> None:
    keys: dict[str, Any] = {"goal": (1.0, 2.0), "duration": 2.0, "delay": 0.3}
    reference = quintic.load(quintic.Params(**keys), JOINTS, Path(), START)
    ends = np.array([0.0, 2.0])
    of_one_piece = spline_coefficients(ends, np.array([START, np.array([1.0, 2.0])]), 5, "clamped")
    least = PiecewisePolynomial.of(0.3 + ends, of_one_piece, "least")
    loaded = minimum_jerk.load(minimum_jerk.Params(**keys), JOINTS, Path(), START)
    times = np.linspace(-0.5, 3.0, 71)
    for found in (least, loaded):
        assert found.end == reference.end
        for key in KEYS:
            np.testing.assert_allclose(sampled(found, times, key), sampled(reference, times, key), rtol=0, atol=1e-13)


def test_via_points_without_times_are_passed_when_it_costs_the_least_jerk() -> None:
    trajectory = smooth(via=VIA)
    times = trajectory.row_at.begins[1:]
    points = np.array([START, *VIA, (1.0, 2.0)])
    least = minimum_jerk.squared_jerk(times, points)
    t = np.linspace(0.0, 2.0, 4001)
    jerk = np.diff(sampled(trajectory, t, "acceleration"), axis=0) / t[1]
    assert least == pytest.approx((jerk**2).sum() * t[1], rel=1e-5)
    np.testing.assert_allclose(sampled(trajectory, times[1:-1], "position"), VIA, atol=1e-13)
    for k in (1, 2, 3):
        for shift in (-1e-3, 1e-3):
            moved = times.copy()
            moved[k] += shift
            assert minimum_jerk.squared_jerk(moved, points) > least


def test_via_points_on_the_straight_motion_do_not_change_it() -> None:
    """The closed form passes them at the times that follow from its polynomial."""
    fractions = [quintic.minimum_jerk(s)[0] for s in (0.3, 0.8)]
    via = tuple(tuple(START + f * (np.array([1.0, 2.0]) - START)) for f in fractions)
    np.testing.assert_allclose(smooth(via=via).row_at.begins[1:], [0.0, 0.6, 1.6, 2.0], atol=1e-5)


def test_given_times_are_kept() -> None:
    np.testing.assert_array_equal(
        smooth(via=VIA, times=(0.5, 0.9, 1.7), delay=0.2).row_at.begins[1:], [0.2, 0.7, 1.1, 1.9, 2.2]
    )


@pytest.mark.parametrize(
    "keys",
    [
        {"points": (), "times": ()},
        {"times": (1.0, 2.0)},
        {"times": (0.0, 1.0, 2.0)},
        {"times": (1.0, 3.0, 2.0)},
        {"points": ((1.0, 2.0),), "times": (1.0,), "ends": "natural"},
    ],
    ids=str,
)
def test_a_spline_refuses_wrong_times(keys: dict[str, Any], said: Said) -> None:
    said(raised(ValueError, through, **keys))


@pytest.mark.parametrize("times", [(0.5,), (0.5, 0.4, 1.0), (0.5, 0.9, 2.0)], ids=str)
def test_least_jerk_refuses_wrong_times(times: tuple[float, ...], said: Said) -> None:
    said(raised(ValueError, smooth, via=VIA, times=times))


def test_a_rig_takes_points_as_lists_or_by_joint(rig_of: Any) -> None:
    text = """
        mechanism:
          bodies:
            - {name: upper, joint: shoulder, mass: 2 kg, com: [0.2, 0, 0], inertia: [0.01, 0.03, 0.03]}
            - {name: fore, joint: elbow, origin: {xyz: [0.4, 0, 0]}, mass: 1 kg, com: [0.2, 0, 0],
               inertia: [0.01, 0.02, 0.02]}
        joints: {all: {actuator: {type: ideal}}}
        controllers:
          - type: computed_torque
            bandwidth: 8 Hz
            trajectory:
              type: spline
              points: [[30 deg, -20 deg], {elbow: 10 deg, shoulder: 45 deg}]
              times: [0.3 s, 700 ms]
        schedule: {step: 1 ms, duration: 0.8 s}
    """
    run = rig_of(text).run()
    for t, points in ((0.3, (30, -20)), (0.7, (45, 10))):
        found = [run[f"{joint}/reference_position"][round(t * 1000)] for joint in JOINTS]
        np.testing.assert_allclose(found, np.radians(points), atol=1e-12)
    assert run.summary["joints"]["elbow"]["error_max"] < 2e-3
