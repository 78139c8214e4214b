"""Messages that no well-behaved client of a control socket sends."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import zmq
from orjson import dumps, loads

from cosim.core.access.curve import client_key_of, secure_client
from cosim.execution.remote.requests import COMMANDS, BadRequest, read_request

HUGE = (b"1e999", b"-1e308", b"9" * 400, b"18446744073709551616", b"0." + b"1" * 5000, b"-0", b"NaN", b"Infinity")
WRONG = (None, True, -1, 1e300, 2**63, "", "arm.kp", "\x00", "1e999", "n" * 600, [], [1], [[]], {}, {"arm.kp": {}})
REPLY_TIMEOUT = 20_000  # ms
FIELDS = ("values", "names", "force", "ticks", "text", "client", "id", "x")


def raw_client(kind: int, endpoint: str) -> zmq.Socket[bytes]:
    """A socket of another program of the user: it has the key, where there is one."""
    client = zmq.Context.instance().socket(kind)
    client.setsockopt(zmq.LINGER, 0)
    if (key := client_key_of(endpoint, None)) is not None:
        secure_client(client, key)
    client.connect(endpoint)
    return client


class Stranger:
    """A client without manners."""

    def __init__(self, endpoint: str) -> None:
        self._socket = raw_client(zmq.DEALER, endpoint)

    def ask(self, messages: Sequence[Sequence[bytes]]) -> list[bool]:
        """Whether each message was granted."""
        for frames in messages:
            self.send(frames)
        return [self._reply()["ok"] for _ in messages]

    def send(self, frames: Sequence[bytes]) -> None:
        self._socket.send_multipart(frames)

    def _reply(self) -> dict[str, Any]:
        assert self._socket.poll(REPLY_TIMEOUT), "no reply"
        return loads(self._socket.recv_multipart()[-1])

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def garbage(rng: random.Random, count: int) -> list[list[bytes]]:
    """So many messages, each as its frames. Left out is what any client may do to a run: emergency stops, markers, and
    to take control by force."""
    found: list[list[bytes]] = []
    for frames in _messages(rng):
        if not _allowed(frames[-1]):
            found.append(frames)
        if len(found) == count:
            break
    return found


def _allowed(data: bytes) -> bool:
    try:
        request = read_request(data)
    except BadRequest:
        return False
    return request.command in ("estop", "marker") or "force" in request.fields


def _messages(rng: random.Random) -> Iterator[list[bytes]]:
    makers = _bytes, _broken, _cut, _wrong_types, _huge, _nested, _not_the_owner, _repeated_field
    while True:
        data = rng.choice(makers)(rng)
        frames = rng.choice(([data],) * 8 + ([b"", data], [data, b""], [b""], [b""] * 3, [data] * rng.randrange(2, 30)))
        yield list(frames)


def _bytes(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(60))


def _broken(rng: random.Random) -> bytes:
    message = bytearray(_wrong_types(rng))
    message[rng.randrange(len(message))] = rng.randrange(256)
    return bytes(message)


def _cut(rng: random.Random) -> bytes:
    message = _wrong_types(rng)
    return message[: rng.randrange(len(message))]


def _wrong_types(rng: random.Random) -> bytes:
    fields = {name: rng.choice(WRONG) for name in rng.sample(FIELDS, rng.randrange(4))}
    return dumps({"command": rng.choice([*COMMANDS, "jump", 5, None, []]), **fields})


def _huge(rng: random.Random) -> bytes:
    field = rng.choice((b'"id":%s', b'"ticks":%s', b'"values":{"arm.kp":%s}', b'"values":{"arm.kp":[%s]}'))
    command = rng.choice(sorted(COMMANDS)).encode()
    return b'{"command":"%s",%s}' % (command, field % rng.choice(HUGE))


def _nested(rng: random.Random) -> bytes:
    depth = rng.randrange(1, 3000)
    whole = rng.random() < 0.5
    inner = (
        b"[" * depth + b"]" * depth * whole if rng.random() < 0.5 else b'{"a":' * depth + b"1" + b"}" * depth * whole
    )
    return b'{"command":"set","values":{"arm.kp":%s}}' % inner if rng.random() < 0.5 else inner


def _not_the_owner(rng: random.Random) -> bytes:
    """Valid, from who does not hold control."""
    fields = {"set": {"values": {"hold.kp": 1.0}}, "step": {"ticks": 10_000}, "take": {"client": "a"}}
    command = rng.choice(sorted(COMMANDS))
    return dumps({"id": rng.randrange(9), "command": command, **fields.get(command, {})})


def _repeated_field(rng: random.Random) -> bytes:
    return b'{"command":"get","command":"set","values":{"hold.kp":1},"values":{"hold.kp":%d}}' % rng.randrange(9)
