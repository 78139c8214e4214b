"""Two levels of tests: the gate, which every change passes, and everything (`--full`).

A test with the mark `full` is left out of the gate. It runs with `--full`, with `-m` and an expression that names the
mark, and where the command line names it. Of many cases, `covering` keeps in the gate as few as have every feature that
tells them apart; of a product, such as samples × readers, the mark `one_of_each` keeps each value of each parameter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

OPTION = "--full"
full = pytest.mark.full
one_of_each = pytest.mark.one_of_each


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what products have more than one of each, and deselect what is not in the gate."""
    for cases in _products(items):
        chosen = _choice([set(map(_value, case.callspec.params.items())) for case in cases], [1.0] * len(cases))
        for k, case in enumerate(cases):
            if k not in chosen:
                case.add_marker(full)
    if config.getoption(OPTION) or full.name in (config.getoption("markexpr") or ""):
        return
    named = [_named(config, argument) for argument in config.args if "::" in argument]
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        runs = item.get_closest_marker(full.name) is None or _is_one_of(item, named)
        (kept if runs else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def few(cases: Iterable[Any], count: int) -> list[Any]:
    """Parameters of a test that differ by chance, as seeds do: so many are in the gate, the rest has `full`."""
    return [pytest.param(case, marks=() if k < count else full) for k, case in enumerate(cases)]


def _products(items: list[pytest.Item]) -> Iterable[list[Any]]:
    """The cases of each test with the mark."""
    found: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(one_of_each.name):
            found[item.nodeid.partition("[")[0]].append(item)
    return found.values()


def _value(parameter: tuple[str, Any]) -> Hashable:
    """A parameter and which of its values this is: the cases have the same objects."""
    name, value = parameter
    return name, id(value)


def _choice(has: Sequence[set[Hashable]], costs: Sequence[float]) -> set[int]:
    """Cases that have all features, by a greedy choice of those with most new ones for their cost."""
    missing, chosen = set[Hashable]().union(*has), set[int]()
    while missing:
        best = max(range(len(has)), key=lambda k: (len(has[k] & missing) / costs[k], -k))
        chosen.add(best)
        missing -= has[best]
    return chosen


def _named(config: pytest.Config, argument: str) -> tuple[Path, str]:
    """The file of an argument of the command line, and what it names within."""
    file, _, within = argument.partition("::")
    return (config.invocation_params.dir / file).resolve(), within


def _is_one_of(item: pytest.Item, named: Sequence[tuple[Path, str]]) -> bool:
    _, _, own = item.nodeid.partition("::")
    return any(item.path == file and (own == name or own.startswith((f"{name}[", f"{name}::"))) for file, name in named)


def covering(
    cases: Iterable[Any],
    features: Callable[[Any], Iterable[Hashable]],
    cost: Callable[[Any], float] = lambda case: 1.0,
) -> list[Any]:
    """Parameters of a test: all cases, of which those that the gate does not need have the mark `full`.

    features: what a case has; each that any case has is in the gate. A tuple has a value for each argument of the test.
    """
    cases = list(cases)
    kept = _choice([set(features(case)) for case in cases], list(map(cost, cases)))
    marks = [() if k in kept else (full,) for k in range(len(cases))]
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)
        for case, mark in zip(cases, marks, strict=True)
    ]


def chosen(
    cases: Iterable[Any],
    features: Callable[[Any], Iterable[Hashable]],
    cost: Callable[[Any], float] = lambda case: 1.0,
) -> list[Any]:
    """Of many cases, as few as have every feature: what the others would show, these show too."""
    cases = list(cases)
    kept = _choice([set(features(case)) for case in cases], list(map(cost, cases)))
    return [case for k, case in enumerate(cases) if k in kept]
