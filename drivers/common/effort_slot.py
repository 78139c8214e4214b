"""The slot of a drive that takes the effort: its size and its steps, and what they did to what was asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.types import Array


class EffortSlot:
    """limit, quantum: (n,) of the joints [N·m or N]; infinite and 0 where there is none."""

    def __init__(self, joints: Sequence[str], limit: Array, quantum: Array) -> None:
        self.joints = tuple(joints)
        self.limit = np.broadcast_to(np.asarray(limit, dtype=float), (len(joints),)).copy()
        self.quantum = np.broadcast_to(np.asarray(quantum, dtype=float), (len(joints),)).copy()
        self.saturated = np.zeros(len(joints), dtype=np.int64)  # commands that were cut

    def fit(self, effort: Array) -> Array:
        """(n,) what the slots can take of it; what is cut is counted."""
        cut = np.abs(effort) > self.limit
        if not cut.any():
            return effort
        self.saturated += cut
        return np.clip(effort, -self.limit, self.limit)

    def report(self) -> list[dict[str, object]]:
        """Per joint: commands that were cut, the limit that cut them, the size of a step."""
        rows = zip(self.joints, self.saturated.tolist(), self.limit.tolist(), self.quantum.tolist(), strict=True)
        return [{"joint": j, "saturated": s, "limit": limit, "quantum": q} for j, s, limit, q in rows]
