"""Real runs of rigs without waiting: their drives are emulated in this process, in simulated time.

Everything from `Rig.run` to the codec of the drivers is what a user has, but for the clock and the connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from cosim.apps.scenario.armed_rig import in_simulated_time
from cosim.apps.scenario.stepped_engine import ANSWER_NS, SteppedEngine, stepped_engine
from cosim.execution.execution_mode import FreeRunning, PlannedChange
from cosim.execution.hardware.emulation.server import EmulationServer
from cosim.execution.scheduler import Scheduler
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import Rig
from cosim.rig.run import session
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.wired_rig import WiredRig


class SteppedRun(SteppedEngine):
    """A `SteppedEngine` that a scheduler arms and starts."""

    def begin_hold(self) -> None:
        """Motors that are on are held while others are enabled, see `arm`."""

    def start_from_measured(self, blend: float, until: int) -> None:
        super().start_from_measured(blend, until)
        self._zero_ns = self.server.due_ns


class Stepped(FreeRunning):
    """The ticks of a `SteppedRun`, for which `FreeRunning` has no deadlines."""

    @property
    def start_deadline_ns(self) -> int:
        assert isinstance(self._engine, SteppedRun)
        return self._engine.time.now() + ANSWER_NS


@contextmanager
def simulated_drives(emulated: RigSpec | None = None) -> Iterator[None]:
    """Rigs with drivers that are loaded within run on drives of the rig `emulated`, by default of their own. The
    mechanism stays where it is from run to run."""
    servers: list[EmulationServer] = []
    engines: list[SteppedRun] = []
    build, scheduler_of = Rig._build, session.make_scheduler

    def server_of(spec: RigSpec, *rest: Any, **more: Any) -> EmulationServer:
        server = emulation_of(emulated or spec, *rest, **more)
        if servers:
            server.motors.plant.memory[:] = servers[-1].motors.plant.memory
        servers.append(server)
        return server

    def make_scheduler(rig: WiredRig, planned: Sequence[PlannedChange] = (), traffic: None = None) -> Scheduler:
        def make() -> SteppedRun:
            engine: Any = stepped_engine(rig)
            engine.__class__ = SteppedRun
            engines.append(engine)
            return engine

        if not rig.hardware:
            return scheduler_of(rig, planned, traffic)
        scheduler = Scheduler(make, None, rig.tasks, rig.run_spec.schedule.blend)
        scheduler.mode = Stepped()
        return scheduler

    def sleep(seconds: float) -> None:
        time = engines[-1].time
        time.wait_until(time.now() + round(seconds * 1e9))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rig, "_build", lambda rig, spec: build(rig, in_simulated_time(spec) if spec.drivers else spec))
        patch.setattr(session, "make_scheduler", make_scheduler)
        patch.setattr(session, "_traffic_of", lambda rig: None)
        patch.setattr("cosim.apps.scenario.stepped_engine.emulation_of", server_of)
        patch.setattr("cosim.rig.run.consent.time", SimpleNamespace(sleep=sleep))
        # an answer comes in the instant of its question: the first one is not an old one
        patch.setattr(
            "cosim.execution.hardware.manager._read_off", lambda group, state, until: group.driver.read(state, until)
        )
        yield
