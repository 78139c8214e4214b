"""Dynamixel drives behind a driver."""

from typing import Any

import numpy as np
import pytest

from cosim.plugins.drivers import dynamixel
from cosim.plugins.drivers.common.motor import Rotor
from tests.drivers.bench import DriverBench


def rotor() -> Rotor:
    made = Rotor(inertia=1e-2, friction=1e-2)
    made.max_velocity = 5.0
    return made


class Bench(DriverBench):
    """Drives 1, 2, …"""

    def __init__(self, joints=3, mode="effort", limits=(-2.0, 2.0, 2.0, 4.0), wiring: Any = None, period=1e-3, **keys):
        params = dynamixel.Params(port=dynamixel.SerialSettings(port="/dev/ttyX", baudrate=4e6), **keys)
        joined = [dynamixel.JointParams(id=k + 1, **wiring or {}) for k in range(joints)]
        turns = ("folded" if np.isfinite(limits[:2]).all() else "ambiguous",) * joints
        motors = [rotor() for _ in joined]
        super().__init__(dynamixel, params, joined, mode, limits=limits, motors=motors, period=period, turns=turns)
        self.nodes, self.delay_ns = self.emulator.nodes, 20_000

    @property
    def torques(self) -> list[bool]:
        return [node.torque for node in self.nodes]

    def get(self, register: Any) -> list[int]:
        """Of all drives."""
        return [node.get(register) for node in self.nodes]

    def place_all(self, position: float) -> None:
        """The motors at power-on."""
        for motor in self.motors:
            motor.position = position
        self.emulator.reset(self.t_ns)


@pytest.fixture
def bench() -> type[Bench]:
    return Bench
