"""The sample rigs of the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cosim import Rig, load_rig

FOLDER = Path(__file__).parents[2] / "rigs"


@pytest.fixture
def sample() -> Callable[..., Rig]:
    """A sample rig by its name, after overrides."""

    def load(name: str, *overrides: str, interpret: bool = False) -> Rig:
        return load_rig(FOLDER / f"{name}.yaml", overrides, interpret)

    return load
