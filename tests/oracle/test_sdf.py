"""Mechanisms from SDF files accelerate as Drake computes from the same file, whose reader is libsdformat."""

import numpy as np
import pytest
import yaml

from cosim.mechanics.multibody import Model
from tests.kit.drake_figures import FIGURES, FOLDER

DRAKE = yaml.safe_load(FIGURES.read_text())


def test_every_file_has_figures():
    assert set(DRAKE) == {path.stem for path in FOLDER.glob("*.sdf")}


@pytest.mark.parametrize("name", DRAKE)
def test_accelerations(name):
    model = Model.from_sdf(FOLDER / f"{name}.sdf")
    for state in DRAKE[name]:
        q, v, tau, expected = (
            _vector(names, state[key])
            for key, names in (
                ("position", model.coordinate_names),
                ("velocity", model.dof_names),
                ("effort", model.dof_names),
                ("acceleration", model.dof_names),
            )
        )
        found = model.equations.forward_dynamics(q, v, tau - model.friction_effort(v))
        assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()


def _vector(names, values):
    """Values by joint in the order of the names, which may have the scope of a nested model before them."""
    found, used = [], {}
    for name in names:
        joint = name.rpartition("::")[2].partition(".")[0]
        k = used[joint] = used.get(joint, -1) + 1
        found.append(values[joint][k])
    return np.array(found)
