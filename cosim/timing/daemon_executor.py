"""Threads: one that does what it is given, and that nobody has to wait for; one that only keeps Python busy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any


class DaemonExecutor:
    """The executors of the standard library are waited for at exit, however long what they do takes; this is not."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Future, Callable[..., Any], tuple] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], *arguments: Any) -> Future:
        """What becomes of fn(*arguments), once all that was submitted before is done."""
        future: Future = Future()
        self._jobs.put((future, fn, arguments))
        return future

    def close(self, patience: float) -> None:
        """No more is submitted; wait for so long [s] until all is done."""
        self._jobs.put(None)
        self._thread.join(patience)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, fn, arguments = job
            try:
                future.set_result(fn(*arguments))
            except BaseException as error:
                future.set_exception(error)
            del job, future, fn, arguments  # nothing is kept alive while it waits


@contextmanager
def busy() -> Iterator[None]:
    """A thread that does nothing but run Python."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            pass

    thread = threading.Thread(target=work, name="busy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
