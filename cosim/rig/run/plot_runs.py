"""The plot of several runs, one over the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import InputError
from cosim.rig.run.run import Run
from cosim.rig.run.signal_patterns import matching_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cosim.output.plot.curves import Samples

MOST_ROWS = 24


def plot_runs(runs: Mapping[str, Run], signals: Sequence[str] = (), file: str | Path | None = None) -> Figure:
    """Plot signals of several runs, a row for each signal and a colour for each run.

    runs: by the name that the legend shows; signals: names or patterns such as `*/position`, by default the position
    errors of the 8 joints that move most in the first run, or their positions where none has a reference, or the
    signals of a run without joints; a run may lack some of them. file: png, svg or pdf to write.
    Raises InputErrors for a signal that no run has, InputError for one with different units, for too many signals, and
    for a file that cannot be written.
    """
    from cosim.output.plot.signal_figure import OverlaidRun, draw_overlay
    from cosim.output.plot.style import save, styled

    units = _common_units(runs)
    if signals:
        chosen = [list(units)[k] for k in matching_columns(signals, list(units), lambda _: "plot")]
        samples = {name: run.chosen([signal for signal in chosen if signal in run]) for name, run in runs.items()}
    else:
        chosen, samples = _tracking(runs)
        units |= {_error_of(joint): units.get(f"{joint}/position", "") for run in runs.values() for joint in run.joints}
    if len(chosen) > MOST_ROWS:
        raise InputError(f"{len(chosen)} signals are too many for one plot; choose {MOST_ROWS} at most", "plot")
    drawn = [OverlaidRun(name, np.asarray(run.t), samples[name], run.gaps) for name, run in runs.items()]

    def draw() -> Figure:
        return draw_overlay(drawn, chosen, units)

    return styled(draw) if file is None else save(file, draw)


def _tracking(runs: Mapping[str, Run]) -> tuple[list[str], dict[str, Mapping[str, Samples]]]:
    """The errors or positions that are drawn by default, and all errors and positions of each run."""
    from cosim.output.plot.curves import samples_of
    from cosim.output.plot.joint_columns import most_active
    from cosim.output.plot.run_plot import MAX_JOINTS
    from cosim.output.plot.signal_figure import of_parts
    from cosim.output.signal_charts import TRACKING_ERROR, charts_of

    name, first = next(iter(runs.items()))
    if not first.joints:
        chosen = of_parts(first.signals)
        return chosen, {each: run.chosen([signal for signal in chosen if signal in run]) for each, run in runs.items()}
    samples: dict[str, Mapping[str, Samples]] = {}
    for name, run in runs.items():
        charts = charts_of(run.units)
        tracked = [charts[joint][TRACKING_ERROR] for joint in run.joints if TRACKING_ERROR in charts.get(joint, {})]
        curves = {chart.owner: chart.curves[0] for chart in tracked}
        positions = [f"{joint}/position" for joint in run.joints if f"{joint}/position" in run]
        needed = dict.fromkeys([*positions, *(signal for curve in curves.values() for signal in curve.signals)])
        values = run.chosen(list(needed))
        samples[name] = {**values, **{_error_of(joint): samples_of(curve, values) for joint, curve in curves.items()}}
    shown = most_active(first.joints, first.chosen([f"{joint}/position" for joint in first.joints]), MAX_JOINTS)
    errors = [_error_of(joint) for joint in shown if _error_of(joint) in samples[name]]
    return errors or [f"{joint}/position" for joint in shown], samples


def _error_of(joint: str) -> str:
    """The name of the row of its tracking error."""
    return f"{joint}/position_error"


def _common_units(runs: Mapping[str, Run]) -> dict[str, str]:
    """Of all signals. Raises InputError for a signal that has another unit in another run."""
    units: dict[str, str] = {}
    for name, run in runs.items():
        for signal, unit in run.units.items():
            if units.setdefault(signal, unit) != unit:
                what = f"'{signal}' is in {unit}, in the runs before in {units[signal]}; plot runs of one rig"
                raise InputError(what, name)
    return units
