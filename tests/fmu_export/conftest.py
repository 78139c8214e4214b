"""FMUs that the tests of this room share: exporting one costs more than what most tests do with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cosim import Rig, load_rig
from tests.fmu_export.instances import written
from tests.kit.rigs import rig_in
from tests.kit.samples import FOLDER


@pytest.fixture(scope="session")
def shared_rig(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Rig]:
    """The rig of a text, or the sample rig of a name, after overrides. Tests do not change it."""

    @cache
    def load(source: str, *overrides: str) -> Rig:
        if "\n" in source:
            return rig_in(tmp_path_factory.mktemp("rig"), source, *overrides)
        return load_rig(FOLDER / f"{source}.yaml", overrides)

    return load


@pytest.fixture(scope="session")
def exported(shared_rig: Callable[..., Rig], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The file of the FMU of such a rig. Tests do not change it."""

    @cache
    def export(source: str, version: int, *inputs: str) -> Path:
        return written(shared_rig(source), tmp_path_factory.mktemp("fmu"), version, *inputs)

    return export
