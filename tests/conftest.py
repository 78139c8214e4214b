"""Fixtures and hooks for every room."""

import gc
import signal
import sys

import pytest

from tests.kit import durations
from tests.kit.command import command
from tests.kit.rigs import rig_of
from tests.kit.samples import sample

__all__ = ["command", "rig_of", "sample"]


# keep what pytest compiles of test modules: without it, each collection takes three times as long
sys.dont_write_bytecode = False
# a job in the background ignores it, and so would the programs that tests send it to
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    durations.sort_and_mark(items, durations.read())


def pytest_collection_finish() -> None:
    """What pytest holds of ten thousand tests is not garbage: each real-time run would look through it when it begins."""
    gc.collect()
    gc.freeze()
