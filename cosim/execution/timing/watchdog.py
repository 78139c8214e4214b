"""The watchdog on the host: acts when the loop has not finished a tick for too long.

It runs in a Python thread. A loop that never releases the interpreter's lock blocks it; then the drives' own
watchdogs, which then receive no commands, stop the motors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from cosim.core.errors import describe_exception

NEVER = 1 << 62  # ns, after any time of a clock


class Watchdog:
    """Calls `on_timeout` once, from a separate thread, if it was not fed for the timeout, or fails itself.

    `start` arms it, and arms it again after a timeout. A thread inherits the priority and CPU of the thread that
    starts it: start the watchdog before the loop acquires its own, or a loop that never sleeps starves it.
    """

    def __init__(
        self,
        timeout_s: float,
        on_timeout: Callable[[str], object],
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """timeout_s [s] > 0; on_timeout(cause); clock [ns]; sleep [s] (None: until `stop` at the latest)."""
        self.timeout = timeout_s
        self._on_timeout, self._clock, self._sleep = on_timeout, clock, sleep
        self._timeout_ns = round(timeout_s * 1e9)
        self._fed = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()  # of the present thread, which ends when it is set
        self._progress: Callable[[], int] | None = None
        self._seen = 0

    def start(self) -> None:
        """Arm from now on."""
        self.stop()
        self._fed, self._ended = self._clock(), threading.Event()
        threading.Thread(target=self._watch, args=(self._ended,), name="watchdog", daemon=True).start()

    def feed(self) -> None:
        """Report a finished tick; only the loop itself may call this."""
        self._fed = self._clock()

    def follow(self, progress: Callable[[], int]) -> None:
        """A tick is also finished whenever this number has changed, until `suspend`: for a loop outside of Python."""
        self._seen, self._progress = progress(), progress
        self.feed()

    def suspend(self) -> None:
        """Expect no ticks until the next `feed`."""
        self._fed, self._progress = NEVER, None

    def _look(self) -> None:
        """Count the ticks since the last look, by the number of `follow`."""
        if (progress := self._progress) is not None and (number := progress()) != self._seen:
            self._seen = number
            self.feed()

    def stop(self) -> None:
        """No call of `on_timeout` begins after this; one that began may still run. From any thread, idempotent."""
        with self._lock:
            self._ended.set()

    def _watch(self, ended: threading.Event) -> None:
        try:
            cause = self._overdue(ended)
        except BaseException as error:  # a loop that nobody watches is stopped too
            cause = f"the watchdog has failed: {describe_exception(error)}"
            with self._lock:
                if ended.is_set():
                    return
                ended.set()
        if cause:
            self._on_timeout(cause)

    def _overdue(self, ended: threading.Event) -> str:
        """Wait until a tick is overdue: the cause; empty after `stop`."""
        sleep = self._sleep or ended.wait
        while not ended.is_set():
            sleep(self.timeout / 4)
            with self._lock:
                self._look()
                if ended.is_set() or self._clock() - self._fed < self._timeout_ns:
                    continue
                ended.set()
            return (
                f"the loop has not finished a tick for {self.timeout:.12g} s; check what blocks it, a controller or a"
                " bus, or use a longer watchdog time"
            )
        return ""
