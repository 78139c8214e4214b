"""What is identified: numbers of the rig, and the variables in which they are searched.

Variables are 0 for the numbers of the rig and 1 for a change of the order of themselves: of a number above 0 the
logarithm of its ratio; the delay in its own unit; of a link ten variables, all values of which give a possible mass,
centre of mass and inertia.

The pseudo-inertia of a body, P = ∫ (r, 1)(r, 1)ᵀ dm (4, 4), is positive definite for every distribution of mass that
fills a volume (Wensing, Kim and Slotine, IEEE Robotics and Automation Letters 3, 2018). With P₀ = U₀ U₀ᵀ of the rig, P
= U₀ L Lᵀ U₀ᵀ, and L is upper triangular with exponentials of variables on its diagonal (Rucker and Wensing, the same 7,
2022).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import InputError, InputErrors, did_you_mean
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.description.inertia import inertia_matrix
from cosim.mechanics.multibody.inertial_parameters import ELEMENTS
from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig

LINK = {"mass": 1, "com": 3, "inertia": 6}  # number of a link -> how many values it has
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
VARIABLES = 10  # of a link
OF_INERTIA = range(1, 7)  # of the variables of a link, those that change neither the mass nor its centre
FLAT = 1e-3  # a thinner body, relative to its size, is made that thick: variables of a flat one would have no effect


@dataclass(frozen=True)
class VariableBlock:
    """Variables that belong together, by default one: the logarithm of a number's ratio. title, and the numbers of the
    rig that follow from them; start: the values (n,) at 0; rig: the rig's, which may be 0; scale: of each value
    (n,), a change of the order of itself."""

    title: str
    numbers: tuple[str, ...]
    start: Array
    rig: Array
    scale: Array

    @property
    def size(self) -> int:
        return 1

    @property
    def lengths(self) -> tuple[int, ...]:
        """Of each of the numbers: how many values it has."""
        return (self.start.size,) if self.numbers else ()

    def values(self, x: Numeric) -> Numeric:
        """The numbers (n,) of variables (size,)."""
        return ops.array([self.start[0] * ops.exp(x[0])])

    def linear(self, x: Numeric) -> Numeric:
        """(size,) of variables, in which the equation error is linear, apart from products: of a link its mass, first
        moment and inertia about its frame, of a torque constant its reciprocal, else the number itself."""
        values = self.values(x)
        return 1.0 / values if self.title.endswith(".torque_constant") else values

    @property
    def of_rig(self) -> Array:
        """(size,) the variables of the numbers of the rig: −∞ for a 0."""
        return np.full(self.size, -np.inf if self.rig[0] == 0.0 and self.start[0] > 0.0 else 0.0)


class DelayBlock(VariableBlock):
    def values(self, x: Numeric) -> Numeric:
        return ops.array([self.start[0] + DELAY_UNIT * x[0]])


class CentreBlock(VariableBlock):
    """The centre of mass of a link of known mass and inertia about it."""

    @property
    def size(self) -> int:
        return 3

    def values(self, x: Numeric) -> Numeric:
        return self.start + self.scale * x


@dataclass(frozen=True)
class InertiaBlock(VariableBlock):
    """The inertia of a link about its centre of mass, which is known, as is its mass; factor: U₀."""

    factor: Array

    @property
    def size(self) -> int:
        return len(OF_INERTIA)

    def values(self, x: Numeric) -> Numeric:
        whole = [0.0] * VARIABLES
        for k, place in enumerate(OF_INERTIA):
            whole[place] = x[k]
        return numbers_of_inertia(self.factor, whole)[4:]


@dataclass(frozen=True)
class LinkBlock(VariableBlock):
    """Mass, centre of mass and inertia of a link; factor: U₀."""

    factor: Array

    @property
    def size(self) -> int:
        return VARIABLES

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(LINK.values())

    def values(self, x: Numeric) -> Numeric:
        return numbers_of_inertia(self.factor, x)

    def linear(self, x: Numeric) -> Numeric:
        values = self.values(x)
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
    def of_rig(self) -> Array:
        """(size,) see `VariableBlock.of_rig`."""
        return np.concatenate([np.zeros(0), *(block.of_rig for block in self.blocks)])

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
    known = {name: number.values for name, number in table_of(rig).per_run.items()}
    known = {name: values for name, values in known.items() if _exists(name, known)}
    chosen, errors = dict[str, None](), list[InputError]()
    for word in wanted:
        patterns = WORDS.get(word, (word,))
        found = [name for name in [*known, DELAY] if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
        if not found and word not in WORDS:
            near = did_you_mean(word, [*WORDS, *known])
            errors.append(InputError(f"there is no number '{word}'{near}", "--fit"))
        found = _without_doubles(found, known)
        chosen |= dict.fromkeys(_owner(name) if word == "inertia" else name for name in found)
    if errors:
        raise InputErrors(errors)
    blocks = [_block(name, known) for name in _with_whole_links(chosen) if name != DELAY]
    if DELAY in chosen:
        blocks.append(DelayBlock(DELAY, (), np.zeros(1), np.zeros(1), np.full(1, DELAY_UNIT)))
    if not blocks:
        raise InputError(f"the rig has no numbers for {' and '.join(wanted)}; see Rig.numbers", "--fit")
    return Variables(tuple(blocks))


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _with_whole_links(chosen: Iterable[str]) -> list[str]:
    """Links, instead of all their numbers."""
    names = dict.fromkeys(chosen)
    owners = {_owner(name): name for name in names}
    links = {owner for owner in owners if owner in names or all(f"{owner}.{part}" in names for part in LINK)}
    return list(dict.fromkeys(_owner(name) if _owner(name) in links and _is_of_link(name) else name for name in names))


def _is_of_link(name: str) -> bool:
    owner, _, what = name.rpartition(".")
    return owner.startswith("mechanism.") and what in LINK


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
    what = name.rpartition(".")[2]
    if _is_of_link(name):
        return _block_of_link(_owner(name), what, known)
    if f"{name}.mass" in known:
        return _block_of_link(name, None, known)
    rig = known[name]
    if rig.size > 1:
        raise InputError(f"'{name}' has {rig.size} numbers; only single ones are identified", "--fit")
    start = rig if rig[0] > 0.0 else np.array([SMALL.get(what, 1e-3)])
    return VariableBlock(name, (name,), start, rig, np.abs(start))


def _block_of_link(owner: str, part: str | None, known: Mapping[str, Array]) -> VariableBlock:
    """Of one of the numbers of a link, or of all."""
    mass, com, inertia = (known[f"{owner}.{of}"] for of in LINK)
    if part == "mass":
        start = np.maximum(mass, 1e-3)
        return VariableBlock(f"{owner}.mass", (f"{owner}.mass",), start, mass, start)
    size = float(np.sqrt(com @ com + 0.5 * inertia[:3].sum() / mass[0]))  # how far its mass is from its frame, m
    scales = (mass, np.full(3, size), np.full(6, mass[0] * size**2))
    if part == "com":
        return CentreBlock(f"{owner}.com", (f"{owner}.com",), com, com, scales[1])
    factor = upper_factor(float(mass[0]), com, inertia_matrix(*inertia))
    if part == "inertia":
        return InertiaBlock(f"{owner}.inertia", (f"{owner}.inertia",), inertia, inertia, scales[2], factor)
    numbers, start = tuple(f"{owner}.{of}" for of in LINK), np.concatenate([mass, com, inertia])
    return LinkBlock(owner, numbers, start, start, np.concatenate(scales), factor)


def pseudo_inertia(mass: float, com: Array, inertia: Array) -> Array:
    """P (4, 4); inertia (3, 3): about the centre of mass."""
    spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    top = spread + mass * np.outer(com, com)
    return np.block([[top, mass * com[:, None]], [mass * com[None, :], np.array([[mass]])]])


def upper_factor(mass: float, com: Array, inertia: Array) -> Array:
    """U₀ (4, 4), upper triangular, U₀ U₀ᵀ = P."""
    spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, vectors = np.linalg.eigh(spread)
    least = FLAT**2 * max(values.max(), mass * 1e-6)
    solid = vectors @ np.diag(np.maximum(values, least)) @ vectors.T
    P = pseudo_inertia(mass, com, np.trace(solid) * np.eye(3) - solid)
    reverse = np.eye(4)[::-1]
    return reverse @ np.linalg.cholesky(reverse @ P @ reverse) @ reverse


def numbers_of_inertia(factor: Array, x: Numeric) -> Numeric:
    """(mass, com (3), inertia (6) about the centre of mass) of the variables x (10,); factor: U₀."""
    lower = [[0.0] * 4 for _ in range(4)]
    diagonal = [x[1], x[2], x[3], 0.0]
    for i in range(4):
        lower[i][i] = ops.exp(x[0] + diagonal[i])
    scale = ops.exp(x[0])
    for value, (i, j) in zip(range(4, 10), ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)), strict=True):
        lower[i][j] = scale * x[value]
    U = factor @ ops.array(lower)
    P = U @ U.T
    mass = P[3, 3]
    com = ops.array([P[k, 3] / mass for k in range(3)])
    spread = [[P[i, j] - mass * com[i] * com[j] for j in range(3)] for i in range(3)]
    total = spread[0][0] + spread[1][1] + spread[2][2]
    inertia = [(total if i == j else 0.0) - spread[i][j] for i, j in ELEMENTS]
    return ops.concatenate([ops.array([mass]), com, ops.array(inertia)])
