"""Machines that work by contact: a gripper, a conveyor, a press."""

import numpy as np
import pytest

from tests.kit.contact_rigs import body, cube, slider, solved_runs

G, EDGE = 9.81, 0.1
RIGID, SPRINGS = "rigid", "1e6"


run = solved_runs(1e-9)


CORNERS = [(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]


# between rigid faces of several points the box may turn about one of them as well: forces are not unique there
@pytest.mark.parametrize(("stiffness", "places"), [(RIGID, [(0.0, 0.0)]), (SPRINGS, CORNERS)])
@pytest.mark.parametrize("share", [1.01, 0.99])
def test_a_gripper_holds_what_friction_can_hold(run, share, stiffness, places):
    """Two fingers press with F each: the box falls if 2 μ F < m g, with what is left of its weight."""
    mass, friction = 1.0, 0.5
    force = share * mass * G / (2.0 * friction)
    law = f"friction: {friction}, stiffness: {stiffness}"
    bodies = [body("part", mass, cube(mass, EDGE), [0.0, 0.0, 0.5])]
    contacts = []
    for name, side in (("left", -1), ("right", 1)):
        effort = f"actuator: {{type: affine_servo, gain: 0, bias: {-side * force}}}"
        bodies.append(slider(name, [1, 0, 0], effort, side * EDGE / 2))
        # the faces of the fingers are tall, the points are on the faces of the box
        plane = f"{{link: {name}, plane: {{rpy: [0, {-side * np.pi / 2}, 0]}}}}"
        for k, (y, z) in enumerate(places):
            point = [side * EDGE / 2, y * EDGE, z * EDGE]
            contacts.append(f"name: {name}_{k}, link: part, point: {point}, with: {plane}, {law}")
    found = run(bodies, contacts, 1.0)
    height = found["part.z/position"]
    squeeze = sum(found[f"left_{k}/normal_force"][-1] for k in range(len(places)))
    assert squeeze == pytest.approx(force, rel=1e-5)
    if share > 1.0:
        assert abs(height[-1] - height[200]) < 1e-12
        assert abs(height[-1] - 0.5) < (1e-12 if stiffness == RIGID else 1e-5)
    else:
        fall = np.polyfit(found.t[200:], height[200:], 2)[0]
        assert fall == pytest.approx(-0.5 * G * (1.0 - share), rel=1e-6)


@pytest.mark.parametrize("stiffness", [RIGID, SPRINGS])
def test_a_conveyor_takes_a_box_along(run, stiffness):
    """The belt starts faster than friction can: the box slides with μ g until it has the speed of the belt."""
    speed, friction, start = 0.8, 0.3, 2e-3
    motion = f"{{type: trapezoidal, goal: 2 m, max_velocity: {speed}, max_acceleration: {speed / start}}}"
    corners = [[x * EDGE / 2, y * EDGE / 2, -EDGE / 2] for x in (-1, 1) for y in (-1, 1)]
    law = f"with: {{link: belt, plane: {{}}}}, friction: {friction}, stiffness: {stiffness}"
    found = run(
        [
            slider("belt", [1, 0, 0], f"prescribed: {motion}"),
            body("box", 1.0, [1.0] * 3, [0.0, 0.0, EDGE / 2]),  # which hardly tips
        ],
        [f"name: c{k}, link: box, point: {corner}, {law}" for k, corner in enumerate(corners)],
        1.0,
    )
    caught = speed / (friction * G)
    slides = found.t < caught - 0.01
    way = 0.5 * friction * G * found.t**2
    np.testing.assert_allclose(found["box.x/position"][slides], way[slides], rtol=0, atol=1e-5)
    rides = found.t > caught + 0.2
    np.testing.assert_allclose(found["box.x/velocity"][rides], speed, rtol=0, atol=1e-8)  # springs relax
    assert np.all(found["c0/state"][rides] == 1.0)
    lag = found["belt/position"][-1] - found["box.x/position"][-1]
    # of the box, while it slides: half the speed for the time until it is caught; of the belt, half its start
    assert lag == pytest.approx(0.5 * speed * (caught - start), abs=1e-5)


def test_a_press_needs_the_effort_of_the_springs(run):
    """A prescribed plate on a ball between two springs: what it presses with is the depth over both compliances."""
    mass, radius, stroke, plate = 0.5, 0.05, 2e-3, 0.2
    below, above = 2e5, 5e4
    motion = f"{{type: quintic, goal: {2 * radius - stroke}, duration: 0.5}}"
    ball = f"link: ball, sphere: {radius}, friction: 0.5"
    found = run(
        [
            slider("plate", [0, 0, 1], f"prescribed: {motion}", 2 * radius, plate),
            body("ball", mass, [0.4 * mass * radius**2] * 3, [0.0, 0.0, radius]),
        ],
        [
            f"name: low, {ball}, with: ground, stiffness: {below}",
            f"name: high, {ball}, with: {{link: plate, plane: {{rpy: [{np.pi}, 0, 0]}}}}, stiffness: {above}",
        ],
        1.0,
    )
    press = (stroke - mass * G / below) / (1 / below + 1 / above)
    assert found["high/normal_force"][-1] == pytest.approx(press, rel=1e-6)
    assert found["low/normal_force"][-1] == pytest.approx(press + mass * G, rel=1e-6)
    assert found["plate/effort"][-1] == pytest.approx(plate * G - press, rel=1e-6)
    depths = found["low/gap"][-1] + found["high/gap"][-1]
    assert depths == pytest.approx(-stroke, rel=1e-6)
