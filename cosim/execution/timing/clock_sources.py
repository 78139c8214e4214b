"""Clocks of a real-time run: the machine's, an external trigger from a file or a CAN bus, and clocks in Python."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from typing import Any

from cosim.core.errors import RunError
from cosim.simulation.loop.clocks import MAX_OLD, NO_TRIGGER, POLL_NS, Clock, NativeClock, TriggerClock
from cosim.simulation.loop.pacing import Pacing, Trigger


class PythonClock(ABC):
    """A clock in Python that the compiled loop can call as well."""

    def __init__(self) -> None:
        whole = ctypes.c_int64
        reads = ctypes.CFUNCTYPE(whole)
        self._callbacks = (
            reads(self.now),
            reads(self.cpu),
            ctypes.CFUNCTYPE(whole, whole, ctypes.c_void_p)(lambda due, _: self.wait(due)),
        )
        addresses = [ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in self._callbacks]
        self.functions: tuple[int, ...] = (*addresses, 0)

    def begin(self) -> None:
        """See `Clock`; does nothing by default."""
        return None

    def interrupt(self) -> None:
        """See `Clock`; does nothing by default, for clocks whose waits are short."""
        return None

    @abstractmethod
    def now(self) -> int: ...

    @abstractmethod
    def cpu(self) -> int: ...

    @abstractmethod
    def wait(self, due_ns: int) -> int: ...


class CanClock(PythonClock):
    """A clock whose waits end with a message of one identifier on a CAN bus."""

    def __init__(self, interface: str, channel: str, identifier: int, timeout: float) -> None:
        """timeout [s]. Raises RunError when the bus cannot be opened."""
        super().__init__()
        try:
            import can
        except ImportError:
            raise RunError("a trigger from a CAN bus needs python-can: pip install python-can") from None
        extended = identifier > 0x7FF
        mask = 0x1FFFFFFF if extended else 0x7FF
        filters: Any = [{"can_id": identifier, "can_mask": mask, "extended": extended}]
        try:
            self._bus = can.Bus(channel=channel, interface=interface, can_filters=filters)
        except (can.CanError, OSError, ValueError, NotImplementedError) as error:
            what = " ".join(str(error).split())
            raise RunError(f"cannot open the CAN bus '{channel}' ({interface}): {what}") from error
        self._native, self._timeout, self._interrupted = NativeClock(), timeout, False

    def now(self) -> int:
        return self._native.now()

    def cpu(self) -> int:
        return self._native.cpu()

    def wait(self, due_ns: int) -> int:
        until = self._native.now() + round(self._timeout * 1e9)
        try:
            while (remaining := until - self._native.now()) > 0 and not self._interrupted:
                if self._bus.recv(min(remaining, POLL_NS) * 1e-9) is not None:
                    return self._native.now()
        except Exception:  # no exception may pass through compiled code; a failed bus sends no trigger
            return NO_TRIGGER
        return NO_TRIGGER

    def interrupt(self) -> None:
        self._interrupted = True

    def begin(self) -> None:
        self._interrupted = False
        with suppress(Exception):  # a failed bus sends no trigger
            for _ in range(MAX_OLD):
                if self._bus.recv(0.0) is None:
                    return

    def close(self) -> None:
        self._bus.shutdown()


def open_clock(pacing: Pacing, stack: ExitStack) -> Clock:
    """The clock of a real-time run; `stack` closes it. Raises RunError when it cannot be opened."""
    if pacing.trigger is None:
        return NativeClock(round(pacing.spin * 1e9))
    clock = _trigger_clock(pacing.trigger)
    stack.callback(clock.close)
    return clock


def trigger_source(trigger: Trigger) -> str:
    """Where a trigger comes from, for messages."""
    if trigger.file is not None:
        return f"'{trigger.file}'"
    return f"CAN bus '{trigger.channel}' ({trigger.interface}), identifier {trigger.id:#x}"


def _trigger_clock(trigger: Trigger) -> TriggerClock | CanClock:
    if trigger.file is None:
        return CanClock(trigger.interface or "", trigger.channel or "", trigger.id, trigger.timeout)
    try:
        return TriggerClock(trigger.file, round(trigger.timeout * 1e9))
    except OSError as error:
        raise RunError(f"cannot read triggers from '{trigger.file}': {error.strerror}") from error
