"""Plots a run into a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cosim.errors import InputError
from cosim.output.plot.event_markers import PlotEvents, events_within
from cosim.output.plot.glyphs import drawable
from cosim.output.plot.joint_columns import columns_of, position_errors
from cosim.output.plot.mechanism_panels import panels_of
from cosim.output.plot.run_figure import RunFigureContent, draw_run
from cosim.output.plot.style import check_format, save

MAX_JOINTS = 8


def plot_run(
    path: str | Path,
    t: np.ndarray,
    signals: Mapping[str, np.ndarray],
    joints: Sequence[str],
    title: str,
    units: Mapping[str, str],
    note: str = "",
    description: str = "",
    events: PlotEvents = (),
) -> None:
    """Plot a run into a png, svg or pdf file, by the suffix of `path`.

    t (k,) in s; signals: `<joint>/<interface>` -> (k,), in the unit that `units` gives for the same name.
    `title` and, smaller, `description` are above the legend, in as many lines as they need.
    events: (time in s, name); a dotted line in all axes at each of them, and names above the first row where they fit.
    The third column is the tracking error, or the velocity when no joint has a reference. Signals that were not
    recorded and efforts that are all zero are left out. Of more than 8 joints the first 8 are drawn, and the footer
    with `note` states it.
    When no joint has a reference, a row below shows the energies `energy/…` and the magnitudes of the reactions
    of constraints, the parts `<name>` with a signal `<name>/violation` or `<name>/slip`, of 6 at most.

    Raises InputError for another suffix, a path that cannot be written, or signals with nothing to draw.
    """
    check_format(path)
    title, description, note = map(drawable, (title, description, note))
    joints = [drawable(name) for name in joints]
    signals = {drawable(name): values for name, values in signals.items()}
    units = {drawable(name): unit for name, unit in units.items()}
    events = [(time, drawable(name)) for time, name in events]
    shown = joints[:MAX_JOINTS]
    panels = panels_of(signals, units)
    signals = {**signals, **position_errors(shown, signals)}
    units = {**units, **{f"{joint}/position_error": units.get(f"{joint}/position", "") for joint in shown}}
    columns = columns_of(shown, signals)
    if not columns:
        raise InputError("nothing to plot; no joint has a position, velocity or effort", str(path))
    few = f"the first {len(shown)} of {len(joints)} joints" if len(shown) < len(joints) else ""
    note = "  ·  ".join(filter(None, [note, few, *(panel.note for panel in panels)]))
    content = RunFigureContent(t, signals, units, shown, columns, panels, events_within(events, t))
    save(path, lambda: draw_run(content, (title, description, note)))
