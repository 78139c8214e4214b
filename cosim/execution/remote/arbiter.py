"""The arbiter of the clients of a run: who holds control, what is answered directly, what the run carries out.

It knows no socket and no clock: clients, bytes and times are given. The run is never asked before a request was
checked completely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cosim.core.errors import did_you_mean
from cosim.execution.remote.requests import BadRequest, Request, UnknownName, read_request

MAX_OPEN = 8  # requests of one client that the run has not answered
MAX_OPEN_OF_ALL = 64

Reply = dict[str, Any]
Client = tuple[bytes, ...]  # the frames before its requests


@dataclass
class Owner:
    """The client that holds control, and when it was heard last [s]."""

    client: Client
    name: str
    heard: float


class RemoteCommand(NamedTuple):
    """What the run is to carry out; it answers with the token."""

    token: int
    name: str
    client: str
    fields: Mapping[str, Any]


class ControlArbiter:
    """Answers the requests of all clients of a run, and knows which client holds control."""

    def __init__(
        self, status: dict[str, Any], unset: Mapping[str, Any], files: Mapping[str, str], timeout: float
    ) -> None:
        """status: what is known of the run, see `update`; unset: records of the parameters that no client can set, by
        name; files: of the rig, by name; timeout [s]: control is lost when nothing was heard of its owner for so
        long."""
        self.status, self._unset, self.files, self.timeout = status, unset, files, timeout
        self.owner: Owner | None = None
        self._open: dict[int, tuple[Client, Any]] = {}  # token -> who asked, and the id of the request
        self._tokens = 0

    def update(self, changes: Mapping[str, Any]) -> None:
        """Replace parts of the status; values of parameters under `values`."""
        for name, value in changes.get("values", {}).items():
            self.status["parameters"][name]["value"] = value
        self.status |= {name: part for name, part in changes.items() if name != "values"}

    def handle(self, client: Client, data: bytes, now: float) -> Reply | RemoteCommand:
        """The reply to a request, or a command that is answered by `answered`."""
        try:
            request = read_request(data)
        except BadRequest as error:
            return refused(getattr(error, "id", None), str(error), wrong_input=True)
        if self.owner is not None and self.owner.client == client:
            self.owner.heard = now
        try:
            if request.kind.of_owner:
                self._check_owner(client)
            if request.kind.by_run:
                return self._command(client, request)
            return accepted(request.id, **getattr(self, f"_{request.command}")(client, request, now))
        except BadRequest as error:
            return refused(request.id, f"{request.command}: {error}", wrong_input=isinstance(error, UnknownName))

    def answered(self, token: int, reply: Mapping[str, Any]) -> tuple[Client, Reply]:
        """(who asked, the reply) for a command that the run has carried out or refused."""
        client, number = self._open.pop(token)
        return client, {"id": number, **reply}

    def lost(self, now: float) -> str | None:
        """The name of the client that has just lost control by its silence."""
        if self.owner is None or now - self.owner.heard <= self.timeout:
            return None
        name, self.owner = self.owner.name, None
        return name

    def _check_owner(self, client: Client) -> None:
        if self.owner is None:
            raise BadRequest("you do not hold control; take it first")
        if self.owner.client != client:
            raise BadRequest(f"control is held by '{self.owner.name}'")

    def _command(self, client: Client, request: Request) -> RemoteCommand:
        mine = sum(asker == client for asker, _ in self._open.values())
        if request.command != "estop" and (mine >= MAX_OPEN or len(self._open) >= MAX_OPEN_OF_ALL):
            raise BadRequest("too many open requests; wait for their replies")
        self._tokens += 1
        self._open[self._tokens] = client, request.id
        holds = self.owner is not None and self.owner.client == client
        name = self.owner.name if holds and self.owner is not None else request.client
        return RemoteCommand(self._tokens, request.command, name, request.fields)

    # --- what is answered directly ---

    def _status(self, client: Client, request: Request, now: float) -> Reply:
        return {**self.status, "holder": None if self.owner is None else self.owner.name}

    def _list(self, client: Client, request: Request, now: float) -> Reply:
        names = request.fields.get("names", list(self.status["parameters"]))
        return {"parameters": {name: self._record(name) for name in names}}

    def _get(self, client: Client, request: Request, now: float) -> Reply:
        found = self._list(client, request, now)  # clients of older versions read `values`
        return found | {"values": {name: record["value"] for name, record in found["parameters"].items()}}

    def _record(self, name: str) -> Mapping[str, Any]:
        """Of a parameter, or of one of its elements, such as `arm.kp/elbow`."""
        known = {**self.status["parameters"], **self._unset}
        if name in known:
            return known[name]
        whole, sign, label = name.rpartition("/")
        if not sign or whole not in known:
            raise UnknownName(f"there is no parameter '{name}'{did_you_mean(name, known)}")
        record = dict(known[whole])
        numbers = record["value"] if isinstance(record["value"], list) else []
        labels = record.pop("joints", None) or [str(k) for k in range(len(numbers))]
        if label not in labels:
            raise UnknownName(f"'{whole}' has no element for '{label}'{did_you_mean(label, labels)}")
        place = labels.index(label)
        units = record.pop("units", None)
        return record | {"value": numbers[place], "unit": units[place] if units else record["unit"]}

    def _files(self, client: Client, request: Request, now: float) -> Reply:
        return {"files": self.files, "rig": next(iter(self.files), None)}

    def _take(self, client: Client, request: Request, now: float) -> Reply:
        other = self.owner is not None and self.owner.client != client
        if other and self.owner is not None and not request.fields.get("force"):
            fix = "wait until it is released, or take it with force"
            raise BadRequest(f"control is held by '{self.owner.name}'; {fix}")
        self.owner = Owner(client, request.client, now)
        return {"timeout": self.timeout}

    def _release(self, client: Client, request: Request, now: float) -> Reply:
        self.owner = None
        return {}

    def _heartbeat(self, client: Client, request: Request, now: float) -> Reply:
        return {}


def accepted(number: Any, **parts: Any) -> Reply:
    return {"id": number, "ok": True, **parts}


def refused(number: Any, error: str, wrong_input: bool = False) -> Reply:
    """wrong_input: no run would accept this request; else only this one, at this time."""
    return {"id": number, "ok": False, "error": error, "input": wrong_input}
