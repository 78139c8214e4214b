"""Rigs of many bodies: sweeps are loops inside a tick too, and derivatives remain exact."""

import numpy as np
import pytest

from cosim.multibody import equations

CHAIN = """
mechanism:
  bodies:
    - {name: rod, joint: hinge, repeat: 6, axis: [0, 1, 0], origin: {xyz: [0.1, 0, 0]}, mass: 1, com: [0.05, 0, 0],
       inertia: [0, 8e-4, 8e-4], damping: 0.01}
controllers:
  - {type: feedforward_pd, joints: [hinge_1], kp: 50, kd: 5, trajectory: {type: sine, amplitude: 0.3, frequency: 1}}
schedule: {duration: 0.05, step: 1 ms}
"""


@pytest.mark.parametrize("integrator", ["rk4", "rosenbrock", "semi_implicit_euler"])
def test_rolled_sweeps_in_a_tick_equal_straight_line_code(rig_of, monkeypatch, integrator):
    override = f"schedule.integrator={integrator}"
    straight = rig_of(CHAIN, override).run()
    monkeypatch.setattr(equations, "ROLLED_FROM", 3)
    looped = rig_of(CHAIN, override).run()
    np.testing.assert_allclose(looped.values, straight.values, rtol=1e-9, atol=1e-9)
