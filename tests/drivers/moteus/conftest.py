"""Fixtures of the tests of moteus drives."""

from collections.abc import Callable, Iterator

import pytest

from tests.drivers.moteus import emulator_bench
from tests.drivers.moteus.driver_bench import Bench


@pytest.fixture
def make() -> Callable[..., Bench]:
    return Bench


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Iterator[Bench]:
    made = make()
    made.driver.open()
    yield made
    made.driver.close()
    assert all(rotor.effort == 0.0 for rotor in made.rotors)


@pytest.fixture
def device() -> emulator_bench.Bench:
    return emulator_bench.Bench()
