"""What a motion can determine, before anything is solved: the derivatives of the equation error at the numbers of the
rig.

A quantity is not identifiable where even a change of the order of itself would be hidden by the noise, were all others
known. It is found only in combination where changes of others hide it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.apps.identification.variables import DELAY, Variables
from cosim.core.types import Array

UNSEEN = 0.5  # standard deviation, relative to the quantity itself, with all others known
UNSURE = 0.3  # … with all others unknown
PRIOR = 1e-4  # of variables, where all are unknown: one of 1 would hold what the motion leaves open near the rig
WORDS = {"com": "centre of mass"}


@dataclass(frozen=True)
class Quantity:
    """A part of a block (by its number and title) that has a meaning of its own: a number of the rig, which values of
    the block it is, and what counts as a change of the order of itself."""

    block: int
    owner: str
    number: str
    title: str
    where: slice
    scale: float


def quantities_of(variables: Variables) -> list[Quantity]:
    found = []
    for number, block in enumerate(variables.blocks):
        first = 0
        for name, length in zip(block.numbers or (block.title,), block.lengths or (1,), strict=True):
            where = slice(first, first + length)
            found.append(Quantity(number, block.title, name, _title(name), where, float(block.scale[first])))
            first += length
    return found


def _title(number: str) -> str:
    if number == DELAY:
        return "the delay of the drives"
    owner, _, what = number.rpartition(".")
    of = owner.removeprefix("mechanism.").removeprefix("joints.").removesuffix(".actuator").removesuffix(".friction")
    return f"the {WORDS.get(what, what.replace('_', ' '))} of {of}"


@dataclass(frozen=True)
class Seen:
    """Of each quantity its relative standard deviation, with all others known and with all unknown."""

    quantities: tuple[Quantity, ...]
    alone: Array
    together: Array

    @property
    def unseen(self) -> Array:
        return self.alone > UNSEEN

    @property
    def unsure(self) -> Array:
        return ~self.unseen & (self.together > UNSURE)


def look(variables: Variables, slope: Array, by_values: Array, covariance: Array) -> Seen:
    """slope (m, size): of the errors over their noise by x, at 0; by_values (n, size): ∂values/∂x; covariance
    (size, size): of x with PRIOR."""
    quantities = quantities_of(variables)
    of_values = by_values @ covariance @ by_values.T
    alone, together = [], []
    for quantity in quantities:
        block = variables.places[quantity.block]
        values = variables.number_places[quantity.block]
        where = slice(values.start + quantity.where.start, values.start + quantity.where.stop)
        # of the change of the variables of its block that changes nothing else of it
        change = np.linalg.pinv(by_values[values, block])[:, quantity.where] * quantity.scale
        strongest = np.linalg.norm(slope[:, block] @ change, 2)
        alone.append(1.0 / max(strongest, 1e-300))
        together.append(np.sqrt(np.linalg.norm(of_values[where, where], 2)) / quantity.scale)
    return Seen(tuple(quantities), np.array(alone), np.array(together))
