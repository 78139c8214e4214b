"""The rows of what outputs and dashboards cost a loop in real time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import rows_stream
from benchmarks.rows import NotMeasured
from tests.bench.named_rows import TINY

TICKS = 100
BUDGET = replace(TINY, run=TICKS * rows_stream.STEP * rows_stream.RUNS_PER_BUDGET)


@pytest.mark.real_time
def test_all_runs_have_all_signals_and_ticks(monkeypatch):
    monkeypatch.setattr(rows_stream, "STALLED", 1)
    monkeypatch.setattr(rows_stream, "STALL_AFTER", 0.05)
    try:
        runs = rows_stream.measured(BUDGET, dashboards=1)
    except NotMeasured as error:
        pytest.skip(str(error))
    rounds = BUDGET.of(rows_stream.ROUNDS)
    assert (len(runs.alone), len(runs.loaded)) == (rounds + 1, rounds)
    found = (*runs.alone, *runs.loaded)
    assert {len(run.signals) for run in found} == {rows_stream.SIGNALS}
    assert {run.summary["ticks"] for run in found} == {TICKS}
    assert all(run.summary["stream"] for run in runs.loaded) and not any(run.summary["stream"] for run in runs.alone)
    for loaded, alone in (runs.latencies(), runs.ticks()):
        assert loaded.shape == alone.shape == (rounds,)
        assert loaded.min() > 0.0 and alone.min() > 0.0
