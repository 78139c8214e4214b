"""The sample rigs of the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cosim import Rig, load_rig

FOLDER = Path(__file__).parents[2] / "rigs"

# large samples, and others that together have all kinds of their parts: tests that compile much leave them out
COVERED = {
    "drives/industrial_arm": {"ur5_sim", "bench/full_drive"},
    "elastic/two_link_arm": {"elastic/spacecraft", "bench/flexible_arm", "arm_sim"},
    "impedance/ur5_impedance": {"impedance/ur5_contact"},
    "mechanisms/suspension": {"mechanisms/four_bars", "mechanisms/parallelogram"},
    "prescribed_wrist": {"ur5_sim", "mechanisms/arm_on_moving_base"},
    "ur5_realtime": {"ur5_sim", "elastic/spacecraft"},
}


def without_drivers(pattern: str) -> list[Path]:
    """The rigs of the folder in which every motor is simulated, sorted; no more is read of them, and that by the parser
    that knows no line numbers: every worker does it before its first test."""
    found = {file: yaml.load(file.read_text(), yaml.CSafeLoader) for file in FOLDER.glob(pattern)}
    whole = {"mechanism", "parts"}  # others are overlays
    return sorted(file for file, data in found.items() if whole & data.keys() and not data.get("drivers"))


@pytest.fixture
def sample() -> Callable[..., Rig]:
    """A sample rig by its name, after overrides."""

    def load(name: str, *overrides: str, interpret: bool = False) -> Rig:
        return load_rig(FOLDER / f"{name}.yaml", overrides, interpret)

    return load
