"""The emergency stop by a message on a CAN bus."""

import errno
import sys
from contextlib import ExitStack

import can
import pytest

from cosim.hardware.estop import MAX_BEFORE_RESET, MAX_PER_POLL, EstopParams, open_estop
from tests.hardware.estop_helpers import place, refused, stays

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
