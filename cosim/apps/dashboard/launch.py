"""A run as a child process of the page: started, watched, ended with it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cosim.core.access.private_folder import private_folder
from cosim.core.errors import RunError

END_TIMEOUT = 5.0  # s of an orderly stop, motors off and recording complete, before it is killed
# the run ends with the page, even if that is killed
CHILD = """
import ctypes, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() == int(sys.argv.pop(1)):
    runpy.run_module("cosim", run_name="__main__", alter_sys=True)
"""


class Outcome(NamedTuple):
    """How a process ended. code: its exit code, negative for a signal; error: what it wrote, a line for each error."""

    code: int
    error: str

    @property
    def state(self) -> str:
        return "ended" if self.code == 0 else "failed" if self.code > 0 else "gone"

    @property
    def reason(self) -> str:
        if self.code >= 0:
            lines = self.error.splitlines() or ["it wrote no reason"]
            return lines[-1] if self.code else ""
        return f"its process was killed by {signal_name(-self.code)}"


def signal_name(number: int) -> str:
    with suppress(ValueError):
        return f"{signal.Signals(number).name} ({number})"
    return f"signal {number}"


def numbered(path: Path) -> Iterator[Path]:
    """run.mcap, run_2.mcap, …, without those that exist, except for the first."""
    yield path
    for number in itertools.count(2):
        if not (further := path.with_stem(f"{path.stem}_{number}")).exists():
            yield further


class RunProcess:
    """`cosim run RIG --realtime --control --wait`, again and again at the same two addresses of this user."""

    def __init__(self, rig: str, options: Sequence[str] = (), record: Path | None = None) -> None:
        """options: further words of `cosim run`; record: file of the first run; files of later runs are numbered."""
        self.rig, self._options = rig, tuple(options)
        self._recordings = None if record is None else numbered(record)
        self._folder = tempfile.TemporaryDirectory(prefix="dash-", dir=private_folder())
        self.stream, self.control = (f"ipc://{self._folder.name}/{name}" for name in ("stream", "control"))
        self._process: subprocess.Popen | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115

    def start(self) -> None:
        """Start it; it waits for `start`. The thread that calls must live as long as the run. Raises RunError while
        one runs."""
        if self.running:
            raise RunError("the run has not ended; stop it first", self.rig)
        self._output.seek(0)
        self._output.truncate()
        words = ["run", self.rig, "--realtime", "--wait", "--telemetry", self.stream, "--control", self.control]
        if self._recordings is not None:
            words += ["--record", str(next(self._recordings))]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, str(os.getpid()), *words, *self._options],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # the same modules
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._output,
            process_group=0,  # Ctrl-C reaches the page only, which ends it
        )

    @property
    def pid(self) -> int:
        """0 before the first start."""
        return 0 if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def outcome(self) -> Outcome | None:
        """None before the first start and while it runs."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        size = os.fstat(self._output.fileno()).st_size
        return Outcome(code, os.pread(self._output.fileno(), size, 0).decode(errors="replace").strip())

    def terminate(self) -> None:
        """Order an immediate stop, without its control socket."""
        if self._process is not None and self.running:
            self._process.terminate()

    def close(self) -> None:
        """End the run. Idempotent."""
        self.terminate()
        if self._process is not None:
            try:
                self._process.wait(END_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._output.close()
        self._folder.cleanup()
