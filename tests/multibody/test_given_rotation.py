"""Rotations through orientations at given times: against scipy, and their velocities against their differences."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.multibody.given_rotation import GivenRotation

TIMES = np.array([0.1, 0.3, 1.0, 1.4, 2.5])
POINTS = Rotation.random(len(TIMES), random_state=1)
KINDS = ("slerp", "squad", "rest")
JUST = 1e-9  # s


def through(kind, times=TIMES, points=POINTS):
    return GivenRotation.through(times, points.as_quat(), kind)


def turned(rotation, t):
    return Rotation.from_quat(rotation.sample(t)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_it_passes_its_orientations_and_stays_at_the_ends(kind):
    found = through(kind)
    for t, point in zip(TIMES, POINTS, strict=True):
        assert (turned(found, t).inv() * point).magnitude() < 1e-14
    for t, point in ((0.0, POINTS[0]), (9.0, POINTS[-1])):
        assert (turned(found, t).inv() * point).magnitude() < 1e-14
        assert not any(np.any(rate) for rate in found.sample(t)[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_velocities_are_those_of_the_rotation(kind):
    found, h = through(kind), 1e-4
    for t in np.setdiff1d(np.linspace(0.0, 2.7, 41) + 0.0013, TIMES):
        if np.abs(TIMES - t).min() < 3 * h:
            continue
        quaternion, omega, alpha = found.sample(t)
        here = Rotation.from_quat(quaternion)
        steps = [(here.inv() * turned(found, t + k * h)).as_rotvec() for k in (-2, -1, 1, 2)]
        difference = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
        rates = [found.sample(t + k * h)[1] for k in (-2, -1, 1, 2)]
        change = (rates[0] - 8 * rates[1] + 8 * rates[2] - rates[3]) / (12 * h)
        assert np.linalg.norm(quaternion) == pytest.approx(1.0, abs=1e-14)
        assert omega == pytest.approx(difference, abs=1e-8)
        assert alpha == pytest.approx(change, abs=1e-7)


def test_slerp_is_that_of_scipy():
    found, expected = through("slerp"), Slerp(TIMES, POINTS)
    for t in np.linspace(TIMES[0], TIMES[-1], 50):
        assert (turned(found, t).inv() * expected(t)).magnitude() < 1e-13


def test_where_the_velocity_jumps():
    """With slerp everywhere, else nowhere; squad's acceleration jumps, the one of rest does not."""

    def jumps(kind, of):
        found = through(kind)
        pairs = [(found.sample(t * (1 - JUST))[of], found.sample(t * (1 + JUST))[of]) for t in TIMES]
        return [bool(np.abs(after - before).max() > 1e-4) for before, after in pairs]

    assert jumps("slerp", 1) == [True] * 5
    assert jumps("squad", 1) == jumps("rest", 1) == jumps("rest", 2) == [False] * 5
    assert any(jumps("squad", 2))


def test_squad_is_that_of_shoemake():
    """At even times: slerp(slerp(q, q'), slerp(a, a'), 2 s (1 − s)) with his inner points."""
    points = Rotation.from_rotvec(0.4 * np.random.default_rng(2).normal(size=(4, 3)))
    found = through("squad", np.arange(4.0), points)

    def inner(k):
        own = points[k].inv()
        mean = (own * points[k + 1]).as_rotvec() + (own * points[k - 1]).as_rotvec()
        return points[k] * Rotation.from_rotvec(-0.25 * mean)

    def between(a, b, s):
        return a * Rotation.from_rotvec(s * (a.inv() * b).as_rotvec())

    for s in np.linspace(0.0, 1.0, 11):
        outer, within = between(points[1], points[2], s), between(inner(1), inner(2), s)
        expected = between(outer, within, 2.0 * s * (1.0 - s))
        assert (turned(found, 1.0 + s).inv() * expected).magnitude() < 1e-13


@pytest.mark.parametrize("kind", KINDS)
def test_machine_code_gives_the_same(kind):
    found = through(kind)
    code = compile(lambda t: found.rates(t), [ArrayPort("t", ())], "rotation")
    for t in np.linspace(0.0, 2.7, 23):
        for value, expected in zip(code(t), found.rates(t), strict=True):
            assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_signs_of_quaternions_do_not_count(kind):
    signs = np.array([1, -1, -1, 1, -1])[:, None]
    found = GivenRotation.through(TIMES, signs * POINTS.as_quat(), kind)
    for t in np.linspace(0.0, 2.7, 11):
        assert (turned(found, t).inv() * turned(through(kind), t)).magnitude() < 1e-14


def test_half_a_turn_is_refused():
    points = Rotation.from_rotvec([[0, 0, 0], [0, 0, np.pi]])
    with pytest.raises(ValueError, match="half a turn apart, so the shorter way is not determined"):
        through("squad", [0.0, 1.0], points)
