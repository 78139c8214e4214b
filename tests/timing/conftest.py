"""The engines whose pacing is compared."""

import pytest

from tests.timing.paced_engines import Loops


@pytest.fixture(scope="session")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Loops:
    return Loops(tmp_path_factory.mktemp("paced") / "rig.yaml")
