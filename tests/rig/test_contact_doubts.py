"""What a rig warns of in its contacts before it runs, and that the warnings are true."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.rig.contact_doubts import rebound_in_steps
from tests.kit.contact_rigs import body, contact_rig

RADIUS, MASS, GRAVITY = 0.05, 0.5, 9.81
INERTIA = [0.4 * MASS * RADIUS**2] * 3


def ball(folder, height, law, step=1e-3, duration=0.3, **options):
    """A ball whose centre is `height` above the ground."""
    contact = f"name: c, link: ball, sphere: {RADIUS} m, with: ground, friction: 0.3, {law}"
    return contact_rig(folder, [body("ball", MASS, INERTIA, (0, 0, height))], [contact], duration, step, **options)


@pytest.mark.parametrize("restitution", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("step", [1e-3, 2.5e-4])
def test_a_rebound_is_what_was_predicted(restitution, step, tmp_path):
    """Within the scatter of the part of a step at which the touch begins."""
    rig = ball(tmp_path, RADIUS + 0.05, f"stiffness: 2e5 N/m, restitution: {restitution}", step)
    v = rig.run()["ball.z/velocity"]
    lowest = int(np.argmin(v))
    rebound = v[lowest:].max() / -v[lowest]
    predicted = rebound_in_steps(restitution, step * np.sqrt(2e5 / MASS))
    assert rebound == pytest.approx(predicted, abs=0.03)
    warned = rig.warnings[1]
    if abs(predicted - restitution) > 0.1:
        (line,) = warned
        assert f"rebounds with about {predicted:.2g} in place of restitution {restitution:g}" in line
    else:
        assert warned == []


@pytest.mark.parametrize("law", ["stiffness: rigid, restitution: 0.9", "stiffness: 2e5 N/m", "restitution: 0.05"])
def test_what_rebounds_right_or_not_at_all_is_not_warned_of(law, tmp_path):
    assert ball(tmp_path, RADIUS + 0.05, law).warnings[1] == []


def test_the_step_that_is_proposed_gives_the_restitution(tmp_path):
    (line,) = ball(tmp_path, RADIUS + 0.05, "stiffness: 2e5 N/m, restitution: 0.9").warnings[1]
    step = 1e-6 * float(line.rpartition("steps of ")[2].removesuffix(" µs"))
    v = ball(tmp_path, RADIUS + 0.05, "stiffness: 2e5 N/m, restitution: 0.9", step).run()["ball.z/velocity"]
    lowest = int(np.argmin(v))
    assert v[lowest:].max() / -v[lowest] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    ("law", "depth", "force"),
    [
        ("stiffness: 1e5 N/m", 5e-3, "with 500 N"),
        ("stiffness: 1e6 N/m", 2e-4, "with 200 N"),
        ("stiffness: rigid", 5e-3, ""),
    ],
)
def test_shapes_that_begin_deep_inside_are_warned_of(law, depth, force, tmp_path):
    (line,) = ball(tmp_path, RADIUS - depth, law).warnings[1]
    assert line.startswith(f"contact 'c' begins {1e3 * depth:.3g} mm inside") and force in line


@pytest.mark.parametrize("depth", [0.0, MASS * GRAVITY / 1e6, 2e-5])
def test_a_start_under_load_is_no_doubt(depth, tmp_path):
    assert ball(tmp_path, RADIUS - depth, "stiffness: 1e6 N/m").warnings[1] == []


@pytest.mark.parametrize("depth", [1e-5, 1e-4, 5e-4])
def test_the_energy_of_a_start_inside_is_known(depth, tmp_path):
    """What the springs store at the start is lost on the way to rest, but what they hold there."""
    rig, k = ball(tmp_path, RADIUS - depth, "stiffness: 1e6 N/m", step=1e-4, duration=2.0), 1e6
    run = rig.run()
    assert run.summary["energy"]["residual_relative"] < 1e-6
    assert run["energy/elastic"][0] == pytest.approx(0.5 * k * depth**2)
    rest = MASS * GRAVITY / k
    risen = MASS * GRAVITY * (depth - rest)
    assert run["c/lost"][0] == pytest.approx(0.0, abs=1e-15)
    assert run["c/lost"][-1] == pytest.approx(0.5 * k * (depth**2 - rest**2) - risen, rel=1e-3)


def test_rollouts_that_start_inside_know_their_energy_too(tmp_path):
    """As runs from these starts."""
    rig = ball(tmp_path, RADIUS + 0.01, "stiffness: 1e6 N/m")
    heights = RADIUS + np.array([0.01, 0.0, -1e-4, -5e-4])
    batch = rig.rollouts(initial={"ball.z/position": heights}, signals=["c/lost"])
    for number, height in enumerate(heights.tolist()):
        alone = ball(tmp_path, height, "stiffness: 1e6 N/m").run()
        np.testing.assert_allclose(batch.samples["c/lost"][number], alone["c/lost"], rtol=1e-9, atol=1e-14)
