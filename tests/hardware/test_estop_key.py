"""The emergency stop by a key of the terminal."""

import os
import signal
import subprocess
import sys
import termios
import tty
from contextlib import ExitStack

import pytest

from cosim.execution.hardware.estop import EstopParams, open_estop
from tests.hardware.estop_helpers import Terminal, place, refused, stays

KEYS = [("space", b" "), (" ", b" "), ("esc", b"\x1b"), ("q", b"q"), ("q", b"Q"), ("Q", b"q"), ("~", b"~")]
AN_ARROW = b"\x1b[A"  # better once too often than not at all


@pytest.mark.parametrize(("key", "typed"), [*KEYS, ("5", b"abc5def"), ("esc", AN_ARROW)])
def test_the_key_stops(terminal, opened, key, typed):
    stop = opened(key=key)
    assert stop.pressed() == ""
    terminal.type(typed)
    assert stop.pressed() == f"the emergency stop: key {key}"


def test_other_keys_do_not(terminal, opened):
    stop = opened(key="space")
    for typed in (b"q", b"\n", b"\r", b"\x1b[A", b"\xff", "é".encode(), b"\x00", b"\x1a", b"\x13", b"\x04"):
        terminal.type(typed)
        assert stop.pressed() == ""
    terminal.type(b" ")
    assert stop.pressed() == "the emergency stop: key space"


def test_a_key_that_was_pressed_again_prevents_the_reset(terminal, opened):
    terminal.type(b" ")  # also before it is opened
    stop = opened(key="space")
    assert stop.pressed() == "the emergency stop: key space"
    terminal.type(b"x  ")
    assert stays(stop) == "the emergency stop: key space"
    terminal.type(b"x")
    stop.reset()
    assert stop.pressed() == ""
    terminal.type(b" ")
    assert stays(stop) == "the emergency stop: key space"  # also where a reset is the first to see it


def test_keys_are_not_echoed_are_read_immediately_and_cannot_halt_the_loop(terminal, opened):
    before = terminal.mode
    opened(key="space")
    mode = terminal.mode
    assert not mode[3] & (termios.ECHO | termios.ICANON) and mode[3] & termios.ISIG
    assert not mode[0] & termios.IXON and mode[1] == before[1]
    assert [mode[6][k] for k in (termios.VSUSP, termios.VQUIT, termios.VINTR)] == [b"\0", b"\0", b"\x03"]
    terminal.type(b"visible?")
    os.set_blocking(terminal.leader, False)
    with pytest.raises(BlockingIOError):
        os.read(terminal.leader, 100)


def test_the_terminal_is_restored_without_typed_input(terminal):
    before = terminal.mode
    with ExitStack() as stack:
        stop = open_estop(EstopParams(key="space"), place, stack)
        assert terminal.mode != before
        terminal.type(b"reboot\n")
    assert terminal.mode == before
    os.set_blocking(terminal.follower, False)
    with pytest.raises(BlockingIOError):
        os.read(terminal.follower, 100)
    tty.setraw(terminal.follower)
    mode = terminal.mode
    stop._sources[0].close()  # once
    assert terminal.mode == mode


def test_the_terminal_is_restored_if_another_input_cannot_be_opened(terminal):
    before = terminal.mode
    assert "'none': No such file" in refused(key="space", file="none")
    assert terminal.mode == before


LEAVE = {
    "at the end": "",
    "after an error": "raise ValueError('a mistake')",
    "after sys.exit": "sys.exit(3)",
    "after Ctrl-C": "print('ready', flush=True); time.sleep(60)",
}


@pytest.mark.parametrize("how", LEAVE)
def test_the_terminal_is_restored_at_the_exit_of_a_program(how):
    terminal = Terminal()
    before = terminal.mode
    code = f"""
import sys, termios, time
from contextlib import ExitStack
from cosim.execution.hardware.estop import EstopParams, open_estop
before = termios.tcgetattr(0)
stack = ExitStack()
stop = open_estop(EstopParams(key="space"), str, stack)
assert termios.tcgetattr(0) != before
{LEAVE[how]}
"""
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdin=terminal.follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if "Ctrl-C" in how:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGINT)
    _, complaints = program.communicate(timeout=60)
    assert "AssertionError" not in complaints
    assert program.returncode == {"at the end": 0, "after an error": 1, "after sys.exit": 3}.get(how, -signal.SIGINT)
    assert terminal.mode == before
    terminal.close()


def test_a_terminal_that_is_gone_is_pressed(terminal, opened):
    stop = opened(key="space")
    os.close(terminal.leader)
    terminal.leader = -1
    assert stop.pressed() == stays(stop)
    assert stop.pressed() in (
        "the emergency stop: key space cannot be read (the terminal is gone)",
        "the emergency stop: key space cannot be read (Input/output error)",
    )


NO_TERMINAL = (
    "rig.yaml:7 guard.estop.key: the emergency stop by key needs a terminal;"
    " run in the foreground of one or give 'file' or a message"
)


@pytest.mark.parametrize("stdin", ["pipe", "closed", "none", "stand-in"])
def test_without_a_terminal(monkeypatch, tmp_path, stdin):
    (tmp_path / "empty").touch()
    with open(tmp_path / "empty") as file:
        if stdin == "closed":
            file.close()
        monkeypatch.setattr(sys, "stdin", {"none": None, "stand-in": object()}.get(stdin, file))
        assert refused(key="space") == NO_TERMINAL


def test_in_the_background_another_program_has_the_keys(terminal, monkeypatch):
    before = terminal.mode
    monkeypatch.setattr(os, "tcgetpgrp", lambda file: os.getpgrp() + 1)
    assert refused(key="space") == NO_TERMINAL
    assert terminal.mode == before
    monkeypatch.setattr(os, "tcgetpgrp", lambda file: os.getpgrp())
    with ExitStack() as stack:
        assert open_estop(EstopParams(key="space"), place, stack).pressed() == ""
