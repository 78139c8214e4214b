"""Convex hulls on planes: their corners, and the groups in which they are points of contact."""

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody.contact.gaps import points, points_of, radius_around, reach
from cosim.mechanics.multibody.contact.hulls import MOST_CORNERS, MOST_GROUPS, hull_of, lowest_corners
from cosim.mechanics.multibody.contact.shapes import HalfSpace
from tests.multibody.contact.shapes_and_poses import CRYSTAL

GOLDEN = 0.5 * (1.0 + 5.0**0.5)
SIGNS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
PLANE = np.eye(3), np.zeros(3)


def rolled(numbers):
    """The points with these coordinates in all three cyclic orders and with all signs."""
    return np.unique(np.concatenate([np.roll(SIGNS * numbers, k, axis=1) for k in range(3)]), axis=0)


def prism(count):
    angles = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.concatenate([np.column_stack([ring, np.full(count, z)]) for z in (-0.5, 0.5)])


def cloud(count, seed):
    places = np.random.default_rng(seed).normal(size=(count, 3))
    return places / np.linalg.norm(places, axis=1)[:, None]


SOLIDS = {
    "tetrahedron": SIGNS[[0, 3, 5, 6]],
    "cube": SIGNS,
    "octahedron": np.concatenate([np.eye(3), -np.eye(3)]),
    "dodecahedron": np.concatenate([SIGNS, rolled([0.0, 1.0 / GOLDEN, GOLDEN])]),
    "icosahedron": rolled([0.0, 1.0, GOLDEN]),
    "buckyball": np.concatenate(
        [
            rolled([0.0, 1.0, 3.0 * GOLDEN]),
            rolled([1.0, 2.0 + GOLDEN, 2.0 * GOLDEN]),
            rolled([2.0, 1.0 + 2.0 * GOLDEN, GOLDEN]),
        ]
    ),
    "crystal": CRYSTAL,
    **{f"prism of {n}": prism(n) for n in (3, 6, 8, 9, 24, 60)},
    **{f"cloud of {n}": cloud(n, n) for n in (5, 12, 60, 128)},
}


def area(places):
    """Of the hull of points (n, 2)."""
    return ConvexHull(places).volume if len(places) > 2 else 0.0


def faces_down(corners):
    """(rotation, height, corners of the face) with each face of a solid on the plane."""
    for normal, offset in {tuple(np.round(e, 9)): (e[:3], e[3]) for e in ConvexHull(corners).equations}.values():
        rotation = Rotation.align_vectors([[0.0, 0.0, -1.0]], [normal])[0]
        yield rotation.as_matrix(), -offset, np.flatnonzero(np.abs(corners @ normal + offset) < 1e-6)


@pytest.mark.parametrize("solid", SOLIDS)
def test_a_hull_that_rests_on_a_face_stands_on_its_corners(solid):
    corners = SOLIDS[solid]
    hull, count, outside = hull_of(corners)
    assert (len(hull.corners), count, outside) == (len(corners), len(corners), 0.0)
    assert sorted(itertools.chain(*hull.groups)) == list(range(len(corners)))
    assert points_of(hull, HalfSpace()) == len(hull.groups) <= MOST_GROUPS
    for rotation, height, face in faces_down(hull.corners):
        found = points(hull, (rotation, np.array([0.3, -0.2, height])), HalfSpace(), PLANE)
        lie = np.array([point.position for point in found if abs(point.gap) < 1e-9])
        assert len(lie) == min(len(face), MOST_GROUPS)
        whole = area((hull.corners[face] @ rotation.T)[:, :2])
        assert area(lie[:, :2]) > (1.0 - 1e-9 if len(face) <= MOST_GROUPS else 0.85) * whole


@pytest.mark.parametrize("solid", SOLIDS)
def test_the_lowest_corner_is_a_point(solid):
    hull, _, _ = hull_of(SOLIDS[solid])
    random = np.random.default_rng(1)
    for _ in range(50):
        rotation = Rotation.from_quat(random.normal(size=4)).as_matrix()
        at = random.normal(size=3)
        heights = np.array([point[2] for point in lowest_corners(hull, rotation, at)])
        lowest = (SOLIDS[solid] @ rotation.T + at)[:, 2].min()
        assert heights.min() == pytest.approx(lowest, abs=1e-9)
        assert reach(hull, (rotation, at), HalfSpace(), PLANE) <= lowest + 1e-12


def test_of_many_corners_those_are_taken_that_leave_out_least():
    """Of a fine sphere: as good as the same number of corners evenly spread, and all within what is reported."""
    ball = cloud(5000, 0)
    hull, count, outside = hull_of(ball)
    assert (len(hull.corners), count) == (MOST_CORNERS, 5000)
    equations = ConvexHull(hull.corners).equations
    assert outside == pytest.approx((ball @ equations[:, :3].T + equations[:, 3]).max(), abs=1e-12)
    assert outside < 0.05
    assert radius_around(hull) <= 1.0 + 1e-12
    fine = np.concatenate([SIGNS, 0.999999 * SIGNS + 1e-9 * np.arange(8)[:, None], cloud(500, 1) * 0.5])
    cube, _, outside = hull_of(fine)
    assert len(cube.corners) <= 24 and outside <= 1e-6


@pytest.mark.parametrize("corners", [np.zeros((4, 3)), np.eye(3), SIGNS * [1.0, 1.0, 0.0], SIGNS[:3]])
def test_what_has_no_volume_is_no_hull(corners):
    with pytest.raises(ValueError, match="no volume"):
        hull_of(corners)
