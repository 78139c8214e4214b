"""The rows of what outputs and subscribers cost a loop in real time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cosim.bench import rows_stream
from cosim.bench.paired_timing import QUICK
from cosim.bench.rows import NotMeasured

BUDGET = replace(QUICK, run=0.3)


@pytest.fixture
def runs():
    try:
        return rows_stream.measured(BUDGET, subscribers=4)
    except NotMeasured as error:
        pytest.skip(str(error))


def test_all_three_runs_have_all_signals_and_ticks(runs):
    found = (runs.before, runs.loaded, runs.after)
    assert {len(run.signals) for run in found} == {rows_stream.SIGNALS}
    assert {run.summary["ticks"] for run in found} == {300}
    assert runs.loaded.summary["stream"] is not None and runs.before.summary["stream"] is None
    assert 0.0 < runs.latencies()[0] < 1.0 and min(runs.tick()) > 0.0
