"""Tests of what only real time can show, marked `real_time`: they run alone, after all others, and know the machine.

With several workers, these leave them out; when they have ended, a single one runs them one after the other. Meanwhile
a small program reads how late a process wakes that asked to be woken: a test that fails while that was later than STALL
is inconclusive, and skipped with this reason. A defect fails on a machine that does not stall.
"""

from __future__ import annotations

import bisect
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

MARK = "real_time"
ALONE = "real_time_alone"  # in the input of the worker that runs them
STALL = 5e-3  # s
# prints when [ns] it was how late [ns]; ends with the process of the tests
WATCH = """
import os, time
parent = os.getppid()
while os.getppid() == parent:
    begun = time.monotonic_ns()
    time.sleep(1e-3)
    late = time.monotonic_ns() - begun - 1_000_000
    if late > 1_000_000:
        print(begun, late, flush=True)
"""


def register(config: pytest.Config) -> None:
    """In the controller of workers, in each worker, or in the only process."""
    if (given := getattr(config, "workerinput", None)) is not None:
        for plugin in (Alone(), Judge()) if ALONE in given else (LeftOut(),):
            config.pluginmanager.register(plugin)
    elif config.getoption("dist", "no") != "no":
        config.pluginmanager.register(Afterwards())
    else:
        config.pluginmanager.register(Judge())


def _split(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """(those that have the mark, the others)"""
    marked = [item for item in items if item.get_closest_marker(MARK)]
    return marked, [item for item in items if not item.get_closest_marker(MARK)]


class LeftOut:
    """In one of several workers: runs the others, and says in which files there are some."""

    def __init__(self) -> None:
        self._files: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        marked, items[:] = _split(items)
        self._files = sorted({str(item.path) for item in marked})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        session.config.workeroutput[MARK] = self._files  # type: ignore[attr-defined]


class Alone:
    """In the worker of its own: runs no others."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:], _ = _split(items)


class Afterwards:
    """In the controller: lets a worker of its own run them when the others have ended."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._alone = False

    def pytest_configure_node(self, node: Any) -> None:
        if self._alone:
            node.workerinput[ALONE] = True

    def pytest_testnodedown(self, node: Any) -> None:
        self._files = getattr(node, "workeroutput", {}).get(MARK) or self._files

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        result = yield
        workers: Any = session.config.pluginmanager.getplugin("dsession")
        if self._files and not workers.shouldstop:
            workers.pytest_sessionfinish()
            self._alone, config = True, session.config
            config.option.tx = ["popen"]
            if not any("::" in word for word in config.args):  # what is named one by one is selected by its name
                given = config.invocation_params
                options = [word for word in given.args if word not in config.args]
                config.invocation_params = replace(given, args=(*options, *self._files))
            _forget(config)
            workers.shuttingdown = False
            workers.pytest_sessionstart(session)
            workers.pytest_runtestloop()
        return result


def _forget(config: pytest.Config) -> None:
    """What the terminal shows of the first workers: their number, and the share of tests that are done."""
    for plugin, name in (("terminaldistreporter", "_status"), ("terminalreporter", "_progress_nodeids_reported")):
        getattr(config.pluginmanager.getplugin(plugin), name, set()).clear()


class Judge:
    """Where they run: failures of a machine that stalls are inconclusive."""

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._begun_ns = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if item.get_closest_marker(MARK) and self._watch is None:
            self._watch = Watch()
        self._begun_ns = time.monotonic_ns()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and self._watch is not None and item.get_closest_marker(MARK):
            late = self._watch.longest(self._begun_ns) * 1e-9
            if late > STALL:
                reason = f"inconclusive: the machine kept a process waiting for {late * 1e3:.1f} ms; it failed with:"
                report.outcome = "skipped"
                report.longrepr = (str(item.path), item.location[1] or 0, f"{reason} {_last_line(call)}")
        return report


def _last_line(call: pytest.CallInfo[None]) -> str:
    error = call.excinfo
    return " ".join(error.exconly().split()) if error is not None else ""


class Watch:
    """How late a process wakes."""

    def __init__(self) -> None:
        # its last words, when the pipe ends with the process of the tests, are of no use
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([sys.executable, "-c", WATCH], text=True, **quiet)
        self._rows: list[tuple[int, int]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            begun, late = map(int, line.split())
            self._rows.append((begun, late))

    def longest(self, since_ns: int) -> int:
        """ns"""
        first = max(bisect.bisect(self._rows, (since_ns, 0)) - 1, 0)
        return max((late for begun, late in self._rows[first:] if begun + late >= since_ns), default=0)
