"""What `cosim tune gains` shows while it searches: on a terminal and in a pipe."""

import os
import pty
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from cosim.apps.tuning.command import TimeLeft, in_words
from cosim.apps.tuning.session_folder import read_trials
from cosim.output import console
from tests.kit.command import Command
from tests.kit.processes import until
from tests.kit.terminal import Terminal
from tests.tuning.textbook import TURNTABLE

WORDS = (
    "tune",
    "gains",
    "rig.yaml",
    "--parameter",
    "hold.kp=20..200",
    "--trials",
    "24",
    "--batch",
    "8",
    "--optimiser",
    "de",
)
BEST = r"best \d+: cost [\d.e-]+"


def test_a_terminal_shows_one_line_that_changes_and_takes_it_away(command: Command, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    code, out, _ = command(*WORDS)
    terminal.wait_for(r"24/24[^\r]*\r\x1b\[K$")
    text = terminal.text
    monkeypatch.undo()
    terminal.close()
    assert code == 0 and "trials" not in out and "\n" not in text
    lines = [line for line in re.split(r"\r\x1b\[K", text) if line]
    assert re.fullmatch(r"preparing swing: \d s", next(line for line in lines if "compiling" not in line))
    shown = [line for line in lines if line.startswith("tuning ")]
    assert len(shown) == 3
    assert re.fullmatch(rf"tuning swing: 8/24 trials  {BEST}", shown[0])  # no rate is known yet
    assert re.fullmatch(rf"tuning swing: 16/24 trials  {BEST}  \d+ s left", shown[1])
    assert re.fullmatch(rf"tuning swing: 24/24 trials  {BEST}", shown[2])


def test_a_pipe_has_a_line_for_each_better_trial_and_each_tenth(command: Command):
    code, out, err = command(*WORDS)
    lines = [line for line in out.splitlines() if "trials" in line]
    assert (code, err) == (0, []) and "\r" not in out and "\x1b" not in out
    assert [line.partition(" ")[0] for line in lines] == ["8/24", "16/24", "24/24"]
    assert re.fullmatch(rf"16/24 trials  {BEST}  \d+ s left", lines[1])
    many = command(*WORDS[:5], "--trials", "200", "--batch", "2", "--optimiser", "sobol", "--session", "many")[1]
    lines = [line for line in many.splitlines() if "trials" in line]
    changes = sum(a.split()[3] != b.split()[3] for a, b in pairwise(lines))
    assert 10 <= len(lines) <= 11 + changes < 40


def test_no_trial_that_holds_the_limits_is_shown_as_such(command: Command):
    _, out, _ = command(*WORDS, "--limit", "effort_max=0.1")
    assert out.splitlines()[0] == "8/24 trials  none holds all limits yet"


def test_ctrl_c_on_a_terminal_takes_the_line_away_and_says_how_to_go_on(tmp_path: Path):
    (tmp_path / "rig.yaml").write_text(yaml.safe_dump(TURNTABLE))
    words = ["tune", "gains", "rig.yaml", "--parameter", "arm.kd=1..100", "--trials", "100000", "--optimiser", "de"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "cosim", *words])
    shown = bytearray()

    def read() -> bytes:
        try:
            shown.extend(found := os.read(terminal, 1 << 16))
        except OSError:  # it has ended
            return b""
        return found

    until(lambda: read() and b"/100000 trials" in shown)
    os.write(terminal, b"\x03")
    while read():
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    text = shown.decode().replace("^C", "")
    assert "Traceback" not in text
    pattern = r"tuning turntable: \d+/100000 trials  best \d+: cost [\d.e-]+[^\r]*\r\x1b\[K"
    assert re.search(pattern, text)
    *_, last = text.strip().splitlines()
    folder = tmp_path / "tuning" / "turntable_1"
    count, fix = len(read_trials(folder)) - 1, "go on with --resume --session tuning/turntable_1"
    assert re.fullmatch(
        rf"tune: interrupted after {count} of 100000 trials, the best is trial \d+ with .*; {fix}", last
    )
    assert "wrote    report tuning/turntable_1/report.html" in text and (folder / "gains.yaml").exists()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (89.4, "89 s"), (90.0, "2 min"), (5369.0, "89 min"), (5400.0, "1 h 30 min"), (7500.0, "2 h 5 min")],
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words


def test_the_time_left_is_by_the_rate_since_the_first_batch(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("cosim.apps.tuning.command.time.monotonic", lambda: now[0])
    left = TimeLeft()
    assert left.text(10, 100) == ""
    now[0] = 130.0
    assert left.text(20, 100) == "  4 min left"  # 3 s per trial, 80 trials
    now[0] = 140.0
    assert left.text(50, 100) == "  50 s left"
    assert left.text(100, 100) == ""
