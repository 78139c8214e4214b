"""Closure rows of joints that close loops: residuals, reactions, intended branch."""

import math

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody import joints
from cosim.mechanics.multibody.joints import screw
from cosim.mechanics.multibody.mechanism import Joint, Pose
from tests.multibody.random_frames import CLOSURES, STEP, quick, seeds


def own_motion(kind, random, size=3.0):
    """The place of a joint at random coordinates, as arrays."""
    q = kind.space.integrate(kind.space.neutral, random.uniform(-size, size, kind.nv))
    turned, r = kind.place(q, 0.0)
    return q, np.array(turned, dtype=float), np.array(r, dtype=float)


def slopes(kind, turned, r):
    """d closing / d (linear, angular) of the child, along the axes of the joint's frame."""

    def at(step):
        rotation = Rotation.from_rotvec(step[3:]).as_matrix()
        return np.array(kind.closure(rotation @ turned, r + step[:3]), dtype=float)

    return np.transpose([(at(STEP * e) - at(-STEP * e)) / (2 * STEP) for e in np.eye(6)])


@pytest.mark.parametrize("name", CLOSURES)
@quick
@given(seeds)
def test_closure_rows_vanish_along_the_motion_of_the_joint(name, seed):
    kind = CLOSURES[name]
    _, turned, r = own_motion(kind, np.random.default_rng(seed))
    assert np.abs(np.array(kind.closure(turned, r), dtype=float)).max() < 1e-15


@pytest.mark.parametrize("name", CLOSURES)
@quick
@given(seeds)
def test_closure_rows_constrain_all_other_directions(name, seed):
    """As many rows as directions that are not free; together they leave just these."""
    kind = CLOSURES[name]
    q, turned, r = own_motion(kind, np.random.default_rng(seed))
    rows = slopes(kind, turned, r)
    assert len(rows) == len(kind.reactions.split()) == 6 - kind.nv
    assert np.linalg.svd(rows, compute_uv=False)[-1] > 0.5
    for s in kind.hinge(q, np.zeros(kind.nv), 0.0).columns:
        free = np.concatenate([turned @ s.linear, turned @ s.angular])
        np.testing.assert_allclose(rows @ free, np.zeros(len(rows)), atol=1e-9)


@pytest.mark.parametrize("name", CLOSURES)
def test_reactions_match_their_names(name):
    """A row's reaction is the force or moment along one axis of the frame on the parent."""
    kind = CLOSURES[name]
    for seed in range(5):
        _, turned, r = own_motion(kind, np.random.default_rng(seed))
        for row, reaction in zip(slopes(kind, turned, r), kind.reactions.split(), strict=True):
            expected = np.zeros(6)
            expected["xyz".index(reaction[1]) + 3 * (reaction[0] == "m")] = 1.0
            if name == "universal" and reaction == "my":  # across both axes
                expected[3:] = turned[:, 0] @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
            if name.startswith("screw") and reaction == "fz":  # along the thread
                expected[5] = -0.3 if name == "screw" else 0.05
            np.testing.assert_allclose(row, expected, atol=1e-9)


@pytest.mark.parametrize("name", CLOSURES)
def test_a_joint_transmits_the_components_that_it_names_and_no_others(name):
    """Of the wrench Gᵀ λ on the child, for any λ, along the axes of the frame on the parent."""
    kind = CLOSURES[name]
    named = ["xyz".index(part[1]) + 3 * (part[0] == "m") for part in kind.components]
    largest = np.zeros(6)
    for seed in range(10):
        _, turned, r = own_motion(kind, np.random.default_rng(seed))
        largest = np.maximum(largest, np.abs(slopes(kind, turned, r)).max(axis=0))
    assert largest[named].min() > 0.01
    np.testing.assert_allclose(np.delete(largest, named), 0.0, atol=1e-9)


# of a joint closed half a turn off: about an axis across z, and for those that do not turn freely about z
FLIPS = {name: [np.diag([1.0, -1.0, -1.0])] for name in ("revolute", "cylindrical", "planar")}
FLIPS |= {name: [np.diag([1.0, -1.0, -1.0]), np.diag([-1.0, -1.0, 1.0])] for name in CLOSURES if name[0] in "sf"}
FLIPS |= {"prismatic": FLIPS["fixed"]}
del FLIPS["spherical"]


@pytest.mark.parametrize("name", CLOSURES)
@quick
@given(seeds)
def test_the_intended_branch(name, seed):
    kind = CLOSURES[name]
    _, turned, r = own_motion(kind, np.random.default_rng(seed))
    assert (kind.branch is None) == (name in ("universal", "spherical"))
    if kind.branch is not None:
        assert kind.branch(turned, r) > 0.5
        for flip in FLIPS[name]:
            assert np.abs(np.array(kind.closure(turned @ flip, r), dtype=float)).max() < 1e-14
            assert kind.branch(turned @ flip, r) < -0.5


@pytest.mark.parametrize(
    ("axis", "x"),
    [
        ([0, 0, -1], [1, 0, 0]),
        ([0, 1, 0], [1, 0, 0]),
        ([-1, 0, 0], [0, 1, 0]),
        ([0.6, 0, 0.8], [0.8, 0, -0.6]),
        ([math.cos(1e-6), math.sin(1e-6), 0], [math.sin(1e-6), -math.cos(1e-6), 0]),
    ],
)
def test_x_is_the_direction_nearest_to_that_of_the_frame(axis, x):
    axis = np.array(axis, dtype=float)
    axes = joints.joint_axes(Joint("j", "planar", "a", "b", Pose.identity(), axis))
    np.testing.assert_allclose(axes[:, [0, 2]], np.transpose([x, axis]), atol=1e-9)
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-15)
    assert np.linalg.det(axes) > 0
    if np.abs(axis).max() == 1.0:
        assert set(np.abs(axes).ravel()) == {0.0, 1.0} and not np.signbit(axes[axes == 0.0]).any()


@pytest.mark.parametrize("turns", [-40.25, -2.0, 1.0, 7.5, 1000.0])
@pytest.mark.parametrize("pitch", [0.3, -0.05, 1e-3])
def test_a_screw_stays_closed_after_many_turns(pitch, turns):
    kind, angle = screw(pitch), 2.0 * math.pi * turns + 0.4
    turned, r = kind.place(np.array([angle]), 0.0)
    assert np.abs(kind.closure(turned, r)).max() < 1e-11 * abs(pitch)
    # off the thread by a little it says by how much
    assert kind.closure(turned, r + np.array([0.0, 0.0, 0.01 * pitch]))[2] == pytest.approx(0.01 * pitch, rel=1e-3)


def test_a_free_joint_has_no_closure_rows():
    assert joints.FREE.closure is None and joints.FREE.reactions == ""
