"""What rows of hardware share: an arm of six real joints, who answers at the other end, ticks without a clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cosim.bench.rows import NotMeasured
from cosim.errors import RunError
from cosim.execution.engine import Engine
from cosim.hardware.emulation.server import EmulationServer
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from cosim.timing.clock_sources import PythonClock
from cosim.timing.clocks import native_clock
from cosim.timing.native_loop import LoopStatus, PaceMemory, SharedWord, TickRing
from cosim.timing.pacing import Pacing, settings
from cosim.timing.privileges import acquire, quiet_interpreter

JOINTS = tuple(f"joint{k}" for k in range(1, 7))
GEAR = 9.0  # turns of a rotor per turn of its joint
STALE = 0.1  # s: a machine that stands still for less does not end a run
LINE_SPEED = 1e6  # bit/s of a serial line
BYTE_NS = 10_000  # on it: start, eight bits of data, stop
SPIN_NS = 200_000  # before the end of a wait for the wire, in which the clock is looked at
NEVER_NS = 1 << 62
DEADLINE_NS = 1_000_000_000  # of what ticks without a clock wait for
SOON_NS = 5_000_000  # that drives may take to say where they are
WARM = 20  # ticks
STEP = "schedule.step=1 ms"  # of emulated drives
READY = "emulating"
ROOT = Path(__file__).parents[2]


# --- the rig ----------------------------------------------------------------------------------------


def rig(drivers: Sequence[dict[str, Any]], step: float, **guard: Any) -> dict[str, Any]:
    """A small arm that swings under computed torque, every joint behind one of `drivers`; guard: keys of its guard."""
    bodies = [
        {
            "name": f"link{k}",
            "joint": joint,
            "axis": [0, k % 2, 1 - k % 2],
            "origin": {"xyz": [0, 0, 0.05 * bool(k)]},
            "mass": 0.05,
            "com": [0, 0, 0.025],
            "inertia": [2e-5, 2e-5, 1e-5],
            **({"parent": f"link{k - 1}"} if k else {}),
        }
        for k, joint in enumerate(JOINTS)
    ]
    motor = {"type": "dc_motor", "resistance": 0.1, "inductance": 2e-4, "torque_constant": 0.1, "ratio": GEAR}
    motor |= {"rotor_inertia": 4e-5, "viscous": 0.05, "bandwidth": 200}
    limits = {"lower": -2, "upper": 2, "velocity": 3, "effort": 2}
    sine = {"type": "sine", "amplitude": 0.2, "frequency": 0.5, "ramp": 0.5}
    return {
        "mechanism": {"bodies": bodies},
        "joints": {"all": {"actuator": motor, "limits": limits}},
        "controllers": [{"name": "arm", "type": "computed_torque", "kp": 6, "kd": 0.3, "trajectory": sine}],
        "guard": {"stale": STALE} | guard,
        "drivers": list(drivers),
        "schedule": {
            "step": step,
            "integrator": "rk4",
            "substeps": 2,
            "realtime": {"overrun": "skip", "grace": 0.2},
            "blend": 0.1,
        },
    }


def moteus(interface: str, channel: str, first: int, n: int, watchdog: float = 0.1) -> dict[str, Any]:
    """n drives on a CAN bus, those of the joints from the `first`."""
    bus = {"interface": interface, "channel": channel, "fd": True, "bitrate": 1e6, "data_bitrate": 5e6}
    joints = {JOINTS[k]: {"id": k + 1, "ratio": GEAR} for k in range(first, first + n)}
    return {"name": f"line{first}", "type": "moteus", "bus": bus, "watchdog": watchdog, "joints": joints}


def dynamixel(port: Path) -> dict[str, Any]:
    """All drives on a serial line."""
    line = {"port": str(port), "baudrate": LINE_SPEED}
    joints = {joint: {"id": k + 1} for k, joint in enumerate(JOINTS)}
    return {"name": "line", "type": "dynamixel", "port": line, "watchdog": 1.0, "joints": joints}


def write(folder: Path, data: dict[str, Any]) -> Path:
    """The rig as a file."""
    path = folder / "rig.yaml"
    path.write_text(json.dumps(data))  # which is YAML too
    return path


def channels(interface: str) -> tuple[str, str]:
    """Two lines that no other process uses at the moment."""
    a, b = os.getpid() >> 8 & 0xFF, os.getpid() & 0xFF
    multicast = interface == "udp_multicast"
    one, other = (f"239.{200 + k}.{a}.{b}" if multicast else f"bench {os.getpid()} {k}" for k in range(2))
    return one, other


# --- the other end ------------------------------------------------------------------------------------


class Paused:
    """The time of emulated drives: the clock's, until it stands still and is moved on by hand."""

    def __init__(self) -> None:
        self._t_ns: int | None = None

    def __call__(self) -> int:
        return time.monotonic_ns() if self._t_ns is None else self._t_ns

    def move(self, by_ns: int) -> None:
        self._t_ns = self() + by_ns


@contextmanager
def served(emulation: EmulationServer) -> Iterator[None]:
    """A thread answers meanwhile."""
    thread = threading.Thread(target=emulation.serve, name="emulation", daemon=True)
    thread.start()
    try:
        yield
    finally:
        emulation.stopped = True
        thread.join()
        emulation.stopped = False


