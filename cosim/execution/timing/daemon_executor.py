"""Threads: an executor that never delays the exit of the program, and a thread that keeps Python busy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue


class DaemonExecutor:
    """One thread that runs jobs in order. Unlike the standard library's executors it is not joined at exit."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Future, Callable[..., object], tuple] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., object], *arguments: object) -> Future:
        """The future of fn(*arguments), which runs after all jobs before it."""
        future: Future = Future()
        self._jobs.put((future, fn, arguments))
        return future

    def close(self, timeout: float) -> None:
        """Accept no more jobs; wait up to `timeout` [s] until all are done."""
        self._jobs.put(None)
        self._thread.join(timeout)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, fn, arguments = job
            try:
                future.set_result(fn(*arguments))
            except BaseException as error:
                future.set_exception(error)
            del job, future, fn, arguments  # keep nothing alive while waiting


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
