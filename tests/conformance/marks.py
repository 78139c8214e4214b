"""Parameters and constants of the conformance tests."""

from __future__ import annotations

import pytest

from .families import cases

every = pytest.mark.parametrize("case", cases(), ids=str)


# buses between processes are tested elsewhere
apart = pytest.mark.parametrize("case", [case for case in cases() if case.line != "udp_multicast"], ids=str)


on_frames = pytest.mark.parametrize("case", [case for case in cases() if case.line != "pty"], ids=str)


PUSH = 0.02  # N·m, moves a joint at about 0.6 and 2.5 rad/s


def without_b(rig: dict) -> None:
    del rig["drivers"][0]["joints"]["b"]


def assert_has_fix(words: str) -> None:
    """One line with the error and the fix."""
    name, _, fix = words.partition("; ")
    assert name and fix and "\n" not in words
