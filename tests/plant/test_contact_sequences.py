"""Sequences of impacts, sticking and sliding against a solution from event to event: a woodpecker and a block."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import brentq

from tests.kit.contact_rigs import body, solved_runs
from tests.kit.impacts_by_events import BACKWARD, FORWARD, STICKS, ImpactsByEvents
from tests.kit.lagrange import Lagrange

G = 9.81


run = solved_runs(1e-8)


# --- a woodpecker toy ---------------------------------------------------------------------------------------

# Glocker, Dynamik von Starrkörpersystemen mit Reibung und Stößen (1995); Leine, Glocker and van Campen, Nonlinear
# Dynamics of the Woodpecker Toy (2001): a sleeve M around a pole, a spring to the bird S
SLEEVE, SLEEVE_INERTIA, BIRD, BIRD_INERTIA, SPRING = 3e-4, 5e-9, 4.5e-3, 7e-7, 5.6e-3  # kg, kg m², N m/rad
POLE, BORE, HALF, HINGE = 2.5e-3, 3.1e-3, 5.8e-3, 10e-3  # m: radii, half the height of the sleeve, its hinge
TO_BIRD, BEAK = 15e-3, (-5.1e-3, 20e-3)  # m, of the centre of mass and of the beak from the hinge
FRICTION, REBOUND = 0.3, (0.5, 0.0, 0.0)  # of beak, lower and upper edge of the sleeve
# their periodic motion, where the bird swings back: angle of the bird [rad], velocity of the sleeve [m/s], rate [rad/s]
PERIODIC = -0.2788, -0.3411, -7.4583


def linear_woodpecker():
    """Small angles, as in the publications: height of the sleeve, angles of sleeve and bird."""

    def energies(q, v, t):
        y, sleeve, bird = ca.vertsplit(q)
        kinetic = 0.5 * SLEEVE * v[0] ** 2 + 0.5 * SLEEVE_INERTIA * v[1] ** 2 + 0.5 * BIRD_INERTIA * v[2] ** 2
        kinetic += 0.5 * BIRD * (v[0] + HINGE * v[1] + TO_BIRD * v[2]) ** 2
        heavy = SLEEVE * y + BIRD * (y + HINGE * sleeve + TO_BIRD * bird)
        return kinetic, 0.5 * SPRING * (bird - sleeve) ** 2 + G * heavy

    def contacts(q):
        y, sleeve, bird = ca.vertsplit(q)
        beak = HINGE + BEAK[0] - POLE - BEAK[1] * bird, y + HINGE * sleeve + BEAK[0] * bird
        edges = [(BORE - POLE + side * HALF * sleeve, y + BORE * sleeve) for side in (1, -1)]
        return [beak, *edges]

    return ImpactsByEvents(Lagrange(3, energies), contacts, [FRICTION] * 3, REBOUND)


def woodpecker():
    """The same with any angles."""

    def place(q, x, z, of_bird):
        """Of a point beside the hinge, or beside the middle of the sleeve."""
        y, sleeve, bird = ca.vertsplit(q)
        angle, start = (bird, HINGE) if of_bird else (sleeve, 0.0)
        return ca.vertcat(
            start * ca.cos(sleeve) + x * ca.cos(angle) - z * ca.sin(angle),
            y + start * ca.sin(sleeve) + x * ca.sin(angle) + z * ca.cos(angle),
        )

    def energies(q, v, t):
        middle = place(q, TO_BIRD, 0.0, True)
        speed = ca.jtimes(middle, q, v)
        kinetic = 0.5 * SLEEVE * v[0] ** 2 + 0.5 * SLEEVE_INERTIA * v[1] ** 2 + 0.5 * BIRD_INERTIA * v[2] ** 2
        potential = 0.5 * SPRING * (q[2] - q[1]) ** 2 + G * (SLEEVE * q[0] + BIRD * middle[1])
        return kinetic + 0.5 * BIRD * ca.dot(speed, speed), potential

    def contacts(q):
        points = [place(q, *BEAK, True), place(q, BORE, -HALF, False), place(q, BORE, HALF, False)]
        return [(point[0] - POLE, point[1]) for point in points]

    return ImpactsByEvents(Lagrange(3, energies), contacts, [FRICTION] * 3, REBOUND)


def sticking(found):
    """(time, height) of each beginning of sticking that follows from sliding."""
    return np.array([(event.t, event.q[0]) for event, _ in found if STICKS in event.modes and not event.impact])


def test_the_published_motion_of_a_woodpecker_returns():
    """Of the reference itself."""
    bird, speed, rate = PERIODIC
    system = linear_woodpecker()
    found = system.solve(0.2, [0.0, (POLE - BORE) / HALF, bird], [speed, 0.0, rate], [False, True, False])
    times = np.linspace(0.1, 0.2, 2001)
    motion = system.at(found, times)
    back = np.flatnonzero((motion[2, 1:] < bird) & (motion[2, :-1] >= bird))
    assert len(back) == 1
    assert motion[3, back[0]] == pytest.approx(speed, rel=1e-2)
    assert motion[5, back[0]] == pytest.approx(rate, rel=2e-3)


def test_a_woodpecker_goes_down_its_pole(run):
    """Its lower edge sticks, slips and flies, the upper edge and the beak hit the pole, in each of three periods."""
    bird, speed, rate = PERIODIC
    system = woodpecker()
    sleeve = brentq(lambda angle: system.gaps([0.0, angle, 0.0])[1], -0.15, -0.05)
    exact = system.solve(0.4, [0.0, sleeve, bird], [speed, 0.0, rate], [False, True, False])
    assert len(sticking(exact)) == 3
    bodies = [
        (
            "    - {name: slide, joint: height, type: prismatic, axis: [0, 0, 1]}\n",
            f"  height: {{initial: {{velocity: {speed}}}}}\n",
        ),
        (
            f"    - {{name: sleeve, axis: [0, -1, 0], mass: {SLEEVE}, inertia: {[SLEEVE_INERTIA] * 3}}}\n",
            f"  sleeve: {{initial: {{position: {sleeve}}}}}\n",
        ),
        (
            f"    - {{name: bird, axis: [0, -1, 0], origin: {{xyz: [{HINGE}, 0, 0]}}, stiffness: {SPRING}, "
            f"mass: {BIRD}, com: [{TO_BIRD}, 0, 0], inertia: {[BIRD_INERTIA] * 3}}}\n",
            f"  bird: {{initial: {{position: {bird - sleeve}, velocity: {rate}}}}}\n",
        ),
    ]
    pole = f"with: {{link: base, plane: {{xyz: [{POLE}, 0, 0], rpy: [0, {np.pi / 2}, 0]}}}}"
    law = f"{pole}, friction: {FRICTION}, stiffness: rigid"
    contacts = [
        f"name: beak, link: bird, point: [{BEAK[0]}, 0, {BEAK[1]}], restitution: {REBOUND[0]}, {law}",
        f"name: low, link: sleeve, point: [{BORE}, 0, {-HALF}], {law}",
        f"name: high, link: sleeve, point: [{BORE}, 0, {HALF}], {law}",
    ]
    errors = []
    for step in (1e-4, 2e-5):
        found = run(bodies, contacts, 0.4, step)
        motion = system.at(exact, found.t)[:3]
        own = np.array([found["height/position"], found["sleeve/position"], found["bird/position"]])
        own[2] += own[1]
        errors.append(np.abs(own - motion).max(axis=1))
    assert np.all(errors[1] < [2e-5, 1e-3, 5e-4])  # m, rad, rad
    assert np.all(errors[1] < 0.3 * errors[0]), errors
    sticks = (found["low/state"] == 1.0) & ~np.isin(np.roll(found["low/state"], 1), [1.0])
    begun = found.t[sticks]
    np.testing.assert_allclose(begun, sticking(exact)[:, 0], rtol=0, atol=2e-4)


# --- a block that wobbles -----------------------------------------------------------------------------------

MASS, WIDE, HIGH = 2.0, 0.1, 0.08  # kg, m: of the feet from the middle, of the centre of mass
TURNING = 3.0 * MASS * WIDE**2  # kg m²: a dumbbell, which does not come to rest at its first impact


def block(friction):
    """(the reference, its contacts in a rig)"""

    def energies(q, v, t):
        return 0.5 * MASS * (v[0] ** 2 + v[1] ** 2) + 0.5 * TURNING * v[2] ** 2, G * MASS * q[1]

    def contacts(q):
        x, z, angle = ca.vertsplit(q)  # about y: a point ahead of the middle sinks
        return [
            (
                z - side * WIDE * ca.sin(angle) - HIGH * ca.cos(angle),
                x + side * WIDE * ca.cos(angle) - HIGH * ca.sin(angle),
            )
            for side in (-1, 1)
        ]

    feet = [
        f"name: foot_{k}, link: block, point: [{side * WIDE}, 0, {-HIGH}], with: ground, friction: {friction}, "
        "stiffness: rigid"
        for k, side in enumerate((-1, 1))
    ]
    return ImpactsByEvents(Lagrange(3, energies), contacts, [friction] * 2, [0.0] * 2), feet


def on_its_right_foot(angle):
    return [0.0, 0.0, WIDE * np.sin(angle) + HIGH * np.cos(angle)]


def planar(place, angle):
    return body("block", MASS, [TURNING] * 3, place, angle)


def test_a_block_wobbles_to_rest_as_a_geometric_series(run):
    """Without friction and with small angles it falls with α = m g b / (J + m b²) on one foot after the other; each
    impact leaves r = (J − m b²) / (J + m b²) of its rate, so that it rests after t₀ (1 + r) / (1 − r)."""
    start = 1e-3
    rate, ratio = MASS * G * WIDE / (TURNING + MASS * WIDE**2), (TURNING - MASS * WIDE**2) / (TURNING + MASS * WIDE**2)
    first = np.sqrt(2.0 * start / rate)
    rest = first * (1.0 + ratio) / (1.0 - ratio)
    errors = []
    for step in (1e-5, 2.5e-6):
        found = run([planar(on_its_right_foot(start), start)], block(0.0)[1], 0.05, step)
        angle, exact = found["block.ry/position"], np.zeros(len(found.t))
        falls = found.t <= first
        exact[falls] = start - 0.5 * rate * found.t[falls] ** 2
        begun, speed, side = first, rate * first * ratio, -1.0
        for _ in range(40):
            lasts = 2.0 * speed / rate
            inside = (found.t > begun) & (found.t <= begun + lasts)
            t = found.t[inside] - begun
            exact[inside] = side * (speed * t - 0.5 * rate * t * t)
            begun, speed, side = begun + lasts, speed * ratio, -side
        assert begun == pytest.approx(rest, rel=1e-9)
        errors.append(np.abs(angle - exact).max())
        stands = found.t > rest + 5 * step
        assert stands.sum() > 100
        assert np.abs(angle[stands]).max() < 1e-5 * start  # depths of impacts, which are taken back in time
    assert errors[0] < 2e-3 * start
    assert errors[1] < 0.7 * errors[0], errors


@pytest.mark.parametrize(("friction", "slips"), [(0.1, True), (0.3, False)])
def test_a_block_wobbles_and_slips(run, friction, slips):
    start = 0.2
    system, feet = block(friction)
    place = on_its_right_foot(start)
    exact = system.solve(1.0, [place[0], place[2], start], np.zeros(3), [False, True], 12)
    assert any({FORWARD, BACKWARD} & set(event.modes) for event, _ in exact) == slips
    assert sum(event.impact for event, _ in exact) >= 6
    errors = []
    for step in (1e-4, 2e-5):
        found = run([planar(place, start)], feet, exact[-1][0].t, step)
        own = np.array([found["block.x/position"], found["block.z/position"], found["block.ry/position"]])
        errors.append(np.abs(own - system.at(exact, found.t)[:3]).max(axis=1))
    assert np.all(errors[1] < [1e-5, 1e-5, 1e-4])  # m, m, rad
    assert np.all(errors[1] < 0.4 * errors[0]), errors
