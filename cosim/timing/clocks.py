"""Clocks in machine code: reading the monotonic clock, sleeping to a time of it, waiting for a pulse.

Loops in machine code call them by address and Python calls the same code, without the interpreter's lock, so both
are on time in the same way. Times are whole nanoseconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from contextlib import suppress
from functools import cache
from typing import Protocol

import numpy as np

from cosim.compile.jit import Library
from cosim.errors import RunError

NO_PULSE = -1  # what a wait returns in place of a time
MOST_OLD = 10_000  # reads from what may never be empty
AT_ONCE = 4096  # bytes

_MONOTONIC, _THREAD_CPU, _ABSOLUTE, _INTERRUPTED = 1, 3, 1, 4
_SPIN, _LEAVE, _FILE, _TIMEOUT, _SIZE = range(5)  # places in the context of a wait
LOOK_NS = 50_000_000  # the longest that a wait does not look whether it is to be left


class Clock(Protocol):
    """What paces ticks. `functions`: addresses of now, cpu and wait, and that of the context that wait is given."""

    functions: tuple[int, ...]

    def begin(self) -> None:
        """Ticks begin: what came before is not for them."""
        ...

    def leave(self) -> None:
        """From any thread: a wait, this one or the next, ends soon, whatever the time."""
        ...

    def now(self) -> int: ...

    def cpu(self) -> int:
        """Processor time of the calling thread [ns]."""
        ...

    def wait(self, due_ns: int) -> int:
        """Wait for the tick that is due then; when it may begin, or `NO_PULSE`."""
        ...


class NativeClock:
    """The machine's monotonic clock. Raises RunError where the system has no absolute sleep."""

    def __init__(self, spin_ns: int = 0) -> None:
        """spin_ns: a wait sleeps until so long before its time and looks at the clock for the rest."""
        self._library = _library()
        self._context = np.zeros(5, dtype=np.int64)
        self._context[_SPIN] = spin_ns
        self._bind("cosim.sleep")

    def _bind(self, wait: str) -> None:
        addresses = [self._library[name] for name in ("cosim.now", "cosim.cpu", wait)]
        self.functions: tuple[int, ...] = (*addresses, self._context.ctypes.data)
        whole = ctypes.c_int64
        self.now, self.cpu = (ctypes.CFUNCTYPE(whole)(address) for address in addresses[:2])
        self._wait = ctypes.CFUNCTYPE(whole, whole, ctypes.c_void_p)(addresses[2])

    def begin(self) -> None:
        self._context[_LEAVE] = 0

    def leave(self) -> None:
        self._context[_LEAVE] = 1

    def wait(self, due_ns: int) -> int:
        return self._wait(due_ns, self.functions[3])

    def wait_until(self, due_ns: int, spin_ns: int = 0) -> int:
        """Sleep to the time, looking at the clock for the last `spin_ns`; the time then."""
        self._context[_SPIN] = spin_ns
        return self._wait(due_ns, self.functions[3])

    def latencies(self, first_due_ns: int, period_ns: int, count: int) -> np.ndarray:
        """(count,) int64 ns: how late waits for times a period apart ended, all taken in machine code."""
        found = np.zeros(count, dtype=np.int64)
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2)(self._library["cosim.latencies"])
        run(first_due_ns, period_ns, count, self.functions[3], found.ctypes.data)
        return found


