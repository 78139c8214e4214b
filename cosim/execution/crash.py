"""A crash in native code that code of a user calls: the process ends with exit code 1 and one sentence.

Nobody else could print it: the process of the run is gone afterwards. So a handler in machine code writes the sentence
when the system reports the crash, or when C code calls `exit`, and ends the process. It takes no lock and calls only
what a signal handler may. Motors stop by the watchdogs of their drives, and the process of the recorder completes its
file, as after every sudden end.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cosim.core.compile.jit import Library
from cosim.core.compile.process_exits import CRASHES

WHAT = "{what} in native code ended the process of the run; real motors stop by the watchdogs of their drives."
FIX = "Check the libraries that controllers and parts call; with PYTHONFAULTHANDLER=1 the place is shown instead"
EXIT = 0  # the number of a call of `exit`, which no signal has

# Texts: by number, (address, length). It writes the text of the number and ends the process. While nothing runs, a
# crash has its default action, and `exit` goes on.
HANDLER = """
@cosim.crash_active = global i64 0, align 8
@cosim.crash_texts = global ptr null, align 8
@cosim.crash_calls = global ptr null, align 8

define void @cosim.on_crash(i32 %number) nounwind {
  %active = load atomic i64, ptr @cosim.crash_active acquire, align 8
  %calls = load ptr, ptr @cosim.crash_calls, align 8
  %runs = icmp sgt i64 %active, 0
  br i1 %runs, label %end, label %pass
end:
  %texts = load ptr, ptr @cosim.crash_texts, align 8
  %wide = sext i32 %number to i64
  %first = mul i64 %wide, 2
  %second = add i64 %first, 1
  %text.place = getelementptr inbounds i64, ptr %texts, i64 %first
  %length.place = getelementptr inbounds i64, ptr %texts, i64 %second
  %text = load i64, ptr %text.place, align 8
  %length = load i64, ptr %length.place, align 8
  %write.address = load i64, ptr %calls, align 8
  %write = inttoptr i64 %write.address to ptr
  %written = call i64 %write(i32 2, i64 %text, i64 %length)
  %exit.place = getelementptr inbounds i64, ptr %calls, i64 1
  %exit.address = load i64, ptr %exit.place, align 8
  %exit = inttoptr i64 %exit.address to ptr
  call void %exit(i32 1)
  ret void
pass:
  %crashed = icmp ne i32 %number, 0
  br i1 %crashed, label %default, label %done
default:
  %signal.place = getelementptr inbounds i64, ptr %calls, i64 2
  %signal.address = load i64, ptr %signal.place, align 8
  %signal = inttoptr i64 %signal.address to ptr
  %before = call i64 %signal(i32 %number, i64 0)
  br label %done
done:
  ret void
}

define void @cosim.on_exit(ptr %nothing) nounwind {
  call void @cosim.on_crash(i32 0)
  ret void
}

define void @cosim.set_crash(ptr %texts, ptr %calls) nounwind {
  store ptr %texts, ptr @cosim.crash_texts, align 8
  store ptr %calls, ptr @cosim.crash_calls, align 8
  ret void
}

define void @cosim.count_crash(i64 %more) nounwind {
  %before = atomicrmw add ptr @cosim.crash_active, i64 %more seq_cst, align 8
  ret void
}
"""


class _CrashHandler(NamedTuple):
    """add(±1): one more or fewer run; kept: what the machine code refers to."""

    add: Callable[[int], object]
    kept: tuple[object, ...]


@contextmanager
def crash_in_words() -> Iterator[None]:
    """In this block a crash is reported by a sentence, in any thread."""
    count = prepare().add
    count(1)
    try:
        yield
    finally:
        count(-1)


@cache
def prepare() -> _CrashHandler:
    """Install the handler, once; it stays, and does nothing outside of `crash_in_words`. Signals that something else
    handles, such as faulthandler, are left to that."""
    libc = _libc()
    if libc is None or faulthandler.is_enabled():
        return _CrashHandler(lambda more: None, ())
    names = ["cosim.on_crash", "cosim.on_exit", "cosim.set_crash", "cosim.count_crash"]
    library = Library(HANDLER, names, {})
    texts, contents = _texts()
    calls = np.array([_address(libc, name) for name in ("write", "_exit", "signal")], dtype=np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library["cosim.set_crash"])(
        texts.ctypes.data, calls.ctypes.data
    )
    install = libc.signal
    install.argtypes, install.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    for number in map(int, _crashes()):
        replaced = install(number, library["cosim.on_crash"])
        if replaced:  # another handler than the default, which has the address 0
            install(number, replaced)
    at_exit = libc.__cxa_atexit
    at_exit.argtypes = (ctypes.c_void_p,) * 3
    at_exit(library["cosim.on_exit"], None, None)
    count = ctypes.CFUNCTYPE(None, ctypes.c_int64)(library["cosim.count_crash"])
    atexit.register(count, -(1 << 32))  # an end of Python, with a thread that hangs in a tick
    return _CrashHandler(count, (library, texts, contents, calls))


def _libc() -> Any:
    """The C library of the process; None where it has not what is needed."""
    with suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        for name in ("write", "_exit", "signal", "__cxa_atexit"):
            getattr(libc, name)
        return libc
    return None


def _address(libc: Any, name: str) -> int:
    return ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0


def _crashes() -> dict[signal.Signals, str]:
    return {getattr(signal, name): what for name, what in CRASHES.items() if hasattr(signal, name)}


def _texts() -> tuple[np.ndarray, list[np.ndarray]]:
    """(a table (numbers, 2) of addresses and lengths, the texts)."""
    words = {EXIT: "a call of exit()"} | {int(number): what for number, what in _crashes().items()}
    table, contents = np.zeros((max(words) + 1, 2), dtype=np.int64), []
    for number, what in words.items():
        text = np.frombuffer(f"{WHAT.format(what=what)} {FIX}\n".encode(), dtype=np.uint8)
        contents.append(text)
        table[number] = text.ctypes.data, len(text)
    return table, contents
