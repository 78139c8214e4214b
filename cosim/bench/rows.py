"""What a benchmark is and what comes of it: a case of the table, its measurement, the row of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.bench.paired_timing import Budget, Samples
from cosim.bench.peers import MissingPeer
from cosim.errors import CosimError
from cosim.units import UNITS

MAX_DIFFERENCE = 1e-9  # largest relative difference of results that are to be the same


class NotMeasured(CosimError):
    """A row cannot be measured here: why, and what to change."""


@dataclass(frozen=True)
class Target:
    """`figure`, "ratio" or "ours" (in the case's unit), is to be at least `bound`, or at most with `most`."""

    figure: str
    bound: float
    most: bool = False

    @property
    def rule(self) -> str:
        return f"{self.figure} {'<=' if self.most else '>='} target"

    def met_by(self, value: float) -> bool:
        return value <= self.bound if self.most else value >= self.bound


@dataclass(frozen=True)
class Measurement:
    """What a case found: times, how far the two results lie apart (relative), and a remark.

    growth: the ratio is ours / other, how much dearer ours is, instead of other / ours, how much faster; quartiles of
    the ratio, where they are not those of the samples; failed: what misses the target besides the figure.
    """

    samples: Samples
    agreement: float | None = None
    note: str = ""
    growth: bool = False
    quartiles: tuple[float, float] | None = None
    failed: str = ""


@dataclass(frozen=True)
class BenchCase:
    """One row to be measured. about: what is timed; against: what the other column is; unit: of `cosim.units`, or what
    is counted."""

    name: str
    about: str
    measure: Callable[[Budget], Measurement]
    against: str = ""
    unit: str = "us"
    target: Target | None = None


@dataclass(frozen=True)
class BenchRow:
    """A measured case; `ours` and `other` in the case's unit, None where there is nothing to say. failed: the target
    is missed whatever the figure is, as the note tells."""

    case: BenchCase
    ours: float | None = None
    other: float | None = None
    ratio: float | None = None
    quartiles: tuple[float, float] | None = None
    agreement: float | None = None
    growth: bool = False
    runs: int = 0
    note: str = ""
    failed: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or without a figure."""
        value = getattr(self, self.case.target.figure) if self.case.target else None
        if self.case.target is None or value is None:
            return None
        agrees = self.agreement is None or self.agreement < MAX_DIFFERENCE
        return self.case.target.met_by(value) and agrees and not self.failed

    def figures(self) -> dict[str, Any]:
        """The row as it is written to JSON."""
        case, target = self.case, self.case.target
        return {
            "name": case.name,
            "about": case.about,
            "against": case.against or None,
            "unit": case.unit,
            "ours": self.ours,
            "other": self.other,
            "ratio": self.ratio,
            "ratio_quartiles": self.quartiles,
            "ratio_is": None if self.ratio is None else "ours / other" if self.growth else "other / ours",
            "agreement": self.agreement,
            "target": target.bound if target else None,
            "rule": target.rule if target else None,
            "met": self.met,
            "runs": self.runs,
            "note": self.note or None,
        }


def measure_case(case: BenchCase, budget: Budget) -> BenchRow:
    """The row of a case; where a peer, or something else that it needs, is missing, one that says how to get it."""
    try:
        result = case.measure(budget)
    except (MissingPeer, NotMeasured) as missing:
        return BenchRow(case, note=str(missing))
    ours, other, factor = result.samples.ours, result.samples.other, UNITS.get(case.unit, ("1", 1.0))[1]
    row = {"ours": float(np.median(ours)) / factor, "runs": len(ours)}
    if other is not None:
        ratios = ours / other if result.growth else other / ours
        low, middle, high = (float(x) for x in np.percentile(ratios, [25, 50, 75]))
        row |= {
            "other": float(np.median(other)) / factor,
            "ratio": middle,
            "quartiles": result.quartiles or (low, high),
        }
    note = "; ".join(part for part in (result.failed, result.note) if part)
    return BenchRow(
        case, **row, agreement=result.agreement, growth=result.growth, note=note, failed=bool(result.failed)
    )
