"""A controller that is not in this program, a CANopen master, commands the simulated axis behind its emulated drive."""

import struct
import threading
import time
import uuid
from pathlib import Path

import canopen
import pytest

from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig

RIG = Path(__file__).parents[2] / "rigs" / "axis_behind_bus.yaml"
NODE, COUNTS, LEAD = 5, 65536, 0.01  # increments per turn of the motor, m per turn
PATIENCE = 30.0  # s
REACHED, FAULT, OPERATING = 0x0400, 0x0008, 0x0027


@pytest.fixture
def bench():
    """(the emulation in a thread, a master's node on the same bus)."""
    channel = f"axis-{uuid.uuid4()}"
    bus = f"drivers.cia402.bus={{interface: virtual, channel: {channel}}}"
    emulation = emulation_of(read_rig(RIG, [bus]))
    emulation.open()
    serving = threading.Thread(target=emulation.serve)
    serving.start()
    network = canopen.Network()
    network.connect(interface="virtual", channel=channel)
    node = network.add_node(NODE, canopen.ObjectDictionary())
    node.sdo.RESPONSE_TIMEOUT = PATIENCE
    yield emulation, node
    network.disconnect()
    emulation.stopped = True
    serving.join(PATIENCE)
    emulation.close()


def tell(node, index, form, value):
    node.sdo.download(index, 0, struct.pack(form, value))


def ask(node, index, form):
    return struct.unpack(form, node.sdo.upload(index, 0))[0]


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_canopen_master_lifts_and_holds_the_axis(bench):
    """Profile position mode: the drive's own loops against gravity, friction and the inertia of the screw."""
    emulation, node = bench
    height = emulation.motors.plant.sample[0]
    assert abs(height[0]) < 2e-3  # it lies on its stop
    node.nmt.state = "OPERATIONAL"
    tell(node, 0x6060, "<b", 1)
    tell(node, 0x6081, "<I", round(0.1 / LEAD * COUNTS))
    tell(node, 0x6083, "<I", round(0.5 / LEAD * COUNTS))
    tell(node, 0x6084, "<I", round(0.5 / LEAD * COUNTS))
    for word in (0x06, 0x07, 0x0F):
        tell(node, 0x6040, "<H", word)
    until(lambda: ask(node, 0x6041, "<H") & 0x6F == OPERATING)
    tell(node, 0x607A, "<i", round(0.05 / LEAD * COUNTS))
    tell(node, 0x6040, "<H", 0x1F)
    until(lambda: abs(ask(node, 0x6064, "<i") * LEAD / COUNTS - 0.05) < 1e-4 and ask(node, 0x6041, "<H") & REACHED)
    assert not ask(node, 0x6041, "<H") & FAULT
    assert emulation.motors.plant.sample[0][0] == pytest.approx(0.05, abs=2e-4)
    assert ask(node, 0x6077, "<h") > 0  # it carries the load
    tell(node, 0x6040, "<H", 0x00)  # and lets it go
    until(lambda: emulation.motors.plant.sample[0][0] < 0.045)
