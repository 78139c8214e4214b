"""Long motions in contact against equations of their own, and what a run must keep."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core import ops
from cosim.execution.stop_reason import finer_steps
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.contact.shapes import ContactLaw
from cosim.mechanics.multibody.contact_set import BodyContact, ContactSet
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.mechanism import NOWHERE, Pose
from tests.kit.contact_rigs import body, contact_rig, cube, slider, solved_runs
from tests.multibody.contact.shapes_and_poses import SHAPES, random_frames

G = 9.81


run = solved_runs(1e-8)


# --- a tippe top --------------------------------------------------------------------------------------------

TOP_MASS, RADIUS, BELOW, SLIDING = 0.02, 0.02, 0.006, 0.3  # kg, m; the centre of mass is below the middle
ACROSS, ALONG = 0.37 * TOP_MASS * RADIUS**2, 0.4 * TOP_MASS * RADIUS**2
TILT, SPIN = 0.1, 150.0  # rad, rad/s


def axes_of(y):
    """The rotation of a unit quaternion x, y, z, w."""
    x, y, z, w = y / np.linalg.norm(y)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def lever(R):
    """From the centre of mass to the point that touches."""
    return BELOW * R[:, 2] - RADIUS * np.array([0.0, 0.0, 1.0])


class EndOfSliding:
    """An event of `solve_ivp`."""

    terminal = True

    def __call__(self, t, y):
        slip = np.array([*y[7:9], 0.0]) + np.cross(y[4:7], lever(axes_of(y[:4])))
        return np.hypot(*slip[:2]) - 1e-3


def sliding_top(t, y):
    """Of (quaternion, angular velocity, horizontal velocity) in ground axes: the equations of a sphere that slides
    without leaving the plane. N follows from the height of the centre of mass, r − a cosθ."""
    R, omega, v = axes_of(y[:4]), y[4:7], y[7:9]
    inertia = R @ np.diag([ACROSS, ACROSS, ALONG]) @ R.T
    axis, up = R[:, 2], np.array([0.0, 0.0, 1.0])
    arm = lever(R)
    turning = np.cross(omega, axis)
    rise = -BELOW * turning[2]
    slip = np.array([*v, rise]) + np.cross(omega, arm)
    force = up - SLIDING * np.array([*slip[:2], 0.0]) / np.linalg.norm(slip[:2])  # per N
    free = np.linalg.solve(inertia, -np.cross(omega, inertia @ omega))
    per_force = np.linalg.solve(inertia, np.cross(arm, force))

    def climb(change):  # acceleration of the centre of mass for this angular acceleration
        return -BELOW * (np.cross(change, axis) + np.cross(omega, turning))[2]

    N = (G + climb(free)) / (1 / TOP_MASS - (climb(free + per_force) - climb(free)))
    vector, w = y[:3], y[3]
    spun = 0.5 * np.array([*(w * omega + np.cross(omega, vector)), -omega @ vector])
    return np.concatenate([spun, free + N * per_force, N * force[:2] / TOP_MASS])


def test_a_tippe_top_turns_over(run):
    """Coulomb's friction at its point of contact lifts its centre of mass, the way that its equations go."""
    upright = np.array([0.0, np.sin(TILT / 2), 0.0, np.cos(TILT / 2)])
    spin = np.array([0.0, 0.0, SPIN])
    start = np.concatenate([upright, spin, np.zeros(2)])
    exact = solve_ivp(
        sliding_top, (0.0, 2.0), start, "DOP853", rtol=1e-9, atol=1e-11, events=[EndOfSliding()], dense_output=True
    )
    assert 0.9 < exact.t[-1] < 1.1
    velocity = [0.0, 0.0, 0.0, *(axes_of(upright).T @ spin)]
    place = [0.0, 0.0, RADIUS - BELOW * np.cos(TILT)]
    shape = f"sphere: {RADIUS}, at: [0, 0, {BELOW}]"
    errors = []
    for step in (2e-4, 5e-5):
        found = run(
            [body("top", TOP_MASS, [ACROSS, ACROSS, ALONG], place, TILT, velocity)],
            [f"name: c, link: top, {shape}, with: ground, friction: {SLIDING}, stiffness: rigid"],
            0.98,
            step,
        )
        own = np.array([found[f"top.q{name}/position"] for name in "xyzw"])
        tilt = np.arccos(1.0 - 2.0 * (own[0] ** 2 + own[1] ** 2))
        wanted = np.array([np.arccos(axes_of(y)[2, 2]) for y in exact.sol(found.t)[:4].T])
        assert np.all(found["c/state"][1:] == 2.0)
        assert tilt[-1] > 2.7
        errors.append(np.abs(tilt - wanted).max())
    assert errors[0] < 1e-2
    assert errors[1] < 0.3 * errors[0], errors


