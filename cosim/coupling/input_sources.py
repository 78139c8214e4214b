"""Where the inputs of a part come from, and their polynomials within a step: for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.coupling.extrapolation import polynomial
from cosim.types import Array


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

    def polynomials(self, h: float, reached: Array, past: Sequence[Array], times: Sequence[float]) -> Array:
        """(order + 1, nu) coefficients in a step of h [s]. reached (n,): the outputs at its end, as far as they are
        known; past: outputs at the last communication points, the last one first, and the times [s] of these."""
        places, count = self._places, self._order + 1
        before = [values[places] for values in past[:count]]
        if not self._any_reached and (count == 1 or not self._any_held):
            return np.array(before if count == 1 else polynomial(before, times[:count]))
        end = reached[places]
        if count == 1:
            return np.where(self._reached, end, before[0])[np.newaxis]
        found = np.array(polynomial([end, *before[:-1]], [h, *times[: count - 1]]))
        if not self._all_reached:
            found = np.where(self._reached, found, polynomial(before, times[:count]))
        if self._any_held:
            found[:, self._held] = 0.0
            found[0, self._held] = before[0][self._held]
        return found
