"""The perturbed plants of a session: numbers of the mechanism and the drives that the controllers do not know."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from cosim.core.errors import SectionError, did_you_mean
from cosim.core.types import Array
from cosim.core.units import parse_quantity
from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig

# group -> the last parts of the names of its numbers
GROUPS: dict[str, tuple[str, ...]] = {
    "mass": ("mass",),
    "inertia": ("mass", "inertia", "rotor_inertia"),
    "friction": ("coulomb", "static", "viscous", "friction", "damping"),
}
# the damping of a drive belongs to its elastic gear
NO_FRICTION = "joints.*.actuator.damping"
MOST_CORNERS = 4  # groups whose corners are all taken


@dataclass(frozen=True)
class Plants:
    """The plants of a session. factors (p, groups) of p plants, the first one the rig's; members: group -> names of its
    numbers; values: name -> (n,) of the rig."""

    groups: tuple[str, ...]
    factors: Array
    members: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the plants, such as `inertia ×1.2, friction ×0.8`."""
        rows = (zip(self.groups, row, strict=True) for row in self.factors[1:])
        return "as in the rig", *(", ".join(f"{group} ×{factor:.3g}" for group, factor in row) for row in rows)

    def arrays(self) -> dict[str, Array]:
        """number -> (p, n)."""
        found = {}
        for group, column in zip(self.groups, self.factors.T, strict=True):
            for name in self.members[group]:
                found[name] = found.get(name, self.values[name][None]) * column[:, None]
        return found


NOMINAL = Plants((), np.ones((1, 0)), {}, {})


def read_plants(rig: Rig, given: Mapping[str, Any], samples: int | None, seed: int, tuned: set[str]) -> Plants:
    """given: a group of GROUPS, or a pattern of names of `Rig.numbers` -> the fraction by which they vary; samples: so
    many random plants in this box besides the rig's, instead of its corners; tuned: numbers that are varied.

    Raises SectionError for names that do not exist, and for invalid fractions.
    """
    if not given:
        if samples is not None:
            raise SectionError("there is nothing to vary; give plants, such as plants: {inertia: 20 %}", ("samples",))
        return NOMINAL
    numbers = {name: number.values for name, number in table_of(rig).per_run.items() if number.values.any()}
    members = {group: _members(group, numbers, tuned) for group in given}
    spread = np.array([_fraction(group, value) for group, value in given.items()])
    if samples is None and len(given) > MOST_CORNERS:
        what = f"{len(given)} groups have {2 ** len(given)} corners; give samples, the number of random plants"
        raise SectionError(what, ("plants",))
    if samples is None:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(given))))
    else:
        signs = np.random.default_rng(seed).uniform(-1.0, 1.0, (samples, len(given)))
    factors = np.vstack([np.ones(len(given)), 1.0 + signs * spread])
    return Plants(tuple(given), factors, members, {name: numbers[name] for part in members.values() for name in part})


def _members(group: str, numbers: Mapping[str, Array], tuned: set[str]) -> tuple[str, ...]:
    place = ("plants", group)
    if group in GROUPS:
        found = [name for name in numbers if _is_of(group, name)]
        if not found:
            raise SectionError(f"the rig has no {group} that is a number; take it out", place)
    else:
        found = [name for name in numbers if fnmatchcase(name, group)]
        if not found:
            raise SectionError(f"there is no such number{did_you_mean(group, [*GROUPS, *numbers])}", place)
    for name in found:
        if name in tuned:
            raise SectionError(f"'{name}' is tuned, so it cannot be perturbed; take one of them out", place)
    return tuple(found)


def _is_of(group: str, name: str) -> bool:
    return name.rpartition(".")[2] in GROUPS[group] and not (group == "friction" and fnmatchcase(name, NO_FRICTION))


def _fraction(group: str, value: Any) -> float:
    try:
        fraction = parse_quantity(value, "1") if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        fraction = -1.0
    if not 0.0 < fraction < 1.0:
        raise SectionError(f"expected a fraction between 0 and 1, such as 20 %, got {value!r}", ("plants", group))
    return fraction
