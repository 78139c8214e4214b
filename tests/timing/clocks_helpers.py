"""Shared by the tests of clocks."""

import numpy as np
import pytest

from cosim.execution.engine import Snapshot
from cosim.timing.pacing import Pacing, settings
from cosim.timing.tick_ring import PacingMemory, SharedWord, TickRing

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
