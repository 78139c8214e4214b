"""Mechanisms from SDF files accelerate as Drake computes from the same file, whose reader is libsdformat."""

import pytest
import yaml

from cosim.mechanics.multibody import Model
from tests.kit.drake_figures import FIGURES, FOLDER, error

DRAKE = yaml.safe_load(FIGURES.read_text())


def test_every_file_has_figures():
    assert set(DRAKE) == {path.stem for path in FOLDER.glob("*.sdf")}


@pytest.mark.parametrize("name", DRAKE)
def test_accelerations(name):
    model = Model.from_sdf(FOLDER / f"{name}.sdf")
    for state in DRAKE[name]:
        assert error(model, state) < 1e-11
