"""Rigs for unit tests, made of stand-ins for the packages that hold the real parts; the command line; both loops on a
clock that does what it is told."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cosim import load_rig
from cosim.cli.main import main
from cosim.drivers import sim
from cosim.errors import InputErrors
from cosim.execution.engine import Engine, NativeEngine, PythonEngine, Snapshot
from cosim.rig.sections.rig_spec import RigSpec, read_rig
from cosim.tick.virtual_plant import VirtualPlant
from cosim.timing.clock_sources import PythonClock
from cosim.timing.clocks import NO_PULSE
from cosim.timing.native_loop import LoopStatus, PaceMemory, SharedWord, TickRing
from cosim.timing.pacing import Pacing, settings

HEAD = """
from cosim.types import PerJoint, param, params
def load(*parts): return parts
@params
class Params:
"""
PARTS = {
    "cosim.actuators": {
        "ideal": "    pass",
        "motor": "    resistance: float = param(unit='ohm', above=0)\n    gear: float = param(default=1.0)",
    },
    "cosim.trajectories": {
        "line": "    goal: PerJoint = param(unit='joint position')\n    time: float = param(default=1.0)",
        "still": "    pass",
    },
    "cosim.controllers": {
        "pd": "    kp: PerJoint = param(min=0)\n    kd: PerJoint = param(min=0, default=0.0)",
        "none": "    pass",
    },
}


class Rigs:
    """Writes `rig.yaml` into the current folder and reads it."""

    head = HEAD
    # lines 1 to 7; the order of the model is shoulder, elbow, thumb, tool, lift
    mechanism = """\
mechanism:
  bodies:
    - {name: upper, joint: shoulder, mass: 2 kg, inertia: [1, 1, 1], limits: {lower: -1, upper: 1, effort: 9}}
    - {name: fore, joint: elbow, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: rail, joint: lift, type: prismatic, mass: 1 kg, parent: base}
    - {name: thumb, mass: 1 kg, inertia: [1, 1, 1], parent: fore, mimic: {joint: elbow}}
    - {name: tool, type: fixed, parent: fore}
"""

    def read(self, text: str, *overrides: str) -> RigSpec:
        Path("rig.yaml").write_text(text)
        return read_rig("rig.yaml", overrides)

    def mistakes(self, text: str, *overrides: str) -> list[str]:
        with pytest.raises(InputErrors) as caught:
            self.read(text, *overrides)
        return str(caught.value).splitlines()


@pytest.fixture(scope="session")
def rig_parts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    for package, modules in PARTS.items():
        (folder / package).mkdir()
        for name, fields in modules.items():
            (folder / package / f"{name}.py").write_text(f"{HEAD}{fields}\n")
    return folder


@pytest.fixture
def rigs(rig_parts, tmp_path, monkeypatch):
    """`Rigs` in an empty folder, with the packages of `PARTS` in place of the real ones."""
    for name in [name for name in sys.modules if name in PARTS or name.rpartition(".")[0] in PARTS]:
        monkeypatch.delitem(sys.modules, name)
    for package in PARTS:
        stand_in = ModuleType(package)
        stand_in.__path__ = [str(rig_parts / package)]
        monkeypatch.setitem(sys.modules, package, stand_in)
    importlib.invalidate_caches()
    monkeypatch.chdir(tmp_path)
    yield Rigs()
    for name in [name for name in sys.modules if name.rpartition(".")[0] in PARTS]:
        del sys.modules[name]


# --- the command line ---

RIG = """\
name: swing
description: A link is held by a PID controller.
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  hinge:
    initial: {position: 10 deg}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 30 deg, duration: 0.5}}
schedule: {duration: 0.4 s}
"""


class Command:
    """The `cosim` command in this process, in a folder of its own."""

    rig = RIG  # what is in `rig.yaml`

    def __init__(self, capsys, monkeypatch):
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments):
        """(exit code, stdout, lines of stderr)."""
        self.monkeypatch.setattr(sys, "argv", ["cosim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as leave:
            code = leave.code
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err.splitlines()

    def refuses(self, *arguments):
        """The lines of stderr for wrong input, of which nothing came."""
        code, out, err = self(*arguments)
        assert (code, out) == (2, "")
        return err


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)
    Path("rig.yaml").write_text(RIG)
    return Command(capsys, monkeypatch)


# --- time ---

# tasks: read, a, b (in ticks 1, 4, 7, …), guard, write, step, publish; a tick is 1 ms
PACED = """\
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  a: {initial: {velocity: 1}}
controllers:
  - {name: a, type: pid, kp: 40, ki: 20, kd: 4, joints: [a], trajectory: {type: sine, amplitude: 0.3, frequency: 2}}
  - name: b
    type: pid
    kp: 40
    ki: 0
    kd: 4
    joints: [b]
    period: 3 ms
    phase: 1 ms
    trajectory: {type: quintic, goal: 0.2, duration: 0.2}
