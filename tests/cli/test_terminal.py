"""What a terminal shows while a run is compiled and runs; a pipe shows nothing."""

import re
import sys
from pathlib import Path

import pytest

from cosim.output import console
from cosim.output.run_status import RunStatus, status_line
from tests.kit.terminal import Terminal


@pytest.fixture
def terminal():
    found = Terminal()
    yield found
    found.close()


@pytest.fixture
def attach(terminal, monkeypatch):
    """Makes it the terminal of this process. Call it in the test: pytest replaces stderr after the fixtures."""
    return lambda: monkeypatch.setattr(sys, "stderr", terminal.stream)


LINE = r"swing  t = \d\.\d s  \d+\.\d\d × real time  \d+ missed deadlines?  guard ok"


def test_a_real_time_run_shows_its_status_and_takes_the_line_away(command, terminal, attach, monkeypatch):
    attach()
    monkeypatch.setattr("cosim.rig.run.status_reports.PERIOD", 0.05)
    Path("rig.yaml").write_text(command.rig.replace("{duration: 0.4 s}", "{duration: 0.6 s, realtime: yes}"))
    code, out, _ = command("run", "rig.yaml")
    terminal.wait_for(r"\r\x1b\[K$")
    assert code == 0 and "swing" in out
    assert re.findall(rf"\r\x1b\[K{LINE}", terminal.text)
    assert "\n" not in terminal.text


def test_a_pipe_shows_nothing(command, monkeypatch):
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    Path("rig.yaml").write_text(command.rig.replace("{duration: 0.4 s}", "{duration: 0.3 s, realtime: yes}"))
    out = command.prints("run", "rig.yaml")
    assert "\x1b" not in out and "\r" not in out


def test_a_run_without_a_clock_shows_a_bar(command, terminal, attach, monkeypatch):
    attach()
    monkeypatch.setattr("cosim.rig.run.status_reports.PERIOD", 0.0)
    assert command("run", "rig.yaml")[0] == 0
    terminal.wait_for("running swing")


def test_what_takes_long_says_for_how_long(terminal, attach, monkeypatch):
    attach()
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    with console.busy("compiling arm"):
        terminal.wait_for(r"\r\x1b\[Kcompiling arm: 0 s")
    terminal.wait_for(r"compiling arm: 0 s\r\x1b\[K$")


def test_what_is_quick_says_nothing(terminal, attach, monkeypatch):
    attach()
    monkeypatch.setattr(console, "PATIENCE", 60.0)
    with console.busy("compiling arm"):
        pass
    assert terminal.text == ""


def test_a_line_fits_the_terminal(monkeypatch):
    narrow = Terminal(columns=20)
    monkeypatch.setattr(sys, "stderr", narrow.stream)
    console.write_line("x" * 50)
    narrow.wait_for("x{19}")
    assert narrow.text == "\r\x1b[K" + "x" * 19
    monkeypatch.undo()
    narrow.close()


def test_the_line_of_a_status():
    line = status_line("arm", RunStatus(0.5, 2.04, 0.994, 1, ["a", "b", "c", "d"]))
    assert line == "arm  t = 2.0 s  0.99 × real time  1 missed deadline  guard: a, b, c and 1 more beyond a limit"
    assert status_line("arm", RunStatus(0.5, 2.0, 1.0, 1200)).endswith("1,200 missed deadlines  guard ok")
