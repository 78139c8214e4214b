"""Enabling several drives: each gets hold commands from the moment it is enabled until the first tick.

The watchdog of an enabled drive stops it if no command arrives. Enabling other drives, and what a run computes between
enabling and its first tick, may take longer than that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cosim.core.driver_contract import Driver
from cosim.core.errors import RunError, describe_exception
from cosim.core.types import JointCommand, JointState
from cosim.simulation.loop.clocks import native_clock

REPLY_NS = 2_000_000  # deadline of a reply
VALID_NS = 50_000_000
PAUSE = 0.005  # s between hold commands
LOCK_TIMEOUT = 0.5  # s after which a driver hangs


class HoldCommands:
    """Hold commands to enabled drives: `run` sends them, in the thread of the loop, until `end`.

    A hold command is the position at which a drive was enabled, and no effort. Drives that report no position get no
    command, because a drive in position mode would move to 0.
    """

    def __init__(self, drivers: Sequence[Driver]) -> None:
        self._drivers = tuple(drivers)
        self._states = [JointState.zeros(len(driver.joints)) for driver in drivers]
        self._commands = [JointCommand.zeros(len(driver.joints)) for driver in drivers]
        self._known = [False] * len(self._drivers)  # whether the position is
        self._enabled: list[int] = []
        self._errors: dict[int, Exception] = {}
        self._lock = threading.Lock()  # one thread at a time uses the drivers
        self._ended = threading.Event()
        self._ended.set()

    def begin(self) -> None:
        """No drive is enabled yet."""
        self._enabled, self._errors = [], {}
        self._known = [False] * len(self._drivers)
        self._ended.clear()

    def add(self, k: int) -> None:
        """Drive k is enabled now; it gets its first command."""
        with self.exclusive():
            self._enabled.append(k)
            self._send(k)

    def run(self) -> None:
        """Send hold commands until `end`."""
        while not self._ended.wait(PAUSE):
            self.send()

    def send(self) -> None:
        """Send a hold command to each enabled drive, unless they have ended. Failures: see `check`."""
        with self.exclusive():
            if not self._ended.is_set():
                for k in tuple(self._enabled):
                    self._send(k)

    def end(self) -> None:
        """No hold command is sent any more; from any thread, idempotent."""
        self._ended.set()
        with self.exclusive():  # one that is under way has ended
            self._enabled = []

    def check(self) -> None:
        """Raises the first error of a driver."""
        for k in sorted(self._errors):
            raise self._errors[k]

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock, but do not wait forever for a driver that hangs."""
        held = self._lock.acquire(timeout=LOCK_TIMEOUT)
        try:
            yield
        finally:
            if held:
                self._lock.release()

    def read(self, k: int, out: JointState, deadline_ns: int) -> None:
        """Read drive k, which must not be read while commands are sent."""
        with self.exclusive():
            self._drivers[k].read(out, deadline_ns)

    def _send(self, k: int) -> None:
        try:
            self._try_to_send(k)
        except BaseException as error:  # else the thread would end, and with it the commands to the other drives
            what = f"hold commands failed: {describe_exception(error)}"
            self._errors[k] = error if isinstance(error, Exception) else RunError(what)
            self._enabled.remove(k)

    def _try_to_send(self, k: int) -> None:
        driver, state, command, now = self._drivers[k], self._states[k], self._commands[k], native_clock().now
        driver.read(state, now() + REPLY_NS)
        if not self._known[k]:
            if not state.t_ns:
                return
            command.position[:], self._known[k] = state.position, True
        command.valid_until_ns = now() + VALID_NS
        driver.write(command, now() + REPLY_NS)


def enable_all(count: int, enable: Callable[[int], object], hold: HoldCommands, stop: Callable[[], object]) -> None:
    """Call enable(k) for `count` drives in parallel; enabled drives get hold commands. Raises the first error after all
    calls have returned; the caller stops the drives. stop() is called at an interrupt, before these returns."""
    errors: dict[int, BaseException] = {}

    def call(k: int) -> None:
        try:
            enable(k)
            hold.add(k)
        except BaseException as error:
            errors[k] = error

    threads = [threading.Thread(target=call, args=(k,), daemon=True) for k in range(count)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        stop()
        for thread in threads:
            thread.join()
        raise
    for k in sorted(errors):
        raise errors[k]
    hold.check()
