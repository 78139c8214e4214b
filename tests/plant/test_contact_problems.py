"""Contacts with friction in runs of rigs against closed forms and published problems."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tests.kit.contact_rigs import body, contact_rig, cube

G = 9.81


@pytest.fixture
def run(tmp_path):
    def run(*args, residual=1e-8, **more):
        found = contact_rig(tmp_path, *args, **more).run()
        assert np.max(found["contacts/residual"]) < residual
        return found

    return run


# --- friction -----------------------------------------------------------------------------------------------

SLOPE, EDGE = math.atan(0.5), 0.2
ON_SLOPE = [math.sin(SLOPE) * EDGE / 2, 0.0, math.cos(SLOPE) * EDGE / 2]
TILTED = f"  ground: {{rpy: [0, {SLOPE}, 0]}}\n"


def way_down(found):
    along = np.array([math.cos(SLOPE), 0.0, -math.sin(SLOPE)])
    position = np.array([found[f"cube.{axis}/position"] for axis in "xyz"]).T
    return (position - position[0]) @ along


@pytest.mark.parametrize("friction", [0.5001, 0.55])
def test_a_cube_on_a_slope_sticks_without_creep(run, friction):
    law = f"box: [0.2, 0.2, 0.2], friction: {friction}, stiffness: rigid"
    bodies = [body("cube", 1.0, cube(1.0, EDGE), ON_SLOPE, SLOPE)]
    found = run(bodies, [f"name: c, link: cube, with: ground, {law}"], 10.0, mechanism=TILTED)
    assert abs(way_down(found)[-1]) < 1e-9
    assert found["c/state"][-1] == 1.0
    assert found["c/normal_force"][-1] == pytest.approx(G * math.cos(SLOPE), rel=1e-9)


@pytest.mark.parametrize("friction", [0.5001, 0.55])
def test_a_cube_on_springs_settles_and_then_stays(run, friction):
    law = f"friction: {friction}, stiffness: 1e6"
    found = run(
        [body("cube", 1.0, cube(1.0, EDGE), ON_SLOPE, SLOPE)],
        [f"name: c, link: cube, box: [0.2, 0.2, 0.2], with: ground, {law}"],
        10.0,
        mechanism=TILTED,
    )
    way = way_down(found)
    assert abs(way[-1] - way[2000]) < 1e-12
    depth = -found["c/gap"][-1]
    # the lower two of four points carry G cosθ (1 + tanθ) / 4 each
    assert depth == pytest.approx(G * math.cos(SLOPE) * 1.5 / 4 / 1e6, rel=1e-5)


@pytest.mark.parametrize("friction", [0.4999, 0.45])
def test_a_cube_slides_down_a_slope_as_far_as_it_must(run, friction):
    law = f"friction: {friction}, stiffness: rigid"
    found = run(
        [body("cube", 1.0, cube(1.0, EDGE), ON_SLOPE, SLOPE)],
        [f"name: c, link: cube, box: [0.2, 0.2, 0.2], with: ground, {law}"],
        10.0,
        mechanism=TILTED,
    )
    exact = 0.5 * G * (math.sin(SLOPE) - friction * math.cos(SLOPE)) * 100.0
    assert abs(way_down(found)[-1] - exact) < 1e-9
    assert found["c/state"][-1] == 2.0


@pytest.mark.parametrize("stiffness", ["rigid", "1e7"])
@pytest.mark.parametrize("step", [1e-3, 1e-4])
def test_a_sphere_slips_until_it_rolls(run, step, stiffness):
    v, friction, r = 2.0, 0.2, 0.1
    found = run(
        [body("ball", 1.0, [0.4 * r * r] * 3, [0.0, 0.0, r], velocity=[v, 0, 0, 0, 0, 0])],
        [f"name: c, link: ball, sphere: {r}, with: ground, friction: {friction}, stiffness: {stiffness}"],
        0.5,
        step,
    )
    slides = found["c/state"] == 2.0
    rolls = found.t[np.flatnonzero(slides)[-1]]
    exact = 2 * v / (7 * friction * G)
    assert abs(rolls - exact) < (1 if stiffness == "rigid" else 20) * step
    assert found["c/slip"][-1] < 1e-9
    assert found["ball.x/velocity"][0] == v
    speed = np.diff(found["ball.x/position"])[-1] / step
    assert speed == pytest.approx(5 / 7 * v, rel=1e-6 if stiffness == "rigid" else 1e-4)


def test_static_friction_holds_more_than_sliding_friction(run):
    """Pulled by a slope between both, a cube at rest stays and a moving one goes on."""
    law = "friction: {static: 0.6, sliding: 0.4}, stiffness: rigid"
    for speed, stays in ((0.0, True), (0.5, False)):
        found = run(
            [body("cube", 1.0, cube(1.0, EDGE), ON_SLOPE, SLOPE, [speed, 0, 0, 0, 0, 0])],
            [f"name: c, link: cube, box: [0.2, 0.2, 0.2], with: ground, {law}"],
            2.0,
            mechanism=TILTED,
        )
        way = way_down(found)[-1]
        exact = speed * 2.0 + 0.5 * G * (math.sin(SLOPE) - 0.4 * math.cos(SLOPE)) * 4.0
        assert abs(way - (0.0 if stays else exact)) < 1e-9


# --- impacts ------------------------------------------------------------------------------------------------


def apices(height, t):
    """Of a curve, each by a parabola through three points."""
    found = []
    for k in range(1, len(height) - 1):
        a, b, c = height[k - 1 : k + 2]
        if a < b >= c:
            found.append(b - (a - c) ** 2 / (8 * (a - 2 * b + c)))
    return np.array(found)


@pytest.mark.parametrize("restitution", [0.8, 0.5])
def test_a_rigid_ball_rebounds(run, restitution):
    r = 0.1
    law = f"friction: 0.3, restitution: {restitution}, stiffness: rigid"
    found = run(
        [body("ball", 1.0, [0.004] * 3, [0.0, 0.0, 1.0 + r])],
        [f"name: c, link: ball, sphere: {r}, with: ground, {law}"],
        2.5,
        1e-4,
    )
    heights = apices(found["ball.z/position"] - r, found.t)[:3]
    exact = restitution ** (2 * np.arange(1, 4))
    assert np.abs(heights / exact - 1).max() < 6e-3


@pytest.mark.parametrize("restitution", [1.0, 0.8, 0.5, 0.2])
def test_a_ball_on_springs_rebounds_as_its_damping_says(run, restitution):
    """Closer with shorter steps, without gravity."""
    r, errors = 0.1, []
    law = f"friction: 0.3, restitution: {restitution}, stiffness: 1e5"
    for step in (1e-4, 2e-5):
        found = run(
            [body("ball", 1.0, [0.004] * 3, [0.0, 0.0, 0.01 + r], velocity=[0, 0, -1, 0, 0, 0])],
            [f"name: c, link: ball, sphere: {r}, with: ground, {law}"],
            0.1,
            step,
            "  gravity: [0, 0, 0]\n",
        )
        errors.append(abs(found["ball.z/velocity"][-1] - restitution))
    assert errors[1] < 0.02 and errors[1] < 0.3 * errors[0]


def test_a_rigid_rod_slides_into_its_paradox_and_stops(run):
    """Painlevé's rod: the tip slides where no finite force solves the equations of motion; an impulse stops it, which
    does not depend on the step."""
    impulses, angle = [], math.atan(2.0)
    for step in (1e-3, 1e-4):
        lower = np.array([math.cos(angle), 0.0, math.sin(angle)])
        turn = np.array([[math.cos(angle), 0, -math.sin(angle)], [0, 1, 0], [math.sin(angle), 0, math.cos(angle)]])
        velocity = turn.T @ np.array([-3.0, 0.0, 0.0])
        found = run(
            [body("rod", 1.0, [1e-6, 1 / 3, 1 / 3], lower, -angle, [*velocity, 0, 0, 0])],
            ["name: tip, link: rod, point: [-1, 0, 0], with: ground, friction: 2, stiffness: rigid"],
            2 * step,
            step,
        )
        impulses.append(found["tip/normal_force"][1] * step)
        assert found["tip/slip"][1] < 3 * step
        assert found["energy/kinetic"][1] < found["energy/kinetic"][0] - 1.0
    assert impulses == pytest.approx([0.9, 0.9], abs=0.01)
    assert abs(impulses[0] / impulses[1] - 1) < 0.01


def test_a_block_rocks_as_housner_found(run):
    """Housner (1963): at each impact of a rigid block on its other corner the speed falls by 1 − 1.5 sin²α."""
    b, H = 0.1, 0.4
    R, alpha = math.hypot(b, H), math.atan(b / H)
    inertia, start, step = (b * b + H * H) / 3, 0.5 * alpha, 1e-4
    place = [b - R * math.sin(alpha - start), 0.0, R * math.cos(alpha - start)]
    corners = [
        f"name: p{k}, link: block, point: [{x}, {y}, {-H}], with: ground, friction: 1.5, stiffness: rigid"
        for k, (x, y) in enumerate([(-b, -0.1), (-b, 0.1), (b, -0.1), (b, 0.1)])
    ]
    found = run([body("block", 1.0, [inertia] * 3, place, start)], corners, 1.2, step)
    energy = found["energy/kinetic"] + found["energy/potential"] - (G * R * math.cos(alpha))
    angle = found["block.ry/position"]
    hits = np.flatnonzero(np.diff(np.sign(angle)) != 0)
    flight = solve_ivp(
        lambda t, y: [y[1], -G * R / (inertia + R * R) * math.sin(alpha - y[0])],
        (0, 2),
        [start, 0],
        events=[lambda t, y: y[0]],
        rtol=1e-11,
        atol=1e-12,
    )
    assert abs(found.t[hits[0]] - flight.t_events[0][0]) < 3 * step
    for k in hits[:2]:
        ratio = math.sqrt(energy[k + 20] / energy[k - 20])
        assert abs(ratio - (1 - 1.5 * math.sin(alpha) ** 2)) < 1e-3


# --- several bodies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("top", "low"), [(1000.0, 1.0), (1.0, 1000.0)])
def test_a_stack_of_very_unequal_cubes_stands(run, top, low):
    bodies = [
        body(*each)
        for each in (
            ("low", low, cube(low, EDGE), [0, 0, EDGE / 2]),
            ("top", top, cube(top, EDGE), [0, 0, 1.5 * EDGE]),
        )
    ]
    feet = [(x * EDGE / 2, y * EDGE / 2, -EDGE / 2) for x in (-1, 1) for y in (-1, 1)]
    law = "friction: 0.5, stiffness: rigid"
    contacts = [f"name: g{k}, link: low, point: {list(foot)}, with: ground, {law}" for k, foot in enumerate(feet)]
    plane = "{link: low, plane: {xyz: [0, 0, 0.1]}}"
    contacts += [f"name: t{k}, link: top, point: {list(foot)}, with: {plane}, {law}" for k, foot in enumerate(feet)]
    found = run(bodies, contacts, 2.0)
    for before, weight in (("g", top + low), ("t", top)):
        force = sum(found[f"{before}{k}/normal_force"][-1] for k in range(4))
        assert force == pytest.approx(weight * G, rel=1e-8)
        assert max(abs(found[f"{before}{k}/gap"][-1]) for k in range(4)) < 1e-10


THIRDS, PASSED_ON = [-1 / 3, 2 / 3, 2 / 3], [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("apart", "step", "speeds"),
    [(0.0, 1e-4, THIRDS), (1e-3, 1e-4, PASSED_ON), *((part * 1e-3, 1e-3, PASSED_ON) for part in (0.01, 0.1, 0.3, 0.8))],
)
def test_balls_in_a_row(run, apart, step, speeds):
    """Impacts at once share the impulse so that energy and the rates of all contacts are reversed; impacts after each
    other pass it on, also where the ball gets there within the step of the impact before."""
    r, mass = 0.05, 1.0
    places = [-0.0203, 2 * r, 4 * r + apart]
    bodies = [
        body(f"b{k}", mass, [0.001] * 3, [x, 0, 0], velocity=[1.0 if k == 0 else 0.0, 0, 0, 0, 0, 0])
        for k, x in enumerate(places)
    ]
    law = f"sphere: {r}, friction: 0, restitution: 1, stiffness: rigid"
    contacts = [f"name: c{k}, link: b{k}, {law}, with: {{link: b{k + 1}, sphere: {r}}}" for k in range(2)]
    found = run(bodies, contacts, 0.2, step, "  gravity: [0, 0, 0]\n")
    ended = [np.diff(found[f"b{k}.x/position"])[-1] / step for k in range(3)]
    assert ended == pytest.approx(speeds, abs=1e-5)
    assert found["energy/kinetic"][-1] == pytest.approx(0.5 * mass, rel=1e-5)


# --- energy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stiffness", ["rigid", "1e5"])
def test_the_energy_of_tumbling_bodies_closes_to_rounding(run, stiffness):
    law = f"friction: 0.4, stiffness: {stiffness}"
    bodies = [
        body("a", 1.0, cube(1.0, EDGE), [0, 0, 0.4], 0.3, [0.5, 0.1, 0, 2, -1, 3]),
        body("b", 0.5, cube(0.5, 0.1), [0.05, 0.02, 0.7], 0.1, [0, 0, -1, 0, 3, 0]),
    ]
    contacts = [
        f"name: ga, link: a, box: [0.2, 0.2, 0.2], with: ground, {law}",
        f"name: gb, link: b, sphere: 5 cm, with: ground, {law}",
        f"name: ab, link: b, sphere: 5 cm, with: {{link: a, sphere: 10 cm}}, {law}",
    ]
    found = run(bodies, contacts, 1.0, residual=1e-5)  # eight rigid corners are redundant
    balance = found["energy/stored"] + found["energy/dissipated"]
    moved = np.ptp(found["energy/potential"])
    assert np.max(np.abs(balance - balance[0])) < 1e-9 * moved
    # what pushes rigid bodies out of each other does work against their weight
    gained = 0.0 if stiffness != "rigid" else 2e-4
    assert np.all(np.diff(found["energy/contacts"]) > -(1e-9 + gained) * moved)


# --- spinning and rolling friction --------------------------------------------------------------------------


@pytest.mark.parametrize("stiffness", ["rigid", "1e6"])
def test_a_spinning_ball_stops_by_its_friction_about_the_normal(run, stiffness):
    inertia, spin, torsional = 0.004, 10.0, 2e-3
    law = f"friction: 0.5, torsional: {torsional}, stiffness: {stiffness}"
    found = run(
        [body("ball", 1.0, [inertia] * 3, [0.0, 0.0, 0.1], velocity=[0, 0, 0, 0, 0, spin])],
        [f"name: c, link: ball, sphere: 0.1, with: ground, {law}"],
        3.0,
    )
    stops = inertia * spin / (torsional * G)
    turning = np.abs(found["ball.rz/velocity"]) > 1e-9
    assert found.t[np.flatnonzero(turning)[-1]] == pytest.approx(stops, abs=0.01)
    assert found["ball.rz/velocity"][-1] == pytest.approx(0.0, abs=1e-9)
    assert found["energy/contacts"][-1] == pytest.approx(0.5 * inertia * spin**2, rel=1e-3)


@pytest.mark.parametrize("stiffness", ["rigid", "1e6"])
def test_a_rolling_ball_is_slowed_by_its_rolling_friction(run, stiffness):
    r, v, rolling = 0.1, 1.0, 1e-3
    inertia = 0.4 * r * r
    law = f"friction: 0.5, rolling: {rolling}, stiffness: {stiffness}"
    found = run(
        [body("ball", 1.0, [inertia] * 3, [0.0, 0.0, r], velocity=[v, 0, 0, 0, v / r, 0])],
        [f"name: c, link: ball, sphere: {r}, with: ground, {law}"],
        2.0,
    )
    deceleration = rolling * G / (r * (1.0 + inertia / (r * r)))
    speed = np.diff(found["ball.x/position"]) / 1e-3
    assert speed[-1] == pytest.approx(v - deceleration * 2.0, abs=2e-3)
    assert found["ball.x/position"][-1] == pytest.approx(v * 2.0 - 0.5 * deceleration * 4.0, abs=3e-3)


def test_a_ball_with_rolling_friction_stays_on_a_flat_slope(run):
    """Up to the slope μ_r / r; beyond, it rolls."""
    for slope, stays in ((0.009, True), (0.011, False)):
        found = run(
            [body("ball", 1.0, [0.004] * 3, [0.1 * math.sin(slope), 0.0, 0.1 * math.cos(slope)])],
            ["name: c, link: ball, sphere: 0.1, with: ground, friction: 0.5, rolling: 0.001, stiffness: rigid"],
            2.0,
            mechanism=f"  ground: {{rpy: [0, {slope}, 0]}}\n",
        )
        way = found["ball.x/position"][-1] - found["ball.x/position"][0]
        assert (way < 1e-6) == stays
