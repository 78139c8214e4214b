"""Rigs of rigs/mechanisms whose structure changes: latches, a release, brakes and stops against closed forms."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from tests.kit.lagrange import Lagrange

G = 9.81


def of(run, names, what="position"):
    """(k, n) signals of dofs."""
    return np.transpose([run[f"{name}/{what}"] for name in names])


def piecewise(reference, times, q, v, latches):
    """((k, 2n) coordinates and velocities, [(time, energy lost)]) of dofs that latch when they reach a bound, {dof:
    bound}; what is lost is the kinetic energy of a plastic impact."""
    n, held, t, y = reference.n, (), times[0], np.concatenate([q, v])
    rows, events = [y[None]], []
    while True:
        waiting = [dof for dof in latches if dof not in held]
        triggers = [lambda t, y, dof=dof: y[dof] - latches[dof] for dof in waiting]
        for trigger in triggers:
            trigger.terminal = True
        grid = np.concatenate([[t], times[times > t]])
        found = reference.solve(grid, y[:n], y[n:], held, triggers or None)
        rows.append(found.y[:, 1:].T)
        if found.status == 0:
            return np.vstack(rows), events
        (which,) = (k for k, hits in enumerate(found.t_events) if len(hits))
        held = (*held, waiting[which])
        t, y = found.t_events[which][0], found.y_events[which][0].copy()
        y[n:], lost = reference.struck(y[:n], y[n:], held)
        events.append((t, lost))


def check_events(run, names, expected):
    """Their order, their times and the energy lost in each."""
    found = run.summary["events"]
    assert [event["name"] for event in found] == names
    assert [event["t_s"] for event in found] == pytest.approx([t for t, _ in expected], abs=1e-7)
    assert [event["energy_lost_J"] for event in found] == pytest.approx([lost for _, lost in expected], rel=1e-6)


# --- solar arrays -------------------------------------------------------------------------------------

INNER, OUTER, CRAFT = (12.0, 4.0), (10.0, 3.3), (150.0, 40.0)  # (mass, moment of inertia)
ROOT = np.array([0.0, 0.6])  # of the wing, on the craft that floats
LATCHED = np.pi / 2, 0.0
PANELS = "root_hinge", "outer_hinge"
SPRINGS = (3.0, np.radians(120.0)), (2.0, np.radians(-30.0))


def unit(angle):
    return ca.vertcat(ca.cos(angle), ca.sin(angle))


def wing(place, turn, q, v, rate):
    """(T, V) of the two panels on a root at `place` and an angle `turn`; rate: x -> ẋ."""
    first, second = turn + q[0], turn + q[0] + q[1]
    kinetic = 0.0
    for (mass, spin), centre, angle in (
        (INNER, place + unit(first), first),
        (OUTER, place + 2.0 * unit(first) + unit(second), second),
    ):
        kinetic += 0.5 * mass * ca.sumsqr(rate(centre)) + 0.5 * spin * rate(angle) ** 2
    return kinetic, sum(0.5 * k * (q[i] - rest) ** 2 for i, (k, rest) in enumerate(SPRINGS))


def on_free_craft(q, v, t):
    def rate(x):
        return ca.jacobian(x, q) @ v

    x, y = float(ROOT[0]), float(ROOT[1])
    place = q[:2] + x * unit(q[2]) + y * ca.vertcat(-ca.sin(q[2]), ca.cos(q[2]))
    kinetic, potential = wing(place, q[2], q[3:], v[3:], rate)
    return kinetic + 0.5 * CRAFT[0] * ca.sumsqr(v[:2]) + 0.5 * CRAFT[1] * v[2] ** 2, potential


def test_array_on_a_fixed_craft_equals_lagranges_equations_and_impact_losses(sample):
    run = sample("mechanisms/solar_array_fixed").run()
    start = np.array([0.0, np.pi])
    reference = Lagrange(2, lambda q, v, t: wing(ca.SX.zeros(2), 0.0, q, v, lambda x: ca.jacobian(x, q) @ v))
    expected, events = piecewise(reference, run.t, start, np.zeros(2), dict(enumerate(LATCHED)))
    np.testing.assert_allclose(of(run, PANELS), expected[:, :2], atol=1e-6)
    np.testing.assert_allclose(of(run, PANELS, "velocity"), expected[:, 2:], atol=1e-6)
    check_events(run, ["outer latch", "root latch"], events)
    eased = np.subtract(*(reference.energies(q, [0.0, 0.0])[1] for q in (start, LATCHED)))
    assert run["energy/dissipated"][-1] == pytest.approx(eased, rel=1e-8)
    assert run["energy/kinetic"][-1] < 1e-20


FREE = "craft.x", "craft.y", "craft.angle", *PANELS


def momenta(run):
    """(k, 3): linear momentum and angular momentum about the origin, from positions and velocities alone."""
    q, v = of(run, FREE), of(run, FREE, "velocity")
    total = np.zeros((len(q), 3))

    def add(mass, spin, place, rate, turning):
        across = place[:, 0] * rate[:, 1] - place[:, 1] * rate[:, 0]
        total[:, :2] += mass * rate
        total[:, 2] += mass * across + spin * turning

    def arm(angle, turning, vector):
        s, c = np.sin(angle), np.cos(angle)
        x, y = vector[0] * c - vector[1] * s, vector[0] * s + vector[1] * c
        return np.transpose([x, y]), turning[:, None] * np.transpose([-y, x])

    place, rate, angle, turning = q[:, :2], v[:, :2], q[:, 2], v[:, 2]
    add(*CRAFT, place, rate, turning)
    offset = ROOT
    for k, (mass, spin) in enumerate((INNER, OUTER)):
        there, speed = arm(angle, turning, offset)
        place, rate, angle, turning = place + there, rate + speed, angle + q[:, 3 + k], turning + v[:, 3 + k]
        there, speed = arm(angle, turning, (1.0, 0.0))
        add(mass, spin, place + there, rate + speed, turning)
        offset = (2.0, 0.0)
    return total


@pytest.mark.parametrize("velocity", [(0.0, 0.0, 0.0), (0.1, -0.05, 0.2)])
def test_array_on_a_free_craft_conserves_momentum_through_both_latches(sample, velocity):
    override = f"joints.craft={{initial: {{velocity: {list(velocity)}}}}}"
    run = sample("mechanisms/solar_array_free", override).run()
    found = momenta(run)
    np.testing.assert_allclose(found, found[:1].repeat(len(found), 0), rtol=0, atol=1e-10)
    latches = dict(zip((3, 4), LATCHED, strict=True))
    start = np.array([0.0, 0.0, 0.0, 0.0, np.pi])
    expected, events = piecewise(Lagrange(5, on_free_craft), run.t, start, np.array([*velocity, 0.0, 0.0]), latches)
    np.testing.assert_allclose(of(run, FREE), expected[:, :5], atol=1e-6)
    np.testing.assert_allclose(of(run, FREE, "velocity"), expected[:, 5:], atol=1e-6)
    check_events(run, ["root latch", "outer latch"], events)
    if not any(velocity):
        np.testing.assert_allclose(of(run, FREE, "velocity")[-1], 0.0, atol=1e-13)
        assert abs(run["craft.angle/position"][-1]) > 0.3


# --- solar linkage ------------------------------------------------------------------------------------


def linkage_tie(q):
    """Where panel_2 and strut_2 meet: an intersection of the circles about fold and knee."""
    fold, knee = unit(q[0]), ca.vertcat(0.5, 0.0) + 0.8 * unit(q[1])
    apart = knee - fold
    length = ca.norm_2(apart)
    e = apart / length
    reach = (length**2 + 1.2**2 - 1.0**2) / (2.0 * length)
    return fold, knee, fold + reach * e + ca.sqrt(1.2**2 - reach**2) * ca.vertcat(-e[1], e[0])


def linkage(q, v, t):
    fold, knee, tie = linkage_tie(q)
    ahead, behind = (tie - fold) / 1.2, tie - knee
    kinetic = 0.0
    for mass, spin, centre, angle in (
        (8.0, 0.7, 0.5 * fold, q[0]),
        (8.0, 0.9, fold + 0.6 * ahead, ca.atan2(ahead[1], ahead[0])),
        (2.0, 0.1, ca.vertcat(0.5, 0.0) + 0.4 * unit(q[1]), q[1]),
        (2.0, 0.17, knee + 0.5 * behind, ca.atan2(behind[1], behind[0])),
    ):
        kinetic += 0.5 * mass * ca.sumsqr(ca.jacobian(centre, q) @ v) + 0.5 * spin * (ca.jacobian(angle, q) @ v) ** 2
    return kinetic, (q[0] - np.radians(70.0)) ** 2 + (q[1] - np.radians(10.0)) ** 2


def test_four_body_linkage_equals_two_then_one_coordinate_equations(sample):
    run = sample("mechanisms/solar_linkage").run()
    reference = Lagrange(2, linkage, lambda q, v, t: [-0.2 * v[0], -0.2 * v[1]])
    start = np.radians([130.0, 80.0])
    expected, events = piecewise(reference, run.t, start, np.zeros(2), {0: np.pi / 2})
    np.testing.assert_allclose(of(run, ("root_1", "root_2")), expected[:, :2], atol=1e-7)
    check_events(run, ["latch root_1"], events)
    assert run["tie/violation"].max() < 1e-12
    after = run.t > events[0][0]
    np.testing.assert_allclose(run["root_1/position"][after], np.pi / 2, atol=1e-9)
    assert np.ptp(run["root_2/position"][after]) > 0.1
    assert run.summary["energy"]["residual_relative"] < 1e-8


# --- release ------------------------------------------------------------------------------------------


def swing(times, angle, rate, inertia, moment):
    """(angle, rate) of a pendulum that falls from the horizontal."""
    found = solve_ivp(
        lambda t, y: [y[1], moment * G * np.cos(y[0]) / inertia],
        (times[0], times[-1]), [angle, rate], "DOP853", times, rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    return found.y


def test_a_released_load_flies_along_a_parabola(sample):
    run = sample("mechanisms/release").run()
    angle, rate = run["shoulder/position"], run["shoulder/velocity"]
    k = int(np.searchsorted(run.t, 0.6 - 1e-9))
    together = swing(run.t[: k + 1], 0.0, 0.0, 1.0 + 0.03 + 2.0 * 1.1**2, 3.0 * 0.5 + 2.0 * 1.1)
    alone = swing(run.t[k:], *together[:, -1], 1.0, 3.0 * 0.5)
    np.testing.assert_allclose(angle, [*together[0], *alone[0, 1:]], atol=1e-9)
    np.testing.assert_allclose(rate, [*together[1], *alone[1, 1:]], atol=1e-9)

    arm = Rotation.from_rotvec(np.outer(angle, [0.0, 1.0, 0.0]))
    turn = Rotation.from_quat(of(run, [f"grip.{c}" for c in ("qx", "qy", "qz", "qw")]))
    place = np.array([1.0, 0.0, 0.0]) + of(run, ("grip.x", "grip.y", "grip.z"))
    centre = arm.apply(place + turn.apply([0.1, 0.0, 0.0]))
    flight = run.t[k:] - 0.6
    a, w = together[:, -1]
    there, away = 1.1 * np.array([[np.cos(a), 0.0, -np.sin(a)], [-w * np.sin(a), 0.0, -w * np.cos(a)]])
    parabola = there + np.outer(flight, away) - np.outer(0.5 * G * flight**2, [0.0, 0.0, 1.0])
    np.testing.assert_allclose(centre[k:], parabola, atol=1e-8)
    heading = (arm * turn).apply([1.0, 0.0, 0.0])[k:]
    turned = a + w * flight  # its angular velocity is constant
    np.testing.assert_allclose(heading, np.transpose([np.cos(turned), 0 * turned, -np.sin(turned)]), atol=1e-8)
    assert run.summary["events"][0]["energy_lost_J"] == 0.0
    assert run.summary["energy"]["residual_relative"] < 1e-9


# --- hoist --------------------------------------------------------------------------------------------


def test_cage_falls_brakes_holds_and_bounces_as_in_closed_form(sample):
    run = sample("mechanisms/hoist").run()
    mass, force, bounce = 400.0, 8000.0, 0.4
    speed = G * 0.5
    slowing = force / mass - G
    held = 10.0 - 0.5 * G * 0.5**2 - speed**2 / (2.0 * slowing)
    braked = 0.5 + speed / slowing
    stands = (run.t > braked) & (run.t < 2.0)
    np.testing.assert_allclose(run["cage/position"][stands], held, atol=1e-9)
    np.testing.assert_allclose(run["cage/velocity"][stands], 0.0, atol=1e-12)
    hit, impact = 2.0 + np.sqrt(2.0 * held / G), np.sqrt(2.0 * held * G)
    hits = [event for event in run.summary["events"] if event["name"] == "cage at its lower stop"]
    assert len(hits) > 6
    for event in hits[:6]:
        assert event["t_s"] == pytest.approx(hit, abs=1e-9)
        assert event["energy_lost_J"] == pytest.approx(0.5 * mass * impact**2 * (1.0 - bounce**2), rel=1e-8)
        impact *= bounce
        hit += 2.0 * impact / G
    assert run["energy/dissipated"][-1] == pytest.approx(mass * G * 10.0, rel=1e-12)
    assert run["cage/position"][-1] == pytest.approx(0.0, abs=1e-9) and run["cage/velocity"][-1] == 0.0
    assert run["cage/position"].min() > -1e-9
