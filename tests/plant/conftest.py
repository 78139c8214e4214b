"""Fixtures of the tests of the plant."""

from functools import partial

import pytest

from tests.kit.rigs import rig_in
from tests.plant.event_runs import SLIDER, EventRun, with_events


@pytest.fixture
def rig_of(tmp_path):
    return partial(rig_in, tmp_path)


@pytest.fixture
def run_of(rig_of):
    """The run of a mechanism with events, by default the slider's of 1 s; more: overrides, and what `rig_in` takes."""

    def run(events, text=SLIDER, schedule="step: 1 ms, duration: 1 s", *overrides, **more):
        return EventRun(
            rig_of(with_events([events] if isinstance(events, str) else events, text, schedule), *overrides, **more)
        )

    return run
