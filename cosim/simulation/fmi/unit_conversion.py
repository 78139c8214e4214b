"""Units of an FMU in the units of this program, and the conversion of their values to SI.

An FMU defines a unit by the exponents of its base units, a factor and an offset: value in base units = factor · value +
offset (FMI 2.0.4, 2.2.2; FMI 3.0.1, 2.4.3). Its name alone means nothing. A connection of SSP has linear
transformations besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cosim.core.units import UNITS, given_unit

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
Exponents = tuple[int, ...]  # of BASE_UNITS

# SI units with names of their own, in base units
NAMED: dict[str, Exponents] = {
    **{u: tuple(int(u == base) for base in BASE_UNITS) for u in BASE_UNITS},
    "1": (0, 0, 0, 0, 0, 0, 0, 0),
    "Hz": (0, 0, -1, 0, 0, 0, 0, 0),
    "N": (1, 1, -2, 0, 0, 0, 0, 0),
    "J": (1, 2, -2, 0, 0, 0, 0, 0),
    "W": (1, 2, -3, 0, 0, 0, 0, 0),
    "Pa": (1, -1, -2, 0, 0, 0, 0, 0),
    "C": (0, 0, 1, 1, 0, 0, 0, 0),
    "V": (1, 2, -3, -1, 0, 0, 0, 0),
    "ohm": (1, 2, -3, -2, 0, 0, 0, 0),
    "F": (-1, -2, 4, 2, 0, 0, 0, 0),
    "H": (1, 2, -2, -2, 0, 0, 0, 0),
    "degC": (0, 0, 0, 0, 1, 0, 0, 0),
}
ZEROS = {"degC": 273.15}  # K, of units with another zero than their base units
_FACTOR = re.compile(r"([*/]?)([^*/^]+)(?:\^(-?\d+))?")
_EXPONENT = re.compile(r"(?<=[A-Za-zΩ°])(-?\d+)")
_DIVISOR = re.compile(r"/\(([^()]*)\)")


@dataclass(frozen=True)
class Conversion:
    """The unit of a signal and SI value = factor · value of the FMU + offset."""

    unit: str = "1"
    factor: float = 1.0
    offset: float = 0.0

    def to_si(self, value: Any) -> Any:
        return self.factor * value + self.offset

    def from_si(self, value: Any) -> Any:
        return (value - self.offset) / self.factor


def conversion_of(name: str, base: Mapping[str, float] | None, relative: bool = False) -> Conversion:
    """The conversion of a unit of an FMU.

    base: exponents of BASE_UNITS, `factor` and `offset` of its definition, None without one. relative: differences,
    which have no offset. A unit of `cosim.core.units` is recognised by its name where its definition agrees; another
    one is named by its base units. A unit without definition and with an unknown name stays as it is.
    """
    known = given_unit(f"1 {_as_written_here(name)}") if name else "1"
    known = known if known in UNITS else None
    if base is None:
        return Conversion(UNITS[known][0], UNITS[known][1]) if known else Conversion(name)
    exponents = tuple(int(base.get(unit, 0)) for unit in BASE_UNITS)
    factor, offset = float(base.get("factor", 1.0)), 0.0 if relative else float(base.get("offset", 0.0))
    if known and UNITS[known][0] == "degC" and exponents == NAMED["K"] and not relative:
        return Conversion("degC", factor, offset - 273.15)
    dimension = UNITS[known][0] if known else ""
    if not known or dimension == "degC" or without_angle(exponents_of(dimension)) != without_angle(exponents):
        dimension = _names().get(exponents) or _composed(exponents)
    return Conversion(dimension, factor, offset)


@cache
def exponents_of(unit: str) -> Exponents | None:
    """The base units of an SI unit of `cosim.core.units`; None of other units, such as bytes."""
    total = [0] * len(BASE_UNITS)
    for sign, symbol, power in _FACTOR.findall(unit):
        if symbol not in NAMED:
            return None
        times = (-1 if sign == "/" else 1) * int(power or 1)
        total = [a + times * b for a, b in zip(total, NAMED[symbol], strict=True)]
    return tuple(total)


@cache
def _names() -> dict[Exponents, str]:
    """Base units -> the first SI unit of `cosim.core.units` that has them."""
    names: dict[Exponents, str] = {}
    for dimension, _ in UNITS.values():
        exponents = exponents_of(dimension)
        if exponents is not None and dimension != "degC":
            names.setdefault(exponents, dimension)
    return names


def _as_written_here(name: str) -> str:
    """`N.m/(rad.s)` as `N*m/rad/s`, `kg.m2` as `kg*m^2`."""
    flat = _DIVISOR.sub(lambda inside: "/" + re.sub(r"[.*]", "/", inside[1]), name)
    return _EXPONENT.sub(r"^\1", flat.replace(".", "*")) if "^" not in flat else flat.replace(".", "*")


def without_angle(exponents: Exponents | None) -> Exponents | None:
    """Angles are pure numbers of SI: many tools leave them out of a unit."""
    return exponents and exponents[:-1]


def shift_between(ours: str, theirs: str) -> float | None:
    """What is added to a value in one SI unit to get that in the other one, None where they differ in kind. Angles are
    pure numbers."""
    if ours == theirs:
        return 0.0
    exponents = [exponents_of(unit) for unit in (ours, theirs)]
    if None in exponents or without_angle(exponents[0]) != without_angle(exponents[1]):
        return None
    return ZEROS.get(ours, 0.0) - ZEROS.get(theirs, 0.0)


def _composed(exponents: Exponents) -> str:
    """A name such as `kg*m^2/s/K`."""
    powers = [(unit, n) for unit, n in zip(BASE_UNITS, exponents, strict=True) if n]
    above = "*".join(unit + (f"^{n}" if n > 1 else "") for unit, n in powers if n > 0)
    below = "".join(f"/{unit}" + (f"^{-n}" if n < -1 else "") for unit, n in powers if n < 0)
    return (above or "1") + below


def in_a_row(steps: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """(factor, offset) of transformations one after the other."""
    factor, offset = 1.0, 0.0
    for f, o in steps:
        factor, offset = f * factor, f * offset + o
    return factor, offset


def in_si(
    steps: Iterable[tuple[float, float]], ours: Conversion | None, theirs: Conversion | None, suppressed: bool
) -> tuple[float, float]:
    """(factor, offset) from the source to the target, both in SI.

    steps: (factor, offset) of the transformations on the way; ours, theirs: of the unit of source and target, None
    without one. Transformations act on values in the unit of the target, or, where the conversion of units is
    suppressed, one end has no unit or the units differ in kind, on the number of the source. Raises ValueError for
    units that differ in kind without a transformation.
    """
    factor, offset = in_a_row(steps)
    if ours and theirs and not suppressed:
        shift = shift_between(ours.unit, theirs.unit)
        if shift is not None:  # SI of the target = theirs(factor · theirs⁻¹(SI of the source + shift) + offset)
            return factor, factor * (shift - theirs.offset) + theirs.factor * offset + theirs.offset
        if (factor, offset) == (1.0, 0.0):
            raise ValueError
    a, b = ours or Conversion(), theirs or Conversion()
    # SI of the target = b(factor · a⁻¹(SI of the source) + offset)
    scale = b.factor * factor / a.factor
    return scale, b.factor * offset + b.offset - scale * a.offset
