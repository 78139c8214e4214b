"""Gaps, axes and places of the contacts of every pair of shapes, against other people's distances."""

import itertools

import casadi
import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.multibody.contact.gaps import is_possible, points, points_of, reach
from cosim.mechanics.multibody.contact.point_of_contact import FAR, POLE, basis
from cosim.mechanics.multibody.contact.shapes import BallShape, BoxShape, CapsuleShape, CylinderShape
from tests.multibody.contact.shapes_and_poses import (
    FLAT_PAIRS,
    PAIRS,
    ROUND,
    SHAPES,
    found,
    least,
    moved,
    random_frames,
    touching_frames,
    witnesses,
)

STEP = 1e-6  # [s] of central differences


@pytest.mark.parametrize(("first", "second"), FLAT_PAIRS)
def test_the_least_gap_is_the_distance_and_lies_between_the_nearest_points(first, second):
    random = np.random.default_rng(0)
    poses = [(random_frames(random, first, second), None) for _ in range(60)]
    for gap in [0.0, 1e-9, 1e-5, -1e-5, -1e-3] * 8:
        poses.append((touching_frames(random, first, second, gap), gap if gap >= 0.0 else None))
    for (one, other), given in poses:
        distance, at_first, at_second = witnesses(first, one, second, other)
        if given is not None:
            distance = given  # which is more precise than the witness, which takes what nearly touches for touching
        skeletons_meet = distance < -ROUND.get(first, 0.0) - ROUND.get(second, 0.0)
        if skeletons_meet and {first, second} & {"point", "capsule", "cylinder"}:
            continue  # the witness is not exact inside of round shapes, the gap not inside of the axis of a capsule
        contact = least(found(first, one, second, other))
        assert contact.gap == pytest.approx(distance, abs=1e-9)
        if abs(distance) > 1e-3 and not skeletons_meet:
            np.testing.assert_allclose(contact.axes[2], (at_first - at_second) / distance, atol=1e-6)
            np.testing.assert_allclose(contact.position, 0.5 * (at_first + at_second), atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2, 10])
def test_boxes_whose_faces_or_edges_are_nearly_parallel_have_their_distance(seed):
    """By the difference of the boxes (Minkowski): its distance from the origin, or its nearest face from inside."""
    random = np.random.default_rng(seed)
    for _ in range(60):
        sizes = random.uniform(0.1, 0.6, (2, 3))
        nearly = Rotation.from_rotvec(random.normal(size=3) * 10.0 ** random.uniform(-7.0, -1.0)).as_matrix()
        turns = rotations_of_axes()
        yaw = Rotation.from_euler("z", random.choice([0.0, 45.0, random.uniform(0.0, 90.0)]), degrees=True).as_matrix()
        rotation = turns[random.integers(len(turns))] @ yaw @ nearly @ turns[random.integers(len(turns))]
        axis = np.eye(3)[random.integers(3)]
        away = axis * (0.5 * sizes[1] @ axis + 0.5 * np.abs(rotation.T @ axis) @ sizes[0])
        centre = away + random.uniform(-0.3, 0.3, 3) * (1.0 - axis)
        centre += axis * random.choice([0.0, 1e-6, 1e-3, -1e-6, -1e-3])
        boxes = (BoxShape(tuple(sizes[0])), (rotation, centre)), (BoxShape(tuple(sizes[1])), (np.eye(3), np.zeros(3)))
        distance = by_difference(0.5 * sizes, rotation, centre)
        for one, other in (boxes, boxes[::-1]):
            assert least(points(*one, *other)).gap == pytest.approx(distance, abs=1e-9)


def by_difference(half, rotation, centre):
    """The signed distance of two boxes of these half sizes (2, 3)."""
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    first, second = (signs * half[0]) @ rotation.T + centre, signs * half[1]
    inside = ConvexHull((first[:, None] - second).reshape(-1, 3)).equations[:, 3].max()
    if inside < 0.0:
        return inside
    bounds = np.concatenate([half[0], half[1]])
    places = lsq_linear(np.hstack([rotation, -np.eye(3)]), -centre, (-bounds, bounds), method="bvls", tol=1e-15)
    return np.sqrt(2.0 * places.cost)


