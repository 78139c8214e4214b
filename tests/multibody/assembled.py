"""Rigs at their initial state, for the tests of assembly."""

from pathlib import Path

import pytest

from cosim import load_rig
from cosim.core.errors import InputError
from tests.kit.refusals import raised

FOUR_BAR = """\
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: A, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: B, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
    - {name: C, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], parent: base, origin: {xyz: [0.5, 0, 0]}}
  loops:
    - {name: pin, parent: C, child: B, origin: {xyz: [0.4, 0, 0]}, child_origin: {xyz: [0.5, 0, 0]}}
schedule: {duration: 0.2}
"""
OUT_OF_PLANE = ["pin/force_z", "pin/moment_x", "pin/moment_y"]


def rig(text, *overrides):
    Path("rig.yaml").write_text(text)
    return load_rig("rig.yaml", overrides)


def start(text, *overrides):
    """(positions, velocities) of the dofs at the start."""
    plant = rig(text, *overrides).plant
    return plant.start_positions, plant.start.v


def mistake(text, *overrides):
    (line,) = str(raised(InputError, rig, text, *overrides)).splitlines()
    return line


def redundant(text, *overrides):
    plant = rig(text, *overrides).plant
    return [plant.full_model.constraint_rows[r] for r in plant.start.redundant]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Of the tests that import it: they write their files there."""
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
