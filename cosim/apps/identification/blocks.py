"""The variables in which numbers are searched, in blocks that belong together.

Variables are 0 for the numbers of the rig and 1 for a change of the order of themselves: of a number above 0 the
logarithm of its ratio; the delay in its own unit; of a link ten variables, all values of which give a possible mass,
centre of mass and inertia.

The pseudo-inertia of a body, P = ∫ (r, 1)(r, 1)ᵀ dm (4, 4), is positive definite for every distribution of mass that
fills a volume (Wensing, Kim and Slotine, IEEE Robotics and Automation Letters 3, 2018). With P₀ = U₀ U₀ᵀ of the rig, P
= U₀ L Lᵀ U₀ᵀ, and L is upper triangular with exponentials of variables on its diagonal (Rucker and Wensing, the same 7,
2022).

Between the variables x and the numbers stand the values β in which the equation error is linear: of a link its mass,
first moment and inertia about its frame, of a torque constant its reciprocal, else the number itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.inertial_parameters import ELEMENTS

LINK = {"mass": 1, "com": 3, "inertia": 6}  # number of a link -> how many values it has
DELAY = "delay"
OFFSET, GAIN = "offset.", "gain."  # of the recorded signal of a joint: begins of their names
DELAY_UNIT = 0.01  # s, of a variable
SMALLEST_RATIO = 1e-6  # of a number to the one where its search begins: below, it does not matter
VARIABLES = 10  # of a link
OF_INERTIA = range(1, 7)  # of the variables of a link, those that change neither the mass nor its centre
OF_LOAD = range(1, 10)  # … that do not change the mass
FLAT = 1e-3  # a thinner body, relative to its size, is made that thick: variables of a flat one would have no effect


@dataclass(frozen=True)
class VariableBlock:
    """By default one number: the logarithm of its ratio. title, and the numbers of the rig that follow from it; start:
    the values (n,) at 0; rig: the rig's, which may be 0; scale: of each value (n,), a change of the order of
    itself."""

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
        """β (size,) of variables."""
        return self.linear_of_values(self.values(x))

    def linear_of_values(self, values: Numeric) -> Numeric:
        """β (size,) of numbers (n,)."""
        return 1.0 / values if self.divides else values

    def values_of_linear(self, beta: Numeric) -> Numeric:
        """The numbers (n,) of β."""
        return 1.0 / beta if self.divides else beta

    def variables_of(self, values: Array) -> Array:
        """(size,) of numbers (n,); of a 0 those of a number that is too small to matter."""
        return np.log(np.maximum(values / self.start, SMALLEST_RATIO))

    @property
    def divides(self) -> bool:
        """Whether the error is linear in its reciprocal."""
        return self.title.endswith(".torque_constant") or self.title.startswith(GAIN)

    @property
    def of_rig(self) -> Array:
        """(size,) the variables of the numbers of the rig: −∞ for a 0."""
        return np.full(self.size, -np.inf if self.rig[0] == 0.0 and self.start[0] > 0.0 else 0.0)


class ShiftBlock(VariableBlock):
    """Values of either sign: the change in their scale. The delay of drives, the offset of a recorded signal."""

    @property
    def size(self) -> int:
        return self.start.size

    def values(self, x: Numeric) -> Numeric:
        return self.start + self.scale * x

    def variables_of(self, values: Array) -> Array:
        return (values - self.start) / self.scale

    @property
    def of_rig(self) -> Array:
        return np.zeros(self.size)


class CentreBlock(ShiftBlock):
    """The centre of mass of a link of known mass and inertia about it."""


@dataclass(frozen=True)
class BodyBlock(VariableBlock):
    """Of a body the numbers that follow from its factor U₀ and some of the ten variables; the others stay 0."""

    factor: Array

    @property
    def free(self) -> range:
        return range(VARIABLES)

    @property
    def size(self) -> int:
        return len(self.free)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(LINK.values())

    def body(self, x: Numeric) -> Numeric:
        """(10,) mass, centre of mass and inertia about it."""
        whole: list[Numeric] = [0.0] * VARIABLES
        for k, place in enumerate(self.free):
            whole[place] = x[k]
        return numbers_of_inertia(self.factor, whole)

    def values(self, x: Numeric) -> Numeric:
        return self.body(x)

    def variables_of(self, values: Array) -> Array:
        changed = np.linalg.solve(self.factor, upper_factor_of_numbers(values))
        return variables_of_factor(changed)[list(self.free)]

    @property
    def of_rig(self) -> Array:
        return np.zeros(self.size)

    def in_frame(self, beta: Numeric) -> Numeric:
        """(10,) mass, first moment and inertia about the frame."""
        return beta

    @cached_property
    def _in_rig(self) -> Array:
        return np.asarray(numbers_of_factor(self.factor), dtype=float)

    @property
    def mass(self) -> float:
        """In the rig [kg]."""
        return float(self._in_rig[0])

    @property
    def length(self) -> float:
        """How far its mass is from its frame in the rig [m]."""
        return float(body_scales(self._in_rig)[1])


class InertiaBlock(BodyBlock):
    """The inertia of a link about its centre of mass, which is known, as is its mass."""

    @property
    def free(self) -> range:
        return OF_INERTIA

    @property
    def lengths(self) -> tuple[int, ...]:
        return (LINK["inertia"],)

    def values(self, x: Numeric) -> Numeric:
        return self.body(x)[4:]

    def variables_of(self, values: Array) -> Array:
        return super().variables_of(np.concatenate([self._in_rig[:4], values]))

    def in_frame(self, beta: Numeric) -> Numeric:
        return about_frame(np.concatenate([self._in_rig[:4], beta]))


class LinkBlock(BodyBlock):
    """Mass, centre of mass and inertia of a link."""

    def linear_of_values(self, values: Numeric) -> Numeric:
        return about_frame(values)

    def values_of_linear(self, beta: Numeric) -> Numeric:
        return about_centre(beta)


@dataclass(frozen=True)
class LoadBlock(LinkBlock):
    """A load of known mass that one recording has on a link, whose numbers it changes; in the frame of that link."""

    link: str

    @property
    def free(self) -> range:
        return OF_LOAD

    def linear_of_values(self, values: Numeric) -> Numeric:
        """Without the mass, which is known."""
        return about_frame(values)[1:]

    def values_of_linear(self, beta: Numeric) -> Numeric:
        return about_centre(self.in_frame(beta))

    def in_frame(self, beta: Numeric) -> Numeric:
        """What the load adds to its link."""
        return ops.concatenate([self.start[:1], beta])


def body_scales(numbers: Array) -> Array:
    """(10,) changes of the order of mass, centre of mass and inertia themselves."""
    mass, com, moments = float(numbers[0]), numbers[1:4], numbers[4:7]
    size = float(np.sqrt(com @ com + 0.5 * moments.sum() / mass))  # how far its mass is from its frame, m
    return np.concatenate([[mass], np.full(3, size), np.full(6, mass * size**2)])


def beta_scales(block: BodyBlock) -> Array:
    """(size,) changes of the order of the β of a body in the rig themselves."""
    mass, length = block.mass, block.length
    whole = np.concatenate([[mass], np.full(3, mass * length), np.full(6, mass * length**2)])
    return whole[-block.size :]


def about_frame(numbers: Numeric) -> Numeric:
    """(10,) mass, first moment and inertia about the frame of mass, centre of mass and inertia about it."""
    mass, com = numbers[0], numbers[1:4]
    return ops.concatenate([ops.array([mass]), mass * com, numbers[4:] + _shift(mass, com)])


def about_centre(beta: Numeric) -> Numeric:
    """The inverse of `about_frame`."""
    mass = beta[0]
    com = beta[1:4] / mass
    return ops.concatenate([ops.array([mass]), com, beta[4:] - _shift(mass, com)])


def _shift(mass: Numeric, com: Numeric) -> Numeric:
    """(6,) inertia of a point mass."""
    square = com[0] * com[0] + com[1] * com[1] + com[2] * com[2]
    return ops.array([mass * ((square if i == j else 0.0) - com[i] * com[j]) for i, j in ELEMENTS])


def pseudo_inertia_in_frame(beta: Array) -> Array:
    """P (4, 4) of mass, first moment and inertia about the frame (10,)."""
    inertia = symmetric(beta[4:])
    spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[spread, beta[1:4, None]], [beta[None, 1:4], beta[:1, None]]])


def symmetric(elements: Array) -> Array:
    """(3, 3) of (6,)."""
    matrix = np.zeros((3, 3))
    for value, (i, j) in zip(elements, ELEMENTS, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix


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


def upper_factor_of_numbers(numbers: Array) -> Array:
    """U₀ of mass, centre of mass and inertia (10,)."""
    return upper_factor(float(numbers[0]), numbers[1:4], symmetric(numbers[4:]))


def numbers_of_inertia(factor: Array, x: Numeric) -> Numeric:
    """(mass, com (3), inertia (6) about the centre of mass) of the variables x (10,); factor: U₀."""
    lower = [[0.0] * 4 for _ in range(4)]
    diagonal = [x[1], x[2], x[3], 0.0]
    for i in range(4):
        lower[i][i] = ops.exp(x[0] + diagonal[i])
    scale = ops.exp(x[0])
    for value, (i, j) in zip(range(4, 10), OFF_DIAGONAL, strict=True):
        lower[i][j] = scale * x[value]
    return numbers_of_factor(factor @ ops.array(lower))


OFF_DIAGONAL = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))


def variables_of_factor(L: Array) -> Array:
    """(10,) of the factor L (4, 4) that changes U₀: the inverse of `numbers_of_inertia`."""
    scale = L[3, 3]
    diagonal = [math.log(L[k, k] / scale) for k in range(3)]
    return np.array([math.log(scale), *diagonal, *(L[i, j] / scale for i, j in OFF_DIAGONAL)])


def numbers_of_factor(U: Numeric) -> Numeric:
    """(10,) of P = U Uᵀ."""
    P = U @ U.T
    mass = P[3, 3]
    com = ops.array([P[k, 3] / mass for k in range(3)])
    spread = [[P[i, j] - mass * com[i] * com[j] for j in range(3)] for i in range(3)]
    total = spread[0][0] + spread[1][1] + spread[2][2]
    inertia = [(total if i == j else 0.0) - spread[i][j] for i, j in ELEMENTS]
    return ops.concatenate([ops.array([mass]), com, ops.array(inertia)])
