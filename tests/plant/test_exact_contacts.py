"""Exact contacts in runs of rigs against closed forms and published problems, and impacts of stops and contacts as one
problem."""

import math
import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import load_rig
from cosim.core.errors import InputErrors
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from tests.kit.contact_rigs import body, contact_rig, cube, slider

G, EXACT = 9.81, "with: ground, stiffness: rigid, exact: true"
EDGE, SLOPE = 0.2, math.atan(0.5)


@pytest.fixture
def run(tmp_path):
    def run(*args, **more):
        found = contact_rig(tmp_path, *args, **more).run()
        assert np.max(found["contacts/residual"]) < 1e-8
        balance = found["energy/stored"] + found["energy/dissipated"] - found["energy/work"]
        assert np.ptp(balance) < 1e-9 * max(1.0, np.max(found["energy/kinetic"]))
        return found

    return run


def times(found, name):
    return [event.t for event in found.events if event.name == name]


# --- one point ----------------------------------------------------------------------------------------------


def ball(restitution):
    return [slider("ball", [0, 0, 1], "limits: {}", 1.0)], [
        f"name: foot, link: ball, point: [0, 0, 0], friction: 0, restitution: {restitution}, {EXACT}"
    ]


def test_a_ball_bounces_with_its_restitution_and_comes_to_rest(run):
    e, first = 0.8, math.sqrt(2 / G)
    found = run(*ball(e), 4.2)
    hits = first + np.concatenate(([0.0], np.cumsum(2 * first * e ** np.arange(1, 6))))
    assert times(found, "foot touches")[:6] == pytest.approx(hits, abs=1e-11)
    height, speed = found["ball/position"], found["ball/velocity"]
    for k in range(1, 5):
        flies = np.flatnonzero((found.t > hits[k - 1]) & (found.t < hits[k]))[3]
        assert height[flies] + speed[flies] ** 2 / (2 * G) == pytest.approx(e ** (2 * k), rel=1e-12)
    end = first * (1 + e) / (1 - e)
    assert abs(found.t[np.flatnonzero(speed)[-1]] - end) < 2e-3
    assert found["foot/impulse"][-1] == pytest.approx(0.2 * G * found.t[-1], rel=1e-9)
    assert found["foot/touches"][-1] == len([1 for event in found.events for _ in range(event.occurrences)])
    assert found["foot/normal_force"][-1] == pytest.approx(0.2 * G, rel=1e-12)


def test_a_slipping_sphere_rolls_from_the_instant_of_the_closed_form(run):
    v0, mu, r = 2.0, 0.2, 0.1
    inertia = [0.4 * r * r] * 3
    law = f"name: c, link: ball, sphere: {r}, friction: {mu}, {EXACT}"
    found = run([body("ball", 1.0, inertia, [0, 0, r], velocity=(v0, *[0.0] * 5))], [law], 0.4)
    (rolls,) = times(found, "c sticks")
    assert rolls == pytest.approx(2 * v0 / (7 * mu * G), abs=1e-9)
    assert np.ptp(found["ball.x/position"][-50:]) / (49 * 1e-3) == pytest.approx(5 / 7 * v0, rel=1e-9)
    assert found["c/slid"][-1] == pytest.approx(v0 * rolls / 2, rel=1e-8)
    assert abs(found["c/slip"][-1]) < 1e-14
    assert found["c/lost"][-1] == pytest.approx(v0 * v0 / 7, rel=1e-9)


def test_a_block_that_is_pushed_up_a_slope_slides_back_and_one_with_more_friction_stays(run):
    """Slip reversal: up with g (sin θ + μ cos θ), then down with g (sin θ − μ cos θ), or not at all."""
    up = [math.sin(SLOPE), math.cos(SLOPE)]
    for mu in (0.3, 0.6):
        law = f"name: c, link: b, sphere: 0.1, friction: {mu}, {EXACT}"
        rails = f"    - {{name: x, parent: base, type: prismatic, axis: [{up[1]}, 0, {up[0]}]}}\n"
        rails += f"    - {{name: b, parent: x, type: prismatic, axis: [{-up[0]}, 0, {up[1]}], mass: 2 kg}}\n"
        joints = "  x: {initial: {velocity: 1}}\n  b: {initial: {position: 0.1}}\n"
        ground = f"  ground: {{rpy: [0, {-SLOPE}, 0]}}\n"
        found = run([(rails, joints)], [law], 0.6, mechanism=ground)
        brake, pull = G * (up[0] + mu * up[1]), G * (up[0] - mu * up[1])
        (stops,) = times(found, "c sticks")
        assert stops == pytest.approx(1 / brake, abs=1e-9)
        later = found.t[-1] - stops
        exact = 0.5 / brake - 0.5 * max(pull, 0.0) * later**2
        assert found["x/position"][-1] == pytest.approx(exact, abs=1e-9)
        assert found["c/state"][-1] == (2.0 if pull > 0 else 1.0)


