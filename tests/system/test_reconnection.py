"""An unplugged bus stops the run; after reconnection the rig can be armed, and its drives are checked again."""

import threading
import time

import pytest

from cosim.core.errors import InputError
from cosim.execution.scheduler import SchedulerState
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import load_rig
from cosim.rig.sections.rig_spec import read_rig

RIG = """
drivers:
  - {type: dynamixel, port: {port: PORT, baudrate: 1e6}, watchdog: 2 s, joints: {hinge: {id: 1}}}
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disc, joint: hinge, axis: [0, 0, 1], mass: 1, inertia: [0.01, 0.01, 0.01]}]
joints:
  hinge: {limits: {lower: -3, upper: 3, velocity: 4, effort: 2}}
controllers: [{type: pid, kp: 0.5, ki: 0, kd: 0.1, trajectory: {type: sine, amplitude: 0.2, frequency: 0.5}}]
emulator: {voltage: 12 V}
guard: {stale: 1 s, watchdog: 10 s}
schedule: {step: 10 ms, duration: 5 s, realtime: {overrun: skip, warm_up: 60}}
"""
PATIENCE = 20.0  # s


class Emulated:
    """The drive in a thread; its line can be unplugged."""

    def __init__(self, path):
        self.path = path
        self.plug()

    def plug(self):
        self.emulation = emulation_of(read_rig(self.path, ["schedule.step=0.001"]))
        self.emulation.open()
        self.thread = threading.Thread(target=self.emulation.serve)
        self.thread.start()

    def unplug(self):
        self.emulation.stopped = True
        self.thread.join(PATIENCE)
        self.emulation.close()


@pytest.fixture
def bench(tmp_path):
    """(the emulated drive, a scheduler of the rig that drives it)."""
    file = tmp_path / "rig.yaml"
    file.write_text(RIG.replace("PORT", str(tmp_path / "port")))
    emulated = Emulated(file)
    rig = load_rig(file)
    try:
        with rig.scheduler() as scheduler:
            yield emulated, scheduler
    finally:
        if emulated.thread.is_alive():
            emulated.unplug()


def ticks(scheduler, n):
    """Read at least n ticks."""
    seen, end = 0, time.monotonic() + PATIENCE
    while seen < n and (block := scheduler.read()) is not None:
        seen += len(block.numbers)
        assert time.monotonic() < end
    return seen


def test_an_unplugged_bus_stops_the_run_and_the_rig_can_be_armed_after_reconnection(bench):
    emulated, scheduler = bench
    scheduler.prepare()
    scheduler.arm()
    scheduler.start()
    assert ticks(scheduler, 20) >= 20
    emulated.unplug()
    list(iter(scheduler.read, None))
    assert scheduler.state is SchedulerState.FAULT
    assert (
        "the connection is lost" in scheduler.fault
        and "check the cable and the power of the adapter" in scheduler.fault
    )
    scheduler.reset()
    with pytest.raises(InputError, match="no such port"):
        scheduler.arm()  # it is still away
    emulated.plug()
    scheduler.arm()
    scheduler.start(20)
    assert ticks(scheduler, 20) == 20
    list(iter(scheduler.read, None))
    assert scheduler.state is SchedulerState.STOPPED and not scheduler.fault
