"""External triggers from a CAN bus."""

import errno
import sys
import time
from contextlib import ExitStack

import can
import pytest

from cosim.core.errors import RunError
from cosim.execution.timing.clock_sources import CanClock, open_clock, trigger_source
from cosim.simulation.loop.clocks import NO_TRIGGER
from cosim.simulation.loop.pacing import Pacing, Trigger
from cosim.simulation.loop.tick_ring import LoopStatus
from tests.timing.paced_engines import LONG, both_engines, engine_on


@pytest.fixture
def bus(request):
    """(how to open a clock on it, how to send)."""
    channel = request.node.name
    sender, opened = can.Bus(interface="virtual", channel=channel), []

    def open_one(identifier, timeout=60.0):
        opened.append(CanClock("virtual", channel, identifier, timeout))
        return opened[-1]

    def send(identifier, wide=False, **more):
        sender.send(can.Message(arbitration_id=identifier, is_extended_id=wide, **more))

    yield open_one, send
    for each in (*opened, sender):
        each.close() if isinstance(each, CanClock) else each.shutdown()


def test_every_message_of_the_identifier_is_a_trigger(bus):
    open_one, send = bus
    clock = open_one(0x80)
    before = clock.now()
    send(0x80)
    send(0x80, data=b"12345678")
    first, second = clock.wait(0), clock.wait(LONG)
    assert before <= first <= second <= time.monotonic_ns()


def test_messages_that_came_before_the_ticks_begin_are_old(bus):
    open_one, send = bus
    clock = open_one(0x80, timeout=0.02)
    for _ in range(20):
        send(0x80)
    clock.begin()
    assert clock.wait(0) == NO_TRIGGER
    send(0x80)
    assert clock.wait(0) > 0


# what a clock listens to → what else is on the bus: (identifier, whether it is an extended one)
OTHERS = {
    (0x80, False): [(0x81, False), (0x00, False), (0x180, False), (0x80, True), (0x480, False)],
    (0x7FF, False): [(0x7FE, False), (0x7FF, True), (0x1FFFFFFF, True)],
    (0x0, False): [(0x1, False), (0x0, True), (0x800, True)],
    (0x800, True): [(0x0, False), (0x0, True), (0x801, True), (0x10000800, True)],
    (0x1FFFFFFF, True): [(0x7FF, False), (0x1FFFFFFE, True), (0x0FFFFFFF, True)],
}


@pytest.mark.parametrize(("own", "others"), OTHERS.items(), ids=lambda value: "")
def test_other_messages_are_none(bus, own, others):
    open_one, send = bus
    identifier, wide = own
    clock = open_one(identifier, timeout=0.02)
    for other in others:
        send(*other)
    assert clock.wait(0) == NO_TRIGGER
    for other in others:
        send(*other)
    send(identifier, wide)
    assert clock.wait(0) > 0
    assert clock.wait(0) == NO_TRIGGER


def test_a_bus_that_fails_sends_no_trigger(bus, monkeypatch):
    clock = bus[0](0x80)

    def fail(*_):
        raise can.CanOperationError("the controller is off the bus")

    monkeypatch.setattr(clock._bus, "recv", fail)
    assert clock.wait(0) == NO_TRIGGER


def test_the_time_is_the_machines(bus):
    clock = bus[0](0x80)
    times = [time.monotonic_ns(), clock.now(), time.monotonic_ns()]
    assert times == sorted(times)
    times = [time.thread_time_ns(), clock.cpu(), time.thread_time_ns()]
    assert times == sorted(times)


@both_engines
def test_ticks_are_triggered_by_messages(loops, bus, engine_kind):
    open_one, send = bus
    engine, rings, take = engine_on(loops, open_one(0x1234567, timeout=0.02), engine_kind, 20)
    for _ in range(7):
        send(0x1234567, True)
        send(0x80)
    take()
    assert (rings.status, rings.waiting, engine.number) == (LoopStatus.NO_TRIGGER, 7, 7)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(errno.ENODEV, "No such device"), "[Errno 19] No such device"),
        (can.CanInitializationError("no\n  adapter  found"), "no adapter found"),
        (ValueError("bitrate?"), "bitrate?"),
        (NotImplementedError("not on this system"), "not on this system"),
    ],
)
def test_a_bus_that_is_missing(monkeypatch, error, why):
    def fail(**_):
        raise error

    monkeypatch.setattr(can, "Bus", fail)
    pacing = Pacing(trigger=Trigger(interface="socketcan", channel="can7"))
    with pytest.raises(RunError) as caught, ExitStack() as stack:
        open_clock(pacing, stack)
    assert str(caught.value) == f"cannot open the CAN bus 'can7' (socketcan): {why}"


@pytest.mark.parametrize("interface", ["nothing", "socketcan", "slcan", "pcan", "serial", "udp_multicast"])
def test_any_error_of_opening_a_bus_is_one_line(interface):
    with pytest.raises(RunError) as caught, ExitStack() as stack:
        open_clock(Pacing(trigger=Trigger(interface=interface, channel="nowhere7")), stack)
    reported = str(caught.value)
    assert reported.startswith(f"cannot open the CAN bus 'nowhere7' ({interface}): ") and "\n" not in reported


def test_without_python_can(monkeypatch):
    monkeypatch.setitem(sys.modules, "can", None)
    with pytest.raises(RunError) as caught, ExitStack() as stack:
        open_clock(Pacing(trigger=Trigger(interface="virtual", channel="any")), stack)
    assert str(caught.value) == "a trigger from a CAN bus needs python-can: pip install python-can"


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Trigger(file="/dev/uio0"), "'/dev/uio0'"),
        (Trigger(interface="socketcan", channel="can0", id=0x701), "CAN bus 'can0' (socketcan), identifier 0x701"),
    ],
)
def test_what_triggers_come_from_in_words(trigger, words):
    assert trigger_source(trigger) == words