@pytest.mark.parametrize("along", [1.0, -1.0])
def test_painlevés_rod_is_stopped_by_an_impact_without_collision(run, along):
    """μ = 2, tan θ = 2: sliding towards its leaning end no force keeps the rod on the ground. The impulse that stops
    the slip follows by hand: J = −v / (W_tn + W_tt q) along t and Λ_n, q = J_t / Λ_n, with u_n = u_t = 0 after it."""
    theta = math.atan(2.0)
    rails = "    - {name: x, parent: base, type: prismatic, axis: [1, 0, 0]}\n"
    rails += "    - {name: z, parent: x, type: prismatic, axis: [0, 0, 1]}\n"
    rails += (
        f"    - {{name: r, parent: z, type: revolute, axis: [0, -1, 0], mass: 1, inertia: [0.01, {1 / 12}, 0.08]}}\n"
    )
    joints = (
        f"  x: {{initial: {{velocity: {-3.0 * along}}}}}\n  z: {{initial: {{position: {0.5 * math.sin(theta)}}}}}\n"
    )
    joints += f"  r: {{initial: {{position: {theta}}}}}\n"
    law = f"name: tip, link: r, point: [-0.5, 0, 0], friction: 2, {EXACT}"
    found = run([(rails, joints)], [law], 1e-3, 1e-5)
    c, s = 0.5 * math.cos(theta), 0.5 * math.sin(theta)
    W = np.eye(2) + 12.0 * np.outer([s, -c], [s, -c])
    stopping = np.linalg.solve(W, [3.0 * along, 0.0])
    jams = stopping[1] > 0 and abs(stopping[0]) <= 2 * stopping[1]
    assert jams == (along > 0)
    # the weight adds what it presses within a step
    assert found["tip/impulse"][1] == pytest.approx(stopping[1] if jams else 0.0, abs=1e-3)
    if jams:
        assert found["energy/kinetic"][0] - found["energy/kinetic"][1] == pytest.approx(1.5 * stopping[0], rel=1e-3)


# --- several points -----------------------------------------------------------------------------------------


def corners(edge, link="cube"):
    half = edge / 2
    at = [(x, y) for x in (-half, half) for y in (-half, half)]
    return [f"name: p{k}, link: {link}, point: [{x}, {y}, {-half}], {EXACT}" for k, (x, y) in enumerate(at)]


@pytest.mark.parametrize(("friction", "way"), [(0.5001, 0.0), (0.55, 0.0), (0.4999, None), (0.45, None)])
def test_a_cube_on_a_slope_sticks_or_slides_as_friction_says(run, friction, way):
    place = [math.sin(SLOPE) * EDGE / 2, 0.0, math.cos(SLOPE) * EDGE / 2]
    ground = f"  ground: {{rpy: [0, {SLOPE}, 0], friction: {friction}}}\n"
    found = run([body("cube", 1.0, cube(1.0, EDGE), place, SLOPE)], corners(EDGE), 1.0, mechanism=ground)
    position = np.array([found[f"cube.{axis}/position"] for axis in "xyz"]).T
    moved = (position[-1] - position[0]) @ [math.cos(SLOPE), 0.0, -math.sin(SLOPE)]
    exact = 0.5 * G * (math.sin(SLOPE) - friction * math.cos(SLOPE)) if way is None else way
    assert moved == pytest.approx(exact, abs=1e-9 if way is None else 1e-12)
    # equally soft points would carry the load so: G cosθ (1 ± min(μ, tanθ)) / 4
    share = np.array([found[f"p{k}/normal_force"][-1] for k in range(4)]) * 4 / (G * math.cos(SLOPE))
    assert sorted(share) == pytest.approx(sorted([1 - min(friction, 0.5)] * 2 + [1 + min(friction, 0.5)] * 2), rel=1e-4)


