"""Fixtures and hooks for every room."""

import sys

import pytest

from tests.kit import durations
from tests.kit.command import command
from tests.kit.rigs import rig_of
from tests.kit.samples import sample

__all__ = ["command", "rig_of", "sample"]


# keep what pytest compiles of test modules: without it, each collection takes three times as long
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    durations.sort_and_mark(items, durations.read())
