"""The emergency stop: each input pressed, not pressed and in doubt; the latch; the terminal given back."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cosim.errors import SourceLocation
from cosim.hardware.estop import EstopParams
from cosim.rig.reading.schema import Reading, read
from tests.hardware.estop_helpers import refused, stays

# --- what may be asked for ---

CAN0 = {"interface": "socketcan", "channel": "can0"}
WRONG: dict[str, Any] = {
    "nothing": {},
    "no mapping": "space",
    "heartbeat of a key": {"key": "space", "heartbeat": 0.1},
    "words without a file": {"released": "x"},
    "no channel": {"interface": "socketcan"},
    "no id": CAN0,
    "no interface": {"key": "space", "channel": "can0", "id": 0},
    **{f"key {key!r}": {"key": key} for key in ("enter", "", "é", "\t", "\x7f", 5)},
    "both words 0": {"file": "value", "pressed": "0"},
    "long words": {"file": "value", "pressed": "on", "released": "off"},
    "no word for released": {"file": "value", "released": ""},
    "no word for pressed": {"file": "value", "pressed": ""},
    "number for a word": {"file": "value", "released": 1},
    "id below 0": CAN0 | {"id": -1},
    "id of 30 bits": CAN0 | {"id": 0x20000000},
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_errors_are_reported_at_the_section_or_its_key(data, said):
    reading = Reading(lambda path: SourceLocation("rig.yaml", 7, ".".join(map(str, path))), [])
    assert read(EstopParams, data, ("guard", "estop"), reading) is None
    (error,) = map(str, reading.errors)
    assert error.startswith("rig.yaml:7 guard.estop")
    said(error)


# --- a file ---


@pytest.fixture
def pin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gpio").mkdir()
    path = Path("gpio/value")
    path.write_text("0\n")
    return path


@pytest.mark.parametrize(
    "content", [b"1\n", b"1", b"10", b"2\n", b"", b"\n0", b" 0", b"\0", b"off", b"\xff0"], ids=repr
)
def test_anything_but_the_released_word_is_pressed(opened, pin, content, said):
    stop = opened(file="gpio/value")
    assert stop.pressed() == stop.pressed() == ""
    pin.write_bytes(content)
    assert stop.pressed().startswith("the emergency stop: 'gpio/value' reads ")
    said(stop.pressed())


@pytest.mark.parametrize("content", ["0\n", "0", "01", "0 released"])
def test_only_the_first_character_counts(opened, pin, content):
    stop = opened(file="gpio/value")
    pin.write_text(content)
    assert stop.pressed() == ""


def test_contacts_that_open_have_their_words_the_other_way_round(opened, pin):
    pin.write_text("1\n")
    assert opened(file="gpio/value").pressed()  # at the start
    stop = opened(file="gpio/value", pressed="0", released="1")
    stop.reset()  # of what was not pressed
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


def test_no_file_stays_open(opened, pin):
    stop, before = opened(file="gpio/value"), len(os.listdir("/proc/self/fd"))
    for content in ("0", "", "1"):
        pin.write_text(content)
        stop.pressed()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("path", ["gpio/none", "gpio/value/below", "gpio", "", "a\0b"])
def test_a_file_that_cannot_be_read_at_the_start(pin, path, said):
    said(refused(file=path))


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


def test_importing_it_is_light():
    heavy = "('can', 'termios', 'casadi', 'llvmlite')"
    code = f"import sys, cosim.hardware.estop; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "[]\n"
