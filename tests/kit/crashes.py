"""A worker that ends suddenly says how: its signal or exit code, and the stacks of its threads, in the failed test."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

STACKS = "file of stacks"  # in the input of a worker
RUNNERS = ("_pytest", "pluggy", "xdist", "execnet")
PATIENCE = 5.0  # s until a process whose pipe has ended is gone


def register(config: pytest.Config) -> None:
    """In the controller of workers, or in each worker."""
    if (given := getattr(config, "workerinput", None)) is not None:
        config.pluginmanager.register(Writes(Path(given[STACKS])))
    elif config.getoption("dist", "no") != "no":
        config.pluginmanager.register(Reports())


class Writes:
    """In a worker: a crash writes to a file what it would write to the terminal, where other lines hide it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")  # open for the life of the process

    def pytest_sessionstart(self) -> None:
        faulthandler.enable(self._file)  # after pytest's own


class Reports:
    """In the controller."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crashes-")

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[STACKS] = str(Path(self._folder.name) / f"{node.gateway.id} {os.urandom(4).hex()}")

    def pytest_handlecrashitem(self, report: Any) -> None:
        with suppress(subprocess.TimeoutExpired):
            report.node.gateway._io.popen.wait(PATIENCE)
        status = report.node.gateway._io.popen.returncode
        report.longrepr += f": {how_it_ended(status)}\n{_stacks(Path(report.node.workerinput[STACKS]))}"

    def pytest_unconfigure(self) -> None:
        self._folder.cleanup()


def _stacks(path: Path) -> str:
    """Without the frames of pytest itself."""
    lines = path.read_text().splitlines() if path.exists() else []
    return "\n".join(line for line in lines if not any(f"/site-packages/{name}/" in line for name in RUNNERS))


def how_it_ended(status: int | None) -> str:
    if status is None:
        return "it still runs"
    return f"exit code {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
