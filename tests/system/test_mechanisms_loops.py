"""Mechanisms with loops of rigs/mechanisms: against equations in minimal coordinates."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import brentq

from cosim import load_rig
from tests.kit.lagrange import Lagrange

G = 9.81


def along(angle):
    return ca.vertcat(ca.cos(angle), ca.sin(angle))


def direction(vector):
    return ca.atan2(vector[1], vector[0])


def planar(*bodies):
    """The energies of bodies (mass, moment of inertia, centre (2,), angle), given as functions of q; y is up."""

    def energies(q, v, t):
        kinetic = potential = 0.0
        for mass, spin, centre, angle in bodies:
            place, turn = centre(q), ca.SX(angle(q))
            kinetic += 0.5 * mass * ca.sumsqr(ca.jacobian(place, q) @ v) + 0.5 * spin * (ca.jacobian(turn, q) @ v) ** 2
            potential += mass * G * place[1]
        return kinetic, potential

    return energies


def held_sine(amplitude, frequency, step):
    """A sine that is held for a step, seen to second order: it comes half a step late."""
    return lambda t: amplitude * ca.sin(2.0 * np.pi * frequency * (t - 0.5 * step))


# --- four-bar -----------------------------------------------------------------------------------------


def four_bar_pin(q):
    """Where coupler and rocker meet: the lower intersection of the circles about the crank's end and the pivot."""
    crank, pivot = 0.2 * along(q[0]), ca.vertcat(0.5, 0.0)
    apart = pivot - crank
    length = ca.norm_2(apart)
    e = apart / length
    reach = (length**2 + 0.5**2 - 0.4**2) / (2.0 * length)
    return crank + reach * e - ca.sqrt(0.5**2 - reach**2) * ca.vertcat(-e[1], e[0])


def coupler_angle(q):
    return direction(four_bar_pin(q) - 0.2 * along(q[0]))


def rocker_angle(q):
    return direction(four_bar_pin(q) - ca.vertcat(0.5, 0.0))


def test_four_bar_keeps_its_loop_and_its_energy_for_a_minute(sample):
    run = sample("mechanisms/four_bar").run()
    assert run.t[-1] == pytest.approx(60.0) and run["crank/position"][-1] > 100 * 2.0 * np.pi
    assert run["pin/violation"].max() < 1e-12
    assert np.ptp(run["energy/kinetic"] + run["energy/potential"]) < 1e-5 * run["energy/kinetic"].max()
    q = ca.SX.sym("q", 1)
    rocker = ca.Function("rocker", [q], [rocker_angle(q)])
    np.testing.assert_allclose(run["rocker/position"], np.array(rocker(run["crank/position"])).ravel(), atol=1e-11)


# --- slider–crank -------------------------------------------------------------------------------------


def test_slider_crank_torque_equals_one_coordinate_equation(sample):
    run = sample("mechanisms/slider_crank").run()

    def lean(q):
        return -ca.asin(0.1 * ca.sin(q[0]) / 0.3)

    bodies = (
        (2.0, 0.005, lambda q: 0.03 * along(q[0]), lambda q: q[0]),
        (1.0, 0.008, lambda q: 0.1 * along(q[0]) + 0.12 * along(lean(q)), lean),
        (1.5, 0.0, lambda q: ca.vertcat(0.1 * ca.cos(q[0]) + 0.3 * ca.cos(lean(q)), 0.0), lambda q: q[0]),
    )
    reference = Lagrange(1, planar(*bodies))
    q, v, a = (run[f"crank/{what}"] for what in ("position", "velocity", "acceleration"))
    expected = [reference.effort(q[k : k + 1], v[k : k + 1], a[k : k + 1])[0] for k in range(0, len(q), 10)]
    np.testing.assert_allclose(run["crank/effort"][::10], expected, atol=1e-9)
    assert run["crank/effort"].max() > 5.0 and run["crank/effort"].min() < -5.0
    assert run["wrist_pin/violation"].max() < 1e-12
    assert q[-1] == pytest.approx(12.0 * np.pi)
    # the pin pushes the rod, and the rod alone the piston along its guide
    np.testing.assert_allclose(-run["wrist_pin/force_x"], 1.5 * run["piston/acceleration"], atol=1e-8)


# --- parallelogram ------------------------------------------------------------------------------------


