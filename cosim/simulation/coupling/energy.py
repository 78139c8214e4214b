"""The energy that the coupling by power bonds creates, because both ends do not see the same effort and flow: its
account, and its correction.

A bond carries the effort e of part A to B and the flow f of part B back to A. Within a step A sees the polynomial f̃
instead of f, and B sees ẽ instead of e. So A gives the power e f̃, and B takes ẽ f. The residual power

    δP = ẽ f − e f̃

is created by the coupling (negative: lost in it), and its integral δE [J] is the error of the energy of the whole
(Sadjina, Kyllingstad, Skjong and Pedersen, Engineering with Computers, 2017, arXiv 1602.06434).

**Correction** for steps of constant length: in real time and with hardware, where no step can be repeated or shortened.

The residual energy D of a bond [J] that has summed up so far is paid back in the next step, by offsets Δe and Δf of
what its two ends see. They change the residual power by Δe f − e Δf, so that

    h (Δe f − e Δf) = −gain D

removes it. Of all such offsets those with the smallest (Δe / e₀)² + (Δf / f₀)² are taken, with the largest effort e₀
and flow f₀ so far:

    Δe = −gain D/h · f e₀² / (f² e₀² + e² f₀²),    Δf = gain D/h · e f₀² / (f² e₀² + e² f₀²).

Where the effort passes zero the effort is changed, and the flow where the flow does. |Δe| ≤ limit e₀ and
|Δf| ≤ limit f₀; what is beyond is paid later.

That the residual is monitored and removed by changing what is exchanged in the next step is the idea of González,
Rodríguez and others (Multibody System Dynamics 55, 2022) and of the nearly energy-preserving coupling element (NEPCE).
The offsets of least size are this module's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError
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


# (h [s], inputs: polynomials over the step, outputs at its beginning, and at its end) -> (ports,) works [J] of a step
WorkMeter = Callable[[float, Mapping[str, Array], Mapping[str, Array], Mapping[str, Array]], Array]


def work_meter(part: object, ports: Sequence[tuple[str, str]]) -> WorkMeter:
    """Of a part that has not started: what it measures itself, else the trapezoidal rule."""
    if isinstance(part, MeasuresWork):
        part.measure(ports)
        return lambda *_: part.work
    return lambda *step: np.array([trapezoidal_work(port, *step) for port in ports])


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


LEAST_DENOMINATOR = 1e-30  # against division by 0 while a bond has not carried power yet


@dataclass(frozen=True)
class EnergyCorrection:
    """The offsets of efforts and flows that pay back the energy which a coupling has created. gain: the part of the
    residual that a step pays back; limit: of an offset, relative to the largest effort or flow so far."""

    gain: float = 1.0
    limit: float = 0.2

    def __post_init__(self) -> None:
        """Raises InputError for numbers outside their ranges."""
        if not 0.0 < self.gain <= 1.0:
            raise InputError(f"the gain is {self.gain}; it must be above 0 and at most 1", "energy correction")
        if not self.limit > 0.0:
            raise InputError(f"the limit is {self.limit}; it must be above 0", "energy correction")

    def offsets(
        self, debt: Numeric, h: Numeric, effort: Numeric, flow: Numeric, largest: tuple[Numeric, Numeric]
    ) -> tuple[Numeric, Numeric]:
        """(Δe, Δf), each (n,), of a bond with effort and flow (n,); debt D [J]; largest: e₀² and f₀²."""
        e2, f2 = largest
        factor = self.gain * debt / (h * ((flow @ flow) * e2 + (effort @ effort) * f2 + LEAST_DENOMINATOR))
        most_effort, most_flow = (self.limit * ops.sqrt(square) for square in largest)
        return (
            ops.clip(-factor * e2 * flow, -most_effort, most_effort),
            ops.clip(factor * f2 * effort, -most_flow, most_flow),
        )
