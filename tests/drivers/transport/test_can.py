"""CAN buses: frames between connected, filters, deadlines, what is measured, nonsense that is passed over."""

import ctypes
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import can
import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.core.machine_code import entry, i64
from cosim.plugins.drivers.transport import CanFrame, CanParams, bus_lock, device_link, host_link, now
from cosim.plugins.drivers.transport import arrival as in_python
from cosim.plugins.drivers.transport.datagrams import CONTROL_SIZE, RAW_CAN, SocketMemory, arrival, sockets_at

from .conftest import SOON, assert_patient, lost, place, soon

names = itertools.count()


def virtual(**more):
    return CanParams("virtual", f"transport {os.getpid()} {next(names)}", **more)


def multicast(**more):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("", 0))
        return CanParams("udp_multicast", "239.74.163.2", options={"port": free.getsockname()[1]}, **more)


def bare(frame):
    return frame and frame._replace(t_ns=0)


FRAMES = [
    CanFrame(0x123, b"\x01\x02\x03"),
    CanFrame(0x7FF, b""),
    CanFrame(0x123, b"12345678", extended=True),
    CanFrame(0x1FFFFFFF, b"1", extended=True),
    CanFrame(0x009, bytes(8), remote=True),
    CanFrame(0x009, b"", remote=True),
]
FD_FRAMES = [CanFrame(0x8001, bytes(range(48)), extended=True, fd=True, switched=True), CanFrame(1, bytes(12), fd=True)]


@pytest.mark.parametrize("make", [virtual, multicast])
def test_frames_go_both_ways_and_never_come_back(make, connected):
    host, device = connected(make(fd=True))
    for frame in FRAMES + FD_FRAMES:
        before = now()
        host.send(frame, now() + SOON)
        got = device.receive(now() + SOON)
        assert bare(got) == frame
        assert before < got.t_ns <= now()
        device.send(frame, now() + SOON)
        assert bare(host.receive(now() + SOON)) == frame
    assert host.receive(0) is None
    assert device.receive(0) is None


def test_can_fd_frames_are_not_for_a_classic_bus(connected):
    host, device = connected(multicast())
    stranger = can.Bus(interface="udp_multicast", channel="239.74.163.2", hop_limit=0, **host.params.options)
    try:
        stranger.send(can.Message(arbitration_id=1, is_fd=True, data=bytes(12)))
        stranger.send(can.Message(arbitration_id=2, is_extended_id=False))
        assert device.receive(now() + SOON).id == 2
    finally:
        stranger.shutdown()


@pytest.mark.parametrize("make", [virtual, multicast])
def test_only_accepted_frames_come_though_others_stand_before_them(make, connected):
    host, device = connected(make())
    device.accept([5, 0x12345])
    for number in (1, 2, 3, 5, 4):
        host.send(CanFrame(number, b""), now() + SOON)
    host.send(CanFrame(0x12345, b"", extended=True), now() + SOON)
    assert device.receive(now() + SOON).id == 5
    assert device.receive(now() + SOON).id == 0x12345
    device.accept(None)
    host.send(CanFrame(1, b""), now() + SOON)
    assert device.receive(now() + SOON).id == 1


@pytest.mark.parametrize("make", [virtual, multicast])
def test_silence_ends_with_the_deadline_and_a_frame_ends_the_wait(make, connected):
    host, device = connected(make())
    assert_patient(host)
    with soon(lambda: device.send(CanFrame(1, b"x"), now() + SOON)):
        assert bare(host.receive(now() + 20 * SOON)) == CanFrame(1, b"x")


def test_a_wall_clock_that_is_set_back_prolongs_nothing(connected, monkeypatch):
    host, device = connected(multicast())
    clock = itertools.count(1e9, -3600)
    monkeypatch.setattr(can.bus, "time", lambda: next(clock))
    began = now()
    assert host.receive(began + 10_000_000) is None
    device.send(CanFrame(1, b""), now() + SOON)
    assert host.receive(now() + SOON) is not None
    assert now() - began < SOON


