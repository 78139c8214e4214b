"""The run's end of its control socket, which another process serves. No call waits for that process but the first."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from cosim.core.errors import InputError, RunError
from cosim.execution.remote.arbiter import RemoteCommand
from cosim.execution.remote.control_process import ControlSetup, LineReader

START_TIMEOUT = 60.0  # s
MAX_BACKLOG = 1 << 20  # bytes that the process has not read
END_TIMEOUT = 2.0  # s
SILENCE = 1.0  # s, beyond the time limit of clients, after which a process that has sent nothing hangs
LOOK = 0.5  # s; what a look counts as silence at most: the run itself may not have looked for long
ENDED = "the process of the control socket has ended"
HANGS = "the process of the control socket does not answer"


class LostControl(NamedTuple):
    """A client that held control holds it no more, without having released it."""

    name: str
    why: str


class ControlLink:
    """Use it in a `with` statement, or call `close`.

    The constructor returns when the socket is bound: `endpoint`. It raises InputError when that fails. When the
    process ends before the run, or hangs, `failure` has the reason, and there are no more commands: what a client held
    is lost then as by its silence.
    """

    def __init__(self, setup: ControlSetup) -> None:
        from orjson import dumps

        self._dumps = dumps
        self.failure, self._backlog = "", b""
        self._owner: str | None = None  # the client that holds control
        self._limit = setup.timeout + SILENCE
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cosim.execution.remote.control_process"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # the same modules
            process_group=0,  # Ctrl-C reaches the run only
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._reader, self._lines = LineReader(self._out), list[bytes]()
        try:
            self.endpoint = self._start(setup)
        except BaseException:
            self._process.kill()
            self._end_process()
            raise
        self._silent, self._looked = 0.0, time.monotonic()

    def _start(self, setup: ControlSetup) -> str:
        from orjson import loads

        with suppress(BrokenPipeError):
            self._process.stdin.write(self._dumps(setup._asdict()) + b"\n")  # type: ignore[union-attr]
        os.set_blocking(self._in, False)
        until = time.monotonic() + START_TIMEOUT
        while not self._lines and not self._reader.ended and self.wait(until - time.monotonic()):
            self._lines = self._reader.read()
        if not self._lines:
            raise RunError("the process of the control socket did not start", setup.endpoint)
        answer = loads(self._lines.pop(0))
        if "failed" in answer:
            raise InputError(answer["failed"], answer["place"])
        return answer["ready"]

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` [s] for something to take; whether there is something."""
        return bool(self._lines) or bool(select.select([self._out], [], [], max(timeout, 0.0))[0])

    def take(self) -> list[RemoteCommand | LostControl]:
        """What has come: commands, and clients that have lost control. Both also of a process that has ended since."""
        from orjson import loads

        while not self._reader.ended and select.select([self._out], [], [], 0.0)[0]:
            self._lines += self._reader.read()
        self._count_silence(bool(self._lines))
        lines, self._lines = map(loads, self._lines), []
        items = [item for line in lines if (item := self._item(line)) is not None]
        if self._reader.ended:
            self.failure = self.failure or ENDED
        if self.failure and self._owner is not None:
            items.append(LostControl(self._owner, self.failure))
            self._owner = None
        return items

    def _item(self, line: Mapping[str, Any]) -> RemoteCommand | LostControl | None:
        if "owner" in line:
            self._owner = line["owner"]
        elif "lost" in line:
            self._owner = None
            return LostControl(line["lost"], "its heartbeat ended")
        elif "command" in line:
            return RemoteCommand(**line["command"])
        return None  # a sign of life

    def _count_silence(self, heard: bool) -> None:
        """A process that sends no sign of life hangs, whether a client holds control or not: it is ended."""
        now = time.monotonic()
        self._silent = 0.0 if heard else self._silent + min(now - self._looked, LOOK)
        self._looked = now
        if self._silent > self._limit:
            self._give_up()

    def _give_up(self) -> None:
        self.failure = HANGS
        self._process.kill()

    def reply(self, token: int, reply: Mapping[str, Any]) -> None:
        """Answer a command."""
        self._send({"token": token, "reply": reply})

    def update(self, changes: Mapping[str, Any]) -> None:
        """Tell clients what has changed, see `ControlArbiter.update`."""
        self._send({"update": changes})

    def _send(self, line: Mapping[str, Any]) -> None:
        self._backlog += self._dumps(line) + b"\n"
        try:
            while self._backlog and not self.failure:
                self._backlog = self._backlog[os.write(self._in, self._backlog) :]
        except BlockingIOError:
            if len(self._backlog) > MAX_BACKLOG:
                self._give_up()
        except BrokenPipeError:
            self._backlog = b""  # it has ended; `take` still returns what it sent before

    def close(self) -> None:
        """End the process; clients get no more replies. Idempotent."""
        if self._process.poll() is None or not self._process.stdout.closed:  # type: ignore[union-attr]
            self._end_process()

    def _end_process(self) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.close()  # which ends it
        try:
            self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            stdout.close()

    def __enter__(self) -> ControlLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
