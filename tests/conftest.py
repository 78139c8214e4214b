"""Fixtures for every room."""

from tests.kit.system_fixtures import python_loop, rig_of, sample
from tests.kit.unit_fixtures import command, loops, rig_parts, rigs

__all__ = ["command", "loops", "python_loop", "rig_of", "rig_parts", "rigs", "sample"]
