"""Rigs of rigs/mechanisms that show formulations: the motion beside separate bodies and beside equations by hand."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tests.system.test_mechanisms_trees import of

SEPARATE = "mechanism.formulation=separate_bodies"
G = 9.81
# rig -> its dofs
VARIANTS = {
    "double_pendulum_cartesian": ("hinge_1", "hinge_2"),
    "slider_crank_cartesian": ("crank", "rod", "piston"),
    "grab_jaw": ("jaw.x", "jaw.y", "jaw.angle"),
    "solar_array_fixed_augmented": ("root_hinge", "outer_hinge"),
    "solar_array_free_augmented": ("craft.x", "craft.y", "craft.angle", "root_hinge", "outer_hinge"),
}
# rig -> position and velocity of each of its last two dofs at the end of the run, and how exactly
ENDS = {
    "double_pendulum_cartesian": ((-2.3179, -1.7365), (4.0941, -0.0504), 1e-4),  # Modelica Standard Library
    "solar_array_fixed_augmented": ((np.pi / 2, 0.0), (0.0, 0.0), 3e-3),  # at rest, unfolded
    "solar_array_free_augmented": ((np.pi / 2, 0.0), (0.0, 0.0), 3e-3),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_whole_run_is_that_of_separate_bodies(sample, name):
    rig, separate = sample(f"mechanisms/{name}"), sample(f"mechanisms/{name}", SEPARATE)
    assert rig.plant.other_formulation is not None and separate.plant.other_formulation is None
    run, expected = rig.run(), separate.run()
    for what in ("position", "velocity", "acceleration"):
        found, wanted = of(run, VARIANTS[name], what), of(expected, VARIANTS[name], what)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max(), err_msg=what)
    assert np.ptp(of(run, VARIANTS[name]), axis=0).min() > 0.03
    if name in ENDS:
        *expected, tolerance = ENDS[name]
        found = [of(run, VARIANTS[name][-2:], what)[-1] for what in ("position", "velocity")]
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    if name.startswith("solar_array"):
        elastic = 0.5 * 3.0 * (np.pi / 2) ** 2 + 0.5 * 2.0 * np.pi**2  # of the folded springs
        assert run["energy/dissipated"][-1] == pytest.approx(elastic, rel=1e-4)


# --- jaw of a grab bucket -----------------------------------------------------------------------------

P1, P2 = np.array([0.5, 0.6]), np.array([-0.5, -0.5])  # m, in the axes of the jaw
d, e, b = 0.8, 1.0, 0.5
A = (e - b) / d**2
MASS, INERTIA, DAMPING, STIFFNESS, UNLOADED, WINCH = 400.0, 60.0, 2500.0, 1e4, 1.8, np.array([0.0, 3.0])


def arms(angle):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return turn @ P1, turn @ P2


def jaw_accelerations(q, v):
    """[x'', y'', phi'', multiplier of the line, of the curve] of the 5 x 5 system, without friction of the contacts."""
    spin = v[2]
    first, second = arms(q[2])
    tip = q[0] + second[0]
    slope, bend = 2 * A * (tip + d), 2 * A
    # x1 = x + first_x = 0 and y2 - f(x2) = 0, differentiated twice: T q'' = right
    T = np.array([[1.0, 0.0, -first[1]], [-slope, 1.0, second[0] + slope * second[1]]])
    tip_speed = v[0] - second[1] * spin
    right = spin**2 * np.array([first[0], second[1] - slope * second[0]]) + [0.0, bend * tip_speed**2]
    rope = WINCH - q[:2] - first
    pull = STIFFNESS * (np.hypot(*rope) - UNLOADED) * rope / np.hypot(*rope)
    moment = first[0] * pull[1] - first[1] * pull[0]
    force = np.array([pull[0], pull[1] - MASS * G, moment]) - DAMPING * np.asarray(v)
    system = np.block([[np.diag([MASS, MASS, INERTIA]), -T.T], [T, np.zeros((2, 2))]])
    return np.linalg.solve(system, [*force, *right])


def test_jaw_moves_by_its_five_equations(sample):
    run = sample("mechanisms/grab_jaw").run()

    def flow(t, state):
        return [*state[3:], *jaw_accelerations(state[:3], state[3:])[:3]]

    start = [-0.5, -0.46875, 0.0, 0.0, 0.0, 0.0]
    expected = solve_ivp(flow, (0.0, run.t[-1]), start, "DOP853", run.t, rtol=1e-11, atol=1e-12).y.T
    dofs = VARIANTS["grab_jaw"]
    np.testing.assert_allclose(of(run, dofs), expected[:, :3], atol=1e-7)
    np.testing.assert_allclose(of(run, dofs, "velocity"), expected[:, 3:], atol=1e-6)
    states = zip(of(run, dofs), of(run, dofs, "velocity"), strict=True)
    solved = np.array([jaw_accelerations(q, v) for q, v in states])
    np.testing.assert_allclose(of(run, dofs, "acceleration"), solved[:, :3], atol=1e-8)
    # the multiplier of the parabola is the vertical part of the normal force
    steep = np.hypot(1.0, 2 * A * (run["point_2.x/position"] + d))
    for reaction, force in (("hinge/force", solved[:, 3]), ("scoop/force", solved[:, 4] * steep)):
        np.testing.assert_allclose(np.abs(run[reaction]), np.abs(force), rtol=1e-9, atol=1e-6)
    # its points stay on line and parabola
    tip, rope = run["point_2.x/position"], WINCH[1] - run["point_1.y/position"]
    assert rope.min() > UNLOADED  # a rope pulls only
    np.testing.assert_allclose(run["point_1.x/position"], 0.0, atol=1e-12)
    np.testing.assert_allclose(run["point_2.y/position"], -e + A * (tip + d) ** 2, atol=1e-12)
    assert tip[0] == pytest.approx(-1.0) and np.ptp(tip) > 0.8
    assert np.abs(of(run, VARIANTS["grab_jaw"], "velocity")[-1]).max() < 1e-2


def test_jaw_without_damping_conserves_its_energy(sample):
    run = sample("mechanisms/grab_jaw", "mechanism.bodies.jaw.damping=0").run()
    x, y, angle = of(run, VARIANTS["grab_jaw"]).T
    vx, vy, spin = of(run, VARIANTS["grab_jaw"], "velocity").T
    first = np.array([arms(phi)[0] for phi in angle])
    rope = np.hypot(x + first[:, 0] - WINCH[0], y + first[:, 1] - WINCH[1])
    elastic = 0.5 * STIFFNESS * (rope - UNLOADED) ** 2
    kinetic = 0.5 * MASS * (vx**2 + vy**2) + 0.5 * INERTIA * spin**2
    total = kinetic + MASS * G * y + elastic
    assert kinetic.max() > 500.0
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-6 * kinetic.max())


# --- solar arrays -------------------------------------------------------------------------------------


def test_panels_of_a_craft_that_floats_move_about_the_common_centre_of_mass(sample):
    run = sample("mechanisms/solar_array_free_augmented").run()
    x, y, angle, inner, outer = of(run, VARIANTS["solar_array_free_augmented"]).T
    first = np.pi / 2 + angle
    roots = np.array([x, y]) + 0.6 * np.array([np.cos(first), np.sin(first)])
    along = [np.array([np.cos(a), np.sin(a)]) for a in (angle + inner, angle + inner + outer)]
    centres = [np.array([x, y]), roots + along[0], roots + 2 * along[0] + along[1]]
    masses, inertias, angles = (150.0, 12.0, 10.0), (40.0, 4.0, 3.3), (angle, angle + inner, angle + inner + outer)
    moment = np.sum([m * c for m, c in zip(masses, centres, strict=True)], axis=0)
    np.testing.assert_allclose(moment, np.repeat(moment[:, :1], len(x), axis=1), atol=1e-10)
    momentum = np.zeros(len(x) - 2)
    step = run.t[1] - run.t[0]
    for m, inertia, c, a in zip(masses, inertias, centres, angles, strict=True):
        speed, spin = (c[:, 2:] - c[:, :-2]) / (2 * step), (a[2:] - a[:-2]) / (2 * step)
        momentum += m * (c[0, 1:-1] * speed[1] - c[1, 1:-1] * speed[0]) + inertia * spin
    np.testing.assert_allclose(momentum, 0.0, atol=1e-4)
    assert angle.min() < -0.5


# --- point masses -------------------------------------------------------------------------------------


def test_efforts_of_point_masses_and_of_full_inertia(sample):
    """The textbook's equations of a planar arm of two links, with I1 = I2 = 0 for the point masses."""
    run = sample("mechanisms/point_mass_arm").run()
    m1, m2, l1, c1, c2 = 2.0, 1.2, 0.4, 0.2, 0.15
    q, v, a = (of(run, ("shoulder", "elbow"), what).T for what in ("position", "velocity", "acceleration"))

    def efforts(i1, i2):
        cos, h = np.cos(q[1]), -m2 * l1 * c2 * np.sin(q[1])
        d12, d22 = m2 * (c2**2 + l1 * c2 * cos) + i2, m2 * c2**2 + i2
        d11 = m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * cos) + i1 + i2
        g2 = m2 * c2 * G * np.cos(q[0] + q[1])
        first = d11 * a[0] + d12 * a[1] + h * (2 * v[0] + v[1]) * v[1] + (m1 * c1 + m2 * l1) * G * np.cos(q[0]) + g2
        return np.transpose([first, d12 * a[0] + d22 * a[1] - h * v[0] ** 2 + g2])

    full, points = of(run, ("shoulder", "elbow"), "effort"), of(run, ("point_shoulder", "point_elbow"), "effort")
    np.testing.assert_allclose(full, efforts(0.028, 0.01), atol=1e-10)
    np.testing.assert_allclose(points, efforts(0.0, 0.0), atol=1e-10)
    np.testing.assert_allclose(
        full - points, np.transpose([0.038 * a[0] + 0.01 * a[1], 0.01 * (a[0] + a[1])]), atol=1e-10
    )
    peaks = np.abs(points).max(axis=0) / np.abs(full).max(axis=0)
    assert 1.0 - peaks == pytest.approx([0.11, 0.27], abs=0.005)  # as the rig says
    turning = run.t > 1.0
    assert a[0, turning] == pytest.approx(
        -np.radians(40) * (2 * np.pi) ** 2 * np.sin(2 * np.pi * run.t[turning]), abs=1e-9
    )


# --- platform -----------------------------------------------------------------------------------------


def test_efforts_of_the_platform(sample):
    """The cart carries the mast, whose centre of mass is 2 cm from its axis."""
    run = sample("mechanisms/platform").run()
    (drive, slew), (speed, spin), (_, angle) = (
        of(run, ("drive", "slew"), what).T for what in ("acceleration", "velocity", "position")
    )
    arm = 8.0 * 0.02
    force = 68.0 * drive - arm * (np.sin(angle) * slew + np.cos(angle) * spin**2) + 20.0 * speed
    torque = (0.1 + arm * 0.02) * slew - arm * np.sin(angle) * drive + 0.5 * spin
    np.testing.assert_allclose(of(run, ("drive", "slew"), "effort"), np.transpose([force, torque]), atol=1e-10)
    assert of(run, ("drive", "slew"))[-1] == pytest.approx([1.5, np.pi / 2])
