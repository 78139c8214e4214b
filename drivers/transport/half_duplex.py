"""A half-duplex serial link with one exchange at a time: a request, and its answer or none within the response time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from cosim.core.driver_contract import Connection
from cosim.plugins.drivers.transport.bus_load import BYTE_BITS, Traffic
from cosim.plugins.drivers.transport.connection import CanFrame

PATIENCE = 3  # response times after which an answer is taken for lost
MAX_CHUNKS = 64

Request = TypeVar("Request")


class RequestProtocol(Protocol[Request]):
    """What the link needs of a protocol; a codec of these functions is one."""

    @property
    def MAX_FRAME(self) -> int:
        """Bytes of a request or an answer."""
        ...

    def split(self, data: bytes, /) -> tuple[list[bytes], bytes]:
        """(complete request frames, the rest)"""
        ...

    def decode(self, frame: bytes, /) -> Request | None:
        """The request of a frame."""
        ...

    def answer_size(self, request: Request, /) -> int:
        """Bytes of its answer."""
        ...

    def is_like_its_answer(self, request: Request, /) -> bool:
        """Whether the echo of an adapter cannot be distinguished from the answer."""
        ...

    def find_answer(self, request: Request, data: bytes, /) -> bytes | None:
        """The first complete answer in received bytes; None if there is none."""
        ...


class Exchanges(NamedTuple):
    """What one cycle sends and receives; pause [s]: of each exchange, beside the time of its bytes."""

    out: Sequence[CanFrame | bytes]
    back: Sequence[CanFrame | bytes]
    pause: float

    def load(self, params, period: float) -> float:
        """As `bus_load.estimate`."""
        return Traffic(self.out, self.back).load(params, period) + len(self.back) * self.pause / period


class HalfDuplexLink(Generic[Request]):
    """A serial link whose items are requests, several in one item if needed, and complete answers."""

    def __init__(
        self,
        link: Connection[bytes],
        protocol: RequestProtocol[Request],
        baudrate: float,
        response_time: float,
        pause: float,
    ) -> None:
        """response_time [s]: until a drive begins its answer, at most; pause [s]: between two frames."""
        self.name, self.meter, self.now, self._link = link.name, link.meter, link.now, link
        self.close, self.reopen = link.close, link.reopen
        self.request: Request | None = None  # of the answer received last
        self.unanswered = 0
        self._protocol = protocol
        self._byte_ns, self._response_ns, self._pause_ns = 1e9 * BYTE_BITS / baudrate, response_time * 1e9, pause * 1e9
        self._clear()

    def _clear(self) -> None:
        self._waiting: list[bytes] = []
        self._sent: tuple[bytes, Request] | None = None  # its answer is awaited
        self._free_ns = self._lost_ns = 0  # when the next request may be sent; when the answer is taken for lost
        self._received = b""
        self._echoes: bool | None = None  # whether the adapter does; None: not known yet

    @property
    def lost(self) -> bool:
        return self._link.lost

    @property
    def why_not_compiled(self) -> str:
        return self._link.why_not_compiled

    @property
    def pending(self) -> bool:
        """Whether requests have not been sent yet."""
        return bool(self._waiting)

    def open(self) -> None:
        self._clear()
        self._link.open()

    def reserve(self, items: Iterable[bytes]) -> None:
        self._link.reserve(items)

    def bus_off(self) -> None:
        self._link.bus_off()

    def forget(self) -> None:
        """Requests that were not sent yet are not sent any more."""
        self._waiting.clear()

    def interrupt(self) -> None:
        """As `forget`; wait until the link is free, whether or not the last request is answered."""
        self._waiting.clear()
        time.sleep(max(0, self._free_ns - self.now()) * 1e-9)
        self._sent, self._free_ns = None, 0

    def send(self, item: bytes, deadline_ns: int) -> None:
        """Requests that are sent in their order, each when the one before it is answered: by `send` and `receive`."""
        self._waiting += [frame for frame in self._protocol.split(item)[0] if frame not in self._waiting]
        self._send_next(deadline_ns)

    def receive(self, deadline_ns: int) -> bytes | None:
        """The next complete answer, to `request`."""
        while True:
            self._send_next(deadline_ns)
            until_ns = self._lost_ns if self._sent else self._free_ns if self._waiting else deadline_ns
            chunk = self._link.receive(min(deadline_ns, until_ns))
            if chunk is not None and (answer := self._answer(chunk)) is not None:
                return answer
            if self._sent and self.now() >= self._lost_ns:
                self._sent = None
                self.unanswered += self._echoes is not None
            if self.now() >= deadline_ns:
                return None

    def _send_next(self, deadline_ns: int) -> None:
        if self._sent or not self._waiting or self.now() < self._free_ns:
            return
        for _ in range(MAX_CHUNKS):  # what comes too late is no answer to the next request
            if self._link.receive(0) is None:
                break
        frame, self._received = self._waiting.pop(0), b""
        request = self._protocol.decode(frame)
        assert request is not None
        self._sent = frame, request
        wire_ns = self._byte_ns * (len(frame) + self._protocol.answer_size(request))
        self._free_ns = self.now() + round(wire_ns + self._response_ns + self._pause_ns)
        self._lost_ns = self._free_ns + round((PATIENCE - 1) * self._response_ns)
        self._link.send(frame, deadline_ns)

    def _answer(self, chunk: bytes) -> bytes | None:
        """The answer to the request that was sent, which this chunk completes."""
        if self._sent is None:
            return None
        frame, request = self._sent
        self._received = (self._received + chunk)[-2 * self._protocol.MAX_FRAME :]
        if not self._protocol.is_like_its_answer(request):
            self._echoes = frame in self._received
        elif self._echoes is None:
            return None
        found = self._protocol.find_answer(
            request, self._received.partition(frame)[2] if self._echoes else self._received
        )
        if found is not None:
            self.request, self._sent, self._free_ns = request, None, self.now() + round(self._pause_ns)
        return found