def test_a_block_rocks_as_housner_found(run):
    """Housner (1963): at each impact of a rigid block on its other corner the speed falls by 1 − 1.5 sin²α."""
    b, H = 0.1, 0.4
    R, alpha = math.hypot(b, H), math.atan(b / H)
    inertia, start = (b * b + H * H) / 3, 0.5 * alpha
    place = [b - R * math.sin(alpha - start), 0.0, R * math.cos(alpha - start)]
    points = [
        f"name: p{k}, link: block, point: [{x}, {y}, {-H}], friction: 1.5, {EXACT}"
        for k, (x, y) in enumerate([(-b, -0.1), (-b, 0.1), (b, -0.1), (b, 0.1)])
    ]
    found = run([body("block", 1.0, [inertia] * 3, place, start)], points, 1.0)
    rocking = [lambda t, y: [y[1], -G * R / (inertia + R * R) * math.sin(alpha - y[0])], (0, 2), [start, 0]]
    flight = solve_ivp(*rocking, events=[lambda t, y: y[0]], rtol=1e-12, atol=1e-13)
    assert times(found, "p0 touches")[0] == pytest.approx(flight.t_events[0][0], abs=1e-9)
    energy = found["energy/kinetic"] + found["energy/potential"] - G * R * math.cos(alpha)
    hits = np.flatnonzero(np.diff(energy) < -1e-6)
    assert len(hits) == 2
    for k in hits:
        assert math.sqrt(energy[k + 1] / energy[k]) == pytest.approx(1 - 1.5 * math.sin(alpha) ** 2, abs=1e-9)


# --- stops of joints and contacts ---------------------------------------------------------------------------

FIRST, SECOND = math.radians(40), math.radians(70)
DOWN = np.array([-0.4 * math.cos(FIRST) - 0.3 * math.cos(FIRST + SECOND), -0.3 * math.cos(FIRST + SECOND)])


ELBOW = "origin: {xyz: [0.4, 0, 0]}"


def double_pendulum(folder, contact, restitution, rates, step="1 us", duration="3 us"):
    """Whose second joint is at its upper stop while its tip is on the ground, without gravity."""
    inertia = "com: [{}, 0, 0], inertia: [0.01, 0.03, 0.03]"
    height = 0.4 * math.sin(FIRST) + 0.3 * math.sin(FIRST + SECOND)
    text = f"""mechanism:
  ground: {{friction: 0, xyz: [0, 0, {-height}]}}
  gravity: [0, 0, 0]
  bodies:
    - {{name: one, parent: base, type: revolute, axis: [0, 1, 0], mass: 2, {inertia.format(0.2)}}}
    - {{name: two, parent: one, type: revolute, axis: [0, 1, 0], mass: 1, {inertia.format(0.15)}, {ELBOW}}}
  contacts:
    - {{name: tip, link: two, point: [0.3, 0, 0], with: ground, stiffness: rigid, {contact}}}
joints:
  one: {{initial: {{position: {FIRST}, velocity: {rates[0]}}}}}
  two: {{initial: {{position: {SECOND}, velocity: {rates[1]}}}, stops: {{upper: {SECOND}, restitution: {restitution}}}}}
schedule: {{step: {step}, duration: {duration}}}
"""
    (folder / "rig.yaml").write_text(text)
    return load_rig(folder / "rig.yaml")


@pytest.mark.parametrize("exact", [", exact: true", ""])
@pytest.mark.parametrize(("of_tip", "of_stop"), [(0.5, 0.3), (0.0, 0.5), (0.0, 0.0)])
def test_a_stop_and_a_contact_that_are_hit_at_once_share_their_impulses(tmp_path, exact, of_tip, of_stop):
    """Both push, so each reverses its own velocity: v₂⁺ = −e_s v₂, and G v⁺ = −e G v for the normal row G of the tip.
    With `moreau` as well as with exact instants."""
    rates = np.array([2.0, 1.0])
    found = double_pendulum(tmp_path, f"restitution: {of_tip}{exact}", of_stop, rates).run()
    second = -of_stop * rates[1]
    first = (-of_tip * (DOWN @ rates) - DOWN[1] * second) / DOWN[0]
    assert found["one/velocity"][2] == pytest.approx(first, abs=1e-5)
    assert found["two/velocity"][2] == pytest.approx(second, abs=1e-5)
    lost = found["energy/kinetic"][0] - found["energy/kinetic"][2]
    assert found["energy/dissipated"][2] == pytest.approx(lost, rel=1e-9)
    # the loss of each is ½ Λ (u⁻ + u⁺) of its own impulse
    by_stop = next(event.lost for event in found.events if event.name == "two at its upper stop")
    assert 0.0 < by_stop < lost
    assert found["tip/lost"][2] == pytest.approx(lost - by_stop, rel=1e-9)
    assert found["tip/touches"][-1] == 1.0 or not (exact or of_tip)  # a tip that stays may lift in the same step


# --- the same in every form ---------------------------------------------------------------------------------


