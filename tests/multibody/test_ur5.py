"""The UR5 file agrees with the manufacturer's Denavit-Hartenberg table."""

import math
from pathlib import Path

import numpy as np
import pytest

from cosim.multibody.description.topology import depth_first
from cosim.multibody.description.urdf import read_urdf

UR5 = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"
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


def turn(axis, angle):
    """The rotation about "x", "y" or "z"."""
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    rotation = np.eye(3)
    rotation[[i, j], [i, j]] = math.cos(angle)
    rotation[j, i] = math.sin(angle)
    rotation[i, j] = -math.sin(angle)
    return rotation


def homogeneous(rotation, position):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def dh_frames(q):
    """Frames 1 to 6 in frame 0: products of Rz(q) Tz(d) Tx(a) Rx(alpha)."""
    frames, frame = [], np.eye(4)
    for angle, (a, d, alpha) in zip(q, DH, strict=True):
        frame = frame @ homogeneous(turn("z", angle), (0, 0, d)) @ homogeneous(turn("x", alpha), (a, 0, 0))
        frames.append(frame)
    return frames


def link_frames(mechanism, q):
    """Every link's frame in the root's, by Rodrigues' formula about the joint axes of the file."""
    angles = iter(q)
    frames = {mechanism.root: np.eye(4)}
    for part in depth_first(mechanism):
        x, y, z = part.axis
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        angle = next(angles) if part.kind != "fixed" else 0.0
        rotation = np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
        placed = homogeneous(part.pose.rotation, part.pose.position)
        frames[part.child] = frames[part.parent] @ placed @ homogeneous(rotation, (0, 0, 0))
    return frames


@pytest.mark.parametrize(
    "q", [(0, 0, 0, 0, 0, 0), (0, -math.pi / 2, 0, -math.pi / 2, 0, 0), (0.3, -1.2, 2.1, -0.7, 1.9, -2.8)]
)
def test_ur5_frames_and_mass_centres_are_those_of_the_dh_table(q):
    mechanism = read_urdf(UR5)
    frames, expected = link_frames(mechanism, q), dh_frames(q)
    np.testing.assert_allclose(frames["tool0"], expected[-1], atol=1e-15)
    moving = [part for part in mechanism.links if part.inertial is not None]
    for part, dh_frame, centre in zip(moving, expected, MASS_CENTRES, strict=True):
        assert part.inertial is not None
        np.testing.assert_allclose(frames[part.name][:3, :3], dh_frame[:3, :3], atol=1e-15)
        found = frames[part.name] @ [*part.inertial.com, 1]
        np.testing.assert_allclose(found, dh_frame @ [*centre, 1], atol=1e-15)


def test_ur5_has_the_makers_names_masses_and_limits():
    mechanism = read_urdf(UR5)
    moving = [part for part in mechanism.joints if part.kind != "fixed"]
    assert [part.name for part in moving] == [
        "shoulder_pan_joint",
        "shoulder_lift_joint",
        "elbow_joint",
        "wrist_1_joint",
        "wrist_2_joint",
        "wrist_3_joint",
    ]
    assert [part.max_effort for part in moving] == [150, 150, 150, 28, 28, 28]
    assert [part.upper / math.pi for part in moving] == [2, 2, 1, 2, 2, 2]
    assert [part.lower for part in moving] == [-part.upper for part in moving]
    assert {part.max_velocity for part in moving} == {math.pi}
    masses = [part.inertial.mass for part in mechanism.links if part.inertial]
    assert masses == [3.7, 8.393, 2.33, 1.219, 1.219, 0.1879]
    assert mechanism.notes == ()
