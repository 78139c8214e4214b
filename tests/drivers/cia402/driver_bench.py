"""A driver of CiA 402 drives, emulated drives and the bus between them, on a fake clock."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from cosim.drivers import cia402
from cosim.drivers.cia402 import driver
from cosim.drivers.common.motor import Rotor
from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost
from cosim.errors import InputError, RunError, SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits
from tests.kit.clock import MS
from tests.kit.connection import FakeConnection

BUS = CanParams(interface="virtual", channel="arm")


JOINT = cia402.JointParams


class Bench(FakeConnection):
    """Driver and emulated drives on a bus without delay; only waiting advances the time, in steps of 0.25 ms."""

    def __init__(
        self, *wiring, mode="effort", effort=math.inf, velocity=math.inf, watchdog=0.1, stop="quick", drive=None
    ):
        """drive: settings of the emulated drives; None: the ordinary ones."""
        n = len(wiring)
        limits = Limits(*(np.full(n, bound) for bound in (-math.inf, math.inf, velocity, effort)))
        names = tuple(f"joint{k}" for k in range(n))
        place = lambda *keys: SourceLocation("rig.yaml", 7, ".".join(keys))  # noqa: E731
        self.params = cia402.Params(bus=BUS, watchdog=watchdog, stop=stop)
        self.context = DriverContext(names, tuple(wiring), limits, 1e-3, mode, place)
        self.motors = [Rotor() for _ in wiring]
        emulated = () if drive is None else (cia402.EmulatedParams(**drive),) * n
        self.emulator = cia402.emulate(self.params, replace(self.context, emulated=emulated), self.motors)
        super().__init__()
        self.name = "virtual arm"
        self.queue: deque[CanFrame] = deque()
        self.sent: list[CanFrame] = []
        self.deaf = self.broken = False
        self.driver = driver.Cia402Driver(self.params, self.context, self)
        self.out, self.cmd = JointState.zeros(n), JointCommand.zeros(n)
        self.step()

    # the connection
    def send(self, item, deadline_ns):
        if self.broken:
            raise ConnectionLost("the connection is lost", self.name)
        self.sent.append(item)
        if not self.deaf:
            self._arrive(self.emulator.handle(item, self.t_ns))

    def receive(self, deadline_ns):
        if self.broken:
            raise ConnectionLost("the connection is lost", self.name)
        while not self.queue:
            if self.t_ns >= deadline_ns:
                return None
            self.step()
        return self.queue.popleft()

    # the devices
    def _arrive(self, frames):
        self.queue.extend(frame._replace(t_ns=self.t_ns) for frame in frames)

    def step(self):
        self.t_ns += MS // 4
        for motor in self.motors:
            motor.advance(0.25e-3)
        self._arrive(self.emulator.process(self.t_ns))

    def run(self, ms):
        for _ in range(4 * ms):
            self.step()

    # the program
    def write(self):
        self.cmd.valid_until_ns = self.t_ns + 5 * MS
        self.driver.write(self.cmd, self.t_ns + MS)

    def read(self):
        self.driver.read(self.out, self.t_ns + MS)
        return self.out

    def cycle(self, ticks):
        for _ in range(ticks):
            end = self.t_ns + MS
            self.read()
            self.write()
            while self.t_ns < end:
                self.step()

    def node(self, k=0):
        return self.emulator.nodes[k]


def refused(action, *arguments):
    with pytest.raises((InputError, RunError)) as error:
        action(*arguments)
    return str(error.value)
