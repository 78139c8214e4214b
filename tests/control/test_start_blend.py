"""The blend at the start: each joint and each quantity has its own time, and the sum stays within the limits or is
refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import TrajectorySamples
from cosim.control.start_blend import BlendBounds, blended, ends
from cosim.plugins.trajectories._piecewise import spline_through
from cosim.plugins.trajectories.quintic import Quintic
from cosim.plugins.trajectories.sine import Sine

STEP = 0.01  # s
INF = np.full(2, np.inf)
UNBOUNDED = BlendBounds(-INF, INF, INF, INF)


def sine(amplitude, omega=(np.pi, np.pi), ramp=0.0):
    rest = np.zeros(len(amplitude))
    return Sine(rest, np.array(amplitude), np.array(omega), rest, ramp)


def blend_of(trajectory, position, velocity, bounds=UNBOUNDED, blend=0.5, compiled=False):
    samples = TrajectorySamples(trajectory, len(position), STEP, compiled)
    return blended(trajectory, samples, np.array(position), np.array(velocity), bounds, blend, STEP)


def references(trajectory, start: BumplessStart, ticks: int):
    """(position, velocity, acceleration) (k, 2) of the references of each tick, one by one."""
    rows = [start.reference(trajectory, k * STEP) for k in range(ticks)]
    return tuple(np.array([row[name] for row in rows]) for name in ("position", "velocity", "acceleration"))


def test_a_joint_at_its_place_follows_its_trajectory_whatever_another_one_needs():
    """The other one is 3 rad away, and needs much longer than the shortest blend."""
    trajectory = sine([0.2, 1.0])
    _, speed = (values[0] for values in TrajectorySamples(trajectory, 2, STEP, False)(1))
    bounds = BlendBounds(-INF, INF, np.array([1.0, 8.0]), INF)
    start = blend_of(trajectory, [3.0, 0.0], [-speed[0], 0.0], bounds).start
    assert ends(start)[0] > 6.0 and ends(start)[1] == 0.0
    for t in np.linspace(0.0, 8.0, 50):
        added = start.added(t)
        assert [added[name][1] for name in ("position", "velocity", "acceleration")] == [0.0, 0.0, 0.0]


def test_a_velocity_does_not_wait_for_a_position():
    """At rest, 3 rad from a sine with a start velocity: the velocity is the sine's long before the position."""
    bounds = BlendBounds(-INF, INF, np.array([2.0, 2.0]), INF)
    start = blend_of(sine([0.1, 0.1]), [3.0, 3.0], [-0.1 * np.pi, -0.1 * np.pi], bounds).start
    np.testing.assert_allclose(1.0 / start.drift_rate, 0.5)
    assert (1.0 / start.offset_rate > 5.0).all()
    # what it leaves behind is the integral of its fading, and no more
    assert (np.abs(start.offset - 3.0) <= 0.25 * 0.1 * np.pi + 1e-12).all()


def test_references_begin_at_the_measured_state_and_end_on_the_trajectory_with_continuous_accelerations():
    trajectory = sine([0.4, 0.7], omega=[2.0, 5.0])
    start = blend_of(trajectory, [0.3, -1.1], [0.5, -2.0]).start
    ticks = round(start.duration / STEP) + 20
    position, velocity, acceleration = references(trajectory, start, ticks)
    first = trajectory.sample(0.0)
    np.testing.assert_allclose(position[0], first["position"] + [0.3, -1.1], atol=1e-12)
    np.testing.assert_allclose(velocity[0], first["velocity"] + [0.5, -2.0], atol=1e-12)
    np.testing.assert_allclose(acceleration[0], first["acceleration"], atol=1e-12)
    np.testing.assert_array_equal(position[-1], trajectory.sample((ticks - 1) * STEP)["position"])
    h = 1e-4
    for t in np.linspace(h, start.duration + 0.1, 40):
        before, now, after = (start.reference(trajectory, t + shift) for shift in (-h, 0.0, h))
        for value, rate in (("position", "velocity"), ("velocity", "acceleration")):
            np.testing.assert_allclose((after[value] - before[value]) / (2.0 * h), now[rate], atol=1e-2)


