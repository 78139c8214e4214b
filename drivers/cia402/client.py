"""The SDO client of the host: one transfer at a time over the line that carries everything else too."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from cosim.drivers.cia402 import codec, sdo
from cosim.drivers.transport import CanFrame, Connection
from cosim.errors import RunError

PATIENCE_NS = 400_000_000  # for one answer
MOST_WAITING = 8192  # frames that are taken before a drive is asked; a babbling bus does not hold the client up
_PACKERS = {kind: Struct("<" + kind) for kind in "BbHhIi"}


class NoAnswer(RunError):
    """A node did not answer a request in time."""


class Client:
    """Keys are index · 256 + sub-index; kinds are the letters of `struct` for the object's data type.

    take(frame): where frames go that are no answer to the request.
    """

    def __init__(self, link: Connection[CanFrame], take: Callable[[CanFrame], None]) -> None:
        self._link, self._take, self.now = link, take, link.now

    def read(self, node: int, key: int, kind: str, patience_ns: int = PATIENCE_NS) -> int:
        """Raises sdo.Aborted, NoAnswer and LinkError."""
        packer = _PACKERS[kind]
        data = self.run(node, sdo.upload(key >> 8, key & 0xFF), patience_ns)
        # some drives answer with 32 bits whatever the object's width
        return packer.unpack(data[: packer.size].ljust(packer.size, b"\0"))[0]

    def find(self, node: int, key: int, kind: str) -> int | None:
        """The same; None where the drive has no such object."""
        try:
            return self.read(node, key, kind)
        except sdo.Aborted:
            return None

    def text(self, node: int, key: int) -> str:
        """A string object; empty where there is none."""
        try:
            data = self.run(node, sdo.upload(key >> 8, key & 0xFF))
        except sdo.Aborted:
            return ""
        return "".join(c for c in data.decode("ascii", "replace") if c.isprintable()).strip()

    def write(self, node: int, key: int, kind: str, value: int, patience_ns: int = PATIENCE_NS) -> None:
        """Raises sdo.Aborted, NoAnswer and LinkError."""
        self.run(node, sdo.download(key >> 8, key & 0xFF, _PACKERS[kind].pack(value)), patience_ns)

    def offer(self, node: int, key: int, kind: str, value: int) -> bool:
        """The same for an object that a drive may do without; whether it took the value."""
        try:
            self.write(node, key, kind, value)
        except sdo.Aborted:
            return False
        return True

    def run(self, node: int, transfer: sdo.Transfer, patience_ns: int = PATIENCE_NS) -> bytes:
        """The data that a transfer returns; every answer may take `patience_ns`."""
        self._drain()
        request = next(transfer)
        while True:
            deadline = self._link.now() + patience_ns
            self._link.send(CanFrame(codec.SDO_REQUEST + node, request), deadline)
            answer = self._answer(node, request, deadline)
            try:
                request = transfer.send(answer)
            except StopIteration as done:
                return done.value

    def _drain(self) -> None:
        """Take what has gathered while nobody listened: a full buffer would lose the answer."""
        for _ in range(MOST_WAITING):
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
    """A request to write that nobody waits for the answer of."""
    packed = _PACKERS[kind].pack(value)
    return CanFrame(codec.SDO_REQUEST + node, sdo.expedited(sdo.DOWNLOAD, key >> 8, key & 0xFF, packed))
