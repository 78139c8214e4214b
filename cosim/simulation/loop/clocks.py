"""Native clocks: reading the monotonic clock, sleeping to a time of it, waiting for an external trigger.

Compiled loops call them by address; Python calls the same code without the interpreter's lock, so both have the same
wake-up latency. Times are whole nanoseconds of CLOCK_MONOTONIC. In their LLVM IR, `i64 @cosim.now()`, `i64
@cosim.cpu()`; `i64 @cosim.sleep(due, context)` and `i64 @cosim.trigger(due, context)` wait and return the time or
NO_TRIGGER; `void @cosim.latencies(first, period, count, context, latencies)`.
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

from cosim.core.compile.jit import Library
from cosim.core.errors import RunError

__all__ = ["MAX_OLD", "NO_TRIGGER", "POLL_NS", "Clock", "NativeClock", "TriggerClock", "native_clock"]

NO_TRIGGER = -1  # what a wait returns instead of a time
SPIN, INTERRUPT, FILE, TIMEOUT, SIZE = range(5)  # places in the context of a wait
POLL_NS = 50_000_000  # ns, longest time between two looks at INTERRUPT

MONOTONIC, THREAD_CPU, ABSOLUTE = 1, 3, 1  # of <time.h>
INTERRUPTED = 4  # EINTR
SYMBOLS = tuple(f"cosim.{name}" for name in ("now", "cpu", "sleep", "trigger", "latencies"))

MAX_OLD = 10_000  # reads that discard old triggers, from a source that may never be empty
CHUNK = 4096  # bytes


class Clock(Protocol):
    """A clock that paces ticks. functions: addresses of now, cpu and wait, and of the context of wait."""

    functions: tuple[int, ...]

    def begin(self) -> None:
        """Prepare for ticks: discard triggers that came before."""
        ...

    def interrupt(self) -> None:
        """From any thread: end the present or the next wait soon, whatever the time."""
        ...

    def now(self) -> int: ...

    def cpu(self) -> int:
        """CPU time of the calling thread [ns]."""
        ...

    def wait(self, due_ns: int) -> int:
        """Wait for the tick that is due then; the time at which it may begin, or `NO_TRIGGER`."""
        ...


class NativeClock:
    """The machine's monotonic clock. Raises RunError where the system has no absolute sleep."""

    def __init__(self, spin_ns: int = 0) -> None:
        """spin_ns: the last part of a wait, in which it polls the clock instead of sleeping."""
        self._library = _library()
        self._context = np.zeros(5, dtype=np.int64)
        self._context[SPIN] = spin_ns
        self._bind("cosim.sleep")

    def _bind(self, wait: str) -> None:
        addresses = [self._library[name] for name in ("cosim.now", "cosim.cpu", wait)]
        self.functions: tuple[int, ...] = (*addresses, self._context.ctypes.data)
        whole = ctypes.c_int64
        self.now, self.cpu = (ctypes.CFUNCTYPE(whole)(address) for address in addresses[:2])
        self._wait = ctypes.CFUNCTYPE(whole, whole, ctypes.c_void_p)(addresses[2])

    def begin(self) -> None:
        self._context[INTERRUPT] = 0

    def interrupt(self) -> None:
        self._context[INTERRUPT] = 1

    def wait(self, due_ns: int) -> int:
        return self._wait(due_ns, self.functions[3])

    def wait_until(self, due_ns: int, spin_ns: int = 0) -> int:
        """Sleep until the time, polling the clock for the last `spin_ns`; the time then."""
        self._context[SPIN] = spin_ns
        return self._wait(due_ns, self.functions[3])

    def latencies(self, first_due_ns: int, period_ns: int, count: int) -> np.ndarray:
        """(count,) int64 ns: wake-up latencies of waits for times a period apart, measured in compiled code."""
        latencies = np.zeros(count, dtype=np.int64)
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2)(self._library["cosim.latencies"])
        run(first_due_ns, period_ns, count, self.functions[3], latencies.ctypes.data)
        return latencies


