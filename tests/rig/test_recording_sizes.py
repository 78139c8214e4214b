"""Files of a recording that would hold little but the shapes are refused; a full disk leaves the ticks of the run."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from cosim import open_recording
from cosim.output.recorder import WORTH, Recorder, check_split_size
from cosim.rig.rig import Rig
from cosim.rig.run import kept_signals
from cosim.rig.run.kept_signals import JSON_VALUE_BYTES, VALUE_BYTES, bytes_per_tick, scarce_room, show_bytes
from cosim.rig.run.run import StoppedRun
from cosim.rig.run.run_metadata import run_metadata_of
from tests.kit.disk import small_disk
from tests.kit.refusals import raised, refusal
from tests.rig.test_run_forms import MOVING


@pytest.mark.parametrize("realtime", [False, True])
def test_files_smaller_than_what_each_repeats_are_refused(tmp_path, realtime, monkeypatch):
    table = tmp_path / "table.csv"
    random = np.random.default_rng(1).random((20_000, 3))
    table.write_text("t,shoulder,elbow\n" + "\n".join(f"{k},{a},{b}" for k, (a, b, _) in enumerate(random)))
    size = table.stat().st_size
    trajectory = {"type": "waypoints", "file": str(table)}
    controllers = [{**MOVING["controllers"][0], "trajectory": trajectory}]
    schedule = {"step": "1 ms", "duration": 0.1, **({"realtime": {}} if realtime else {})}
    rig = Rig.from_dict({**MOVING, "controllers": controllers, "schedule": schedule, "recording": {"split_size": 1e6}})
    (tmp_path / "a.mcap").write_text("old")
    told = refusal(rig.run, record=tmp_path / "a.mcap")
    assert told.startswith("recording.split_size: the shapes of the mechanism and the files of the rig take ")
    assert told.endswith(" MB, or leave the shapes out with recording.frame_rate: null")
    least = float(told.partition("use at least ")[2].split()[0]) * 1e6
    assert WORTH * size < least < WORTH * (size + 1e5)
    assert (tmp_path / "a.mcap").read_text() == "old"


def test_the_words_without_shapes(said):
    check_split_size(1e6, None, [("a", bytes(249_000))])
    said(refusal(check_split_size, 1e6, None, [("a", bytes(260_000))]))


def test_a_full_disk_leaves_every_tick_of_the_run_and_the_recording_its_reason(tmp_path):
    rig = Rig.from_dict({**MOVING, "schedule": {"step": "1 ms", "duration": 20.0}})
    with small_disk(tmp_path) as disk:
        run = raised(StoppedRun, rig.run, record=disk / "a.mcap").run
        recorded = open_recording(disk / "a.mcap")
        end = f"the recording ends after t = {recorded.t[-1]:.6g} s, before its run: No space left on device"
        assert recorded.fault == recorded.lacks == end
        assert len(run.t) >= len(recorded.t) > 500
        assert run.summary["ticks"] == len(run.t) - 1
        np.testing.assert_array_equal(run.values[: len(recorded.t)], recorded.values)


@pytest.mark.parametrize(
    ("encoding", "numbers"),
    [("protobuf", "float64"), ("protobuf", "float32"), ("json", "float64"), ("ros2", "float64")],
)
def test_a_recording_is_no_larger_than_it_was_thought_to_be(tmp_path, encoding, numbers):
    """Of noise, which cannot be compressed."""
    names = [(f"joint{k}/signal{i}", "1") for k in range(10) for i in range(10)]
    with Recorder(tmp_path / "a.mcap", names, {}, encoding, numbers=numbers) as recorder:
        before = (tmp_path / "a.mcap").stat().st_size
        recorder.append(np.arange(3000) * 1_000_000, np.random.default_rng(1).standard_normal((3000, 100)))
    size = ((tmp_path / "a.mcap").stat().st_size - before) / 300_000
    assert 0.5 < size / (JSON_VALUE_BYTES if encoding == "json" else VALUE_BYTES[numbers]) < 1.03


def test_a_disk_that_may_be_full_before_the_end_is_a_warning_before_the_run(tmp_path, monkeypatch):
    rig = Rig.from_dict({**MOVING, "schedule": {"step": "1 ms", "duration": 0.1}})
    per_tick = bytes_per_tick(rig, run_metadata_of(rig))
    ticks = 3_600_000
    with small_disk(tmp_path) as disk:
        (disk / "a.mcap").write_bytes(bytes(200_704))  # whole pages
        told = scarce_room(rig, disk / "a.mcap", ticks)
        most, free = show_bytes(per_tick * ticks), show_bytes(409_600)
        needs = f"needs between {show_bytes(0.1 * per_tick * ticks)} and {most}, the disk of {disk} has {free}"
        lasts = f"enough for {409.6 / per_tick:.2g} s or longer"
        fix = "free space, or record less with recording.numbers: float32"
        assert told == f"the recording of 60 min {needs}, {lasts}; {fix}"
        assert scarce_room(rig, disk / "a.mcap", int(409_000 / per_tick)) == ""
        assert scarce_room(rig, None, ticks) == ""


def test_the_warning_is_an_event_of_the_run_and_its_recording(tmp_path, monkeypatch):
    rig = Rig.from_dict({**MOVING, "schedule": {"step": "1 ms", "duration": 1.0}})
    usage = shutil._ntuple_diskusage(10**9, 10**9 - 30_000, 30_000)
    monkeypatch.setattr(kept_signals.shutil, "disk_usage", lambda _: usage)
    run = rig.run(record=tmp_path / "a.mcap")
    (event,) = [event.name for event in run.events if event.level == "warning"]
    assert event.startswith("the recording of 1 s needs between ") and " has 30 kB, enough for " in event
    assert event in [each.name for each in open_recording(tmp_path / "a.mcap").events]
