"""The emergency stop: each input pressed, not pressed and in doubt; the latch; the terminal given back."""

import errno
import os
import signal
import subprocess
import sys
import termios
import tty
from contextlib import ExitStack
from pathlib import Path

import can
import pytest

from cosim.errors import InputError, RunError, SourceLocation
from cosim.hardware.estop import MAX_BEFORE_RESET, MAX_PER_POLL, EstopParams, open_estop
from cosim.rig.reading.schema import Reading, read

AGAIN = "; it cannot be reset while it is pressed, release it and reset again"


def place(*keys):
    return SourceLocation("rig.yaml", 7, ".".join(("guard.estop", *keys)))


@pytest.fixture
def opened():
    """How to open an emergency stop that is closed with the test."""
    with ExitStack() as stack:
        yield lambda **given: open_estop(EstopParams(**given), place, stack)


def refused(**given):
    """The message for an input that cannot be had."""
    with pytest.raises(InputError) as caught, ExitStack() as stack:
        open_estop(EstopParams(**given), place, stack)
    return str(caught.value)


def stays(stop):
    """Why a reset is refused."""
    with pytest.raises(RunError) as caught:
        stop.reset()
    told = str(caught.value)
    assert told.endswith(AGAIN) and stop.pressed() == told.removesuffix(AGAIN)
    return stop.pressed()


# --- what may be asked for ---

MESSAGE = "a message needs all of 'interface', 'channel' and 'id'"
KEY = "'key' is {}; give space, esc or one ASCII character"
WORDS = "'pressed' and 'released' are {}; give one character each, not the same"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({}, "give at least one of 'key', 'file' and a message ('interface', 'channel' and 'id')"),
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
def test_mistakes_are_told_at_the_section(data, what):
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
def test_mistakes_of_one_key_are_told_there(data, what):
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


def test_a_fifo_that_nobody_writes_to_is_pressed_and_not_waited_for(opened, pin):
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
    assert (
        refused(file=path)
        == f"rig.yaml:7 guard.estop.file: cannot read '{path}': {why}; check its path and its permissions"
    )


# --- a message on a CAN bus ---


@pytest.fixture
def bus(request, opened):
    """(how to open a stop by message on it, how to send)."""
    channel = request.node.name
    sender = can.Bus(interface="virtual", channel=channel)

    def send(identifier, data=b"", **more):
        more.setdefault("is_extended_id", identifier > 0x7FF)
        sender.send(can.Message(arbitration_id=identifier, data=data, **more))

    yield lambda identifier=0x10: opened(interface="virtual", channel=channel, id=identifier), send
    sender.shutdown()


@pytest.fixture
def cause(request):
    return f"the emergency stop: message 0x10 on virtual {request.node.name}"


@pytest.mark.parametrize(
    "message",
    [
        {"data": b"\1"},
        {"data": b"\xff\0\0"},
        {"data": b""},
        {"is_remote_frame": True},
        {"data": b"\1" * 64, "is_fd": True},
    ],
)
def test_a_message_that_carries_nothing_or_anything_but_0_stops(bus, cause, message):
    stop, send = bus[0](), bus[1]
    assert stop.pressed() == ""
    send(0x10, **message)
    assert stop.pressed() == cause


def test_a_message_with_0_first_does_not(bus):
    stop, send = bus[0](), bus[1]
    for data in (b"\0", b"\0\1", bytes(8)):
        send(0x10, data)
        assert stop.pressed() == ""


# what stops → what else is on the bus: (identifier, whether it is an extended one)
OTHERS = {
    0x10: [(0x11, False), (0x0, False), (0x410, False), (0x10, True), (0x10000010, True)],
    0x7FF: [(0x7FE, False), (0x7FF, True), (0x1FFFFFFF, True)],
    0x0: [(0x1, False), (0x0, True)],
    0x800: [(0x0, False), (0x0, True), (0x801, True), (0x10000800, True)],
}


