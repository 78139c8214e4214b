"""Times of arrival, in Python and in machine code; the wall clock is set or slewed, threads are interrupted."""

import ctypes
from itertools import pairwise

import numpy as np
import pytest

from cosim.drivers.transport import arrival as in_python
from cosim.drivers.transport.datagrams import CONTROL_SIZE, RAW_CAN, SocketMemory, arrival, sockets_at
from cosim.machine_code import entry, i64

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
        patch.setattr("cosim.drivers.transport.datagrams.clocks_now", lambda: (0, EPOCH))
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