@pytest.mark.parametrize("second", ["box", "cylinder"])
def test_a_ball_inside_of_a_shape_gets_out_along_the_shortest_way(second):
    """The way out along a direction d is the support of the shape along d less the place of the centre along it."""
    random = np.random.default_rng(1)
    for _ in range(20):
        at = random.uniform(-0.09, 0.09, 3) * ([1.0, 1.5, 2.0] if second == "box" else [0.7, 0.7, 1.5])
        (contact,) = found("ball", (np.eye(3), at), second, (np.eye(3), np.zeros(3)))
        directions = np.vstack([random.normal(size=(20000, 3)), np.eye(3), -np.eye(3), [[at[0], at[1], 0.0]]])
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        if second == "box":
            support = np.abs(directions) @ [0.1, 0.15, 0.2]
        else:
            support = 0.1 * np.hypot(directions[:, 0], directions[:, 1]) + 0.15 * np.abs(directions[:, 2])
        ways = support - directions @ at
        assert contact.gap == pytest.approx(-ways.min() - 0.08, abs=1e-12)
        np.testing.assert_allclose(contact.axes[2], directions[ways.argmin()], atol=1e-12)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_axes_are_right_handed_the_other_order_is_reversed_and_reach_is_a_lower_bound(first, second):
    random = np.random.default_rng(2)
    for _ in range(20):
        one, other = random_frames(random, first, second)
        contacts, others = found(first, one, second, other), found(second, other, first, one)
        assert len(contacts) == points_of(SHAPES[first], SHAPES[second]) == len(others)
        for contact in contacts:
            np.testing.assert_allclose(contact.axes @ contact.axes.T, np.eye(3), atol=1e-12)
            assert np.linalg.det(contact.axes) > 0.0
            assert reach(SHAPES[first], one, SHAPES[second], other) <= contact.gap + 1e-12
        # where both are of a kind, both orders are measured
        turned = least(others)
        assert turned.gap == pytest.approx(least(contacts).gap, abs=1e-9)
        if turned.gap > 0.0:
            np.testing.assert_allclose(turned.axes[2], -least(contacts).axes[2], atol=1e-6)


# rims follow the ground under them, which changes from triangle to triangle
STEADY_PAIRS = [pair for pair in PAIRS if set(pair) != {"cylinder", "terrain"}]


@pytest.mark.parametrize(("first", "second"), STEADY_PAIRS)
def test_a_gap_changes_as_the_shapes_move_apart_along_its_normal_at_its_place(first, second):
    random, compared = np.random.default_rng(3), 0
    for k in range(40):
        one, other = random_frames(random, first, second)
        if k % 2 and "terrain" not in (first, second):
            one = (moved(other, random.normal(size=6), 1e-2)[0], one[1])  # nearly along the axes of the other
        velocities = random.normal(size=(2, 6))
        velocities[[name == "terrain" for name in (first, second)]] = 0.0
        here = found(first, one, second, other)
        before, after = (
            found(first, moved(one, velocities[0], t), second, moved(other, velocities[1], t)) for t in (-STEP, STEP)
        )
        deep = least(here).gap < -0.04
        follow = range(len(here))
        if first == second == "box":
            follow = [here.index(least(here))]
        elif {first, second} == {"cylinder", "half-space"}:
            follow = [0, 3]  # the lowest points; the others go around the rim with them
        for i in [] if deep else follow:
            contact = here[i]
            if max(before[i].gap, contact.gap, after[i].gap) >= FAR:
                continue
            if np.abs(before[i].axes - after[i].axes).max() > 1e-3:
                continue  # the normal jumps, as on an edge of terrain
            (v, w), (v_other, w_other) = velocities.reshape(2, 2, 3)
            apart = v + np.cross(w, contact.position - one[1])
            apart -= v_other + np.cross(w_other, contact.position - other[1])
            rate = (after[i].gap - before[i].gap) / (2.0 * STEP)
            assert rate == pytest.approx(contact.axes[2] @ apart, abs=1e-7)
            compared += 1
    assert compared > 10


def special_frames():
    """Frames of a first shape about a second one at the origin: turns of axes, and places on axes, edges and faces."""
    sizes = [0.0, 0.1, -0.15, 0.2, 0.35]
    places = [*itertools.product([0.0, 0.1, -0.15, 0.4], repeat=3), *([0.0, 0.0, z] for z in sizes)]
    turns = rotations_of_axes()
    frames = [(turns[k % len(turns)], np.array(place)) for k, place in enumerate(places)]
    return frames + [(rotation, np.zeros(3)) for rotation in turns]


def rotations_of_axes():
    """(3, 3): all turns by right angles, and some by half of one."""
    halves = [Rotation.from_euler("xyz"[k], 45.0, degrees=True).as_matrix() for k in range(3)]
    return [*np.round(Rotation.create_group("O").as_matrix()), *halves]


def resized(shape, sizes):
    """A shape with its sizes from a vector (3,) of symbols."""
    match shape:
        case BallShape():
            return BallShape(sizes[0])
        case CapsuleShape():
            return CapsuleShape(sizes[0], sizes[1])
        case CylinderShape():
            return CylinderShape(sizes[0], sizes[1])
        case BoxShape():
            return BoxShape((sizes[0], sizes[1], sizes[2]))
    return shape


def sizes_of(shape):
    match shape:
        case BallShape(radius):
            return [radius, 0.0, 0.0]
        case CapsuleShape(radius, length) | CylinderShape(radius, length):
            return [radius, length, 0.0]
        case BoxShape(size):
            return list(size)
    return [0.0] * 3