@pytest.mark.parametrize(("own", "others"), OTHERS.items(), ids=lambda value: "")
def test_other_messages_do_not(bus, own, others):
    stop, send = bus[0](own), bus[1]
    for other, wide in others:
        send(other, b"\1", is_extended_id=wide)
    assert stop.pressed() == ""
    send(own, b"\1")
    assert f"message {own:#x} on" in stop.pressed()


def test_a_tap_between_two_looks_is_seen(bus, cause):
    stop, send = bus[0](), bus[1]
    for data in (b"\0", b"\1", b"\0"):
        send(0x10, data)
    assert stop.pressed() == cause
    stop.reset()
    assert stop.pressed() == ""


def test_a_busy_bus_does_not_hide_it(bus, cause):
    """Up to as many messages as a look reads, it is found at once; more take more looks."""
    stop, send = bus[0](), bus[1]
    for _ in range(2 * MAX_PER_POLL - 1):
        send(0x300, b"\1")
    send(0x10, b"\1")
    assert [stop.pressed(), stop.pressed()] == ["", cause]


def test_only_a_message_with_0_lets_it_be_reset(bus, cause):
    stop, send = bus[0](), bus[1]
    send(0x10)
    assert stop.pressed() == stays(stop) == cause
    for _ in range(3 * MAX_PER_POLL):
        send(0x10, b"\1")
    assert stays(stop) == cause
    for data in [b"\1"] * 3 * MAX_PER_POLL + [b"\0"]:
        send(0x10, data)
    stop.reset()
    assert stop.pressed() == ""


def test_a_bus_that_brings_messages_without_end_cannot_be_reset(bus, cause, monkeypatch):
    stop = bus[0]()
    flood = can.Message(arbitration_id=0x10, data=b"\0", is_extended_id=False)
    monkeypatch.setattr(stop._sources[0]._bus, "recv", lambda timeout: flood)
    assert stop.pressed() == ""
    assert stays(stop) == cause
    assert MAX_PER_POLL < MAX_BEFORE_RESET


def test_an_error_that_the_bus_reports_stops_until_the_sender_is_heard_again(bus, cause):
    stop, send = bus[0](), bus[1]
    send(0x4, bytes(8), is_error_frame=True)
    doubt = f"{cause} may be lost, the bus reports an error"
    assert stop.pressed() == stays(stop) == doubt
    send(0x10, b"\0")
    stop.reset()
    assert stop.pressed() == ""


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (can.CanOperationError("the controller is\n off the bus"), "the controller is off the bus"),
        (OSError(errno.ENODEV, "No such device"), "No such device"),
        (ValueError(), "ValueError"),
    ],
)
def test_a_bus_that_fails_is_pressed(bus, cause, monkeypatch, error, why):
    stop = bus[0]()

    def fail(timeout):
        raise error

    monkeypatch.setattr(stop._sources[0]._bus, "recv", fail)
    assert stop.pressed() == stays(stop) == f"{cause} cannot be read ({why})"


def test_no_look_waits_and_only_kernels_filter(monkeypatch):
    asked = []

    class Bus:
        def __init__(self, **how):
            asked.append(how)

        def recv(self, timeout):
            asked.append(timeout)

        def shutdown(self):
            raise can.CanOperationError("gone")  # must not matter

    monkeypatch.setattr(can, "Bus", Bus)
    for interface, identifier in (("socketcan", 0x10), ("socketcan", 0x800), ("slcan", 0x10)):
        with ExitStack() as stack:
            given = EstopParams(interface=interface, channel="can0", id=identifier)
            assert open_estop(given, place, stack).pressed() == ""
    narrow = [{"can_id": 0x10, "can_mask": 0x7FF, "extended": False}]
    wide = [{"can_id": 0x800, "can_mask": 0x1FFFFFFF, "extended": True}]
    assert asked == [
        {"channel": "can0", "interface": "socketcan", "can_filters": narrow},
        0.0,
        {"channel": "can0", "interface": "socketcan", "can_filters": wide},
        0.0,
        {"channel": "can0", "interface": "slcan", "can_filters": None},
        0.0,
    ]