class PulseClock(NativeClock):
    """A clock whose waits end when there is something to read from a file, device or FIFO."""

    def __init__(self, path: str, timeout_ns: int) -> None:
        """Raises OSError when the path cannot be opened."""
        super().__init__()
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._context[_FILE:] = self._file, max(timeout_ns // 1_000_000, 1), _pulse_size(self._file, path)
        self._bind("cosim.pulse")

    def begin(self) -> None:
        """Pulses that wait in the file are old."""
        super().begin()
        size = int(self._context[_SIZE])
        with suppress(OSError):
            for _ in range(MOST_OLD):
                if not os.read(self._file, AT_ONCE if size == 1 else size):
                    return

    def close(self) -> None:
        os.close(self._file)


def _pulse_size(file: int, path: str) -> int:
    """Bytes of one pulse: FIFOs and terminals count each byte, devices of user space I/O read 4, timers 8."""
    if stat.S_ISFIFO(os.fstat(file).st_mode) or os.isatty(file):
        return 1
    return 4 if os.path.basename(path).startswith("uio") else 8


@cache
def native_clock() -> NativeClock:
    return NativeClock()


@cache
def _library() -> Library:
    if not sys.platform.startswith("linux"):
        raise RunError("runs on time need Linux; run without real time here")
    return Library(_CODE, [f"cosim.{name}" for name in ("now", "cpu", "sleep", "pulse", "latencies")], {})


def _read(name: str, clock: int) -> str:
    return f"""
define i64 @cosim.{name}() nounwind {{
  %time = alloca [2 x i64], align 8
  %rc = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %s = load i64, ptr %time
  %rest = getelementptr inbounds i64, ptr %time, i64 1
  %ns = load i64, ptr %rest
  %whole = mul i64 %s, 1000000000
  %sum = add i64 %whole, %ns
  ret i64 %sum
}}
"""


_CODE = (
    """
declare i32 @clock_nanosleep(i32, i32, ptr, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @poll(ptr, i64, i32)
declare i64 @read(i32, ptr, i64)
"""
    + _read("now", _MONOTONIC)
    + _read("cpu", _THREAD_CPU)
    + f"""
define i64 @cosim.sleep(i64 %due, ptr %context) nounwind {{
entry:
  %time = alloca [2 x i64], align 8
  %rest = getelementptr inbounds i64, ptr %time, i64 1
  %leave.place = getelementptr inbounds i64, ptr %context, i64 {_LEAVE}
  %spin = load i64, ptr %context
  %until = sub i64 %due, %spin
  br label %again
again:
  %begun = call i64 @cosim.now()
  %soon = add i64 %begun, {LOOK_NS}
  %last = icmp sle i64 %until, %soon
  %to = select i1 %last, i64 %until, i64 %soon
  %s = sdiv i64 %to, 1000000000
  %ns = srem i64 %to, 1000000000
  store i64 %s, ptr %time
  store i64 %ns, ptr %rest
  br label %sleep
sleep:
  %rc = call i32 @clock_nanosleep(i32 {_MONOTONIC}, i32 {_ABSOLUTE}, ptr %time, ptr null)
  %interrupted = icmp eq i32 %rc, {_INTERRUPTED}
  br i1 %interrupted, label %sleep, label %slept
slept:
  %leave = load atomic i64, ptr %leave.place acquire, align 8
  %left = icmp ne i64 %leave, 0
  br i1 %left, label %leaving, label %stay
leaving:
  %left.at = call i64 @cosim.now()
  ret i64 %left.at
stay:
  br i1 %last, label %look, label %again
look:
  %woke = call i64 @cosim.now()
  %early = icmp slt i64 %woke, %due
  %spins = icmp sgt i64 %spin, 0
  %spinning = and i1 %early, %spins
  br i1 %spinning, label %look, label %awake
awake:
  ret i64 %woke
}}

define i64 @cosim.pulse(i64 %due, ptr %context) nounwind {{
entry:
  %polled = alloca [2 x i32], align 8
  %bytes = alloca i64, align 8
  %leave.place = getelementptr inbounds i64, ptr %context, i64 {_LEAVE}
  %file.place = getelementptr inbounds i64, ptr %context, i64 {_FILE}
  %timeout.place = getelementptr inbounds i64, ptr %context, i64 {_TIMEOUT}
  %size.place = getelementptr inbounds i64, ptr %context, i64 {_SIZE}
  %file.whole = load i64, ptr %file.place
  %timeout.whole = load i64, ptr %timeout.place
  %size = load i64, ptr %size.place
  %file = trunc i64 %file.whole to i32
  %timeout.ns = mul i64 %timeout.whole, 1000000
  %begun = call i64 @cosim.now()
  %until = add i64 %begun, %timeout.ns
  %events = getelementptr inbounds i32, ptr %polled, i64 1
  store i32 %file, ptr %polled
  store i32 1, ptr %events
  br label %look
look:
  %rest.ns = phi i64 [ %timeout.ns, %entry ], [ %rest.next, %stay ]
  %short = icmp slt i64 %rest.ns, {LOOK_NS}
  %slice.ns = select i1 %short, i64 %rest.ns, i64 {LOOK_NS}
  %slice.more = add i64 %slice.ns, 999999
  %slice = sdiv i64 %slice.more, 1000000
  %slice.ms = trunc i64 %slice to i32
  %ready = call i32 @poll(ptr %polled, i64 1, i32 %slice.ms)
  %some = icmp sgt i32 %ready, 0
  br i1 %some, label %take, label %wait
wait:
  %leave = load atomic i64, ptr %leave.place acquire, align 8
  %left = icmp ne i64 %leave, 0
  br i1 %left, label %none, label %stay
stay:
  %looked = call i64 @cosim.now()
  %rest.next = sub i64 %until, %looked
  %over = icmp sle i64 %rest.next, 0
  br i1 %over, label %none, label %look
take:
  %got = call i64 @read(i32 %file, ptr %bytes, i64 %size)
  %any = icmp sgt i64 %got, 0
  br i1 %any, label %pulse, label %none
pulse:
  %now = call i64 @cosim.now()
  ret i64 %now
none:
  ret i64 {NO_PULSE}
}}

define void @cosim.latencies(i64 %first, i64 %period, i64 %count, ptr %context, ptr %found) nounwind {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %again ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %again, label %finish
again:
  %way = mul i64 %k, %period
  %due = add i64 %first, %way
  %woke = call i64 @cosim.sleep(i64 %due, ptr %context)
  %late = sub i64 %woke, %due
  %place = getelementptr inbounds i64, ptr %found, i64 %k
  store i64 %late, ptr %place
  %k.next = add i64 %k, 1
  br label %head
finish:
  ret void
}}
"""
)
