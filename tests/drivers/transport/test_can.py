"""CAN buses: frames between connected, filters, deadlines, what is measured, nonsense that is passed over."""

import itertools
import os
import socket
import time

import can
import pytest

from cosim.drivers.transport import CanFrame, CanParams, now

from .conftest import SOON, assert_patient, lost, soon

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
        monkeypatch.setattr("cosim.drivers.transport.arrival.time.time_ns", lambda other=other: other)
        assert asked <= host.receive(now() + SOON).t_ns <= now()
        monkeypatch.undo()


@pytest.mark.parametrize("params", [virtual, multicast])
def test_a_node_shows_the_others_that_the_bus_is_off(connected, params):
    host, device = connected(params())
    device.bus_off()
    assert "bus off: " in lost(host.receive, now() + SOON)
    assert device.receive(now()) is None  # it does not receive its own frames