def test_interpreted_and_compiled_runs_are_the_same(tmp_path):
    rig = contact_rig(tmp_path, *ball(0.5), 0.6)
    compiled = rig.run()
    found = load_rig(tmp_path / "rig.yaml", interpret=True).run()
    for name in compiled.signals:
        assert np.allclose(compiled[name], found[name], rtol=1e-9, atol=1e-11), name


def test_rollouts_in_lanes_are_single_runs(tmp_path):
    rig = contact_rig(tmp_path, *ball(0.5), 0.6)
    heights = np.array([0.9, 1.0, 0.3])
    ends = rig.rollouts(initial={"ball/position": heights}, keep="final").final["ball/position"]
    for height, end in zip(heights, np.ravel(ends), strict=True):
        single = load_rig(tmp_path / "rig.yaml", [f"joints.ball.initial.position={height}"]).run()
        assert end == pytest.approx(single["ball/position"][-1], abs=1e-14)


def test_the_solver_takes_matrices_that_are_not_symmetric():
    """Frictionless problems with dominant diagonals have one solution, which the miss of the law tells."""
    rng, solver = np.random.default_rng(3), ContactSolver(3, symmetric=False)
    for _ in range(30):
        W = np.eye(9) + 0.1 * rng.uniform(-1, 1, (9, 9))
        c = rng.uniform(-1, 1, 9)
        impulse, _, residual, converged = solver(W, c, np.full(3, 0.3), np.zeros(9))
        assert converged and residual < 1e-10
        u, normal = W @ impulse + c, np.arange(9) % 3 == 2
        assert np.all(impulse[normal] >= 0) and np.all(u[normal] > -1e-9)
        assert np.abs(impulse[normal] * u[normal]).max() < 1e-9
        for j in range(3):
            along, slip = impulse[3 * j : 3 * j + 2], u[3 * j : 3 * j + 2]
            limit = 0.3 * impulse[3 * j + 2]
            assert np.hypot(*along) <= limit + 1e-9
            assert np.allclose(np.hypot(*slip) * along, -limit * slip, atol=1e-8)


# --- what they do not take ----------------------------------------------------------------------------------

BALL = body("ball", 1.0, [0.004] * 3, [0, 0, 0.1])
REFUSED = {
    "a stiffness": (["stiffness: 1e4, exact: true"], "an exact contact is rigid"),
    "virtual": (["virtual: true, exact: true"], "a virtual contact is a spring"),
    "spinning": (["torsional: 0.01, exact: true"], "does not resist spinning"),
    "mixed": (["stiffness: rigid, exact: true", "stiffness: rigid"], "'c0' is exact, and 'c1' is not"),
    "points": (["exact: true"] * 5, "have 5 points, at most 4"),
    "deep": (["at: [0, 0, -0.01], exact: true"], "starts 0.01 m deep"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_exact_contacts_are_not(tmp_path, what):
    laws, sentence = REFUSED[what]
    entries = [f"name: c{k}, link: ball, sphere: 0.1, with: ground, friction: 0.3, {law}" for k, law in enumerate(laws)]
    with pytest.raises(InputErrors, match=re.escape(sentence)):
        contact_rig(tmp_path, [BALL], entries, 0.1)


def test_another_integrator_and_gradients_are_refused(tmp_path):
    rig = contact_rig(tmp_path, *ball(0.5), 0.1)
    with pytest.raises(InputErrors, match="instants of the exact contact 'foot' have no derivative"):
        rig.gradient(metrics=["ball/error_rms"], parameters=["mechanism.foot.restitution"])
    with pytest.raises(InputErrors, match="moreau does not treat exact contacts; use rk4"):
        load_rig(tmp_path / "rig.yaml", ["schedule.integrator=moreau"])


def test_a_ball_leaves_a_smooth_dome_where_its_height_has_fallen_by_a_third(run):
    """Without friction a point mass leaves a sphere at cos θ = 2/3: the curvature of the surfaces is in the law."""
    start = 0.1
    place = [1.1 * math.sin(start), 0.0, 1.1 * math.cos(start)]
    law = "name: c, link: ball, sphere: 0.1, with: {link: base, sphere: 1}, friction: 0, exact: true"
    found = run([body("ball", 1.0, [0.004] * 3, place)], [law], 1.2)
    (leaves,) = times(found, "c lifts")
    down = [lambda t, y: [y[1], G / 1.1 * math.sin(y[0])], (0, 3), [start, 0.0]]
    cosine = 2 / 3 * math.cos(start)
    instant = solve_ivp(*down, events=[lambda t, y: math.cos(y[0]) - cosine], rtol=1e-12, atol=1e-13).t_events[0][0]
    assert leaves == pytest.approx(instant, abs=1e-7)
