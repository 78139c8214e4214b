"""The files that a run on the command line writes: plots, the summary as JSON, the recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.cli.run_summary import speed_text
from cosim.errors import InputError
from cosim.rig.run import Run, signal_units

if TYPE_CHECKING:
    from cosim.rig import Rig

# end of the file name, without suffix, of a plot of the timing
TIMING = "timing"


def check_plots(plots: Sequence[Path], rig: Rig) -> None:
    """Raise InputError for a plot of the timing of a run that is not in real time."""
    for plot in plots:
        if plot.stem.endswith(TIMING) and rig.spec.schedule.pacing is None:
            what = "a plot of the timing needs a run in real time; pass --realtime or choose another file name"
            raise InputError(f"{plot}: {what}", "--plot")


def write_files(run: Run, plots: Sequence[Path], json: Path | None, record: Path | None) -> None:
    """Write the requested files and print their names."""
    written = []
    for plot in plots:
        _draw(run, plot)
        written.append(f"plot {plot}")
    if json is not None:
        import orjson

        text = orjson.dumps(run.summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if str(json) == "-":
            print(text.decode(), end="")
            return
        json.write_bytes(text)
        written.append(f"summary {json}")
    if record is not None and "cannot write the recording" not in run.fault:
        written.append(f"recording {record}")
    if written:
        print("wrote    " + ", ".join(written))


def _draw(run: Run, plot: Path) -> None:
    from cosim.output.plot import plot_run
    from cosim.output.plot.timing_plot import plot_timing

    spec = run.rig.spec
    if run.timing is not None and plot.stem.endswith(TIMING):
        plot_timing(plot, run.timing, spec.name, run.fault or spec.description)
        return
    signals = {name: run[name] for name in run.rig.tick_model.signals.names}
    energy = run.summary["energy"]
    residual = f"; energy residual {energy['residual_relative']:.1e}" if energy else ""
    subtitle = run.fault or f"{speed_text(run.summary)}{residual}"
    events = [(event.t, event.name) for event in run.events]
    units = signal_units(run.rig)
    plot_run(plot, run.t, signals, run.rig.joints, spec.name, units, subtitle, spec.description, events)
