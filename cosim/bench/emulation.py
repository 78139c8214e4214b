"""Emulated drives beside a rig: in a thread, stepped by hand, or in another process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cosim.bench.rows import NotMeasured
from cosim.hardware.emulation.server import EmulationServer
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig

STEP = "schedule.step=1 ms"  # of emulated drives


READY = "emulating"


ROOT = Path(__file__).parents[2]


class SteppedClock:
    """The time of emulated drives: the clock's, until it stands still and is moved on by hand."""

    def __init__(self) -> None:
        self._t_ns: int | None = None

    def __call__(self) -> int:
        return time.monotonic_ns() if self._t_ns is None else self._t_ns

    def move(self, by_ns: int) -> None:
        self._t_ns = self() + by_ns


@contextmanager
def serving(emulation: EmulationServer) -> Iterator[None]:
    """A thread answers meanwhile."""
    thread = threading.Thread(target=emulation.serve, name="emulation", daemon=True)
    thread.start()
    try:
        yield
    finally:
        emulation.stopped = True
        thread.join()
        emulation.stopped = False


def open_emulation(path: Path, clock: Callable[[], int] = time.monotonic_ns) -> EmulationServer:
    """The drives of a rig, in steps of 1 ms."""
    return emulation_of(read_rig(path, [STEP]), clock=clock)


@contextmanager
def subprocess_ready(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
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
