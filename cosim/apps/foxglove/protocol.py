"""Messages of Foxglove's WebSocket protocol, subprotocol `foxglove.sdk.v1`: https://github.com/foxglove/ws-protocol.

Text messages are JSON objects with the field `op`; samples are binary. Of its capabilities only `parameters` and
`parametersSubscribe` are here: a client can publish nothing, call nothing and fetch nothing.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

SUBPROTOCOL = "foxglove.sdk.v1"
NAME = "cosim"
CAPABILITIES = ("parameters", "parametersSubscribe")
SAMPLE = struct.Struct("<BIQ")  # opcode, subscription, log time [ns]
MESSAGE_DATA = 1  # opcode
# of Foxglove's applications: the one in the browser, and the one on the desktop, whose pages are files
ORIGINS = ("https://app.foxglove.dev", "https://studio.foxglove.dev", "file://")


class StatusLevel(IntEnum):
    INFO, WARNING, ERROR = range(3)


@dataclass(frozen=True)
class ChannelAbout:
    """A channel as it is advertised to clients. encoding: of its messages; schema_encoding, schema: of their
    schema."""

    id: int
    topic: str
    encoding: str
    schema_name: str
    schema_encoding: str
    schema: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)

    def advertised(self) -> dict[str, Any]:
        text = self.schema_encoding == "jsonschema"
        return {
            "id": self.id,
            "topic": self.topic,
            "encoding": self.encoding,
            "schemaName": self.schema_name,
            "schemaEncoding": self.schema_encoding,
            "schema": self.schema.decode() if text else base64.b64encode(self.schema).decode(),
            **({"metadata": dict(self.metadata)} if self.metadata else {}),
        }


def encoded(op: str, **fields: Any) -> str:
    from orjson import dumps

    return dumps({"op": op, **fields}).decode()


def server_info(session: str) -> str:
    return encoded("serverInfo", name=NAME, capabilities=CAPABILITIES, metadata={}, sessionId=session)


def advertise(channels: Iterable[ChannelAbout]) -> str:
    return encoded("advertise", channels=[channel.advertised() for channel in channels])


def sample(subscription: int, log_ns: int, data: bytes) -> bytes:
    return SAMPLE.pack(MESSAGE_DATA, subscription, log_ns) + data


def status(level: StatusLevel, message: str, number: str = "") -> str:
    return encoded("status", level=int(level), message=message, **({"id": number} if number else {}))


def parameter_values(values: Mapping[str, Any], request: str | None = None) -> str:
    """values: a number, None for what is not finite, or a list of these. request: the id of the one that asked."""
    found = [
        {"name": name, "type": f"float64{'_array' if isinstance(value, list) else ''}", "value": value}
        for name, value in values.items()
    ]
    return encoded("parameterValues", parameters=found, **({} if request is None else {"id": request}))


class BadMessage(Exception):
    """What is wrong with the message of a client."""


@dataclass(frozen=True)
class ClientMessage:
    """A message whose fields have the types that the protocol gives them."""

    op: str
    subscriptions: Sequence[tuple[int, int]] = ()  # (its number, channel)
    ids: Sequence[int] = ()  # of subscriptions
    names: Sequence[str] = ()  # of parameters
    values: Mapping[str, Any] = field(default_factory=dict)  # of parameters
    request: str | None = None


def read_message(data: str | bytes) -> ClientMessage:
    """Raises BadMessage."""
    from orjson import JSONDecodeError, loads

    if isinstance(data, bytes):
        raise BadMessage("no binary message of a client is supported")
    try:
        given = loads(data)
        op = given["op"]
        match op:
            case "subscribe":
                pairs = [(_whole(item["id"]), _whole(item["channelId"])) for item in given["subscriptions"]]
                return ClientMessage(op, subscriptions=pairs)
            case "unsubscribe":
                return ClientMessage(op, ids=[_whole(number) for number in given["subscriptionIds"]])
            case "getParameters" | "subscribeParameterUpdates" | "unsubscribeParameterUpdates":
                names = [_text(name) for name in given["parameterNames"]]
                return ClientMessage(op, names=names, request=_request(given))
            case "setParameters":
                values = {_text(item["name"]): item.get("value") for item in given["parameters"]}
                return ClientMessage(op, values=values, request=_request(given))
    except JSONDecodeError:
        raise BadMessage("the message is no JSON") from None
    except (KeyError, TypeError, AttributeError):
        raise BadMessage("a field of the message is missing or has a wrong type") from None
    raise BadMessage("this operation is not supported")


def _request(given: Mapping[str, Any]) -> str | None:
    number = given.get("id")
    return None if number is None else _text(number)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**32:
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
