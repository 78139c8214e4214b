"""A recording run again: the rig from the files in it, its parameters and changes, and the comparison to the bit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cosim.core.errors import InputError
from cosim.core.recordings.index import RecordingIndex, recordings_of
from cosim.core.recordings.reader import RecordedSamples
from cosim.core.recordings.sample_encoding import TIMING
from cosim.core.trust.plain_data import WrongShape, from_json
from cosim.output.signal_store import BLOCK
from cosim.rig.foreign_rig import files_of_recording
from cosim.rig.rig_files import plugin_digests
from cosim.rig.run.recorded_run import Change
from cosim.rig.run.run import Run, StoppedRun, open_recording
from cosim.rig.run.session import run_session
from cosim.rig.unpacked_rig import rig_of_files

if TYPE_CHECKING:
    from cosim.rig.rig import Rig

SETTINGS = ("schedule.realtime=false", "keep=null", "telemetry=null")


class FirstDifference(NamedTuple):
    """Where a rerun leaves its recording; t in s."""

    signal: str
    tick: int
    t: float
    recorded: float
    rerun: float


@dataclass(frozen=True)
class Rerun:
    """A recorded run, and the same run computed again. recorded, run: both runs; changes: that were made again;
    difference: the first, None where all ticks are equal to the bit."""

    recorded: Run
    run: Run
    changes: tuple[Change, ...]
    difference: FirstDifference | None


class RecordedRig(NamedTuple):
    """A recording that can be run again, and its rig from the files in it, with the parameters of the run."""

    run: Run
    rig: Rig
    ticks: int


def recorded(path: str | Path, compiled: bool = False, trust: bool = False) -> RecordedRig:
    """compiled: the rig, also where the run's was not; trust: see `rig_of_files`.

    Raises InputError for a recording that cannot be run again: of real motors, of 32-bit numbers, of plug-ins that have
    changed, and for one that lacks ticks before its end.
    """
    indexes = recordings_of(path)
    samples, run = RecordedSamples(indexes), open_recording(path)
    _check(samples, run, str(path))
    files = files_of_recording(path)
    interpret = True if "everything" in run.rig.engine and not compiled else None
    rig = rig_of_files(files, samples.metadata["as_run"], SETTINGS, interpret, trust, str(path))
    if rig.watched:  # whatever the recording states of itself
        what = "its rig has real motors or an emergency stop, which are not switched on to run it again"
        raise InputError(f"{what}; compare it with another run", str(path))
    _check_plugins(rig, indexes[0])
    wanted = {name: value for name, value in run.rig.parameters.items() if rig.parameters.get(name) != value}
    for name, value in wanted.items():
        rig.set(name, value)
    return RecordedRig(run, rig, samples.count)


def rerun(path: str | Path, trust: bool = False) -> Rerun:
    """Run the rig of a recording again, from the files in it, and compare all of its signals but the timing.

    trust: code in the recording may run, also where this user did not record it here. Raises InputError as `recorded`
    does.
    """
    before, rig, count = recorded(path, trust=trust)
    try:
        run = run_session(rig, (count - 1) * before.rig.step_ns * 1e-9, changes=before.changes)
    except StoppedRun as stopped:
        run = stopped.run
    return Rerun(before, run, before.changes, _first_difference(before, run))


def _check(samples: RecordedSamples, recorded: Run, place: str) -> None:
    """Raises InputError for a recording that cannot be run again."""
    metadata = samples.metadata
    if recorded.rig.hardware:
        raise InputError("is of real motors, whose motion cannot be computed again; compare it with another run", place)
    if "as_run" not in metadata:
        raise InputError("does not hold the files of its rig; record the run again", place)
    if changed := metadata.get("changed_files"):
        what = f"{changed} was changed between the start of the program and the run"
        raise InputError(f"{what}, so it is not what ran; record the run again", place)
    if any(topic.dtype.itemsize < 8 for topic in samples.topics):
        what = "holds numbers of 32 bits, which cannot be compared to the bit"
        raise InputError(f"{what}; record with recording.numbers: float64", place)
    if samples.gaps and any(gap.end is not None for gap in samples.gaps):
        what = next(str(gap) for gap in samples.gaps if gap.end is not None)
        raise InputError(f"{what}; only runs that have every tick can be run again", place)
    if samples.count < 2:
        raise InputError("has no two ticks; record the run again", place)
    times = recorded.t
    step = recorded.rig.step_ns * 1e-9
    if times[0] != 0.0:
        raise InputError(f"begins at t = {times[0]:.6g} s; give the first file of the run", place)
    if round(times[-1] / step) != samples.count - 1:
        raise InputError("the run has skipped ticks; only runs that have every tick can be run again", place)


def _check_plugins(rig: Rig, index: RecordingIndex) -> None:
    """Raises InputError where a plug-in that is not in the recording is another one now."""
    try:
        recorded = from_json(index.metadata.get("plugins", "{}"), dict[str, str])
    except WrongShape as wrong:
        raise InputError(f"its list of plug-ins is damaged ({wrong}); record the run again", str(index.path)) from None
    present = plugin_digests(rig)
    for type, digest in recorded.items():
        if present.get(type) != digest:
            version = index.metadata.get("cosim", "?")
            what = f"'{type}' has changed since the run was recorded with cosim {version}"
            raise InputError(f"{what}; run it again with that version", str(index.path))


def _first_difference(recorded: Run, run: Run) -> FirstDifference | None:
    """The first tick, and there the first signal, that is not the same number in both."""
    names = [name for name in recorded.signals if not name.startswith(f"{TIMING}/")]
    columns = [[each.signals.index(name) for name in names] for each in (recorded, run)]
    common = min(len(recorded.t), len(run.t))
    for begin in range(0, common, BLOCK):
        rows = slice(begin, min(begin + BLOCK, common))
        a, b = (each.values[rows][:, chosen] for each, chosen in zip((recorded, run), columns, strict=True))
        # a recording in JSON has NaN for all numbers that are not finite
        differs = (a.view(np.int64) != b.view(np.int64)) & ~((a == b) | (np.isnan(a) & ~np.isfinite(b)))
        if differs.any():
            row = int(differs.any(axis=1).argmax())
            column = int(differs[row].argmax())
            t, pair = float(recorded.t[begin + row]), (float(a[row, column]), float(b[row, column]))
            return FirstDifference(names[column], begin + row, t, *pair)
    if len(run.t) < len(recorded.t):
        t = float(recorded.t[common])
        return FirstDifference("the end of the run", common, t, float(recorded.t[-1]), float(run.t[-1]))
    return None
