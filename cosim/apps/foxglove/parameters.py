"""The parameters of a run for Foxglove: got from the schema of its stream, set through its control socket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cosim.apps.foxglove.protocol import StatusLevel
from cosim.core.errors import CosimError, RunError
from cosim.output.client import ControlClient

CLIENT = "Foxglove"  # the name that events of the run have
READ_ONLY = "parameters are read-only; start cosim foxglove with --allow-set"
FROM_NETWORK = "parameters can be set from this machine alone; serve 127.0.0.1"
NO_RUN = "not yet connected to a run; set it again when its parameters are shown"
NO_SOCKET = "the run has no control socket, or none yet; run it with --control"
REFUSED = "set"  # number of the status

Report = Callable[[str, StatusLevel, str], None]


class RunParameters:
    """The parameters of a run, read and set by threads of the server. A set changes all of its parameters, or none."""

    def __init__(self, key: str | None, refused: str) -> None:
        """key: file of the public key of the run; refused: why nothing can be set, empty if it can."""
        self._key, self._refused, self._client, self._endpoint = key, refused, None, None
        self._values: dict[str, Any] = {}
        self._connected = False  # whether a schema has come
        self._lock = threading.Lock()  # of the client
        self.report: Report = lambda what, level, number: None
        self.withdraw: Callable[[list[str]], None] = lambda numbers: None

    def learn(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """From a schema of the stream; the parameters whose values are new."""
        values = {name: item["value"] for name, item in schema["parameters"].items()}
        new = {name: value for name, value in values.items() if self._values.get(name) != value}
        self._values = values
        if schema["control"] != self._endpoint:
            self.close()
            self._endpoint = schema["control"]
        self._connected = True
        return new

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    def get(self, names: Sequence[str]) -> dict[str, Any]:
        """All, where there are no names."""
        values = self._values
        return {name: values[name] for name in names or values if name in values}

    def set(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the run has then; a refusal is a status, and changes none."""
        with self._lock:
            try:
                self._set(values)
                self.withdraw([REFUSED])
            except CosimError as error:
                self.report(str(error), StatusLevel.ERROR, REFUSED)
                with suppress(CosimError):  # the stream may be behind a set before
                    self._get(values)
        return self.get(list(values))

    def _set(self, values: Mapping[str, Any]) -> None:
        """Raises InputError or RunError for what is refused."""
        if self._refused:
            raise RunError(self._refused)
        if self._endpoint is None:
            raise RunError(NO_SOCKET if self._connected else NO_RUN)
        for name, value in values.items():
            if not isinstance(value, int | float | list | str):
                raise RunError(f"parameter '{name}' cannot be {value!r}; give a number, or a list of numbers")
        if self._client is None:
            self._client = ControlClient(self._endpoint, CLIENT, key=self._key)
        with self._client.control() as client:
            client.set(values)
        self._get(values)

    def _get(self, names: Iterable[str]) -> None:
        """Raises InputError or RunError."""
        if self._client is not None:
            self._values |= self._client.get(*names)
