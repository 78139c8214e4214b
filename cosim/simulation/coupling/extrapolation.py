"""Inputs within a step: polynomials of order 0 to 2 through the values that were communicated last.

A polynomial is its coefficients (k + 1, ...): the value at the beginning of the step, then the factors of s, s², with
s [s] the time since then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.core.types import Array, Numeric

ORDERS = (0, 1, 2)


def polynomial(values: Sequence[Numeric], times: Sequence[Numeric]) -> list[Numeric]:
    """The coefficients of the polynomial through k + 1 values at different times [s]; Newton's divided differences."""
    differences = list(values)
    for span in range(1, len(differences)):
        for i in reversed(range(span, len(differences))):
            change, duration = differences[i] - differences[i - 1], times[i] - times[i - span]
            differences[i] = change / duration
    coefficients = [differences[-1]]
    for time, difference in zip(reversed(times[:-1]), reversed(differences[:-1]), strict=True):
        # times (s − time), plus the difference
        shifted = [-time * c for c in coefficients]
        coefficients = [
            difference + shifted[0],
            *(c + lower for c, lower in zip(shifted[1:], coefficients[:-1], strict=True)),
            coefficients[-1],
        ]
    return coefficients


def times_before(lengths: Sequence[Numeric]) -> list[Numeric]:
    """The times [s] of the last communication points from now on backwards; lengths: of the steps between them, the
    last one first."""
    times: list[Numeric] = [0.0]
    for length in lengths:
        times.append(times[-1] - length)
    return times


def value_at(coefficients: Sequence[Numeric] | Array, s: Numeric) -> Numeric:
    """The value of a polynomial at s [s]."""
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = coefficient + s * value
    return value


def line_before(now: Numeric, then: Numeric, count: int) -> list[Numeric]:
    """`count` values before `now` at equal distances, linear through `now` and the value `then` one step later:
    with them `polynomial` of every order is linear."""
    return [now + k * (now - then) for k in range(1, count + 1)]


class InputSources:
    """The inputs of a part as one vector (nu,). Outputs of parts that have stepped before it are interpolated, others
    extrapolated, and delayed ones are held."""

    def __init__(self, order: int, places: Sequence[Array], delayed: Sequence[bool], stepped: Sequence[bool]) -> None:
        """order: of the polynomials; of each input: the places of its elements among the outputs of all parts, whether
        it is delayed, and whether its source has stepped before this part does."""
        self._order = order
        self._places = np.concatenate([np.zeros(0, dtype=int), *places])
        kinds = [(late, done) for late, done, place in zip(delayed, stepped, places, strict=True) for _ in place]
        self._held = np.array([late for late, _ in kinds], dtype=bool)
        self._reached = np.array([done and not late for late, done in kinds], dtype=bool)
        self._any_held, self._any_reached = bool(self._held.any()), bool(self._reached.any())
        self._all_reached = bool(self._reached.all())
        self._shape = order + 1, len(self._places)
        self._polynomial: Callable[..., Array] | None = None
        if order and len(self._places):
            ports = [ArrayPort("values", self._shape), ArrayPort("times", (order + 1,))]
            results = [ArrayPort("coefficients", self._shape)]
            self._polynomial = compile(_coefficients, ports, "polynomials", results).native

    def polynomials(self, h: float, reached: Array, past: Sequence[Array], times: Sequence[float]) -> Array:
        """(order + 1, nu) coefficients in a step of h [s]. reached (n,): the outputs at its end, as far as they are
        known; past: outputs at the last communication points, the last one first, and the times [s] of these."""
        places, count = self._places, self._order + 1
        if not self._any_reached and not self._any_held:
            before = [values[places] for values in past[:count]]
            return before[0][np.newaxis] if count == 1 else self._through(before, times)
        if self._all_reached:
            end = reached[places]
            if count == 1:
                return end[np.newaxis]
            return self._through([end, *(values[places] for values in past[: count - 1])], [h, *times])
        before = [values[places] for values in past[:count]]
        if count == 1:
            return np.where(self._reached, reached[places], before[0])[np.newaxis]
        interpolated = self._through([reached[places], *before[:-1]], [h, *times])
        found = np.where(self._reached, interpolated, self._through(before, times))
        found[1:, self._held] = 0.0
        found[0, self._held] = before[0][self._held]
        return found

    def _through(self, values: Sequence[Array], times: Sequence[float]) -> Array:
        """(order + 1, nu) coefficients of the polynomials through the values (order + 1, nu)."""
        if self._polynomial is None:
            return np.zeros(self._shape)
        return self._polynomial(np.array(values), np.array(times[: self._shape[0]]), out=np.empty(self._shape))


def _coefficients(values: Numeric, times: Numeric) -> Numeric:
    return ops.array(polynomial(list(values), list(times)))
