"""Rows of the bench by their names, and the smallest budget."""

import benchmarks as bench
from benchmarks.paired_timing import Budget
from benchmarks.rows import BenchCase

TINY = Budget(pairs=2, block=1e-4, starts=1, run=0.3)


def named(name: str) -> BenchCase:
    return next(case for case in bench.CASES if case.name == name)