def test_parallelogram_with_drive_and_spring_in_the_cut_equals_one_coordinate_equation(sample):
    rig = sample("mechanisms/parallelogram")
    run = rig.run()
    crank = (1.0, 0.0075, lambda q: 0.15 * along(q[0]), lambda q: q[0])
    coupler = (2.0, 0.06, lambda q: 0.3 * along(q[0]), lambda q: 0.0 * q[0])
    motor = held_sine(4.0, 0.8, rig.tick_model.step)

    def sprung(q, v, t):
        kinetic, potential = planar(crank, coupler, crank)(q, v, t)
        return kinetic, potential + 0.5 * 30.0 * (-q[0] + np.pi / 2) ** 2

    reference = Lagrange(1, sprung, lambda q, v, t: [-motor(t) - 0.5 * v[0]])
    angle = reference.solve(run.t, [np.pi / 3], [0.0]).y[0]
    assert np.ptp(angle) > 0.3
    for name, factor in (("crank", 1.0), ("rocker", 1.0), ("coupler", -1.0), ("corner", -1.0)):
        np.testing.assert_allclose(run[f"{name}/position"], factor * angle, atol=1e-6)
    np.testing.assert_allclose(run["corner/effort"], 4.0 * np.sin(2.0 * np.pi * 0.8 * run.t), atol=1e-9)
    assert run["corner/violation"].max() < 1e-12 and run.summary["energy"]["residual_relative"] < 1e-8


# --- suspension ---------------------------------------------------------------------------------------

RODS, ROD, MASS, SPAN = 12, 0.1, 0.5, 0.8


def rods(run, what="position"):
    names = "hinge", *(f"link_{k}" for k in range(1, RODS))
    return np.cumsum([run[f"{name}/{what}"] for name in names], axis=0).T


def test_chain_settles_as_a_catenary_of_rods(sample):
    """Of equal rods the slopes grow evenly: tan θ_k = (k − 6.5) w / H, with H such that they span the pins."""
    run = sample("mechanisms/suspension").run()
    weight, steps = MASS * G, np.arange(RODS) - (RODS - 1) / 2

    def span(pull):
        return ROD * np.cos(np.arctan(steps * weight / pull)).sum() - SPAN

    pull = brentq(span, 1.0, 100.0)
    np.testing.assert_allclose(rods(run)[-1], np.arctan(steps * weight / pull), atol=1e-4)
    assert run["pin/force_x"][-1] == pytest.approx(pull, rel=1e-4)
    assert run["pin/force_y"][-1] == pytest.approx(RODS * weight / 2, rel=1e-4)
    assert run["energy/kinetic"][-1] < 1e-8


# --- accelerations ------------------------------------------------------------------------------------

MOTION = "position", "velocity", "acceleration"


def unbalanced(run, reference, names, total=lambda angles: angles):
    """(efforts that the motion needs beside the forces of the equations, for its accelerations, coordinates),
    (k, n) each, at every tenth tick; total: the coordinates of the equations from the joints'."""
    states = [total(np.transpose([run[f"{name}/{what}"] for name in names])[::10]) for what in MOTION]
    missing = [reference.effort(*state, t) for *state, t in zip(*states, run.t[::10], strict=True)]
    pushed = [reference.mass(q) @ a for q, _, a in zip(*states, strict=True)]
    return np.array(missing), np.array(pushed), states[0]


def four_bar():
    bodies = (
        (1.0, 0.01, lambda q: 0.1 * along(q[0]), lambda q: q[0]),
        (2.0, 0.05, lambda q: 0.2 * along(q[0]) + 0.25 * along(coupler_angle(q)), coupler_angle),
        (1.0, 0.02, lambda q: ca.vertcat(0.5, 0.0) + 0.2 * along(rocker_angle(q)), rocker_angle),
    )
    return Lagrange(1, planar(*bodies))


def swinging_cylinder():
    """In a horizontal plane; a sine pushes the piston."""

    def eye(q):
        return ca.vertcat(0.6, 0.0) + 0.4 * along(q[0])

    def stroke(q):
        return ca.norm_2(eye(q))

    bodies = (
        (3.0, 0.0, lambda q: 0.15 * eye(q) / stroke(q), lambda q: q[0]),
        (1.0, 0.0, lambda q: eye(q) * (1.0 - 0.2 / stroke(q)), lambda q: q[0]),
        (2.0, 0.0, lambda q: ca.vertcat(0.6, 0.0) + 0.2 * along(q[0]), lambda q: q[0]),
    )

    def force(q, v, t):
        lever = ca.jacobian(stroke(q), q)
        return [lever * (10.0 * ca.sin(2.0 * np.pi * t) - 20.0 * (lever @ v))]

    return Lagrange(1, lambda q, v, t: (planar(*bodies)(q, v, t)[0], ca.SX(0.0)), force)


