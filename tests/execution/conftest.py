"""Fixtures of the tests in this folder."""

from __future__ import annotations

from functools import cache

import pytest

from tests.execution.scheduler_helpers import PUSH, RIG, Bench
from tests.kit.rigs import rig_in


@pytest.fixture(scope="session")
def shared_rig(tmp_path_factory):
    """The rig of a text, for tests that leave it as it was."""
    return cache(lambda text: rig_in(tmp_path_factory.mktemp("rig"), text, push=PUSH))


@pytest.fixture
def bench_of(shared_rig):
    """A `Bench` of RIG, closed at the end."""
    made = []

    def make(text=RIG, rig=None, **keys):
        made.append(Bench(rig or shared_rig(text), **keys))
        return made[-1]

    yield make
    for bench in made:
        bench.scheduler.close()
