"""Common to all commands: durations, checks of output files, progress, the width of a pipe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cosim.errors import InputError
from cosim.output.plot import check_format
from cosim.units import parse_quantity

# columns of a table that is not written to a terminal
PIPE_WIDTH = 110


def duration_of(text: str) -> float:
    """Seconds of the option --duration. Raises InputError."""
    try:
        return parse_quantity(text, "s")
    except ValueError as error:
        raise InputError(str(error), "--duration") from None


def check_targets(
    plots: Sequence[Path], json: Path | None, record: Path | None = None, rig: Path | None = None
) -> None:
    """Refuse output files that cannot be written, or that would overwrite the rig or each other, before the run."""
    for plot in plots:
        check_format(plot)
    targets = {} if rig is None else {rig.resolve(): "the rig itself"}
    for path, option in (*((plot, "--plot") for plot in plots), (json, "--json"), (record, "--record")):
        if path is None or (str(path) == "-" and option != "--record"):
            continue
        if str(path) == "-":
            raise InputError("a recording cannot go to the terminal; name a file", option)
        if path.resolve() in targets:
            raise InputError(f"{path}: is {targets[path.resolve()]}; choose another file", option)
        targets[path.resolve()] = f"the file of {option}"
        if option == "--record":
            continue  # the recorder opens its file before the run
        folder = path.parent
        if not folder.is_dir():
            raise InputError(f"{path}: there is no folder '{folder}'; create it or choose another", option)
        if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
            raise InputError(f"{path}: cannot be written; choose another file", option)


@contextmanager
def progress(name: str) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on a terminal, nothing in a pipe; it disappears at the end of the run."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = TextColumn(f"running {name}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda fraction: bar.update(task, completed=fraction)
