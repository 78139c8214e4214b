"""A thread that does one thing after another. Nobody has to wait for it: it ends with the program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any


class Worker:
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
