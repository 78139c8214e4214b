"""Two levels of tests: the gate, which every change passes, and everything (`--full`).

A test with the mark `full` is left out of the gate. It runs with `--full`, with `-m` and an expression that names the
mark, and where the command line names it. Of a product of cases, such as samples × readers, `covering` keeps in the
gate as few as have every feature that tells the cases apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

OPTION = "--full"
full = pytest.mark.full


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not in the gate."""
    if config.getoption(OPTION) or full.name in config.getoption("markexpr"):
        return
    named = [_named(config, argument) for argument in config.args if "::" in argument]
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        runs = item.get_closest_marker(full.name) is None or _is_one_of(item, named)
        (kept if runs else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _named(config: pytest.Config, argument: str) -> tuple[Path, str]:
    """The file of an argument of the command line, and what it names within."""
    file, _, within = argument.partition("::")
    return (config.invocation_params.dir / file).resolve(), within


def _is_one_of(item: pytest.Item, named: Sequence[tuple[Path, str]]) -> bool:
    _, _, own = item.nodeid.partition("::")
    return any(item.path == file and (own == name or own.startswith((f"{name}[", f"{name}::"))) for file, name in named)


def covering(
    cases: Iterable[Any],
    features: Callable[[Any], Iterable[Hashable]] = enumerate,
    cost: Callable[[Any], float] = lambda case: 1.0,
) -> list[Any]:
    """Parameters of a test: all cases, of which those that the gate does not need have the mark `full`.

    features: what a case has; each that any case has is in the gate, by a greedy choice of the cases with most new ones
    for their cost. By default each value of each place of a tuple. A tuple has a value for each argument of the test.
    """
    cases = list(cases)
    has = [set(features(case)) for case in cases]
    missing, chosen = set().union(*has), set[int]()
    while missing:
        best = max(range(len(cases)), key=lambda k: (len(has[k] & missing) / cost(cases[k]), -k))
        chosen.add(best)
        missing -= has[best]
    marks = [() if k in chosen else (full,) for k in range(len(cases))]
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)
        for case, mark in zip(cases, marks, strict=True)
    ]
