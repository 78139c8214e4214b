"""Every row of the bench is measured, with the smallest budget: none rots."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import benchmarks as bench
from benchmarks import CASES, ROWS
from benchmarks.paired_timing import QUICK
from benchmarks.rows import BenchCase, measure_case
from tests.bench.named_rows import TINY

MODULES = {case.name: name for name in vars(bench) if name.startswith(ROWS) for case in getattr(bench, name).CASES}
# rows of runs in real time
REAL_TIME = re.compile("hardware (tick compiled|tick serial|1 kHz|stop)|realtime|outputs|ten da|slider|tuning margins")
# one loop of one joint is measured on few runs, runs are short, and a stall of the machine costs no tick of 40 ms
SMALL = {
    "rows_margins.PLANTS": {"inertia": "20 %"},
    "rows_margins.LIMITS": {"base/phase_margin": "52 deg"},
    "rows_margins.STEP": 9.0,
    "rows_tuning.SECONDS": 0.5,
    "fault_response.TIMING": ("guard.stale=1 s", "schedule.step=40 ms"),
}
# what the note of a row holds, where its measurement has more to show than its figures
NOTES = {
    "hardware tick virtual": r"median of 40 ticks .*read .*; not included: the drives' replies, ",
    "hardware tick compiled": r"(^|; )\d+ ticks: .+; latency .+ \(median, p99, max\)$",
    "hardware tick serial": r"request and answer of 20 and 122 bytes take 1\.42 ms on the wire; the median of .*;"
    r" bare writes and reads take \d+\.\d+ ×; 0 packets damaged$",
    "hardware 1 kHz": " deadlines missed.* received by the drives; ",
    "hardware stop": "1 runs each: motor fault .; bus off .; power loss .; e-stop .".replace(" .", r" [01], [^;]+"),
    "realtime native 1 kHz": r"of 300, cyclictest would have missed",
    "realtime drift": r"^299 periods and .* off by 0 ns",
    "tuning ur5_sim": r"threads, report included$",
    "tuning dask": r"^11 trials on five plants, 11 at a time$",
}


def parameters() -> list[Any]:
    cases = [case for case in CASES if not case.on_request]
    return [pytest.param(case, marks=pytest.mark.real_time if REAL_TIME.match(case.name) else ()) for case in cases]


@pytest.mark.parametrize("case", parameters(), ids=lambda case: case.name)
def test_a_row(case: BenchCase, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(f"benchmarks.{name}", value)
    row = measure_case(case, TINY)
    assert not row.broken, row.note
    if row.ours is None:
        pytest.skip(row.note)
    assert math.isfinite(row.ours) and row.ours >= 0.0 and row.runs >= 1
    assert row.agreement is None or row.agreement < 1e-11
    if case.against and row.other is None:
        pytest.skip(row.note)
    assert row.other is None or row.other > 0.0
    assert re.search(NOTES.get(case.name, ""), row.note), row.note


def test_budgets_below_that_of_a_quick_bench_have_a_part_of_what_a_row_is_about() -> None:
    assert [budget.of(199) for budget in (bench.FULL, QUICK, TINY)] == [199, 199, 13]
    assert (TINY.of(3), TINY.of(3, 2), QUICK.of(3, 2)) == (1, 2, 3)
