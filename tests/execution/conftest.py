"""Fixtures of the tests in this folder."""

from contextlib import nullcontext
from functools import cache

import pytest

from cosim.execution.timing import privileges
from tests.execution.scheduler_helpers import PUSH, RIG, Bench
from tests.kit.clock import in_simulated_time
from tests.kit.rigs import rig_in


@pytest.fixture(scope="session")
def shared_rig(tmp_path_factory):
    """The rig of a text and overrides, for tests that leave it as it was."""
    return cache(lambda text, *overrides: rig_in(tmp_path_factory.mktemp("rig"), text, *overrides, push=PUSH))


@pytest.fixture
def bench_of(shared_rig, monkeypatch):
    """A `Bench` of RIG, closed at the end; its clock does not mind garbage."""
    made = []
    monkeypatch.setattr(privileges, "quiet_interpreter", nullcontext)

    def make(text=RIG, rig=None, **keys):
        made.append(Bench(rig or shared_rig(text), **keys))
        return made[-1]

    yield make
    for bench in made:
        bench.scheduler.close()


@pytest.fixture
def simulated_time(monkeypatch):
    """Runs in real time wait for no tick."""
    return in_simulated_time(monkeypatch)
