"""Measured durations of tests: from them tests are marked `slow` and xdist gets the longest files first.

    python -m tests.kit.durations [PATHS AND OPTIONS OF PYTEST]

runs the tests and writes what they took to `tests/durations.json`: processor time, with programs that they started, and
the time that they waited [s], of each file and of each test of RECORDED. Measure on an idle machine. Nobody marks by
hand: a test without a measurement counts as fast. With `--time-per-room` a run ends with a table of the rooms, and with
the tests of LONG that have no measurement. They do not fail the run: the first test that needs some code compiles it,
and which one that is depends on the workers. `tests/shared/test_durations.py` fails for a file without a measurement.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "durations.json"
RECORDED = 0.2  # s: shorter durations are not in the table
SLOW = 0.3  # s: tests from here on are marked
LONG = 1.0  # s: tests from here on should be in the table
PROCESSOR = "processor time"  # property of a test


class Duration(NamedTuple):
    """Processor time and waiting time [s]."""

    processor: float
    waiting: float

    @property
    def total(self) -> float:
        return self.processor + self.waiting


def read() -> dict[str, Duration]:
    """By test: of setup, call and teardown."""
    rows = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    return {test: Duration(*row) for test, row in rows.items()}


def file_of(test: str) -> str:
    return test.partition("::")[0]


def room_of(test: str) -> str:
    return test.split("/")[1]


def sort_and_mark(items: list[pytest.Item], table: Mapping[str, Duration]) -> None:
    """Mark slow tests; put files in the order of their total durations, longest first."""
    totals = Counter({file: row.total for file, row in table.items() if "::" not in file})
    items.sort(key=lambda item: -totals[file_of(item.nodeid)])  # a stable sort: tests of a file keep their order
    for item in items:
        if item.nodeid in table and table[item.nodeid].total >= SLOW:
            item.add_marker("slow")


def updated(
    table: Mapping[str, Duration], measured: Mapping[str, Duration], exists: Iterable[str]
) -> dict[str, Duration]:
    """The table after a run: measured files replace their rows, rows of files that do not exist are dropped."""
    present, files = set(exists), dict[str, list[Duration]]()
    for test, row in measured.items():
        files.setdefault(file_of(test), []).append(row)
    rows = {test: row for test, row in table.items() if file_of(test) not in files and file_of(test) in present}
    rows |= {file: _sum(each) for file, each in files.items()}
    rows |= {test: row for test, row in measured.items() if row.total >= RECORDED}
    return {test: Duration(*(round(seconds, 1) for seconds in row)) for test, row in sorted(rows.items())}


def _sum(rows: Iterable[Duration]) -> Duration:
    return Duration(*(sum(column) for column in zip(*rows, strict=True)))


class ProcessorTime:
    """A plugin for each worker: what a test and the programs that it waited for took, as a property of its report."""

    def __init__(self) -> None:
        self._begun = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._begun = _processor_time()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, object, object]:
        if call.when == "teardown":
            item.user_properties.append((PROCESSOR, _processor_time() - self._begun))
        return (yield)


def _processor_time() -> float:
    return sum(os.times()[:4])


class Recorder:
    """A plugin that sums the phases of each test; with xdist it runs in the controller."""

    def __init__(self) -> None:
        self._whole: dict[str, float] = defaultdict(float)
        self._processor: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._whole[report.nodeid] += report.duration
        properties = dict(report.user_properties)
        if PROCESSOR in properties:
            self._processor[report.nodeid] = properties[PROCESSOR]

    @property
    def measured(self) -> dict[str, Duration]:
        found = {}
        for test, whole in self._whole.items():
            processor = self._processor.get(test, whole)
            found[test] = Duration(processor, max(whole - processor, 0.0))
        return found


class TimePerRoom(Recorder):
    """At the end: a table of the rooms, and the tests of LONG without a measurement."""

    def __init__(self, table: Mapping[str, Duration]) -> None:
        super().__init__()
        self._table = table

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rooms: dict[str, list[Duration]] = defaultdict(list)
        for test, row in self.measured.items():
            rooms[room_of(test)].append(row)
        sums = {room: _sum(rows) for room, rows in rooms.items()}
        terminalreporter.section("time per room [s]")
        terminalreporter.write_line(f"{'room':18}{'tests':>7}{'processor':>11}{'waiting':>9}")
        for room, (processor, waiting) in sorted(sums.items(), key=lambda pair: -sum(pair[1])):
            terminalreporter.write_line(f"{room:18}{len(rooms[room]):7}{processor:11.0f}{waiting:9.0f}")
        for test, row in self.measured.items():
            if row.total >= LONG and test not in self._table:
                terminalreporter.write_line(f"{row.total:.1f} s, no row in {TABLE.name}: {test}")


def main(arguments: list[str]) -> int:
    recorder = Recorder()
    code = pytest.main(["--full", *arguments], plugins=[recorder])
    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    rows = updated(read(), recorder.measured, files)
    TABLE.write_text("{\n" + ",\n".join(f"{json.dumps(test)}: {list(row)}" for test, row in rows.items()) + "\n}\n")
    slow = [row for row in rows.values() if row.total >= SLOW]
    print(f"{TABLE.relative_to(ROOT)}: {len(rows)} tests of {RECORDED} s or more, {len(slow)} of them slow")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