def test_what_went_over_the_bus_is_measured(connected):
    host, device = connected(virtual())
    for _ in range(3):
        host.send(CanFrame(1, bytes(8)), now() + SOON)
        device.receive(now() + SOON)
    assert (host.meter.items_out, host.meter.bits_out, host.meter.items_in) == (3, 405, 0)
    assert (device.meter.items_in, device.meter.bits_in, device.meter.errors) == (3, 405, 0)


def test_nonsense_on_the_bus_is_counted_and_passed_over(connected):
    params = multicast()
    host, device = connected(params)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        for junk in (b"", b"\xff\x00nonsense", b"\x81\xa1a\x01"):
            stranger.sendto(junk, (params.channel, params.options["port"]))
    host.send(CanFrame(1, b"x"), now() + SOON)
    assert bare(device.receive(now() + SOON)) == CanFrame(1, b"x")
    assert device.meter.errors == 3


def test_a_frame_that_waited_is_as_old_as_it_is(connected, monkeypatch):
    """Where the interface stamps frames; a wall clock that was set meanwhile is not believed."""
    host, device = connected(virtual())
    before = now()
    device.send(CanFrame(1, b""), now() + SOON)
    after = now()
    time.sleep(0.05)
    assert before - 10**7 < host.receive(now() + SOON).t_ns < after + 10**7
    for shift in (-3600.0, 3600.0, 0.3):
        device.send(CanFrame(1, b""), now() + SOON)
        asked = now()
        other = time.time_ns() + int(shift * 1e9)
        monkeypatch.setattr("cosim.plugins.drivers.transport.arrival.time.time_ns", lambda other=other: other)
        assert asked <= host.receive(now() + SOON).t_ns <= now()
        monkeypatch.undo()


@pytest.mark.parametrize("params", [virtual, multicast])
def test_a_node_shows_the_others_that_the_bus_is_off(connected, params):
    host, device = connected(params())
    device.bus_off()
    assert "bus off: " in lost(host.receive, now() + SOON)
    assert device.receive(now()) is None  # it does not receive its own frames


# --- times of arrival, in Python and in machine code, while the wall clock is set ---

MS = 1_000_000
EPOCH = 1_700_000_000_000 * MS  # of the wall clock when the monotonic one shows 0
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)


@entry(i64, i64, i64, i64, i64)
def _arrival(link: int, place: int, taken: int, wall: int) -> int:
    return arrival(sockets_at(link, 1)[0], place, taken, wall)


class InPython:
    def __init__(self, patch):
        self.patch = patch
        self.at(0, EPOCH)
        self.times = in_python.ArrivalTimes()

    def at(self, taken, wall):
        self.patch.setattr(in_python, "both_clocks", lambda: (taken, wall))

    def __call__(self, taken, wall, stamp):
        self.at(taken, wall)
        return self.times.of(stamp)


class InMachineCode:
    def __init__(self, patch):
        patch.setattr("cosim.plugins.drivers.transport.datagrams.clocks_now", lambda: (0, EPOCH))
        self.memory, self.call = SocketMemory(0, RAW_CAN), _CALL(_arrival.address)

    def __call__(self, taken, wall, stamp):
        level_and_type = 1 | 35 << 32  # SOL_SOCKET, SCM_TIMESTAMPNS
        control = np.array([32, level_and_type, *divmod(stamp, 10**9)], np.int64)
        self.memory._controls[0] = np.frombuffer(control.tobytes().ljust(CONTROL_SIZE, b"\0"), np.uint8)
        return self.call(self.memory.record.ctypes.data, 0, taken, wall)


# the wall clock against the monotonic one: by how much it is ahead [ns] at t [ns], it was 0 at first
CLOCKS = {
    "left alone": lambda t: 0,
    "slewed forward": lambda t: t // 12,
    "slewed back": lambda t: -t // 12,
    "set forward by 0.3 s": lambda t: 300 * MS * (t > 50 * MS),
    "set forward by an hour": lambda t: 3600_000 * MS * (t > 50 * MS),
    "set back by 5 ms": lambda t: -5 * MS * (t > 50 * MS),
    "set back by an hour": lambda t: -3600_000 * MS * (t > 50 * MS),
}


