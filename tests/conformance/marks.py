"""Parameters and constants of the conformance tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .families import Case, real_cases, stepped_cases


def on(condition: Callable[[Case], bool]) -> pytest.MarkDecorator:
    """Every family in simulated time, and one on each kind of line in real time."""
    chosen = [case for case in (*stepped_cases(), *real_cases()) if condition(case)]
    return pytest.mark.parametrize("case", chosen, ids=str)


# what a connection can change
every = on(lambda case: True)
# what drives and drivers do: beyond a bus between processes these are the same as on one inside a process
engines = on(lambda case: case.compiled or case.line != "udp_multicast")
# what drivers do while motors are off, where none runs in machine code
drivers = on(lambda case: not case.compiled and case.line != "udp_multicast")
# buses between processes are tested elsewhere
apart = on(lambda case: case.line != "udp_multicast")
on_frames = on(lambda case: case.line != "pty")


PUSH = 0.02  # N·m, moves a joint at about 0.6 and 2.5 rad/s


def without_b(rig: dict) -> None:
    del rig["drivers"][0]["joints"]["b"]


def assert_has_fix(words: str) -> None:
    """One line with the error and the fix."""
    name, _, fix = words.partition("; ")
    assert name and fix and "\n" not in words
