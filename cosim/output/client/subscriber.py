"""The stream of a run in another program: always its newest sample, however slow the program is."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from cosim.core.access.binding import STREAM_EXAMPLE, check_address, stream_address
from cosim.core.errors import InputError
from cosim.core.trust.plain_data import WrongShape
from cosim.output.stream.messages import SAMPLE_FIELDS, signals_of

if TYPE_CHECKING:
    from cosim.output.stream.reading import PublishedSchema

MOST_EVENTS = 1000  # that are kept
OLD_AGE = 1.0  # s without a sample after which the last one is old, or OLD_PERIODS periods if that is longer
OLD_PERIODS = 5
OTHER_MESSAGES = (b'{"schema"', b'{"event"', b"\x82\xa6schema", b"\x84\xa5event")  # in JSON and in MessagePack


@dataclass(frozen=True)
class Sample:
    """The values of a run's signals at one tick, as its stream has sent them.

    timestamp: s since 1970; n: number of the sample; t: simulated time [s]; missed: ticks that never came to the
    stream; values: by the name of the signal, NaN where it is not finite.
    """

    timestamp: float
    n: int
    tick: int
    t: float
    missed: int
    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]


def subscribe(
    address: str | None = None, signals: str | Sequence[str] = (), key: str | None = None, every: bool = False
) -> Subscriber:
    """Follow the stream of a run at this address, by default as for `--telemetry` without a value; it may start later.

    signals: only these, names or patterns such as `*/position`; key: file with the public key of an encrypted stream;
    every: every sample that arrives, instead of the newest one. Raises InputError for what is no address or no key.
    """
    address = stream_address() if address is None else address
    return Subscriber(address, [signals] if isinstance(signals, str) else signals, key, every)


class Subscriber:
    """Iterates over samples, which is not ended by the end of a run. Use it in a `with` statement, or call `close`.

    Samples have a socket of their own, which keeps the newest one alone. It can have one subscription only, so it is
    opened with the first schema, which shows how samples begin.

    schema: of the rig, None before the first one; events: the newest ones, as published; missed: samples of the stream
    that were not returned here.
    """

    def __init__(self, address: str, signals: Sequence[str], key: str | None, every: bool) -> None:
        import zmq

        check_address(address)
        self.address = address
        self.schema: PublishedSchema | None = None
        self.events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self.missed = 0
        self._signals, self._last, self._arrived = tuple(signals), -1, -math.inf
        self._key, self._newest = key, not every
        self._poller, self._beginning, self._samples = zmq.Poller(), b"", None
        self._others = self._connected(OTHER_MESSAGES, newest=False)

    def _connected(self, beginnings: Sequence[bytes], newest: bool) -> Any:
        """A socket for messages that begin so, or for the newest of them alone."""
        import zmq

        address, key = self.address, self._key
        socket = zmq.Context.instance().socket(zmq.SUB)
        try:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.CONFLATE, newest)
            if key is not None:
                from cosim.core.access.curve import secure_client

                secure_client(socket, key)
            for beginning in beginnings:
                socket.setsockopt(zmq.SUBSCRIBE, beginning)
            socket.connect(address)
        except zmq.ZMQError as cause:
            socket.close()
            what = f"no address of a stream ({zmq.strerror(cause.errno or 0)}); give one such as {STREAM_EXAMPLE}"
            raise InputError(what, address) from cause
        except InputError:
            socket.close()
            raise
        self._poller.register(socket, zmq.POLLIN)
        return socket

    def receive(self, timeout: float | None = None) -> Sample | None:
        """The next sample; None when there is none for `timeout` [s], by default for ever.

        Raises InputError for a message that no run publishes.
        """
        from cosim.output.stream.reading import read_message

        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            wait = None if timeout is None else math.ceil(max(0.0, end - time.monotonic()) * 1e3)
            ready = dict(self._poller.poll(wait))
            if self._others in ready:
                self._take(self._others.recv())
            if self._samples is not None and self._samples in ready:
                return self._sample(read_message(self._samples.recv(), self.address))
            if time.monotonic() >= end:
                return None

    def __iter__(self) -> Iterator[Sample]:
        while (sample := self.receive()) is not None:
            yield sample

    @property
    def age(self) -> float:
        """Time [s] since the last sample arrived; infinite before the first one."""
        return time.monotonic() - self._arrived

    @property
    def old(self) -> bool:
        """Whether the last sample is older than a running stream explains: the run has ended, is paused or cut off."""
        rate = self.schema["rate"] if self.schema else math.inf
        return self.age > max(OLD_AGE, OLD_PERIODS / rate)

    def close(self) -> None:
        """Idempotent."""
        for socket in filter(None, (self._samples, self._others)):
            socket.close()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, data: bytes) -> None:
        from cosim.output.stream.reading import read_message, read_schema

        message = read_message(data, self.address)
        if "event" in message:
            self.events.append(message)
            return
        self.schema = schema = read_schema(message["schema"], self.address)
        beginning = _beginning_of_samples(data, schema)
        if beginning != self._beginning:  # of the first run, or of another one at this address
            if self._samples is not None:
                self._poller.unregister(self._samples)
                self._samples.close()
            self._samples, self._beginning = self._connected([beginning], self._newest), beginning

    def _sample(self, message: dict[str, Any]) -> Sample:
        from cosim.output.stream.reading import no_telemetry

        try:
            values = {name: value for name, value in signals_of(message) if self._chosen(name)}
        except WrongShape as wrong:
            raise no_telemetry(wrong, self.address) from None
        sample = Sample(*(message[field] for field in SAMPLE_FIELDS), values=values)
        if self._last < sample.n and self._last >= 0:
            self.missed += sample.n - self._last - 1
        self._last, self._arrived = sample.n, time.monotonic()
        return sample

    def _chosen(self, name: str) -> bool:
        return not self._signals or any(fnmatchcase(name, pattern) for pattern in self._signals)


def _beginning_of_samples(schema_message: bytes, schema: PublishedSchema) -> bytes:
    """The first bytes of samples in the format of this message; in MessagePack a map begins with its size."""
    if schema_message[:1] == b"{":
        return b'{"timestamp"'
    size = len(SAMPLE_FIELDS) + len({name.partition("/")[0] for name in schema["signals"]})
    return bytes([0x80 + size]) if size < 16 else b"\xde" + size.to_bytes(2, "big")
