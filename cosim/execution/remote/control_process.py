"""The process that serves the control socket of a run: `python -m cosim.execution.remote.control_process`.

Lines of JSON come from the run on the standard input: first a `ControlSetup`, then `update` and `reply`. Lines go
to the run on the standard output: `ready` or `failed`, then `command`, `lost`, `owner` (before the client that takes or
releases control has its reply), and `alive`. It ends when its input ends.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from orjson import OPT_APPEND_NEWLINE, dumps, loads

from cosim.core.access.binding import bind
from cosim.core.access.curve import key_of, secure
from cosim.core.errors import CosimError
from cosim.execution.remote.arbiter import Client, ControlArbiter, RemoteCommand, Reply, refused
from cosim.execution.remote.requests import MAX_BYTES

POLL_MS = 100  # between looks at the heartbeat
ALIVE_PERIOD = 0.1  # s between two signs of life to the run
REQUESTS_PER_TURN = 64  # requests between looks at the input
LINGER_MS = 500  # for the last replies


class ControlSetup(NamedTuple):
    """What the process of the control socket gets when it starts. endpoint: to bind; key: file of the keys that encrypt
    it; the further ones: see `ControlArbiter`."""

    endpoint: str
    status: dict[str, Any]
    unset: dict[str, Any]
    files: dict[str, str]
    timeout: float
    key: str | None = None


class LineReader:
    """Whole lines of a file descriptor; `ended` after its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._rest, self.ended = descriptor, b"", False

    def read(self) -> list[bytes]:
        """Those that are complete with what one read returns."""
        data = os.read(self._descriptor, 1 << 20)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines


def serve(source: int, destination: int) -> None:
    """Serve until `source` ends; file descriptors."""

    def tell(**line: Any) -> None:
        os.write(destination, dumps(line, option=OPT_APPEND_NEWLINE))

    reader, lines = LineReader(source), list[bytes]()
    while not lines and not reader.ended:
        lines = reader.read()
    if not lines:
        return
    setup = ControlSetup(**loads(lines.pop(0)))
    try:
        server = ControlServer(setup, tell)
    except CosimError as error:
        tell(failed=error.what, place=str(error.place))
        return
    tell(ready=server.endpoint)
    with server:
        while not reader.ended:
            for line in lines:
                server.from_run(loads(line))
            server.turn(source)
            lines = reader.read() if server.run_has_written else []


class ControlServer:
    """A ROUTER socket around a `ControlArbiter`."""

    def __init__(self, setup: ControlSetup, tell: Callable[..., object]) -> None:
        """The function sends a line to the run. Raises InputError when the endpoint cannot be bound."""
        import zmq

        self.arbiter = ControlArbiter(setup.status, setup.unset, setup.files, setup.timeout)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, 4 * MAX_BYTES)  # a longer one ends its connection
        if (key := key_of(setup.endpoint, setup.key)) is not None:
            secure(self._socket, key)
        self.endpoint = bind(self._socket, setup.endpoint, "serve control")
        self.run_has_written = False
        self._tell, self._told_owner, self._alive = tell, None, 0.0  # the owner that the run knows; when it was told

    def turn(self, source: int) -> None:
        """Wait for requests or for the run, and answer what can be answered."""
        import zmq

        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(source, zmq.POLLIN)
        ready = dict(poller.poll(POLL_MS))
        self.run_has_written = source in ready
        with suppress(zmq.Again):
            for _ in range(REQUESTS_PER_TURN if self._socket in ready else 0):
                self._serve(self._socket.recv_multipart(zmq.NOBLOCK))
        if (name := self.arbiter.lost(time.monotonic())) is not None:
            self._tell(lost=name)
            self._told_owner = None
        self._tell_owner()
        if time.monotonic() - self._alive >= ALIVE_PERIOD:
            self._tell(alive=True)
            self._alive = time.monotonic()

    def _tell_owner(self) -> None:
        """The run knows who holds control: it cannot ask when this process has died."""
        name = None if self.arbiter.owner is None else self.arbiter.owner.name
        if name != self._told_owner:
            self._tell(owner=name)
            self._told_owner = name

    def from_run(self, line: dict[str, Any]) -> None:
        if "update" in line:
            self.arbiter.update(line["update"])
        else:
            self._send(*self.arbiter.answered(line["token"], line["reply"]))

    def _serve(self, parts: list[bytes]) -> None:
        """Answer a request, or pass it to the run."""
        *envelope, data = parts
        if len(parts) > 3 or any(envelope[1:]):  # REQ sends an empty frame before the request, and expects it back
            self._send(tuple(envelope[:1]), refused(None, f"a request is one frame, got {len(parts) - 1}"))
            return
        answer = self.arbiter.handle(tuple(envelope), data, time.monotonic())
        self._tell_owner()  # before the reply: who has it, holds control in the eyes of the run too
        if isinstance(answer, RemoteCommand):
            self._tell(command=answer._asdict())
        else:
            self._send(tuple(envelope), answer)

    def _send(self, client: Client, reply: Reply) -> None:
        import zmq

        with suppress(zmq.Again):  # of a client that does not read its replies
            self._socket.send_multipart([*client, dumps(reply)], zmq.NOBLOCK)

    def __enter__(self) -> ControlServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._context.term()  # waits for the last replies


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # the run ends this process
    destination = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not get between the lines
    with suppress(BrokenPipeError):  # the run has ended
        serve(0, destination)


if __name__ == "__main__":
    main()
