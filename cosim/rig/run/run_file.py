"""Runs in files: numpy's `.npz` with the signals, and everything else as JSON."""

from __future__ import annotations

import dataclasses
import math
import os
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from cosim.core.errors import CosimError, InputError
from cosim.core.paths import open_file
from cosim.core.trust.plain_data import WrongShape, from_json, of_shape
from cosim.core.types import Level
from cosim.execution.hardware.manager import BusReport
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime
from cosim.execution.timing.privileges import Privilege
from cosim.output.events import AlarmCount, RunEvent
from cosim.output.output_files import writing
from cosim.output.signal_statistics import SignalStatistics
from cosim.output.signal_store import BLOCK, SignalStore
from cosim.output.store_file import SUFFIX as STORE_SUFFIX
from cosim.output.store_file import StoreFile, read_store
from cosim.rig.run.recorded_run import Change, RecordedRun, StreamSummary
from cosim.rig.run.run_metadata import RunMetadata

if TYPE_CHECKING:
    from cosim.core.recordings.reader import RecordedSamples

SUFFIX = ".npz"
KILLED = "the process of the run ended before the run did"
INDEX_DAMAGED = "the index of the recording is damaged; every tick was found without it"
_ARRAYS_OF_TIMING = ("numbers", "stamps")
_NOT_JSON = ("t", "values", "timing", "statistics")


class _SavedTiming(TypedDict):
    """The fields of a `DeadlineRecord` but its arrays."""

    tasks: tuple[TaskTime, ...]
    period_ns: float
    slip_ns: int
    lost_rows: int
    warm_up_ns: int
    rate: float
    triggered: bool
    engine: str
    privileges: tuple[Privilege, ...]


class _SavedStatistics(TypedDict):
    names: tuple[str, ...]
    count: int


class _SavedRun(TypedDict):
    """The fields of a `RecordedRun` that `_rest` writes as JSON, which has null for what is not finite."""

    rig: Any
    busy: float | None
    wall: float | None
    fault: str
    events: tuple[tuple[float, str, float | None, int, Level], ...]
    timing: NotRequired[_SavedTiming | None]
    guard: dict[str, dict[str, AlarmCount]]
    connections: tuple[BusReport, ...]
    statistics: NotRequired[_SavedStatistics | None]
    kept: NotRequired[tuple[str, ...] | None]
    stream: NotRequired[StreamSummary | None]
    changes: NotRequired[tuple[Change, ...]]
    gaps: NotRequired[tuple[tuple[float, float], ...]]
    lacks: NotRequired[str]
    unstable: NotRequired[tuple[str, ...]]
    misfits: NotRequired[tuple[str, ...]]
    cause: NotRequired[str]
    causes_of_violations: NotRequired[dict[str, str]]


class _StoreHeader(TypedDict):
    rig: Any
    signals: tuple[str, ...]


def save_run(run: RecordedRun, path: str | Path) -> None:
    """Raises InputError for another suffix and a file that cannot be written."""
    if Path(path).suffix == STORE_SUFFIX:
        return _save_store(run, path)
    if Path(path).suffix != SUFFIX:
        raise InputError(
            f"a run is saved as {SUFFIX} or {STORE_SUFFIX}; give the file one of these suffixes", str(path)
        )
    with writing(path, "run") as file:
        np.savez_compressed(file, allow_pickle=False, t=run.t, values=run.values, **_rest(run))


def _save_store(run: RecordedRun, path: str | Path) -> None:
    """A file like a run's on the disk."""
    if isinstance(run.values, np.memmap) and Path(path).exists() and os.path.samefile(run.values.filename or "", path):
        raise InputError("the signals of the run are in this file; give another one", str(path))
    store = StoreFile(path, 1 + len(run.signals), {"rig": dataclasses.asdict(run.rig), "signals": run.signals})
    try:
        for begin in range(0, len(run.t), BLOCK):
            part = slice(begin, begin + BLOCK)
            store.append(np.column_stack([run.t[part], run.values[part]]))
        store.finish(_rest(run))
    except CosimError:  # no part of a run
        store.path.unlink(missing_ok=True)
        raise


def finish_store(run: RecordedRun, store: SignalStore, temporary: bool) -> None:
    """Complete the file of a run on the disk; temporary: remove it with the run."""
    if store.file is None:
        return
    if not temporary:
        return store.file.finish(_rest(run))
    store.file.close()
    weakref.finalize(run, store.file.path.unlink, missing_ok=True)


