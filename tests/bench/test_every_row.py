"""Every row of the bench is measured, with the smallest budget: none rots."""

from __future__ import annotations

import pytest

from cosim import bench
from cosim.bench import CASES, ROWS
from cosim.bench.paired_timing import Budget
from cosim.bench.rows import BenchCase, measure_case
from tests.kit import durations
from tests.kit.levels import covering

TINY = Budget(pairs=2, block=1e-4, starts=1, run=0.5)
MODULES = {case.name: name for name in vars(bench) if name.startswith(ROWS) for case in getattr(bench, name).CASES}
MEASURED = durations.read()


def cost(case: BenchCase) -> float:
    """Seconds."""
    row = MEASURED.get(f"tests/bench/test_every_row.py::test_a_row[{case.name}]")
    return durations.RECORDED if row is None else row.total


def features(case: BenchCase) -> set[str]:
    """In the gate, the shortest row of each module that has a short one."""
    return {MODULES[case.name]} if cost(case) < durations.LONG else set()


@pytest.mark.parametrize(
    "case", covering([case for case in CASES if not case.on_request], features, cost), ids=lambda case: case.name
)
def test_a_row(case: BenchCase) -> None:
    row = measure_case(case, TINY)
    assert not row.broken, row.note
