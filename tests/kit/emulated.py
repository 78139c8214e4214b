"""The emulated drives of a rig in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cosim.execution.hardware.emulation.server import EmulationServer
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig

PATIENCE = 20.0  # s; what takes so long has failed


@contextmanager
def emulated(
    path: Path,
    *overrides: str,
    after_step: Callable[[EmulationServer], object] = lambda emulation: None,
    report: Callable[[str], object] = lambda message: None,
) -> Iterator[EmulationServer]:
    """after_step: called in the thread after each step of the physics; report: receives messages on injected faults."""
    emulation = emulation_of(read_rig(path, overrides), report=report)
    emulation.open()

    def serve() -> None:
        while not emulation.stopped:
            emulation.step()
            after_step(emulation)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield emulation
    finally:
        emulation.stopped = True
        thread.join(PATIENCE)
        emulation.close()
