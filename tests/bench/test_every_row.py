"""Every row of the bench is measured, with the smallest budget: none rots."""

import pytest

from cosim.bench import CASES
from cosim.bench.paired_timing import Budget
from cosim.bench.rows import measure_case

TINY = Budget(pairs=2, block=1e-4, starts=1, run=0.5)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if not case.on_request])
def test_a_row(case):
    row = measure_case(case, TINY)
    assert not row.broken, row.note
