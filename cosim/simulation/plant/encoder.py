"""Encoders: position with noise and in whole increments, velocity from differences of measured positions, and a delay
of one sample where the drive has one.

Without an encoder a joint is measured exactly and without delay.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.core import ops
from cosim.core.types import FEEDBACK, Numeric, State, joint_signals
from cosim.core.units import TURN

# the minimal standard generator of Park and Miller (1988): products stay below 2⁵³, so doubles are exact
MULTIPLIER, MODULUS = 16807.0, 2147483647.0


@dataclass(frozen=True)
class Params:
    """Of n joints: resolution [rad or m] (0: exact), standard deviation of the noise [rad or m], late: whether samples
    are delayed by one period."""

    resolution: np.ndarray
    noise: np.ndarray
    late: np.ndarray


class Encoders:
    """A discrete block: true position, velocity, effort (n,) to measured ones, once per period."""

    def __init__(
        self, resolution: Sequence[float], noise: Sequence[float], late: Sequence[bool], period: float, seed: int
    ) -> None:
        """period [s] of sampling; seed of the noise, which is the same in every run."""
        self.params = Params(np.array(resolution), np.array(noise), np.array(late, dtype=bool))
        self.period, self.seed = period, seed
        self.inputs = self.outputs = joint_signals(FEEDBACK, len(self.params.late))
        self._noisy = np.flatnonzero(self.params.noise > 0.0)
        self._inexact_position = (self.params.resolution > 0.0) | (self.params.noise > 0.0)

    @property
    def inexact(self) -> np.ndarray:
        """bool (n,): joints whose measurement differs from the truth."""
        return self._inexact_position | self.params.late

    def exact(self) -> Encoders:
        """The same ones without noise and increments. Velocities stay differences of positions."""
        found = copy.copy(self)
        nothing = np.zeros(len(self.params.late))
        found.params = replace(self.params, resolution=nothing, noise=nothing)
        found._noisy = np.zeros(0, dtype=int)
        return found

    def initial(self, position: np.ndarray, velocity: np.ndarray) -> State:
        """The state of encoders whose joints reached `position` (n,) at the constant `velocity` (n,)."""
        before = self._quantised(self.params, position - velocity * self.period)
        delayed = np.where(self.params.late, before, self._quantised(self.params, position))
        random = np.random.default_rng(self.seed).integers(1, int(MODULUS), len(self._noisy)).astype(float)
        return {
            "before": before,
            "sample": {"position": delayed, "velocity": velocity.astype(float), "effort": np.zeros(len(position))},
            "random": random,
        }

    @staticmethod
    def _quantised(p: Params, position: Numeric) -> Numeric:
        size = np.where(p.resolution > 0.0, p.resolution, 1.0)
        return ops.where(p.resolution > 0.0, ops.quantised(position, size), position)

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        random, errors = normal(x["random"])
        noise = [0.0] * len(p.late)
        for k, error in zip(self._noisy, errors, strict=True):
            noise[k] = p.noise[k] * error
        position = self._quantised(p, u["position"] + ops.array(noise))
        velocity = ops.where(self._inexact_position, (position - x["before"]) / self.period, u["velocity"])
        sample = {"position": position, "velocity": velocity, "effort": u["effort"]}
        measured = {name: ops.where(p.late, x["sample"][name], sample[name]) for name in FEEDBACK}
        return {"before": position, "sample": sample, "random": random}, measured


def normal(random: Numeric) -> tuple[Numeric, Numeric]:
    """(generator state after two draws, one standard normal number each), by Box and Muller."""
    first = ops.remainder(MULTIPLIER * random, MODULUS)
    second = ops.remainder(MULTIPLIER * first, MODULUS)
    return second, ops.sqrt(-2.0 * ops.log(first / MODULUS)) * ops.cos(TURN * (second / MODULUS))
