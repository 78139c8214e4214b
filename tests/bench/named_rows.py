"""Rows of the bench by their names, and the smallest budget."""

from cosim import bench
from cosim.bench.paired_timing import Budget
from cosim.bench.rows import BenchCase

TINY = Budget(pairs=2, block=1e-4, starts=1, run=0.3)


def named(name: str) -> BenchCase:
    return next(case for case in bench.CASES if case.name == name)
