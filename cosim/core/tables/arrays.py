"""Tables in files of arrays: NumPy, MATLAB and Parquet.

An array (k,) is a column, (k, n) is n columns `<name>[0]`, …; the arrays of the length of `t`, or of the most frequent
length, are the table. With `names` or `joints`, n words, the columns of an array (k, n) are `<word>/<name>`.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.core.errors import InputError
from cosim.core.tables.table import FileTable, TableRows
from cosim.core.tables.times import has_times
from cosim.core.types import Array
from cosim.core.units import known_unit

WORDS = ("joints", "joint_names", "names", "name", "columns", "labels")  # arrays that name columns
STEPS = ("ts", "dt", "sample_time", "sampling_time")  # numbers beside arrays: s between rows
RATES = ("fs", "sample_rate", "sampling_rate", "sampling_frequency")  # Hz
SAME_STEP = 1e-6  # relative
LARGEST = 1 << 31  # bytes of numbers
LONGEST_REASON = 200  # characters
DAMAGED = "write it again"
NO_LINES = np.zeros(0, np.int64)


def of_columns(path: Path, columns: Mapping[str, Array], units: Mapping[str, str] | None = None) -> FileTable:
    """A table of arrays (k,)."""
    names, arrays = tuple(columns), list(columns.values())

    def read(chosen: Sequence[int]) -> TableRows:
        return TableRows(np.column_stack([np.asarray(arrays[k], dtype=float) for k in chosen]), NO_LINES)

    return FileTable(path, names, read, dict(units or {}))


@contextmanager
def _reading(path: Path, kind: str, fix: str) -> Iterator[None]:
    """Raises InputError where the package that reads a file raises anything, as it may for damaged ones."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the package, before it raises
            yield
    except InputError:
        raise
    except Exception as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"cannot be read as {kind}: {words[:LONGEST_REASON]}; {fix}", str(path)) from None


def read_numpy(path: Path) -> FileTable:
    """Of a `.npz`, or of a `.npy` whose elements have named fields. Raises InputError."""
    with _reading(path, "NumPy", "save arrays of numbers by numpy.savez"):
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            if found.dtype.names is None:
                what = f"is an array of shape {found.shape} without names; save it by numpy.savez(file, t=t, …)"
                raise InputError(what, str(path))
            return _table({name: found[name] for name in found.dtype.names}, path)
        with found:
            size = sum(each.file_size for each in found.zip.infolist())
            if size > LARGEST:
                raise InputError(f"has {size:,} bytes of arrays, more than {LARGEST:,}; save a part of it", str(path))
            arrays = {name: found[name] for name in found.files}
        saved = _of_saved_run(arrays, path)
        return _table(arrays, path) if saved is None else saved


def _of_saved_run(arrays: Mapping[str, np.ndarray], path: Path) -> FileTable | None:
    """Of a run of this program, whose signals are named in its description; None for other files."""
    about, t, values = (arrays.get(name) for name in ("run", "t", "values"))
    if about is None or t is None or values is None or about.dtype != np.uint8 or values.ndim != 2:
        return None
    try:
        described = json.loads(about.tobytes())
        units = dict(described["rig"]["units"])
        names = list(described.get("kept") or units)
    except (ValueError, KeyError, TypeError):
        return None
    if len(names) != values.shape[1]:
        return None
    known = {name: unit for name, text in units.items() if (unit := known_unit(str(text)))}
    return of_columns(path, {"t": t, **dict(zip(names, values.T, strict=True))}, {"t": "s"} | known)


def read_matlab(path: Path) -> FileTable:
    """Of a `.mat` up to version 7; the exports of this program have their names. Raises InputError."""
    from scipy.io import loadmat

    with _reading(path, "a MATLAB file", "save it by '-v7'"):
        found = loadmat(path, squeeze_me=True, chars_as_strings=True)
        return _table({name: np.asarray(value) for name, value in found.items() if not name.startswith("__")}, path)


