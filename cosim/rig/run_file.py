"""Runs in files: numpy's `.npz` with the signals, and everything else as JSON."""

from __future__ import annotations

import dataclasses
import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import InputError
from cosim.output.events import RunEvent
from cosim.output.output_files import write_file
from cosim.output.recording_reader import read_recording
from cosim.output.signal_statistics import SignalStatistics
from cosim.rig.outline import ConstraintOutline, RigOutline
from cosim.rig.recorded_run import RecordedRun
from cosim.timing.deadlines import DeadlineRecord, TaskTime
from cosim.timing.privileges import Privilege

SUFFIX = ".npz"
_ARRAYS_OF_TIMING = ("numbers", "stamps")
_NOT_JSON = ("t", "values", "timing", "statistics")


def save_run(run: RecordedRun, path: str | Path) -> None:
    """Raises InputError for another suffix and a file that cannot be written."""
    import orjson

    if Path(path).suffix != SUFFIX:
        raise InputError(f"a run is saved as {SUFFIX}; give the file this suffix", str(path))
    rest = {f.name: getattr(run, f.name) for f in dataclasses.fields(run) if f.name not in _NOT_JSON}
    arrays = {"t": run.t, "values": run.values}
    if run.statistics is not None:
        rest["statistics"] = {"names": run.statistics.names, "count": run.statistics.count}
        arrays["statistics_figures"] = run.statistics.figures
    if run.timing is not None:
        fields = {f.name: getattr(run.timing, f.name) for f in dataclasses.fields(run.timing)}
        arrays |= {f"timing_{name}": fields.pop(name) for name in _ARRAYS_OF_TIMING}
        rest["timing"] = fields
    text = orjson.dumps(rest, default=_plain, option=orjson.OPT_SERIALIZE_NUMPY)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, run=np.frombuffer(text, dtype=np.uint8), **arrays)
    write_file(path, content.getvalue(), "run")


def read_run(path: str | Path) -> dict[str, Any]:
    """The fields of a run that `save_run` wrote, or of a recording.

    Raises InputError for a file that is missing or none of these.
    """
    return _from_recording(path) if Path(path).suffix == ".mcap" else _from_arrays(path)


def _from_arrays(path: str | Path) -> dict[str, Any]:
    import orjson

    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        rest = orjson.loads(arrays.pop("run").tobytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or 'it is damaged'}", str(path)) from None
    except (ValueError, KeyError, AttributeError, zipfile.BadZipFile):
        what = "is no file of a run; give one that `run.save` or `cosim run --record` wrote"
        raise InputError(what, str(path)) from None
    rest["rig"] = _outline(rest["rig"])
    rest["events"] = tuple(RunEvent(*event) for event in rest["events"])
    rest["connections"] = tuple(rest["connections"])
    if (timing := rest.get("timing")) is not None:
        timing["tasks"] = tuple(TaskTime(**task) for task in timing["tasks"])
        timing["privileges"] = tuple(Privilege(**item) for item in timing["privileges"])
        rest["timing"] = DeadlineRecord(**timing, **{name: arrays[f"timing_{name}"] for name in _ARRAYS_OF_TIMING})
    if (statistics := rest.get("statistics")) is not None:
        rest["statistics"] = SignalStatistics.of(**statistics, figures=arrays["statistics_figures"])
    return {"t": arrays["t"], "values": arrays["values"], **rest}


def _from_recording(path: str | Path) -> dict[str, Any]:
    import orjson

    recording = read_recording(path)
    if "outline" not in recording.metadata:
        raise InputError("the recording does not describe its rig; record the run again", str(path))
    rig = _outline(orjson.loads(recording.metadata["outline"]))
    values = np.column_stack([recording.signals[name] for name in rig.units])
    events = [RunEvent(t_ns * 1e-9, text, math.nan, level=level) for t_ns, text, level in recording.log]
    fault = next((event.name for event in reversed(events) if event.level == "error"), "")
    reported = tuple(event for event in events if event.level != "error")
    t = recording.t_ns * 1e-9
    unknown = {"busy": math.nan, "wall": math.nan}
    return {"rig": rig, "t": t, "values": values, "fault": fault, "events": reported, **unknown}


def outline_json(outline: RigOutline) -> str:
    """For `SinkConfig.outline`."""
    import orjson

    return orjson.dumps(outline).decode()


def _outline(data: dict[str, Any]) -> RigOutline:
    constraints = {name: _constraint(outline) for name, outline in data.pop("constraints").items()}
    parameters = {name: _number(value) for name, value in data.pop("parameters").items()}
    return RigOutline(**_tuples(RigOutline, data), constraints=constraints, parameters=parameters)


def _number(value: Any) -> float | list[float]:
    """JSON has null for a parameter that is infinite: a limit that is not set."""
    if isinstance(value, list):
        return [math.inf if x is None else x for x in value]
    return math.inf if value is None else value


def _constraint(data: dict[str, Any]) -> ConstraintOutline:
    return ConstraintOutline(tuple(data["rows"]), tuple(data["drifts"]))


def _tuples(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples where the class has tuples."""
    kinds = {field.name: str(field.type) for field in dataclasses.fields(cls)}
    return {name: tuple(value) if kinds[name].startswith("tuple") else value for name, value in data.items()}


def _plain(value: Any) -> Any:
    """What orjson does not know."""
    if isinstance(value, RunEvent):
        return tuple(value)
    raise TypeError(type(value).__name__)
