"""One federate of HELICS, in simulated time: what it publishes, and messages to other federates that take no time.

Messages are commands of HELICS. Its time is simulated time, so what parts exchange within a step of their
coupling needs a channel beside it. Federates that wait for each other at HELICS_TIME_MAXTIME may be granted the next
time before the answer, and those that iterate force all others to.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from cosim.core.errors import InputError, RunError
from cosim.core.types import Array, Signals

SCHEME = "tcp://"
CONNECT_LIMIT = 5.0  # s, for a broker to answer
END_LIMIT = 2.0  # s
POLL = 0.1  # of the time that it has waited, between two looks
SHORTEST_PAUSE, LONGEST_PAUSE = 2e-5, 2e-3  # s, between two looks
CORE = "--federates=1 --brokeraddress={address} --loglevel=no_print --timeout=5s"


def load_helics() -> Any:
    """Raises InputError where it is not installed."""
    importlib.import_module("casadi")  # first: loaded after HELICS, it names inputs without their numbers
    try:
        import helics
    except ImportError:
        raise InputError("HELICS is not installed; pip install 'cosim[helics]'", "--helics") from None
    return helics


def checked_address(text: str, option: str) -> str:
    """`tcp://HOST:PORT` of `[tcp://]HOST:PORT`. Raises InputError for another text."""
    host, _, port = text.removeprefix(SCHEME).rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"'{text}' is no address; give HOST:PORT, such as 127.0.0.1:23404", option)
    return f"{SCHEME}{host}:{port}"


def free_port() -> int:
    """A port of this machine that nothing listens at, nor at the one after it, which a broker of HELICS takes too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            with suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return port


class Federate:
    """Joined to a broker. outputs: by the names under which it publishes them."""

    def __init__(self, name: str, address: str, outputs: Signals | None = None) -> None:
        """Raises RunError: no broker answers, or it has no place for this federate."""
        self._helics = h = load_helics()
        self._address, self._time = address, 0.0
        self._pending: Callable[..., Any] | None = None  # completes what has been started
        self.stuck = False  # whether what it waits for has not come
        host, _, port = address.removeprefix(SCHEME).rpartition(":")
        try:
            socket.create_connection((host, int(port)), CONNECT_LIMIT).close()
        except (OSError, ValueError):  # also one of a host that cannot be
            raise RunError(f"no broker of HELICS answers; start one there: {broker_command(port)}", address) from None
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
        h.helicsFederateInfoSetCoreName(info, f"{name}-{os.getpid()}-{time.time_ns()}")
        local = " --local_interface=tcp://127.0.0.1" if host == "127.0.0.1" else ""
        h.helicsFederateInfoSetCoreInitString(info, CORE.format(address=address) + local)
        h.helicsFederateInfoSetFlagOption(info, h.HELICS_FLAG_UNINTERRUPTIBLE, True)
        try:
            self._federate = h.helicsCreateValueFederate(name, info)
            self._core = h.helicsFederateGetCore(self._federate)
            self._outputs = {
                key: self._publication(key, each.shape, each.unit) for key, each in (outputs or {}).items()
            }
        except h.HelicsException as error:
            what = f"the broker of HELICS refuses the federate '{name}': {error}"
            raise RunError(f"{what}; check the number of its federates, and that each runs once", address) from None

    def _publication(self, name: str, shape: tuple[int, ...], unit: str) -> Any:
        kind = self._helics.HELICS_DATA_TYPE_VECTOR if shape else self._helics.HELICS_DATA_TYPE_DOUBLE
        return self._helics.helicsFederateRegisterGlobalPublication(self._federate, name, kind, unit)

    # --- time ---

    def meet(self, watch: Callable[[], None]) -> None:
        """Wait until all federates have joined. What is published before `begin` is valid at time 0. watch: called
        while it waits, may raise."""
        h = self._helics
        self._call(h.helicsFederateEnterInitializingModeAsync, h.helicsFederateEnterInitializingModeComplete, watch)

    def begin(self, watch: Callable[[], None]) -> None:
        """Begin the simulated time, at 0; watch: see `meet`."""
        h = self._helics
        self._call(h.helicsFederateEnterExecutingModeAsync, h.helicsFederateEnterExecutingModeComplete, watch)

    def advance(self, t: float) -> None:
        """To the time t [s], unless it has got there already. It waits for no other federate, as it reads no values of
        theirs. Raises RunError for a broker that is lost."""
        if t <= self._time:
            return
        granted = self._try(self._helics.helicsFederateRequestTime, self._federate, t)
        if abs(granted - t) > 1e-9:
            raise self._lost("it has ended the federation")
        self._time = t

    def _call(self, start: Callable[..., Any], complete: Callable[..., Any], watch: Callable[[], None]) -> None:
        """Start what others must agree to, and wait until it is complete."""
        self._try(start, self._federate)
        self._pending = complete
        self._until(self._helics.helicsFederateIsAsyncOperationCompleted, watch)
        self._pending = None
        self._try(complete, self._federate)

    # --- values and messages ---

    def publish(self, name: str, value: Array) -> None:
        """The value of an output at this time, flat where it is no number."""
        if value.ndim:
            self._try(self._helics.helicsPublicationPublishVector, self._outputs[name], value.reshape(-1).tolist())
        else:
            self._try(self._helics.helicsPublicationPublishDouble, self._outputs[name], float(value))

    def send(self, federate: str, message: Mapping[str, Any]) -> None:
        """A message of texts, numbers, arrays and what contains them, equal to the bit where it arrives."""
        text = json.dumps(message, default=np.ndarray.tolist)
        self._try(self._helics.helicsFederateSendCommand, self._federate, federate, text)

    def receive(self, watch: Callable[[], None]) -> dict[str, Any]:
        """The next message; arrays are lists. watch: see `meet`."""
        return json.loads(self._until(self._helics.helicsFederateGetCommand, watch))

    def _until(self, look: Callable[..., Any], watch: Callable[[], None]) -> Any:
        """The first thing that it sees."""
        began, self.stuck = time.perf_counter(), True
        while not (seen := self._try(look, self._federate)):
            time.sleep(min(max(SHORTEST_PAUSE, POLL * (time.perf_counter() - began)), LONGEST_PAUSE))
            watch()
            if not self._helics.helicsCoreIsConnected(self._core):
                raise self._lost("it does not answer")
        self.stuck = False
        return seen

    def _try(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return fn(*arguments)
        except self._helics.HelicsException as error:
            raise self._lost(str(error)) from None

    def _lost(self, why: str) -> RunError:
        return RunError(f"the broker of HELICS is lost: {why}; start it and all federates again", self._address)

    # --- end ---

    def close(self) -> None:
        """Leave the federation; never raises, and never waits for other federates."""
        h = self._helics
        with suppress(h.HelicsException):
            if not self.stuck:
                h.helicsFederateDisconnect(self._federate)
                return
            # a federate that waits cannot leave by itself; its core can, which ends the wait
            h.helicsCoreDisconnect(self._core)
            if self._pending is None:
                return
            end = time.monotonic() + END_LIMIT
            while not h.helicsFederateIsAsyncOperationCompleted(self._federate) and time.monotonic() < end:
                time.sleep(LONGEST_PAUSE)
            self._pending(self._federate)


def broker_command(port: str | int) -> str:
    return f"helics_broker -t zmq -f FEDERATES --localport={port}"