# --- a stack ------------------------------------------------------------------------------------------------

EDGE = 0.2


@pytest.mark.parametrize(("ratio", "count"), [(10.0, 10), (1e4, 10), (1e4, 4)])
@pytest.mark.parametrize("heavy_first", [True, False])
def test_cubes_of_unequal_masses_stand(run, heavy_first, ratio, count):
    """Light and heavy cubes by turns: each carries the weight of all above it. Ten on a point each, which slide up and
    down, and four free ones on four points each, which are redundant."""
    free = count == 4
    masses = [ratio if (k % 2 == 0) == heavy_first else 1.0 for k in range(count)]
    feet = [[x, y, -EDGE / 2] for x in (-EDGE / 2, EDGE / 2) for y in (-EDGE / 2, EDGE / 2)] if free else [[0, 0, 0]]
    height = EDGE / 2 if free else 0.0
    bodies = [
        body(f"b{k}", mass, cube(mass, EDGE), [0, 0, (k + 0.5) * EDGE])
        if free
        else slider(f"b{k}", [0, 0, 1], "latched: false", 0.0, mass)
        for k, mass in enumerate(masses)
    ]
    under = ["ground"] + [f"{{link: b{k}, plane: {{xyz: [0, 0, {height}]}}}}" for k in range(count - 1)]
    contacts = [
        f"name: c{k}_{j}, link: b{k}, point: {foot}, with: {under[k]}, friction: 0.5, stiffness: rigid"
        for k in range(count)
        for j, foot in enumerate(feet)
    ]
    found = run(bodies, contacts, 1.0)
    forces = [sum(found[f"c{k}_{j}/normal_force"][-1] for j in range(len(feet))) for k in range(count)]
    np.testing.assert_allclose(forces, G * np.cumsum(masses[::-1])[::-1], rtol=1e-7)


# --- momentum -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stiffness", ["rigid", "1e5"])
def test_collisions_keep_momentum(run, stiffness):
    """Three bodies in space that hit each other off their middles, rough ones."""
    masses = 2.0, 1.0, 0.5
    bodies = [
        body("a", masses[0], cube(masses[0], 0.3), [0, 0, 0], 0.3, [0.2, 0, 0, 1, 2, -1]),
        body("b", masses[1], cube(masses[1], 0.2), [0.6, 0.04, 0.05], 0.1, [-1, 0, 0, 0, 3, 0]),
        body("c", masses[2], cube(masses[2], 0.1), [-0.5, -0.05, 0.02], 0.0, [1.5, 0.1, 0, 5, 0, 0]),
    ]
    law = f"friction: 0.6, restitution: 0.5, stiffness: {stiffness}"
    radii = {"a": 0.15, "b": 0.1, "c": 0.05}
    contacts = [
        f"name: {p}{q}, link: {p}, sphere: {radii[p]}, with: {{link: {q}, sphere: {radii[q]}}}, {law}"
        for p, q in ("ab", "bc", "ca")
    ]
    found = run(bodies, contacts, 1.0, mechanism="  gravity: [0, 0, 0]\n")
    assert sum(np.any(found[f"{pair}/normal_force"] > 0.0) for pair in ("ab", "bc", "ca")) >= 2
    names = "abc"
    places = np.array([[found[f"{name}.{axis}/position"] for axis in "xyz"] for name in names])
    # the centre of mass of all moves along a straight line, and what turns about it stays
    middle = np.einsum("i,iat->at", masses, places) / sum(masses)
    line = middle[:, :1] + (middle[:, -1:] - middle[:, :1]) * np.linspace(0.0, 1.0, len(found.t))
    assert np.abs(middle - line).max() < 1e-12


