"""Positions and velocities of a trajectory in the ticks of a run, looked at before it begins."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from cosim.core.compile import ArrayPort, compile_for_batches
from cosim.core.errors import CompileError
from cosim.core.types import Array, Numeric, Trajectory


class TrajectorySamples:
    """Called with a count: (position, velocity) (count, n) of the first ticks, arrays that must not be changed."""

    def __init__(self, trajectory: Trajectory, n: int, step: float, compiled: bool) -> None:
        """n: joints; step [s]; compiled: False for plain Python, as with a trajectory that cannot be traced."""
        self._trajectory, self._step = trajectory, step
        self._taken = np.zeros((0, n)), np.zeros((0, n))
        self._compiled = compiled

    def __call__(self, count: int) -> tuple[Array, Array]:
        taken = len(self._taken[0])
        if count > taken:
            more = self._sample(self._step * np.arange(taken, count))
            first, second = (np.concatenate(pair) for pair in zip(self._taken, more, strict=True))
            self._taken = first, second
        return self._taken[0][:count], self._taken[1][:count]

    def _motion(self, t: Numeric) -> tuple[Numeric, Numeric]:
        sample = self._trajectory.sample(t)
        return sample["position"], sample["velocity"]

    def _sample(self, times: Array) -> tuple[Array, Array]:
        """(position, velocity) (k, n) at times (k,) [s]."""
        if self._compiled:
            try:
                return self._function(times)
            except CompileError:  # Python code of a user
                self._compiled = False
        rows = [self._motion(float(t)) for t in times]
        shape = len(rows), self._taken[0].shape[1]
        position, velocity = (np.array([row[k] for row in rows], dtype=float) for k in (0, 1))
        return position.reshape(shape), velocity.reshape(shape)

    @cached_property
    def _function(self) -> Callable[[Array], tuple[Array, Array]]:
        return compile_for_batches(self._motion, [ArrayPort("t", ())], "trajectory")
