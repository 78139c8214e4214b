"""The field of a drive's command for the feedforward effort: its limit, its resolution, what was clipped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import gt

import numpy as np

from cosim.core.driver_contract import FeedforwardReport


class FeedforwardField:
    """The feedforward fields in the commands of n drives, which clip efforts and count it. limit, resolution: (n,) in
    the joints' units [N·m or N]; infinite and 0 where there is none."""

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = tuple(joints)
        self.limit = np.full(len(joints), np.inf)
        self.resolution = np.zeros(len(joints))
        self.saturated = np.zeros(len(joints), dtype=np.int64)  # commands that were clipped

    def fit(self, effort: list[float]) -> list[float]:
        """(n,) efforts clipped to the fields' limits; clipped commands are counted."""
        if not self.count(effort):
            return effort
        return [min(max(value, -limit), limit) for value, limit in zip(effort, self.limit.tolist(), strict=True)]

    def count(self, effort: list[float]) -> bool:
        """Count the efforts (n,) beyond the fields' limits; whether there are any."""
        beyond = map(gt, map(abs, effort), self.limit.tolist())
        if not any(beyond):  # the usual way
            return False
        self.saturated += np.abs(effort) > self.limit
        return True

    def report(self) -> list[FeedforwardReport]:
        """Per joint, JSON-ready: the number of clipped commands, the limit, the resolution."""
        limits = (limit if math.isfinite(limit) else None for limit in self.limit.tolist())
        rows = zip(self.joints, self.saturated.tolist(), limits, self.resolution.tolist(), strict=True)
        return [FeedforwardReport(joint=j, saturated=s, limit=limit, resolution=r) for j, s, limit, r in rows]
