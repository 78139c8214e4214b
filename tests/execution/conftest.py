"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest

from tests.execution.scheduler_helpers import PUSH, RIG, Bench
from tests.kit.rigs import rig_in


@pytest.fixture
def rig_of(tmp_path):
    def load(*overrides, text=RIG, interpret=False):
        return rig_in(tmp_path, text, *overrides, interpret=interpret, push=PUSH)

    return load


@pytest.fixture
def bench_of(rig_of):
    """A `Bench` of RIG, closed at the end."""
    made = []

    def make(*overrides, text=RIG, interpret=False, **keys):
        made.append(Bench(rig_of(*overrides, text=text, interpret=interpret), **keys))
        return made[-1]

    yield make
    for bench in made:
        bench.scheduler.close()
