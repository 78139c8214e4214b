"""Efforts over time from a file, added to a reference's efforts: what iterative learning found, or measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core.paths import locate
from cosim.core.types import Array, Numeric, Trajectory, TrajectoryContext, breaks_of, param, params
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial
from cosim.plugins.trajectories.waypoints import read_waypoints


@params
class FeedforwardTable:
    file: str = param(doc="CSV file, relative to the rig's folder")

    def around(
        self, trajectory: Trajectory, joints: tuple[str, ...], folder: Path, context: TrajectoryContext | None = None
    ) -> FeedforwardTrajectory:
        """The trajectory with the efforts of the file. Raises InputError, InputErrors for an invalid file."""
        times, efforts = read_waypoints(locate(self.file, folder), joints)
        slopes = np.diff(efforts, axis=0) / np.diff(times)[:, None]
        return FeedforwardTrajectory(
            trajectory, PiecewisePolynomial.of(times, np.array([slopes, efforts[:-1]]), "feedforward")
        )


@dataclass(frozen=True, eq=False)
class FeedforwardTrajectory:
    """A trajectory with the efforts of a table added to its own. table: of the efforts (n,), linear between the rows
    and constant outside."""

    trajectory: Trajectory
    table: PiecewisePolynomial

    @property
    def end(self) -> float:
        return max(self.trajectory.end, self.table.end)

    @property
    def breaks(self) -> Array:
        """Of the motion."""
        return breaks_of(self.trajectory)

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        sample = dict(self.trajectory.sample(t))
        return sample | {"effort": sample["effort"] + self.table(t)[0]}
