"""What each test costs and which lines of the program it runs, also in processes that it starts.

    python -m tests.kit.coverage_by_test FOLDER [PATHS AND OPTIONS OF PYTEST]

runs everything and leaves both in the folder, for `tests.kit.gate` and `tests.kit.gate_mutants`. Code compiled by Numba
leaves no lines.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kit.durations import Recorder

ROOT = Path(__file__).parents[2]
TEST = "COSIM_TEST"  # the name of the running test, for processes that it starts
FOLDER = "COSIM_COVERAGE"
CONFIGURATION = f"""
[run]
source = {ROOT}/cosim
    {ROOT}/benchmarks
    {ROOT}/controllers
    {ROOT}/drivers
    {ROOT}/controllers
data_file = ${{{FOLDER}}}/lines
parallel = true
context = ${{{TEST}}}
patch = _exit, fork
disable_warnings = no-data-collected, module-not-imported, module-not-measured, no-sysmon, already-imported
"""
TESTS = "tests.json"


class Measured(NamedTuple):
    """A test that passed."""

    cost: float  # s of processor time, and a third of the time that a worker waits
    lines: dict[str, int]  # by file relative to the checkout: bit k for line k


class CoverageByTest:
    """A plugin for each process of pytest: lines of each test."""

    def __init__(self) -> None:
        from coverage import Coverage

        self._coverage: Any = Coverage(config_file=os.environ["COVERAGE_PROCESS_START"], context="")
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        os.environ[TEST] = item.nodeid
        self._coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()


class Failed(Recorder):
    """A plugin for the controller: tests that did not pass."""

    def __init__(self) -> None:
        super().__init__()
        self.tests: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        super().pytest_runtest_logreport(report)
        if not report.passed:
            self.tests.add(report.nodeid)


def read(folder: Path) -> dict[str, Measured]:
    """By test."""
    lines = _lines(folder)
    rows = json.loads((folder / TESTS).read_text())
    return {
        test: Measured(processor + waiting / 3.0, lines.get(test, {})) for test, (processor, waiting) in rows.items()
    }


def _lines(folder: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for file in folder.glob("lines*"):
        with closing(sqlite3.connect(file)) as connection:
            files = {k: Path(path) for k, path in connection.execute("select id, path from file")}
            tests = dict(connection.execute("select id, context from context"))
            for at, test, bits in connection.execute("select file_id, context_id, numbits from line_bits"):
                if tests[test] and files[at].is_relative_to(ROOT):
                    name = sys.intern(files[at].relative_to(ROOT).as_posix())
                    of_test = found.setdefault(tests[test], {})
                    of_test[name] = of_test.get(name, 0) | int.from_bytes(bits, "little")
    return found


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "configuration"
    configuration.write_text(CONFIGURATION)
    os.environ |= {FOLDER: str(folder), "COVERAGE_PROCESS_START": str(configuration), TEST: ""}
    failed = Failed()
    code = pytest.main(["--full", *arguments[1:]], plugins=[failed])
    rows = {test: row for test, row in failed.measured.items() if test not in failed.tests}
    (folder / TESTS).write_text(json.dumps(rows))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
