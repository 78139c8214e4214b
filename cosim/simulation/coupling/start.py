"""The start of coupled parts: the order in which their outputs depend on each other, and outputs that fit the inputs.

Outputs that depend on themselves at the same time, through the feedthrough of several parts, are an algebraic loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
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


StartPart = Callable[[str, dict[str, Array]], Mapping[str, Array]]  # (part, inputs) -> outputs


def sequence_of(parts: Mapping[str, HasFeedthrough], order: Sequence[Terminal]) -> list[str]:
    """The parts, those whose outputs depend on outputs of others at the same time after these where it can be."""

    def last(name: str) -> int:
        through = {output for _, output in parts[name].feedthrough}
        return max((k for k, each in enumerate(order) if each.part == name and each.signal in through), default=-1)

    return sorted(parts, key=last)


def outputs_at_start(
    parts: Mapping[str, HasFeedthrough], couplings: Couplings, order: Sequence[Terminal], start: StartPart
) -> dict[Terminal, Array]:
    """The outputs of all parts at the start. A part is started again where its inputs were not known before.

    order: see `in_order_of_evaluation`; without loops it ends after as many rounds as there are parts, plus one.
    """
    values = {each: np.zeros(parts[each.part].outputs[each.signal].shape) for each in order}
    sequence, given = sequence_of(parts, order), dict[str, dict[str, Array]]()
    for _ in range(len(parts) + 1):
        settled = True
        for name in sequence:
            inputs = inputs_from(name, parts, couplings, values)
            before = given.get(name)
            if before is not None and all(np.array_equal(inputs[key], before[key]) for key in inputs):
                continue
            settled, given[name] = False, inputs
            for signal, value in start(name, inputs).items():
                values[Terminal(name, signal)] = np.asarray(value, dtype=float)
        if settled:
            break
    return values


def inputs_from(
    name: str, parts: Mapping[str, HasFeedthrough], couplings: Couplings, values: Mapping[Terminal, Array]
) -> dict[str, Array]:
    """The inputs of a part at the start: the outputs that drive them, or what delayed wires begin with. Inputs without
    a source are left out."""
    inputs = {}
    for signal, declared in parts[name].inputs.items():
        origin = couplings.sources.get(Terminal(name, signal))
        if origin is None:
            continue
        if origin.initial is not None:
            inputs[signal] = np.full(declared.shape, origin.initial)
        elif origin.transforms:
            inputs[signal] = np.asarray(origin.factor * values[origin.source] + origin.offset)
        else:
            inputs[signal] = values[origin.source]
    return inputs
