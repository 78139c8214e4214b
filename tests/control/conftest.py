"""Fixtures of the tests of control."""

from functools import cache
from types import ModuleType

import pytest

from cosim.execution.scheduler import Scheduler
from cosim.simulation.loop.pacing import Pacing
from tests.control import guard_battery
from tests.control.stateful_rig import FAILING, engine_of
from tests.kit.rigs import rig_in


@pytest.fixture(scope="session")
def battery() -> ModuleType:
    return guard_battery


@pytest.fixture(scope="session")
def rig_of(tmp_path_factory):
    """Each is loaded once: rig_of(text, *overrides), beside a controller that fails."""

    @cache
    def load(text, *overrides):
        return rig_in(tmp_path_factory.mktemp("rig"), text, *overrides, failing=FAILING)

    return load


@pytest.fixture
def scheduler_of():
    """A prepared scheduler of a rig with an engine, closed at the end; in real time if keys of a `Pacing` are given."""
    made = []

    def make(rig, kind, hardware=False, **pacing):
        paced = Pacing(**pacing) if pacing else None
        made.append(Scheduler(lambda: engine_of(rig, kind, hardware), paced, rig.tasks, rig.spec.schedule.blend))
        made[-1].prepare()
        return made[-1]

    yield make
    for scheduler in made:
        scheduler.close()
