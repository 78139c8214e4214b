"""Two runs side by side: what differs in their settings, their summaries and their signals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.errors import InputError
from cosim.rig.run import Run

# of the summary: what every run has anew
VOLATILE = ("speed", "timing", "drivers")


@dataclass(frozen=True)
class SignalDifference:
    """Of a signal of both runs, over the time that both have: rms and largest absolute difference b − a, and the time
    [s] of the largest."""

    unit: str
    rms: float
    max: float
    t: float


@dataclass(frozen=True)
class Comparison:
    """changed: field of the summary, such as `joints.elbow.error_rms`, or `parameters.arm.kp` -> its values in a and b,
    None where there is none; signals: those of both, by name; only_a, only_b: signals of one run; end: of the time [s]
    that both have."""

    a: Run
    b: Run
    changed: Mapping[str, tuple[Any, Any]]
    signals: Mapping[str, SignalDifference]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    end: float

    @property
    def identical(self) -> bool:
        """Whether no signal differs, to the bit."""
        same = not self.only_a and not self.only_b and len(self.a.t) == len(self.b.t)
        return same and all(difference.max == 0.0 for difference in self.signals.values())

    def __repr__(self) -> str:
        differing = sum(difference.max != 0.0 for difference in self.signals.values())
        return f"<Comparison {self.a.rig.name}, {self.b.rig.name}: {differing} of {len(self.signals)} signals differ>"


def compare(a: Run, b: Run) -> Comparison:
    """Compare two runs. Where their ticks have different times, b is interpolated linearly at the times of a.

    Raises InputError for runs without a common time.
    """
    end = min(float(a.t[-1]), float(b.t[-1]))
    first = max(float(a.t[0]), float(b.t[0]))
    rows = (a.t >= first) & (a.t <= end)
    if not rows.any():
        spans = ", ".join(f"{name} is from {run.t[0]:g} to {run.t[-1]:g} s" for name, run in (("a", a), ("b", b)))
        raise InputError(f"the runs have no common time: {spans}; compare runs of the same time", "compare")
    t = a.t[rows]
    same = len(b.t) >= len(t) and np.array_equal(b.t[: len(t)], t)
    common = [name for name in a.signals if name in b]
    signals = {}
    for name in common:
        values = b[name][: len(t)] if same else np.interp(t, b.t, b[name])
        signals[name] = _difference(t, a[name][rows], values, a.units[name])
    flat_a, flat_b = (_flat({k: v for k, v in run.summary.items() if k not in VOLATILE}) for run in (a, b))
    changed = {
        key: (flat_a.get(key), flat_b.get(key))
        for key in dict.fromkeys([*flat_a, *flat_b])
        if not _equal(flat_a.get(key), flat_b.get(key))
    }
    only_a, only_b = (tuple(s for s in x.signals if s not in y) for x, y in ((a, b), (b, a)))
    return Comparison(a, b, changed, signals, only_a, only_b, end)


def _difference(t: np.ndarray, a: np.ndarray, b: np.ndarray, unit: str) -> SignalDifference:
    with np.errstate(over="ignore", invalid="ignore"):  # of runs that diverged
        difference = np.abs(b - a)
    difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0  # infinite, or not measured, in both
    difference[np.isnan(difference)] = np.inf  # in one of them
    worst = int(np.argmax(difference))
    with np.errstate(over="ignore"):
        rms = float(np.sqrt(np.mean(difference * difference)))
    return SignalDifference(unit, rms, float(difference[worst]), float(t[worst]))


def _flat(data: Any, path: str = "") -> dict[str, Any]:
    """Leaves of nested mappings and lists of mappings by dotted name."""
    if isinstance(data, Mapping):
        items = data.items()
    elif isinstance(data, list) and any(isinstance(item, Mapping) for item in data):
        items = enumerate(data)
    else:
        return {path: data}
    found: dict[str, Any] = {}
    for key, value in items:
        found |= _flat(value, f"{path}.{key}" if path else str(key))
    return found


def _equal(a: Any, b: Any) -> bool:
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return both_nan or a == b
