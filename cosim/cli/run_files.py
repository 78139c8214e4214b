"""The files of runs on the command line: plots, the summary as JSON and the recording of a run, and pictures of runs
that are over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.core.errors import CosimError, InputError, RunError, near_names
from cosim.output.console import PICTURES
from cosim.output.output_files import check_format, check_output, identity, write_file
from cosim.rig.run.plot_runs import plot_runs
from cosim.rig.run.run import Run, load_run, open_recording
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.signal_patterns import matching_columns

if TYPE_CHECKING:
    from cosim.rig.rig import Rig

# end of the file name, without suffix, of a plot of the timing
TIMING = "timing"

RUNS = (".mcap", ".npz")


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
    from cosim.core.recordings.index import recordings_of
    from cosim.core.recordings.reader import RecordedSamples

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


def plot_recordings(words: Sequence[str], output: Path | None) -> None:
    """Draw the run of one file, or signals of the runs of several.

    words: files of runs, then signals. Raises InputError for a mistake in them.
    """
    files = [word for word in words if word.lower().endswith(RUNS)]
    signals = [word for word in words if not word.lower().endswith(RUNS)]
    if not files:
        raise InputError("there is no run to draw; give a recording (.mcap) or a file of run.save (.npz)", "plot")
    if len(set(files)) < len(files):
        twice = next(file for file in files if files.count(file) > 1)
        raise InputError(f"{twice} is given twice; give each run once", "plot")
    path = Path(f"{Path(files[0]).name.partition('.')[0]}.png") if output is None else output
    check_format(path)
    check_output(path, "-o", PICTURES, {identity(Path(file)): "a run that is drawn" for file in files})
    runs = {name: _run(file) for name, file in zip(_names(files), files, strict=True)}
    if len(runs) == 1:
        (run,) = runs.values()
        run.plot([run.signals[k] for k in matching_columns(signals, run.signals, _place)] if signals else (), file=path)
    else:
        plot_runs(runs, signals, path)
    print(f"wrote    {path}")
    for file, run in zip(files, runs.values(), strict=True):
        if run.fault:  # also of a recording that was cut off
            print(f"warning  {file}: {run.fault}")


def _run(file: str) -> Run:
    return open_recording(file) if file.lower().endswith(".mcap") else load_run(file)


def _names(files: Sequence[str]) -> list[str]:
    """Of the files, without their folders where they differ without."""
    stems = [Path(file).stem for file in files]
    return stems if len(set(stems)) == len(stems) else list(files)


def _place(_number: int) -> str:
    return "plot"
