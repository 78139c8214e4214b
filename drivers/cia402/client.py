"""The SDO client of the host: one transfer at a time, on the connection that carries all other frames too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from struct import Struct

from cosim.core.errors import RunError
from cosim.plugins.drivers.cia402 import codec, sdo
from cosim.plugins.drivers.transport import CanFrame, Connection

TIMEOUT_NS = 400_000_000  # for one answer, with all tries
TRIES = 4  # of a transfer whose request or answer may have been lost
MAX_DRAINED = 8192  # frames taken before a request, so that a babbling node cannot block the client
_PACKERS = {kind: Struct("<" + kind) for kind in "BbHhIi"}


class NoAnswer(RunError):
    """A node did not answer a request in time."""


class Client:
    """Keys are index · 256 + sub-index; kinds are the letters of `struct` for the object's data type.

    take(frame): takes the frames that are no answer to the request.
    """

    def __init__(self, link: Connection[CanFrame], take: Callable[[CanFrame], None]) -> None:
        self._link, self._take, self.now = link, take, link.now

    def read(self, node: int, key: int, kind: str, timeout_ns: int = TIMEOUT_NS) -> int:
        """Raises sdo.Aborted, NoAnswer and ConnectionLost."""
        packer = _PACKERS[kind]
        data = self.transfer(node, partial(sdo.upload, key >> 8, key & 0xFF), timeout_ns)
        # some drives answer with 32 bits whatever the object's width
        return packer.unpack(data[: packer.size].ljust(packer.size, b"\0"))[0]

    def read_optional(self, node: int, key: int, kind: str) -> int | None:
        """As `read`; None if the drive has no such object."""
        try:
            return self.read(node, key, kind)
        except sdo.Aborted:
            return None

    def text(self, node: int, key: int) -> str:
        """A string object; empty if there is none."""
        try:
            data = self.transfer(node, partial(sdo.upload, key >> 8, key & 0xFF))
        except sdo.Aborted:
            return ""
        return "".join(c for c in data.decode("ascii", "replace") if c.isprintable()).strip()

    def write(self, node: int, key: int, kind: str, value: int, timeout_ns: int = TIMEOUT_NS) -> None:
        """Raises sdo.Aborted, NoAnswer and ConnectionLost."""
        self.transfer(node, partial(sdo.download, key >> 8, key & 0xFF, _PACKERS[kind].pack(value)), timeout_ns)

    def write_optional(self, node: int, key: int, kind: str, value: int) -> bool:
        """As `write`, for an object that a drive need not have; whether it accepted the value."""
        try:
            self.write(node, key, kind, value)
        except sdo.Aborted:
            return False
        return True

    def transfer(self, node: int, begin: Callable[[], sdo.Transfer], timeout_ns: int = TIMEOUT_NS) -> bytes:
        """The data of a transfer; begin: begins it, again after each try without an answer; timeout_ns: for an answer,
        with all tries. Raises sdo.Aborted, NoAnswer and ConnectionLost."""
        for _ in range(TRIES - 1):
            with suppress(NoAnswer):
                return self._try(node, begin(), timeout_ns // TRIES)
        return self._try(node, begin(), timeout_ns // TRIES)

    def _try(self, node: int, steps: sdo.Transfer, timeout_ns: int) -> bytes:
        self._drain()
        request = next(steps)
        while True:
            deadline = self._link.now() + timeout_ns
            self._link.send(CanFrame(codec.SDO_REQUEST + node, request), deadline)
            answer = self._answer(node, request, deadline)
            try:
                request = steps.send(answer)
            except StopIteration as done:
                return done.value

    def _drain(self) -> None:
        """Take the frames received since the last call; otherwise a full buffer would lose the answer."""
        for _ in range(MAX_DRAINED):
            if (frame := self._link.receive(0)) is None:
                return
            self._take(frame)

    def _answer(self, node: int, request: bytes, deadline: int) -> bytes:
        while True:
            frame = self._link.receive(deadline)
            if frame is None:
                raise NoAnswer(f"no answer from node {node}")
            if frame.id == codec.SDO_ANSWER + node and sdo.answers(request, frame.data):
                return frame.data
            self._take(frame)
            if self._link.now() > deadline:
                raise NoAnswer(f"no answer from node {node}")


def request_write(node: int, key: int, kind: str, value: int) -> CanFrame:
    """A write request whose answer is not waited for."""
    packed = _PACKERS[kind].pack(value)
    return CanFrame(codec.SDO_REQUEST + node, sdo.expedited(sdo.DOWNLOAD, key >> 8, key & 0xFF, packed))
