"""Things that go wrong with real motors, and how many ticks pass until they are commanded off."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from cosim import load_rig
from cosim.bench import emulated_rigs
from cosim.bench.emulation import open_emulation, serving
from cosim.bench.peers import import_peer
from cosim.errors import RunError
from cosim.hardware.emulation.server import EmulationServer

STEP = 5e-3  # s
CYCLES = 100  # of a rig, before something goes wrong
LASTING = 4.0  # s until a rig that does not see it ends by itself
BUTTON = "button"  # file of the emergency stop


class FaultObserver:
    """Sees an engine from outside: when its ticks begin, what its driver hears, when it is stopped [ns].

    `after` so many commands something goes wrong.
    """

    def __init__(self, engine: Any, wrong: Callable[[], object], after: int) -> None:
        (group,) = engine.hardware_manager.groups
        self._wrong, self._left, self._step_ns = wrong, after, engine.simulation.step_ns
        self.begun: list[int] = []
        self.happened = self.stopped = 0
        self.last: dict[int, int] = {}  # by identifier of the frame, when it was heard last
        self.faulty = 0  # when a drive first told of a fault
        self._decode = import_module("cosim.drivers.moteus.codec").decode_feedback
        self._fault = import_module("cosim.drivers.moteus.registers").Mode.FAULT
        for where, name, before, after_it in (
            (engine.world, "begin", self._tick, None),
            (group.driver, "write", None, self._commanded),
            (group.driver, "stop", self._stop, None),
            (group.driver.link, "receive", None, self._heard),
        ):
            setattr(where, name, intercept(getattr(where, name), before, after_it))

    def _tick(self) -> None:
        self.begun.append(time.monotonic_ns())

    def _commanded(self, _: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self._wrong()
            self.happened = time.monotonic_ns()

    def _stop(self) -> None:
        if self.happened and not self.stopped:
            self.stopped = time.monotonic_ns()

    def _heard(self, frame: Any) -> None:
        if frame is None:
            return
        self.last[frame.id] = frame.t_ns
        told = None if self.faulty else self._decode(frame.data)
        if told is not None and told.mode == self._fault:
            self.faulty = frame.t_ns

    def ticks_since(self, arrived: int) -> int:
        """Ticks from the one in which something arrived to the one in which the motors were commanded off.

        The last of them may take until the next would be due; it counts again for every step that it takes longer.
        """
        begun = [t for t in self.begun if t <= self.stopped]
        longer = (self.stopped - begun[-1]) // self._step_ns - 1
        return sum(t > arrived for t in begun) + max(longer, 0)


def intercept(call: Callable[..., Any], before: Callable[[], None] | None, after: Callable[[Any], None] | None) -> Any:
    """The same call, with something before it, or after it with its result."""

    def wrapped(*arguments: Any) -> Any:
        if before is not None:
            before()
        result = call(*arguments)
        if after is not None:
            after(result)
        return result

    return wrapped


@dataclass(frozen=True)
class FaultCase:
    """wrong: what happens, to the emulation, with the rig's folder and the channel of its bus; word: that the run is
    stopped with; arrived: when that was there for the host to see [ns]."""

    wrong: Callable[[EmulationServer, Path, str], object]
    word: str
    arrived: Callable[[FaultObserver], int]


def overheat(emulation: EmulationServer, folder: Path, channel: str) -> None:
    emulation.motors.motors[0].trouble = "overtemperature"


def switch_bus_off(emulation: EmulationServer, folder: Path, channel: str) -> None:
    """As a controller on the bus tells it: by an error frame."""
    can = import_peer("can")
    with can.Bus(interface="virtual", channel=channel, ignore_config=True) as bus:
        bus.send(can.Message(arbitration_id=import_module("cosim.drivers.transport.can").BUS_OFF, is_error_frame=True))


def cut_power(emulation: EmulationServer, folder: Path, channel: str) -> None:
    """Drives without power say nothing."""
    emulation.stopped = True


def press(emulation: EmulationServer, folder: Path, channel: str) -> None:
    (folder / BUTTON).write_text("1")


FAULTS = {
    "motor fault": FaultCase(overheat, " reports ", lambda seen: seen.faulty),
    "bus off": FaultCase(switch_bus_off, "bus off", lambda seen: seen.happened),
    "power loss": FaultCase(
        cut_power, "not been heard of", lambda seen: min(seen.last.values()) + round(emulated_rigs.STALE * 1e9)
    ),
    "e-stop": FaultCase(press, "emergency stop", lambda seen: seen.happened),
}


def response_to(fault: FaultCase) -> tuple[int, int]:
    """(ticks, ns) from when the fault could be seen to when the motors were commanded off.

    Raises RunError when something else ended the run.
    """
    channel, _ = emulated_rigs.channels("virtual")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / BUTTON).write_text("0")
        estop = {"file": str(folder / BUTTON)}
        data = emulated_rigs.rig([emulated_rigs.moteus("virtual", channel, 0, 6, 1.0)], STEP, watchdog=60, estop=estop)
        path = emulated_rigs.write(folder, data)
        rig, emulation = load_rig(path, interpret=False), open_emulation(path)
        emulation.open()
        with closing(emulation), serving(emulation), rig.scheduler() as scheduler:
            scheduler.prepare()
            scheduler.arm()
            witness = FaultObserver(scheduler.engine, partial(fault.wrong, emulation, folder, channel), CYCLES)
            scheduler.start(round(LASTING / STEP))
            while scheduler.read() is not None:
                pass
            told = scheduler.fault
    if fault.word not in told:
        raise RunError(f"the run was to be stopped by '{fault.word.strip()}', and was: {told or 'it went on'}")
    if not witness.stopped:
        raise RunError(f"the motors were never commanded off after: {told}")
    arrived = fault.arrived(witness)
    return witness.ticks_since(arrived), witness.stopped - arrived
