"""The public API of rigs: load, wire and run a rig file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from cosim.execution.engine import Engine
from cosim.execution.scheduler import Scheduler
from cosim.output.run_status import RunStatus
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.run import Run
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.session import make_engine, make_scheduler, run_session


class Rig(WiredRig):
    """A checked rig file, wired and ready to run."""

    def engine(self) -> Engine:
        """A new engine at t = 0: compiled when every part of a tick can be, else the Python engine."""
        return make_engine(self)

    def scheduler(self) -> Scheduler:
        """The scheduler of a run, for stepping through its states by hand."""
        return make_scheduler(self)

    def run(
        self,
        duration: float | None = None,
        record: str | Path | None = None,
        progress: Callable[[RunStatus], None] | None = None,
        clear_faults: bool = False,
    ) -> Run:
        """Run from t = 0 for `duration` [s] (default: the rig's), both ends included in the result.

        record: MCAP file written during the run; progress: called a few times per second;
        clear_faults: clear the faults that real drives report first (look at their causes before).
        Raises StoppedRun when the guard, a failing controller or Ctrl-C stops the run; its `run` holds everything up to
        then. Raises RunError if the first tick fails.
        """
        return run_session(self, duration, record, progress, clear_faults)


def load_rig(
    path: str | Path, overrides: Iterable[str] = (), interpret: bool | None = None, realtime: bool = False
) -> Rig:
    """The rig of a file, after overrides like `controllers.arm.kp=200`.

    realtime: run in real time, with the settings of `schedule.realtime` or its defaults.
    Raises InputErrors with all errors, each with its line.
    """
    overrides = [overrides] if isinstance(overrides, str) else list(overrides)
    spec = read_rig(path, overrides)
    if (realtime or spec.drivers) and spec.schedule.pacing is None:
        # catching up would send late commands to real motors
        word = "{overrun: skip}" if spec.drivers else "yes"
        spec = read_rig(path, [*overrides, (f"schedule.realtime={word}", "--realtime")])
    return Rig(spec, interpret)
