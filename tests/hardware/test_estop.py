"""The emergency stop: each input pressed, not pressed and in doubt; the latch; the terminal given back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.errors import SourceLocation
from cosim.hardware.estop import EstopParams
from cosim.rig.reading.schema import Reading, read
from tests.hardware.estop_helpers import refused, stays

# --- what may be asked for ---


MESSAGE = "a message needs all of 'interface', 'channel' and 'id'"


KEY = "'key' is {}; give space, esc or one ASCII character"


WORDS = "'pressed' and 'released' are {}; give one character each, not the same"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({}, "give at least one of 'key', 'file' and a message ('interface', 'channel' and 'id')"),
        ({"key": "space", "heartbeat": 0.1}, "'heartbeat' is of a message; give 'interface', 'channel' and 'id'"),
        ({"released": "x"}, "give at least one of 'key', 'file' and a message ('interface', 'channel' and 'id')"),
        ({"interface": "socketcan"}, MESSAGE),
        ({"interface": "socketcan", "channel": "can0"}, MESSAGE),
        ({"key": "space", "channel": "can0", "id": 0}, MESSAGE),
        ({"key": "enter"}, KEY.format("'enter'")),
        ({"key": ""}, KEY.format("''")),
        ({"key": "é"}, KEY.format("'é'")),
        ({"key": "\t"}, KEY.format("'\\t'")),
        ({"key": "\x7f"}, KEY.format("'\\x7f'")),
        ({"file": "value", "pressed": "0"}, WORDS.format("'0' and '0'")),
        ({"file": "value", "pressed": "on", "released": "off"}, WORDS.format("'on' and 'off'")),
        ({"file": "value", "released": ""}, WORDS.format("'1' and ''")),
        ({"file": "value", "pressed": ""}, WORDS.format("'' and '0'")),
        ("space", "expected a mapping, got 'space'"),
    ],
)
def test_errors_are_reported_at_the_section(data, what):
    reading = Reading(lambda path: SourceLocation("rig.yaml", 7, ".".join(map(str, path))), [])
    assert read(EstopParams, data, ("guard", "estop"), reading) is None
    assert [str(error) for error in reading.errors] == [f"rig.yaml:7 guard.estop: {what}"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({"key": 5}, "key: expected text, got 5; put it in quotes"),
        ({"file": "value", "released": 1}, "released: expected text, got 1; put it in quotes"),
        ({"interface": "virtual", "channel": "a", "id": -1}, "id: must be at least 0, is -1"),
        ({"interface": "virtual", "channel": "a", "id": 0x20000000}, "id: must be at most 536870911, is 536870912"),
    ],
)
def test_errors_of_one_key_are_reported_there(data, what):
    reading = Reading(lambda path: SourceLocation("rig.yaml", 7, ".".join(map(str, path))), [])
    assert read(EstopParams, data, ("estop",), reading) is None
    assert [str(error) for error in reading.errors] == [f"rig.yaml:7 estop.{what}"]


# --- a file ---


@pytest.fixture
def pin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gpio").mkdir()
    path = Path("gpio/value")
    path.write_text("0\n")
    return path


@pytest.mark.parametrize(
    ("content", "reads"),
    [
        ("1\n", "'1'"),
        ("1", "'1'"),
        ("10", "'1'"),
        ("2\n", "'2', neither '1' nor '0'"),
        ("", "'', neither '1' nor '0'"),
        ("\n0", "'\\n', neither '1' nor '0'"),
        (" 0", "' ', neither '1' nor '0'"),
        ("\0", "'\\x00', neither '1' nor '0'"),
        ("off", "'o', neither '1' nor '0'"),
        (b"\xff0", "'\ufffd', neither '1' nor '0'"),
    ],
)
def test_anything_but_the_released_word_is_pressed(opened, pin, content, reads):
    stop = opened(file="gpio/value")
    assert stop.pressed() == stop.pressed() == ""
    pin.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert stop.pressed() == f"the emergency stop: 'gpio/value' reads {reads}"


@pytest.mark.parametrize("content", ["0\n", "0", "01", "0 released"])
def test_only_the_first_character_counts(opened, pin, content):
    stop = opened(file="gpio/value")
    pin.write_text(content)
    assert stop.pressed() == ""


def test_contacts_that_open_have_their_words_the_other_way_round(opened, pin):
    pin.write_text("1\n")
    stop = opened(file="gpio/value", pressed="0", released="1")
    assert stop.pressed() == ""
    pin.write_text("0\n")
    assert stop.pressed() == "the emergency stop: 'gpio/value' reads '0'"


def test_a_file_that_takes_the_place_of_the_first_counts(opened, pin):
    stop = opened(file="gpio/value")
    for content in ("0\n", "0", "1\n"):
        assert stop.pressed() == ""
        Path("other").write_text(content)
        os.replace("other", pin)
    assert stop.pressed() == "the emergency stop: 'gpio/value' reads '1'"


def test_a_file_that_is_gone_is_pressed_until_it_is_back(opened, pin):
    stop = opened(file="gpio/value")
    pin.unlink()
    cause = "the emergency stop: 'gpio/value' cannot be read (No such file or directory)"
    assert stop.pressed() == stays(stop) == cause
    pin.write_text("0")
    assert stop.pressed() == cause
    stop.reset()
    assert stop.pressed() == ""


def test_a_fifo_without_a_writer_is_pressed_and_does_not_block(opened, pin):
    pin.unlink()
    os.mkfifo(pin)
    assert opened(file="gpio/value").pressed() == "the emergency stop: 'gpio/value' reads '', neither '1' nor '0'"


def test_one_that_is_pressed_at_the_start_is_no_mistake(opened, pin):
    pin.write_text("1")
    assert opened(file="gpio/value").pressed() == "the emergency stop: 'gpio/value' reads '1'"


def test_no_file_stays_open(opened, pin):
    stop, before = opened(file="gpio/value"), len(os.listdir("/proc/self/fd"))
    for content in ("0", "", "1"):
        pin.write_text(content)
        stop.pressed()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("gpio/none", "No such file or directory"),
        ("gpio/value/below", "Not a directory"),
        ("gpio", "Is a directory"),
        ("", "No such file or directory"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_read_at_the_start(pin, path, why):
    shown = path.replace("\0", r"\u0000")
    assert (
        refused(file=path)
        == f"rig.yaml:7 guard.estop.file: cannot read '{shown}': {why}; check its path and its permissions"
    )


# --- several at once, and the latch ---


def test_each_of_several_inputs_stops(terminal, pin, bus, opened, cause, request):
    _, send = bus
    stop = opened(key="esc", file="gpio/value", interface="virtual", channel=request.node.name, id=0x10)
    assert stop.pressed() == ""
    terminal.type(b"\x1b")
    assert stop.pressed() == "the emergency stop: key esc"
    stop.reset()
    send(0x10, b"\1")
    assert stop.pressed() == cause
    send(0x10, b"\0")
    stop.reset()
    pin.write_text("1")
    assert stop.pressed() == "the emergency stop: 'gpio/value' reads '1'"
    pin.write_text("0")
    stop.reset()
    assert stop.pressed() == ""


def test_it_stays_pressed_with_its_first_cause_until_the_reset(terminal, pin, opened):
    stop = opened(key="space", file="gpio/value")
    terminal.type(b" ")
    first = stop.pressed()
    pin.write_text("1")
    assert stop.pressed() == first == "the emergency stop: key space"
    assert stays(stop) == "the emergency stop: 'gpio/value' reads '1'"
    pin.write_text("0")
    assert stop.pressed() == "the emergency stop: 'gpio/value' reads '1'"
    stop.reset()
    assert stop.pressed() == ""


def test_a_reset_of_what_was_not_pressed_is_nothing(pin, opened):
    stop = opened(file="gpio/value")
    stop.reset()
    assert stop.pressed() == ""


def test_importing_it_is_light():
    heavy = "('can', 'termios', 'casadi', 'llvmlite')"
    code = f"import sys, cosim.hardware.estop; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "[]\n"
