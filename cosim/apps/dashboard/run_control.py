"""The page as a client of the control socket of a run: one thread sends what the page wants, and keeps control."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from cosim.apps.dashboard.source import Value
from cosim.core.errors import CosimError
from cosim.output.client.control import ControlClient, NoReply

NAME = "dashboard"  # as others see it
POLL_PERIOD = 0.2  # s between looks at the state, which keep control too
TIMEOUT = 1.0  # s, for an answer
ANSWER_VALIDITY = 1.5  # s that an answer is valid


class Note(NamedTuple):
    """How the last command went, for the user; level: as of events."""

    text: str = ""
    level: str = "info"


class RunControl:
    """Nothing here waits: commands are sent in their order by a thread; of values that are set in a hurry the newest.

    status: the last answer of the run; mine: whether control is held here; silenced: it was, until the run did not
    answer; note: how the last command went.
    """

    def __init__(self, key: str | None = None) -> None:
        """key: file of the public key of an encrypted socket."""
        self.address: str | None = None
        self.status: Mapping[str, Any] = {}
        self.mine, self.silenced, self.note = False, False, Note()
        self._key, self._heard = key, -ANSWER_VALIDITY
        self._client: ControlClient | None = None
        self._commands: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._values: dict[str, Value] = {}
        self._lock, self._wake, self._closed = threading.Lock(), threading.Event(), False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def answers(self) -> bool:
        return time.monotonic() - self._heard < ANSWER_VALIDITY

    @property
    def state(self) -> str:
        """Of the run; empty when it does not answer."""
        return self.status.get("state", "") if self.answers else ""

    @property
    def owner(self) -> str:
        """Who else holds control; empty if nobody does."""
        return "" if self.mine or not self.answers else self.status.get("holder") or ""

    def connect(self, address: str | None) -> None:
        """Turn to the run at this address. What was wanted of another one is forgotten."""
        if address != self.address:
            with self._lock:
                self.address = address
                self._forget()
            self._wake.set()

    def forget(self) -> None:
        """The run has ended: what was wanted of it must not reach the next one."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._commands.clear()
        self._values.clear()
        self.status, self.mine, self.silenced, self._heard = {}, False, False, -ANSWER_VALIDITY

    def ask(self, command: str, **fields: Any) -> None:
        with self._lock:
            self._commands.append((command, fields))
        self._wake.set()

    def asked(self, command: str) -> bool:
        """Whether this command waits."""
        with self._lock:
            return any(name == command for name, _ in self._commands)

    def set(self, values: Mapping[str, Value]) -> None:
        """Set parameters; between two ticks, with all others that wait."""
        with self._lock:
            self._values |= values
        self._wake.set()

    @property
    def setting(self) -> bool:
        """Whether values wait to be set."""
        return bool(self._values)

    def estop(self) -> None:
        """Stop immediately, before everything that waits, and without control. Raises RunError when the run does not
        answer, InputError or RunError when it refuses."""
        if self.address is None:
            raise NoReply("this run has no control socket; use its own emergency stop", "dashboard")
        with ControlClient(self.address, NAME, TIMEOUT, self._key) as client:
            client.estop()

    def close(self) -> None:
        """Idempotent."""
        if not self._closed:
            self._closed = True
            self._wake.set()
            self._thread.join()

    # --- the thread ---

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(POLL_PERIOD)
            self._wake.clear()
            self._turn()
        if self.mine and self._client is not None:
            self._try("release")
        self._leave()

    def _turn(self) -> None:
        if self.address is None or (self._client is not None and self._client.address != self.address):
            self._leave()
        if self.address is None:
            return
        while work := self._next():
            self._try(work[0], **work[1])
        if self.mine:
            self._try("heartbeat", quiet=True)
        address, status = self.address, self._try("status", quiet=True)
        if status is not None:
            with self._lock:
                if address == self.address:
                    self.status, self._heard = status, time.monotonic()

    def _next(self) -> tuple[str, Mapping[str, Any]] | None:
        with self._lock:
            if self._values:
                values, self._values = self._values, {}
                return "set", {"values": values}
            return self._commands.popleft() if self._commands else None

    def _try(self, command: str, quiet: bool = False, **fields: Any) -> Mapping[str, Any] | None:
        """The answer; None when it is refused or does not come."""
        try:
            if self._client is None:
                self._client = ControlClient(self.address or "", NAME, TIMEOUT, self._key)
            answer = self._client.request(command, **fields)
        except CosimError as error:
            if isinstance(error, NoReply):  # what was sent must not reach a later run
                self.silenced = command != "release" and (self.silenced or self.mine)
                self._leave()
            if command == "heartbeat":
                self.mine = False
                if not isinstance(error, NoReply):
                    self.note = Note("another client took control", "warning")
            if not quiet:
                self.note = Note(error.what, "error")
            return None
        if command in ("take", "release"):
            self.mine, self.silenced = command == "take", False
        if not quiet and command != "set":
            self.note = Note()
        return answer

    def _leave(self) -> None:
        self.mine = False
        if self._client is not None:
            self._client.close()
            self._client = None
