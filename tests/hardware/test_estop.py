"""The emergency stop: each input pressed, not pressed and in doubt; the latch; the terminal given back."""

import errno
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import can
import pytest

from cosim.core.errors import SourceLocation
from cosim.execution.hardware.estop import MAX_BEFORE_RESET, MAX_PER_POLL, EstopParams, open_estop
from cosim.rig.reading.schema import Reading, read
from tests.hardware.estop_helpers import place, refused, stays

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
    code = f"import sys, cosim.execution.hardware.estop; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "[]\n"


# --- the emergency stop by a message on a CAN bus ---

MESSAGES = [{"data": b"\1"}, {"data": b"\xff\0\0"}, {"data": b""}, {"is_remote_frame": True}]


@pytest.mark.parametrize("message", [*MESSAGES, {"data": b"\1" * 64, "is_fd": True}], ids=str)
def test_a_message_that_carries_nothing_or_anything_but_0_first_stops(bus, cause, message):
    stop, send = bus[0](), bus[1]
    for data in (b"\0", b"\0\1", bytes(8)):
        send(0x10, data)
        assert stop.pressed() == ""
    send(0x10, **message)
    assert stop.pressed() == cause


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


def test_a_short_press_between_two_polls_counts(bus, cause):
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


def test_a_reported_bus_error_stops_until_the_next_message(bus, cause):
    stop, send = bus[0](), bus[1]
    send(0x4, bytes(8), is_error_frame=True)
    doubt = f"{cause} may be lost, the bus reports an error"
    assert stop.pressed() == stays(stop) == doubt
    send(0x10, b"\0")
    stop.reset()
    assert stop.pressed() == ""


OFF = can.CanOperationError("the controller is\n off the bus"), "the controller is off the bus"
GONE = OSError(errno.ENODEV, "No such device"), "No such device"


@pytest.mark.parametrize(("error", "why"), [OFF, GONE, (ValueError(), "ValueError")])
def test_a_bus_that_fails_is_pressed(bus, cause, monkeypatch, error, why):
    stop = bus[0]()

    def fail(timeout):
        raise error

    monkeypatch.setattr(stop._sources[0]._bus, "recv", fail)
    assert stop.pressed() == stays(stop) == f"{cause} cannot be read ({why})"


def test_no_poll_blocks_and_only_kernels_filter(monkeypatch):
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
    assert [how["can_filters"] for how in asked[::2]] == [narrow, wide, None]
    assert asked[1::2] == [0.0] * 3  # the time-outs
    assert asked[0] == {"channel": "can0", "interface": "socketcan", "can_filters": narrow}


# --- heartbeat: a dead-man switch ---


class Sender:
    """The other end of a heartbeat, and the clock of the stop: each reading takes 1 ns, while it beats, every tenth
    sends a heartbeat."""

    def __init__(self, send):
        self.send, self.time, self.beating = send, 0, False

    def __call__(self):
        self.time += 1
        if self.beating and self.time % 10 == 0:
            self.send(0x10, b"\0")
        return self.time


def reset(stop, sender):
    """Reset the stop while heartbeats arrive; the time of the last one."""
    sender.beating = True
    stop.reset()
    sender.beating = False
    sender.send(0x10, b"\0")
    assert stop.pressed() == ""
    return sender.time - 1


@pytest.fixture
def dead_man(request, bus):
    """(the stop with a heartbeat of 1 us, its sender)."""
    sender = Sender(bus[1])
    given = EstopParams(interface="virtual", channel=request.node.name, id=0x10, heartbeat=1e-6)
    with ExitStack() as stack:
        yield open_estop(given, place, stack, sender), sender


def test_silence_stops(dead_man, cause):
    stop, sender = dead_man
    heard = reset(stop, sender)
    while not stop.pressed():
        assert sender.time < heard + 1000
    assert sender.time == heard + 1000
    silence = cause.replace("message", "no message") + " for 1e-06 s"
    sender.send(0x10, b"\0")
    assert stop.pressed() == silence  # until it is reset
    reset(stop, sender)


def test_a_heartbeat_with_another_byte_presses(dead_man, cause):
    stop, sender = dead_man
    reset(stop, sender)
    sender.send(0x10, b"\1")
    assert stop.pressed() == cause


def test_a_heartbeat_from_before_the_reset_does_not_count(dead_man, cause):
    stop, sender = dead_man
    sender.send(0x10, b"\0")
    assert stays(stop) == cause.replace("message", "no message") + " for 1e-06 s"
    reset(stop, sender)


def test_another_multicast_group_is_not_heard():
    """Linux delivers what is sent to any joined group of the port; only the configured group counts."""
    own, other = "239.74.16.1", "239.74.16.2"
    with ExitStack() as stack:
        stop = open_estop(EstopParams(interface="udp_multicast", channel=own, id=0x10), place, stack)
        senders = {}
        for group in (own, other):
            senders[group] = can.Bus(interface="udp_multicast", channel=group, hop_limit=0)
            stack.callback(senders[group].shutdown)
        press = can.Message(arbitration_id=0x10, data=b"\1", is_extended_id=False)
        senders[other].send(press)
        assert senders[other].recv(1.0) is not None  # it has been delivered on this machine
        assert stop.pressed() == ""
        senders[own].send(press)
        assert senders[own].recv(1.0) is not None
        assert f"message 0x10 on udp_multicast {own}" in stop.pressed()


def test_the_bus_is_closed_with_the_stack():
    with ExitStack() as stack:
        stop = open_estop(EstopParams(interface="virtual", channel="closing", id=1), place, stack)
        assert stop.pressed() == ""
    assert "cannot be read" in stop.pressed()


@pytest.mark.parametrize("interface", ["nothing", "socketcan", "slcan", "serial"])
def test_a_missing_bus_is_reported_in_one_line(interface):
    reported = refused(interface=interface, channel="nowhere7", id=1)
    assert reported.startswith(f"rig.yaml:7 guard.estop.channel: cannot open the CAN bus 'nowhere7' ({interface}): ")
    assert reported.endswith("; check its name and its cable") and "\n" not in reported


def test_without_python_can(monkeypatch, said):
    monkeypatch.setitem(sys.modules, "can", None)
    said(refused(interface="virtual", channel="any", id=1))