def test_the_acceleration_of_a_blend_is_at_most_half_of_what_the_effort_gives():
    bounds = BlendBounds(-INF, INF, INF, np.array([2.0, 4.0]))
    still = Quintic(np.zeros(2), np.zeros(2), 0.0, 1.0, False)
    for offsets in (([1.0, -2.0], [0.0, 0.0]), ([0.0, 0.0], [3.0, -1.0])):
        start = blend_of(still, *offsets, bounds=bounds).start
        _, _, acceleration = references(still, start, round(start.duration / STEP) + 1)
        # an offset of the velocity leaves one of the position, each with its half
        assert (np.abs(acceleration).max(axis=0) <= bounds.acceleration * (0.5 if not any(offsets[1]) else 1.0)).all()
        assert (np.abs(acceleration).max(axis=0) >= 0.3 * bounds.acceleration).all()


def test_where_nothing_fits_how_far_it_leaves_the_limits_is_known():
    """A sine whose speed at the start is the limit leaves no room to catch up."""
    trajectory = sine([40.0, 2.0], omega=[0.05, 0.05])
    bounds = BlendBounds(-INF, INF, np.array([2.0, 2.0]), INF)
    found = blend_of(trajectory, [0.0, 0.0], [-2.0, -0.1], bounds)
    assert found.leaves.tolist() == [True, False]
    _, velocity, _ = references(trajectory, found.start, round(found.start.duration / STEP) + 1)
    assert found.too_fast[0] == pytest.approx(np.abs(velocity[:, 0]).max() - 2.0, abs=1e-6)


def test_a_joint_too_far_away_to_arrive_in_time_is_refused():
    bounds = BlendBounds(-INF, INF, np.array([0.01, 1.0]), INF)
    found = blend_of(sine([0.0, 0.0]), [10.0, 10.0], [0.0, 0.0], bounds)
    assert found.leaves.tolist() == [True, False] and found.too_fast[0] == np.inf


JOINTS = 6  # each is a case of its own


def of_each(low: float, high: float):
    return st.tuples(*[st.floats(low, high)] * JOINTS)


places, limits = of_each(-3.0, 3.0), of_each(0.3, 5.0)
trajectories = st.one_of(
    st.builds(sine, places, of_each(0.1, 8.0), st.sampled_from([0.0, 0.5])),
    st.builds(
        lambda a, b, T, back: Quintic(np.array(a), np.array(b), 0.0, T, back),
        *(places, places, st.floats(0.2, 4.0), st.booleans()),
    ),
    st.builds(
        lambda rows, ends: spline_through(np.array([0.0, 0.7, 1.5]), np.array(rows), 3, ends, "spline"),
        *(st.lists(places, min_size=3, max_size=3), st.sampled_from(["clamped", "natural"])),
    ),
)


@settings(max_examples=8)
@given(trajectories, places, places, limits, limits, limits, st.sampled_from([0.0, 0.2, 0.5]))
def test_references_stay_within_the_limits_or_the_start_is_refused(
    trajectory, place, speed, velocity, acceleration, room, blend
):
    """Any state within the limits, any reference; also limits of a few hundredths beside it."""
    first = trajectory.sample(0.0)
    bounds = BlendBounds(
        np.minimum(first["position"], place) - room,
        np.maximum(first["position"], place) + room,
        np.array(velocity),
        np.array(acceleration),
    )
    speed = np.clip(speed, -bounds.velocity, bounds.velocity)
    offsets = np.array(place) - first["position"], speed - first["velocity"]
    found = blend_of(trajectory, *offsets, bounds, blend)
    ticks = round(min(found.start.duration, 5.0) / STEP) + 1
    position, velocity, _ = references(trajectory, found.start, ticks)
    np.testing.assert_allclose(position[0], place, atol=1e-9)
    np.testing.assert_allclose(velocity[0], speed, atol=1e-9)
    for k in np.flatnonzero(~found.leaves):
        rows = np.arange(ticks) * STEP <= ends(found.start)[k]
        assert (np.abs(velocity[rows, k]) <= bounds.velocity[k] * (1 + 1e-8)).all()
        assert (bounds.lower[k] - 1e-8 <= position[rows, k]).all()
        assert (position[rows, k] <= bounds.upper[k] + 1e-8).all()
