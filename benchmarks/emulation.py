"""Emulated drives of a rig: served by a thread, stepped by hand, or in another process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.robots import CHECKOUT
from benchmarks.rows import NotMeasured
from cosim.execution.hardware.emulation.server import EmulationServer
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig

EMULATION_STEP = "schedule.step=1 ms"  # of the drives' physics, whatever the period of the rig
READY = "emulating"  # first word of the line that `cosim emulate` prints when its drives answer


class SteppedClock:
    """The time of emulated drives: the monotonic clock until the first `advance`, from then on moved by hand only."""

    def __init__(self) -> None:
        self._t_ns: int | None = None

    def __call__(self) -> int:
        return time.monotonic_ns() if self._t_ns is None else self._t_ns

    def advance(self, by_ns: int) -> None:
        self._t_ns = self() + by_ns


@contextmanager
def serving(emulation: EmulationServer) -> Iterator[None]:
    """A thread serves the emulated drives inside the `with` block."""
    thread = threading.Thread(target=emulation.serve, name="emulation", daemon=True)
    thread.start()
    try:
        yield
    finally:
        emulation.stopped = True
        thread.join()
        emulation.stopped = False


def emulation_for(path: Path, keys: Iterable[str], clock: Callable[[], int] = time.monotonic_ns) -> EmulationServer:
    """The emulated drives of a rig, not open yet, with a physics step of 1 ms."""
    return emulation_of(read_rig(path, [*keys, EMULATION_STEP]), clock=clock)


@contextmanager
def subprocess_ready(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A Python process, from when it prints READY; killed at the end of the `with` block.

    Raises NotMeasured with the last line it printed when it ends before.
    """
    command = [sys.executable, "-u", *arguments]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, **piped) as process:
        try:
            assert process.stdout is not None
            last = ""
            for line in process.stdout:
                last = line.strip() or last
                if last.startswith(READY):
                    break
            else:
                raise NotMeasured(f"the emulated drives did not start: {last or 'no output'}")
            yield process
        finally:
            process.kill()
