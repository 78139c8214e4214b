"""Fixtures and hooks for every room."""

import sys

import pytest

from tests.kit import durations
from tests.kit.system_fixtures import python_loop, rig_of, sample
from tests.kit.unit_fixtures import command, loops, rig_parts, rigs

__all__ = ["command", "loops", "python_loop", "rig_of", "rig_parts", "rigs", "sample"]

# keep what pytest compiles of test modules: without it, each collection takes three times as long
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    durations.sort_and_mark(items, durations.read())
