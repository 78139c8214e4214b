"""What is identified: numbers of the rig, and the variables in which they are searched.

Variables are 0 for the numbers of the rig and 1 for a change of the order of themselves: of a link see
`inertia_variables`; of a number above 0 the logarithm of its ratio; the delay in its own unit.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim import ops
from cosim.compile.jacobian import Jacobian
from cosim.errors import InputError, InputErrors, did_you_mean
from cosim.identification.inertia_variables import VARIABLES, numbers_of_inertia, upper_factor
from cosim.multibody.description.inertia import inertia_matrix
from cosim.multibody.inertial_parameters import ELEMENTS
from cosim.rig.open_numbers import numbers_of
from cosim.rig.rig import Rig
from cosim.types import Array, Numeric

LINK = ("mass", "com", "inertia")
DELAY = "delay"
DELAY_UNIT = 0.01  # s, of a variable
SMALL = {"viscous": 0.1, "coulomb": 0.1, "damping": 0.1, "friction": 0.1}  # SI: where the search of a 0 begins
# word of --fit -> patterns of names of numbers
WORDS: dict[str, tuple[str, ...]] = {
    "inertia": ("mechanism.*.mass",),
    "friction": (
        "joints.*.actuator.viscous", "joints.*.actuator.coulomb", "mechanism.*.damping", "mechanism.*.friction",
    ),
    "torque_constant": ("joints.*.actuator.torque_constant",),
    "rotor_inertia": ("joints.*.actuator.rotor_inertia",),
    "elasticity": ("joints.*.actuator.stiffness", "joints.*.actuator.damping"),
    DELAY: (DELAY,),
}  # fmt: skip
DEFAULT = ("inertia", "friction")


@dataclass(frozen=True)
class VariableBlock:
    """Variables that belong together: their names, the numbers of the rig that follow from them and their values in the
    rig, and the factor U₀ of a link."""

    title: str
    numbers: tuple[str, ...]
    start: Array
    factor: Array | None = None

    @property
    def size(self) -> int:
        return VARIABLES if self.factor is not None else 1

    def values(self, x: Numeric) -> Numeric:
        """The numbers (n,) of variables (size,)."""
        if self.factor is not None:
            return numbers_of_inertia(self.factor, x)
        if self.title == DELAY:
            return ops.array([self.start[0] + DELAY_UNIT * x[0]])
        return ops.array([self.start[0] * ops.exp(x[0])])

    def linear(self, x: Numeric) -> Numeric:
        """(size,) of variables, in which the equation error is linear, apart from products: of a link its mass, first
        moment and inertia about its frame, of a torque constant its reciprocal, else the number itself."""
        values = self.values(x)
        if self.factor is None:
            return 1.0 / values if self.title.endswith(".torque_constant") else values
        mass, com, about_com = values[0], values[1:4], values[4:]
        square = com[0] * com[0] + com[1] * com[1] + com[2] * com[2]
        shift = [mass * ((square if i == j else 0.0) - com[i] * com[j]) for i, j in ELEMENTS]
        return ops.concatenate([ops.array([mass]), mass * com, about_com + ops.array(shift)])


@dataclass(frozen=True)
class Variables:
    """All of them side by side."""

    blocks: tuple[VariableBlock, ...]

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    @property
    def places(self) -> list[slice]:
        """Of each block in the variables."""
        ends = np.cumsum([block.size for block in self.blocks]).tolist()
        return [slice(end - block.size, end) for end, block in zip(ends, self.blocks, strict=True)]

    @property
    def number_places(self) -> list[slice]:
        """Of each block in the values of all numbers."""
        ends = np.cumsum([block.start.size for block in self.blocks]).tolist()
        return [slice(end - block.start.size, end) for end, block in zip(ends, self.blocks, strict=True)]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the numbers of the rig that the equations take, without the delay."""
        return tuple(name for block in self.blocks for name in block.numbers)

    @property
    def delayed(self) -> bool:
        return any(block.title == DELAY for block in self.blocks)

    def values(self, x: Numeric) -> Numeric:
        """The numbers (n,), the delay last."""
        return ops.concatenate([block.values(x[place]) for block, place in zip(self.blocks, self.places, strict=True)])

    def linear(self, x: Numeric) -> Numeric:
        """See `VariableBlock.linear`, (size,)."""
        return ops.concatenate([block.linear(x[place]) for block, place in zip(self.blocks, self.places, strict=True)])

    @cached_property
    def linear_slope(self) -> Jacobian:
        """∂linear/∂x (size, size), which has an inverse."""
        return Jacobian(self.linear, [(self.size,)], "linear")

    @cached_property
    def slope(self) -> Jacobian:
        """∂values/∂x (n, size)."""
        return Jacobian(self.values, [(self.size,)], "variables")


def choose(rig: Rig, wanted: Sequence[str]) -> Variables:
    """wanted: words of WORDS, or names of numbers of the rig, such as `joints.elbow.actuator.viscous`.

    Raises InputErrors for names that do not exist, and InputError for a rig without any of these numbers.
    """
    known = {name: number.values for name, number in numbers_of(rig).items()}
    known = {name: values for name, values in known.items() if _exists(name, known)}
    chosen, errors = dict[str, None](), list[InputError]()
    for word in wanted:
        patterns = WORDS.get(word, (word,))
        found = [name for name in [*known, DELAY] if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
        if not found and word not in WORDS:
            near = did_you_mean(word, [*WORDS, *known])
            errors.append(InputError(f"there is no number '{word}'{near}", "--fit"))
        chosen |= dict.fromkeys(_without_doubles(found, known))
    if errors:
        raise InputErrors(errors)
    blocks = [_block(name, known) for name in chosen if name != DELAY]
    if DELAY in chosen:
        blocks.append(VariableBlock(DELAY, (), np.zeros(1)))
    if not blocks:
        raise InputError(f"the rig has no numbers for {' and '.join(wanted)}; see Rig.numbers", "--fit")
    return Variables(tuple(blocks))


def _exists(name: str, known: Mapping[str, Array]) -> bool:
    """Whether the number is finite: limits and the stiffness of rigid gears are not, whose damping is none either."""
    twin = name.removesuffix("damping") + "stiffness"
    return bool(np.isfinite(known[name]).all() and (twin not in known or np.isfinite(known[twin]).all()))


def _without_doubles(names: Sequence[str], known: Mapping[str, Array]) -> list[str]:
    """Friction of a joint is looked for in its drive, where that has it."""
    kept = []
    for name in names:
        owner, _, what = name.rpartition(".")
        twin = {"damping": "viscous", "friction": "coulomb"}.get(what)
        if twin is None or f"joints.{owner.removeprefix('mechanism.')}.actuator.{twin}" not in known:
            kept.append(name)
    return kept


def _block(name: str, known: Mapping[str, Array]) -> VariableBlock:
    owner, _, what = name.rpartition(".")
    if owner.startswith("mechanism.") and what in LINK:
        numbers = tuple(f"{owner}.{part}" for part in LINK)
        mass, com, inertia = (known[number] for number in numbers)
        factor = upper_factor(float(mass[0]), com, inertia_matrix(*inertia))
        return VariableBlock(owner, numbers, np.concatenate([mass, com, inertia]), factor)
    if known[name].size > 1:
        raise InputError(f"'{name}' has {known[name].size} numbers; only single ones are identified", "--fit")
    start = known[name]
    return VariableBlock(name, (name,), start if start[0] > 0.0 else np.array([SMALL.get(what, 1e-3)]))
