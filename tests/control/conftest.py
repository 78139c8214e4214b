"""The cases of the guard, for both of its tests."""

from types import ModuleType

import pytest

from tests.control import guard_battery


@pytest.fixture(scope="session")
def battery() -> ModuleType:
    return guard_battery
