"""Lengths of the steps of a coupling, chosen by its residual energies: ECCO.

Sadjina, Kyllingstad, Skjong and Pedersen, "Energy conservation and power bonds in co-simulations: non-iterative
adaptive step size control and error estimation", Engineering with Computers, 2017 (arXiv 1602.06434). The error of a
step is

    ε = √(mean over the bonds of (δE / (absolute + relative E))²),

with E the energy that went through the bond, and a PI controller of Gustafsson's form gives the next length

    h′ = h · clip(safety · ε^−(k_I + k_P) · ε_before^k_P, 0.2, 1.5).

The numbers come from the implementation in the open simulation platform's libcosim (`ecco_algorithm`). A step with
ε > 1 is repeated where all parts can repeat steps; the method itself never does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import Numeric
from cosim.simulation.coupling.energy import levels, residuals

LEAST_ERROR = 1e-9  # of an error, below which the controller sees this one


@dataclass(frozen=True)
class EnergyControl:
    """The controller of the lengths of a coupling's steps, by the residual energies of its bonds. shortest, longest:
    bounds of a step [s]; relative, absolute [J]: tolerances of the energy of a bond in a step; repeats: whether a step
    that exceeds them is repeated with a shorter length, where the parts can."""

    shortest: float
    longest: float
    relative: float = 1e-4
    absolute: float = 1e-4
    repeats: bool = False
    safety: float = 0.8
    proportional: float = 0.2
    integral: float = 0.15
    least_factor: float = 0.2
    largest_factor: float = 1.5

    def __post_init__(self) -> None:
        """Raises InputError: bounds that are no times, or tolerances that are not positive."""
        if not 0.0 < self.shortest <= self.longest:
            what = f"shortest {self.shortest} s and longest {self.longest} s; they must be 0 < shortest <= longest"
            raise InputError(what, "step control")
        if not (self.relative > 0.0 and self.absolute > 0.0):
            raise InputError("tolerances of energy must be above 0", "step control")

    def error(self, works: Numeric) -> Numeric:
        """ε of a step; works (bonds, 2), see `energy.residuals`."""
        scaled = residuals(works) / (self.absolute + self.relative * levels(works))
        return ops.sqrt(scaled @ scaled / len(scaled))

    def next_length(self, h: Numeric, error: Numeric, before: Numeric) -> Numeric:
        """The length [s] after a step of h with this error, with the error of the accepted step before it."""
        now, then = ops.maximum(error, LEAST_ERROR), ops.maximum(before, LEAST_ERROR)
        factor = self.safety * ops.power(now, -self.integral - self.proportional) * ops.power(then, self.proportional)
        return ops.clip(h * ops.clip(factor, self.least_factor, self.largest_factor), self.shortest, self.longest)

    def plan(self, h: Numeric, planned: Numeric, error: Numeric, before: Numeric) -> tuple[Numeric, Numeric]:
        """(planned length [s], error) after an accepted step of h [s] with this error, where one of `planned` was
        planned. before: see `next_length`. A step that was cut off at the end is no reason against longer ones."""
        after = self.next_length(h, error, before)
        cut = ops.logical_and(h < planned, after >= h)
        return ops.where(cut, ops.maximum(after, planned), after), ops.where(cut, before, error)

    def most_steps(self, length: float) -> int:
        """The most steps in this time [s], repeated ones included: a step that is repeated is shorter by `safety` at
        least, until it is the shortest."""
        repeats = math.ceil(math.log(self.longest / self.shortest) / -math.log(self.safety)) + 1 if self.repeats else 0
        return (math.ceil(length / self.shortest) + 1) * (1 + repeats)

    def refused(self, h: Numeric, error: Numeric) -> Numeric:
        """Whether a step is to be repeated."""
        return ops.logical_and(error > 1.0, h > self.shortest * (1.0 + 1e-9)) if self.repeats else False

    def repeated_length(self, h: Numeric, error: Numeric) -> Numeric:
        """The length [s] of a step that is repeated; its residual grows with the square of the length at least."""
        factor = ops.clip(self.safety / ops.sqrt(ops.maximum(error, 1.0)), self.least_factor, self.safety)
        return ops.maximum(h * factor, self.shortest)
