"""Found numbers and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.apps.identification.intervals import deviations_of_interval
from cosim.core.types import Array


@dataclass(frozen=True)
class FittedNumbers:
    """values (n,) and their covariance (n, n); clusters: the parts of the recordings from whose differences it is, none
    where it is from the spectrum of the errors."""

    values: Array
    covariance: Array
    clusters: int | None = None

    @cached_property
    def intervals(self) -> Array:
        """(n,) half intervals of 95 %."""
        return deviations_of_interval(self.clusters) * np.sqrt(np.diag(self.covariance))

    def part(self, places: Array) -> FittedNumbers:
        return FittedNumbers(self.values[places], self.covariance[np.ix_(places, places)], self.clusters)
