"""Benchmark cases, their measurements, and the rows of the table that result."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, RepeatedCall, Samples, time_pairs
from benchmarks.peers import MissingPeer
from benchmarks.robots import CHECKOUT
from cosim.core.errors import CosimError
from cosim.core.units import UNITS

LIBRARIES = "site-packages"
CPU_TIME = time.thread_time  # other programs hardly change it
MAX_DIFFERENCE = 1e-9  # relative, between results that must be equal


class NotMeasured(CosimError):
    """A row cannot be measured on this machine: the reason and the fix."""


@dataclass(frozen=True)
class Target:
    """A bound of `figure`, "ratio" or "ours" (in the case's unit): a lower bound, or an upper bound with `at_most`."""

    figure: str
    bound: float
    at_most: bool = False

    @property
    def rule(self) -> str:
        return f"{self.figure} {'<=' if self.at_most else '>='} target"

    def met_by(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


@dataclass(frozen=True)
class Measurement:
    """The result of a case: times, the relative difference of the two results (`agreement`), and a note.

    growth: the ratio is ours / other (relative cost) instead of other / ours (speed-up). quartiles: of the ratio, if
    not the samples'. failed: a reason to miss the target besides the figure; allowed: the target is met
    whatever the figure is, for a reason in the note.
    """

    samples: Samples
    agreement: float | None = None
    note: str = ""
    growth: bool = False
    quartiles: tuple[float, float] | None = None
    failed: str = ""
    allowed: bool = False


@dataclass(frozen=True)
class BenchCase:
    """A row to measure. about: what is timed; against: the other column; unit: of `cosim.core.units`, or
    the counted things; on_request: measured only if a part of its name is given."""

    name: str
    about: str
    measure: Callable[[Budget], Measurement]
    against: str = ""
    unit: str = "us"
    target: Target | None = None
    on_request: bool = False


@dataclass(frozen=True)
class BenchRow:
    """A measured case; `ours` and `other` in the case's unit, None if not measured. failed: the target is missed
    whatever the figure is, allowed: it is met; broken: its measurement ended in an error; the note has the reason."""

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
    allowed: bool = False
    broken: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or without a figure."""
        value = getattr(self, self.case.target.figure) if self.case.target else None
        if self.case.target is None or value is None:
            return None
        agrees = self.agreement is None or self.agreement < MAX_DIFFERENCE
        return (self.allowed or self.case.target.met_by(value)) and agrees and not self.failed

    def figures(self) -> dict[str, Any]:
        """The row as JSON-ready data."""
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
            "failed": self.broken,
            "runs": self.runs,
            "note": self.note or None,
        }


def beside(
    ours: RepeatedCall, peer: Callable[[], tuple[RepeatedCall, float | None]], budget: Budget, note: str = ""
) -> Measurement:
    """CPU time of ours beside a peer's, or alone with the reason where the peer is missing.

    peer() gives its calls and the relative difference of the two results; raises MissingPeer or NotMeasured."""
    try:
        other, difference = peer()
    except (MissingPeer, NotMeasured) as missing:
        alone = Samples(time_pairs(ours, ours, budget, CPU_TIME).ours)
        return Measurement(alone, note="; ".join(part for part in (str(missing), note) if part))
    return Measurement(time_pairs(ours, other, budget, CPU_TIME), difference, note)


def _place_of(error: Exception) -> str:
    """The error, and the line of this program where it was raised last."""
    raised = traceback.extract_tb(error.__traceback__)
    frames = [
        frame for frame in raised if Path(frame.filename).is_relative_to(CHECKOUT) and LIBRARIES not in frame.filename
    ]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"failed: {type(error).__name__}: {error}{where}"


def measure_case(case: BenchCase, budget: Budget) -> BenchRow:
    """Measure a case. If a peer or another requirement is missing, the row has a note on how to get it; an error costs
    this row alone."""
    try:
        result = case.measure(budget)
    except (MissingPeer, NotMeasured) as missing:
        return BenchRow(case, note=str(missing))
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # as a session of tuning reports it
            raise error.__cause__ from None
        return BenchRow(case, note=_place_of(error), broken=True)
    ours, other, factor = result.samples.ours, result.samples.other, UNITS.get(case.unit, ("1", 1.0))[1]
    row: dict[str, Any] = {"ours": float(np.median(ours)) / factor, "runs": len(ours)}
    if other is not None:
        ratios = ours / other if result.growth else other / ours
        low, middle, high = (float(x) for x in np.percentile(ratios, [25, 50, 75]))
        row |= {
            "other": float(np.median(other)) / factor,
            "ratio": middle,
            "quartiles": result.quartiles or (low, high),
        }
    note = "; ".join(part for part in (result.failed, result.note) if part)
    row |= {"agreement": result.agreement, "growth": result.growth, "allowed": result.allowed}
    return BenchRow(case, **row, note=note, failed=bool(result.failed))
