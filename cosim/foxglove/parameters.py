"""The parameters of a run for Foxglove: got from the schema of its stream, set through its control socket."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from foxglove import Parameter, StatusLevel
from foxglove.websocket import ServerListener

from cosim.client import ControlClient
from cosim.errors import CosimError, RunError

if TYPE_CHECKING:
    from foxglove.websocket import ChannelView, Client

CLIENT = "Foxglove"  # the name that events of the run have
FROM_NETWORK = "parameters can be set from this machine alone; serve 127.0.0.1"
NO_SOCKET = "the run has no control socket; run it with --control"
REFUSED = "set"  # number of the status

Report = Callable[[str, StatusLevel, str], None]


class RunParameters(ServerListener):
    """Called by the threads of the server. A set is that of all of its parameters, or of none."""

    def __init__(self, key: str | None, local: bool) -> None:
        """key: file of the public key of the run; local: only this machine can connect, else nothing can be set."""
        self._key, self._local, self._client, self._endpoint = key, local, None, None
        self._values: dict[str, Any] = {}
        self.report: Report = lambda what, level, number: None
        self.withdraw: Callable[[list[str]], None] = lambda numbers: None
        self.subscribed: set[str] = set()  # topics that a client has subscribed to since `take_subscribed`

    def learn(self, schema: Mapping[str, Any]) -> list[Parameter]:
        """From a schema of the stream; the parameters whose values are new."""
        values = {name: item["value"] for name, item in schema["parameters"].items()}
        new = {name: value for name, value in values.items() if self._values.get(name) != value}
        self._values = values
        if schema["control"] != self._endpoint:
            self.close()
            self._endpoint = schema["control"]
        return _parameters(new)

    def take_subscribed(self) -> set[str]:
        topics, self.subscribed = self.subscribed, set()
        return topics

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    # --- calls of the server ---

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        self.subscribed |= {channel.topic}

    def on_get_parameters(
        self, client: Client, param_names: list[str], request_id: str | None = None
    ) -> list[Parameter]:
        return self._present(param_names)

    def on_set_parameters(
        self, client: Client, parameters: list[Parameter], request_id: str | None = None
    ) -> list[Parameter]:
        """The values that the run has then; a refusal is a status, and changes none."""
        values = {parameter.name: parameter.get_value() for parameter in parameters}
        try:
            self._set(values)
            self.withdraw([REFUSED])
        except CosimError as error:
            self.report(str(error), StatusLevel.Error, REFUSED)
            with suppress(CosimError):  # the stream may be behind a set before
                self._get(values)
        return self._present(list(values))

    def _present(self, names: Sequence[str]) -> list[Parameter]:
        """All, where there are no names."""
        return _parameters({name: self._values[name] for name in names or self._values if name in self._values})

    def _set(self, values: Mapping[str, Any]) -> None:
        """Raises InputError or RunError for what is refused."""
        if not self._local:
            raise RunError(FROM_NETWORK)
        if self._endpoint is None:
            raise RunError(NO_SOCKET)
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


def _parameters(values: Mapping[str, Any]) -> list[Parameter]:
    """JSON has null for numbers that are not finite."""
    found = []
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        numbers = [math.nan if item is None else float(item) for item in items]
        found.append(Parameter(name, value=cast(Any, numbers if isinstance(value, list) else numbers[0])))
    return found
