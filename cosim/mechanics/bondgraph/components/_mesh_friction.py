"""Friction of a gear mesh per load that it transmits, by direction and speed.

The load M is what the mesh transmits to the output. Where the input drives, it gives M / η, so the friction is
f M = (1/η − 1) M; where the load drives, η' M reaches the input, so f' M = (1 − η') M. From f' = 1 on, the load cannot
drive: the stage locks itself. At rest the friction is what keeps it there, between −f' M and f M for M > 0, as of
LossyGear in the Modelica Standard Library (Pelchen, Schweiger and Otter, Modeling and Simulating the Efficiency of
Gearboxes and of Planetary Gearboxes, 2nd Modelica Conference, 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cosim.core import ops
from cosim.core.types import Numeric


@dataclass(frozen=True)
class MeshFriction:
    """Efficiencies η and η' at speeds of the output [rad/s], linear between them and constant outside."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    speeds: tuple[float, ...] = (0.0,)

    @property
    def locks(self) -> bool:
        """Whether the load cannot drive it at some speed."""
        return min(self.backward) <= 0.0

    def per_load(self, speed: Numeric) -> tuple[Numeric, Numeric]:
        """(f, f') at a speed of the output."""
        size = ops.abs(speed)
        forward, backward = (interpolated(size, self.speeds, row) for row in (self.forward, self.backward))
        return 1.0 / forward - 1.0, 1.0 - backward


def interpolated(x: Numeric, points: Sequence[float], values: Sequence[float]) -> Numeric:
    """The values at increasing points, linear between them and constant outside."""
    found = values[0]
    for (a, b), (y, z) in zip(pairwise(points), pairwise(values), strict=True):
        found = found + (z - y) / (b - a) * (ops.clip(x, a, b) - a)
    return found