def everything(contacts):
    """All numbers of points of contact in one vector."""
    return ops.concatenate([ops.concatenate([c.gap, *c.axes, c.position]) for c in contacts])


@pytest.mark.parametrize(("first", "second"), FLAT_PAIRS)
def test_values_and_derivatives_are_finite_in_every_special_pose_and_symbols_give_the_numbers(first, second):
    """Derivatives by poses and by sizes, of shapes that coincide, lie parallel, and lie on each other's axes."""
    x = casadi.SX.sym("x", 12)
    s = casadi.SX.sym("s", 6)
    vector = ops.array([x[k] for k in range(12)])
    sizes = ops.array([s[k] for k in range(6)])
    shapes = resized(SHAPES[first], sizes[:3]), resized(SHAPES[second], sizes[3:])
    frame = vector[:9].reshape(3, 3), vector[9:]
    traced = everything(points(shapes[0], frame, shapes[1], (np.eye(3), np.zeros(3))))
    column = casadi.vertcat(*traced.tolist())
    function = casadi.Function("f", [x, s], [column, casadi.jacobian(column, casadi.vertcat(x, s))])
    numbers = [*sizes_of(SHAPES[first]), *sizes_of(SHAPES[second])]
    origin = np.eye(3), np.zeros(3)
    random = np.random.default_rng(4)
    for frame in special_frames() + [random_frames(random, first, second)[0] for _ in range(10)]:
        values, derivatives = function(np.concatenate([frame[0].ravel(), frame[1]]), numbers)
        expected = everything(found(first, frame, second, origin))
        assert np.isfinite(expected).all()
        assert np.isfinite(np.array(derivatives)).all()
        np.testing.assert_allclose(np.array(values)[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_machine_code_has_the_same_points(first, second):
    def contacts(rotation, position, rotation_other, position_other):
        return everything(points(SHAPES[first], (rotation, position), SHAPES[second], (rotation_other, position_other)))

    ports = [ArrayPort(f"a{k}", (3, 3) if k % 2 == 0 else (3,)) for k in range(4)]
    compiled, random = compile(contacts, ports), np.random.default_rng(5)
    for _ in range(10):
        one, other = random_frames(random, first, second)
        np.testing.assert_allclose(compiled(*one, *other), everything(found(first, one, second, other)), atol=1e-12)


def test_pairs_without_an_exact_form_are_refused():
    refused = {pair for pair in itertools.product(SHAPES, repeat=2) if pair not in PAIRS}
    ground, round_ones = {"half-space", "terrain"}, {"capsule", "box", "cylinder"}
    hulls = set(itertools.product(["hull"], set(SHAPES) - {"half-space"}))
    expected = set(itertools.product(ground, repeat=2)) | {("cylinder", "cylinder")}
    expected |= hulls | {pair[::-1] for pair in hulls}
    expected |= {pair for name in round_ones for pair in (("cylinder", name), (name, "cylinder"))}
    assert refused == expected
    for first, second in refused:
        with pytest.raises(KeyError, match="no points of contact"):
            points_of(SHAPES[first], SHAPES[second])


def test_tangents_are_continuous_but_at_one_normal():
    """Along great circles the tangents turn no faster than the normal, unless they come near to the pole."""
    random = np.random.default_rng(6)
    for _ in range(30):
        start, towards = np.linalg.qr(random.normal(size=(3, 2)))[0].T
        angles = np.linspace(0.0, 2.0 * np.pi, 501)
        for a, b in itertools.pairwise(angles):
            n, m = (np.cos(x) * start + np.sin(x) * towards for x in (a, b))
            near = np.linalg.norm(n + POLE)
            assert np.abs(basis(n) - basis(m)).max() <= 4.0 * (b - a) / min(near, 1.0)
    np.testing.assert_allclose(basis(np.array([0.0, 0.0, 1.0])), np.eye(3), atol=1e-15)
    for angle in [0.0, 1e-12, 1e-9, 1e-6, 1e-3]:
        n = -np.cos(angle) * POLE + np.sin(angle) * np.array([3.0, -2.0, 0.0]) / np.sqrt(13.0)
        np.testing.assert_allclose(basis(n) @ basis(n).T, np.eye(3), atol=3e-8)
        assert np.linalg.det(basis(n)) > 0.99


def test_balls_on_terrain_are_refused_where_cells_are_too_many():
    terrain = SHAPES["terrain"]
    assert is_possible(BallShape(0.24), terrain)
    assert not is_possible(BallShape(0.26), terrain)
    assert not is_possible(terrain, CapsuleShape(0.26, 0.1))
    assert not is_possible(BallShape(ops.array([casadi.SX.sym("r")])[0]), terrain)