@pytest.mark.parametrize("engine", [InPython, InMachineCode])
@pytest.mark.parametrize("ahead", CLOCKS.values(), ids=CLOCKS)
def test_a_frame_comes_when_it_comes_whatever_happens_to_the_wall_clock(engine, ahead, monkeypatch):
    """Frames at 1 kHz that wait for 3 ms: none is earlier than it was by more than the wall clock was slewed in its
    waiting time, none is later than it was taken, and none comes before the one before it."""
    times, waited = engine(monkeypatch), 3 * MS
    came = range(MS, 100 * MS, MS)
    found = [times(t + waited, EPOCH + t + waited + ahead(t + waited), EPOCH + t + ahead(t)) for t in came]
    assert all(t - waited // 10 <= each <= t + waited for t, each in zip(came, found, strict=True))
    assert all(before <= after for before, after in pairwise(found))
    on_time = [t for t, each in zip(came, found, strict=True) if each <= t + waited // 10]
    assert len(on_time) > len(came) - 6  # all but those that waited while the clock was set, or came meanwhile


def test_the_clocks_are_read_again_after_an_interruption(monkeypatch):
    """A thread that is interrupted between the two clocks would see a frame as old as the interruption is long."""
    shown = iter([0, 8 * MS, 8 * MS, 8 * MS + 100])  # of the monotonic clock; it stood still for the second pair
    walls = iter([EPOCH + 8 * MS, EPOCH + 8 * MS])
    monkeypatch.setattr(in_python.time, "monotonic_ns", lambda: next(shown))
    monkeypatch.setattr(in_python.time, "time_ns", lambda: next(walls))
    assert in_python.both_clocks() == (8 * MS, EPOCH + 8 * MS)


# --- one program per bus of a machine ---

GROUP = "239.74.16.3"
BUS = CanParams("udp_multicast", GROUP)
OTHER = f"""
import sys
from cosim.plugins.drivers.transport import CanParams, bus_lock, {{end}}_link
bus_lock.NAMESPACE = {{namespace!r}}
link = {{end}}_link(CanParams("udp_multicast", "{GROUP}"), lambda *keys: None)
link.open()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Another program that has opened this end of the bus."""
    script = OTHER.format(end=request.param, namespace=bus_lock.NAMESPACE)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        yield process
        process.kill()


@pytest.mark.parametrize(("other", "link"), [("host", host_link), ("device", device_link)], indirect=["other"])
def test_a_second_program_on_a_bus_is_refused_until_the_first_has_ended(other, link):
    second = link(BUS, place)
    with pytest.raises(InputError) as caught:
        second.open()
    command = f"{' '.join(f'{Path(other.args[0]).name} -c {other.args[2]}'.split())[:80]}"
    assert str(caught.value) == (
        f"rig.yaml:7 channel: the bus udp_multicast {GROUP} is in use by process {other.pid} ({command}); end it: two"
        " programs must not command the same bus"
    )
    other.kill()
    other.wait()
    second.open()
    second.close()


@pytest.mark.parametrize("other", ["device"], indirect=True)
def test_the_other_end_is_free(other):
    link = host_link(BUS, place)
    link.open()
    link.close()


def test_connections_of_one_program_share_a_bus_and_the_last_one_releases_it():
    first, second = host_link(BUS, place), host_link(BUS, place)
    first.open()
    second.open()
    second.close()
    assert len(bus_lock._sockets) == 1
    first.close()
    first.close()  # without effect
    assert not bus_lock._sockets


def test_a_bus_that_cannot_be_opened_is_not_locked():
    with pytest.raises(InputError):
        host_link(CanParams("socketcan", "nowhere7"), place).open()
    assert not bus_lock._sockets


def test_a_holder_that_ends_meanwhile():
    assert bus_lock._holder("nobody") == "another process"
