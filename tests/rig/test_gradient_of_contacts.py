"""Derivatives of runs in which bodies touch, by numbers of contacts and by how a run starts: central differences and
closed forms."""

import re

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

from cosim import load_rig
from cosim.core import ops
from cosim.mechanics.multibody.contact.law_rows import damping_ratio
from tests.kit.refusals import refusal
from tests.kit.rigs import rig_in
from tests.kit.samples import FOLDER

G = 9.81
PUCK = """
name: puck
mechanism:
  bodies:
    - {{name: puck, type: free, mass: 1 kg, inertia: [2e-3, 3e-3, 4e-3]}}
  contacts:
    - {{name: floor, link: puck, {shape}, with: ground, friction: 0.3, {law}}}
joints:
  puck: {{initial: {{position: [0, 0, {height}, 0, 0, 0, 1], velocity: [1.0, 0.2, 0, 0, 0, {spin}]}}}}
schedule: {{step: 1 ms, duration: 0.2 s}}
"""
MESH = "mesh: {file: puck.obj, scale: 0.01}"
CORNERS = "".join(f"v {x} {y} {z}\n" for x in (-10, 10) for y in (-5, 5) for z in (-3, 3))
BOX, BALL = "box: [20 cm, 10 cm, 6 cm]", "sphere: 3 cm, torsional: 5 mm, rolling: 2 mm"


def puck(folder, shape=BOX, law="stiffness: 1e5", height=0.0299, spin=3.0):
    (folder / "puck.obj").write_text(CORNERS)
    return rig_in(folder, PUCK.format(shape=shape, law=law, height=height, spin=spin))


def figure(t, signals):
    """Of the motion over time."""
    return ops.array([signals["puck.x/position"] + 0.3 * signals["puck.y/position"] + signals["puck.y/velocity"]])


def start_names(rig):
    return [f"{name}/velocity" for name in rig.joints if name.startswith("puck")] + ["puck.x/position"]


def difference(rig, name, value, element=None, of_start=False):
    """Richardson's value of central differences."""
    found = []
    for step in (1e-3, 5e-4):
        moved = step * max(abs(np.atleast_1d(value)[element or 0]), 1e-2)
        ends = np.repeat(np.atleast_1d(value)[None], 2, axis=0)
        ends[:, element or 0] += [-moved, moved]
        rows = {name: ends[:, 0] if element is None else ends}
        given = {"initial": rows} if of_start else {"parameters": rows}
        low, high = rig.rollouts(**given, metrics=[figure])["figure"].reshape(2)
        found.append((high - low) / (2.0 * moved))
    return (4.0 * found[1] - found[0]) / 3.0


@pytest.mark.parametrize("shape", [BOX, BALL, MESH], ids=["box", "ball", "mesh"])
def test_derivatives_by_numbers_of_contacts_and_starts_equal_differences(tmp_path, shape):
    rig = puck(tmp_path, shape)
    names = ["mechanism.floor.friction", "mechanism.floor.stiffness", "mechanism.puck.mass"]
    names += ["mechanism.floor.torsional", "mechanism.floor.rolling"] if shape == BALL else []
    starts = [*start_names(rig)[:3], "puck.x/position"]
    gradient = rig.gradient(figure, names, initial=starts)
    assert list(gradient) == names + starts
    largest = np.abs(gradient.vector).max()
    for name in gradient:
        expected = difference(rig, name, gradient.parameters[name], of_start=name in starts)
        scale = largest * (1e-9 if name != "mechanism.floor.stiffness" else 1e-12)
        # the solver leaves more of moments, which turn the ball in a small motion
        exactness = 2e-5 if shape == BALL else 1e-6
        assert gradient[name] == pytest.approx(expected, rel=exactness, abs=scale), name


def test_where_a_box_stops_depends_on_friction_and_launch_as_coulomb_says(tmp_path):
    """On a straight way x = v²/2 μ g."""
    rig = rig_in(
        tmp_path,
        PUCK.format(shape=BOX, law="stiffness: 1e6", height=0.03 - G / 8e6, spin=0)
        .replace("velocity: [1.0, 0.2,", "velocity: [0.5, 0,")
        .replace("0.2 s}", "1 s}"),
    )

    def late(t, signals):
        return ops.array([ops.where(t > 0.9, signals["puck.x/position"], 0.0)])

    gradient = rig.gradient(late, "mechanism.floor.friction", initial="puck.x/velocity")
    assert gradient["puck.x/velocity"] == pytest.approx(0.1 * 0.5 / (0.3 * G), rel=2e-2)
    assert gradient["mechanism.floor.friction"] == pytest.approx(-0.1 * 0.125 / (0.09 * G), rel=2e-2)
    assert gradient.units["puck.x/velocity"] == "m/s"


def test_rows_of_starts_equal_single_gradients(tmp_path):
    rig = puck(tmp_path)
    speeds = np.linspace(0.5, 1.5, 5)
    rows = rig.gradient(figure, "mechanism.floor.friction", initial={"puck.x/velocity": speeds})
    assert rows["puck.x/velocity"].shape == rows["mechanism.floor.friction"].shape == (5,)
    single = rig.gradient(figure, "mechanism.floor.friction", initial={"puck.x/velocity": speeds[3:4]})
    np.testing.assert_allclose(rows.vector[3], single.vector[0], rtol=1e-12)


