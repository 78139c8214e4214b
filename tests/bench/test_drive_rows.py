"""Rows of full drives: their errors against an independent program, and the graph that is assembled."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import rows_drives
from benchmarks.paired_timing import Budget
from cosim.mechanics.bondgraph import assemble

QUICK = Budget(pairs=1, block=1e-4, starts=1)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """The first 60 ms of the motion, a looser reference, and runs of 1 s."""
    whole = rows_drives.one_drive()
    of = replace(whole, efforts=whole.efforts[:60], truth=("Radau", 1e-6))
    monkeypatch.setattr(rows_drives, "one_drive", lambda ticks: of)
    monkeypatch.setattr(rows_drives, "SIMULATED", 1)


def test_the_row_in_real_time_fails_beyond_the_error(monkeypatch):
    measured = rows_drives.one_in_real_time(QUICK)
    assert not measured.failed and measured.note.startswith("error ")
    monkeypatch.setattr(rows_drives, "WRONG", 1e-12)
    assert rows_drives.one_in_real_time(QUICK).failed == "the error is above 0%"


def test_work_is_compared_at_the_same_error():
    measured = rows_drives.precision(("substeps=2",), QUICK)
    here, there = (float(text) for text in measured.note.removeprefix("largest errors ").split() if text[0].isdigit())
    assert there <= here < 1e-2 and (np.asarray(measured.samples.other) > 0.0).all()


def test_the_graph_has_its_elements_and_each_mass_a_state():
    graph = rows_drives.chain_of_masses(90)
    assert len(graph.elements) >= 90
    assert sum(state.name.startswith("inertia_") for state in assemble(graph).states) == 30
