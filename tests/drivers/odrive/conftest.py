"""Two ODrives behind a driver, on CAN or on a serial port."""

import math
from functools import partial
from typing import Any

import pytest

from cosim.plugins.drivers import odrive
from cosim.plugins.drivers.transport import CanParams, SerialParams
from tests.drivers.bench import DriverBench

LINES: dict[str, Any] = {"bus": CanParams("virtual", "bus"), "port": SerialParams("/dev/ttyACM0")}
ADDRESSES = {"bus": ("id", 3, 17), "port": ("axis", 0, 1)}


class Bench(DriverBench):
    """The second joint has the opposite direction and a gear of 2."""

    def __init__(
        self,
        kind,
        mode="effort",
        velocity=math.inf,
        effort=math.inf,
        wiring=({}, {"direction": -1, "ratio": 2}),
        **keys,
    ):
        key, *numbers = ADDRESSES[kind]
        joints = [odrive.JointParams(**{key: n}, **wired) for n, wired in zip(numbers, wiring, strict=True)]
        limits = (-math.inf, math.inf, velocity, effort)
        super().__init__(odrive, odrive.Params(**{kind: LINES[kind]}, **keys), joints, mode, limits=limits)

    @property
    def axes(self) -> list[Any]:
        nodes = getattr(self.emulator, "nodes", None)
        return list(self.emulator.axes.values()) if nodes is None else [node.axis for node in nodes]

    @property
    def armed(self) -> list[bool]:
        return [axis.armed for axis in self.axes]


@pytest.fixture(params=LINES)
def kind(request):
    return request.param


@pytest.fixture
def bench(kind):
    """bench(mode, …) -> the drives on each kind of line."""
    return partial(Bench, kind)


@pytest.fixture
def on_bus():
    return partial(Bench, "bus")


@pytest.fixture
def on_port():
    return partial(Bench, "port")
