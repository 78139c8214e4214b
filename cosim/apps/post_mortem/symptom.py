"""A symptom of what led to a stop, and the helpers by which symptoms are found in an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from cosim.apps.post_mortem.window import StopWindow

# how many times its earlier level a magnitude must reach to have grown, and the first part of the ticks, which give it
GROWN, EARLIER = 3.0, 0.25


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
