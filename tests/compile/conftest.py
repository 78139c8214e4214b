"""What all tests of compiled functions need."""

import pytest


@pytest.fixture(autouse=True)
def machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment has no say in these tests."""
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)
