"""The result of a run: what it recorded, its summary, and its forms in other libraries."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.core.errors import InputError, RunError, escaped, near_names
from cosim.rig.run.recorded_run import RecordedRun
from cosim.rig.run.run_file import read_recorded, read_run, save_run
from cosim.rig.run.run_metadata import check_names
from cosim.rig.run.run_warnings import warnings_of
from cosim.rig.run.summary import RunSummary, speed_text, summary_of

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class Run(RecordedRun):
    """Signals of a finished or stopped run: `run.t` in s, `run["elbow_joint/position"]`, `run.summary`.

    It can be pickled, and saved by `save`.
    """

    @cached_property
    def summary(self) -> RunSummary:
        """JSON-ready: outcome, tracking and effort per joint, energy balance, speed, engine."""
        return summary_of(self)

    @cached_property
    def warnings(self) -> list[str]:
        """What makes the results doubtful, and what failed beside the run; a sentence each."""
        return warnings_of(self, self.summary)

    def __repr__(self) -> str:
        outcome = self.fault or "finished"
        return f"<Run {self.rig.name}: {self.t[-1]:.6g} s, {len(self.signals)} signals, {outcome}>"

    def _repr_html_(self) -> str:
        """The summary and the plot, for notebooks."""
        return html_of(self, self.summary, self.warnings)

    def to_pandas(self) -> pandas.DataFrame:
        """A column per signal, indexed by `t` [s], with the units in `attrs["units"]`. Raises ImportError without
        pandas."""
        return data_frame_of(self)

    def to_xarray(self) -> xarray.Dataset:
        """A variable per signal over the coordinate `t` [s], each with its `units`. Raises ImportError without
        xarray."""
        return dataset_of(self)

    def plot(
        self, signals: str | Sequence[str] = (), joints: str | Sequence[str] = (), file: str | Path | None = None
    ) -> Figure:
        """Plot the run: rows of joints (all, or these), or these signals; one name or several. file: png, svg or pdf to
        write.

        Raises InputError for signals and joints that do not exist, and for a file that cannot be written.
        """
        return figure_of(self, self.summary, signals, joints, file)

    def save(self, path: str | Path) -> None:
        """Write everything to a file (`.npz`), for `cosim.load_run`. Raises InputError if it cannot be written."""
        save_run(self, path)


def load_run(path: str | Path) -> Run:
    """A run that `Run.save` wrote, or of a recording (MCAP), which has neither timing nor counts of alarms; in memory.

    Raises InputError for a file that is missing or none of these, and for a recording without a tick.
    """
    return _run_of(read_run(path), path)


def open_recording(path: str | Path) -> Run:
    """The run of a recording (MCAP) of any length: its signals stay in the file, and are read where they are used.

    path: the file; files `F.1.mcap`, … that continue `F.mcap` are a part of it. A pattern such as `F*.mcap` names the
    files of one run. Every chunk is read once, about 2 s per GB, to find those that are damaged. Of a recording that
    was cut off, is damaged or lacks a file the run has all intact chunks; its fault and `lacks` state what is missing,
    and `gaps` the times [s] between its ticks where that is.
    Raises InputError for what is no recording of this version, or has no tick.
    """
    return _run_of(read_recorded(path), path)


def _run_of(fields: dict[str, Any], path: str | Path) -> Run:
    """With its events in one line each. Raises InputError for names that do not print."""
    check_names(fields["rig"], str(path))
    run = Run(**fields)
    events = tuple(event._replace(name=escaped(event.name)) for event in run.events)
    return replace(run, fault=escaped(run.fault), events=events)


class StoppedRun(RunError):
    """A run stopped by the guard, a failed part or Ctrl-C; `run` holds everything up to then."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.fault, run.rig.path)
        self.run = run

    def __reduce__(self) -> tuple[type[StoppedRun], tuple[Run]]:
        return StoppedRun, (self.run,)


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


def html_of(run: RecordedRun, summary: RunSummary, doubtful: Sequence[str] = ()) -> str:
    """The summary as a table of the joints, with the warnings, and the plot of the run as a picture."""
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
    doubts = "".join(f"<br><b>warning</b> {html.escape(line)}" for line in doubtful)
    return (
        f"<b>{html.escape(run.rig.name)}</b> {html.escape(run.rig.description)}<br>{outcome}{doubts}"
        f"<table><tr>{head}</tr>{''.join(rows)}</table><img src='data:image/png;base64,{source}'>"
    )


def _cell(value: str | float | None) -> str:
    return html.escape(value) if isinstance(value, str) else "–" if value is None else f"{value:.4g}"
