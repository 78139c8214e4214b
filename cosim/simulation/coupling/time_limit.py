"""Time limits of calls: a part that hangs is an error instead of a program that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from cosim.core.errors import RunError

END_TIME = 2.0  # s, for a thread that is to end between two calls


class _LeftAlone(BaseException):
    """Ends a thread that its supervisor has left: it must not change anything any more."""


class _Job:
    """A function in a thread of its own. calls: the one that runs, as (begin [s], part, name, t [s]); who removes it
    decides whether it has ended or hangs."""

    def __init__(self, fn: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.calls: list[tuple[float, str, str, float]] = []
        self.left = False
        self.result: Any = None
        self.failure: BaseException | None = None
        self._work = fn, arguments
        self._ended = threading.Lock()
        self._ended.acquire()
        # a daemon: it is not joined at the exit of the program
        self._thread = threading.Thread(target=self._run, name="parts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        fn, arguments = self._work
        try:
            self.result = fn(*arguments)
        except BaseException as error:
            self.failure = error
        finally:
            self._ended.release()

    def ended(self, timeout: float) -> bool:
        """Wait up to the timeout [s] for its end."""
        if not self._ended.acquire(timeout=max(timeout, 0.0)):
            return False
        self._thread.join()
        return True

    @property
    def here(self) -> bool:
        """Whether this is its thread; another one may have the identifier of a thread that has ended."""
        return threading.current_thread() is self._thread

    def taken(self) -> bool:
        """Remove the call that runs; whether there was one."""
        try:
            self.calls.pop()
        except IndexError:
            return False
        return True


class Supervisor:
    """Calls of parts that must not take longer than the limit [s]; None: as long as they like.

    A function under supervision runs in a thread of its own, and so do the calls in it: they cost no change of threads.
    The supervising thread sleeps until the function has ended or a call is overdue.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.hanging: set[str] = set()  # parts; they must not be called any more
        self._job: _Job | None = None

    def run(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        """fn(*arguments) under supervision; its errors are raised here. Raises RunError for a call in it that exceeds
        the limit; the function never gets beyond that call."""
        if self.limit is None or (self._job is not None and self._job.here):
            return fn(*arguments)
        self._job = job = _Job(fn, arguments)
        job.start()  # now that its calls find it
        try:
            wait = self.limit
            while not job.ended(wait):
                wait = self._rest(job)
        except BaseException:  # an interrupt, or a part that hangs, whose thread nobody waits for
            hangs, job.left = job.left, True
            if not hangs and not job.taken():
                job.ended(END_TIME)
            raise
        if job.failure is not None:
            raise job.failure
        return job.result

    def _rest(self, job: _Job) -> float:
        """s until a call may be overdue. Raises RunError for one that is."""
        assert self.limit is not None
        running = job.calls[:]
        if not running:
            return self.limit
        begun, part, name, t = running[0]
        if (rest := begun + self.limit - time.monotonic()) > 0.0 or job.calls[:] != running or not job.taken():
            return max(rest, 0.0)
        self.hanging.add(part)
        job.left = True
        what = f"the {name} of part '{part}' at t = {t:.6g} s has not ended after {self.limit:g} s"
        raise RunError(f"{what}; it hangs, or needs a longer time limit")

    def call(self, part: str, fn: Callable[..., Any], t: float, *arguments: Any) -> Any:
        """fn(t, *arguments), a function of a part, within the limit; outside of `run` in a thread of its own. t: in s.
        Raises RunError."""
        job = self._job
        if job is None or not job.here:
            return self.run(self.call, part, fn, t, *arguments)
        if job.left:
            raise _LeftAlone
        job.calls.append((time.monotonic(), part, fn.__name__, t))
        try:
            return fn(t, *arguments)
        finally:
            if not job.taken():
                raise _LeftAlone
