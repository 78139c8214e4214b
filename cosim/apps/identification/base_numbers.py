"""The combinations of numbers that a motion determines, where it does not determine the numbers themselves.

The error is linear in the values β of masses, first moments, inertias about frames, frictions and offsets, e = W β − y.
Columns of W that depend on others have no effect of their own: W_d = W_i K, so e depends on β_i + K β_d only, the base
parameters (Gautier and Khalil, IEEE Transactions on Robotics and Automation 6, 1990). Which columns those are follows
from a QR decomposition of W at the recorded motion (Gautier, Journal of Robotic Systems 8, 1991), from the base to the
tip: what a link can take over from the next one, is written with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.identification.blocks import BodyBlock, LinkBlock, LoadBlock, VariableBlock
from cosim.apps.identification.fitted_numbers import FittedNumbers
from cosim.apps.identification.intervals import deviations_of_interval
from cosim.apps.identification.variables import Variables
from cosim.core.types import Array

DEPENDENT = 1e-4  # part of a column that no others make, below which it depends on them; rounded angles make 1e-6
NO_TERM = 1e-6  # part of a column below which it has no term of another one
# β of a link: its mass, first moment and inertia about its frame, in the letters of the field, with their units
OF_LINK = {
    "m": "kg", "mx": "kg*m", "my": "kg*m", "mz": "kg*m",
    "Jxx": "kg*m^2", "Jyy": "kg*m^2", "Jzz": "kg*m^2", "Jxy": "kg*m^2", "Jxz": "kg*m^2", "Jyz": "kg*m^2",
}  # fmt: skip
MEANING = "m mass, mx my mz mass times centre of mass, Jxx … inertia about the frame of the link"
SCANNED = ("Jzz", "Jxx", "Jyy", "Jxy", "Jxz", "Jyz", "mx", "my", "mz", "m")  # of a link, the mass last


@dataclass(frozen=True)
class LinearValue:
    """A value of β: of a link `owner` the one with this `letter`, or a number of the rig, the owner, without one."""

    owner: str
    letter: str = ""


@dataclass(frozen=True)
class BaseNumber:
    """Σ factor · value of some β, with what was found for it and its half interval of 95 %, in the unit of its first
    value. joint, fraction: of the drive of which joint it makes the greatest part, and which of its root mean square,
    above 1 where others act against it; alone: what each recording has by itself, of several, without bounds."""

    terms: tuple[tuple[float, LinearValue], ...]
    value: float
    interval: float
    joint: int
    fraction: float
    alone: tuple[float, ...] = ()

    @property
    def clear(self) -> bool:
        """Whether it is not 0 within its interval."""
        return abs(self.value) > self.interval

    @property
    def of_links(self) -> bool:
        """Whether it has a mass, a first moment or an inertia; others are numbers of the rig."""
        return any(value.letter for _, value in self.terms)

    @property
    def short(self) -> str:
        """The first value, and whether there are others."""
        first = self.terms[0][1]
        name = f"{first.letter}({first.owner})" if first.letter else first.owner
        return f"{name} …" if len(self.terms) > 1 else name

    @property
    def name(self) -> str:
        """As a sum of products: `mx(upper) + 0.4 m(fore + hand)`."""
        owners = dict[tuple[str, str], list[str]]()  # by factor and letter
        for factor, value in self.terms:
            size = f"{float(f'{abs(factor):.6g}'):.4g}"  # alike where only rounding differs
            sign = f"{'+' if factor > 0.0 else '−'} {'' if size == '1' else f'{size} '}"
            owners.setdefault((sign, value.letter), []).append(value.owner)
        terms = (
            f"{sign}{letter}({' + '.join(of)})" if letter else f"{sign}{of[0]}" for (sign, letter), of in owners.items()
        )
        return " ".join(terms).removeprefix("+ ")


def base_numbers(
    variables: Variables, estimate: FittedNumbers, slope: Array, drive: Array, alone: Sequence[Array] = ()
) -> tuple[BaseNumber, ...]:
    """estimate: of the numbers of the variables; slope (k, nv, size): of the errors by β, in the unit of the drives;
    drive (nv,): their root mean squares; alone: β (size,) of single recordings. Of errors that are linear in β."""
    names, order = _values_of(variables)
    beta = variables.linear_of_values(estimate.values)
    by_numbers = np.linalg.pinv(np.asarray(variables.values_slope(beta), dtype=float))
    covariance = by_numbers @ estimate.covariance @ by_numbers.T
    size = np.sqrt(np.mean(slope**2, axis=0)) / np.maximum(drive, 1e-300)[:, None]  # (nv, size)
    weighted = (slope / np.maximum(drive, 1e-300)[:, None]).reshape(-1, slope.shape[-1])
    norms = np.linalg.norm(weighted, axis=0)
    of_kind = dict[str, float]()  # the greatest of each unit: what has far less of an effect, has it by rounding
    for norm, name in zip(norms, names, strict=True):
        unit = OF_LINK.get(name.letter, name.owner)
        of_kind[unit] = max(of_kind.get(unit, 0.0), float(norm))
    units = np.array([of_kind[OF_LINK.get(name.letter, name.owner)] for name in names])
    free, combined = combinations(weighted, np.where(norms > DEPENDENT * units, norms, 0.0), order)
    half = deviations_of_interval(estimate.clusters)
    found = []
    for column, factors in zip(free, combined, strict=True):
        others = [k for k in np.flatnonzero(factors) if k != column]
        terms = tuple((float(factors[k]), names[k]) for k in (column, *others))
        value, interval = float(factors @ beta), half * float(np.sqrt(max(factors @ covariance @ factors, 0.0)))
        joint = int(np.argmax(size[:, column]))
        fraction, of_each = float(size[joint, column]) * abs(value), tuple(float(factors @ of) for of in alone)
        found.append(BaseNumber(terms, value, interval, joint, fraction, of_each))
    return tuple(found)


def combinations(slope: Array, norms: Array, order: Sequence[int]) -> tuple[list[int], Array]:
    """(columns of the slope (k, m) that do not depend on those before in the order, factors (n, m) of the combinations
    that they stand for: 1 for their own, K for what depends on them). norms (m,): of the columns, 0 of those that have
    no effect."""
    R: Array = np.asarray(np.linalg.qr(slope / np.where(norms > 0.0, norms, 1.0), mode="r"))
    basis, free, dependent = np.zeros((len(R), 0)), list[int](), list[int]()
    for k in order:
        if not norms[k]:
            continue
        rest = R[:, k] - basis @ (basis.T @ R[:, k])
        rest -= basis @ (basis.T @ rest)  # again, for what rounding has left
        if np.linalg.norm(rest) > DEPENDENT:
            basis, _ = np.column_stack([basis, rest / np.linalg.norm(rest)]), free.append(k)
        else:
            dependent.append(k)
    factors = np.zeros((len(free), len(norms)))
    factors[np.arange(len(free)), free] = 1.0
    if dependent and free:
        K = np.linalg.lstsq(R[:, free], R[:, dependent], rcond=None)[0]
        K[np.abs(K) < NO_TERM] = 0.0
        factors[:, dependent] = K * norms[dependent] / norms[free][:, None]
    return free, factors


def have_base_numbers(blocks: Iterable[VariableBlock]) -> bool:
    """Whether there are bodies among them, all of them whole links."""
    bodies = [block for block in blocks if isinstance(block, BodyBlock)]
    return bool(bodies) and all(type(block) is LinkBlock for block in bodies)


def _values_of(variables: Variables) -> tuple[list[LinearValue], list[int]]:
    """(of each β, the order in which they are looked at: bodies first)."""
    names, first, last = list[LinearValue](), list[int](), list[int]()
    for block, place in zip(variables.blocks, variables.places, strict=True):
        if not isinstance(block, BodyBlock):
            names.append(LinearValue(block.title))
            last.append(place.start)
            continue
        letters = list(OF_LINK)[1:] if isinstance(block, LoadBlock) else list(OF_LINK)
        owner = block.title.removeprefix("mechanism.")
        names += [LinearValue(owner, letter) for letter in letters]
        first += [place.start + letters.index(letter) for letter in SCANNED if letter in letters]
    return names, first + last
