"""References of joints as pure functions of time: one kind per file of this package.

A kind has `Params`, the keys of its section in a rig, and
`load(params, joints, folder, start) -> Trajectory`, where `joints` names the n joints, `folder` is that
of the rig file and `start` (n,) holds the joints' initial positions.
"""

from __future__ import annotations

from typing import Any, Protocol


class Trajectory(Protocol):
    """The reference of n joints."""

    @property
    def end(self) -> float:
        """The time [s] from which it holds still; infinite for a periodic one."""
        ...

    def sample(self, t: Any) -> dict[str, Any]:
        """The reference at time t [s], a number or a symbol: `position`, `velocity`, `acceleration` and
        `effort` (a feedforward on top, zero for most kinds), each (n,), SI."""
        ...