def slider_crank_cartesian():
    """A torque turns the crank, the piston is damped."""

    def lean(q):
        return -ca.asin(ca.sin(q[0]) / 3.0)

    def piston(q):
        return 0.1 * ca.cos(q[0]) + 0.3 * ca.cos(lean(q))

    bodies = (
        (2.0, 0.005, lambda q: 0.03 * along(q[0]), lambda q: q[0]),
        (1.0, 0.008, lambda q: 0.1 * along(q[0]) + 0.12 * along(lean(q)), lean),
        (1.5, 0.0, lambda q: ca.vertcat(piston(q), 0.0), lambda q: q[0]),
    )
    return Lagrange(1, planar(*bodies), lambda q, v, t: [6.0 - 60.0 * ca.jacobian(piston(q), q) ** 2 * v[0]])


# rig -> its coordinate, the time of the run
ONE_COORDINATE = {
    "four_bar": ("crank", 0.6, four_bar),
    "swinging_cylinder": ("rocker", 1.0, swinging_cylinder),
    "slider_crank_cartesian": ("crank", 0.6, slider_crank_cartesian),
}


@pytest.mark.parametrize("name", ONE_COORDINATE)
def test_accelerations_are_those_of_one_coordinate(sample, name):
    coordinate, seconds, reference = ONE_COORDINATE[name]
    run = sample(f"mechanisms/{name}").run(seconds)
    missing, pushed, q = unbalanced(run, reference(), (coordinate,))
    assert np.ptp(q) > 0.1
    np.testing.assert_allclose(missing, 0.0, atol=1e-9 * np.abs(pushed).max())


def test_accelerations_and_pull_of_the_chain_are_those_of_its_rods(sample):
    """In absolute angles, open at its end, where the pin pulls; the friction of a hinge is on a difference of rates."""
    run = sample("mechanisms/suspension").run(0.2)

    def centre(k):
        return lambda q: ROD * sum((along(q[i]) for i in range(k)), 0.5 * along(q[k]))

    def friction(q, v, t):
        hinge = [0.2 * (v[k] - (v[k - 1] if k else 0.0)) for k in range(RODS)] + [0.0]
        return [hinge[k + 1] - hinge[k] for k in range(RODS)]

    chain = Lagrange(RODS, planar(*((MASS, 4.2e-4, centre(k), lambda q, k=k: q[k]) for k in range(RODS))), friction)
    hinges = "hinge", *(f"link_{k}" for k in range(1, RODS))
    missing, pushed, q = unbalanced(run, chain, hinges, lambda angles: np.cumsum(angles, axis=1))
    assert np.ptp(q, axis=0).max() > 0.1
    pull = [run[f"pin/force_{axis}"][::10, None] for axis in "xy"]
    np.testing.assert_allclose(
        missing, ROD * (np.cos(q) * pull[1] - np.sin(q) * pull[0]), atol=1e-9 * np.abs(pushed).max()
    )


# --- reactions at a dead point ---

EQUAL = """\
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: crank, mass: 1, com: [0.1, 0, 0], inertia: [0, 0.01, 0.01]}
    - {name: rod, origin: {xyz: [0.2, 0, 0]}, mass: 1, com: [0.1, 0, 0], inertia: [0, 0.01, 0.01]}
    - {name: slider, type: prismatic, axis: [1, 0, 0], parent: base, mass: 1}
  loops: [{name: pin, parent: slider, child: rod, child_origin: {xyz: [0.2, 0, 0]}}]
joints:
  crank: {initial: {position: 0.3, velocity: 1}}
  rod: {initial: {guess: -0.6}}
  slider: {initial: {guess: 0.38}}
schedule: {duration: 2 s}
"""
NAMES = ("separate_bodies", "dependent_coordinates", "cartesian")


def test_the_motion_agrees_and_reactions_do_beside_the_dead_point(tmp_path: Path) -> None:
    (path := tmp_path / "rig.yaml").write_text(EQUAL)
    runs = [load_rig(path, [f"mechanism.formulation={name}"]).run() for name in NAMES]
    angle = runs[0]["crank/position"]
    forces = [np.hypot(run["pin/force_x"], run["pin/force_y"]) for run in runs]
    beside = np.abs(np.cos(angle)) > 0.05
    assert np.abs(np.cos(angle)).min() < 1e-4
    for run, force in zip(runs, forces, strict=True):
        assert run["crank/position"] == pytest.approx(angle, abs=1e-6)
        assert force[beside] == pytest.approx(forces[0][beside], abs=1e-5)
        assert force[beside].max() == pytest.approx(18.7, abs=0.05)
        assert force.max() > 25.0
