"""A run in the forms of other libraries: figure, data frame, data set, page of a notebook."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import InputError, near_names
from cosim.rig.run.recorded_run import RecordedRun
from cosim.rig.run.summary import RunSummary, speed_text

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure


def data_frame_of(run: RecordedRun) -> pandas.DataFrame:
    """See `Run.to_pandas`."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas needs pandas; run 'pip install pandas'") from None
    values, index = np.asarray(run.values), pandas.Index(np.asarray(run.t), name="t")
    frame = pandas.DataFrame(values, index=index, columns=list(run.signals), copy=False)
    frame.attrs |= {"rig": run.rig.name, "units": {"t": "s", **run.units}}
    return frame


def dataset_of(run: RecordedRun) -> xarray.Dataset:
    """See `Run.to_xarray`."""
    try:
        import xarray
    except ImportError:
        raise ImportError("to_xarray needs xarray; run 'pip install xarray'") from None
    values, t = np.asarray(run.values), np.asarray(run.t)
    variables = {name: ("t", values[:, k], {"units": unit}) for k, (name, unit) in enumerate(run.units.items())}
    return xarray.Dataset(variables, {"t": ("t", t, {"units": "s"})}, {"rig": run.rig.name})


def figure_of(
    run: RecordedRun,
    summary: RunSummary,
    signals: str | Sequence[str],
    joints: str | Sequence[str],
    file: str | Path | None,
) -> Figure:
    """See `Run.plot`."""
    from cosim.output.plot.run_plot import RunPlot

    signals, joints = ([names] if isinstance(names, str) else names for names in (signals, joints))
    for names, known, what in ((signals, run.signals, "signal"), (joints, run.joints, "joint")):
        for name in (name for name in names if name not in known):
            raise InputError(f"there is no {what} '{name}'{near_names(name, known)}", "plot")
    if signals and joints:
        raise InputError("give signals or joints, not both", "plot")
    plot = RunPlot(
        t=np.asarray(run.t),
        signals=run.chosen(signals or run.signals),
        joints=run.joints,
        title=run.rig.name,
        units=run.units,
        note=run.fault or _note(summary),
        description=run.rig.description,
        events=[(event.t, event.name) for event in run.events],
        limits=run.rig.limits,
        chosen_joints=tuple(joints),
        chosen_signals=tuple(signals),
        stopped=bool(run.fault),
        late=_late_ticks(run),
        gaps=run.gaps,
    )
    return plot.draw() if file is None else plot.save(file)


def _note(summary: RunSummary) -> str:
    """Settings, speed and energy residual of a run, in one line."""
    energy = summary["energy"]
    return speed_text(summary) + (f"; energy residual {energy['residual_relative']:.1e}" if energy else "")


def _late_ticks(run: RecordedRun) -> list[float]:
    """Times [s] of the missed deadlines of a real-time run."""
    return [] if run.timing is None else [float(run.timing.time_of(miss.number)) for miss in run.timing.misses()]


def html_of(run: RecordedRun, summary: RunSummary) -> str:
    """The summary as a table of the joints, and the plot of the run as a picture."""
    picture = io.BytesIO()
    figure_of(run, summary, (), (), None).savefig(picture, format="png")
    columns = ("role", "error_rms", "error_max", "effort_rms", "effort_peak")
    rows = [
        f"<tr><td>{html.escape(name)}</td>" + "".join(f"<td>{_cell(joint[key])}</td>" for key in columns) + "</tr>"
        for name, joint in summary["joints"].items()
    ]
    head = "".join(f"<th>{column.replace('_', ' ')}</th>" for column in ("joint", *columns))
    outcome = html.escape(f"{summary['outcome']}; {_note(summary)}")
    source = base64.b64encode(picture.getvalue()).decode()
    return (
        f"<b>{html.escape(run.rig.name)}</b> {html.escape(run.rig.description)}<br>{outcome}"
        f"<table><tr>{head}</tr>{''.join(rows)}</table><img src='data:image/png;base64,{source}'>"
    )


def _cell(value: str | float | None) -> str:
    return html.escape(value) if isinstance(value, str) else "–" if value is None else f"{value:.4g}"
