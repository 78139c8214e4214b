"""CiA 402 drives behind a driver, and one on its own."""

import math
from typing import Any

import pytest

from cosim.core.types import JointState
from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.transport import CanParams
from tests.drivers.bench import DriverBench
from tests.drivers.cia402.emulator_bench import Rig
from tests.kit.clock import MS

BUS = CanParams("virtual", "arm")
JOINT = cia402.JointParams


class Bench(DriverBench):
    """Without other wiring a single drive with the node id 1."""

    step_ns = MS // 4

    def __init__(
        self,
        *wiring: Any,
        mode: str = "effort",
        effort: float = math.inf,
        velocity: float = math.inf,
        drive: dict[str, Any] | None = None,
        **keys: Any,
    ) -> None:
        """drive: settings of the emulated drives; keys: of the driver."""
        wiring = wiring or (JOINT(id=1, cpr=4096),)
        settings = () if drive is None else (cia402.EmulatedParams(**drive),) * len(wiring)
        limits = (-math.inf, math.inf, velocity, effort)
        super().__init__(cia402, cia402.Params(bus=BUS, **keys), wiring, mode, limits=limits, emulated=settings)

    def node(self, k: int = 0) -> Any:
        return self.emulator.nodes[k]

    @property
    def states(self) -> list[int]:
        return [node.state for node in self.emulator.nodes]

    def twice(self) -> JointState:
        """What answers the second request was measured after the first one."""
        self.read()
        return self.read()

    def again(self) -> None:
        """The next program has the bus."""
        self.driver = cia402.load(self.params, self.context)


@pytest.fixture
def bench() -> type[Bench]:
    return Bench


@pytest.fixture
def running():
    return lambda *wiring, **options: Bench(*wiring, **options).start()


@pytest.fixture
def without(monkeypatch):
    """Drives that lack an object."""
    from cosim.plugins.drivers.cia402.device import access, objects

    def lacking(*keys: int) -> None:
        table = {key: entry for key, entry in objects.OBJECTS.items() if key not in keys}
        monkeypatch.setattr(access, "OBJECTS", table)

    return lacking


@pytest.fixture
def rig() -> Rig:
    return Rig()