def read_parquet(path: Path) -> FileTable:
    """Units of columns are in the metadata `unit` of their fields. Raises InputError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow; run 'pip install \"cosim[export]\"'", str(path)) from None
    with _reading(path, "Parquet", DAMAGED):
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        fields = [field for field in file.schema_arrow if _is_number(pyarrow.types, field.type)]
        units = {f.name: unit for f in fields if (unit := known_unit((f.metadata or {}).get(b"unit", b"?").decode()))}

    def read(chosen: Sequence[int]) -> TableRows:
        names = [fields[k].name for k in chosen]
        if (size := 8 * file.metadata.num_rows * len(names)) > LARGEST:
            raise InputError(f"has {size:,} bytes of numbers, more than {LARGEST:,}; write a part of it", str(path))
        with _reading(path, "Parquet", DAMAGED):
            columns = file.read(columns=list(dict.fromkeys(names)))
            return TableRows(np.column_stack([_numbers(columns[name]) for name in names]), NO_LINES)

    return FileTable(path, tuple(field.name for field in fields), read, units)


def _is_number(types: Any, kind: Any) -> bool:
    return types.is_integer(kind) or types.is_floating(kind) or types.is_timestamp(kind)


def _numbers(column: Any) -> Array:
    """Times since 1970 in ns, others as they are; NaN for nothing."""
    found = column.to_numpy()
    if np.issubdtype(found.dtype, np.datetime64):
        return found.astype("datetime64[ns]").astype(np.int64).astype(float)
    return found.astype(float)


def _table(arrays: Mapping[str, np.ndarray], path: Path) -> FileTable:
    words = {name: np.atleast_1d(a).astype(str).tolist() for name, a in arrays.items() if a.dtype.kind in "UO"}
    numbers = {name: a for name, a in arrays.items() if a.dtype.kind in "fiub" and 1 <= a.ndim <= 2 and a.size}
    if not numbers:
        what = f"has no arrays of numbers, but {', '.join(arrays) or 'nothing'}; save t and the columns as arrays"
        raise InputError(what, str(path))
    lengths = Counter(len(a) for a in numbers.values())
    rows = len(numbers["t"]) if "t" in numbers else lengths.most_common(1)[0][0]
    numbers = {name: a if len(a) == rows else a.T for name, a in numbers.items() if rows in a.shape}
    if (exported := _names_of_exports(words, numbers)) is not None:
        columns = {"t": numbers["t"], **{name: numbers[variable] for name, variable in exported.items()}}
        given = dict(zip(exported, words.get("units", ()), strict=False))
        return of_columns(path, columns, {name: unit for name, text in given.items() if (unit := known_unit(text))})
    joints = next((words[name] for name in WORDS if name in words), [])
    columns, clock = dict[str, Array](), ""
    if not has_times(numbers) and (step := _time_between_rows(arrays, path)) is not None:
        columns["t"], clock = step[0] * np.arange(rows), step[1]
    for name, a in numbers.items():
        if a.ndim == 1:
            columns[name] = a
        else:
            named = [f"{joint}/{name}" for joint in joints] if len(joints) == a.shape[1] else []
            columns |= dict(zip(named or [f"{name}[{k}]" for k in range(a.shape[1])], a.T, strict=True))
    return replace(of_columns(path, columns), clock=clock)


def _time_between_rows(arrays: Mapping[str, np.ndarray], path: Path) -> tuple[float, str] | None:
    """(time, what is said) of a number such as `ts` or `fs` beside the arrays; None without one. Raises InputError for
    two that differ."""
    found, given = dict[str, float](), dict[str, float]()
    for name, a in arrays.items():
        if a.dtype.kind in "fiu" and a.size == 1 and name.lower() in (*STEPS, *RATES):
            value = float(a.reshape(-1)[0])
            if not 0.0 < value < math.inf:
                raise InputError(f"has '{name}' = {value:g}; a time between rows is above 0", str(path))
            found[name] = value if name.lower() in STEPS else 1.0 / value
            given[name] = value
    if not found:
        return None
    (name, step), *others = found.items()
    for other, value in others:
        if abs(value - step) > SAME_STEP * step:
            raise InputError(f"has '{name}' and '{other}', which differ; keep one, or save t as an array", str(path))
    return step, f"there is no column of times; '{name}' = {given[name]:.6g} gives them, from t = 0 on"


def _names_of_exports(words: Mapping[str, Sequence[str]], numbers: Mapping[str, Array]) -> dict[str, str] | None:
    """Name of a signal -> variable, of a file whose `names` list the signals of the variables in their order."""
    names, variables = words.get("names", ()), [name for name in numbers if name != "t"]
    if "t" not in numbers or len(names) != len(variables) or any(numbers[v].ndim != 1 for v in variables):
        return None
    found = dict(zip(names, variables, strict=True))
    alike = all(re.sub(r"[^A-Za-z0-9_]", "_", name)[:8] in variable for name, variable in found.items())
    return found if alike else None
