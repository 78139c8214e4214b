"""Tests of a list in its order, until one fails: `python -m tests.kit.run_listed LIST SECONDS`.

LIST: a file in JSON. Prints the test that failed and ends with 1; after these seconds of processor time, including
programs that tests have started, or if all pass, with 0.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import pytest

OPTIONS = ("-n0", "-x", "-q", "--full", "-p", "no:cacheprovider", "--no-header", "--tb=line")

FAILED = "failed: "
MEMORY = 8 << 30  # bytes; a mutant may grow something for ever


class Listed:
    def __init__(self, tests: list[str], seconds: float) -> None:
        self._place = {test: k for k, test in enumerate(tests)}
        self._seconds = seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )

    def pytest_runtest_logfinish(self) -> None:
        if sum(os.times()[:4]) > self._seconds:
            pytest.exit("the time is over", returncode=0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(f"\n{FAILED}{report.nodeid}", flush=True)


def main(arguments: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    tests: list[str] = json.loads(Path(arguments[0]).read_text())
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    code = pytest.main([*OPTIONS, *files], plugins=[Listed(tests, float(arguments[1]))])
    return 0 if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
