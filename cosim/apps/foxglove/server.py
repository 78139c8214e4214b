"""The WebSocket server that Foxglove connects to, behind the guard of all web servers of this program.

It is written here because Foxglove's SDK has a server that checks neither token nor origin: whatever stood before it,
its port would be open to all users of the machine.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from cosim.apps.foxglove import protocol
from cosim.apps.foxglove.protocol import BadMessage, ChannelAbout, ClientMessage, StatusLevel
from cosim.core.access.guarded_server import serve

if TYPE_CHECKING:
    import socket

    from cosim.core.access.handshake import Access

BACKLOG = 1024  # samples that wait for a client that is too slow; the oldest are dropped
MOST_TEXTS = 4096  # that wait for a client, which is disconnected then
MAX_BYTES = 1 << 20  # of a message of a client
END_LIMIT = 5.0  # s


class ParameterStore(Protocol):
    """What clients read and set; called by other threads than the server's."""

    def get(self, names: Sequence[str]) -> dict[str, Any]:
        """All, where there are no names."""
        ...

    def set(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Of all or of none; the values that hold then."""
        ...


class Channel:
    """A topic that clients may subscribe to."""

    def __init__(self, server: FoxgloveServer, about: ChannelAbout) -> None:
        self._server, self.about = server, about

    def log(self, data: bytes, log_time: int) -> None:
        """log_time: ns since 1970."""
        if self.about.id in self._server.wanted:
            self._server.in_loop(self._server.send_sample, self.about.id, log_time, data)

    def close(self) -> None:
        self._server.in_loop(self._server.remove_channel, self.about.id)


class FoxgloveServer:
    """A server for Foxglove. Methods of the first part may be called by any thread; the second part runs in its own
    thread.

    wanted: numbers of the channels that somebody has subscribed to.
    """

    def __init__(self, listener: socket.socket, access: Access, parameters: ParameterStore) -> None:
        self._listener, self._access, self._parameters = listener, access, parameters
        self.wanted: frozenset[int] = frozenset()
        self._channels: dict[int, ChannelAbout] = {}
        self._numbers, self._session = itertools.count(1), secrets.token_hex(8)
        self._clients: set[ConnectedClient] = set()
        self._statuses: dict[str, str] = {}
        self._subscribed: set[str] = set()
        self._lock = threading.Lock()  # of `_subscribed`
        self._loop = asyncio.new_event_loop()
        self._ended, self._setting = asyncio.Event(), asyncio.Lock()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def channel(
        self, topic: str, encoding: str, schema: tuple[str, str, bytes], metadata: Mapping[str, str] | None = None
    ) -> Channel:
        """schema: its name, its encoding and itself."""
        about = ChannelAbout(next(self._numbers), topic, encoding, *schema, metadata or {})
        self.in_loop(self.add_channel, about)
        return Channel(self, about)

    def take_subscribed(self) -> set[str]:
        """The topics that a client has subscribed to since the last call."""
        with self._lock:
            topics, self._subscribed = self._subscribed, set()
        return topics

    def publish_status(self, message: str, level: StatusLevel, number: str) -> None:
        """For all clients, also those that come later, until it is removed."""
        self.in_loop(self.set_status, number, protocol.status(level, message, number))

    def remove_status(self, numbers: list[str]) -> None:
        self.in_loop(self.drop_statuses, numbers)

    def publish_parameter_values(self, values: Mapping[str, Any]) -> None:
        """To the clients that have subscribed to them."""
        self.in_loop(self.send_parameters, values)

    def clear_session(self) -> None:
        """Another run follows."""
        self.in_loop(self.begin_session)

    def in_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call, *arguments)

    def stop(self) -> None:
        """Disconnect all clients. Idempotent."""
        self.in_loop(self._ended.set)
        self._thread.join(END_LIMIT)

    # --- the thread of the server ---

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(ready))
        self._loop.close()

    async def _serve(self, ready: threading.Event) -> None:
        subprotocols: Any = [protocol.SUBPROTOCOL]
        async with serve(
            self._access,
            self._listener,
            self._attend,
            subprotocols=subprotocols,
            compression=None,
            max_size=MAX_BYTES,
            close_timeout=1.0,
        ):
            ready.set()
            await self._ended.wait()

    async def _attend(self, connection: ServerConnection) -> None:
        client = ConnectedClient(connection)
        client.text(protocol.server_info(self._session))
        if self._channels:
            client.text(protocol.advertise(self._channels.values()))
        for text in self._statuses.values():
            client.text(text)
        self._clients.add(client)
        sender = asyncio.create_task(client.send_all())
        try:
            with suppress(ConnectionClosed):
                async for data in connection:
                    await self._answer(client, data)
        finally:
            self._clients.discard(client)
            self._find_wanted()
            sender.cancel()

    async def _answer(self, client: ConnectedClient, data: str | bytes) -> None:
        """Messages of one client are taken in their order."""
        try:
            message = protocol.read_message(data)
            match message.op:
                case "subscribe":
                    self._subscribe(client, message)
                case "unsubscribe":
                    gone = set(message.ids)
                    client.subscriptions = {
                        k: number for k, number in client.subscriptions.items() if number not in gone
                    }
                    self._find_wanted()
                case "subscribeParameterUpdates":
                    client.parameters |= set(message.names)
                case "unsubscribeParameterUpdates":
                    client.parameters -= set(message.names)
                case "getParameters":
                    values = await asyncio.to_thread(self._parameters.get, message.names)
                    client.text(protocol.parameter_values(values, message.request))
                case "setParameters":
                    await self._set(client, message)
        except BadMessage as error:
            client.text(protocol.status(StatusLevel.ERROR, str(error)))

    def _subscribe(self, client: ConnectedClient, message: ClientMessage) -> None:
        for number, channel in message.subscriptions:
            if channel not in self._channels:
                client.text(protocol.status(StatusLevel.ERROR, f"there is no channel {channel}"))
                continue
            client.subscriptions[channel] = number
            with self._lock:
                self._subscribed.add(self._channels[channel].topic)
        self._find_wanted()

    async def _set(self, client: ConnectedClient, message: ClientMessage) -> None:
        async with self._setting:
            values = await asyncio.to_thread(self._parameters.set, message.values)
        if message.request is not None:
            client.text(protocol.parameter_values(values, message.request))
        self.send_parameters(values)

    def _find_wanted(self) -> None:
        self.wanted = frozenset(channel for client in self._clients for channel in client.subscriptions)

    def _text(self, text: str) -> None:
        for client in self._clients:
            client.text(text)

    def add_channel(self, about: ChannelAbout) -> None:
        self._channels[about.id] = about
        self._text(protocol.advertise([about]))

    def remove_channel(self, number: int) -> None:
        if self._channels.pop(number, None) is not None:
            for client in self._clients:
                client.forget(number)
            self._text(protocol.encoded("unadvertise", channelIds=[number]))
            self._find_wanted()

    def send_sample(self, channel: int, log_ns: int, data: bytes) -> None:
        for client in self._clients:
            client.sample(channel, log_ns, data)

    def set_status(self, number: str, text: str) -> None:
        self._statuses[number] = text
        self._text(text)

    def drop_statuses(self, numbers: list[str]) -> None:
        known = [number for number in numbers if self._statuses.pop(number, None) is not None]
        if known:
            self._text(protocol.encoded("removeStatus", statusIds=known))

    def send_parameters(self, values: Mapping[str, Any]) -> None:
        for client in self._clients:
            if chosen := {name: value for name, value in values.items() if name in client.parameters}:
                client.text(protocol.parameter_values(chosen))

    def begin_session(self) -> None:
        self._session = secrets.token_hex(8)
        self._text(protocol.server_info(self._session))
        if self._channels:
            self._text(protocol.advertise(self._channels.values()))


class ConnectedClient:
    """A client, and what is to be sent to it: texts first, all of them; of samples the newest.

    subscriptions: channel -> the number that the client has given; parameters: names that it has subscribed to.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self.subscriptions: dict[int, int] = {}
        self.parameters: set[str] = set()
        self._texts: deque[str] = deque()
        self._samples: deque[tuple[int, bytes]] = deque(maxlen=BACKLOG)
        self._waiting = asyncio.Event()

    def text(self, text: str) -> None:
        self._texts.append(text)
        self._waiting.set()

    def sample(self, channel: int, log_ns: int, data: bytes) -> None:
        if (number := self.subscriptions.get(channel)) is not None:
            self._samples.append((channel, protocol.sample(number, log_ns, data)))
            self._waiting.set()

    def unsubscribe(self, numbers: set[int]) -> None:
        """numbers: that the client has given."""
        self.subscriptions = {k: number for k, number in self.subscriptions.items() if number not in numbers}

    def forget(self, channel: int) -> None:
        """Its channel is closed."""
        self.subscriptions.pop(channel, None)
        self._samples = deque((item for item in self._samples if item[0] != channel), maxlen=BACKLOG)

    async def send_all(self) -> None:
        """Until it is cancelled or the client is gone."""
        with suppress(ConnectionClosed):
            while True:
                await self._waiting.wait()
                self._waiting.clear()
                while self._texts or self._samples:
                    if len(self._texts) > MOST_TEXTS:
                        await self._connection.close(1008, "it reads too slowly")
                        return
                    await self._connection.send(self._texts.popleft() if self._texts else self._samples.popleft()[1])
