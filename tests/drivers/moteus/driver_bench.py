"""A driver of moteus drives, emulated drives and the bus between them, on a fake clock."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from cosim.drivers import moteus
from cosim.drivers.common.motor import Rotor
from cosim.drivers.moteus.driver import MoteusDriver
from cosim.drivers.moteus.emulator import Emulator
from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost
from cosim.errors import SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits
from tests.kit.clock import MS
from tests.kit.connection import FakeConnection


class Cable(FakeConnection):
    """A bus with emulated drives; waiting on it advances the time."""

    name = "the cable"

    def __init__(self, emulator: Emulator, rotors: list[Rotor]) -> None:
        super().__init__()
        self.emulator, self.rotors = emulator, rotors
        self.answers: deque[CanFrame] = deque()
        self.sent: list[CanFrame] = []
        self.deaf: set[int] = set()  # nodes that receive nothing
        self.cut = False
        self.spoil: Callable[[CanFrame], CanFrame] = lambda frame: frame
        for servo in emulator.servos:
            servo.reset(self.t_ns)

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        if self.cut:
            raise ConnectionLost("unplugged", self.name)
        self.sent.append(item)
        if item.id & 0x7F not in self.deaf:
            self.answers.extend(self.spoil(frame) for frame in self.emulator.handle(item, self.t_ns))

    def receive(self, deadline_ns: int) -> CanFrame | None:
        if self.cut:
            raise ConnectionLost("unplugged", self.name)
        while not self.answers and self.t_ns < deadline_ns:
            self.run(min(MS, deadline_ns - self.t_ns))
        return self.answers.popleft()._replace(t_ns=self.t_ns) if self.answers else None

    def run(self, duration_ns: int) -> None:
        while duration_ns > 0:
            step = min(duration_ns, MS)
            for rotor in self.rotors:
                rotor.advance(step * 1e-9)
            self.t_ns, duration_ns = self.t_ns + step, duration_ns - step
            self.emulator.process(self.t_ns)


def _place(*keys: str) -> SourceLocation:
    return SourceLocation("rig.yaml", 7, ".".join(keys))


class Bench:
    """Drives 3, 8, … with rotors, their driver, and a state and a command for it."""

    def __init__(self, n: int = 2, watchdog: float = 0.1, brake: bool = False, **joint: Any) -> None:
        self.n = n
        self.rotors = [Rotor() for _ in range(n)]
        wiring = tuple(moteus.JointParams(id=3 + 5 * k, **joint) for k in range(n))
        limits = Limits(*(np.full(n, v) for v in (-np.inf, np.inf, 50.0, 1.5)))
        names = tuple(f"j{k}" for k in range(n))
        self.context = DriverContext(
            names, wiring, limits, 1e-3, "effort", lambda *keys: SourceLocation("rig.yaml", 7, ".".join(keys))
        )
        params = moteus.Params(bus=CanParams("virtual", "x", fd=True), watchdog=watchdog)
        self.cable = Cable(moteus.emulate(params, self.context, self.rotors), self.rotors)
        self.servos = self.cable.emulator.servos
        self.driver = MoteusDriver(self.cable, self.context, [w.id for w in wiring], watchdog, brake=brake)
        self.state, self.command = JointState.zeros(n), JointCommand.zeros(n)

    def cycle(self, times: int = 1, **values: Any) -> None:
        """1 ms, write, read."""
        for name, value in values.items():
            getattr(self.command, name)[:] = value
        for _ in range(times):
            self.cable.run(MS)
            self.command.valid_until_ns = self.cable.t_ns + 10 * MS
            self.driver.write(self.command, self.cable.t_ns + MS)
            self.driver.read(self.state, self.cable.t_ns)
