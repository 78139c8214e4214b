"""The command `cosim plot`: pictures of runs that are over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.core.errors import InputError
from cosim.output.console import PICTURES
from cosim.output.output_files import check_format, check_output, identity
from cosim.rig.run.plot_runs import plot_runs
from cosim.rig.run.run import Run, load_run, open_recording
from cosim.rig.run.signal_patterns import matching_columns

RUNS = (".mcap", ".npz")


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