def _rest(run: RecordedRun) -> dict[str, np.ndarray]:
    """Everything but the signals."""
    import orjson

    rest = {f.name: getattr(run, f.name) for f in dataclasses.fields(run) if f.name not in _NOT_JSON}
    arrays: dict[str, np.ndarray] = {}
    if run.statistics is not None:
        rest["statistics"] = {"names": run.statistics.names, "count": run.statistics.count}
        arrays["statistics_figures"] = run.statistics.figures
    if run.timing is not None:
        fields = {f.name: getattr(run.timing, f.name) for f in dataclasses.fields(run.timing)}
        arrays |= {f"timing_{name}": fields.pop(name) for name in _ARRAYS_OF_TIMING}
        rest["timing"] = fields
    text = orjson.dumps(rest, default=_plain, option=orjson.OPT_SERIALIZE_NUMPY)
    return {"run": np.frombuffer(text, dtype=np.uint8), **arrays}


def read_run(path: str | Path) -> dict[str, Any]:
    """The fields of a run that `save_run` wrote, or of a recording.

    Raises InputError for a file that is missing or none of these.
    """
    readers = {".mcap": _whole_recording, STORE_SUFFIX: _from_store}
    return readers.get(Path(path).suffix.lower(), _from_arrays)(path)


def _from_store(path: str | Path) -> dict[str, Any]:
    """Of a run that was killed, the rows; its summary is of those that were kept."""
    header, table, arrays = read_store(path)
    fields = {"t": table[:, 0], "values": table[:, 1:]}
    with _described(path):
        if arrays:
            return fields | _fields(arrays, fields["values"])
        about = of_shape(header, _StoreHeader)
        rig, kept = _run_metadata(about["rig"]), about["signals"]
        kept = None if kept == tuple(rig.units) else kept
        _check_columns(rig, kept, fields["values"])
    return fields | {"rig": rig, "fault": KILLED, "busy": math.nan, "wall": math.nan, "kept": kept}


def _from_arrays(path: str | Path) -> dict[str, Any]:
    try:
        with open_file(path) as content, np.load(content) as file:
            arrays = {name: file[name] for name in file.files}
        fields = {"t": arrays["t"], "values": arrays["values"]}
        if fields["t"].ndim != 1 or fields["values"].shape[:1] != fields["t"].shape or fields["values"].ndim != 2:
            raise ValueError
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or 'it is damaged'}", str(path)) from None
    except (ValueError, KeyError, AttributeError, zipfile.BadZipFile):
        what = "is no file of a run; give one that `run.save` or `cosim run --record` wrote"
        raise InputError(what, str(path)) from None
    with _described(path):
        return fields | _fields(arrays, fields["values"])


@contextmanager
def _described(path: str | Path) -> Iterator[None]:
    """Raises InputError at the path for the description of another version, or of no run."""
    try:
        yield
    except (WrongShape, KeyError) as wrong:
        what = f"its description is of no run that this version of cosim writes ({wrong}); run it again"
        raise InputError(what, str(path)) from None


def _fields(arrays: Mapping[str, np.ndarray], values: np.ndarray) -> dict[str, Any]:
    """The fields of a run but its signals, from the arrays of `_rest`. Raises WrongShape and KeyError."""
    saved = from_json(arrays["run"].tobytes(), _SavedRun)
    rest: dict[str, Any] = {name: value for name, value in saved.items() if name not in ("timing", "statistics")}
    rest["rig"] = rig = _run_metadata(saved["rig"])
    _check_columns(rig, saved.get("kept"), values)
    rest |= {name: math.nan if saved[name] is None else saved[name] for name in ("busy", "wall")}
    rest["events"] = tuple(
        RunEvent(t, name, math.nan if lost is None else lost, occurrences, level)
        for t, name, lost, occurrences, level in saved["events"]
    )
    if (timing := saved.get("timing")) is not None:
        parts: dict[str, Any] = {name: arrays[f"timing_{name}"] for name in _ARRAYS_OF_TIMING}
        rest["timing"] = DeadlineRecord(**timing, **parts)
    if (statistics := saved.get("statistics")) is not None:
        rest["statistics"] = SignalStatistics.of(**statistics, figures=arrays["statistics_figures"])
    return rest


