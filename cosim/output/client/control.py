"""Control of a run from another program, see the reference page of the control socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from cosim.core.access.binding import CONTROL_EXAMPLE, check_address, control_address
from cosim.core.errors import InputError, InputErrors, RunError

if TYPE_CHECKING:
    import numpy as np

    from cosim.output.stream.reading import ParameterRecord

RELEASE_TIMEOUT = 0.5  # s
BEATS = 4  # heartbeats within the time after which control is lost

Value = Union[float, str, Sequence[float], "np.ndarray"]


class NoReply(RunError):
    """Nothing answers at the address."""


class _Reply(dict[str, Any]):
    """The fields of an answer. Raises RunError for one that is missing."""

    def __init__(self, fields: Mapping[str, Any], address: str) -> None:
        super().__init__(fields)
        self._address = address

    def __missing__(self, name: str) -> Any:
        raise _no_control_socket(f"it lacks '{name}'", self._address)


def connect(
    address: str | None = None, name: str = "client", timeout: float = 2.0, key: str | Path | None = None
) -> ControlClient:
    """A client of the run whose control socket has this address, by default as for `--control` without a value.

    name: how others see it; timeout [s]: for each answer; key: file of the public key of the run, see `telemetry.key`;
    a run of this user on this machine needs none.
    Raises InputError for what is no address, RunError when nothing answers.
    """
    client = ControlClient(address, name, timeout, key)
    try:
        client.status()
    except BaseException:
        client.close()
        raise
    return client


class ControlClient:
    """One method per command; each waits for the answer. What is refused raises the reason: InputError for what no run
    of this rig accepts, else RunError.

    It may be used by several threads. Use it in a `with` statement, or call `close`.
    """

    def __init__(
        self, address: str | None = None, name: str = "client", timeout: float = 2.0, key: str | Path | None = None
    ) -> None:
        import zmq

        from cosim.core.access.curve import client_key_of, secure_client

        self.address = control_address() if address is None else address
        check_address(self.address)
        self.name, self.timeout = name, timeout
        self._lock, self._number, self._keyed = threading.Lock(), 0, key is not None
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        try:
            if (key := client_key_of(self.address, key)) is not None:
                secure_client(self._socket, key)
            self._socket.connect(self.address)
        except zmq.ZMQError as cause:
            self._socket.close()
            what = (
                f"no address of a control socket ({zmq.strerror(cause.errno or 0)}); give one such as {CONTROL_EXAMPLE}"
            )
            raise InputError(what, self.address) from cause
        except InputError:  # of the key
            self._socket.close()
            raise

    def request(self, command: str, **fields: Any) -> dict[str, Any]:
        """The fields of the reply. Raises InputError for what is no JSON; InputError or RunError when it is refused,
        NoReply when nothing answers within `timeout`."""
        return self._request(command, self.timeout, **fields)

    def _request(self, command: str, timeout: float, **fields: Any) -> dict[str, Any]:
        import zmq
        from orjson import OPT_SERIALIZE_NUMPY, JSONEncodeError, dumps

        with self._lock:
            self._number += 1
            message = {"id": self._number, "command": command, "client": self.name, **fields}
            try:
                data = dumps(message, option=OPT_SERIALIZE_NUMPY)
            except JSONEncodeError as cause:
                raise InputError(f"{command}: cannot be sent: {cause}", self.address) from cause
            until, reply = time.monotonic() + timeout, _Reply({}, self.address)
            self._wait(zmq.POLLOUT, until, timeout)  # what is no control socket takes nothing
            self._socket.send(data)
            while reply.get("id") != self._number:  # others answer requests that were given up
                self._wait(zmq.POLLIN, until, timeout)
                reply = self._read(self._socket.recv())
        if not reply.pop("ok"):
            lines = reply["error"].splitlines()
            if reply.get("input") and len(lines) > 1:
                raise InputErrors([InputError(line, self.address) for line in lines])
            raise (InputError if reply.get("input") else RunError)("; ".join(lines), self.address)
        del reply["id"]
        return reply

    def _read(self, data: bytes) -> _Reply:
        """Raises RunError for what is no answer of a run."""
        from cosim.core.trust.plain_data import WrongShape, from_json, of_shape
        from cosim.output.stream.reading import Answer

        try:
            fields = from_json(data)
            of_shape(fields, Answer)
        except WrongShape as wrong:
            raise _no_control_socket(str(wrong), self.address) from None
        return _Reply(fields, self.address)

    def _wait(self, what: int, until: float, timeout: float) -> None:
        """Raises NoReply."""
        if not self._socket.poll(max(0, round((until - time.monotonic()) * 1e3)), what):
            key = ", and that this is its key" if self._keyed else "; an encrypted one needs its key"
            raise NoReply(
                f"nothing answers within {timeout:g} s; check that the run is there, with --control{key}", self.address
            )

    # --- what anyone may ---

    def status(self) -> dict[str, Any]:
        """State, tick and time of the run, its signals, joints and parameters, and who holds control."""
        return self.request("status")

    def parameters(self, *names: str) -> dict[str, ParameterRecord[Any]]:
        """What there is to know of parameters, with their present values in SI; without names of all that can be set.
        An element such as `arm.kp/elbow` has a name too."""
        return self.request("get", **({"names": list(names)} if names else {}))["parameters"]

    def get(self, *names: str) -> dict[str, Any]:
        """Their present values, see `parameters`; None for an infinite one."""
        return {name: record["value"] for name, record in self.parameters(*names).items()}

    def files(self) -> tuple[str, dict[str, str]]:
        """(name of the rig file, content of the files of the rig by name)."""
        reply = self.request("files")
        return reply["rig"], reply["files"]

    def marker(self, text: str) -> int:
        """Put a text into the events of the run; the tick."""
        return self.request("marker", text=text)["tick"]

    def estop(self) -> int:
        """Stop immediately, motors off; the tick that would have come next."""
        return self.request("estop")["tick"]

    # --- what the owner of control may ---

    @contextmanager
    def control(self, force: bool = False) -> Iterator[ControlClient]:
        """Hold control in this block, with heartbeats from a thread. force: take it from another client."""
        period, ended = self.take(force) / BEATS, threading.Event()

        def beat() -> None:
            with suppress(RunError):  # the run has ended, or another client has taken control
                while not ended.wait(period):
                    self.request("heartbeat")

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()
            with suppress(RunError):  # the run may have ended
                self._request("release", RELEASE_TIMEOUT)

    def take(self, force: bool = False) -> float:
        """Take control; it is lost when nothing was sent for the returned time [s]."""
        return self.request("take", force=force)["timeout"]

    def release(self) -> None:
        self.request("release")

    def set(self, values: Mapping[str, Value]) -> int:
        """Set parameters, all between the same two ticks; the number of the second one. See `Rig.set` for values."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return self.request("set", values=plain)["tick"]

    def arm(self, allow_turns: bool = False) -> list[str]:
        """Unlock `start` of a rig with real motors for a while; what they will do, a line for each joint. allow_turns:
        the drives have lost no turns, and joints may rotate by more than one to the start of their trajectory."""
        return list(self.request("arm", **({"allow_turns": True} if allow_turns else {})).get("motion", ()))

    def start(self) -> None:
        """Start a run that waits for it."""
        self.request("start")

    def pause(self) -> int:
        """Pause; the tick that comes next."""
        return self.request("pause")["tick"]

    def resume(self) -> None:
        self.request("resume")

    def step(self, ticks: int = 1) -> int:
        """Run some ticks in a pause; the tick that comes next."""
        return self.request("step", ticks=ticks)["tick"]

    def stop(self) -> int:
        """End the run by a controlled stop, where the rig has one; the tick that it began with."""
        return self.request("stop")["tick"]

    def close(self) -> None:
        """Disconnect. Idempotent."""
        self._socket.close()

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _no_control_socket(why: str, address: str) -> RunError:
    return RunError(f"what answers there is no run ({why}); check the address", address)
