"""The energy account of power bonds: what the coupling creates, because both ends do not see the same effort and flow.

A bond carries the effort e of part A to B and the flow f of part B back to A. Within a step A sees the polynomial f̃
instead of f, and B sees ẽ instead of e. So A gives the power e f̃, and B takes ẽ f. The residual power

    δP = ẽ f − e f̃

is created by the coupling (negative: lost in it), and its integral δE [J] is the error of the energy of the whole
(Sadjina, Kyllingstad, Skjong and Pedersen, Engineering with Computers, 2017, arXiv 1602.06434).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from cosim.core import ops
from cosim.core.types import Array, Numeric


@runtime_checkable
class MeasuresWork(Protocol):
    """A part that integrates the powers of its ports with its state: more exact than the trapezoidal rule."""

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        """Integrate the product of these (input, output) from now on. Before `start`."""
        ...

    @property
    def work(self) -> Array:
        """(ports,) J of the last step."""
        ...


def residuals(works: Numeric) -> Numeric:
    """(bonds,) δE [J] of a step; works (bonds, 2): what the giving and the taking end of each bond measured."""
    return works[:, 1] - works[:, 0]


def levels(works: Numeric) -> Numeric:
    """(bonds,) the larger of both works of each bond [J], without signs: what a tolerance is relative to."""
    return ops.maximum(ops.abs(works[:, 0]), ops.abs(works[:, 1]))


def trapezoidal_work(
    port: tuple[str, str],
    h: float,
    inputs: Mapping[str, Array],
    before: Mapping[str, Array],
    after: Mapping[str, Array],
) -> float:
    """The work [J] at a port of a part that does not measure it: inputs: polynomials over the step of h [s]; outputs
    at its beginning and end."""
    given, output = port
    coefficients = inputs[given]
    start, end = coefficients[0], coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        end = coefficient + h * end
    if not coefficients[0].shape:
        return 0.5 * h * float(start * before[output] + end * after[output])
    powers = (u.reshape(-1) @ y[output].reshape(-1) for u, y in ((start, before), (end, after)))
    return 0.5 * h * float(sum(powers))
