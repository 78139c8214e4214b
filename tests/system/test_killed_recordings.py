"""SIGKILL of each process of a run in real time: the file stays readable and loses at most the last second, the others
go on or end, and say so in one line."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import yaml

from cosim import open_recording
from cosim.core.errors import RunError
from cosim.output.client import connect, subscribe
from tests.kit.kills import falls, kills
from tests.kit.processes import child, runs, until
from tests.system.test_controlled_runs import ARM

TICKS = 3_000
KILL = 1_900  # tick: late in a chunk
LOST = 1_000  # ticks, 1 s
PROCESSES = {
    "publisher": ("cosim.output.sink_process", 0),
    "recorder": ("cosim.output.sink_process", 1),
    "control": ("cosim.execution.remote.control_process", 0),
}


class RunWithAll:
    """`cosim run` in real time with recording, stream and control. seen: the last tick that a subscriber got."""

    def __init__(self, folder):
        self.rig, self.path = folder / "arm.yaml", folder / "a.mcap"
        self.stream, control = (f"ipc://{folder}/{name}" for name in ("stream", "control"))
        rig = {**ARM, "telemetry": {"publish": self.stream, "control": control}}
        self.rig.write_text(yaml.safe_dump(rig))
        words = ["run", str(self.rig), "--duration", str(TICKS / 1e3), "--record", str(self.path)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-m", "cosim", *words], **pipes)
        self.client, self.subscriber = connect(control, timeout=60.0), subscribe(self.stream)
        self.processes = {name: child(self.process.pid, *which) for name, which in PROCESSES.items()}
        self.processes["run"] = self.process.pid
        self.seen = 0

    def kill(self, name, tick):
        """Kill a process when a subscriber has seen the tick."""
        until(lambda: self._follow() >= tick)
        os.kill(self.processes[name], signal.SIGKILL)

    def _follow(self):
        while (sample := self.subscriber.receive(0.0)) is not None:
            self.seen = sample.tick
        return self.seen

    def heard(self, event):
        """Whether the stream has told of the event; what waits in it comes one by one."""
        self._follow()
        return event in [each["event"] for each in self.subscriber.events]

    def finish(self):
        """(exit code, stdout, stderr); no process is left."""
        out, err = self.process.communicate(timeout=60)
        until(lambda: not any(map(runs, self.processes.values())))
        return self.process.returncode, out, err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.client.close()
        self.subscriber.close()


@pytest.fixture
def running(tmp_path):
    with RunWithAll(tmp_path) as running:
        yield running


def recorded(running, least):
    """The run in the file, which has every tick from the first one on, and at least so many."""
    opened = open_recording(running.path)
    np.testing.assert_array_equal(np.rint(np.asarray(opened.t) * 1e3), np.arange(len(opened.t)))
    assert len(opened.t) > least
    return opened


def warnings(out):
    return [line for line in out.splitlines() if line.startswith("warning")]


def test_a_killed_run_ends_its_processes_and_the_recorder_finishes_the_file(running):
    running.kill("run", KILL)
    assert running.finish() == (-signal.SIGKILL, "", "")
    opened = recorded(running, running.seen - LOST)
    assert opened.fault == "the process of the run ended before the run did"
    running.client.timeout = 0.1
    with pytest.raises(RunError, match=r"nothing answers within 0\.1 s"):
        running.client.request("status")


def test_a_killed_recorder_loses_at_most_the_last_second_and_the_run_goes_on(running):
    running.kill("recorder", KILL)
    code, out, err = running.finish()
    opened = recorded(running, running.seen - LOST)
    count, end = len(opened.t), f"t = {opened.t[-1]:g} s"
    assert count < TICKS and opened.fault.startswith(f"the recording is cut off after {end}")
    what = f"{running.path}: the recorder ended unexpectedly (signal 9); the end of the run is not recorded"
    lost = f"{TICKS + 1 - count:,} of its {TICKS + 1:,} ticks are missing, the file ends at {end}"
    assert (code, err) == (1, f"{running.rig}: {what}: {lost}; run again\n")
    assert warnings(out) == []
    assert out.splitlines()[-1] == f"wrote    recording {running.path}, only {count:,} ticks up to {end}"
    until(lambda: running.heard(what) and running.seen == TICKS)


def test_killed_publisher_and_control_process_harm_neither_run_nor_recording(running):
    running.kill("control", 200)
    running.kill("publisher", 250)  # long before the end, so that both are noticed
    code, out, err = running.finish()
    ended = "the process of the control socket has ended; no further commands are possible"
    what = f"{running.stream}: the publisher ended unexpectedly (signal 9); the end of the run is not published"
    assert (code, err) == (0, "")
    of_publisher, of_control = sorted(warnings(out), key=lambda line: ended in line)
    assert of_publisher == f"warning  no telemetry to the end: {what}"
    assert re.fullmatch(rf"warning  [\d.]+ s  {ended}", of_control)
    opened = recorded(running, TICKS)
    assert opened.fault == ""
    assert {ended, f"{what}; the run goes on without telemetry"} <= {event.name for event in opened.events}


# --- kills at random times: see tests.kit.kills, which makes 50 ---


def test_killed_runs_leave_motors_off_and_recordings_readable(tmp_path):
    (kill,) = kills(1, 6, tmp_path, f"239.75.252.{os.getpid() % 250 + 1}", latest=1.5)
    assert kill.wrong == () and not kill.early


def test_a_motor_that_holds_its_load_is_not_taken_for_one_that_is_off():
    falling = iter([-0.4, -0.3, -0.1])
    assert falls(lambda: next(falling)) is True
    assert falls(lambda: 0.4, timeout=0.1) is False
    assert falls(lambda: 0.01) is None
