"""The same rig in every engine, paced by a clock that does the same in each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim import load_rig
from cosim.execution.engine import Engine, Snapshot
from cosim.execution.native_engine import NativeEngine
from cosim.simulation.loop.pacing import Pacing, settings
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, TickRing
from tests.kit.clock import FakeClock
from tests.kit.engines import python_engine

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
schedule: {integrator: semi_implicit_euler}
"""
START = 5_000_000_000_123  # ns, when the first tick is due
NEVER = 1 << 60


@dataclass
class Taken:
    """What a loop left of its ticks."""

    status: LoopStatus
    words: np.ndarray
    rows: np.ndarray
    stamps: np.ndarray
    memory: np.ndarray
    slip: int
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

    start, never, tasks = START, NEVER, 7

    def __init__(self, path: Path) -> None:
        path.write_text(PACED)
        self._path = path
        self.engines = cache(self._engines)

    def _engines(self, *overrides: str) -> dict[str, Engine]:
        """By kind of engine."""
        found: dict[str, Engine] = {}
        for engine_kind, interpret in (("Python", False), ("interpreted", True)):
            found[engine_kind] = python_engine(load_rig(self._path, overrides, interpret))
            found[engine_kind].open()
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
            engine_kind: self.take(engine, ticks, FakeClock(late, took, time), pacing, deadlines, **how)
            for engine_kind, engine in self.engines(*rig).items()
        }
        native = found.pop("native")
        for engine_kind, taken in found.items():
            for name, value in vars(native).items():
                near = 1e-12 if name in ("rows", "memory") else 0.0
                np.testing.assert_allclose(getattr(taken, name), value, near, near, err_msg=f"{engine_kind}: {name}")
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
        engine.restore(Snapshot(first, engine.tick_model.memory()))
        engine.arm()
        rings = TickRing(engine.program, places or ticks, stamped=True)
        pacing = pacing or Pacing()
        rings.words[SharedWord.START], rings.words[SharedWord.TRIGGERED] = START, pacing.trigger is not None
        within = np.zeros(self.tasks, dtype=np.int64) + deadlines
        pace = PacingMemory(clock, settings(pacing, engine.tick_model.step_ns), within)
        clock.then = {k: partial(call, rings) for k, call in (then or {}).items()}
        engine.run_ticks(rings, ticks, pace)
        engine.stop()
        words = rings.words.copy()
        assert engine.number == words[SharedWord.NUMBER]
        return Taken(rings.status, words, *rings.read(ticks), engine.memory.copy(), pace.slip_ns, clock.waits)


# --- engines on a clock ---

MS = 1_000_000


LONG = 60_000_000_000  # ns; a test that waits for it has failed


def engine_on(loops, clock, engine_kind, ticks):
    """(engine, rings, what is to be called): ticks of the rig, one for each trigger."""
    engine = loops.engines()[engine_kind]
    engine.restore(Snapshot(0, engine.tick_model.memory()))
    engine.arm()
    rings = TickRing(engine.program, ticks, stamped=True)
    rings.words[SharedWord.START], rings.words[SharedWord.TRIGGERED] = clock.now(), 1
    held = PacingMemory(clock, settings(Pacing(), MS), np.full(loops.tasks, MS))
    return engine, rings, lambda: engine.run_ticks(rings, ticks, held)


both_engines = pytest.mark.parametrize("engine_kind", ["native", "Python"])
