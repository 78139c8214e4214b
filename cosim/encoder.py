"""What a drive measures of its joint: position in whole counts, velocity from their differences, and late
by one sample if the drive is.

A joint without an encoder is measured exactly and at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops
from cosim.types import FEEDBACK, State, joint_signals


@dataclass(frozen=True)
class Params:
    """Of n joints: size of a count [rad or m] (0: exact), whether a sample comes one period late."""

    resolution: np.ndarray
    late: np.ndarray


class Encoders:
    """A discrete block: true position, velocity, effort (n,) in, measured ones out, once per period."""

    def __init__(self, resolution: Sequence[float], late: Sequence[bool], period: float) -> None:
        self.params = Params(np.array(resolution, dtype=float), np.array(late, dtype=bool))
        self.period = period
        self.inputs = self.outputs = joint_signals(FEEDBACK, len(self.params.late))

    @property
    def rounding(self) -> np.ndarray:
        """(n,) truth values: joints whose measurement differs from the truth."""
        return np.logical_or(self.params.resolution > 0.0, self.params.late)

    def initial(self, position: np.ndarray, velocity: np.ndarray) -> State:
        """As if the joints had come to `position` with `velocity`."""
        before = self._counted(self.params, position - velocity * self.period)
        here = self._counted(self.params, position)
        held = np.where(self.params.late, before, here)
        return {
            "counted": before,
            "held": {"position": held, "velocity": velocity.astype(float), "effort": np.zeros(len(position))},
        }

    @staticmethod
    def _counted(p: Params, position: Any) -> Any:
        size = np.where(p.resolution > 0.0, p.resolution, 1.0)
        return ops.where(p.resolution > 0.0, size * ops.floor(position / size + 0.5), position)

    def update(self, t: Any, p: Params, x: State, u: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
        position = self._counted(p, u["position"])
        velocity = ops.where(p.resolution > 0.0, (position - x["counted"]) / self.period, u["velocity"])
        sample = {"position": position, "velocity": velocity, "effort": u["effort"]}
        given = {name: ops.where(p.late, x["held"][name], sample[name]) for name in FEEDBACK}
        return {"counted": position, "held": sample}, given