def emulated(path: Path, clock: Callable[[], int] = time.monotonic_ns) -> EmulationServer:
    """The drives of a rig, in steps of 1 ms."""
    return emulation_of(read_rig(path, [STEP]), clock=clock)


@contextmanager
def elsewhere(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Another Python, from when it says that it emulates; afterwards it is gone. Raises NotMeasured where it ends
    before, with the last line it said."""
    command = [sys.executable, "-u", *arguments]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    with subprocess.Popen(command, env=environment, **piped) as process:
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said = line.strip() or said
                if said.startswith(READY):
                    break
            else:
                raise NotMeasured(f"the emulated drives did not come up: {said or 'nothing was said'}")
            yield process
        finally:
            process.kill()


class Paced:
    """The device's end of a serial line whose bytes take their time: a pseudo terminal has no bit rate.

    They go one after the other whatever their direction, while the drives do something else.
    """

    def __init__(self, link: Any, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._link, self._now, self._free = link, clock, 0
        self._inward: deque[tuple[int, bytes]] = deque()  # with when they are there [ns]
        self._outward: deque[tuple[int, bytes]] = deque()
        self.open, self.close, self.reopen = link.open, link.close, link.reopen
        self.name, self.meter = link.name, link.meter

    def receive(self, deadline_ns: int) -> bytes | None:
        while True:
            while self._outward and self._outward[0][0] <= self._now():
                self._link.send(self._outward.popleft()[1], self._free + DEADLINE_NS)
            if self._inward and self._inward[0][0] <= self._now():
                return self._inward.popleft()[1]
            until = min(deadline_ns, *(queue[0][0] for queue in (self._inward, self._outward) if queue), NEVER_NS)
            if chunk := self._link.receive(until - SPIN_NS):
                self._inward.append((self._over(chunk), chunk))
            elif self._now() >= deadline_ns:
                return None

    def send(self, item: bytes, deadline_ns: int) -> None:
        self._outward.append((self._over(item), item))

    def _over(self, item: bytes) -> int:
        """When an item has gone over the wire, after those before it."""
        self._free = max(self._free, self._now()) + len(item) * BYTE_NS
        return self._free


def serve_paced(path: str) -> None:
    """Emulate the drives of a rig on a serial line as fast as its wire, until the end of the process."""
    emulation = emulated(Path(path))
    for line in emulation.lines:
        line.link = Paced(line.link)
    emulation.open()
    print(READY)
    with quiet_interpreter(), acquire(Pacing()):
        emulation.serve()


# --- ticks without a clock ------------------------------------------------------------------------------


class EndlessCapacity(PythonClock):
    """Ticks follow one another; before each of them something else is done. ticks, others: how long both took [ns]."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._own, self._before = native_clock(), before
        self.ticks: list[int] = []
        self.others: list[int] = []
        self._begun = 0

    def begin(self) -> None:
        self._begun = 0

    def now(self) -> int:
        return self._own.now()

    def cpu(self) -> int:
        return self._own.cpu()

    def wait(self, due_ns: int) -> int:
        ended = self.now()
        if self._begun:
            self.ticks.append(ended - self._begun)
        self._before()
        self._begun = self.now()
        self.others.append(self._begun - ended)
        return self._begun


def arm(engine: Engine) -> None:
    """Connect drivers, switch the motors on, begin from where the joints are."""
    engine.open()
    engine.arm()
    engine.begin_from_measured(0.1, time.monotonic_ns() + SOON_NS)


def ticks(engine: Engine, clock: EndlessCapacity, count: int) -> np.ndarray:
    """(count, tasks + 1) ns: each task of so many ticks, and the whole tick, with what the loop does around its tasks.

    Raises RunError with what ended them before.
    """
    rings = TickRing(engine.program, count + 1, stamped=True)
    rings.words[SharedWord.START], rings.words[SharedWord.PULSED] = clock.now(), 1
    pace = PaceMemory(clock, settings(Pacing(), engine.simulation.step_ns), np.full(len(engine.stages), DEADLINE_NS))
    clock.begin()
    clock.ticks.clear()
    engine.take(rings, count + 1, pace)  # a tick is over when the next one begins
    if rings.status is not LoopStatus.FINISHED:
        raise RunError(engine.outcome(rings.status) or "the ticks ended before their time")
    _, stamps = rings.read(count)
    return np.column_stack([np.diff(stamps[:, 1:-1], axis=1), clock.ticks[:count]])


@contextmanager
def answered_between(rig: Rig) -> Iterator[tuple[Engine, EndlessCapacity]]:
    """The engine of a rig after its first ticks, and the clock for those to come: before each of them the emulated
    drives, in the same thread, take what was sent to them, answer, and move by a step."""
    clock = Paused()
    emulation, engine = emulated(rig.spec.path, clock), rig.engine()

    def answer() -> None:
        clock.move(emulation.step_ns)
        emulation.turn()

    emulation.open()
    with closing(emulation), closing(engine):
        with served(emulation):  # drives are asked and waited for while they are set up
            arm(engine)
            ticks(engine, EndlessCapacity(), WARM)
        yield engine, EndlessCapacity(answer)
