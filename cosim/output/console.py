"""What every command shares: durations, output files checked before the work, progress, the width of a pipe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.errors import InputError
from cosim.output.plot import check_format
from cosim.units import parse_quantity

if TYPE_CHECKING:
    pass

# columns of a table where no terminal says how wide it is
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
    taken = {} if rig is None else {rig.resolve(): "the rig itself"}
    for path, option in (*((plot, "--plot") for plot in plots), (json, "--json"), (record, "--record")):
        if path is None or (str(path) == "-" and option != "--record"):
            continue
        if str(path) == "-":
            raise InputError("a recording cannot go to the terminal; name a file", option)
        if path.resolve() in taken:
            raise InputError(f"{path}: is {taken[path.resolve()]}; choose another file", option)
        taken[path.resolve()] = f"the file of {option}"
        if option == "--record":
            continue  # the recorder opens its file before the run
        folder = path.parent
        if not folder.is_dir():
            raise InputError(f"{path}: there is no folder '{folder}'; create it or choose another", option)
        if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
            raise InputError(f"{path}: cannot be written; choose another file", option)


@contextmanager
def progress(name: str) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on a terminal, nothing in a pipe; it vanishes when the run is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = TextColumn(f"running {name}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda share: bar.update(task, completed=share)
