"""Fixtures and hooks for every room."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cosim.rig.wiring.cached_parts import CachedParts
from tests.kit import coverage_by_test, crashes, durations, levels, messages, real_time
from tests.kit.command import command
from tests.kit.messages import said
from tests.kit.rigs import rig_of
from tests.kit.samples import sample

__all__ = ["command", "rig_of", "said", "sample"]


# keep what Python compiles, also in programs that tests start: without it, a collection takes three times as long
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# else it reserves 1 GiB in each process that has seen a data frame, which every real-time run there would lock
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
# sockets of this process of tests alone: another one may run at the same time
os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="cosim-")
atexit.register(shutil.rmtree, os.environ["XDG_RUNTIME_DIR"], ignore_errors=True)
# the same examples in each run, and none is late on a machine that stalls
slow = [HealthCheck.too_slow]
settings.register_profile(
    "repeatable", max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=slow
)
settings.load_profile("repeatable")
# a job in the background ignores it, and so would the programs that tests send it to
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def parts_of_passing_rigs_are_not_kept() -> Iterator[None]:
    """No other process loads a rig of a temporary folder. Keeping what is known of it, among all the object code of the
    tests, takes half the time of a short run. In a cache folder of its own, a test has what a user has."""
    keep, passing = CachedParts.save, Path(tempfile.gettempdir()).resolve()

    def save(parts: CachedParts) -> None:
        if "COSIM_CACHE_DIR" in os.environ or not any(Path(file).is_relative_to(passing) for file in parts.files):
            keep(parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CachedParts, "save", save)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--time-per-room", action="store_true", help="print the time of each room")
    parser.addoption(messages.OPTION, action="store_true", help="write messages.yaml of each room anew; with -n 0")
    parser.addoption(levels.OPTION, action="store_true", help="run everything, not the gate alone")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(durations.ProcessorTime())
    crashes.register(config)
    real_time.register(config)
    if coverage_by_test.FOLDER in os.environ:
        config.pluginmanager.register(coverage_by_test.CoverageByTest())
    if config.getoption("--time-per-room") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.TimePerRoom(durations.read()))


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are processors: tests of hardware and of real time wait more than they compute."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + max(processors // 2, 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What a collection makes stays: looking for garbage meanwhile takes a fifth of its time, in each worker."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    levels.leave_out(config, items)
    durations.sort_and_mark(items, durations.read())
    if config.getoption(messages.OPTION):
        messages.begin_update(items)


def pytest_collection_finish() -> None:
    """What pytest holds of ten thousand tests is not garbage: each real-time run would look through it as it begins."""
    freeze_what_stays()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Nor are the modules that the first test of a file imports, and what its fixtures keep for the others."""
    result = yield
    if item.path not in BEGUN:
        BEGUN.add(item.path)
        freeze_what_stays()
    return result


BEGUN: set[Path] = set()  # files of which this process has run a test


def freeze_what_stays() -> None:
    """Garbage goes now, all else is not looked at again."""
    gc.collect()
    gc.freeze()
