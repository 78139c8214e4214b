"""Random frames, and joints that close loops, for the tests of constraints."""

from hypothesis import settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cosim.multibody import joints
from cosim.multibody.joints import screw
from cosim.multibody.mechanism import Pose

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
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
