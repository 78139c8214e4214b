"""A run of a rig in another thread, which clients control through its socket."""

from __future__ import annotations

import threading
from typing import Any

from cosim.core.errors import RunError
from cosim.output.client import ControlClient, connect
from cosim.rig.rig import Rig
from cosim.rig.run.run import Run, StoppedRun

PATIENCE = 60.0  # s, for an answer on a busy machine


class Running(threading.Thread):
    """result: the run, or why there is none; keys: of `Rig.run`."""

    def __init__(self, rig: Rig, **keys: Any) -> None:
        super().__init__(daemon=True)
        self.rig, self.keys = rig, keys
        self.result: Run | RunError | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.rig.run(**self.keys)
        except RunError as error:
            self.result = error

    def client(self, name: str = "tuner") -> ControlClient:
        address = self.rig.run_spec.telemetry.control
        assert address is not None
        return connect(address, name, timeout=PATIENCE)

    def finished(self) -> Run | RunError | None:
        """The result, once it has ended."""
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.result

    def stop(self) -> Run:
        """Order a stop; the run up to then."""
        with self.client() as client, client.control(force=True):
            client.stop()
        result = self.finished()
        run = result.run if isinstance(result, StoppedRun) else result
        assert isinstance(run, Run)
        return run
