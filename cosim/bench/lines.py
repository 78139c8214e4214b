"""What rows of hardware share: an arm of six real joints, who answers at the other end, ticks without a clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cosim.clock import PythonClock
from cosim.compile.clocks import native_clock
from cosim.compile.ticks import Pace, Rings, Status, Word
from cosim.emulation.emulation import Emulation
from cosim.engine import Engine
from cosim.errors import RunError
from cosim.pacing import Pacing, settings
from cosim.realtime import calm, take
from cosim.rig.emulating import emulation_of
from cosim.rig.spec import read_rig

JOINTS = tuple(f"joint{k}" for k in range(1, 7))
STALE = 0.1  # s: a machine that stands still for less does not end a run
LINE_SPEED = 1e6  # bit/s of a serial line
BYTE_NS = 10_000  # on it: start, eight bits of data, stop
SPIN_NS = 200_000  # before the end of a wait for the wire, in which the clock is looked at
DEADLINE_NS = 1_000_000_000  # of what ticks without a clock wait for
STEP = "schedule.step=1 ms"  # of emulated drives
READY = "emulating"
ROOT = Path(__file__).parents[2]


# --- the rig ----------------------------------------------------------------------------------------


def rig(drivers: Sequence[dict[str, Any]], step: float, gear: float, **guard: Any) -> dict[str, Any]:
    """A small arm that swings, every joint behind one of `drivers`, under computed torque; gear: of all motors."""
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
    motor = {"type": "dc_motor", "resistance": 0.1, "inductance": 2e-4, "torque_constant": 0.1 * 9 / gear}
    motor |= {"ratio": gear, "rotor_inertia": 3e-3 / gear**2, "viscous": 0.01, "bandwidth": 200}
    limits = {"lower": -2, "upper": 2, "velocity": 3, "effort": 2}
    sine = {"type": "sine", "amplitude": 0.2, "frequency": 0.5, "ramp": 0.5}
    return {
        "mechanism": {"bodies": bodies},
        "joints": {"all": {"actuator": motor, "limits": limits}},
        "controllers": [{"name": "arm", "type": "computed_torque", "kp": 6, "kd": 0.3, "trajectory": sine}],
        "guard": {"stale": STALE, **guard},
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


GEAR = 9.0


def write(folder: Path, data: dict[str, Any]) -> Path:
    """The rig as a file."""
    path = folder / "rig.yaml"
    path.write_text(json.dumps(data))  # which is YAML too
    return path


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
def served(emulation: Emulation) -> Iterator[None]:
    """A thread answers meanwhile."""
    thread = threading.Thread(target=emulation.serve, name="emulation", daemon=True)
    thread.start()
    try:
        yield
    finally:
        emulation.stopped = True
        thread.join()
        emulation.stopped = False


def emulated(path: Path, clock: Callable[[], int] = time.monotonic_ns) -> Emulation:
    """The drives of a rig, in steps of 1 ms."""
    return emulation_of(read_rig(path, [STEP]), clock=clock)


@contextmanager
def elsewhere(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Another Python, from when it says that it emulates; afterwards it is gone. Raises RunError where it ends before,
    with the last line it said."""
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
                raise RunError(f"the emulated drives did not come up: {said or 'nothing was said'}")
            yield process
        finally:
            process.kill()


class Paced:
    """The device's end of a serial line whose bytes take their time: a pseudo terminal has no bit rate."""

    def __init__(self, link: Any) -> None:
        self._link, self._free = link, 0
        self.open, self.close, self.reopen = link.open, link.close, link.reopen
        self.name, self.meter = link.name, link.meter

    def receive(self, deadline_ns: int) -> bytes | None:
        chunk = self._link.receive(deadline_ns)
        if chunk:
            self._pass(len(chunk))
        return chunk

    def send(self, item: bytes, deadline_ns: int) -> None:
        self._pass(len(item))
        self._link.send(item, max(deadline_ns, self._free + DEADLINE_NS))

    def _pass(self, count: int) -> None:
        """So many bytes go over the wire, after those before them."""
        clock = native_clock()
        self._free = max(self._free, clock.now()) + count * BYTE_NS
        clock.wait_until(self._free, SPIN_NS)


def serve_paced(path: str) -> None:
    """Emulate the drives of a rig on a serial line as fast as its wire, until the end of the process."""
    emulation = emulated(Path(path))
    for line in emulation.lines:
        line.link = Paced(line.link)
    emulation.open()
    print(READY)
    with calm(), take(Pacing()):
        emulation.serve()


# --- ticks without a clock ------------------------------------------------------------------------------


class Free(PythonClock):
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


def ticks(engine: Engine, clock: Free, count: int) -> np.ndarray:
    """(count, tasks + 1) ns: each task of so many ticks, and the whole tick, with what the loop does around its tasks.

    Raises RunError with what ended them before.
    """
    rings = Rings(engine.program, count + 1, stamped=True)
    rings.words[Word.START], rings.words[Word.PULSED] = clock.now(), 1
    pace = Pace(clock, settings(Pacing(), engine.simulation.step_ns), np.full(len(engine.stages), DEADLINE_NS))
    clock.begin()
    clock.ticks.clear()
    engine.take(rings, count + 1, pace)  # a tick is over when the next one begins
    if rings.status is not Status.FINISHED:
        raise RunError(engine.outcome(rings.status) or "the ticks ended before their time")
    _, stamps = rings.read(count)
    return np.column_stack([np.diff(stamps[:, 1:-1], axis=1), clock.ticks[:count]])


def traffic(spec: Any, context: Any) -> tuple[list[Any], list[Any]]:
    """What one cycle of a driver sends and gets back."""
    found = spec.plugin.module.traffic(spec.plugin.params, context)
    return list(found.out), list(found.back)


def wire_seconds(items: Sequence[Any], params: Any) -> float:
    """That items take on the wire of a line."""
    seconds = import_module("drivers.transport").seconds
    return sum(seconds(item, params) for item in items)
