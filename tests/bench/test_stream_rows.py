"""The rows of what outputs and dashboards cost a loop in real time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cosim.bench import rows_stream
from cosim.bench.paired_timing import QUICK
from cosim.bench.rows import NotMeasured

BUDGET = replace(QUICK, run=0.3 * rows_stream.RUNS_PER_BUDGET)


def test_all_runs_have_all_signals_and_ticks(monkeypatch):
    monkeypatch.setattr(rows_stream, "STALLED", 1)
    monkeypatch.setattr(rows_stream, "STALL_AFTER", 0.1)
    try:
        runs = rows_stream.measured(BUDGET, dashboards=2)
    except NotMeasured as error:
        pytest.skip(str(error))
    assert (len(runs.alone), len(runs.loaded)) == (rows_stream.ROUNDS + 1, rows_stream.ROUNDS)
    found = (*runs.alone, *runs.loaded)
    assert {len(run.signals) for run in found} == {rows_stream.SIGNALS}
    assert {run.summary["ticks"] for run in found} == {300}
    assert all(run.summary["stream"] for run in runs.loaded) and not any(run.summary["stream"] for run in runs.alone)
    for loaded, alone in (runs.latencies(), runs.ticks()):
        assert loaded.shape == alone.shape == (rows_stream.ROUNDS,)
        assert loaded.min() > 0.0 and loaded.max() < 1.0 and alone.min() > 0.0
