"""Contacts with terrain: its surface of triangles against other people's distance of each, and against a plane."""

import itertools
from functools import cache

import coal
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim.core import ops
from cosim.core.compile import ArrayPort, Routine, compile
from cosim.core.compile.adjoint import Differentiation
from cosim.mechanics.multibody.contact.gaps import points, reach
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    HalfSpace,
    TerrainShape,
)
from tests.multibody.contact.shapes_and_poses import HILLS, SHAPES, X, Y, least
from tests.multibody.random_frames import turn

ROTATION = Rotation.from_rotvec([0.4, -0.7, 0.3]).as_matrix()
TERRAIN = TerrainShape(X, Y, HILLS)
FRAME = np.eye(3), np.zeros(3)
SMALL = 1e-3  # radius [m] of the ball whose distance is asked for
SLOPE = np.array([0.3, -0.2])
WIDE = np.linspace(-1.0, 1.0, 11)
PLANE = TerrainShape(WIDE, WIDE, SLOPE[0] * WIDE[:, None] + SLOPE[1] * WIDE)


STEPS = np.where(np.random.default_rng(0).random(HILLS.shape) < 0.4, 0.3, 0.0)
HEIGHTS = {"hills": HILLS, "steps": STEPS}


def triangles(heights=HILLS):
    """Of the grid, each (3, 3): its corners in rows."""
    nodes = np.array([[[x, y, heights[i, j]] for j, y in enumerate(Y)] for i, x in enumerate(X)])
    for i, j in itertools.product(range(len(X) - 1), range(len(Y) - 1)):
        a, b, c, d = nodes[i, j], nodes[i + 1, j], nodes[i + 1, j + 1], nodes[i, j + 1]
        yield from (np.array([a, b, c]), np.array([a, c, d]))


def height_at(x, y, heights=HILLS):
    """Of the surface, by the triangle that contains the place as barycentric coordinates tell."""
    for a, b, c in triangles(heights):
        u, v = np.linalg.solve(np.array([b - a, c - a]).T[:2], np.array([x, y]) - a[:2])
        if min(u, v, 1.0 - u - v) >= -1e-12:
            return a[2] + u * (b - a)[2] + v * (c - a)[2]
    raise AssertionError("outside of the grid")


def nearest(centre, ground):
    """Distance of a place above the surface, and the nearest place of the surface."""
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance, request.gjk_max_iterations = 1e-13, 1000
    ball, at = coal.Sphere(SMALL), coal.Transform3s(np.eye(3), centre)
    distance = coal.distance(surface(ground), coal.Transform3s(), ball, at, request, result) + SMALL
    return distance, result.getNearestPoint1().copy()


@cache
def surface(ground):
    model = coal.BVHModelOBBRSS()
    model.beginModel(0, 0)
    for corners in triangles(HEIGHTS[ground]):
        model.addTriangle(*corners)
    model.endModel()
    return model


@pytest.mark.parametrize("ground", HEIGHTS)
@pytest.mark.parametrize("radius", [0.02, 0.09, 0.14, 0.24])
def test_a_ball_over_uneven_ground_has_the_distance_of_the_nearest_triangle(ground, radius):
    """Near to the surface, so that the nearest triangle is among the cells that count."""
    random, terrain = np.random.default_rng(int(1000 * radius)), TerrainShape(X, Y, HEIGHTS[ground])
    compared = 0
    for _ in range(60):
        x, y = random.uniform(-0.3, 0.3), random.uniform(-0.3, 0.2)
        centre = np.array([x, y, height_at(x, y, HEIGHTS[ground]) + radius * random.uniform(0.05, 1.3)])
        (contact,) = points(BallShape(radius), (turn(random), centre), terrain, FRAME)
        distance, place = nearest(centre, ground)
        if distance > radius:
            continue
        compared += 1
        assert contact.gap == pytest.approx(distance - radius, abs=1e-9)
        np.testing.assert_allclose(contact.axes[2], (centre - place) / distance, atol=1e-6)
        np.testing.assert_allclose(contact.position, place + 0.5 * contact.gap * contact.axes[2], atol=1e-8)
    assert compared > 20


def test_the_balls_of_a_capsule_are_at_its_ends_and_its_middle():
    random = np.random.default_rng(1)
    for _ in range(10):
        rotation, centre = turn(random), random.uniform([-0.2, -0.2, 0.0], [0.2, 0.2, 0.4])
        contacts = points(CapsuleShape(0.05, 0.4), (rotation, centre), TERRAIN, FRAME)
        balls = [centre - 0.2 * rotation[:, 2], centre + 0.2 * rotation[:, 2], centre]
        for contact, ball in zip(contacts, balls, strict=True):
            (single,) = points(BallShape(0.05), (np.eye(3), ball), TERRAIN, FRAME)
            assert contact.gap == pytest.approx(single.gap, abs=1e-12)
            np.testing.assert_allclose(contact.position, single.position, atol=1e-12)


