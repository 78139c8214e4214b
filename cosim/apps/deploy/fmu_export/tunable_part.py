"""A part whose parameters are inputs of its code instead of constants."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from cosim.apps.deploy.description import DeployedNumber, placed
from cosim.control.tunables import Leaf, leaves_of, replaced
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.types import Numeric
from cosim.rig.rig_parameter import RigParameter
from cosim.simulation.coupling.block_part import BlockPart


class TunablePart:
    """The parameters of a block that may change while it runs: its numbers, but for those declared as constant and
    those on whose value the form of its code depends. The state at the start follows from the numbers as they are."""

    def __init__(self, part: BlockPart) -> None:
        self.part = part
        # of a class that makes its parameters at each access they cannot be replaced
        own = "params" in getattr(part.block, "__dict__", ())
        self._all = leaves_of(part.block.params) if own else {}

    @cached_property
    def leaves(self) -> dict[str, Leaf]:
        """By name, those that are inputs."""
        if self._traceable(list(self._all)):
            return self._all
        return {name: leaf for name, leaf in self._all.items() if self._traceable([name])}

    @property
    def values(self) -> np.ndarray:
        """(n,) of all of them."""
        return np.array([value for leaf in self.leaves.values() for value in _numbers(leaf)], dtype=float)

    def parametrised(self, numbers: Numeric) -> BlockPart:
        """The part with these numbers or symbols (n,) in the place of its values."""
        return self._with(list(self.leaves), numbers)

    def numbers(self, prefix: str, first: int) -> Iterator[DeployedNumber]:
        """`<prefix>mass`, of a list `<prefix>lengths/0`; first: place of the first one in the memory."""
        for name, leaf in self.leaves.items():
            values = _numbers(leaf)
            count = None if isinstance(leaf.value, float) else len(values)
            yield from placed(RigParameter(f"{prefix}{name}", f"params.{name}", leaf.declared, count), values, first)
            first += len(values)

    def _traceable(self, names: Sequence[str]) -> bool:
        symbols = SymbolicParameters(sum(len(_numbers(self._all[name])) for name in names))
        return not self._with(names, symbols.symbols).untraceable

    def _with(self, names: Sequence[str], numbers: Numeric) -> BlockPart:
        values, first = {}, 0
        for name in names:
            count = len(_numbers(self._all[name]))
            given = numbers[first : first + count]
            values[name] = given[0] if isinstance(self._all[name].value, float) else given
            first += count
        block = copy.copy(self.part.block)
        # also of frozen classes
        object.__setattr__(block, "params", replaced(block.params, values, checked=False))
        return replace(self.part, block=block)


def _numbers(leaf: Leaf) -> tuple[float, ...]:
    return leaf.value if isinstance(leaf.value, tuple) else (leaf.value,)
