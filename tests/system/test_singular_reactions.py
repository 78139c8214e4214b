"""Reactions near a singular position, as the page on formulations describes them."""

from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig

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
