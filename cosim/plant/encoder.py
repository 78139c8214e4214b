"""What a drive measures of its joint: position with noise and in whole counts, velocity from the differences
of measured positions, and late by one sample if the drive is.

A joint without an encoder is measured exactly and without delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops
from cosim.types import FEEDBACK, State, joint_signals
from cosim.units import TURN

# the minimal standard generator of Park and Miller (1988): products stay below 2⁵³, so doubles are exact
MULTIPLIER, MODULUS = 16807.0, 2147483647.0


@dataclass(frozen=True)
class Params:
    """Of n joints: size of a count [rad or m] (0: exact), standard deviation of the noise [rad or m],
    whether a sample comes one period late."""

    resolution: np.ndarray
    noise: np.ndarray
    late: np.ndarray


class Encoders:
    """A discrete block: true position, velocity, effort (n,) in, measured ones out, once per period."""

    def __init__(
        self, resolution: Sequence[float], noise: Sequence[float], late: Sequence[bool], period: float, seed: int
    ) -> None:
        """period [s] of sampling; seed of the noise, which is the same in every run."""
        self.params = Params(np.array(resolution), np.array(noise), np.array(late, dtype=bool))
        self.period, self.seed = period, seed
        self.inputs = self.outputs = joint_signals(FEEDBACK, len(self.params.late))
        self._noisy = np.flatnonzero(self.params.noise > 0.0)
        self._differs = (self.params.resolution > 0.0) | (self.params.noise > 0.0)

    @property
    def inexact(self) -> np.ndarray:
        """(n,) truth values: joints whose measurement differs from the truth."""
        return self._differs | self.params.late

    def initial(self, position: np.ndarray, velocity: np.ndarray) -> State:
        """As if the joints had come to `position` with `velocity`."""
        before = self._counted(self.params, position - velocity * self.period)
        held = np.where(self.params.late, before, self._counted(self.params, position))
        dice = np.random.default_rng(self.seed).integers(1, int(MODULUS), len(self._noisy)).astype(float)
        return {
            "before": before,
            "held": {"position": held, "velocity": velocity.astype(float), "effort": np.zeros(len(position))},
            "dice": dice,
        }

    @staticmethod
    def _counted(p: Params, position: Any) -> Any:
        size = np.where(p.resolution > 0.0, p.resolution, 1.0)
        return ops.where(p.resolution > 0.0, size * ops.floor(position / size + 0.5), position)

    def update(self, t: Any, p: Params, x: State, u: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
        dice, errors = _normal(x["dice"])
        noise = [0.0] * len(p.late)
        for k, error in zip(self._noisy, errors, strict=True):
            noise[k] = p.noise[k] * error
        position = self._counted(p, u["position"] + ops.array(noise))
        velocity = ops.where(self._differs, (position - x["before"]) / self.period, u["velocity"])
        sample = {"position": position, "velocity": velocity, "effort": u["effort"]}
        given = {name: ops.where(p.late, x["held"][name], sample[name]) for name in FEEDBACK}
        return {"before": position, "held": sample, "dice": dice}, given


def _normal(dice: Any) -> tuple[Any, Any]:
    """(dice thrown twice, one standard normal number each) by Box and Muller."""
    first = ops.remainder(MULTIPLIER * dice, MODULUS)
    second = ops.remainder(MULTIPLIER * first, MODULUS)
    return second, ops.sqrt(-2.0 * ops.log(first / MODULUS)) * ops.cos(TURN * (second / MODULUS))
