"""What a motion can determine: the derivatives of the errors at the found numbers.

A quantity is not identifiable where even a change of the order of itself would be hidden by the noise, were all others
known. It is found only in combination where changes of others hide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.identification.blocks import DELAY, GAIN, OFFSET, VARIABLES, BodyBlock, LoadBlock, body_scales
from cosim.apps.identification.variables import Variables
from cosim.core.types import Array

UNSEEN = 0.5  # standard deviation, relative to the quantity itself, with all others known
UNSURE = 0.3  # … with all others unknown
PRIOR = 1e-4  # of variables, where all are unknown: one of 1 would hold what the motion leaves open near the rig
SURE = 3.0  # standard deviations: a found value that is larger says how large the number is
NOTICED = 0.05  # of the drives: an effect of this size counts
WORDS = {"com": "centre of mass"}


@dataclass(frozen=True)
class Quantity:
    """A part of a block (by its number and title) that has a meaning of its own: a number of the rig, and which values
    of the block it is."""

    block: int
    owner: str
    number: str
    title: str
    where: slice


def quantities_of(variables: Variables) -> list[Quantity]:
    found = []
    for number, block in enumerate(variables.blocks):
        first = 0
        for name, length in zip(block.numbers or (block.title,), block.lengths or (block.start.size,), strict=True):
            if isinstance(block, LoadBlock) and name.endswith(".mass"):  # is known
                first += length
                continue
            found.append(Quantity(number, block.title, name, _title(name), slice(first, first + length)))
            first += length
    return found


def scales_of(variables: Variables, values: Array, deviations: Array, by_beta: Array, drive: Array) -> list[Array]:
    """Of each block what counts as a change of the order of its values: of a body its mass, size and both together; of
    other numbers the found value where it is sure, and at least the rig's, in place of a 0 what would need a part of
    the drives. values (n,): found, with their standard deviations; by_beta (k, nv, size): slopes of the errors; drive
    (nv,): root mean squares."""
    effects = np.sqrt(np.mean(by_beta**2, axis=0))  # (nv, size), of 1 of each
    kinds = [block.title.rpartition(".")[2] for block in variables.blocks]
    strongest = dict[str, float]()  # of all joints: one that rests needs no other size of a friction
    for kind, place in zip(kinds, variables.places, strict=True):
        strongest[kind] = max(strongest.get(kind, 0.0), float(effects[:, place].max()))
    own_drives = drive[np.argmax(effects, axis=0)]
    found = []
    places = zip(kinds, variables.blocks, variables.places, variables.number_places, strict=True)
    for kind, block, column, place in places:
        own = values[place]
        if isinstance(block, BodyBlock) and own.size == VARIABLES:
            found.append(body_scales(own))
        elif block.title == DELAY or own.size > 1:
            found.append(block.scale)
        else:
            usual = NOTICED * own_drives[column] / max(strongest[kind], 1e-300)
            usual = usual if block.rig[0] == 0.0 else np.abs(block.rig)
            if block.divides:  # a found value near 0 means that its reciprocal has no bound
                found.append(np.abs(own))
                continue
            sure = np.abs(own) > SURE * deviations[place]  # else the found value says nothing
            found.append(np.maximum(np.where(sure, np.abs(own), 0.0), usual))
    return found


def _title(number: str) -> str:
    if number == DELAY:
        return "the delay of the drives"
    if number.startswith((OFFSET, GAIN)):
        what, _, joint = number.partition(".")
        return f"the {what} of the recorded signal of {joint}"
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


def look(variables: Variables, slope: Array, by_values: Array, covariance: Array, scales: Sequence[Array]) -> Seen:
    """slope (m, size): of the errors over their noise by the variables; by_values (n, size): ∂values/∂variables;
    covariance (n, n): of the values; scales: see `scales_of`."""
    quantities = quantities_of(variables)
    alone, together = [], []
    for quantity in quantities:
        block = variables.places[quantity.block]
        values = variables.number_places[quantity.block]
        where = slice(values.start + quantity.where.start, values.start + quantity.where.stop)
        # of the change of the variables of its block that changes nothing else of it
        scale = float(scales[quantity.block][quantity.where.start])
        change = np.linalg.pinv(by_values[values, block])[:, quantity.where] * scale
        strongest = np.linalg.norm(slope[:, block] @ change, 2)
        alone.append(1.0 / max(strongest, 1e-300))
        together.append(np.sqrt(np.linalg.norm(covariance[where, where], 2)) / scale)
    return Seen(tuple(quantities), np.array(alone), np.array(together))