@pytest.mark.parametrize("first", ["ball", "point", "capsule", "box", "cylinder"])
def test_an_even_slope_is_a_half_space_from_above_and_below_also_for_turned_terrain(first):
    random = np.random.default_rng(2)
    normal = np.array([*-SLOPE, 1.0]) / np.sqrt(1.0 + SLOPE @ SLOPE)
    across = np.cross([0.0, 1.0, 0.0], normal)
    across /= np.linalg.norm(across)
    slope = np.array([across, np.cross(normal, across), normal]).T
    for _ in range(20):
        ground, away = turn(random), random.normal(size=3)
        x, y = random.uniform(-0.2, 0.2, 2)
        place = np.array([x, y, SLOPE @ [x, y] + random.uniform(-0.1, 0.3)])
        frame = turn(random), ground @ place + away
        contacts = points(SHAPES[first], frame, PLANE, (ground, away))
        expected = points(SHAPES[first], frame, HalfSpace(), (ground @ slope, away))
        for contact, other in zip(contacts, expected, strict=False):  # terrain has the middle of a capsule besides
            if other.gap > 0.05 and first in ("ball", "point", "capsule"):
                assert contact.gap >= other.gap - 1e-12  # of the cells that count
                continue
            assert contact.gap == pytest.approx(other.gap, abs=1e-12)
            np.testing.assert_allclose(contact.axes[2], other.axes[2], atol=1e-9)
            np.testing.assert_allclose(contact.position, other.position, atol=1e-9)


def test_corners_of_boxes_have_their_distance_from_the_plane_of_the_triangle_under_them():
    random = np.random.default_rng(3)
    for _ in range(10):
        centre = random.uniform([-0.2, -0.2, 0.0], [0.2, 0.0, 0.3])
        contacts = points(BoxShape((0.2, 0.3, 0.1)), (turn(random), centre), TERRAIN, FRAME)
        for contact in contacts:
            n = contact.axes[2]
            corner = contact.position + 0.5 * contact.gap * n
            height = height_at(*corner[:2])
            assert contact.gap == pytest.approx(n[2] * (corner[2] - height), abs=1e-12)
            beside = corner[:2] + 1e-7 * n[:2]
            assert height_at(*beside) - height == pytest.approx(-1e-7 * (n[:2] @ n[:2]) / n[2], abs=1e-14)


@pytest.mark.parametrize("first", ["ball", "box"])
def test_outside_of_the_grid_the_ground_has_the_height_of_its_edge(first):
    """Far outside of a corner it is even; beside an edge its heights do not change across it."""
    for corner, height in (((-1, -1), HILLS[0, 0]), ((1, 1), HILLS[-1, -1]), ((-1, 1), HILLS[0, -1])):
        at = np.array([5.0 * corner[0], 7.0 * corner[1], height + 0.5])
        plane = points(SHAPES[first], (np.eye(3), at), HalfSpace(), (np.eye(3), np.array([0.0, 0.0, height])))
        ground = points(SHAPES[first], (np.eye(3), at), TERRAIN, FRAME)
        assert least(ground).gap == pytest.approx(least(plane).gap, abs=1e-12)
    for y in np.linspace(-0.4, 0.3, 9):
        gaps = [
            least(points(SHAPES[first], (np.eye(3), np.array([x, y, 0.4])), TERRAIN, FRAME)).gap for x in (0.9, 4.0)
        ]
        assert gaps[0] == pytest.approx(gaps[1], abs=1e-12)


def test_a_ball_that_sinks_below_the_surface_is_driven_out_of_it_and_reach_stays_below():
    for height in np.linspace(0.1, -0.05, 16):
        frame = np.eye(3), np.array([0.03, 0.02, height])
        (contact,) = points(BallShape(0.05), frame, PLANE, FRAME)
        depth = (height - SLOPE @ frame[1][:2]) / np.sqrt(1.0 + SLOPE @ SLOPE)
        assert contact.gap == pytest.approx(depth - 0.05, abs=1e-12)
        assert contact.axes[2][2] > 0.9
        assert reach(BallShape(0.05), frame, PLANE, FRAME) <= contact.gap


def test_a_rim_is_lowest_against_the_ground_under_its_lowest_point():
    """A cylinder aslant, whose middle is over even ground, and whose lowest point is over a slope across."""
    x, y = np.linspace(-1.05, 1.05, 22), np.array([-1.0, 1.0])
    ground = TerrainShape(x, y, 0.5 * y * (x > 0.0)[:, None])
    cylinder, tilt = CylinderShape(0.3, 0.1), Rotation.from_euler("y", 30.0, degrees=True).as_matrix()
    frame = tilt, np.array([-0.1, 0.0, 0.2])
    slope = Rotation.from_euler("x", np.arctan(0.5)).as_matrix()
    expected = least(points(cylinder, frame, HalfSpace(), (slope, np.zeros(3))))
    contact = least(points(cylinder, frame, ground, FRAME))
    assert expected.position[0] > 0.05
    assert contact.gap == pytest.approx(expected.gap, abs=1e-12)
    np.testing.assert_allclose(contact.position, expected.position, atol=1e-12)


@pytest.mark.parametrize("first", ["ball", "capsule", "box", "cylinder"])
def test_gaps_over_terrain_have_derivatives(first):
    """By the position of the shape over hills; along its triangles its lookups are constant."""

    def gaps(position):
        contacts = points(SHAPES[first], (ROTATION, position), TERRAIN, FRAME)
        return ops.array([contact.gap for contact in contacts])

    routine, derive = Routine(gaps, [(3,)], "gaps"), Differentiation()
    taped, adjoint = (
        compile(made, [ArrayPort(f"a{k}", shape) for k, shape in enumerate(made.shapes)])
        for made in (derive.taped(routine), derive.adjoint(routine, [0], [0]))
    )
    at = np.array([0.07, -0.03, 0.25])
    _, *tape = taped(at)
    weights = np.random.default_rng(4).normal(size=routine.output_shapes[0])
    found = np.ravel(adjoint(at, *tape, weights))
    steps = 1e-6 * np.eye(3)
    expected = [weights @ (gaps(at + step) - gaps(at - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
