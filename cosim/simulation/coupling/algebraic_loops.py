"""Algebraic loops: outputs that depend on themselves at the same time, through the feedthrough of several parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from cosim.core.errors import InputError
from cosim.simulation.coupling.couplings import Couplings, HasSignals, Terminal


class HasFeedthrough(HasSignals, Protocol):
    """See `Part`."""

    @property
    def feedthrough(self) -> frozenset[tuple[str, str]]: ...


class _Node(NamedTuple):
    terminal: Terminal
    is_output: bool


FIX = "break it by a delay, `initial` of a wire or of a system, or by a part whose output is a state"


def in_order_of_evaluation(parts: Mapping[str, HasFeedthrough], couplings: Couplings) -> list[Terminal]:
    """All outputs, each after those that it depends on at the same time. Raises InputError: an algebraic loop."""
    order: list[Terminal] = []
    path: list[_Node] = []

    def needed(node: _Node) -> list[_Node]:
        """What it depends on at the same time."""
        name, signal = node.terminal
        if node.is_output:
            through = sorted(given for given, output in parts[name].feedthrough if output == signal)
            return [_Node(Terminal(name, given), False) for given in through]
        origin = couplings.sources.get(node.terminal)
        return [] if origin is None or origin.initial is not None else [_Node(origin.source, True)]

    def visit(node: _Node) -> None:
        if node.is_output and node.terminal in order:
            return
        if node in path:
            first = path.index(node)
            loop = [node, *reversed(path[first + 1 :]), node]
            raise InputError(f"algebraic loop {' → '.join(str(each.terminal) for each in loop)}; {FIX}")
        path.append(node)
        for each in needed(node):
            visit(each)
        path.pop()
        if node.is_output:
            order.append(node.terminal)

    for name, part in parts.items():
        for signal in part.outputs:
            visit(_Node(Terminal(name, signal), True))
    return order
