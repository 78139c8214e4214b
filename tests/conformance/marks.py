"""Parameters and constants of the conformance tests: in simulated time all families, in real time what only it can
show, which is marked."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from .families import Case, adapters, real_cases, stepped_cases


def over(*cases: Case) -> pytest.MarkDecorator:
    """A test of these cases."""
    return pytest.mark.parametrize("case", [param(case) for case in cases])


def with_each(name: str, values: Sequence[Any], cases: Sequence[Case]) -> pytest.MarkDecorator:
    """A test of these cases with each of the values; in real time with the first one, as a line does not know them."""
    pairs = [(case, value) for case in cases for value in (values if case.stepped else values[:1])]
    return pytest.mark.parametrize(("case", name), [param(*pair) for pair in pairs])


def in_turn(names: str, values: Iterable[Any], cases: Sequence[Case]) -> pytest.MarkDecorator:
    """A test of each case with one of the values: of what is the same in all families, each value is with some."""
    pairs = [(case, *(value if "," in names else (value,))) for case, value in zip(cases, itertools.cycle(values))]
    return pytest.mark.parametrize(f"case, {names}", [param(*pair) for pair in pairs])


def param(case: Case, *values: Any) -> Any:
    """A parameter of a test that is marked in real time."""
    marks = () if case.stepped else pytest.mark.real_time
    return pytest.param(case, *values, id="-".join(map(str, (case, *values))), marks=marks)


IN_PYTHON = tuple(case for case in real_cases() if not case.compiled)
IN_MACHINE_CODE = tuple(case for case in real_cases() if case.compiled)
EVERY = (*stepped_cases(), *adapters(), *real_cases())
ENGINES = (*stepped_cases(), IN_MACHINE_CODE[0])
# what each end of a line and each engine can change
every = over(*EVERY)
# what a line can change, in calls that are never in machine code
on_lines = over(*stepped_cases(), *adapters(), *IN_PYTHON)
in_memory = over(*stepped_cases(), *adapters())
# where machine code is entered and left: it has no simulated time
engines = over(*ENGINES)
# what drives and drivers do; that machine code does the same is in test_cycle_bytes.py and test_fuzz_cycles.py
drivers = over(*stepped_cases())


PUSH = 0.02  # N·m, moves a joint at about 0.6 and 2.5 rad/s


def without_b(rig: dict) -> None:
    del rig["drivers"][0]["joints"]["b"]


def assert_has_fix(words: str) -> None:
    """One line with the error and the fix."""
    name, _, fix = words.partition("; ")
    assert name and fix and "\n" not in words
