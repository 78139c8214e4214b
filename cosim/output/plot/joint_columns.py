"""The columns of the plot of a run: charts of a joint, and the limits that are drawn in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim.output.palette import PALE
from cosim.output.plot.curves import Samples, is_zero, samples_of
from cosim.output.signal_charts import EFFORT, POSITION, TRACKING_ERROR, VELOCITY, SignalChart, SignalCurve

Charts = Mapping[str, Mapping[str, SignalChart]]  # joint -> title -> chart

LIMIT = {"label": "limit", "color": PALE, "linewidth": 1.0, "linestyle": (0, (5.0, 2.0)), "zorder": 1}
DASHES = (3.0, 2.5)
# title -> keys of the limits that are drawn in it, and their signs
BOUNDS = {POSITION: (("lower", 1.0), ("upper", 1.0))} | {
    title: ((title, -1.0), (title, 1.0)) for title in (VELOCITY, EFFORT)
}
MISSING = {TRACKING_ERROR: "no reference"}  # in axes without curves; by default `not recorded`


def style_of(curve: SignalCurve) -> dict[str, Any]:
    """Of its line."""
    dashes = {"dashes": DASHES} if curve.dashed else {}
    return {"label": curve.label, "color": curve.color, "linewidth": curve.width, **dashes}


def columns_of(charts: Charts, signals: Mapping[str, Samples]) -> list[str]:
    """The titles with data; the third one is the velocity if no joint has a reference."""
    tracked = any(TRACKING_ERROR in own for own in charts.values())
    titles = (POSITION, EFFORT, TRACKING_ERROR if tracked else VELOCITY)
    return [title for title in titles if _has_data(title, charts, signals)]


def _has_data(title: str, charts: Charts, signals: Mapping[str, Samples]) -> bool:
    """Whether a column has curves; efforts that are all zero do not count."""
    found = [own[title] for own in charts.values() if title in own]
    return not all(is_flat(chart, signals) for chart in found) if title == EFFORT else bool(found)


def is_flat(chart: SignalChart, signals: Mapping[str, Samples]) -> bool:
    """Whether all curves are 0."""
    return all(is_zero(samples_of(curve, signals)) for curve in chart.curves)


def most_active(joints: Sequence[str], signals: Mapping[str, np.ndarray], count: int) -> list[str]:
    """The `count` joints that move most, in rad and m alike, in the order of `joints`; each dof of a joint with several
    counts as one."""

    def range_of(joint: str) -> float:
        position = signals.get(f"{joint}/position", np.zeros(1))
        with np.errstate(over="ignore", invalid="ignore"):  # in a diverged run
            return float(np.nan_to_num(np.ptp(position))) if len(position) else 0.0

    chosen = set(sorted(joints, key=range_of, reverse=True)[:count])
    return [joint for joint in joints if joint in chosen]