class TriggerClock(NativeClock):
    """A clock whose waits end when there is something to read from a file, device or FIFO."""

    def __init__(self, path: str, timeout_ns: int) -> None:
        """Raises OSError when the path cannot be opened."""
        super().__init__()
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._context[FILE:] = self._file, max(timeout_ns // 1_000_000, 1), _trigger_size(self._file, path)
        self._bind("cosim.trigger")

    def begin(self) -> None:
        super().begin()
        size = int(self._context[SIZE])
        with suppress(OSError):
            for _ in range(MAX_OLD):
                if not os.read(self._file, CHUNK if size == 1 else size):
                    return

    def close(self) -> None:
        os.close(self._file)


def _trigger_size(file: int, path: str) -> int:
    """Bytes of one trigger: 1 of FIFOs and terminals, 4 of devices of user space I/O, 8 of timers."""
    if stat.S_ISFIFO(os.fstat(file).st_mode) or os.isatty(file):
        return 1
    return 4 if os.path.basename(path).startswith("uio") else 8


@cache
def native_clock() -> NativeClock:
    return NativeClock()


@cache
def _library() -> Library:
    if not sys.platform.startswith("linux"):
        raise RunError("real-time runs need Linux; run without real time here")
    return Library(CODE, list(SYMBOLS), {})


# --- their code ---


def _clock_read(name: str, clock: int) -> str:
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


CODE = (
    """
declare i32 @clock_nanosleep(i32, i32, ptr, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @poll(ptr, i64, i32)
declare i64 @read(i32, ptr, i64)
"""
    + _clock_read("now", MONOTONIC)
    + _clock_read("cpu", THREAD_CPU)
    + f"""
define i64 @cosim.sleep(i64 %due, ptr %context) nounwind {{
entry:
  %time = alloca [2 x i64], align 8
  %rest = getelementptr inbounds i64, ptr %time, i64 1
  %interrupt.place = getelementptr inbounds i64, ptr %context, i64 {INTERRUPT}
  %spin = load i64, ptr %context
  %until = sub i64 %due, %spin
  br label %again
again:
  %begun = call i64 @cosim.now()
  %soon = add i64 %begun, {POLL_NS}
  %last = icmp sle i64 %until, %soon
  %to = select i1 %last, i64 %until, i64 %soon
  %s = sdiv i64 %to, 1000000000
  %ns = srem i64 %to, 1000000000
  store i64 %s, ptr %time
  store i64 %ns, ptr %rest
  br label %sleep
sleep:
  %rc = call i32 @clock_nanosleep(i32 {MONOTONIC}, i32 {ABSOLUTE}, ptr %time, ptr null)
  %eintr = icmp eq i32 %rc, {INTERRUPTED}
  br i1 %eintr, label %sleep, label %slept
slept:
  %interrupt = load atomic i64, ptr %interrupt.place acquire, align 8
  %set = icmp ne i64 %interrupt, 0
  br i1 %set, label %interrupted, label %stay
interrupted:
  %interrupted.at = call i64 @cosim.now()
  ret i64 %interrupted.at
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

define i64 @cosim.trigger(i64 %due, ptr %context) nounwind {{
entry:
  %polled = alloca [2 x i32], align 8
  %bytes = alloca i64, align 8
  %interrupt.place = getelementptr inbounds i64, ptr %context, i64 {INTERRUPT}
  %file.place = getelementptr inbounds i64, ptr %context, i64 {FILE}
  %timeout.place = getelementptr inbounds i64, ptr %context, i64 {TIMEOUT}
  %size.place = getelementptr inbounds i64, ptr %context, i64 {SIZE}
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
  %short = icmp slt i64 %rest.ns, {POLL_NS}
  %slice.ns = select i1 %short, i64 %rest.ns, i64 {POLL_NS}
  %slice.more = add i64 %slice.ns, 999999
  %slice = sdiv i64 %slice.more, 1000000
  %slice.ms = trunc i64 %slice to i32
  %ready = call i32 @poll(ptr %polled, i64 1, i32 %slice.ms)
  %some = icmp sgt i32 %ready, 0
  br i1 %some, label %read, label %wait
wait:
  %interrupt = load atomic i64, ptr %interrupt.place acquire, align 8
  %set = icmp ne i64 %interrupt, 0
  br i1 %set, label %none, label %stay
stay:
  %looked = call i64 @cosim.now()
  %rest.next = sub i64 %until, %looked
  %over = icmp sle i64 %rest.next, 0
  br i1 %over, label %none, label %look
read:
  %got = call i64 @read(i32 %file, ptr %bytes, i64 %size)
  %any = icmp sgt i64 %got, 0
  br i1 %any, label %arrived, label %none
arrived:
  %now = call i64 @cosim.now()
  ret i64 %now
none:
  ret i64 {NO_TRIGGER}
}}

define void @cosim.latencies(i64 %first, i64 %period, i64 %count, ptr %context, ptr %latencies) nounwind {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %again ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %again, label %finish
again:
  %offset = mul i64 %k, %period
  %due = add i64 %first, %offset
  %woke = call i64 @cosim.sleep(i64 %due, ptr %context)
  %late = sub i64 %woke, %due
  %place = getelementptr inbounds i64, ptr %latencies, i64 %k
  store i64 %late, ptr %place
  %k.next = add i64 %k, 1
  br label %head
finish:
  ret void
}}
"""
)
