"""Functions in forked processes, as many at a time as there are tokens in a pipe of all processes of a program."""

from __future__ import annotations

import gc
import os
import select
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

TOKEN = b"."
INTERRUPTED = 130


class Tokens:
    """Safe between processes: a token is read by one of them alone."""

    def __init__(self, count: int) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.write(self._in, TOKEN * count)

    def take(self, timeout: float = 0.0) -> bool:
        """Whether there was a free one within `timeout` [s]."""
        try:
            if timeout:
                select.select((self._out,), (), (), timeout)
            return bool(os.read(self._out, 1))
        except BlockingIOError:  # another process was faster
            return False

    def give_back(self) -> None:
        os.write(self._in, TOKEN)

    def close(self) -> None:
        os.close(self._out)
        os.close(self._in)


def fork(run: Callable[[], object], errors: Path) -> int:
    """The id of a new process that calls run() and ends; what it raises is written to the file `errors`."""
    gc.freeze()  # what exists is shared with the new process: it is not to be visited there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: libraries' threads wait for work
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        gc.disable()
        run()
        status = 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BaseException as error:
        with suppress(OSError):
            errors.write_text(traceback.format_exc().strip().splitlines()[-1] or type(error).__name__)
    finally:
        os._exit(status)


class Children:
    """The processes that one process has forked."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._own: set[int] = set()  # each holds a token

    def start(self, run: Callable[[], object], errors: Path, wait: bool) -> bool:
        """In a process with a token of its own if there is one. wait: else with the token of this process, which waits
        for its end; otherwise it is not started. Whether it was."""
        self.reap()
        if self._tokens.take():
            self._own.add(fork(run, errors))
            return True
        if wait:
            os.waitpid(fork(run, errors), 0)
        return wait

    def reap(self, block: bool = False) -> None:
        """Give back the tokens of those that have ended; block: wait for the end of all."""
        for pid in tuple(self._own):
            ended, _ = os.waitpid(pid, 0 if block else os.WNOHANG)
            if ended:
                self._own.discard(pid)
                self._tokens.give_back()

    @property
    def alive(self) -> bool:
        return bool(self._own)

    def kill(self) -> None:
        """End all; what they have forked ends with its run."""
        for pid in self._own:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        self.reap(block=True)


def each_in_turn(
    children: Children, tokens: Tokens, jobs: list[tuple[Callable[[], object], Path]], pause: float
) -> Iterator[None]:
    """Start the jobs, each as soon as there is a token; yields from time to time until all have ended."""
    waiting = jobs[::-1]
    while waiting or children.alive:
        children.reap()
        if waiting and children.start(*waiting[-1], wait=False):
            waiting.pop()
            continue
        if tokens.take(pause):
            tokens.give_back()
        yield
