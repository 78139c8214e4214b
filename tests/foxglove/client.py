"""A client of Foxglove's WebSocket protocol: https://github.com/foxglove/ws-protocol."""

import json
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from websockets.sync.client import connect

PROTOCOL = "foxglove.sdk.v1"
MESSAGE = struct.Struct("<BIQ")  # opcode, subscription, log time [ns]


class Received(NamedTuple):
    topic: str
    log_ns: int
    data: bytes


class FoxgloveClient:
    """What came so far: `texts` by their op, `channels` by topic, `messages`."""

    def __init__(self, url: str) -> None:
        """url: with the token."""
        self._socket = connect(url, subprotocols=[PROTOCOL], max_size=None)  # type: ignore[list-item]
        self.texts: list[dict[str, Any]] = []
        self.channels: dict[str, dict[str, Any]] = {}
        self.messages: list[Received] = []
        self._topics: dict[int, str] = {}

    def send(self, op: str, **fields: Any) -> None:
        self._socket.send(json.dumps({"op": op, **fields}))

    def subscribe(self, *topics: str) -> None:
        chosen = {self.channels[topic]["id"]: topic for topic in topics}
        self._topics |= chosen
        self.send("subscribe", subscriptions=[{"id": number, "channelId": number} for number in chosen])

    def until(self, found: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Receive until this is true; what it is then."""
        end = time.monotonic() + timeout
        while not (value := found()):
            left = end - time.monotonic()
            assert left > 0, f"nothing like this within {timeout} s; texts: {[text['op'] for text in self.texts]}"
            try:
                self._take(self._socket.recv(min(left, 0.1)))
            except TimeoutError:
                continue
        return value

    def of(self, op: str) -> list[dict[str, Any]]:
        return [text for text in self.texts if text["op"] == op]

    def of_topic(self, topic: str) -> list[Received]:
        return [each for each in self.messages if each.topic == topic]

    def close(self) -> None:
        self._socket.close()

    def _take(self, data: str | bytes) -> None:
        if isinstance(data, bytes):
            opcode, number, log_ns = MESSAGE.unpack_from(data)
            if opcode == 1:
                self.messages.append(Received(self._topics[number], log_ns, data[MESSAGE.size :]))
            return
        text = json.loads(data)
        self.texts.append(text)
        if text["op"] == "advertise":
            self.channels |= {channel["topic"]: channel for channel in text["channels"]}
        elif text["op"] == "unadvertise":
            gone = set(text["channelIds"])
            self.channels = {topic: each for topic, each in self.channels.items() if each["id"] not in gone}