def test_coarse_steps_are_not_sent_to_an_integrator_without_contacts(tmp_path):
    law = "friction: 0.5, stiffness: rigid"
    ball = body("ball", 1.0, [1.0] * 3, [0, 0, 1])
    rig = contact_rig(tmp_path, [ball], [f"name: c, link: ball, sphere: 10 cm, with: ground, {law}"], 1.0)
    assert finer_steps(rig.plant) == "a smaller schedule.step or more schedule.substeps"


# --- what is far --------------------------------------------------------------------------------------------

SHAPE = {
    "box": "box: [0.1, 0.14, 0.2]",
    "capsule": "capsule: {radius: 4 cm, length: 0.2}",
    "sphere": "sphere: 7 cm",
    "cylinder": "cylinder: {radius: 6 cm, length: 0.2}",
}
FAR_PAIRS = [("box", "box"), ("capsule", "box"), ("capsule", "capsule"), ("sphere", "cylinder"), ("sphere", "sphere")]
START = {"a": ([-0.4, 0.0, 0.5], 4.0), "b": ([0.0, 0.02, 0.45], 0.0)}  # m, m/s


def collision(folder, first, second, duration=0.6):
    """Of two bodies that turn and fly: one hits the other, which flies on, and falls to the ground."""
    shapes = {"a": SHAPE[first], "b": SHAPE[second]}
    bodies = [
        body(name, 1, [0.004, 0.005, 0.003], at, 0.3, [speed, 0.0, 0.0, 2.0, 3.0, 1.0])
        for name, (at, speed) in START.items()
    ]
    contacts = [
        f"name: ab, link: a, {shapes['a']}, with: {{link: b, {shapes['b']}}}",
        f"name: on_a, link: a, {shapes['a']}, with: ground",
    ]
    return contact_rig(folder, bodies, [f"{contact}, friction: 0.4" for contact in contacts], duration)


@pytest.mark.parametrize(("first", "second"), FAR_PAIRS)
def test_contacts_that_are_left_out_while_they_are_far_change_nothing(tmp_path, monkeypatch, first, second):
    found = collision(tmp_path, first, second).run()
    assert found["ab/touches"][-1] > 0 and found["on_a/touches"][-1] > 0
    assert min(found["ab/touches"][:40]) == 0
    assert max(found["ab/gap"][found["on_a/normal_force"] > 0.0]) > 0.05
    monkeypatch.setattr(ContactSet, "has_dear", False)
    measured = collision(tmp_path, first, second).run()
    for name in ("a", "b"):
        for axis in "xyz":
            np.testing.assert_allclose(found[f"{name}.{axis}/position"], measured[f"{name}.{axis}/position"], atol=1e-9)


def test_lanes_in_which_some_are_far_equal_single_runs(tmp_path):
    """Of which some meet and others pass each other."""
    rig, at = collision(tmp_path, "capsule", "box", 0.2), np.linspace(-0.3, 0.3, 5)
    batch, names = rig.rollouts(initial={"b.y/position": at}).final, ["a.x/position", "b.y/velocity", "b.z/position"]
    met = batch["ab/touches"] > 0.0
    assert met.any() and not met.all()
    for k in range(5):
        single = rig.rollouts(initial={"b.y/position": at[k : k + 1]}).final
        assert [batch[name][k] for name in names] == [single[name][0] for name in names]


def test_gradients_know_which_contacts_are_far(tmp_path, monkeypatch):
    """As where all of them are measured."""

    def figure(t, signals):
        return ops.array([signals["a.x/position"] + 2.0 * signals["b.z/position"] + signals["b.y/velocity"]])

    name, found = "b.y/position", []
    for _ in range(2):
        found.append(collision(tmp_path, "capsule", "box", 0.15).gradient(figure, initial=name)[name])
        monkeypatch.setattr(ContactSet, "has_dear", False)
    assert found[0] == pytest.approx(found[1], rel=1e-9) != 0.0


