"""What the estimated errors of steps are for: they are recorded, or they choose the lengths of the steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, State

FIRST_LENGTH = 1.0  # s; longer than any step, so that the first one is as long as possible
SAFETY, LEAST_GROWTH, MOST_GROWTH = 0.9, 0.2, 5.0  # factors from one length of a step to the next
NOT_FINITE = 1e300


@dataclass(frozen=True)
class StepControl:
    """What the estimated error of a step decides: a record, or the length of the next step.

    tolerance: of the error of a step, in each state y relative to 1 + |y|; adaptive: whether steps are subdivided to
    keep it, else their errors are recorded.
    """

    tolerance: float
    adaptive: bool = False

    def initial(self, dofs: int) -> State:
        """Largest error of the tick over the tolerance, of each dof; or length of the next step [s], steps of the tick
        and of the run, accepted or not, and when no step was short enough [s], −1: never."""
        if not self.adaptive:
            return {"error": np.zeros(dofs)}
        return {
            "length": np.array(FIRST_LENGTH),
            "count": np.zeros(()),
            "total": np.zeros(()),
            "refused": np.array(-1.0),
        }

    def at_start(self, steps: State) -> State:
        """At the start of a tick."""
        name = "count" if self.adaptive else "error"
        return steps | {name: np.zeros(np.shape(steps[name]))}

    def relative(self, error: Numeric, y: Numeric) -> Numeric:
        """(n,) |error| over the tolerance of states y (n,)."""
        return ops.abs(error) / (self.tolerance * (1.0 + ops.abs(y)))

    @staticmethod
    def first_length(planned: Numeric, left: Numeric) -> Numeric:
        """The length of a step towards the end of an interval [s]: no step that follows is much shorter."""
        return ops.where(planned >= left, left, ops.minimum(planned, 0.5 * left))

    @staticmethod
    def next_length(length: Numeric, worst: Numeric, order: int) -> Numeric:
        """The length [s] after a step with the relative error `worst`, which grows with this order of the length."""
        ideal = SAFETY * ops.power(ops.maximum(worst, 1e-12), -1.0 / order)
        return length * ops.clip(ideal, LEAST_GROWTH, MOST_GROWTH)


def largest(values: Numeric) -> Numeric:
    """The largest of values ≥ 0, or NOT_FINITE where one is not finite (a maximum skips NaN)."""
    worst = values[0]
    for value in values[1:]:
        worst = ops.maximum(worst, value)
    return ops.where(ops.sum(values) < NOT_FINITE, worst, NOT_FINITE)
