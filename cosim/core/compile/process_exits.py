"""The functions of Python that end the process: they raise while code of a user runs.

`os._exit`, `os.abort`, a fatal signal to the own process and `os.exec…` would end a run without a word: motors on until
the watchdogs of their drives, no end of the recording, and an exit code that means nothing. As an exception
they end it as every other failure of that code does.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn

from cosim.core.errors import is_users_file

FIX = "raise an exception instead"
# what they do by default leaves the process alive
HARMLESS = {"SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGWINCH"}
CRASHES = {
    "SIGSEGV": "a segmentation fault",
    "SIGBUS": "a bus error",
    "SIGFPE": "an arithmetic exception",
    "SIGILL": "an illegal instruction",
    "SIGABRT": "an abort",
}

_running: list[int] = []  # processes, each as often as it runs code of a user; forked ones inherit the list


class ProcessExit(SystemExit):
    """Code of a user would have ended the process."""


@contextmanager
def user_code() -> Iterator[None]:
    """In this block code of a user may run, in this thread or in others."""
    pid = os.getpid()
    _running.append(pid)
    try:
        yield
    finally:
        _running.remove(pid)


def _refuse(what: str) -> NoReturn:
    """Raises ProcessExit for a call by the run; in a thread that a user has started, where nobody would get it, the
    process ends with exit code 1 and a sentence."""
    message = f"{what} would end the program; {FIX}"
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename != __file__ and not is_users_file(frame.f_code.co_filename):
            raise ProcessExit(message)
        frame = frame.f_back
    os.write(2, f"a thread that a controller or part has started ended the program: {what}; {FIX}\n".encode())
    _real_exit(1)


_real_exit: Callable[[int], NoReturn] = os._exit
raise_signal = signal.raise_signal  # Python's own, for the program itself


@cache
def refuse_exits() -> None:
    """Before code of a user is loaded: put a function before each that ends the process. It stays there, as that code
    may import it by name, and does nothing outside of `user_code`."""
    _put_before(os, "_exit", lambda code=0: f"os._exit({code})")
    _put_before(os, "abort", lambda: "os.abort()")
    for name in (name for name in dir(os) if name.startswith("exec")):
        _put_before(os, name, lambda path, *_: f"os.exec of '{os.fsdecode(path)}'")
    _put_before(os, "kill", lambda pid, number: _killed_by(number) if pid in (os.getpid(), 0, -os.getpgrp()) else "")
    if hasattr(os, "killpg"):
        _put_before(os, "killpg", lambda group, number: _killed_by(number) if group in (0, os.getpgrp()) else "")
    _put_before(signal, "raise_signal", lambda number: _killed_by(number))
    if hasattr(signal, "pthread_kill"):
        _put_before(signal, "pthread_kill", lambda thread, number: _killed_by(number))


def _put_before(module: Any, name: str, describe: Callable[..., str]) -> None:
    """describe(*arguments): the call in words, where it would end the process, else empty."""
    real = getattr(module, name)

    def call(*arguments: Any, **keys: Any) -> Any:
        if os.getpid() in _running and (what := describe(*arguments, **keys)):
            _refuse(what)
        return real(*arguments, **keys)

    call.__name__, call.__doc__, call.__module__ = name, real.__doc__, module.__name__
    setattr(module, name, call)


def _killed_by(number: int) -> str:
    """The signal to the own process in words, where it would end it."""
    try:
        known = signal.Signals(number)
        handler = signal.getsignal(known)
        # a handler of C code (None), such as faulthandler's, ends the process after a crash
        ends = handler is signal.SIG_DFL or (handler is None and known.name in CRASHES)
        if known is not signal.SIGKILL and (known.name in HARMLESS or not ends):
            return ""
    except ValueError:  # 0, which asks whether the process is there, or none at all
        return ""
    return f"the signal {known.name} to the own process"
