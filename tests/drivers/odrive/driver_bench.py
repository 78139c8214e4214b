"""A driver of two ODrives, emulated drives and the connection between them, on a fake clock."""

from collections import deque
from typing import Any

import numpy as np

from cosim.drivers import odrive
from cosim.drivers.common.motor import Rotor
from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost, SerialParams
from cosim.errors import SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits
from tests.kit.clock import MS, FakeClock
from tests.kit.connection import FakeConnection

BUS = CanParams(interface="virtual", channel="bus")


PORT = SerialParams(port="/dev/ttyACM0")


class Wire(FakeConnection):
    """Waiting for an item advances motors and drives in steps of 1 ms."""

    def __init__(self, emulator, rotors):
        super().__init__(FakeClock(time=MS))
        self.emulator, self.rotors = emulator, rotors
        self.queue = deque()
        self.broken = self.mute = False
        self.sent = []
        self.spoil = lambda item: [item]  # what arrives of an item of the drives

    def send(self, item, deadline_ns):
        if self.broken or not self.is_open:
            raise ConnectionLost("the connection is lost; check the cable", "wire")
        self.sent.append(item)
        if not self.mute:
            self._arrive(self.emulator.handle(item, self.t_ns))

    def receive(self, deadline_ns):
        if self.broken:
            raise ConnectionLost("the connection is lost; check the cable", "wire")
        while not self.queue and self.t_ns < deadline_ns:
            self.step()
        if not self.queue:
            return None
        return self.queue.popleft()

    def step(self, times=1):
        for _ in range(times):
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.t_ns += MS
            items = self.emulator.process(self.t_ns)
            if not self.mute:
                self._arrive(items)

    def _arrive(self, items):
        for item in items:
            stamped = item._replace(t_ns=self.t_ns) if isinstance(item, CanFrame) else item
            self.queue.extend(self.spoil(stamped))


class Setup:
    """Two joints; the second has the opposite direction and a gear of 2."""

    def __init__(
        self, monkeypatch, kind, mode="effort", limits=None, wiring=({}, {"direction": -1, "ratio": 2.0}), **keys
    ):
        address = "id" if kind == "bus" else "axis"
        numbers = (3, 17) if kind == "bus" else (0, 1)
        self.params = odrive.Params(**{"bus": BUS} if kind == "bus" else {"port": PORT}, **keys)
        joints = [odrive.JointParams(**{address: n}, **w) for n, w in zip(numbers, wiring, strict=True)]
        bounds = limits or (np.inf, np.inf)
        free = np.full(2, np.inf)
        self.context = DriverContext(
            joints=("shoulder", "elbow"),
            wiring=tuple(joints),
            limits=Limits(-free, free, np.full(2, bounds[0]), np.full(2, bounds[1])),
            period=1e-3,
            mode=mode,
            place=lambda *keys: SourceLocation("rig.yaml", 7, ".".join(map(str, keys))),
        )
        self.rotors = [Rotor(), Rotor()]
        self.emulator: Any = odrive.emulate(self.params, self.context, self.rotors)
        self.wire: Any = Wire(self.emulator, self.rotors)
        self.wire.name = (self.params.bus or self.params.port).name
        self.driver = odrive.load(self.params, self.context, self.wire)
        self.state, self.command = JointState.zeros(2), JointCommand.zeros(2)

    @property
    def axes(self) -> list[Any]:
        if isinstance(self.emulator, odrive.Emulator):
            return [node.axis for node in self.emulator.nodes]
        return list(self.emulator.axes.values())

    def read(self, patience=2 * MS):
        self.driver.read(self.state, self.wire.t_ns + patience)
        return self.state

    def write(self):
        self.command.valid_until_ns = self.wire.t_ns + 5 * MS
        self.driver.write(self.command, self.wire.t_ns + MS)

    def cycle(self, times=1):
        for _ in range(times):
            self.write()
            self.wire.step()
            self.read()


def enabled(setup, mode, **keys):
    rig = setup(mode, **keys)
    rig.driver.open()
    rig.driver.enable(mode)
    return rig
