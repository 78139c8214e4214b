"""A recording in other formats: CSV, Parquet, MATLAB, messages of ROS 2. Block by block, so that a long one needs
little memory."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError
from cosim.output.output_files import writing
from cosim.rig.run.run import Run
from cosim.rig.run.signal_patterns import matching_columns

BLOCK = 1 << 14  # rows
LONGEST_NAME = 63  # characters of a name in MATLAB
LARGEST_MAT = 1 << 32  # bytes of a variable in a file of MATLAB 5


@dataclass(frozen=True)
class Selection:
    """Rows and signals of a run. columns: of its values."""

    run: Run
    rows: range
    columns: np.ndarray

    @property
    def names(self) -> list[str]:
        return [self.run.signals[k] for k in self.columns]

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(t (k,), values (k, n)) of the rows in turn."""
        for begin in range(self.rows.start, self.rows.stop, BLOCK):
            part = slice(begin, min(begin + BLOCK, self.rows.stop))
            yield self.run.t[part], self.run.values[part][:, self.columns]


def selection_of(
    run: Run, signals: Sequence[str] = (), start: float | None = None, until: float | None = None
) -> Selection:
    """signals: names or patterns such as `*/position`, all by default; start, until: s, both included.

    Raises InputErrors for signals that do not exist, InputError for times without a tick.
    """
    chosen = matching_columns(signals, run.signals, lambda _: "--signals")
    first = 0 if start is None else bisect_left(run.t, start - 1e-12)
    last = len(run.t) if until is None else bisect_right(run.t, until + 1e-12)
    if first >= last:
        span = f"the recording is from {run.t[0]:g} to {run.t[-1]:g} s" if len(run.t) else "the recording has no tick"
        raise InputError(f"there is no tick in this time; {span}", "--from")
    return Selection(run, range(first, last), np.array(chosen, dtype=np.intp))


def export_run(selection: Selection, format: str, path: Path) -> None:
    """Write the file, whole or not at all. Raises InputError where it cannot be written or a package is missing."""
    FORMATS[format](selection, path)


def _csv(selection: Selection, path: Path) -> None:
    """A line of names, `t` first, then every number as its shortest text, equal to the bit when it is read."""
    with writing(path, "export") as file:
        file.write((",".join(["t", *map(quoted, selection.names)]) + "\n").encode())
        for t, values in selection.blocks():
            rows = np.column_stack([t, values]).tolist()
            file.write("".join(",".join(map(repr, row)) + "\n" for row in rows).encode())


def quoted(name: str) -> str:
    """As a cell of a CSV."""
    return '"' + name.replace('"', '""') + '"' if re.search(r'[,"\n]', name) else name


def _parquet(selection: Selection, path: Path) -> None:
    """A column per signal, its unit in the metadata of the field."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow; run 'pip install \"cosim[export]\"'", "--to") from None
    units = {"t": "s", **selection.run.units}
    names = ["t", *selection.names]
    schema = pyarrow.schema([pyarrow.field(n, pyarrow.float64(), metadata={"unit": units[n]}) for n in names])
    with writing(path, "export") as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for t, values in selection.blocks():
            arrays = [pyarrow.array(column) for column in (t, *np.ascontiguousarray(values.T))]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _mat(selection: Selection, path: Path) -> None:
    """Variables `t` and one per signal, with names that MATLAB has; `names` and `units` list the signals in order."""
    from scipy.io import savemat

    if (size := 8 * len(selection.rows)) >= LARGEST_MAT:
        what = f"{size / 1e9:.3g} GB of a signal do not fit into a file of MATLAB 5"
        raise InputError(f"{what}; export less by --from and --until, or use --to parquet", "--to")
    names = matlab_names(selection.names)
    found = {name: np.empty(len(selection.rows)) for name in ("t", *names)}
    begin = 0
    for t, values in selection.blocks():
        for name, column in zip(found, (t, *values.T), strict=True):
            found[name][begin : begin + len(t)] = column
        begin += len(t)
    units = [selection.run.units[name] for name in selection.names]
    lists = {"names": np.array(selection.names, dtype=object), "units": np.array(units, dtype=object)}
    with writing(path, "export") as file:
        savemat(file, found | lists, oned_as="column", do_compression=True)


def matlab_names(names: Sequence[str]) -> list[str]:
    """Names of variables, each once: letters, digits and `_`, of at most 63 characters."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = plain if re.match(r"[A-Za-z]", plain) else f"s_{plain}"
        unique, number = plain[:LONGEST_NAME], 2
        while unique in (*found, "t", "names", "units"):
            suffix = f"_{number}"
            unique, number = plain[: LONGEST_NAME - len(suffix)] + suffix, number + 1
        found.append(unique)
    return found


def _ros2(selection: Selection, path: Path) -> None:
    """An MCAP file of ROS 2, with the events; times are those of the run."""
    from cosim.output.recorder import Recorder

    run = selection.run
    channels = tuple((name, run.units[name]) for name in selection.names)
    span = run.t[selection.rows[0]], run.t[selection.rows[-1]]
    with Recorder(path, channels, {"rig": run.rig.name}, "ros2") as recorder:
        for event in run.events:
            if span[0] <= event.t <= span[1]:
                recorder.event(round(event.t * 1e9), event.name, event.level)
        for t, values in selection.blocks():
            recorder.append(np.round(t * 1e9).astype(np.int64), values)


FORMATS: dict[str, Callable[[Selection, Path], None]] = {
    "csv": _csv,
    "parquet": _parquet,
    "mat": _mat,
    "ros2": _ros2,
}
SUFFIXES = {"ros2": ".ros2.mcap"}  # where it is not the name of the format
