"""Rows about FMUs: the same outputs as those of fmpy, and reasons where something is missing."""

from __future__ import annotations

import sys

import pytest

from cosim.bench import rows_fmu_parts
from cosim.bench.paired_timing import Budget
from cosim.bench.rows import MAX_DIFFERENCE, measure_case
from tests.fmi import fmus

TINY = Budget(pairs=2, block=1e-4, starts=1)


@fmus.needs_gcc
@pytest.mark.parametrize("case", rows_fmu_parts.CASES, ids=lambda case: case.name)
def test_steps_give_what_fmpy_gives(case, monkeypatch):
    monkeypatch.setattr(rows_fmu_parts, "STEPS", 50)
    row = measure_case(case, TINY)
    assert row.agreement is not None and row.agreement < MAX_DIFFERENCE
    assert row.ours is not None and row.other is not None and row.runs == TINY.pairs


def test_a_missing_peer_or_compiler_is_the_reason(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert measure_case(rows_fmu_parts.CASES[0], TINY).note == "no C compiler: install gcc or clang, or set CC"
    monkeypatch.setitem(sys.modules, "fmpy", None)
    assert measure_case(rows_fmu_parts.CASES[0], TINY).note.startswith(
        "fmpy is not installed: pip install 'cosim[test]'"
    )
