"""Tests in real time, or beside programs with time limits: a machine that stalls disturbs what they see.

One that fails is run again, twice at most; a defect fails each time. Those that were run again are named at the end.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

AGAIN = 2
# rooms with emulated drives, other programs, sockets or pages, which have time limits; the others fail once
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


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of these rooms for pytest-rerunfailures."""
    for item in items:
        if item.nodeid.split("/")[1] in ROOMS:
            item.add_marker(pytest.mark.flaky(reruns=AGAIN))
