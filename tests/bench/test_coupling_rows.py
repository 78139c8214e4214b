"""Rows of coupled parts: both sides of a row compute the same."""

import numpy as np

from benchmarks import rows_coupling
from benchmarks.paired_timing import Budget
from benchmarks.peers_mosaik import run_loop
from benchmarks.rows_coupling import STARTS, UPDATES, beside_mosaik, compiled, python_loop

SHORT = Budget(pairs=2, block=1e-4, starts=1)


def test_the_loop_in_mosaik_has_the_numbers_of_the_master():
    steps, value = python_loop()
    steps(25)
    counted = []
    assert run_loop(UPDATES, STARTS, 25, lambda: counted.append(1)) == value.value
    assert len(counted) == 25


def test_blocks_of_both_loops_are_timed_in_turns(monkeypatch):
    monkeypatch.setattr(rows_coupling, "COMPARED", 20)
    measured = beside_mosaik(SHORT)
    assert measured.agreement == 0.0
    assert measured.samples.other is not None
    assert measured.samples.ours.shape == measured.samples.other.shape == (2,)
    assert (measured.samples.ours > 0.0).all()


def test_coupled_masses_move_as_the_same_masses_in_one_block():
    measured = compiled(SHORT)
    difference = float(measured.note.split("by ")[1].split(" m/s")[0])
    assert 0.0 < difference < 1e-2
    assert np.isfinite(measured.samples.ours).all()
    assert measured.note.endswith("steps of 1 ms")
