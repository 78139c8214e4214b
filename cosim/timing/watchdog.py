"""The host's own watchdog: says when the loop has not finished a tick for too long.

It runs in a thread of Python. A loop that holds the interpreter's lock for good keeps it from barking: then the
drives' own watchdogs, which nobody feeds any more, are what stops the motors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

NEVER = 1 << 62  # ns, after any time of a clock


class Watchdog:
    """Calls `bark` once, from a thread of its own, when it was not fed for the timeout.

    Armed from `start`, and again by every further one. A thread takes over priority and CPU of the one that starts it:
    to be started before the loop takes its own, or a loop that never sleeps would keep it from running.
    """

    def __init__(
        self,
        timeout_s: float,
        bark: Callable[[str], object],
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """timeout_s [s] > 0; bark(cause): what to do then; clock [ns]; sleep [s] (None: until `stop` at the latest)."""
        self.timeout = timeout_s
        self._bark, self._clock, self._sleep = bark, clock, sleep
        self._timeout_ns = round(timeout_s * 1e9)
        self._fed = 0
        self._lock = threading.Lock()
        self._left = threading.Event()  # set: the thread that was given it is to end

    def start(self) -> None:
        """Armed from now on."""
        self.stop()
        self._fed, self._left = self._clock(), threading.Event()
        threading.Thread(target=self._watch, args=(self._left,), name="watchdog", daemon=True).start()

    def feed(self) -> None:
        """A tick is finished; only the loop itself may say so."""
        self._fed = self._clock()

    def rest(self) -> None:
        """No ticks are taken: nothing is due until the next time that it is fed."""
        self._fed = NEVER

    def stop(self) -> None:
        """No bark begins after this; one that has begun may still be at work. From any thread, idempotent."""
        with self._lock:
            self._left.set()

    def _watch(self, left: threading.Event) -> None:
        sleep = self._sleep or left.wait
        while not left.is_set():
            sleep(self.timeout / 4)
            with self._lock:
                if left.is_set() or self._clock() - self._fed < self._timeout_ns:
                    continue
                left.set()
            self._bark(
                f"the loop has not finished a tick for {self.timeout:.12g} s; look for what holds it up, a controller"
                " or a bus, or give the watchdog more time"
            )
