"""Random frames and bodies, joints that close loops, and how close results are."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody import joints
from cosim.mechanics.multibody.joints import screw
from cosim.mechanics.multibody.mechanism import Inertial, Link, Pose

quick = settings(max_examples=20)
seeds = st.integers(0, 2**32 - 1)
STEP = 1e-5  # of central differences

CLOSURES = {
    "revolute": joints.REVOLUTE,
    "prismatic": joints.PRISMATIC,
    "cylindrical": joints.CYLINDRICAL,
    "universal": joints.UNIVERSAL,
    "spherical": joints.SPHERICAL,
    "planar": joints.PLANAR,
    "fixed": joints.FIXED,
    "screw": screw(0.3),
    "screw the other way": screw(-0.05),
}


def turn(random):
    return Rotation.random(random_state=int(random.integers(2**31))).as_matrix()


def random_pose(random):
    return Pose(turn(random), random.uniform(-0.5, 0.5, 3))


def at(*position):
    """A place along the axes of its parent; coordinates that are left out are 0."""
    return Pose(np.eye(3), np.array([*position, *[0.0] * (3 - len(position))], dtype=float))


def heavy(name, random, mass=(0.5, 2.0), com=0.3, spread=(0.02, 0.2)):
    """A link with a solid body: its principal moments are sums of two second moments of its mass."""
    own, axes = random.uniform(*mass), turn(random)
    x, y, z = own * random.uniform(*spread, 3)
    return Link(name, Inertial(own, random.uniform(-com, com, 3), axes @ np.diag([y + z, x + z, x + y]) @ axes.T))


def error(found, expected, least=0.0):
    """The largest difference relative to the largest value, or to `least` where that is larger; 0 of empty arrays."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    return np.abs(found - expected).max(initial=0.0) / (max(least, np.abs(expected).max(initial=0.0)) or 1.0)


def close(found, expected, room=1e-9):
    """Whether the largest difference is small beside the largest value (or beside 1)."""
    assert error(found, expected, 1.0) <= room
