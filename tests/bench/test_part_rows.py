"""Rows of rigs with parts that are not compiled: their rigs are what they say, and they are measured."""

import pytest

from cosim import load_rig
from cosim.bench import rows_parts
from cosim.bench.paired_timing import Budget
from cosim.bench.rows import measure_case
from tests.fmi import fmus

pytestmark = fmus.needs_gcc
TINY = Budget(pairs=2, block=1e-3, starts=1)


@pytest.mark.parametrize("case", rows_parts.CASES, ids=lambda case: case.name)
def test_rows_are_measured(case):
    row = measure_case(case, TINY)
    assert row.ours is not None and row.ours > 0.0


RIGS = [(rows_parts.block_rig, "wheel", "cannot be traced"), (rows_parts.fmu_rig, "table", "FMU")]


@pytest.mark.parametrize(("rig_of", "part", "why"), RIGS)
def test_the_part_is_not_compiled(rig_of, part, why):
    with rig_of() as path:
        assert why in load_rig(path).run(duration=0.01).rig.engine[f"part {part}"]
