"""The files that a run on the command line writes: plots, the summary as JSON, the recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.core.errors import CosimError, InputError, RunError, near_names
from cosim.output.output_files import write_file
from cosim.rig.run.run import Run
from cosim.rig.run.run_metadata import run_metadata_of

if TYPE_CHECKING:
    from cosim.rig.rig import Rig

# end of the file name, without suffix, of a plot of the timing
TIMING = "timing"


def check_plots(plots: Sequence[str], rig: Rig, signals: Sequence[str] = (), joints: Sequence[str] = ()) -> None:
    """Raise InputError for a plot of the timing of a run that is not in real time, and for signals and joints to plot
    that the rig does not have, or without a plot."""
    chosen = (("--plot-signals", signals, tuple(run_metadata_of(rig).units)), ("--plot-joints", joints, rig.joints))
    for option, names, known in chosen:
        if names and not plots:
            raise InputError("there is no plot to choose them for; pass --plot FILE too", option)
        for name in (name for name in names if name not in known):
            what = option.removeprefix("--plot-").removesuffix("s")
            raise InputError(f"there is no {what} '{name}'{near_names(name, known)}", option)
    if signals and joints:
        raise InputError("give --plot-signals or --plot-joints, not both", "--plot")
    for plot in plots:
        if Path(plot).stem.endswith(TIMING) and rig.run_spec.schedule.pacing is None:
            what = "a plot of the timing needs a run in real time; pass --realtime or choose another file name"
            raise InputError(f"{plot}: {what}", "--plot")


def write_files(
    run: Run,
    plots: Sequence[str],
    json: str | None,
    record: str | None,
    signals: Sequence[str] = (),
    joints: Sequence[str] = (),
) -> list[RunError]:
    """Write the requested files and print the names of those that are written. Returns what failed, a file each."""
    writers: dict[str, Callable[[], None]] = {
        f"plot {plot}": partial(_draw, run, Path(plot), signals, joints) for plot in plots
    }
    if json not in (None, "-"):
        writers[f"summary {json}"] = lambda: write_file(json, _summary(run), "summary")
    from cosim.output.recorder import MOVED

    written, failures = [], []
    for name, write in writers.items():
        try:
            write()
            written.append(name)
        except CosimError as error:  # the name was checked before the run
            failures.append(RunError(error.what, error.place))
    if json == "-":
        print(_summary(run).decode(), end="")
        return failures
    if record is not None and MOVED not in run.fault and (recorded := _recorded(record)):
        written.append(f"recording {recorded}")
    if written:
        print("wrote    " + ", ".join(written))
    return failures


def _recorded(record: str) -> str:
    """The files of a recording, as they are found, and up to where they hold the run if they do not hold all of it;
    empty where they hold nothing of it."""
    from cosim.output.recording_index import recordings_of
    from cosim.output.recording_reader import RecordedSamples

    try:
        indexes = recordings_of(record)
        files = record if len(indexes) == 1 else f"{record} … {indexes[-1].path} ({len(indexes)} files)"
        if indexes[-1].complete and not indexes[-1].ended:
            return files
        samples = RecordedSamples(indexes)
    except CosimError:  # it was taken away, or it ended before its start was written
        return ""
    return f"{files}, only {samples.count:,} ticks up to {samples.end}" if samples.count else ""


def _summary(run: Run) -> bytes:
    import orjson

    return orjson.dumps(run.summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _draw(run: Run, plot: Path, signals: Sequence[str], joints: Sequence[str]) -> None:
    from cosim.output.plot.timing_plot import plot_timing

    if run.timing is not None and plot.stem.endswith(TIMING):
        plot_timing(plot, run.timing, run.rig.name, run.fault or run.rig.description)
        return
    run.plot(signals, joints, plot)
