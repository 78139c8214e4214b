"""Efforts over time from a file, added to a reference's efforts: what iterative learning found, or measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core.tables.joint_table import TableFile
from cosim.core.types import Array, Numeric, Trajectory, TrajectoryContext, breaks_of, declared, params
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial
from cosim.plugins.trajectories.waypoints import read_waypoints


@params
class FeedforwardTable(TableFile):
    def around(
        self, trajectory: Trajectory, joints: tuple[str, ...], folder: Path, context: TrajectoryContext | None = None
    ) -> FeedforwardTrajectory:
        """The trajectory with the efforts of the file. Raises InputError, InputErrors for an invalid file."""
        found = read_waypoints(self, folder, joints, "effort")
        slopes = np.diff(found.values, axis=0) / np.diff(found.t)[:, None]
        table = PiecewisePolynomial.of(found.t, np.array([slopes, found.values[:-1]]), "feedforward")
        return FeedforwardTrajectory(trajectory, table, tuple(f"{found.path}: {line}" for line in found.notes))


@dataclass(frozen=True, eq=False)
class FeedforwardTrajectory:
    """A trajectory with the efforts of a table added to its own. table: of the efforts (n,), linear between the rows
    and constant outside."""

    trajectory: Trajectory
    table: PiecewisePolynomial
    notes: tuple[str, ...] = ()

    @property
    def doubts(self) -> tuple[str, ...]:
        return (*declared(self.trajectory, "doubts", ()), *self.notes)

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
