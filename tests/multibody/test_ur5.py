"""The UR5 file agrees with the manufacturer's Denavit-Hartenberg table."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim.multibody import Model
from cosim.multibody.description.urdf import read_urdf
from tests.kit.samples import FOLDER

UR5 = FOLDER / "robots" / "ur5.urdf"
DH = [  # a, d, alpha of joints 1 to 6
    (0, 0.089159, math.pi / 2),
    (-0.425, 0, 0),
    (-0.39225, 0, 0),
    (0, 0.10915, math.pi / 2),
    (0, 0.09465, -math.pi / 2),
    (0, 0.0823, 0),
]
MASS_CENTRES = [  # of links 1 to 6 in their DH frames
    (0, -0.02561, 0.00193),
    (0.2125, 0, 0.11336),
    (0.15, 0, 0.0265),
    (0, -0.0018, 0.01634),
    (0, 0.0018, 0.01634),
    (0, 0, -0.001159),
]


def homogeneous(rotation, position):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def dh_frames(q):
    """Frames 1 to 6 in frame 0: products of Rz(q) Tz(d) Tx(a) Rx(alpha)."""
    frames, frame = [], np.eye(4)
    for angle, (a, d, alpha) in zip(q, DH, strict=True):
        about_z, about_x = Rotation.from_rotvec([0, 0, angle]), Rotation.from_rotvec([alpha, 0, 0])
        frame = frame @ homogeneous(about_z.as_matrix(), (0, 0, d)) @ homogeneous(about_x.as_matrix(), (a, 0, 0))
        frames.append(frame)
    return frames


@pytest.mark.parametrize("q", [(0, 0, 0, 0, 0, 0), (0.3, -1.2, 2.1, -0.7, 1.9, -2.8)])
def test_ur5_frames_and_mass_centres_are_those_of_the_dh_table(q):
    model, expected = Model.from_urdf(UR5), dh_frames(q)
    np.testing.assert_allclose(model.frame_pose(q, "tool0"), expected[-1], atol=1e-14)
    moving = [part for part in model.mechanism.links if part.inertial is not None]
    for part, dh_frame, centre in zip(moving, expected, MASS_CENTRES, strict=True):
        frame = model.frame_pose(q, part.name)
        np.testing.assert_allclose(frame[:3, :3], dh_frame[:3, :3], atol=1e-14)
        np.testing.assert_allclose(frame @ [*part.inertial.com, 1], dh_frame @ [*centre, 1], atol=1e-14)


def test_ur5_has_the_makers_names_masses_and_limits():
    mechanism = read_urdf(UR5)
    moving = [part for part in mechanism.joints if part.kind != "fixed"]
    names = "shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"
    assert [part.name for part in moving] == [f"{name}_joint" for name in names]
    assert [part.max_effort for part in moving] == [150, 150, 150, 28, 28, 28]
    assert [part.upper / math.pi for part in moving] == [2, 2, 1, 2, 2, 2]
    assert [part.lower for part in moving] == [-part.upper for part in moving]
    assert {part.max_velocity for part in moving} == {math.pi}
    masses = [part.inertial.mass for part in mechanism.links if part.inertial]
    assert masses == [3.7, 8.393, 2.33, 1.219, 1.219, 0.1879]
    assert mechanism.notes == ()
