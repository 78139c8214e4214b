"""An FMU in a process of its own: when it crashes or hangs, the run goes on to its end with one error."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from tempfile import mkdtemp
from typing import Any

from cosim.errors import CosimError, InputError, RunError
from cosim.fmi.frames import pack, receive, send, unpack
from cosim.fmi.instance import FmuOptions
from cosim.types import Array, Signals

START_LIMIT = 60.0  # s, at least, of the process and of an initialisation
END_LIMIT = 2.0  # s
ERRORS: dict[str, Callable[..., CosimError]] = {"InputError": InputError, "RunError": RunError}


class SavedRemotely:
    """The number of a state that the process of an FMU keeps until nobody holds this."""

    def __init__(self, number: int, released: list[int]) -> None:
        self.number, self._released = number, released

    def __del__(self) -> None:
        self._released.append(self.number)


class RemoteInstance:
    """See `Instance`. limit: s, of the answer to a step."""

    def __init__(self, options: FmuOptions, limit: float) -> None:
        self.place = options.place
        self._limit, self._start_limit = limit, max(limit, START_LIMIT)
        self._released: list[int] = []
        # of the files that its process leaves when it crashes
        self._remove = weakref.finalize(self, shutil.rmtree, folder := mkdtemp(prefix="cosim_fmu_"), ignore_errors=True)
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cosim.fmi.fmu_process", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ
                | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "TMPDIR": folder},  # the same modules
                pass_fds=(theirs.fileno(),),
                process_group=0,  # Ctrl-C reaches the run only, which then ends this process
            )
        try:
            described = self._ask("while it is opened", self._start_limit, InputError, "open", options)
        except BaseException:
            self.close()
            raise
        self.inputs: Signals
        self.outputs: Signals
        self.feedthrough: frozenset[tuple[str, str]]
        self.inputs, self.outputs, self.feedthrough, self.order, self.repeats, self.variable = described

    @property
    def process_number(self) -> int:
        return self._process.pid

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        reply = self._ask("while it starts", self._start_limit, InputError, "start", t, pack(inputs))
        return unpack(reply, self.outputs)

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        reply = self._ask(f"in the step from t = {t:.9g} s", self._limit, RunError, "step", t, h, pack(inputs))
        return unpack(reply, self.outputs)

    def save(self) -> SavedRemotely:
        return SavedRemotely(self._ask("while it is saved", self._limit, RunError, "save"), self._released)

    def restore(self, saved: Any) -> None:
        self._ask("while it is restored", self._limit, RunError, "restore", saved.number)

    def close(self) -> None:
        """End the process and remove its files."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        try:
            self._process.wait(END_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._remove()

    def _ask(self, when: str, limit: float, error: Callable[..., CosimError], *message: object) -> Any:
        """The answer to a message. when: of the message, for errors; error: of a process that does not answer."""
        released = tuple(self._released)
        del self._released[: len(released)]
        try:
            self._connection.settimeout(limit)
            send(self._connection, (*message, released))
            kind, *reply = receive(self._connection)
        except TimeoutError:
            self._process.kill()
            what = f"gives no answer within {limit:g} s {when}, and was ended"
            raise error(f"{what}; check its inputs and parameters, or raise its limit", self.place) from None
        except (EOFError, OSError):
            what = f"{self._end()} {when}"
            raise error(
                f"{what}; check its inputs and parameters, or report it to who exported it", self.place
            ) from None
        if kind in ERRORS:
            raise ERRORS[kind](*reply)
        return reply[0]

    def _end(self) -> str:
        """How the process ended."""
        try:
            code = self._process.wait(END_LIMIT)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code >= 0:
            return f"ended its process with exit code {code}"
        return f"crashed ({signal.Signals(-code).name})"
