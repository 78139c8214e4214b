"""Measured durations of tests: from them tests are marked `slow` and xdist gets the longest files first.

    python -m tests.kit.durations [PATHS AND OPTIONS OF PYTEST]

runs the tests and writes what they took to `tests/durations.json`. Measure on an idle machine. Nobody marks by hand:
a test without a measurement counts as fast.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "durations.json"
RECORDED = 0.2  # s: shorter durations are not in the table
SLOW = 0.3  # s: tests from here on are marked


def read() -> dict[str, float]:
    """Test id -> seconds of setup, call and teardown."""
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def file_of(test: str) -> str:
    return test.partition("::")[0]


def sort_and_mark(items: list[pytest.Item], table: Mapping[str, float]) -> None:
    """Mark slow tests; put files in the order of their total durations, longest first."""
    totals: Counter[str] = Counter()
    for test, seconds in table.items():
        totals[file_of(test)] += seconds
    items.sort(key=lambda item: -totals[file_of(item.nodeid)])  # a stable sort: tests of a file keep their order
    for item in items:
        if table.get(item.nodeid, 0.0) >= SLOW:
            item.add_marker("slow")


def updated(table: Mapping[str, float], measured: Mapping[str, float], exists: Iterable[str]) -> dict[str, float]:
    """The table after a run: measured files replace their rows, rows of files that do not exist are dropped."""
    files, present = {file_of(test) for test in measured}, set(exists)
    rows = {test: s for test, s in table.items() if file_of(test) not in files and file_of(test) in present}
    rows |= {test: round(s, 1) for test, s in measured.items() if s >= RECORDED}
    return dict(sorted(rows.items()))


class Recorder:
    """A pytest plugin that sums the phases of each test; with xdist it runs in the controller."""

    def __init__(self) -> None:
        self.measured: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.measured[report.nodeid] += report.duration


def main(arguments: list[str]) -> int:
    recorder = Recorder()
    code = pytest.main(arguments, plugins=[recorder])
    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    rows = updated(read(), recorder.measured, files)
    TABLE.write_text(json.dumps(rows, indent=0) + "\n")
    slow = [seconds for seconds in rows.values() if seconds >= SLOW]
    print(f"{TABLE.relative_to(ROOT)}: {len(rows)} tests of {RECORDED} s or more, {len(slow)} of them slow")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
