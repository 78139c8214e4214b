"""Rows of rigs with parts that are not compiled: their rigs are what they say."""

import pytest

from benchmarks import rows_parts
from cosim import load_rig
from tests.fmi import fmus

RIGS = [(rows_parts.block_rig, "wheel", "cannot be traced"), (rows_parts.fmu_rig, "table", "FMU")]


@fmus.needs_gcc
@pytest.mark.parametrize(("rig_of", "part", "why"), RIGS)
def test_the_part_is_not_compiled(rig_of, part, why):
    with rig_of() as path:
        assert why in load_rig(path).run(duration=0.01).rig.engine[f"part {part}"]
