"""The columns of the plot of a run: the quantities of a joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.output.plot.curves import DerivedSignal, Samples, is_zero
from cosim.output.plot.style import BLUE, INK, PALE, ROSE, RUST, VIOLET

ACTUAL = {"label": "actual", "color": BLUE, "linewidth": 1.8, "zorder": 2}
BEFORE_DRIVE = "commanded, gains included, before friction and losses"
COMMANDED = {"label": BEFORE_DRIVE, "color": RUST, "linewidth": 1.0, "dashes": (3, 2.5), "zorder": 3}
HOLDING = {"label": "brake, latch or stop", "color": ROSE, "linewidth": 1.0, "zorder": 1}
LOAD = {"label": "load motor", "color": VIOLET, "linewidth": 1.0, "zorder": 2}
REFERENCE = {"label": "reference", "color": INK, "linewidth": 1.0, "dashes": (4, 2.5), "zorder": 4}
ERROR = {"label": "reference − actual", "color": ROSE, "linewidth": 1.2, "zorder": 2}
LIMIT = {"label": "limit", "color": PALE, "linewidth": 1.0, "linestyle": (0, (5.0, 2.0)), "zorder": 1}
SYMMETRIC = {key: ((key, -1.0), (key, 1.0)) for key in ("velocity", "effort")}


@dataclass(frozen=True)
class PlotColumn:
    """A column of axes: its title and, by interface, the styles of its curves; the first curve gives the unit."""

    title: str
    curves: dict[str, dict[str, Any]]
    bounds: tuple[tuple[str, float], ...] = ()  # keys of limits that are drawn, and their signs
    missing: str = "not recorded"  # the text in axes without curves

    def of(self, joint: str, signals: Mapping[str, Samples]) -> list[tuple[str, dict[str, Any]]]:
        """(signal, style) of the recorded curves of a joint."""
        return [(f"{joint}/{i}", style) for i, style in self.curves.items() if f"{joint}/{i}" in signals]


POSITION = PlotColumn(
    "position", {"position": ACTUAL, "reference_position": REFERENCE}, (("lower", 1.0), ("upper", 1.0))
)
EFFORT = PlotColumn(
    "effort",
    {"effort": ACTUAL, "command_effort": COMMANDED, "holding_effort": HOLDING, "load_effort": LOAD},
    SYMMETRIC["effort"],
)
TRACKING = PlotColumn("tracking error", {"position_error": ERROR}, missing="no reference")
VELOCITY = PlotColumn("velocity", {"velocity": ACTUAL, "reference_velocity": REFERENCE}, SYMMETRIC["velocity"])


def columns_of(joints: Sequence[str], signals: Mapping[str, Samples]) -> list[PlotColumn]:
    """The columns with data; the third one is the velocity if no joint has a reference."""
    tracked = any(TRACKING.of(joint, signals) for joint in joints)
    return [c for c in (POSITION, EFFORT, TRACKING if tracked else VELOCITY) if _has_data(c, joints, signals)]


def _has_data(column: PlotColumn, joints: Sequence[str], signals: Mapping[str, Samples]) -> bool:
    """Whether a column has curves; efforts that are all zero do not count."""
    curves = [signals[signal] for joint in joints for signal, _ in column.of(joint, signals)]
    return not all(map(is_zero, curves)) if column is EFFORT else bool(curves)


def most_active(joints: Sequence[str], signals: Mapping[str, np.ndarray], count: int) -> list[str]:
    """The `count` joints that move most, in rad and m alike, in the order of `joints`; each dof of a joint with several
    counts as one."""

    def range_of(joint: str) -> float:
        position = signals.get(f"{joint}/position", np.zeros(1))
        with np.errstate(over="ignore", invalid="ignore"):  # in a diverged run
            return float(np.nan_to_num(np.ptp(position))) if len(position) else 0.0

    chosen = set(sorted(joints, key=range_of, reverse=True)[:count])
    return [joint for joint in joints if joint in chosen]


def position_errors(joints: Sequence[str], signals: Mapping[str, Samples]) -> dict[str, Samples]:
    """`<joint>/position_error` = reference − position, of the joints that have both; of real joints as measured."""
    measured = {f"{j}/position_error": signals.get(f"{j}/measured_error") for j in joints}
    pairs = {j: (signals.get(f"{j}/reference_position"), signals.get(f"{j}/position")) for j in joints}
    return {
        f"{j}/position_error": DerivedSignal(np.subtract, r, q)
        for j, (r, q) in pairs.items()
        if r is not None and q is not None
    } | {name: error for name, error in measured.items() if error is not None}
