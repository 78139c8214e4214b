"""Files of a recording that would hold little but the shapes are refused; a full disk leaves the ticks of the run."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import open_recording
from cosim.errors import InputError
from cosim.output.recorder import WORTH, check_split_size
from cosim.rig import Rig
from cosim.rig.run import StoppedRun
from tests.kit.disk import small_disk
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
    with pytest.raises(InputError) as caught:
        rig.run(record=tmp_path / "a.mcap")
    told = str(caught.value)
    assert told.startswith("recording.split_size: the shapes of the mechanism and the files of the rig take ")
    assert told.endswith(" MB, or leave the shapes out with recording.frame_rate: null")
    least = float(told.partition("use at least ")[2].split()[0]) * 1e6
    assert WORTH * size < least < WORTH * (size + 1e5)
    assert (tmp_path / "a.mcap").read_text() == "old"


def test_the_words_without_shapes():
    check_split_size(1e6, None, [("a", bytes(249_000))])
    with pytest.raises(InputError) as caught:
        check_split_size(1e6, None, [("a", bytes(260_000))])
    what = "the shapes of the mechanism and the files of the rig take 0.26 MB in each file; use at least 1.1 MB"
    assert str(caught.value) == f"recording.split_size: {what}"


def test_a_full_disk_leaves_every_tick_of_the_run_and_the_recording_its_reason(tmp_path):
    rig = Rig.from_dict({**MOVING, "schedule": {"step": "1 ms", "duration": 20.0}})
    with small_disk(tmp_path) as disk:
        with pytest.raises(StoppedRun) as stopped:
            rig.run(record=disk / "a.mcap")
        recorded, run = open_recording(disk / "a.mcap"), stopped.value.run
        end = f"the recording ends after t = {recorded.t[-1]:.6g} s, before its run: No space left on device"
        assert recorded.fault == recorded.lacks == end
        assert len(run.t) >= len(recorded.t) > 500
        assert run.summary["ticks"] == len(run.t) - 1
        np.testing.assert_array_equal(run.values[: len(recorded.t)], recorded.values)
