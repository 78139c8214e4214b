"""What a run keeps of its signals, after its `keep`, and whether there is room for it and for its recording."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import InputError
from cosim.core.growing_table import run_folder
from cosim.core.units import show_time
from cosim.execution.execution_mode import block_ticks
from cosim.output.output_files import write_error
from cosim.output.signal_store import KeptTicks, SignalStore
from cosim.output.store_file import SUFFIX, WHAT, StoreFile
from cosim.rig.run.run_metadata import RunMetadata, run_metadata_of
from cosim.rig.run.signal_patterns import matching_columns
from cosim.rig.wiring.wired_rig import WiredRig

if TYPE_CHECKING:
    from cosim.rig.sections.keep import KeepSpec
    from cosim.simulation.tick.tick_model import TickModel

_numbers = itertools.count()

# bytes of a value on the disk that is noise, with its part of the message and the index, by numbers; in JSON
VALUE_BYTES = {"float64": 11.4, "float32": 7.3}
JOINT_STATE_BYTES = 30.0  # of a joint in `/joint_states`
JSON_VALUE_BYTES = 23.0
POSE_BYTES = 200.0  # bytes of a joint and its link in a frame of the 3D view, at most
TRAFFIC_BYTES = 600.0  # bytes of the bus traffic of a joint in a tick, at most: frames, calls, readings of the clock
SMALLEST_PART = 0.1  # of noise: what signals of a plain motion need at least


def check_kept(keep: KeepSpec, metadata: RunMetadata, model: TickModel, ticks: int) -> KeptTicks:
    """What a run of so many ticks keeps. Raises InputErrors for signals that do not exist, InputError for what fits
    neither the budget nor the disk."""
    columns = _columns(keep.signals, tuple(metadata.units))
    last = None if keep.last is None else round(keep.last * 1e9 / metadata.step_ns) + 1
    kept = KeptTicks(len(metadata.units), columns, keep.every, last, round(keep.budget), ticks)
    block = 8 * block_ticks(model.program) * (1 + kept.signals)
    if kept.budget < block:
        what = f"{show_bytes(kept.budget)} are less than a block of ticks, {show_bytes(block)}"
        raise InputError(f"{what}; give at least these", "keep.budget")
    if last is not None and 2 * kept.bytes > kept.budget:
        most = show_time(kept.budget // (16 * kept.width) * keep.every * metadata.step_ns)
        what = f"the last {show_time(keep.last * 1e9)} need {show_bytes(2 * kept.bytes)} of memory" if keep.last else ""
        raise InputError(f"{what}; use at most {most}, or raise keep.budget", "keep.last")
    if last is None and (kept.bytes > kept.budget or keep.file is not None):
        folder = _folder(keep)
        free = shutil.disk_usage(existing_folder(folder)).free
        if kept.bytes > free:
            most = show_time(free // (8 * kept.width) * keep.every * metadata.step_ns)
            what = f"{ticks:,} ticks need {show_bytes(kept.bytes)}, the disk of {folder} has {show_bytes(free)}"
            fix = f"use at most {most}, or keep less with keep.every, keep.signals or keep.last"
            raise InputError(f"{what}; {fix}", "duration")
    return kept


def store_of(keep: KeepSpec, kept: KeptTicks, metadata: RunMetadata) -> SignalStore:
    """The store. Raises InputError where its file cannot be created."""

    def open_file() -> StoreFile:
        path = Path(keep.file) if keep.file is not None else _temporary(metadata.name)
        header = {"rig": dataclasses.asdict(metadata), "signals": kept_names(kept, metadata)}
        return StoreFile(path, kept.width, header)

    return SignalStore(kept, open_file, in_file=keep.file is not None)


def kept_names(kept: KeptTicks, metadata: RunMetadata) -> tuple[str, ...]:
    names = tuple(metadata.units)
    return names if kept.columns is None else tuple(names[k] for k in kept.columns)


def _columns(patterns: Sequence[str], names: Sequence[str]) -> np.ndarray | None:
    """The columns of the signals that match a pattern, in the order of the rig; None without patterns."""
    return np.array(matching_columns(patterns, names, lambda _: "keep.signals")) if patterns else None


def _folder(keep: KeepSpec) -> Path:
    return run_folder() if keep.file is None else Path(keep.file).parent


def existing_folder(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next((each for each in (folder, *folder.absolute().parents) if each.exists()), Path("/"))


def _temporary(name: str) -> Path:
    """A file for a run that has outgrown its budget. It is removed with the run; a killed program leaves it behind."""
    folder = run_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise write_error(folder, WHAT, cause) from cause
    safe = re.sub(r"[^\w-]", "_", name)
    return folder / f"{safe}-{os.getpid()}-{next(_numbers)}{SUFFIX}"


def show_bytes(size: float) -> str:
    """`536 GB`, with three digits."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {prefix}B"
    return f"{size:.0f} B"


def bytes_per_tick(rig: WiredRig, metadata: RunMetadata) -> float:
    """Of a recording, at most: of signals that are noise."""
    recording, schedule = rig.run_spec.recording, rig.run_spec.schedule
    columns = len(metadata.units) + (0 if schedule.pacing is None else len(rig.tasks) + 2)
    joints, rate = len(metadata.roles), 1e9 / schedule.step_ns
    frames = 0.0 if recording.frame_rate is None else min(recording.frame_rate / rate, 1.0)
    traffic = TRAFFIC_BYTES * joints if recording.bus and rig.hardware else 0.0
    value = JSON_VALUE_BYTES if recording.encoding == "json" else VALUE_BYTES[recording.numbers]
    states = JOINT_STATE_BYTES * joints if recording.encoding == "ros2" else 0.0
    return value * columns + states + frames * POSE_BYTES * (1 + joints) + traffic


def scarce_room(rig: WiredRig, record: str | Path | None, ticks: int, metadata: RunMetadata | None = None) -> str:
    """A warning where the disk may be full before so many ticks are recorded, with both numbers and the time that it
    lasts; empty where it has room. A file that exists makes room for the new one."""
    path = Path(os.path.realpath(record)) if record is not None else None
    if path is None or (path.exists() and not path.is_file()):
        return ""
    per_tick = bytes_per_tick(rig, run_metadata_of(rig) if metadata is None else metadata)
    free = shutil.disk_usage(existing_folder(path.parent)).free + (path.stat().st_size if path.exists() else 0)
    if (most := per_tick * ticks) <= free:
        return ""
    step = rig.run_spec.schedule.step_ns * 1e-9
    needs = f"between {show_bytes(SMALLEST_PART * most)} and {show_bytes(most)}"
    lasts = _duration(free / per_tick * step)
    what = f"the recording of {_duration(ticks * step)} needs {needs}, the disk of {path.parent} has {show_bytes(free)}"
    return f"{what}, enough for {lasts} or longer; free space, or record less with recording.numbers: float32"


def _duration(seconds: float) -> str:
    """With two digits, such as `1.5 h`."""
    for unit, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"
