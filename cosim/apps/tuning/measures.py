"""The figures of merit that a session knows: metrics of a run, margins of its loops, and peaks of its signals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core.errors import SectionError, did_you_mean
from cosim.core.types import Array
from cosim.core.units import JOINT_DIMENSIONS
from cosim.rig.rig import Rig
from cosim.simulation.tick.metrics import METRICS


class MarginFigure(NamedTuple):
    """doc; unit; largest: that a loop can have, in SI."""

    doc: str
    unit: str
    largest: float


# margins of the loops, linearised at the moments of `TrialEvaluator.moments`; larger ones are better
MARGINS: dict[str, MarginFigure] = {
    "disk_margin": MarginFigure("disk margin of the loop of a joint; 0 where the rig is unstable", "1", 2.0),
    "gain_margin": MarginFigure("factor of the gain at which the loop of a joint gets unstable", "1", math.inf),
    "phase_margin": MarginFigure("phase that the loop of a joint may lose", "rad", math.pi),
}


@dataclass(frozen=True)
class Measure:
    """name: as the user gives it; figure: a metric, a margin or a signal; joint: the only one, or None for all."""

    name: str
    figure: str
    joint: int | None
    unit: str

    @property
    def is_metric(self) -> bool:
        return self.figure in METRICS

    @property
    def is_margin(self) -> bool:
        return self.figure in MARGINS

    def of(self, values: Array) -> Array:
        """(k, m) of the joints that count, from (k, joints) of the figure, or (k, 1) of a signal."""
        return values if self.joint is None else values[:, self.joint : self.joint + 1]


def read_measure(rig: Rig, name: str, place: str) -> Measure:
    """name: of a metric or a margin, of all joints; `JOINT/…` of one joint; or of a signal, whose peak is meant; place:
    the key of the section that has it.

    Raises SectionError for a name that does not exist.
    """
    figures = [*METRICS, *MARGINS]
    if name in figures:
        return Measure(name, name, None, _unit(rig, name, None))
    joint, _, figure = name.rpartition("/")
    if joint in rig.joints and figure in figures:
        return Measure(name, figure, rig.joints.index(joint), _unit(rig, figure, joint))
    signals = rig.tick_model.signals.names
    if name in signals:
        from cosim.rig.run.run_metadata import channels_of

        return Measure(name, name, 0, dict(channels_of(rig))[name])
    known = [*figures, *signals] if "/" in name else figures
    raise SectionError(f"there is no metric, margin or signal '{name}'{did_you_mean(name, known)}", (place, name))


def _unit(rig: Rig, figure: str, joint: str | None) -> str:
    """In SI; for joints of both kinds, the unit of rotational ones."""
    if figure in MARGINS:
        return MARGINS[figure].unit
    unit, units = METRICS[figure].unit, rig.plant.model.dof_units
    own = {units[rig.joints.index(joint)]} if joint else set(units)
    return _LINEAR.get(unit, unit) if own == {"m"} else unit


_LINEAR = {angular: linear for angular, linear in (pair for pair in JOINT_DIMENSIONS.values() if len(pair) == 2)} | {
    "rad*s": "m*s"
}


def summed(values: Array) -> Array:
    """(k,) sum over the joints that have the figure, of (k, m)."""
    return np.where(np.isnan(values).all(axis=1), np.nan, np.nansum(values, axis=1))


def worst(values: Array, at_least: bool) -> Array:
    """(k,) the smallest of (k, m) where the figure should be large, else the largest; NaN where no joint has it."""
    empty = np.isnan(values).all(axis=1)
    filled = np.where(np.isnan(values), np.inf if at_least else -np.inf, values)
    return np.where(empty, np.nan, filled.min(axis=1) if at_least else filled.max(axis=1))
