"""Fixtures of the tests of Dynamixel drives."""

from collections.abc import Callable

import pytest

from tests.drivers.dynamixel.driver_bench import Bench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    return lambda *args, **options: Bench(monkeypatch, *args, **options)
