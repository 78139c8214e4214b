"""moteus drives behind a driver, and on their own."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cosim.plugins.drivers import moteus
from cosim.plugins.drivers.transport import CanParams
from tests.drivers.bench import DriverBench
from tests.drivers.moteus import emulator_bench

BUS = CanParams("virtual", "x", fd=True)


class Bench(DriverBench):
    """Nodes 3, 8, …"""

    def __init__(self, n: int = 2, watchdog: float = 0.1, stop: Any = "off", lower=-math.inf, **joint: Any) -> None:
        params = moteus.Params(bus=BUS, watchdog=watchdog, stop=stop)
        wiring = [moteus.JointParams(id=3 + 5 * k, **joint) for k in range(n)]
        super().__init__(moteus, params, wiring, limits=(lower, -lower, 50.0, 1.5))
        self.servos = self.emulator.servos

    @property
    def modes(self) -> list[int]:
        return [servo.mode for servo in self.servos]

    @property
    def written(self) -> list[dict[str, float]]:
        """What the drives were commanded."""
        return [servo.written for servo in self.servos]

    def deaf(self, *nodes: int) -> None:
        """Nodes that receive nothing."""
        self.hears = lambda frame: frame.id & 0x7F not in nodes


@pytest.fixture
def make() -> Callable[..., Bench]:
    return Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.driver.open()
    yield made
    made.deaf()
    made.driver.close()
    assert made.efforts == [0.0, 0.0]


@pytest.fixture
def device() -> emulator_bench.Bench:
    return emulator_bench.Bench()
