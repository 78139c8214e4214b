"""The state of a run while it runs, a few times per second, and the line that shows it on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cosim.core.errors import plural

SHOWN_JOINTS = 3  # that the line names


@dataclass(frozen=True)
class RunStatus:
    """How far a run has come, and how it keeps up.

    fraction: of the run that is done; t: simulated time [s]; factor: real-time factor since the status before; missed:
    ticks with a missed deadline so far; beyond: joints beyond a limit of the guard.
    """

    fraction: float
    t: float
    factor: float = 0.0
    missed: int = 0
    beyond: Sequence[str] = ()


def status_line(name: str, status: RunStatus) -> str:
    """One line about a real-time run."""
    names, more = ", ".join(status.beyond[:SHOWN_JOINTS]), len(status.beyond) - SHOWN_JOINTS
    guard = f"guard: {names}{f' and {more} more' if more > 0 else ''} beyond a limit" if names else "guard ok"
    deadlines = f"{status.missed:,} missed {plural(status.missed, 'deadline')}"
    return f"{name}  t = {status.t:.1f} s  {status.factor:.2f} × real time  {deadlines}  {guard}"
