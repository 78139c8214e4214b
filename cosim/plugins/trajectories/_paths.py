"""Motions along a path of the joints: the path q(s) and its timing s(t), each with two derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core.types import Numeric, Trajectory
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial


@dataclass(frozen=True, eq=False)
class PathTrajectory:
    """q(s(t)). timing: a trajectory whose one position is s."""

    path: PiecewisePolynomial
    timing: Trajectory

    @property
    def end(self) -> float:
        return self.timing.end

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        timing = self.timing.sample(t)
        s, rate, bend = (timing[key][0] for key in ("position", "velocity", "acceleration"))
        position, by_s, twice_by_s = self.path(s)
        return {
            "position": position,
            "velocity": by_s * rate,
            "acceleration": twice_by_s * rate**2 + by_s * bend,
            "effort": np.zeros(self.path.n),
        }
