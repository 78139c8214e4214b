"""Rooms whose tests are run again where they fail, twice at most: emulated drives and other programs with time limits,
on a machine that stalls. A defect fails each time. Those that were run again are named at the end.

A test of what only real time can show is marked `real_time` instead, see tests/kit/real_time.py.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.kit.real_time import MARK

AGAIN = 2
ROOMS = {
    "bench",
    "browser",
    "cli",
    "client",
    "commissioning",
    "conformance",
    "control",
    "coupling",
    "dashboard",
    "deploy",
    "docs",
    "doctor",
    "drivers",
    "execution",
    "federation",
    "fmi",
    "foxglove",
    "hardware",
    "output",
    "post_mortem",
    "remote",
    "rig",
    "scenario",
    "system",
    "timing",
    "tuning",
}


def mark(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """For pytest-rerunfailures; without it each test runs once."""
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return
    for item in items:
        if item.nodeid.split("/")[1] in ROOMS and not item.get_closest_marker(MARK):
            item.add_marker(pytest.mark.flaky(reruns=AGAIN))
