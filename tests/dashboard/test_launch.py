"""The run as a child of the page: it comes up, is controlled, ends, and starts again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cosim import open_recording
from cosim.apps.dashboard import run_control
from cosim.apps.dashboard.actions import AGAIN, PAUSE, START, STEP
from cosim.apps.dashboard.launch import Outcome, RunProcess, numbered
from cosim.apps.dashboard.live import LiveRun
from cosim.apps.dashboard.run_control import RunControl
from cosim.apps.dashboard.source import PageEvent
from cosim.apps.dashboard.watch import Watch
from cosim.core.errors import RunError
from cosim.output.client import connect
from tests.kit.command import RIG

LIMIT = 60.0  # s


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Followed:
    """A run that is polled as a page does it."""

    def __init__(self, path: Path, *options: str, record: Path | None = None) -> None:
        self.process = RunProcess(str(path), options, record)
        self.process.start()
        self.live = LiveRun(Watch(self.process.stream), RunControl(), self.process, self.process.control)
        self.events: list[PageEvent] = []
        self.ticks = 0

    def until(self, condition: Callable[[], bool], limit: float = LIMIT) -> None:
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, (self.live.status, self.live.note)
            news = self.live.poll()
            self.events = [*([] if news.restarted else self.events), *news.events]
            time.sleep(0.01)

    def stays_without_control(self) -> None:
        """What was given away: in so many polls it would be taken."""
        heard = self.live.control.status
        self.until(lambda: self.live.control.status is not heard)
        for _ in range(10):
            self.live.poll()
            assert not self.live.situation.mine

    def until_state(self, state: str) -> None:
        self.until(lambda: self.live.state == state)


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    path = tmp_path / "swing.yaml"
    path.write_text(RIG)
    run = Followed(path, "--duration", "100")
    yield run
    run.live.close()


def test_a_run_is_tuned_started_paused_stepped_killed_and_started_again(followed: Followed) -> None:
    live = followed.live
    assert live.state == "starting"
    followed.until(lambda: live.state == "waiting" and live.situation.mine and live.began)
    assert live.gains is not None
    # what is refused is said, and the gain goes back
    live.set(live.gains.move("hold.kp", None, -5.0, time.monotonic()))
    followed.until(lambda: live.note.level == "error")
    assert live.note.text == "set: parameter 'hold.kp': must be at least 0 N*m/rad, is -5 N*m/rad"
    followed.until(lambda: live.gains.present["hold.kp"] == [50.0])
    # another client has control, until it is taken over
    live.do("Release control")
    followed.until(lambda: not live.situation.mine)
    with connect(followed.process.control, "tuner") as tuner, tuner.control():
        followed.until(lambda: live.situation.owner == "tuner")
        tuner.set({"hold.kp": 12})
        followed.until(lambda: live.gains.present["hold.kp"] == [12.0])
        live.do("Take it over")
        followed.until(lambda: live.situation.mine)

    live.do(START)
    followed.until_state("running")
    live.set(live.gains.move("hold.kp", None, 77.0, time.monotonic()))
    followed.until(lambda: any("hold.kp = 77 (was 12), set by 'dashboard'" in event.text for event in followed.events))
    live.mark("here")
    followed.until(lambda: any(event.text == "marker by 'dashboard': here" for event in followed.events))
    live.do(PAUSE)
    followed.until_state("paused")
    before = live.control.status["tick"]
    live.do(STEP, ticks=7)
    followed.until(lambda: live.control.status["tick"] == before + 7)

    os.kill(followed.process.pid, signal.SIGKILL)
    followed.until_state("gone")
    assert live.status.reason == "its process was killed by SIGKILL (9)"
    live.set(live.gains.move("hold.kp", None, 88.0, time.monotonic()))  # for the next run
    live.do(AGAIN)
    followed.until_state("running")
    followed.until(lambda: live.control.status["parameters"]["hold.kp"]["value"] == [88.0])
    live.estop()
    followed.until_state("failed")
    assert live.status.reason.startswith("emergency stop by 'dashboard' after tick ")
    assert live.gains.present["hold.kp"] == [88.0]


def test_control_that_was_lost_to_silence_is_taken_back_unless_it_was_given_away(followed, monkeypatch) -> None:
    monkeypatch.setattr(run_control, "TIMEOUT", 0.3)
    monkeypatch.setattr(run_control, "ANSWER_VALIDITY", 0.6)
    live, run = followed.live, followed.process.pid
    followed.until(lambda: live.situation.mine and live.began)
    live.do(START)
    followed.until_state("running")
    parts = [int(word) for word in Path(f"/proc/{run}/task/{run}/children").read_text().split()]

    def send(number: int) -> None:
        for part in parts:  # among them the one that serves the control socket
            os.kill(part, number)

    send(signal.SIGSTOP)
    followed.until(lambda: not live.situation.mine)
    send(signal.SIGCONT)
    followed.until(lambda: live.situation.mine)

    live.do("Release control")
    followed.until(lambda: not live.situation.mine)
    followed.stays_without_control()

    live.do("Take control")
    followed.until(lambda: live.situation.mine)
    send(signal.SIGSTOP)
    live.do("Release control")
    followed.until(lambda: not live.situation.mine and not live.control.asked("release"))
    followed.until(lambda: not live.control.answers)
    send(signal.SIGCONT)
    followed.until(lambda: live.control.answers)
    followed.stays_without_control()


def test_the_run_ends_with_the_page_even_if_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "swing.yaml").write_text(RIG)
    page = (
        "import sys, time; from cosim.apps.dashboard.launch import RunProcess; "
        "run = RunProcess(sys.argv[1]); run.start(); print(run.pid, flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-c", page, str(tmp_path / "swing.yaml")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    end = time.monotonic() + LIMIT
    while is_alive(pid):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_recordings_are_numbered_and_none_is_replaced_by_a_further_run(tmp_path: Path) -> None:
    (tmp_path / "run_3.mcap").touch()
    paths = numbered(tmp_path / "run.mcap")
    assert [next(paths).name for _ in range(3)] == ["run.mcap", "run_2.mcap", "run_4.mcap"]


def test_a_run_is_recorded_and_is_the_only_one(tmp_path: Path) -> None:
    path, recording = tmp_path / "swing.yaml", tmp_path / "run.mcap"
    path.write_text(RIG)
    run = Followed(path, "--duration", "0.1", record=recording)
    try:
        with pytest.raises(RunError, match="the run has not ended; stop it first"):
            run.process.start()
        run.until(lambda: run.live.state == "waiting" and run.live.situation.mine)
        run.live.do(START)
        run.until(lambda: run.process.outcome is not None)
        assert run.process.outcome == Outcome(0, "")
    finally:
        run.live.close()
    assert not run.process.running
    assert not open_recording(recording).fault and not (tmp_path / "run_2.mcap").exists()


def test_an_outcome_is_told_in_words() -> None:
    assert (Outcome(0, "warning").state, Outcome(0, "warning").reason) == ("ended", "")
    assert (Outcome(1, "a\nlimit reached").state, Outcome(1, "a\nlimit reached").reason) == ("failed", "limit reached")
    assert Outcome(1, "").reason == "it wrote no reason"
    assert (Outcome(-9, "").state, Outcome(-9, "").reason) == ("gone", "its process was killed by SIGKILL (9)")
