"""Shapes that rest on others have the points of contact that hold them, at the places that geometry gives."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody.contact.gaps import is_possible, points
from cosim.mechanics.multibody.contact.shapes import BoxShape, CapsuleShape, CylinderShape, HalfSpace, TerrainShape
from tests.multibody.contact.shapes_and_poses import counted
from tests.multibody.random_frames import turn

ORIGIN = np.eye(3), np.zeros(3)
FLOORS = {
    "half-space": (HalfSpace(), ORIGIN),
    "terrain": (TerrainShape(np.arange(-2.0, 3.0), np.arange(-2.0, 3.0), np.zeros((5, 5))), ORIGIN),
    "box": (BoxShape((3.0, 4.0, 0.5)), (np.eye(3), np.array([0.1, 0.2, -0.25]))),
}


def turned(axis, degrees):
    return Rotation.from_rotvec(np.radians(degrees) * np.array(axis, dtype=float)).as_matrix()


def touching(contacts, gap=0.0):
    return [contact for contact in contacts if abs(contact.gap - gap) < 1e-9]


def places(contacts):
    """Of points, in an order of their own."""
    return np.array(sorted(np.round(contact.position, 9).tolist() for contact in contacts))


BOX = BoxShape((0.2, 0.3, 0.4))
EDGE = np.degrees(np.arctan2(0.2, 0.4))  # the box stands on its edge along y when it has turned so far about y
CYLINDER, CAPSULE = CylinderShape(0.1, 0.3), CapsuleShape(0.1, 0.3)
DIAGONAL = np.linalg.norm(BOX.size)
ON_CORNER = Rotation.align_vectors([[0.0, 0.0, 1.0]], [np.array(BOX.size) / DIAGONAL])[0].as_matrix()
RESTS = {  # shape, rotation, height of its origin, number of points that touch; those at other heights
    "a box on its face": (BOX, np.eye(3), 0.2, 4),
    "a box on another face, turned": (BOX, turned([0, 0, 1], 30) @ turned([0, 1, 0], 90), 0.1, 4),
    "a box on its edge": (BOX, turned([0, 1, 0], EDGE), 0.5 * np.hypot(0.2, 0.4), 2),
    "a box on its corner": (BOX, ON_CORNER, 0.5 * DIAGONAL, 1),
    "a cylinder that stands": (CYLINDER, turned([0, 0, 1], 50), 0.15, 3),
    "a cylinder that lies": (CYLINDER, turned([0, 0, 1], 40) @ turned([1, 0, 0], 90), 0.1, 2),
    "a cylinder on its rim": (CYLINDER, turned([1, 0, 0], 45), 0.25 * np.sqrt(0.5), 1),
    "a capsule that lies": (CAPSULE, turned([0, 0, 1], 40) @ turned([0, 1, 0], 90), 0.1, 2),
    "a capsule on its end": (CAPSULE, np.eye(3), 0.25, 1),
}


PLACES = [
    (rest, floor) for rest, floor in itertools.product(RESTS, FLOORS) if is_possible(RESTS[rest][0], FLOORS[floor][0])
]


@pytest.mark.parametrize(("rest", "floor"), PLACES)
@pytest.mark.parametrize("gap", [0.0, 1e-5, -1e-5])
def test_shapes_at_rest_touch_at_their_lowest_points(rest, floor, gap):
    shape, rotation, height, number = RESTS[rest]
    below, frame = FLOORS[floor]
    contacts = points(shape, (rotation, np.array([0.03, 0.07, height + gap])), below, frame)
    touch = touching(contacts, gap)
    middle = floor == "terrain" and rest == "a capsule that lies"  # terrain feels that as well
    assert len(touch) == number + middle
    assert min(contact.gap for contact in contacts) == pytest.approx(gap, abs=1e-12)
    for contact in touch:
        np.testing.assert_allclose(contact.axes, np.eye(3), atol=1e-9)
        assert contact.position[2] == pytest.approx(0.5 * gap, abs=1e-12)
    mean = places(touch).mean(axis=0)
    np.testing.assert_allclose(mean[:2], [0.03, 0.07], atol=0.12 if rest == "a cylinder on its rim" else 1e-9)


@pytest.mark.parametrize("angle", np.linspace(0.0, 360.0, 13))
def test_a_cylinder_rolls_on_a_line_without_bumps(angle):
    rotation = turned([1, 0, 0], 90) @ turned([0, 0, 1], angle)
    contacts = touching(points(CYLINDER, (rotation, np.array([0.0, 0.0, 0.1])), *FLOORS["half-space"]))
    np.testing.assert_allclose(places(contacts), [[0.0, -0.15, 0.0], [0.0, 0.15, 0.0]], atol=1e-9)


@pytest.mark.parametrize("tilt", [0.0, 1e-13, 1e-8, 1e-5, 1e-2])
def test_a_cylinder_that_stands_a_little_aslant_has_the_exact_lowest_point_of_its_rim(tilt):
    gaps = []
    for about in np.linspace(0.0, 360.0, 8):
        rotation = turned([0, 0, 1], about) @ turned([1, 0, 0], np.degrees(tilt)) @ turned([0, 0, 1], 77.0)
        contacts = points(CYLINDER, (rotation, np.array([0.0, 0.0, 0.15])), *FLOORS["half-space"])
        gaps.append(min(contact.gap for contact in contacts))
        rim = np.array([contact.position for contact in contacts[:3]])
        middle = rotation @ [0.0, 0.0, -0.15] + [0.0, 0.0, 0.15]
        np.testing.assert_allclose(rim.mean(axis=0)[:2], middle[:2], atol=1e-12)
    np.testing.assert_allclose(gaps, 0.15 - 0.15 * np.cos(tilt) - 0.1 * np.sin(tilt), atol=1e-9)


def overlap(one, other):
    """The corners (k, 2) of the polygon in which two rectangles overlap, given as (half sizes, rotation, centre)."""
    planes = []
    for half, rotation, centre in (one, other):
        for axis, size in zip(rotation.T, half, strict=True):
            planes += [[*axis, -axis @ centre - size], [*-axis, axis @ centre - size]]
    return HalfspaceIntersection(np.array(planes), interior_point(np.array(planes))).intersections


def interior_point(planes):
    """The centre of the largest circle in a polygon (Chebyshev)."""

    found = linprog(
        [0.0, 0.0, -1.0], np.c_[planes[:, :2], np.ones(len(planes))], -planes[:, 2], bounds=[(None, None)] * 3
    )
    return found.x[:2]


@pytest.mark.parametrize("tilt", [0.0, 1e-7])
@pytest.mark.parametrize("seed", range(6))
def test_boxes_that_lie_on_each_other_touch_all_around_the_polygon_of_their_faces(seed, tilt):
    """Stacks of any sizes, turned and displaced, in axes that are turned as well."""
    random = np.random.default_rng(seed)
    for _ in range(8):
        sizes = random.uniform(0.1, 0.6, (2, 3))
        yaw = random.choice([0.0, 90.0, random.uniform(2.0, 88.0)])
        shift = random.uniform(-0.4, 0.4, 2) * sizes[:, :2].min(axis=0)
        gap = random.choice([0.0, 1e-6, -1e-6])
        tilted = Rotation.from_rotvec(tilt * np.array([*random.normal(size=2), 0.0])).as_matrix()
        frame = tilted @ turned([0, 0, 1], yaw), np.array([*shift, 0.5 * sizes[:, 2].sum() + gap])
        ground, away = turn(random), random.normal(size=3)
        below = ground, away
        above = ground @ frame[0], ground @ frame[1] + away
        contacts = counted(points(BoxShape(tuple(sizes[1])), above, BoxShape(tuple(sizes[0])), below))
        touch = [contact for contact in contacts if abs(contact.gap - gap) < 1e-6]
        corners = np.array([ground.T @ (contact.position - away) for contact in touch])
        flat = turned([0, 0, 1], yaw)[:2, :2]
        expected = overlap((0.5 * sizes[0, :2], np.eye(2), np.zeros(2)), (0.5 * sizes[1, :2], flat, shift))
        area = ConvexHull(expected).volume
        assert ConvexHull(corners[:, :2]).volume == pytest.approx(area, rel=5e-4)
        assert 4 <= len(touch) <= 8
        for a, b in itertools.combinations(corners, 2):
            assert np.linalg.norm(a - b) > 1e-7
        for contact in touch:
            np.testing.assert_allclose(contact.axes[2], ground[:, 2], atol=1e-5)


def test_equal_boxes_in_a_stack_touch_at_four_corners_also_with_noise():
    random = np.random.default_rng(0)
    for noise in [0.0, 1e-16, 1e-14, 1e-12]:
        for _ in range(10):
            position = np.array([0.0, 0.0, 0.4]) + noise * random.normal(size=3)
            rotation = Rotation.from_rotvec(noise * random.normal(size=3)).as_matrix()
            touch = touching(points(BOX, (rotation, position), BOX, ORIGIN))
            x, y = [0.1, -0.1], [0.15, -0.15]
            expected = sorted([a, b, 0.2] for a, b in itertools.product(x, y))
            np.testing.assert_allclose(places(touch), expected, atol=1e-8)


CROSSED = turned([0, 0, 1], 90) @ turned([1, 0, 0], 45)  # on an edge, across the other
ROOT = np.sqrt(0.5)
BOXES = {  # a box of edge 1 at the origin, turned, and another one over it, turned: distance of centres, points
    "planks across each other": ((0.2, 2.0, 0.1), np.eye(3), (0.2, 2.0, 0.1), turned([0, 0, 1], 90), 0.1, 4),
    "an edge on a face": (
        (1.0, 1.0, 1.0),
        np.eye(3),
        (0.4, 0.4, 0.4),
        turned([0, 1, 0], 45),
        0.5 + 0.4 * ROOT,
        2,
    ),
    "a corner on a face": ((1.0, 1.0, 1.0), np.eye(3), BOX.size, ON_CORNER, 0.5 + 0.5 * DIAGONAL, 1),
    "an edge on an edge": ((1.0, 1.0, 1.0), turned([1, 0, 0], 45), (1.0, 1.0, 1.0), CROSSED, np.sqrt(2), 1),
    "a face on a corner": (BOX.size, ON_CORNER, (1.0, 1.0, 1.0), np.eye(3), 0.5 + 0.5 * DIAGONAL, 1),
    "a small face on a large one": ((1.0, 1.0, 1.0), np.eye(3), (0.2, 0.2, 0.2), turned([0, 0, 1], 45), 0.6, 4),
    "a large face on a small one": ((0.2, 0.2, 0.2), np.eye(3), (1.0, 1.0, 1.0), turned([0, 0, 1], 45), 0.6, 4),
    "a turned face on one of its size": ((1.0, 1.0, 1.0), np.eye(3), (1.0, 1.0, 1.0), turned([0, 0, 1], 45), 1.0, 8),
}


@pytest.mark.parametrize("pose", BOXES)
@pytest.mark.parametrize("gap", [0.0, 1e-6, -1e-6])
def test_two_boxes_touch_at_as_many_points_as_their_features_have(pose, gap):
    below, rotation_below, above, rotation, height, number = BOXES[pose]
    for order in (1, -1):
        pair = [
            (BoxShape(above), (rotation, np.array([0.0, 0.0, height + gap]))),
            (BoxShape(below), (rotation_below, np.zeros(3))),
        ][::order]
        contacts = points(*pair[0], *pair[1])
        touch = touching(contacts, gap)
        assert len(touch) == number
        assert min(contact.gap for contact in contacts) == pytest.approx(gap, abs=1e-9)
        for contact in touch:
            np.testing.assert_allclose(contact.axes[2], [0.0, 0.0, float(order)], atol=1e-8)


CAPSULES = {  # a capsule of length 1 lies along x on another shape: where it begins and ends to touch
    "a capsule": (CapsuleShape(0.1, 1.0), turned([0, 1, 0], 90), 0.0, 0.0, 0.2, [-0.5, 0.5]),
    "a capsule farther on": (CapsuleShape(0.1, 1.0), turned([0, 1, 0], 90), 0.3, 0.0, 0.2, [-0.2, 0.5]),
    "a long capsule": (CapsuleShape(0.1, 3.0), turned([0, -1, 0], 90), 0.3, 0.0, 0.2, [-0.2, 0.8]),
    "a short capsule": (CapsuleShape(0.1, 0.3), turned([0, -1, 0], 90), 0.3, 0.0, 0.2, [-0.15, 0.15]),
    "a capsule across": (CapsuleShape(0.1, 1.0), turned([1, 0, 0], 90), 0.3, 0.2, 0.2, [0.0]),
    "a box": (BoxShape((2.0, 1.0, 0.4)), np.eye(3), 0.0, 0.0, 0.3, [-0.5, 0.5]),
    "a box on which it overhangs": (BoxShape((1.0, 1.0, 0.4)), np.eye(3), 0.4, 0.0, 0.3, [-0.1, 0.5]),
    "a narrow box": (BoxShape((0.2, 1.0, 0.4)), np.eye(3), 0.4, 0.1, 0.3, [-0.1, 0.1]),
    "a box turned about z": (BoxShape((0.2, 1.0, 0.4)), turned([0, 0, 1], 30), 0.0, 0.0, 0.3, None),
    "the edge of a box across": (BoxShape((1.0, 1.0, 1.0)), turned([0, 1, 0], 45), 0.1, 0.2, 0.1 + ROOT, [0.0]),
    "the edge of a box along": (
        BoxShape((2.0, 1.0, 1.0)),
        turned([1, 0, 0], 45),
        0.7,
        0.0,
        0.1 + ROOT,
        [0.2, 1.0],
    ),
}


@pytest.mark.parametrize("pose", CAPSULES)
@pytest.mark.parametrize("noise", [[0.0, 0.0, 0.0], [0.0, 1e-9, 0.0], [0.0, 0.0, 1e-9], [0.0, -1e-9, 1e-9]])
@pytest.mark.parametrize("gap", [0.0, -1e-5])
def test_a_capsule_touches_where_it_begins_and_ends_to_lie_on_another_shape(pose, noise, gap):
    other, rotation, x, y, height, expected = CAPSULES[pose]
    if expected is None:  # the sides of the box, seen along x
        expected = [-0.1 / np.cos(np.radians(30)), 0.1 / np.cos(np.radians(30))]
    frame = Rotation.from_rotvec(noise).as_matrix() @ turned([0, 1, 0], 90), np.array([x, y, height + gap])
    for swapped in (False, True):
        pair = [(CapsuleShape(0.1, 1.0), frame), (other, (rotation, np.zeros(3)))]
        first, second = reversed(pair) if swapped else pair
        touch = [contact for contact in points(*first, *second) if abs(contact.gap - gap) < 1e-8]
        np.testing.assert_allclose(sorted(contact.position[0] for contact in touch), expected, atol=1e-6)
        for contact in touch:
            np.testing.assert_allclose(contact.axes[2], [0.0, 0.0, -1.0 if swapped else 1.0], atol=1e-6)


def test_a_thin_capsule_that_is_pressed_over_the_edge_of_a_box_is_driven_out_of_its_face():
    """Its axis is in the box."""
    frame = turned([0, 1, 0], 90), np.array([0.4, 0.0, 0.199])
    contacts = points(CapsuleShape(1e-4, 1.0), frame, BoxShape((1.0, 1.0, 0.4)), ORIGIN)
    touch = [contact for contact in counted(contacts) if contact.gap < 0.0]
    np.testing.assert_allclose([contact.gap for contact in touch], -0.0011, atol=1e-9)
    np.testing.assert_allclose(sorted(contact.position[0] for contact in touch), [-0.1, 0.5], atol=1e-9)
    for contact in touch:
        np.testing.assert_allclose(contact.axes, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("size", [BOX.size, (0.3, 0.4, 0.1), (0.1, 0.2, 0.5), (0.4, 0.1, 0.3)])
def test_points_of_boxes_keep_their_places_and_axes_while_one_rocks_on_the_other(size):
    """Springs of a contact keep their state at its place in the list."""
    below = BoxShape((0.2, 0.3, 0.4))
    height = 0.2 + 0.5 * size[2]
    rest = points(BoxShape(size), (np.eye(3), np.array([0.0, 0.0, height])), below, ORIGIN)
    for angle in np.linspace(0.0, 360.0, 16):
        rocked = turned([np.cos(angle), np.sin(angle), 0.0], np.degrees(1e-6))
        contacts = points(BoxShape(size), (rocked, np.array([0.0, 0.0, height])), below, ORIGIN)
        for contact, other in zip(contacts, rest, strict=True):
            assert len(counted([contact])) == len(counted([other]))
            if abs(other.gap) < 1e-9:
                np.testing.assert_allclose(contact.position, other.position, atol=1e-6)
                np.testing.assert_allclose(contact.axes, other.axes, atol=1e-5)
