"""Motions of elastic bodies: conservation, the spin-up of a beam, and the limit of stiff links."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.elastic.beam import Beam, BeamSection, ModeCounts, constant
from cosim.mechanics.multibody.mechanism import Frame, Inertial, Joint, Link, Mechanism
from tests.multibody.elastic.beams import at, energy, random_state, section, spacecraft


def test_a_spacecraft_with_panels_conserves_energy_and_momentum():
    model = Model(spacecraft(), gravity=(0.0, 0.0, 0.0))
    nq, none = model.nq, np.zeros(model.nv)
    forward, rate = model.compiled("forward_dynamics").native, model.equations.rate
    q, v, _ = random_state(model, seed=3, modal=0.03)
    v = 0.3 * v

    def flow(t, x):
        q, v = np.ascontiguousarray(x[:nq]), np.ascontiguousarray(x[nq:])
        acceleration = np.empty(model.nv)
        forward(q, v, none, out=acceleration)
        return np.concatenate([rate(q, v), acceleration])

    run = solve_ivp(flow, (0.0, 1.0), np.concatenate([q, v]), method="DOP853", rtol=1e-10, atol=1e-11)
    states = [(x[:nq], x[nq:]) for x in (run.y[:, 0], run.y[:, run.y.shape[1] // 2], run.y[:, -1])]
    energies = [energy(model, *state) for state in states]
    momenta = [np.asarray(model.equations.centroidal_momentum(*state), dtype=float) for state in states]
    stored = [float(model.equations.elastic_energy(state[0])) for state in states]
    assert np.ptp(stored) > 0.01 * energies[0]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-8)
    np.testing.assert_allclose(momenta, np.tile(momenta[0], (3, 1)), atol=1e-8 * np.abs(momenta[0]).max())


# --- benchmark: spin-up of a beam (Kane, Ryan and Banerjee 1987; Simo and Vu-Quoc 1986) ---

LENGTH, EA, EI, LINE = 10.0, 2.8e7, 1.4e4, 1.2  # m, N, N m², kg/m
SPEED, RISE = 6.0, 15.0  # rad/s, s


def blade(modes, **settings):
    rotary = 6e-4
    bending, shear = (constant(EI), constant(EI)), (constant(1e7), constant(1e7))
    about = constant(2.0 * rotary), constant(rotary), constant(rotary)
    return Beam(
        LENGTH, BeamSection(constant(LINE), about, constant(EA), constant(1e4), bending, shear), modes, **settings
    )


def on_hub(link):
    links = (Link("base"), Link("blade", elastic=link))
    hub = Joint("hub", "revolute", "base", "blade", at(0))
    frame = Frame("tip", "blade", at(LENGTH))
    return Model(Mechanism("spin", "base", links, (hub,), frames=(frame,)), gravity=(0.0, 0.0, 0.0))


def spin(t):
    """(angle, speed, acceleration) of the hub."""
    if t > RISE:
        return SPEED * t - SPEED * RISE / 2.0, SPEED, 0.0
    w = 2.0 * np.pi / RISE
    angle = SPEED / RISE * (0.5 * t * t + (np.cos(w * t) - 1.0) / w**2)
    return angle, SPEED / RISE * (t - np.sin(w * t) / w), SPEED / RISE * (1.0 - np.cos(w * t))


def spun_up(link, end):
    """The deflection of the tip along y of the hub, as a function of time."""
    model = on_hub(link)
    n = model.nv - 1
    dynamics, prescribed = model.compiled("hybrid_dynamics").native, np.arange(model.nv) == 0
    out = np.empty(model.nv), np.empty(model.nv)

    def flow(t, x):
        angle, speed, acceleration = spin(t)
        q, v = np.array([angle, *x[:n]]), np.array([speed, *x[n:]])
        dynamics(q, v, np.array([acceleration, *np.zeros(n)]), np.zeros(model.nv), prescribed, out=out)
        return np.concatenate([x[n:], out[0][1:]])

    run = solve_ivp(flow, (0.0, end), np.zeros(2 * n), method="DOP853", rtol=1e-8, atol=1e-10, dense_output=True)
    shapes = link.displacement(np.array([LENGTH, 0.0, 0.0])).path.linear[:, 1]
    return lambda t: shapes @ run.sol(t)[:n]


def test_frequencies_of_the_blade():
    assert blade(ModeCounts(bend_y=2)).frequencies == pytest.approx([3.79773, 23.79997], abs=1e-5)


def test_spin_up():
    tip = spun_up(blade(ModeCounts(bend_y=3)).link(), 25.0)
    expected = {2.5: -0.1513, 5.0: -0.4688, 10.0: -0.3627, 12.5: -0.1126}
    assert [tip(t) for t in expected] == pytest.approx(list(expected.values()), abs=5e-4)
    assert tip(7.5) == pytest.approx(-0.559, abs=1e-3)  # published with three digits
    times = np.linspace(6.0, 8.0, 2001)
    deflection = tip(times)
    assert deflection.min() == pytest.approx(-0.5743, abs=5e-4)
    assert times[deflection.argmin()] == pytest.approx(6.76, abs=0.02)
    assert np.abs(tip(np.linspace(RISE, 25.0, 4001))).max() == pytest.approx(0.0036, abs=5e-4)


def test_spin_up_without_stiffening_diverges():
    tip = spun_up(blade(ModeCounts(bend_y=2), stiffening=False).link(), 10.0)
    assert tip(5.0) == pytest.approx(-0.52, abs=0.005)
    assert tip(10.0) == pytest.approx(-72.0, abs=0.5)


def resting(model, q, v, tolerance=1e-12):
    """q with the modal coordinates, all but the first one, at which the modes do not accelerate, by Newton's method
    with the elastic stiffness."""
    stiffness = model.mechanism.links[-1].elastic.stiffness
    for _ in range(60):
        efforts = np.asarray(model.equations.inverse_dynamics(q, v, np.zeros(model.nv)), dtype=float)[1:]
        q = q - np.concatenate([[0.0], np.linalg.solve(stiffness, efforts)])
        if np.abs(efforts).max() < tolerance * stiffness.max():
            return q
    raise AssertionError("no rest")


def test_steady_stretch():
    """ρA ω² L³ / 3EA, from few modes that each stretch less than the whole."""
    expected = LINE * SPEED**2 * LENGTH**3 / (3.0 * EA)
    assert expected == pytest.approx(5.1429e-4, rel=1e-4)
    errors = []
    for count in (1, 2, 4):
        model = on_hub(blade(ModeCounts(stretch=count)).link())
        v = np.array([SPEED, *np.zeros(count)])
        q = resting(model, np.zeros(count + 1), v)
        tip = model.equations.frame_pose(q, *model.equations.tree.frames["tip"])[:3, 3]
        errors.append(abs(float(tip[0]) - LENGTH - expected) / expected)
    assert errors[0] < 0.02 and errors[0] > 5.0 * errors[1] > 25.0 * errors[2]
    assert errors[2] < 4e-4


def turning_arm(elastic):
    """On a hinge, an arm with a load, elastic or rigid; they have the same mass, centre and inertia."""
    length, mass = 1.5, 1.2
    made = Beam(length, section(mass, EI=(500.0, 400.0)), ModeCounts(bend_y=3, bend_z=2, twist=1), shearing=True)
    if elastic:
        bending = tuple(constant(elastic * value) for value in (500.0, 400.0))
        stiff = made.section._replace(twisting=constant(elastic * 300.0), bending=bending)
        stiff = stiff._replace(shear=(constant(elastic * 1e3),) * 2)
        arm = Link("arm", elastic=Beam(length, stiff, made.modes, shearing=True).link())
    else:
        link = made.link()
        com = link.moment / link.mass
        about = link.inertia - link.mass * (com @ com * np.eye(3) - np.outer(com, com))
        arm = Link("arm", Inertial(link.mass, com, about))
    load = Link("load", Inertial(0.6, np.array([0.05, 0.0, 0.1]), 0.01 * np.eye(3)))
    hinge = Joint("hinge", "revolute", "base", "arm", at(0), np.array([0.0, 0.6, 0.8]))
    weld = Joint("weld", "fixed", "arm", "load", at(length))
    return Model(Mechanism("arm", "base", (Link("base"), load, arm), (hinge, weld)))


def test_stiff_links_are_rigid():
    """In the shape in which they rest, the difference falls with the stiffness."""
    rigid = turning_arm(0)
    assert rigid.nv == 1
    q, v, tau = np.array([0.4]), np.array([2.0]), np.array([3.0])
    expected = rigid.equations.inverse_dynamics(q, v, tau)
    differences = []
    for factor in (1e2, 1e3, 1e4):
        model = turning_arm(factor)
        still = np.zeros(model.nv - 1)
        shape = resting(model, np.concatenate([q, still]), np.concatenate([v, still]))
        assert np.abs(shape[1:]).max() > 1e-3 / factor
        found = model.equations.inverse_dynamics(shape, np.concatenate([v, still]), np.concatenate([tau, still]))
        differences.append(abs(float(found[0] - expected[0])) / abs(float(expected[0])))
    assert differences[0] < 0.1
    assert differences[0] / differences[1] == pytest.approx(10.0, rel=0.05)
    assert differences[1] / differences[2] == pytest.approx(10.0, rel=0.01)
