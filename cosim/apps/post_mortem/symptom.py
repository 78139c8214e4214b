"""The last ticks before a stop as plain arrays, a symptom in them, and the helpers by which symptoms are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.output.events import RunEvent

# how many times its earlier level a magnitude must reach to have grown, and the first part of the ticks, which give it
GROWN, EARLIER = 3.0, 0.25


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


@dataclass(frozen=True)
class Symptom:
    """At t [s] of the run this began. abnormal: whether a sound run does not have it; value and limit: in SI, None
    where the symptom has none."""

    t: float
    what: str
    abnormal: bool
    value: float | None = None
    limit: float | None = None


Detector = Callable[[StopWindow], Iterable[Symptom]]


def first(condition: np.ndarray) -> int | None:
    """The first place that is true."""
    places = np.flatnonzero(condition)
    return int(places[0]) if len(places) else None


def growth(magnitude: np.ndarray, floor: float) -> int | None:
    """Where the last growth of a magnitude (k,) began, if it ends GROWN times as high as its earlier level: the last
    tick at that level. floor: a magnitude below it counts as small, however often it has multiplied."""
    finite = np.isfinite(magnitude)
    if not finite.any():
        return None
    known = np.where(finite, magnitude, 0.0)[: int(np.flatnonzero(finite)[-1]) + 1]  # the state may diverge
    level = float(known[: max(int(EARLIER * len(known)), 1)].max())
    if known[-1] < max(floor, GROWN * level):
        return None
    return int(np.flatnonzero(known <= level)[-1])
