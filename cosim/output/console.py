"""Common to all commands: quantities, errors of options, checks of output files, reports, progress and status lines."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType

from cosim.core.errors import InputError, InputErrors, SectionError, escaped, shortened
from cosim.core.units import parse_quantity
from cosim.output.output_files import FORMATS, RECORDING, check_format, check_output, identity
from cosim.output.plain_text import direct
from cosim.output.run_status import RunStatus, status_line

# columns of a table that is not written to a terminal
PIPE_WIDTH = 110
PATIENCE = 1.0  # s before a terminal shows that something takes its time
SHORTEST_TIME, LONGEST_TIME = 1e-6, 1e9  # s; other times are typing errors
WORDS = "1 us to 1e9 s"
PICTURES = tuple(f".{form}" for form in FORMATS)
SUFFIXES = {"--plot": PICTURES, "--json": (".json",), "--record": RECORDING}  # of outputs

SAME_NAMES: Mapping[str, str] = MappingProxyType({})


def quantity_of(text: str, unit: str, option: str, bounds: tuple[float, float], words: str) -> float:
    """The SI value of an option within bounds; words: the valid values in the message. Raises InputError."""
    try:
        value = parse_quantity(text, unit)
    except ValueError as error:
        raise InputError(str(error), option) from None
    if not bounds[0] <= value <= bounds[1]:
        raise InputError(f"expected {words}, got '{shortened(text)}'", option)
    return value


def duration_of(text: str, shortest: float = SHORTEST_TIME, longest: float = LONGEST_TIME, words: str = WORDS) -> float:
    """Seconds of the option --duration; words: the valid times in the message. Raises InputError."""
    return quantity_of(text, "s", "--duration", (shortest, longest), words)


def check_targets(
    plots: Sequence[str | Path],
    json: str | Path | None,
    record: str | Path | None = None,
    rig: str | Path | None = None,
) -> None:
    """Refuse output files that cannot be written or are of another kind, and those that would overwrite the rig or each
    other, before the run; see `check_output`.

    Messages have the names as typed. Raises InputError.
    """
    taken = {} if rig is None else {identity(Path(rig)): "the rig itself"}
    for given, option in _targets(plots, json, record):
        if option == "--plot" and str(given) not in ("", "-"):
            check_format(given, option)
        check_output(given, option, SUFFIXES[option], taken, regular=option == "--record")
        taken[identity(Path(given))] = f"the file of {option}"


def check_inputs(
    inputs: Mapping[Path, str],
    plots: Sequence[str | Path] = (),
    json: str | Path | None = None,
    record: str | Path | None = None,
) -> None:
    """Refuse output files that are inputs of a rig. inputs: file -> its part of the rig. Raises InputError."""
    for given, option in _targets(plots, json, record):
        refuse_inputs(inputs, given, option)


def check_files(inputs: Mapping[Path, str], targets: Mapping[str, str | Path | None]) -> None:
    """The same for outputs by their options. Raises InputError."""
    for option, given in targets.items():
        if given is not None:
            refuse_inputs(inputs, given, option)


def refuse_inputs(inputs: Mapping[Path, str], given: str | Path, option: str) -> None:
    """Raises InputError where the output is an input of a rig."""
    known = {identity(path): part for path, part in inputs.items()}
    if part := known.get(identity(Path(given))):
        raise InputError(f"{given}: is {part} of the rig; choose another file", option)


def _targets(
    plots: Sequence[str | Path], json: str | Path | None, record: str | Path | None
) -> Iterator[tuple[str | Path, str]]:
    """(the name, its option) of the outputs that are files."""
    for given, option in (*((plot, "--plot") for plot in plots), (json, "--json"), (record, "--record")):
        if given is not None and (str(given) != "-" or option != "--json"):
            yield given, option


@contextmanager
def progress(name: str) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on a terminal, nothing in a pipe; it appears with the first fraction and disappears at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    title = TextColumn(escaped(f"running {name}"), markup=False)
    columns = title, BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    bar = Progress(*columns, console=Console(file=direct(sys.stderr)), transient=True)
    task = bar.add_task(name, total=1.0)

    def show(fraction: float) -> None:
        bar.start()
        bar.update(task, completed=fraction)

    try:
        yield show
    finally:
        bar.stop()


@contextmanager
def busy(what: str) -> Iterator[Callable[[], None]]:
    """After PATIENCE a line on the terminal with the time so far, none in a pipe. Yields what ends it early."""
    stop, start = threading.Event(), time.monotonic()

    def show() -> None:
        wait = PATIENCE
        while not stop.wait(wait):
            write_line(f"{what}: {time.monotonic() - start:.0f} s")
            wait = 0.5
        if wait != PATIENCE:
            write_line("")

    thread = threading.Thread(target=show, daemon=True)

    def end() -> None:
        stop.set()
        if thread.is_alive():
            thread.join()

    if sys.stderr.isatty():
        thread.start()
    try:
        yield end
    finally:
        end()


@contextmanager
def run_display(name: str, paced: bool, quiet: bool = False) -> Iterator[Callable[[RunStatus], None] | None]:
    """Shows a run on a terminal, nothing in a pipe: a line with its status in real time, else a progress bar. quiet:
    nothing before its first status.

    The line is one short write, because a loop in Python shares the interpreter.
    """
    if not sys.stderr.isatty():
        yield None
        return
    with nullcontext(lambda: None) if quiet else busy(f"preparing {name}") as prepared, progress(name) as bar:

        def show(status: RunStatus) -> None:
            prepared()
            if paced:
                write_line(status_line(name, status))
            elif bar is not None:
                bar(status.fraction)

        try:
            yield show
        finally:
            prepared()
            if paced:
                write_line("")


def write_line(text: str) -> None:
    """Replace the last line of the terminal, in one write, without a line break."""
    stream = direct(sys.stderr)
    with suppress(OSError, ValueError):  # a terminal that was closed
        width = os.get_terminal_size(stream.fileno()).columns or PIPE_WIDTH
        stream.write(f"\r\x1b[K{escaped(text)[: width - 1]}")
        stream.flush()


@contextmanager
def options_named(others: Mapping[str, str] = SAME_NAMES) -> Iterator[None]:
    """A SectionError of a key becomes an InputError of the option `--key`, or of that in `others`."""

    def named(error: SectionError) -> InputError:
        key, *rest = map(str, error.keys)
        return InputError(error.what, " ".join([others.get(key, f"--{key}"), *rest]))

    with relocated(named):
        yield


@contextmanager
def relocated(locate: Callable[[SectionError], InputError]) -> Iterator[None]:
    """Each SectionError becomes what `locate` returns; other errors stay."""

    def located(error: InputError) -> InputError:
        return locate(error) if isinstance(error, SectionError) else error

    try:
        yield
    except InputErrors as many:
        raise InputErrors(map(located, many.errors)) from None
    except SectionError as error:
        raise locate(error) from None
