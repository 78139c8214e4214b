"""Runs on torsion springs: a ball in closed form, the energy with every integrator, a warning near half a turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.errors import RunWarning
from cosim.mechanics.integrators.methods import INTEGRATORS
from tests.kit.rigs import rig_in

J, K = 0.02, 0.5  # kg m², N m/rad
AXIS = np.array([1.0, 2.0, -2.0]) / 3.0
RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: ball, type: spherical, stiffness: {stiffness}, damping: {damping}, mass: 1 kg,
       inertia: [0.02, 0.02, 0.02]}}
joints:
  ball: {{initial: {{velocity: {velocity}}}}}
schedule: {{step: 1 ms, duration: 1.3 s, integrator: {integrator}}}
"""
# order of the method: error of a run against the closed form, of its energy
FIGURES = {
    "semi_implicit_euler": (1e-5, 3e-3),
    "multirate": (1e-4, 1e-5),
    "rosenbrock": (1e-4, 1e-5),
    "moreau": (2e-5, 1e-5),
}


def ball(folder: Any, stiffness: Any = K, speed: float = 5.0, damping: float = 0.0, integrator: str = "rk4") -> Rig:
    velocity = (speed * AXIS).tolist()
    text = RIG.format(stiffness=stiffness, damping=damping, velocity=velocity, integrator=integrator)
    return rig_in(folder, text)


@pytest.mark.parametrize("integrator", sorted(INTEGRATORS))
def test_a_ball_about_a_fixed_axis(tmp_path, integrator):
    """J φ̈ = −K φ, in all directions alike."""
    run = ball(tmp_path, integrator=integrator).run()
    rate = np.sqrt(K / J)
    phi = 5.0 / rate * np.sin(rate * run.t)
    error, of_energy = FIGURES.get(integrator, (1e-9, 1e-10))
    for x, along in zip("xyz", AXIS, strict=True):
        assert run[f"ball.r{x}/position"] == pytest.approx(along * phi, abs=error)
    assert run["ball/spring_angle"] == pytest.approx(np.abs(phi), abs=error)
    assert run["ball/spring_moment"] == pytest.approx(K * np.abs(phi), abs=error)
    assert run["energy/elastic"] == pytest.approx(0.5 * K * phi**2, abs=5.0 * error)
    assert run.summary["energy"]["residual_relative"] < of_energy


@pytest.mark.parametrize("integrator", sorted(INTEGRATORS))
def test_the_energy_of_a_spring_that_differs_with_the_direction(tmp_path, integrator):
    run = ball(tmp_path, [0.5, 0.2, 0.3, 0.1, 0.05, 0.02], 4.0, 0.01, integrator).run()
    assert run.summary["energy"]["residual_relative"] < FIGURES.get(integrator, (0.0, 1e-10))[1]
    assert run.summary["torsion_springs"]["ball"]["angle_max"] == pytest.approx(run["ball/spring_angle"].max())


def test_a_run_near_half_a_turn_warns(tmp_path):
    fast = np.sqrt(K / J) * np.pi
    with pytest.warns(RunWarning, match=r"the torsion spring 'ball' is turned by 17[5-9]\.\d+ deg; at 180 deg"):
        ball(tmp_path, speed=0.99 * fast).run()
    assert ball(tmp_path, speed=0.9 * fast).run().warnings == []
