"""Emulated drives of a rig on a real connection, for programs and packages of other authors as their clients.

The physics has a time of its own, so that no result depends on the load of the machine: some of it for every item that
comes, and what a test lets pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cosim.plugins.drivers.transport import now
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.clock import MS

from .families import write_rig

STEP = 1e-3  # s of the physics
PATIENCE_NS = 30_000 * MS  # for a machine that stalls


class Served:
    """As a context they are open, and answer in a thread unless `pump` is called for that."""

    def __init__(
        self,
        folder: Path,
        driver: dict[str, Any],
        wired: Sequence[dict[str, Any]],
        inertia: float = 1e-3,
        in_thread: bool = True,
        each: int = 1,
        idle: int = 0,
        **joint: Any,
    ) -> None:
        """wired: keys of each joint; joint: of all of them; each: steps for an item; idle: for each ms without one."""
        names = [f"j{k}" for k in range(len(wired))]
        body = {"axis": [0, 0, 1], "parent": "base", "mass": 0.1, "inertia": [inertia] * 3}
        rig = {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [{"name": name, **body} for name in names]},
            "joints": {"all": {"limits": {"velocity": 400, "effort": 4}, **joint}},
            "drivers": [{**driver, "joints": dict(zip(names, wired, strict=True))}],
            "schedule": {"step": STEP},
        }
        self.shown: list[str] = []  # messages of the emulation
        spec = read_rig(write_rig(folder / "rig.yaml", rig))
        self.server = emulation_of(spec, clock=lambda: self.t_ns, report=self.shown.append)
        (self.connection,) = self.server.connections
        self.drives: Any = self.connection.drives
        self.motors = self.connection.motors
        self.t_ns, self._each, self._idle = 0, each, idle
        self._lock, self._running = threading.Lock(), in_thread
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Served:
        self.server.open()
        self._step(1)  # a drive that is booting hears no client
        if self._running:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._running = False
        if self._thread.ident is not None:
            self._thread.join()
        self.server.close()

    def run(self, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Let the time pass; meanwhile: called every 20 ms of it."""
        for k in range(round(seconds / STEP)):
            if k % 20 == 0:
                meanwhile()
            with self._lock:
                self._step(1)

    def pump(self, least: int = 0, wait_ns: int = 0) -> int:
        """Answer what comes: at least so many bytes, and what is there or comes within the time; how many items."""
        count, size = 0, 0
        while (item := self.connection.link.receive(now() + (PATIENCE_NS if size < least else wait_ns))) is not None:
            with self._lock:
                self._step(self._each)
                self.connection.take(item, self.t_ns)
            count, wait_ns = count + 1, 0
            size += len(getattr(item, "data", item))
        assert size >= least
        return count

    def _step(self, count: int) -> None:
        for _ in range(count):
            self.t_ns += MS
            self.server.advance(self.t_ns)

    def _run(self) -> None:
        while self._running:
            if not self.pump(wait_ns=MS if self._idle else 20 * MS):
                with self._lock:
                    self._step(self._idle)
