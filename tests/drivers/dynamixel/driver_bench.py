"""A driver of Dynamixel drives, emulated drives and the serial link between them, on a fake clock."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cosim.drivers import dynamixel
from cosim.drivers.common.motor import Rotor
from cosim.drivers.dynamixel.driver import DynamixelDriver
from cosim.drivers.transport import ConnectionLost
from cosim.errors import SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits
from tests.kit.clock import MS
from tests.kit.connection import FakeConnection


class Bench(FakeConnection):
    """A driver, its drives with rotors, and the serial link between them; waiting advances the time."""

    name = "the line"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, joints: int = 3, mode: str = "effort", **options: Any) -> None:
        wiring = options.pop("wiring", {})
        self.limits = options.pop("limits", (-2.0, 2.0, 2.0, 4.0))
        period = options.pop("period", 1e-3)
        names = tuple(f"j{k}" for k in range(joints))
        lower, upper, velocity, effort = (np.full(joints, bound) for bound in self.limits)
        self.context = DriverContext(
            names,
            tuple(dynamixel.JointParams(id=k + 1, **wiring) for k in range(joints)),
            Limits(lower, upper, velocity, effort),
            period,
            mode,
            lambda *keys: SourceLocation("rig.yaml", 5, ".".join(keys)),
            turns=("folded" if np.isfinite(upper - lower).all() else "ambiguous",) * joints,
        )
        self.params = dynamixel.Params(port=dynamixel.SerialSettings(port="/dev/ttyX", baudrate=4e6), **options)
        self.rotors = [Rotor(inertia=1e-2, friction=1e-2) for _ in names]
        for rotor in self.rotors:
            rotor.max_velocity = 5.0
        self.emulator = dynamixel.emulate(self.params, self.context, self.rotors)
        self.nodes = self.emulator.nodes
        super().__init__()
        self.inbox = deque()
        self.sent: list[bytes] = []
        self.spoil: Callable[[list[bytes]], list[bytes]] = lambda answers: answers
        self.delay_ns = 20_000
        self.emulator.reset(self.t_ns)
        self.driver = DynamixelDriver(self.params, self.context, self)
        self.out, self.cmd = JointState.zeros(joints), JointCommand.zeros(joints)

    # the serial link
    def send(self, item: bytes, deadline_ns: int) -> None:
        if not self.is_open:
            raise ConnectionLost("the connection is not open", self.name)
        self.sent.append(item)
        for answer in self.spoil(self.emulator.handle(item, self.t_ns)):
            self.inbox.append((self.t_ns + self.delay_ns, answer))

    def receive(self, deadline_ns: int) -> bytes | None:
        while True:
            if self.inbox and self.inbox[0][0] <= max(deadline_ns, self.t_ns):
                due, answer = self.inbox.popleft()
                self.wait(due)
                return answer
            if self.t_ns >= deadline_ns:
                return None
            self.wait(deadline_ns)

    def wait(self, until_ns: int) -> None:
        while self.t_ns < until_ns:
            step = min(until_ns - self.t_ns, MS)
            self.t_ns += step
            for rotor in self.rotors:
                rotor.advance(step * 1e-9)
            self.emulator.process(self.t_ns)

    # what a test does with it
    def start(self) -> "Bench":
        self.driver.open()
        self.driver.enable(self.context.mode)
        return self

    def read(self) -> JointState:
        self.driver.read(self.out, self.t_ns + MS)
        return self.out

    def write(self, **goals: float) -> None:
        for key, value in goals.items():
            getattr(self.cmd, key)[:] = value
        self.cmd.valid_until_ns = self.t_ns + 10 * MS
        self.driver.write(self.cmd, self.t_ns + MS)

    def run(self, ms: int, **goals: float) -> JointState:
        for _ in range(ms):
            begin = self.t_ns
            self.read()
            self.write(**goals)
            self.wait(begin + MS)
        return self.read()

    def torques(self) -> list[bool]:
        return [node.torque for node in self.nodes]
