"""What is identified: numbers of a rig by their names, and all their variables side by side."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.apps.identification.blocks import (
    DELAY,
    DELAY_UNIT,
    GAIN,
    LINK,
    OFFSET,
    CentreBlock,
    InertiaBlock,
    LinkBlock,
    ShiftBlock,
    VariableBlock,
    body_scales,
    upper_factor,
)
from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import InputError, InputErrors, did_you_mean
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.description.inertia import inertia_matrix
from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig

SMALL = {"viscous": 0.1, "coulomb": 0.1, "damping": 0.1, "friction": 0.1}  # SI: where the search of a 0 begins
ROTOR_INERTIA = "rotor_inertia"  # of drives, and of rotors that turn with several joints
# word of --fit -> patterns of names of numbers
WORDS: dict[str, tuple[str, ...]] = {
    "inertia": ("mechanism.*.mass",),
    "friction": (
        "joints.*.actuator.viscous", "joints.*.actuator.coulomb", "joints.*.friction.viscous",
        "joints.*.friction.coulomb", "mechanism.*.damping", "mechanism.*.friction",
    ),
    "torque_constant": ("joints.*.actuator.torque_constant",),
    ROTOR_INERTIA: ("joints.*.actuator.rotor_inertia",),
    "elasticity": ("joints.*.actuator.stiffness", "joints.*.actuator.damping"),
    "offset": (f"{OFFSET}*",),
    "gain": (f"{GAIN}*",),
    DELAY: (DELAY,),
}  # fmt: skip
TWINS = {"damping": "viscous", "friction": "coulomb"}  # of the mechanism -> of drives and laws of friction
DEFAULT = ("inertia", "friction")


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

    def columns(self, blocks: Sequence[int]) -> Array:
        """(n,) places of these blocks in the variables."""
        places = self.places
        return np.concatenate([np.zeros(0, dtype=int), *(np.arange(places[k].start, places[k].stop) for k in blocks)])

    @property
    def number_places(self) -> list[slice]:
        """Of each block in the values of all numbers."""
        ends = np.cumsum([block.start.size for block in self.blocks]).tolist()
        return [slice(end - block.start.size, end) for end, block in zip(ends, self.blocks, strict=True)]

    @property
    def titles(self) -> list[str]:
        return [block.title for block in self.blocks]

    @property
    def rig(self) -> Array:
        """(n,) the numbers of the rig."""
        return np.concatenate([np.zeros(0), *(block.rig for block in self.blocks)])

    def split(self, values: Array) -> list[Array]:
        """Of each block its part of the numbers (n,)."""
        return [values[place] for place in self.number_places]

    def value_columns(self, blocks: Sequence[int]) -> Array:
        """(n,) places of these blocks in the numbers."""
        places = self.number_places
        return np.concatenate([np.zeros(0, dtype=int), *(np.arange(places[k].start, places[k].stop) for k in blocks)])

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
        """β (size,)."""
        return ops.concatenate([block.linear(x[place]) for block, place in zip(self.blocks, self.places, strict=True)])

    def linear_of_values(self, values: Array) -> Array:
        """β (size,) of the numbers (n,)."""
        parts = zip(self.blocks, self.number_places, strict=True)
        found = (np.asarray(block.linear_of_values(values[place]), float) for block, place in parts)
        return np.concatenate([np.zeros(0), *found])

    def values_of_linear(self, beta: Numeric) -> Numeric:
        """The numbers (n,) of β."""
        parts = zip(self.blocks, self.places, strict=True)
        return ops.concatenate([block.values_of_linear(beta[place]) for block, place in parts])

    def variables_of(self, values: Array) -> Array:
        """x (size,) of numbers (n,)."""
        parts = zip(self.blocks, self.number_places, strict=True)
        return np.concatenate([block.variables_of(values[place]) for block, place in parts])

    @cached_property
    def values_slope(self) -> Jacobian:
        """∂values/∂β (n, size)."""
        return Jacobian(self.values_of_linear, [(self.size,)], "numbers")

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
    of_signals = [f"{prefix}{joint}" for prefix in (OFFSET, GAIN) for joint in rig.joints]
    chosen, errors = dict[str, None](), list[InputError]()
    for word in wanted:
        patterns = WORDS.get(word, (word,))
        if word == ROTOR_INERTIA:
            patterns = (*patterns, *(f"mechanism.{rotor.name}.inertia" for rotor in rig.plant.mechanism.rotors))
        found = [
            name
            for name in [*known, *of_signals, DELAY]
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        ]
        if not found and word not in WORDS:
            near = did_you_mean(word, [*WORDS, *known])
            errors.append(InputError(f"there is no number '{word}'{near}", "--fit"))
        found = _without_doubles(found) if word in WORDS else found
        chosen |= dict.fromkeys(_owner(name) if word == "inertia" else name for name in found)
    if errors:
        raise InputErrors(errors)
    blocks = [_block(name, known) for name in _with_whole_links(chosen)]
    blocks.sort(key=lambda block: block.title == DELAY)  # the equations do not take it
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


def _without_doubles(names: Sequence[str]) -> list[str]:
    """Friction of a joint is looked for in its drive, where that has it, else in its law."""
    kept = []
    for name in names:
        owner, _, what = name.rpartition(".")
        joint = owner.partition(".")[2].removesuffix(".friction")
        kind = TWINS.get(what, what)
        before = [f"joints.{joint}.actuator.{kind}"]
        if owner.startswith("mechanism."):
            before.append(f"joints.{joint}.friction.{kind}")
        if owner.endswith(".actuator") or not any(other in names for other in before):
            kept.append(name)
    return kept


def _block(name: str, known: Mapping[str, Array]) -> VariableBlock:
    what = name.rpartition(".")[2]
    if name == DELAY:
        return ShiftBlock(DELAY, (), np.zeros(1), np.zeros(1), np.full(1, DELAY_UNIT))
    if name.startswith(OFFSET):
        return ShiftBlock(name, (name,), np.zeros(1), np.zeros(1), np.ones(1))
    if name.startswith(GAIN):
        return VariableBlock(name, (name,), np.ones(1), np.ones(1), np.ones(1))
    if _is_of_link(name) and f"{_owner(name)}.mass" in known:  # else of a rotor
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
    start = np.concatenate([mass, com, inertia])
    scales = body_scales(start)
    if part == "com":
        return CentreBlock(f"{owner}.com", (f"{owner}.com",), com, com, scales[1:4])
    factor = upper_factor(float(mass[0]), com, inertia_matrix(*inertia))
    if part == "inertia":
        return InertiaBlock(f"{owner}.inertia", (f"{owner}.inertia",), inertia, inertia, scales[4:], factor)
    return LinkBlock(owner, tuple(f"{owner}.{of}" for of in LINK), start, start, scales, factor)
