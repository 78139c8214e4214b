"""Inputs within a step: polynomials of order 0 to 2 through the values that were communicated last.

A polynomial is its coefficients (k + 1, ...): the value at the beginning of the step, then the factors of s, s², with
s [s] the time since then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.core.layout import Layout
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


def packed(layout: Layout, inputs: Mapping[str, Array]) -> Array:
    """(k + 1, nu) coefficients of all inputs, from those of each, (k + 1, …); layout: of the inputs."""
    rows = max((len(each) for each in inputs.values()), default=1)
    coefficients = np.zeros((rows, layout.size))
    for (name,), (where, _) in layout.places.items():
        coefficients[:, where] = inputs[name].reshape(rows, -1)
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
