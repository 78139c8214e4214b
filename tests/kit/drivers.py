"""A driver that logs what is done with it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

from cosim.core.driver_contract import Driver
from cosim.core.types import JointCommand, JointState


class LoggedDriver:
    """Passes every call on to a simulated driver and logs it as "call joints".

    log: shared by several drivers to see the order of their calls; arguments: log the mode or the deadline too.
    then[call, k] is called before the k-th call of its kind is passed on.
    """

    def __init__(self, inner: Driver, log: list[str] | None = None, arguments: bool = False) -> None:
        self.inner, self.log, self.arguments = inner, [] if log is None else log, arguments
        self.name = "+".join(inner.joints)
        self.commands: list[JointCommand] = []
        self.then: dict[tuple[str, int], Callable[[], object]] = {}
        self.stopped = threading.Event()  # since it was enabled
        self._counts: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def count(self, call: str) -> int:
        """How often it was called."""
        return self._counts.get(call, 0)

    def _note(self, call: str, *arguments: object) -> None:
        self.log.append(" ".join([call, self.name, *map(str, arguments if self.arguments else ())]))
        number = self._counts[call] = self.count(call) + 1
        self.then.get((call, number - 1), int)()

    def open(self) -> None:
        self._note("open")
        self.inner.open()

    def enable(self, mode: str) -> None:
        self.stopped.clear()
        self._note("enable", mode)
        self.inner.enable(mode)

    def read(self, out: JointState, deadline_ns: int) -> None:
        self._note("read", deadline_ns)
        out.fault[:] = 0
        self.inner.read(out, deadline_ns)

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        self._note("write", deadline_ns)
        self.commands.append(copy.deepcopy(cmd))
        self.inner.write(cmd, deadline_ns)

    def stop(self) -> None:
        self._note("stop")
        self.stopped.set()
        self.inner.stop()

    def close(self) -> None:
        self._note("close")
        self.inner.close()
