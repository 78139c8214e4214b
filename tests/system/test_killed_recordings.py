"""SIGKILL of the run or of its recorder: the file stays readable, and loses at most the last second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import open_recording
from cosim.output.recording_index import recordings_of
from cosim.output.recording_reader import RecordedSamples
from tests.kit.mcap_validation import validate
from tests.rig.test_run_forms import MOVING

START = 2.0  # s at most from opening the recording to the first tick, on a busy machine
RUN = """
import sys
from cosim import load_rig
from cosim.rig.run import StoppedRun
try:
    run = load_rig(sys.argv[1], realtime=True).run("30 s", record=sys.argv[2])
except StoppedRun as stopped:
    run = stopped.run
    print(run.fault)
print(run.t[-1])
"""


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(condition):
    """Wait for it; a test that waits for too long fails."""
    for _ in range(3000):
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError("nothing happened")


def recorded_seconds(path):
    try:
        opened = open_recording(path)
    except Exception:  # not begun
        return 0.0
    return float(opened.t[-1]) if len(opened.t) else 0.0


@pytest.mark.parametrize("killed", ["run", "recorder"])
def test_a_killed_process_loses_at_most_the_last_second(tmp_path, killed):
    (tmp_path / "arm.yaml").write_text(yaml.safe_dump(MOVING))
    path = tmp_path / "a.mcap"
    words = [sys.executable, "-c", RUN, str(tmp_path / "arm.yaml"), str(path)]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        until(lambda: recorded_seconds(path) > 0.9)
        (recorder,) = (pid for pid in children(run.pid) if b"sink_process" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(run.pid if killed == "run" else recorder, signal.SIGKILL)
        end_ns = time.time_ns()
        if killed == "recorder":
            run.send_signal(signal.SIGINT)
        printed, _ = run.communicate(timeout=60)
        until(lambda: not os.path.exists(f"/proc/{recorder}/exe") or killed == "recorder")
    finally:
        run.kill()
    if killed == "run":  # its recorder has ended the file
        validate(path)
    opened = open_recording(path)
    passed = 1e-9 * (end_ns - RecordedSamples(recordings_of(path)).start_ns)  # since before the first tick
    assert passed - opened.t[-1] < 1.0 + START
    np.testing.assert_array_equal(np.round(np.diff(opened.t) * 1e3), 1.0)
    if killed == "run":
        assert opened.fault == "the process of the run ended before the run did"
    else:
        assert opened.fault.startswith("the recording is cut off after t = ")
        assert "the recorder ended unexpectedly (signal 9); the end of the run is not recorded; run again" in printed
