"""The package `durand` as a reference: a drive made of its CANopen node, with velocities in rpm that it does not report
and positions in units of its feed constant, behind the driver."""

import math
import threading
import time
import uuid
from typing import Any

import can
import numpy as np
import pytest

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import SourceLocation
from cosim.core.types import JointCommand, JointState, Limits
from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.transport import CanParams, now

durand = pytest.importorskip("durand", reason="durand is not installed")

pytestmark = pytest.mark.real_time
PATIENCE_NS = 30_000_000_000  # for a machine that stalls
NODE, FEED, RATED = 5, 36000, 0.5  # counts per revolution; N·m
INERTIA, FRICTION = 0.002, 0.004  # kg·m², N·m·s
U8, U16, U32 = durand.DatatypeEnum.UNSIGNED8, durand.DatatypeEnum.UNSIGNED16, durand.DatatypeEnum.UNSIGNED32
I8, I16, I32 = durand.DatatypeEnum.INTEGER8, durand.DatatypeEnum.INTEGER16, durand.DatatypeEnum.INTEGER32
# index -> (type, access, value), or by sub-index
OBJECTS: dict[int, Any] = {
    0x1000: (U32, "ro", 0x00020192),
    0x1001: (U8, "ro", 0),
    0x1016: {1: (U32, "rw", 0)},
    0x1029: {1: (U8, "rw", 0)},
    0x603F: (U16, "ro", 0),
    0x6007: (I16, "rw", 1),
    0x605A: (I16, "rw", 2),
    0x605E: (I16, "rw", 2),
    0x6040: (U16, "rw", 0),
    0x6041: (U16, "ro", 0x250),
    0x6060: (I8, "rw", 0),
    0x6061: (I8, "ro", 0),
    0x6064: (I32, "ro", 0),
    0x606C: (I32, "ro", 0),
    0x6071: (I16, "rw", 0),
    0x6072: (U16, "rw", 3000),
    0x6076: (U32, "ro", round(1e3 * RATED)),
    0x6077: (I16, "ro", 0),
    0x607A: (I32, "rw", 0),
    0x6080: (U32, "rw", 6000),
    0x6085: (U32, "rw", 100000),
    0x608F: {1: (U32, "ro", 131072), 2: (U32, "ro", 1)},
    0x6092: {1: (U32, "ro", FEED), 2: (U32, "ro", 1)},
    0x60B1: (I32, "rw", 0),
    0x60B2: (I16, "rw", 0),
    0x60FF: (I32, "rw", 0),
    0x6502: (U32, "ro", 0x3AD),
}
STATES = {0x6: 0x231, 0x7: 0x233, 0xF: 0x237}  # controlword -> statusword


class Drive:
    """A wheel with friction, turned by target torque 6071h."""

    def __init__(self, channel: str) -> None:
        self.bus = can.Bus(interface="virtual", channel=channel)
        self.network = durand.CANBusNetwork(self.bus)
        self.node = durand.MinimalNode(self.network, NODE)
        od = self.od = self.node.object_dictionary
        for index, about in OBJECTS.items():
            if isinstance(about, dict):
                od[index] = record = durand.Record()
                for sub, variable in about.items():
                    record[sub] = durand.Variable(*variable)
            else:
                od[index] = durand.Variable(*about)
        od.update_callbacks[0x6040, 0].add(self._control)
        self.position = self.velocity = self.torque = 0.0  # rad, rad/s, N·m
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _control(self, word: int) -> None:
        self.od.write(0x6041, 0, STATES.get(word & 0xF, 0x250) if word & 2 else 0x250)

    def _run(self) -> None:
        """In real time, as the driver takes the speed from the positions."""
        od, before = self.od, time.monotonic()
        while not self._leave.wait(0.001):
            at = time.monotonic()
            step, before = min(at - before, 0.02), at
            on = od.read(0x6041, 0) & 0x6F == 0x27
            self.torque = 1e-3 * RATED * od.read(0x6071, 0) if on else 0.0
            self.velocity += step * (self.torque - FRICTION * self.velocity) / INERTIA
            self.position += step * self.velocity
            od.write(0x6064, 0, round(self.position / math.tau * FEED))
            od.write(0x606C, 0, round(self.velocity * 60 / math.tau))
            od.write(0x6077, 0, round(1e3 * self.torque / RATED))
            od.write(0x6061, 0, od.read(0x6060, 0))

    def close(self) -> None:
        self._leave.set()
        self._thread.join()
        self.network.stop()  # its thread receives from the bus until then
        self.bus.shutdown()


def test_the_shaft_and_its_true_speed_are_measured():
    channel = f"durand-{uuid.uuid4()}"
    drive = Drive(channel)
    limits = Limits(*(np.full(1, bound) for bound in (-np.inf, np.inf, 100.0, 1.0)))
    place = lambda *keys: SourceLocation("rig.yaml", 7, ".".join(keys))  # noqa: E731
    context = DriverContext(("elbow",), (cia402.JointParams(id=NODE),), limits, 0.004, "effort", place)
    params = cia402.Params(bus=CanParams(interface="virtual", channel=channel), watchdog=60.0)
    driver = cia402.load(params, context)
    try:
        driver.open()
        driver.enable("effort")
        out, command, speeds = JointState.zeros(1), JointCommand.zeros(1), []
        command.effort[:] = 0.03
        end = now() + PATIENCE_NS
        while len(speeds) < 40:
            command.valid_until_ns = now() + PATIENCE_NS
            driver.write(command, now() + PATIENCE_NS)
            driver.read(out, now() + PATIENCE_NS)
            assert not out.fault.any() and now() < end
            if drive.velocity > 3.0:
                speeds.append((float(out.velocity[0]), drive.velocity))
        assert drive.torque == pytest.approx(0.03, abs=1e-3) and out.effort == pytest.approx([0.03], abs=1e-3)
        measured, true = np.mean(speeds, axis=0)
        assert measured == pytest.approx(true, rel=0.15)  # not a thousandth, as rpm taken for counts would be
        assert out.position == pytest.approx([drive.position], abs=0.5)
        driver.stop()
    finally:
        driver.close()
        drive.close()