def test_a_start_with_a_closed_loop():
    """The other joints follow where the loop closes."""
    rig = load_rig(FOLDER / "mechanisms" / "four_bar.yaml", interpret=False)

    def turned(t, signals):
        return ops.array([signals["crank/position"] + signals["rocker/velocity"]])

    for name in ("crank/position", "crank/velocity"):
        gradient = rig.gradient(turned, duration=0.1, initial=name)
        at, step = float(gradient.parameters[name]), 1e-4
        low, high = rig.rollouts(initial={name: [at - step, at + step]}, metrics=[turned], duration=0.1)[
            "turned"
        ].reshape(2)
        assert gradient[name] == pytest.approx((high - low) / (2 * step), rel=1e-6), name


BALL_IN_FLIGHT = """
name: thrown
mechanism:
  bodies:
    - {{name: ball, type: free, mass: 0.2 kg, inertia: [1, 1, 1]}}
  contacts:
    - {{name: floor, link: ball, point: [0, 0, 0], with: ground, friction: 0.3, {law}}}
joints:
  ball: {{initial: {{position: [0, 0, 0.5, 0, 0, 0, 1], velocity: [3.0, 0, 0.4, 0, 0, 0]}}}}
schedule: {{step: {step}, duration: 0.6 s}}
"""
THROW = ["ball.z/position", "ball.x/velocity", "ball.z/velocity"]


def thrown(folder, law, step="1 ms"):
    return rig_in(folder, BALL_IN_FLIGHT.format(law=law, step=step))


def last(rig, name):
    step = rig.tick_model.step

    def at_the_end(t, signals):
        return ops.array([ops.where(t > 0.6 - 0.5 * step, signals[name] / step, 0.0)])

    return at_the_end


def flight(height, vx, vz, friction, restitution, end=0.6):
    """(x, z) after a parabola, an impact in which the point slides, and a parabola."""
    down = np.sqrt(vz**2 + 2 * G * height)
    touch, up = (vz + down) / G, restitution * down
    left = end - touch
    return np.array([vx * touch + (vx - friction * (1 + restitution) * down) * left, up * left - 0.5 * G * left**2])


def slopes(values, k, step=1e-6):
    """Of the flight, by one of its numbers."""
    moved = step * np.eye(len(values))[k]
    return (flight(*(values + moved)) - flight(*(values - moved))) / (2 * step)


@pytest.mark.parametrize("restitution", [0.5, 0.7, 1.0])
def test_a_rigid_rebound_has_the_derivatives_of_parabola_impact_and_parabola(tmp_path, restitution):
    rig = thrown(tmp_path, f"stiffness: rigid, restitution: {restitution}")
    names = ["mechanism.floor.friction", "mechanism.floor.restitution"]
    values = np.array([0.5, 3.0, 0.4, 0.3, restitution])
    for axis, of_axis in (("x", 0), ("z", 1)):
        gradient = rig.gradient(last(rig, f"ball.{axis}/position"), names, initial=THROW)
        for k, name in enumerate([*THROW, *names]):
            assert gradient[name] == pytest.approx(slopes(values, k)[of_axis], rel=2e-3, abs=2e-3), (axis, name)


def bounced(height, vz, stiffness, restitution, mass=0.2, end=0.6):
    """z of the ball on a spring with a damper that do not pull, each part of the way in closed form by its matrix."""
    down = np.sqrt(vz**2 + 2 * G * height)
    touch, omega = (vz + down) / G, np.sqrt(stiffness / mass)
    zeta = float(damping_ratio(restitution))
    A = np.array([[0.0, 1.0, 0.0], [-(omega**2), -2 * zeta * omega, -G], [0.0, 0.0, 0.0]])

    def inside(t):
        return expm(A * t) @ [0.0, -down, 1.0]

    def pressing(t):
        z, v, _ = inside(t)
        return omega**2 * z + 2 * zeta * omega * v  # below 0 while it presses

    first = np.arange(1, 400) * (2 * np.pi / omega / 400)
    opens = next(t for t in first if pressing(t) > 0.0)
    opens = brentq(pressing, opens - first[0], opens, xtol=1e-15)
    z, v, _ = inside(opens)
    left = end - touch - opens
    return z + v * left - 0.5 * G * left**2


@pytest.mark.parametrize("restitution", [0.5, 0.7, 1.0])
def test_an_elastic_rebound_has_the_derivatives_of_its_law_to_the_order_of_the_step(tmp_path, restitution):
    stiffness, s, errors = 5e3, 1e-5, []
    by_height = bounced(0.5 + s, 0.4, stiffness, restitution) - bounced(0.5 - s, 0.4, stiffness, restitution)
    by_speed = bounced(0.5, 0.4 + s, stiffness, restitution) - bounced(0.5, 0.4 - s, stiffness, restitution)
    for step in ("0.4 ms", "0.1 ms", "0.025 ms"):
        rig = thrown(tmp_path, f"stiffness: {stiffness}, restitution: {restitution}", step)
        gradient = rig.gradient(last(rig, "ball.z/position"), initial=["ball.z/position", "ball.z/velocity"])
        errors.append(np.abs(gradient.vector - np.array([by_height, by_speed]) / (2 * s)).max())
    assert errors[0] < 0.1
    assert errors[2] < 0.25 * errors[0]
    assert errors[2] < 1e-2


def test_a_touch_of_few_steps_is_told(tmp_path):
    rig = thrown(tmp_path, "stiffness: 2e5, restitution: 0.7")
    with pytest.warns(match=re.escape("contact 'floor' touches and opens again within 4 steps")):
        rig.gradient(last(rig, "ball.z/position"), initial=THROW)


def test_starts_that_do_not_exist_are_refused(tmp_path):
    rig = puck(tmp_path)
    assert "there is no such initial value" in refusal(rig.gradient, figure, initial="puck.q/velocity")
    assert refusal(rig.gradient, figure) == "parameters: give at least one of the parameters"
