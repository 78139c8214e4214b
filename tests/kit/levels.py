"""Two levels of tests: the gate, which every change passes, and everything (`--full`).

`tests/gate.json` says which tests are in the gate; `tests.kit.gate` chooses them. The others get the mark `full`, never
by hand, and run with `--full`, with `-m` and an expression that names the mark, and where the command line names them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kit import gate, messages

OPTION = "--full"
full = pytest.mark.full


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is not in the gate, and deselect it unless it was asked for."""
    choice = gate.read_choice()
    for item in items:
        if choice.leaves_out(item.nodeid):
            item.add_marker(full)
    asked = config.getoption(OPTION) or config.getoption(messages.OPTION)
    if asked or full.name in (config.getoption("markexpr") or ""):
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


def chosen(
    cases: Iterable[Any],
    features: Callable[[Any], Iterable[Hashable]],
    cost: Callable[[Any], float] = lambda case: 1.0,
) -> list[Any]:
    """Of many cases, as few as have every feature, by a greedy choice of those with most new ones for their cost: what
    the others would show, these show too."""
    cases = list(cases)
    has = [set(features(case)) for case in cases]
    missing, kept = set[Hashable]().union(*has), set[int]()
    while missing:
        best = max(range(len(has)), key=lambda k: (len(has[k] & missing) / cost(cases[k]), -k))
        kept.add(best)
        missing -= has[best]
    return [case for k, case in enumerate(cases) if k in kept]
