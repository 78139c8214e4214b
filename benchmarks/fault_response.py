"""Faults of real motors, and the number of ticks until the motors are commanded off."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.emulated_rigs import ONE_CAN_BUS, can_rig
from benchmarks.emulation import emulation_for, serving
from benchmarks.peers import import_peer
from cosim import load_rig
from cosim.core.driver_contract import BusItem
from cosim.core.errors import RunError
from cosim.core.types import JointState
from cosim.execution.hardware.emulation.server import EmulationServer
from cosim.execution.hardware_engine import HardwareEngine

COMMANDS_BEFORE = 100  # of a run, before the fault is injected
LONGEST_RUN = 4.0  # s; a run that does not notice the fault ends by itself
BUTTON = "button"  # file of the emergency stop
CAN_ERR_BUSOFF = 0x40  # linux/can/error.h
TIMING: tuple[str, ...] = ()  # overrides of the rig's step and limits of time


class FaultObserver:
    """Records times [ns] of a running engine by intercepting calls: ticks, received frames, the stop of its driver.

    `inject` is called after so many `commands`.

    ticks: begins of ticks. injected, stopped: of the fault and of the first `stop` after it. last: by identifier, when
    the last frame was received. reported: when the earliest frame of the read arrived that first reported a fault.
    Zero stands for never.
    """

    def __init__(self, engine: HardwareEngine, inject: Callable[[], object], commands: int) -> None:
        (group,) = engine.hardware_manager.groups
        driver = group.hardware
        assert driver is not None
        self._inject, self._commands, self._step_ns = inject, commands, engine.tick_model.step_ns
        self._frames_ns: list[int] = []  # of the current read
        self.ticks: list[int] = []
        self.injected = self.stopped = self.reported = 0
        self.last: dict[int, int] = {}
        driver.link.receive = intercept(driver.link.receive, after=self._received)
        driver.read = intercept(driver.read, before=self._begin, after=self._read)
        driver.write = intercept(driver.write, after=self._written)
        driver.stop = intercept(driver.stop, before=self._stop)

    def _begin(self) -> None:
        """Of a tick: it begins with the read."""
        self.ticks.append(time.monotonic_ns())
        self._frames_ns.clear()

    def _received(self, frame: BusItem | None, *_: object) -> None:
        if frame is not None:
            self.last[frame.id] = frame.t_ns
            self._frames_ns.append(frame.t_ns)

    def _read(self, _: None, out: JointState, deadline_ns: int) -> None:
        if not self.reported and self._frames_ns and out.fault.any():
            self.reported = min(self._frames_ns)

    def _written(self, *_: object) -> None:
        self._commands -= 1
        if self._commands == 0:
            self._inject()
            self.injected = time.monotonic_ns()

    def _stop(self) -> None:
        if self.injected and not self.stopped:
            self.stopped = time.monotonic_ns()

    def ticks_since(self, visible: int) -> int:
        """Number of ticks that began after the time `visible` [ns], up to the one that commanded the motors off.

        The last tick may take until the next one would be due; every further step counts as one tick more.
        """
        begun = [t for t in self.ticks if t <= self.stopped]
        extra = (self.stopped - begun[-1]) // self._step_ns - 1
        return sum(t > visible for t in begun) + max(extra, 0)


def intercept(
    call: Callable[..., Any],
    before: Callable[[], None] = lambda: None,
    after: Callable[..., None] = lambda *_: None,
) -> Callable[..., Any]:
    """`call`, with `before()` before it and `after(result, *arguments)` after it."""

    def wrapped(*arguments: Any) -> Any:
        before()
        result = call(*arguments)
        after(result, *arguments)
        return result

    return wrapped


@dataclass(frozen=True)
class FaultCase:
    """A fault that is injected into the emulated drives of a run, and the stop that must follow.

    inject: causes the fault; it gets the emulation, the folder of the emergency stop and the channel of the bus.
    message: part of the reason that must stop the run. visible: time [ns] from which the host can notice the fault.
    """

    inject: Callable[[EmulationServer, Path, str], object]
    message: str
    visible: Callable[[FaultObserver, float], int]


def overheat(emulation: EmulationServer, folder: Path, channel: str) -> None:
    emulation.motors.motors[0].fault_cause = "overtemperature"


def switch_bus_off(emulation: EmulationServer, folder: Path, channel: str) -> None:
    """Send the error frame with which a CAN controller reports that it is bus off."""
    can = import_peer("can")
    with can.Bus(interface="virtual", channel=channel, ignore_config=True) as bus:
        bus.send(can.Message(arbitration_id=CAN_ERR_BUSOFF, is_error_frame=True))


def cut_power(emulation: EmulationServer, folder: Path, channel: str) -> None:
    """Drives without power do not reply."""
    emulation.stopped = True


def press_button(emulation: EmulationServer, folder: Path, channel: str) -> None:
    (folder / BUTTON).write_text("1")


FAULTS = {
    "motor fault": FaultCase(overheat, " reports ", lambda observer, stale: observer.reported),
    "bus off": FaultCase(switch_bus_off, "bus off", lambda observer, stale: observer.injected),
    "power loss": FaultCase(
        cut_power, "no feedback", lambda observer, stale: min(observer.last.values()) + round(stale * 1e9)
    ),
    "e-stop": FaultCase(press_button, "emergency stop", lambda observer, stale: observer.injected),
}


def response_to(fault: FaultCase, commands: int = COMMANDS_BEFORE) -> tuple[int, int]:
    """(ticks, ns) from when the fault is visible to when the motors are commanded off; commands: before it is injected.

    Raises RunError when the run ends for another reason.
    """
    path, keys = can_rig(ONE_CAN_BUS, "virtual", 1)
    channel = keys[-1].partition("=")[2]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / BUTTON).write_text("0")
        keys += [f"guard.estop={{file: {folder / BUTTON}}}", "guard.watchdog=60 s", *TIMING]
        rig, emulation = load_rig(path, keys, interpret=False), emulation_for(path, keys)
        emulation.open()
        with closing(emulation), serving(emulation), rig.scheduler() as scheduler:
            scheduler.prepare()
            scheduler.arm()
            inject = partial(fault.inject, emulation, folder, channel)
            assert isinstance(scheduler.engine, HardwareEngine)
            observer = FaultObserver(scheduler.engine, inject, commands)
            scheduler.start(round(LONGEST_RUN / rig.tick_model.step))
            while scheduler.read() is not None:
                pass
            reason = scheduler.fault
    if fault.message not in reason:
        raise RunError(f"expected a stop with '{fault.message.strip()}', got: {reason or 'no stop'}")
    if not observer.stopped:
        raise RunError(f"the motors were not commanded off after: {reason}")
    stale = rig.spec.guard.stale
    assert stale is not None
    visible = fault.visible(observer, stale)
    return observer.ticks_since(visible), observer.stopped - visible
