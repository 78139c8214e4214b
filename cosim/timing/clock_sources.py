"""The clocks that a rig may be paced by: the machine's own, what comes out of a file, messages on a CAN bus, none."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from typing import Any

from cosim.errors import RunError
from cosim.timing.clocks import LOOK_NS, MOST_OLD, NO_PULSE, Clock, NativeClock, PulseClock
from cosim.timing.pacing import Pacing, Pulse


class PythonClock(ABC):
    """A clock in Python that the loop in machine code can call as well."""

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
        """See `Clock`; nothing unless a clock says otherwise."""
        return None

    def leave(self) -> None:
        """See `Clock`; nothing where no wait takes long."""
        return None
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
            raise RunError("a pulse from a CAN bus needs python-can: pip install 'cosim[can]'") from None
        wide = identifier > 0x7FF
        mask = 0x1FFFFFFF if wide else 0x7FF
        wanted: Any = [{"can_id": identifier, "can_mask": mask, "extended": wide}]
        try:
            self._bus = can.Bus(channel=channel, interface=interface, can_filters=wanted)
        except (can.CanError, OSError, ValueError, NotImplementedError) as error:
            what = " ".join(str(error).split())
            raise RunError(f"cannot open the CAN bus '{channel}' ({interface}): {what}") from error
        self._own, self._timeout, self._left = NativeClock(), timeout, False

    def now(self) -> int:
        return self._own.now()

    def cpu(self) -> int:
        return self._own.cpu()

    def wait(self, due_ns: int) -> int:
        until = self._own.now() + round(self._timeout * 1e9)
        try:
            while (rest := until - self._own.now()) > 0 and not self._left:
                if self._bus.recv(min(rest, LOOK_NS) * 1e-9) is not None:
                    return self._own.now()
        except Exception:  # nothing may be raised through machine code; a bus that failed sends no pulse
            return NO_PULSE
        return NO_PULSE

    def leave(self) -> None:
        self._left = True

    def begin(self) -> None:
        """Messages that wait on the bus are old."""
        self._left = False
        with suppress(Exception):  # a bus that failed sends no pulse either
            for _ in range(MOST_OLD):
                if self._bus.recv(0.0) is None:
                    return

    def close(self) -> None:
        self._bus.shutdown()


def open_clock(pacing: Pacing, stack: ExitStack) -> Clock:
    """The clock of a rig that runs on time; `stack` closes it. Raises RunError when it cannot be had."""
    if pacing.pulse is None:
        return NativeClock(round(pacing.spin * 1e9))
    clock = _pulse_clock(pacing.pulse)
    stack.callback(clock.close)
    return clock


def source(pulse: Pulse) -> str:
    """What a pulse comes from, in words."""
    if pulse.file is not None:
        return f"'{pulse.file}'"
    return f"CAN bus '{pulse.channel}' ({pulse.interface}), identifier {pulse.id:#x}"


def _pulse_clock(pulse: Pulse) -> PulseClock | CanClock:
    if pulse.file is None:
        return CanClock(pulse.interface or "", pulse.channel or "", pulse.id, pulse.timeout)
    try:
        return PulseClock(pulse.file, round(pulse.timeout * 1e9))
    except OSError as error:
        raise RunError(f"cannot take pulses from '{pulse.file}': {error.strerror}") from error