@pytest.mark.parametrize(
    ("first", "second"), [*FAR_PAIRS, ("box", "terrain"), ("cylinder", "terrain"), ("terrain", "capsule")]
)
def test_the_bound_of_a_distance_is_below_what_is_left_of_every_gap(first, second):
    """At random places and velocities of both bodies; terrain stands."""
    random, h = np.random.default_rng(0), 0.05
    shapes = ["ball" if name == "sphere" else name for name in (first, second)]
    law, nowhere = ContactLaw(0.5, 0.5), Pose.identity()
    bodies: Any = tuple(GROUND if name == "terrain" else k for k, name in enumerate(shapes))
    contact = BodyContact("c", bodies, (nowhere, nowhere), (SHAPES[shapes[0]], SHAPES[shapes[1]]), law, NOWHERE)
    contacts, nearest = ContactSet((contact,)), []
    for _ in range(300):
        frames = random_frames(random, *shapes, near=0.6)
        placed = [Placement(R, p, random.normal(size=3) * 5.0, random.normal(size=3)) for R, p in frames]
        points = contacts.points(placed)
        normal = contacts.normals(contacts.rates(placed, points))
        left = [point.gap - h * abs(rate) for point, rate in zip(points, normal, strict=True)]
        (bound,) = contacts.distances(placed, h)
        nearest.append(min(left) - bound)
    assert min(nearest) > -1e-12 and np.median(nearest) < 1.0


# --- meshes -------------------------------------------------------------------------------------------------

EDGES = np.array([0.2, 0.12, 0.08])


def brick(folder, shape, mechanism="", law="friction: 0.4", duration=0.8):
    """A brick that is thrown, tumbles and comes to stand."""
    inertia = (EDGES @ EDGES - EDGES**2) / 12.0
    thrown = body("brick", 1.0, inertia, [0.0, 0.0, 0.15], 0.4, [0.8, 0.3, 0.0, 2.0, -1.0, 3.0])
    return contact_rig(folder, [thrown], [f"name: c, link: brick, {shape}, {law}"], duration, mechanism=mechanism)


def in_text(corners):
    return "".join(f"v {x} {y} {z}\n" for x, y, z in corners)


@pytest.mark.parametrize("stiffness", ["rigid", "1e5"])
def test_the_mesh_of_a_box_moves_as_the_box(tmp_path, stiffness):
    signs = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
    (tmp_path / "brick.obj").write_text(in_text(signs * EDGES * 1000.0))
    law = f"with: ground, friction: 0.4, stiffness: {stiffness}"
    box = brick(tmp_path, f"box: {EDGES.tolist()}", law=law).run()
    mesh = brick(tmp_path, "mesh: {file: brick.obj, scale: 0.001}", law=law).run()
    assert box["c/touches"][-1] > 0
    for axis in ("x", "y", "z"):
        np.testing.assert_allclose(mesh[f"brick.{axis}/position"], box[f"brick.{axis}/position"], atol=1e-8)
    np.testing.assert_allclose(mesh["c/normal_force"][-1], 9.81, rtol=1e-3)
    np.testing.assert_allclose(mesh["c/normal_force"], box["c/normal_force"], atol=1e-4)


@pytest.mark.parametrize("corners", [12, 40])
def test_a_disk_of_a_mesh_stands_and_tips_over_its_rim(tmp_path, corners):
    """On a slope of 20° it stands while its centre of mass is over the rim, and tips when it is higher."""
    angles = np.linspace(0.0, 2.0 * np.pi, corners, endpoint=False)
    ring = 0.1 * np.column_stack([np.cos(angles), np.sin(angles)])
    slope = np.radians(20.0)
    for share in (0.9, 1.1):
        height = share * 0.1 * np.cos(np.pi / corners) / np.tan(slope)  # of the centre of mass
        places = np.concatenate([np.column_stack([ring, np.full(corners, z)]) for z in (-height, 0.02)])
        (tmp_path / "disk.obj").write_text(in_text(places))
        at = height * np.array([np.sin(slope), 0.0, np.cos(slope)])
        disk = body("disk", 1.0, [0.01, 0.01, 0.01], at, slope)
        # it turns so that a flat side of the ring points down the slope
        turned = f"mesh: {{file: disk.obj}}, origin: {{rpy: [0, 0, {np.pi / corners}]}}"
        ground = f"  ground: {{friction: 2, rpy: [0, {slope}, 0]}}\n"
        found = contact_rig(
            tmp_path, [disk], [f"name: c, link: disk, {turned}, with: ground"], 0.5, mechanism=ground
        ).run()
        way = np.abs(found["disk.x/position"] - found["disk.x/position"][0]).max()
        assert way < 1e-4 if share < 1.0 else way > 1e-3
