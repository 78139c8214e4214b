"""One request and its answer at a time, outside of the cycle: for the set-up of drives."""

from __future__ import annotations

from cosim.core.errors import RunError
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel.codec import Decoder, Packet
from cosim.plugins.drivers.dynamixel.tables import Register
from cosim.plugins.drivers.transport import Connection

TIMEOUT_NS = 100_000_000  # for one answer
TRIES = 5


class Client:
    """Reads and writes registers of single drives."""

    def __init__(self, link: Connection[bytes], decoder: Decoder) -> None:
        self._link, self._decoder = link, decoder

    def request(self, id: int, request: bytes, tries: int = TRIES) -> Packet | None:
        """The status packet of drive `id`, None without an answer after all tries. Raises ConnectionLost."""
        for _ in range(tries):
            deadline = self._link.now() + TIMEOUT_NS
            while self._link.receive(0) is not None and self._link.now() < deadline:
                pass  # left over from earlier requests
            self._decoder.clear()
            self._link.send(request, deadline)
            while (chunk := self._link.receive(deadline)) is not None:
                for packet in self._decoder.feed(chunk):
                    if packet.id == id and packet.instruction == codec.STATUS and packet.params:
                        return packet
        return None

    def read(self, id: int, address: int, size: int) -> bytes:
        """Raises RunError without a valid answer."""
        answer = self._answer(id, codec.read(id, address, size), f"be read at register {address}")
        if len(answer.params) != size + 1:
            raise RunError(f"drive {id} answers {len(answer.params) - 1} bytes where {size} were requested")
        return answer.params[1:]

    def get(self, id: int, register: Register) -> int:
        return register.unpack(self.read(id, register.address, register.size), register.address)

    def write(self, id: int, address: int, data: bytes) -> None:
        """Raises RunError without an answer, or if the drive refuses."""
        self._answer(id, codec.write(id, address, data), f"be written at register {address}")

    def put(self, id: int, register: Register, value: int) -> None:
        self.write(id, register.address, register.pack(value))

    def _answer(self, id: int, request: bytes, what: str) -> Packet:
        answer = self.request(id, request)
        if answer is None:
            raise RunError(f"drive {id} stopped answering on {self._link.name}; check its power and the wiring")
        error = answer.params[0] & ~codec.ALERT
        if error:
            why = codec.ERRORS.get(error, f"error {error}")
            raise RunError(f"drive {id} refuses to {what}: {why}")
        return answer
