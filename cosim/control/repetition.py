"""A reference that is repeated: a duty cycle out of one motion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Array, Numeric, Trajectory, TrajectoryContext, breaks_of, param, params

CLOSED = 1e-9  # rad or m by which a motion may end beside its begin
FOREVER = "forever"
MOST_BREAKS = 100_000


@params
class RepeatOption:
    times: int | None = param(min=1, default=None, doc="how often the motion is made; forever without it")
    period: float | None = param(
        unit="s", above=0, default=None, doc="from one begin to the next; default: the end of the motion"
    )

    @staticmethod
    def in_full(short: Any) -> Any:
        """The section that `repeat: forever` and `repeat: 3` stand for."""
        if isinstance(short, dict):
            return short
        return {} if short == FOREVER else {"times": short}

    def around(
        self, trajectory: Trajectory, joints: tuple[str, ...], folder: Path, context: TrajectoryContext | None = None
    ) -> RepeatedTrajectory:
        """The trajectory, repeated. Raises SectionError for one that would jump, or is longer than the period."""
        end = float(trajectory.end)
        period = end if self.period is None else self.period
        if not math.isfinite(period) or period <= 0.0:
            what = "the motion has no end of its own" if period else "the motion takes no time"
            raise SectionError(f"{what}; give 'period'", ("repeat",))
        if math.isfinite(end) and end > period * (1.0 + CLOSED):
            what = f"the motion takes {end:.6g} s, longer than the period of {period:.6g} s"
            raise SectionError(f"{what}; raise it, or shorten the motion", ("repeat", "period"))
        begin, last = (np.asarray(trajectory.sample(t)["position"], dtype=float) for t in (0.0, period))
        apart = np.abs(last - begin)
        k = int(np.argmax(apart))
        if apart[k] > CLOSED * max(1.0, float(np.abs(begin).max())):
            what = f"joint '{joints[k]}' begins at {begin[k]:.6g} and ends at {last[k]:.6g}, so that it would jump"
            raise SectionError(f"{what}; end the motion where it begins, such as with back: true", ("repeat",))
        return RepeatedTrajectory(trajectory, period, math.inf if self.times is None else float(self.times))


@dataclass(frozen=True, eq=False)
class RepeatedTrajectory:
    """trajectory(t − k · period) in its repetition k = 0, 1, …; after the last one it stays at its end."""

    trajectory: Trajectory
    period: float
    times: float  # inf: forever

    @property
    def end(self) -> float:
        return (self.times - 1.0) * self.period + min(float(self.trajectory.end), self.period)

    @property
    def is_excitation(self) -> bool:
        return bool(getattr(self.trajectory, "is_excitation", False))

    @property
    def breaks(self) -> Array:
        """Those of each repetition, and its begin. Raises SectionError for too many of them."""
        own = np.array([0.0, *(t for t in breaks_of(self.trajectory) if t < self.period)])
        if self.times * len(own) > MOST_BREAKS:
            what = "steps of the integrator end where a given motion repeats"
            most = MOST_BREAKS // len(own)
            raise SectionError(f"{what}; give times of at most {most}", ("repeat",))
        return np.append(np.add.outer(self.period * np.arange(self.times), own).ravel(), self.times * self.period)

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        number = ops.maximum(ops.floor(t / self.period), 0.0)
        if not math.isinf(self.times):
            number = ops.minimum(number, self.times - 1.0)
        return dict(self.trajectory.sample(t - number * self.period))