def test_the_bus_is_closed_with_the_stack():
    with ExitStack() as stack:
        stop = open_estop(EstopParams(interface="virtual", channel="closing", id=1), place, stack)
        assert stop.pressed() == ""
    assert "cannot be read" in stop.pressed()


@pytest.mark.parametrize("interface", ["nothing", "socketcan", "slcan", "serial"])
def test_a_bus_that_is_missing_is_told_in_one_line(interface):
    told = refused(interface=interface, channel="nowhere7", id=1)
    assert told.startswith(f"rig.yaml:7 guard.estop.channel: cannot open the CAN bus 'nowhere7' ({interface}): ")
    assert told.endswith("; check its name and its cable") and "\n" not in told


def test_without_python_can(monkeypatch):
    monkeypatch.setitem(sys.modules, "can", None)
    what = "an emergency stop by message needs python-can: pip install 'cosim[can]'"
    assert refused(interface="virtual", channel="any", id=1) == f"rig.yaml:7 guard.estop.interface: {what}"


# --- a key ---


class Terminal:
    """A terminal whose keyboard is in the hands of the test."""

    def __init__(self) -> None:
        self.leader, self.follower = os.openpty()

    def type(self, keys: bytes) -> None:
        os.write(self.leader, keys)

    @property
    def mode(self) -> list:
        return termios.tcgetattr(self.follower)

    def close(self) -> None:
        for file in (self.leader, self.follower):
            if file >= 0:
                os.close(file)
        self.leader = self.follower = -1


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    with os.fdopen(os.dup(terminal.follower)) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield terminal
    terminal.close()


@pytest.mark.parametrize(
    ("key", "typed"),
    [
        ("space", b" "),
        (" ", b" "),
        ("esc", b"\x1b"),
        ("q", b"q"),
        ("q", b"Q"),
        ("Q", b"q"),
        ("~", b"~"),
        ("5", b"abc5def"),
        ("esc", b"\x1b[A"),  # an arrow key; better once too often than not at all
    ],
)
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


def test_what_was_typed_before_counts(terminal, opened):
    terminal.type(b" ")
    assert opened(key="space").pressed() == "the emergency stop: key space"


def test_a_key_that_was_pressed_again_is_told_at_the_reset(terminal, opened):
    stop = opened(key="space")
    terminal.type(b" ")
    assert stop.pressed() == "the emergency stop: key space"
    terminal.type(b"x  ")
    assert stays(stop) == "the emergency stop: key space"
    terminal.type(b"x")
    stop.reset()
    assert stop.pressed() == ""
    terminal.type(b" ")
    assert stays(stop) == "the emergency stop: key space"  # also where a reset is the first to see it


def test_keys_are_not_shown_nor_kept_until_the_line_ends_and_cannot_hold_the_loop_up(terminal, opened):
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


def test_the_terminal_is_given_back_with_nothing_typed_in_it(terminal):
    before = terminal.mode
    with ExitStack() as stack:
        open_estop(EstopParams(key="space"), place, stack)
        assert terminal.mode != before
        terminal.type(b"reboot\n")
    assert terminal.mode == before
    os.set_blocking(terminal.follower, False)
    with pytest.raises(BlockingIOError):
        os.read(terminal.follower, 100)


def test_it_is_given_back_once(terminal):
    with ExitStack() as stack:
        stop = open_estop(EstopParams(key="space"), place, stack)
    tty.setraw(terminal.follower)
    mode = terminal.mode
    stop._sources[0].close()
    assert terminal.mode == mode


def test_it_is_given_back_when_another_input_cannot_be_had(terminal):
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
def test_it_is_given_back_by_a_program_that_does_not_close_it(how):
    terminal = Terminal()
    before = terminal.mode
    code = f"""
import sys, termios, time
from contextlib import ExitStack
from cosim.hardware.estop import EstopParams, open_estop
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
