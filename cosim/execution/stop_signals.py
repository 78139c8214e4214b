"""How a signal stops a real-time run: in its loop, before the next tick, whatever the main thread does."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from cosim.core.compile.jit import Library
from cosim.core.compile.process_exits import raise_signal
from cosim.execution.posix_signals import raises, termination_signals

# Stores the value of the present order at its address and proceeds to the next one; address 0 ends the list. Then calls
# the handler of Python. It has no call that is not async-signal-safe.
HANDLER = """
@cosim.orders = global ptr null, align 8
@cosim.next_handler = global ptr null, align 8

define void @cosim.on_signal(i32 %number) nounwind {
  %order = load atomic ptr, ptr @cosim.orders acquire, align 8
  %none = icmp eq ptr %order, null
  br i1 %none, label %pass, label %look
look:
  %address = load i64, ptr %order, align 8
  %last = icmp eq i64 %address, 0
  br i1 %last, label %pass, label %obey
obey:
  %value.place = getelementptr inbounds i64, ptr %order, i64 1
  %following = getelementptr inbounds i64, ptr %order, i64 2
  %value = load i64, ptr %value.place, align 8
  %word = inttoptr i64 %address to ptr
  store atomic ptr %following, ptr @cosim.orders release, align 8
  store atomic i64 %value, ptr %word release, align 8
  br label %pass
pass:
  %next = load ptr, ptr @cosim.next_handler, align 8
  %known = icmp ne ptr %next, null
  br i1 %known, label %call, label %done
call:
  call void %next(i32 %number)
  br label %done
done:
  ret void
}

define void @cosim.give_orders(ptr %orders) nounwind {
  store atomic ptr %orders, ptr @cosim.orders release, align 8
  ret void
}

define void @cosim.pass_to(ptr %handler) nounwind {
  store ptr %handler, ptr @cosim.next_handler, align 8
  ret void
}
"""


class StopOrder(NamedTuple):
    """What a signal does: store `value` in `word`, an element of 8 bytes that a loop reads in each tick."""

    word: np.ndarray  # ()
    value: float


class StopSignals:
    """The termination signals that raise KeyboardInterrupt, while this is entered: they stop a loop before its next
    tick, then raise.

    Python calls its handlers between two instructions of the main thread, which may be computing or waiting. So a
    handler in machine code comes first and carries out an order: the first signal the first one, and so on.
    Only the main thread may enter it; in other threads it does nothing.
    """

    def __init__(self) -> None:
        self._previous: dict[int, Any] = {}  # handlers of Python
        self._silent = False  # no handler of Python is called
        self._postponed: tuple[int, FrameType | None] | None = None
        self._orders: object = None  # what the handler refers to

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in termination_signals():
                self._previous[number] = signal.signal(number, self._on_signal)
                if raises(self._previous[number]):
                    _put_before(number)
        return self

    def __exit__(self, *_: object) -> None:
        self.raise_again()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def give_orders(self, orders: Sequence[StopOrder]) -> None:
        """Replace the orders."""
        table = np.zeros((len(orders) + 1, 2), dtype=np.int64)
        for row, order in zip(table, orders, strict=False):
            row[:] = order.word.ctypes.data, np.array(order.value, order.word.dtype).view(np.int64)
        if self._previous:
            _handler().give_orders(table.ctypes.data)
            # replaces the ones before, which the handler no longer reads
            self._orders = (table, tuple(orders)) if orders else None

    @contextmanager
    def postponed(self) -> Iterator[None]:
        """Postpone KeyboardInterrupt to the end of the block; orders are not postponed."""
        before, self._silent = self._silent, True
        try:
            yield
        finally:
            self._silent = before
            call, self._postponed = self._postponed, None
            if call is not None and not before:
                self._on_signal(*call)

    def raise_again(self) -> None:
        """Raise at the next signal, although one has raised before. Until then signals carry out their orders only, so
        that they do not disturb the stop. Ends the orders."""
        self.give_orders([])
        self._silent, self._postponed = False, None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._silent:
            self._postponed = self._postponed or (number, frame)
            return
        self._silent = self._orders is not None  # before the handler: signals may follow one another closely
        handler = self._previous.get(number, signal.default_int_handler)
        if callable(handler):
            handler(number, frame)
        else:  # the default of the system: the program ends
            signal.signal(number, handler)
            raise_signal(number)
        self._silent = False  # it did not raise


class _Handler(NamedTuple):
    """The compiled handler: its address and its two settings."""

    library: Library
    address: int
    give_orders: Callable[[int], None]
    pass_to: Callable[[int], None]


@cache
def _handler() -> _Handler:
    library = Library(HANDLER, ["cosim.on_signal", "cosim.give_orders", "cosim.pass_to"], {})
    setting = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    settings = [setting(library[f"cosim.{name}"]) for name in ("give_orders", "pass_to")]
    return _Handler(library, library["cosim.on_signal"], *settings)


def _put_before(number: int) -> None:
    """Put the compiled handler before Python's, which is installed."""
    if not hasattr(signal, "siginterrupt"):
        return  # no POSIX signals; Python's handler alone
    install = ctypes.CDLL(None).signal
    install.argtypes, install.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    handler = _handler()
    replaced = install(number, handler.address)
    handler.pass_to(replaced)  # the same for all numbers
    signal.siginterrupt(number, True)  # as Python does: a system call of the main thread ends