def _check_columns(rig: RunMetadata, kept: Sequence[str] | None, values: np.ndarray) -> None:
    """Raises WrongShape where the values do not fit these signals."""
    names = tuple(rig.units) if kept is None else kept
    if values.shape[1] != len(names) or not set(names) <= set(rig.units) or len(set(names)) < len(names):
        raise WrongShape("it has other signals than the file")


def _whole_recording(path: str | Path) -> dict[str, Any]:
    fields = read_recorded(path)
    return fields | {name: np.asarray(fields[name]) for name in ("t", "values")}


def read_recorded(path: str | Path) -> dict[str, Any]:
    """The fields of a run from a recording; its signals are read where they are used.

    Raises InputError for a file that is no recording of this version, or has no tick.
    """
    from cosim.core.recordings.index import recordings_of
    from cosim.core.recordings.reader import NO_RIG, NO_TICK, RecordedSamples

    samples = RecordedSamples(recordings_of(path))
    if "outline" not in samples.metadata:
        raise InputError(NO_RIG, str(path))
    try:
        rig = _run_metadata(from_json(samples.metadata["outline"]))
        columns = np.array([samples.names.index(name) for name in rig.units], dtype=np.intp)
    except ValueError as wrong:
        raise InputError(_other_version(samples.metadata, wrong), str(path)) from None
    fault, events = _outcome(samples)
    if not samples.count:
        ended = f"the run of the recording ended before its first tick: {fault}; correct this and run it again"
        raise InputError(ended if fault and samples.indexes[-1].complete else NO_TICK, str(path))
    unknown = {"busy": math.nan, "wall": math.nan}
    values, changes = samples.table(columns), tuple(_changes_of(samples))
    return {
        "rig": rig,
        "t": samples.t,
        "values": values,
        "fault": fault,
        "events": events,
        "changes": changes,
        "lacks": "; and ".join(samples.losses),
        "gaps": tuple((gap.begin, gap.end) for gap in samples.gaps if gap.ticks and gap.begin and gap.end),
        **unknown,
    }


def _changes_of(samples: RecordedSamples) -> Iterator[Change]:
    """In the order in which they were made."""
    return (Change(*change) for change in samples.changes())


def _outcome(samples: RecordedSamples) -> tuple[str, tuple[RunEvent, ...]]:
    """(fault, events) of a recording; what it lacks is a part of its fault."""
    events = [RunEvent(t_ns * 1e-9, text, math.nan, level=level) for t_ns, text, level in samples.log()]
    faults = [event.name for event in events if event.level == "error"][-1:]
    faults += samples.losses
    if samples.reindexed and not samples.losses:
        faults.append(INDEX_DAMAGED)
    return "; and ".join(faults), tuple(event for event in events if event.level != "error")


def _other_version(metadata: Mapping[str, str], wrong: ValueError) -> str:
    wrote, reads = metadata.get("cosim", "an unknown version"), version("cosim")
    if wrote == reads:
        return f"the recording does not fit this version of cosim ({wrong}); record the run again"
    return f"was recorded by cosim {wrote}, and this is {reads}; read it with that version, or record the run again"


def run_metadata_json(metadata: RunMetadata) -> str:
    """For `SinkConfig.metadata`."""
    import orjson

    return orjson.dumps(metadata).decode()


def _run_metadata(data: Any) -> RunMetadata:
    """Raises WrongShape."""
    if isinstance(data, dict) and isinstance(data.get("parameters"), dict):
        data = data | {"parameters": {name: _number(value) for name, value in data["parameters"].items()}}
    metadata = of_shape(data, RunMetadata)
    if metadata.step_ns <= 0:
        raise WrongShape(f"step_ns: expected a number above 0, got {metadata.step_ns}")
    rows = {f"{name}/{row}" for name, constraint in metadata.constraints.items() for row in constraint.rows}
    for names, known in (
        (rows, metadata.units),
        (metadata.redundant, rows),
        (metadata.full_deflection, metadata.roles),
        (metadata.temperatures, metadata.units),
    ):
        if unknown := [name for name in names if name not in known]:
            raise WrongShape(f"there is no '{unknown[0]}'")
    return metadata


def _number(value: Any) -> Any:
    """JSON has null for a parameter that is infinite: a limit that is not set."""
    if isinstance(value, list):
        return list(map(_number, value))
    return math.inf if value is None else value


def _plain(value: Any) -> Any:
    """What orjson does not know."""
    if isinstance(value, RunEvent):
        return tuple(value)
    raise TypeError(type(value).__name__)
