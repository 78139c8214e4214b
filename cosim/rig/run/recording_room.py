"""Whether the disk has room for what a run will record, before motors are on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cosim.rig.run.kept_signals import existing_folder, show_bytes
from cosim.rig.run.run_metadata import RunMetadata, run_metadata_of
from cosim.rig.wiring.wired_rig import WiredRig

# bytes of a value on the disk that is noise, with its part of the message and the index, by numbers; in JSON
VALUE = {"float64": 11.4, "float32": 7.3}
JSON_VALUE = 23.0
POSE = 200.0  # bytes of a joint and its link in a frame of the 3D view, at most
TRAFFIC = 600.0  # bytes of the bus traffic of a joint in a tick, at most: frames, calls, readings of the clock
REPEATS = 0.1  # of noise: what signals of a plain motion need at least


def bytes_per_tick(rig: WiredRig, metadata: RunMetadata) -> float:
    """Of a recording, at most: of signals that are noise."""
    recording, schedule = rig.run_spec.recording, rig.run_spec.schedule
    columns = len(metadata.units) + (0 if schedule.pacing is None else len(rig.tasks) + 2)
    joints, rate = len(metadata.roles), 1e9 / schedule.step_ns
    frames = 0.0 if recording.frame_rate is None else min(recording.frame_rate / rate, 1.0)
    traffic = TRAFFIC * joints if recording.bus and rig.hardware else 0.0
    value = JSON_VALUE if recording.encoding == "json" else VALUE[recording.numbers]
    return value * columns + frames * POSE * (1 + joints) + traffic


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
    needs = f"between {show_bytes(REPEATS * most)} and {show_bytes(most)}"
    lasts = _duration(free / per_tick * step)
    what = f"the recording of {_duration(ticks * step)} needs {needs}, the disk of {path.parent} has {show_bytes(free)}"
    return f"{what}, enough for {lasts} or longer; free space, or record less with recording.numbers: float32"


def _duration(seconds: float) -> str:
    """With two digits, such as `1.5 h`."""
    for unit, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"
