"""One federate of HELICS: vectors that it publishes and reads, and steps of the time of HELICS.

The time of HELICS counts steps of 1: what a federate publishes at k is known to the others at k + 1. All federates make
the same steps, so what arrives does not depend on the speed of machines or messages.
"""

from __future__ import annotations

import importlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cosim.errors import InputError, RunError
from cosim.types import Array

SCHEME = "tcp://"
CONNECT_LIMIT = 5.0  # s, for a broker to answer
END_LIMIT = 2.0  # s
POLL = 5e-5  # s
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
    """Joined to a broker. outputs: names of the vectors that it publishes;
    inputs: of those that it reads; others: federates whose errors it reads."""

    def __init__(
        self, name: str, address: str, outputs: Sequence[str], inputs: Sequence[str], others: Sequence[str] = ()
    ) -> None:
        """Raises RunError: no broker answers, or it has no place for this federate."""
        self._helics = h = load_helics()
        self._address, self._time = address, 0
        self._pending: Callable[..., Any] | None = None  # completes what has been started
        host, _, port = address.removeprefix(SCHEME).rpartition(":")
        try:
            socket.create_connection((host, int(port)), CONNECT_LIMIT).close()
        except OSError:
            raise RunError(f"no broker of HELICS answers; start one there: {broker_command(port)}", address) from None
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
        h.helicsFederateInfoSetCoreName(info, f"{name}-{os.getpid()}-{time.time_ns()}")
        local = " --local_interface=tcp://127.0.0.1" if host == "127.0.0.1" else ""
        h.helicsFederateInfoSetCoreInitString(info, CORE.format(address=address) + local)
        h.helicsFederateInfoSetTimeProperty(info, h.HELICS_PROPERTY_TIME_PERIOD, 1.0)
        try:
            self._federate = h.helicsCreateValueFederate(name, info)
            publish, subscribe = h.helicsFederateRegisterGlobalPublication, h.helicsFederateRegisterSubscription
            self._outputs = {each: publish(self._federate, each, h.HELICS_DATA_TYPE_VECTOR, "") for each in outputs}
            self._error = publish(self._federate, f"{name}/error", h.HELICS_DATA_TYPE_STRING, "")
            self._inputs = {each: subscribe(self._federate, each, "") for each in inputs}
            self._errors = {each: subscribe(self._federate, f"{each}/error", "") for each in others}
        except h.HelicsException as error:
            what = f"the broker of HELICS refuses the federate '{name}': {error}"
            raise RunError(f"{what}; check the number of its federates, and that each runs once", address) from None

    def publish(self, output: str, values: Array) -> None:
        self._try(self._helics.helicsPublicationPublishVector, self._outputs[output], values.tolist())

    def read(self, name: str) -> Array:
        """The last values; empty before the first."""
        values = self._try(self._helics.helicsInputGetVector, self._inputs[name])
        return np.array(values, dtype=float)

    def publish_error(self, text: str) -> None:
        self._try(self._helics.helicsPublicationPublishString, self._error, text)

    def error_of(self, other: str) -> str:
        return self._try(self._helics.helicsInputGetString, self._errors[other])

    def begin(self, watch: Callable[[], None]) -> None:
        """Once, when all federates have joined; watch: see `step`."""
        self._try(self._helics.helicsFederateEnterExecutingModeAsync, self._federate)
        self._complete(self._helics.helicsFederateEnterExecutingModeComplete, watch)

    def step(self, watch: Callable[[], None]) -> None:
        """To the next time, when all others make this step too; watch: called while it waits, may
        raise. Raises RunError for a broker that is lost."""
        self._time += 1
        self._try(self._helics.helicsFederateRequestTimeAsync, self._federate, float(self._time))
        if self._complete(self._helics.helicsFederateRequestTimeComplete, watch) != self._time:
            raise self._lost("it has ended the federation")

    def _complete(self, fn: Callable[..., Any], watch: Callable[[], None]) -> Any:
        """What fn gives when the operation that has been started is complete."""
        self._pending = fn
        while not self._try(self._helics.helicsFederateIsAsyncOperationCompleted, self._federate):
            time.sleep(POLL)
            watch()
        self._pending = None
        return self._try(fn, self._federate)

    def _try(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return fn(*arguments)
        except self._helics.HelicsException as error:
            raise self._lost(str(error)) from None

    def _lost(self, why: str) -> RunError:
        return RunError(f"the broker of HELICS is lost: {why}; start it and all federates again", self._address)

    @property
    def stuck(self) -> bool:
        """Whether the last step has not ended."""
        return self._pending is not None

    def close(self) -> None:
        """Leave the federation; never raises, and never waits for other federates."""
        h = self._helics
        with suppress(h.HelicsException):
            if self._pending is None:
                h.helicsFederateDisconnect(self._federate)
                return
            # a federate that waits cannot leave by itself; its core can, which ends the wait
            h.helicsCoreDisconnect(h.helicsFederateGetCore(self._federate))
            end = time.monotonic() + END_LIMIT
            while not h.helicsFederateIsAsyncOperationCompleted(self._federate) and time.monotonic() < end:
                time.sleep(POLL)
            self._pending(self._federate)


def broker_command(port: str | int) -> str:
    return f"helics_broker -t zmq -f FEDERATES --localport={port}"
