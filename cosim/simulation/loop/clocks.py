"""Native clocks: reading the monotonic clock, sleeping to a time of it, waiting for an external trigger.

Compiled loops call them by address; Python calls the same code without the interpreter's lock, so both have the same
wake-up latency. Times are whole nanoseconds of CLOCK_MONOTONIC.
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
from cosim.simulation.loop.clock_code import CODE, FILE, INTERRUPT, NO_TRIGGER, POLL_NS, SIZE, SPIN, SYMBOLS

__all__ = ["MAX_OLD", "NO_TRIGGER", "POLL_NS", "Clock", "NativeClock", "TriggerClock", "native_clock"]

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
