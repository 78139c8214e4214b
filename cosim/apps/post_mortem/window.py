"""The last ticks before a stop: signals, limits and events of a recorded run as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.output.events import RunEvent


@dataclass(frozen=True)
class StopWindow:
    """The last ticks of a run that stopped. t (k,) of consecutive ticks [s], up to the stop; signals: name -> (k,), SI;
    units: of signals; limits: joint -> finite bounds by rig key; step [s]; events: within these ticks."""

    t: np.ndarray
    signals: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    limits: Mapping[str, Mapping[str, float]]
    step: float
    events: Sequence[RunEvent] = ()

    @property
    def joints(self) -> tuple[str, ...]:
        """Those that may have limits."""
        return tuple(self.limits)

    def measured(self, joint: str, what: str) -> np.ndarray | None:
        """(k,) `position` or `velocity` of a joint as the guard sees it, or None."""
        return self.signals.get(f"{joint}/measured_{what}", self.signals.get(f"{joint}/{what}"))

    def tracking_error(self, joint: str) -> np.ndarray | None:
        """(k,) |reference − measured position|, of a real joint at the times of its samples, or None of a joint without
        a reference."""
        if (error := self.signals.get(f"{joint}/measured_error")) is not None:
            return np.abs(error)
        reference, position = self.signals.get(f"{joint}/reference_position"), self.measured(joint, "position")
        return None if reference is None or position is None else np.abs(reference - position)
