"""The plot of a run: rows of its joints, or of chosen signals, and cells for what has a single curve or no row of its
own: joints that move without effort and reference, such as modes of elastic links, and the deflections of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import InputError
from cosim.output.palette import BLUE, RUST, VIOLET
from cosim.output.plot.curves import Samples, interruptions, is_zero
from cosim.output.plot.event_markers import PlotEvents, PlotMarks, events_within
from cosim.output.plot.joint_columns import Charts, columns_of, is_flat, most_active, style_of
from cosim.output.plot.mechanism_panels import Panel, PanelCurve, contact_panels, panels_of
from cosim.output.plot.run_figure import RunFigureContent, draw_run
from cosim.output.plot.signal_figure import draw_signals, of_parts
from cosim.output.plot.style import check_format, drawable, save, styled
from cosim.output.signal_charts import EFFORT, POSITION, TRACKING_ERROR, charts_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_JOINTS = 8

DEFLECTION = "x/deflection"  # ends the name of the first of three signals of a frame
AXES = {"x": VIOLET, "y": BLUE, "z": RUST}


@dataclass(frozen=True)
class RunPlot:
    """What the plot of a run shows.

    t (k,) in s; signals: `<joint>/<interface>` -> (k,), in the unit that `units` gives for the same name.
    `title` and, smaller, `description` are above the legend, in as many lines as they need; `note` is below.
    events: (time in s, name); a dotted line in all axes at each of them, and names above the first row where they fit.
    limits: joint -> bound by key, drawn where the curves come near; stopped: the end is a stop; late: times [s] of
    missed deadlines; gaps: (begin, end) [s] without ticks, where the curves are interrupted.

    With `chosen_signals` a row for each of their units, and so of the signals of a run without joints. Otherwise a row
    for each of `chosen_joints`, by default of all; of more than 8 joints (dofs, where a joint has several) those 8 are
    drawn that move most, and the footer states it. The third column is the tracking error, or the velocity when no
    joint has a reference. Signals that were not recorded and efforts that are all zero are left out. Joints that move
    without effort and reference, beside others that do not, have a smaller cell each below the rows, and so have the
    deflections of frames on elastic links. When no joint has a reference, a row below shows the energies `energy/…` and
    the magnitudes of the reactions of constraints, the parts `<name>` with a signal `<name>/violation` or
    `<name>/slip`, of 6 at most.
    """

    t: np.ndarray
    signals: Mapping[str, np.ndarray]
    joints: Sequence[str]
    title: str
    units: Mapping[str, str]
    note: str = ""
    description: str = ""
    events: PlotEvents = ()
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    chosen_joints: Sequence[str] = ()
    chosen_signals: Sequence[str] = ()
    stopped: bool = False
    late: Sequence[float] = ()
    gaps: Sequence[tuple[float, float]] = ()

    def save(self, path: str | Path) -> Figure:
        """Plot into a png, svg or pdf file, by the suffix of `path`.

        Raises InputError for another suffix, a path that cannot be written, or signals with nothing to draw.
        """
        check_format(path)
        return save(path, lambda: self._figure(str(path)))

    def draw(self) -> Figure:
        """Raises InputError for signals with nothing to draw."""
        return styled(lambda: self._figure("plot"))

    def _figure(self, place: str) -> Figure:
        title, description, note = map(drawable, (self.title, self.description, self.note))
        signals = {drawable(name): values for name, values in self.signals.items()}
        units = {drawable(name): unit for name, unit in self.units.items()}
        events = events_within([(time, drawable(name)) for time, name in self.events], self.t)
        marks = PlotMarks(events, float(self.t[-1]) if self.stopped else None, self.late)
        breaks = interruptions(self.t, self.gaps)
        chosen = self.chosen_signals if self.chosen_signals or self.joints else of_parts(self.signals)
        if chosen := list(map(drawable, chosen)):
            return draw_signals(self.t, signals, chosen, units, marks, (title, description, note), breaks)
        shown = list(self.chosen_joints) or most_active(self.joints, self.signals, MAX_JOINTS)
        joints = [drawable(name) for name in shown]
        limits = {drawable(name): bounds for name, bounds in self.limits.items()}
        panels = panels_of(signals, units)
        known = charts_of({name: units.get(name, "") for name in signals})
        charts = {joint: known.get(joint, {}) for joint in joints}
        columns = columns_of(charts, signals)
        if not columns:
            raise InputError("nothing to plot; no joint has a position, velocity or effort", place)
        few = len(shown) < len(self.joints) and not self.chosen_joints
        left_out = f"the {len(shown)} joints of {len(self.joints)} that move most" if few else ""
        of_contacts = contact_panels(signals)
        note = "  ·  ".join(filter(None, [note, left_out, *(panel.note for panel in (*panels, *of_contacts))]))
        rows, cells = rows_and_cells(charts, columns, signals, units)
        cells += of_contacts
        content = RunFigureContent(self.t, signals, units, rows, columns, cells, panels, marks, limits, breaks)
        return draw_run(content, (title, description, note))


def rows_and_cells(
    charts: Charts, columns: Sequence[str], signals: Mapping[str, Samples], units: Mapping[str, str]
) -> tuple[Charts, list[Panel]]:
    """(charts of joints with rows, cells of the others and of frames that deflect). At least one joint has a row."""
    passive = [joint for joint in charts if _is_passive(joint, charts, columns, signals)]
    passive = passive if len(passive) < len(charts) else []
    cells = [
        Panel(joint, units.get(name, ""), [PanelCurve(curve.label, signals[name], style_of(curve))])
        for joint in passive
        for curve in charts[joint][POSITION].curves[-1:]  # the actual value, which is in front
        for name in curve.signals
    ]
    frames = [name.removesuffix(DEFLECTION) for name in signals if name.endswith("." + DEFLECTION)]
    rows = {joint: own for joint, own in charts.items() if joint not in passive}
    return rows, cells + [_deflection(frame, signals, units) for frame in frames]


def _is_passive(joint: str, charts: Charts, columns: Sequence[str], signals: Mapping[str, Samples]) -> bool:
    """Whether a joint moves without a reference, beside others that have one, under efforts that are all zero."""
    own = charts[joint]
    moves = POSITION in own and TRACKING_ERROR in columns and TRACKING_ERROR not in own
    return moves and EFFORT in own and is_flat(own[EFFORT], signals)


def _deflection(frame: str, signals: Mapping[str, Samples], units: Mapping[str, str]) -> Panel:
    """frame: its name and a dot."""
    names = {axis: f"{frame}{axis}/deflection" for axis in AXES}
    curves = [
        PanelCurve(axis, signals[name], {"color": AXES[axis], "linewidth": 1.5})
        for axis, name in names.items()
        if name in signals and not is_zero(signals[name])
    ]
    return Panel(f"deflection of {frame.removesuffix('.')}", units.get(names["x"], "m"), curves)