"""
START = 5_000_000_000_123  # ns, when the first tick is due
NEVER = 1 << 60


class FakeClock(PythonClock):
    """Wait number k ends late[k] ns after it was due or, if that is past, begun (None: no pulse came); the tasks that
    run then take took[k] ns each. What is written for no tick is 0. Wait number k makes the call then[k]."""

    def __init__(
        self,
        late: Sequence[int | None] = (),
        took: Sequence[Sequence[int]] = (),
        time: int = START - 1_000_000,
    ) -> None:
        super().__init__()
        self.late, self.took, self.time = late, took, time
        self.then: Mapping[int, Callable[[], object]] = {}
        self.waits: list[int] = []  # what they were due
        self.looks = 0  # at the processor time
        self._left = iter(())

    def now(self) -> int:
        self.time += next(self._left, 0)
        return self.time

    def cpu(self) -> int:
        self.looks += 1
        return 1000 * self.looks

    def wait(self, due_ns: int) -> int:
        k = len(self.waits)
        self.waits.append(due_ns)
        self.then.get(k, int)()
        late = self.late[k] if k < len(self.late) else 0
        if late is None:
            return NO_PULSE
        self.time = max(self.time, due_ns) + late
        self._left = iter(self.took[k] if k < len(self.took) else ())
        return self.time


@dataclass
class Taken:
    """What a loop left of its ticks."""

    status: LoopStatus
    words: np.ndarray
    rows: np.ndarray
    stamps: np.ndarray
    memory: np.ndarray
    lost: int
    waits: list[int]

    @property
    def due(self) -> list[int]:
        """[ns after START]"""
        return (self.stamps[:, 0] - START).tolist()

    @property
    def woke(self) -> list[int]:
        return (self.stamps[:, 1] - START).tolist()

    @property
    def ends(self) -> list[list[int]]:
        """Of the tasks of each tick."""
        return (self.stamps[:, 2:-1] - START).tolist()

    @property
    def numbers(self) -> list[int]:
        """Of the ticks whose rows there are."""
        return np.rint(self.rows[:, 0] * 1000).astype(int).tolist()


class Loops:
    """The same rig in each loop, with a clock that does the same."""

    start, never, tasks, clock = START, NEVER, 7, FakeClock

    def __init__(self, path: Path) -> None:
        path.write_text(PACED)
        self._path = path
        self.engines = cache(self._engines)

    def _engines(self, *overrides: str) -> dict[str, Engine]:
        """By lane."""
        found: dict[str, Engine] = {}
        for lane, interpret in (("Python", False), ("interpreted", True)):
            simulation = load_rig(self._path, overrides, interpret).tick_model
            world, every = VirtualPlant(simulation), np.arange(2)
            driver = sim.load(("a", "b"), every, simulation.limits, world)
            found[lane] = PythonEngine(simulation, world, [(driver, every)])
            found[lane].open()
        found["native"] = NativeEngine(load_rig(self._path, overrides).tick_model)
        return found

    def __call__(
        self,
        ticks: int,
        pacing: Pacing | None = None,
        deadlines: Sequence[int] | int = NEVER,
        *,
        late: Sequence[int | None] = (),
        took: Sequence[Sequence[int]] = (),
        time: int = START - 1_000_000,
        rig: Sequence[str] = (),
        **how: Any,
    ) -> Taken:
        """What `take` leaves, the same in every loop. late, took, time [ns]: see `FakeClock`; rig: overrides."""
        found = {
            lane: self.take(engine, ticks, FakeClock(late, took, time), pacing, deadlines, **how)
            for lane, engine in self.engines(*rig).items()
        }
        native = found.pop("native")
        for lane, taken in found.items():
            for name, value in vars(native).items():
                near = 1e-12 if name in ("rows", "memory") else 0.0
                np.testing.assert_allclose(getattr(taken, name), value, near, near, err_msg=f"{lane}: {name}")
        return native

    def take(
        self,
        engine: Engine,
        ticks: int,
        clock: FakeClock,
        pacing: Pacing | None = None,
        deadlines: Sequence[int] | int = NEVER,
        places: int | None = None,
        first: int = 0,
        then: Mapping[int, Callable[[TickRing], object]] | None = None,
    ) -> Taken:
        """deadlines [ns]: of the tasks, or of all; places: in the ring (None: for all ticks); first: number of the
        first tick; then: calls that are made with the rings as their waits begin."""
        engine.restore(Snapshot(first, engine.simulation.memory()))
        engine.arm()
        rings = TickRing(engine.program, places or ticks, stamped=True)
        pacing = pacing or Pacing()
        rings.words[SharedWord.START], rings.words[SharedWord.PULSED] = START, pacing.pulse is not None
        within = np.zeros(self.tasks, dtype=np.int64) + deadlines
        pace = PaceMemory(clock, settings(pacing, engine.simulation.step_ns), within)
        clock.then = {k: partial(call, rings) for k, call in (then or {}).items()}
        engine.take(rings, ticks, pace)
        engine.stop()
        words = rings.words.copy()
        assert engine.number == words[SharedWord.NUMBER]
        return Taken(rings.status, words, *rings.read(ticks), engine.memory.copy(), pace.lost_ns, clock.waits)


@pytest.fixture(scope="session")
def loops(tmp_path_factory) -> Loops:
    return Loops(tmp_path_factory.mktemp("paced") / "rig.yaml")
