"""One request to all drives of a link and their answers, in every cycle."""

from __future__ import annotations

from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.dynamixel import codec, cyclic_frames
from cosim.plugins.drivers.dynamixel.codec import BusPacket, Decoder
from cosim.plugins.drivers.transport import Connection

# An answer that missed its deadline may still arrive so long after its transmission time.
SILENT_NS = 20_000_000  # if nothing was received: a USB adapter may buffer it for 16 ms
INCOMPLETE_NS = 4_000_000  # if its beginning was received
ANSWER_SIZE = 1 + cyclic_frames.STATE_BYTES  # the error byte and the registers of a drive


class SyncReader:
    """The reader of the states of all drives of a link. request: of the state of all drives; expected_bytes: of their
    answers; wire_ns: duration of both."""

    def __init__(
        self, link: Connection[bytes], decoder: Decoder, ids: bytes, baudrate: float, cycle: InterpretedCycle
    ) -> None:
        """cycle: takes the answers."""
        self.link, self.ids, self._cycle = link, ids, cycle
        self.invalid = 0  # complete answers with wrong contents
        self._decoder, self._baudrate = decoder, baudrate
        self._late_ns = 0  # until then an earlier request may be answered
        self.set_fast(fast=True)

    def set_fast(self, fast: bool) -> None:
        """fast: one chained answer instead of one per drive."""
        self._fast, n = fast, len(self.ids)
        self.request = cyclic_frames.request(self.ids, fast)
        self.expected_bytes = cyclic_frames.answer_size(n, fast)
        self.wire_ns = round((len(self.request) + self.expected_bytes) * 10e9 / self._baudrate)

    def poll(self, deadline_ns: int) -> bool:
        """Request the state of all drives; whether at least one answered. Raises ConnectionLost."""
        if self.link.now() >= deadline_ns or not self._drain_late_answers(deadline_ns):
            return False
        self._decoder.clear()
        request_ns, received, missing = self.link.now(), 0, set(range(len(self.ids)))
        self.link.send(self.request, deadline_ns)
        while missing and (chunk := self.link.receive(deadline_ns)) is not None:
            received, t_ns = received + len(chunk), self.link.now()
            for id, instruction, params in self._decoder.feed(chunk):
                if instruction != codec.STATUS or not params:
                    continue
                if id != codec.BROADCAST:
                    self.take(missing, id, params, t_ns)
                elif len(params) == len(self.ids) * cyclic_frames.BLOCK:
                    for at in range(0, len(params), cyclic_frames.BLOCK):
                        end = at + cyclic_frames.BLOCK - 2
                        self.take(missing, params[at + 1], params[at : at + 1] + params[at + 2 : end], t_ns)
        if missing:
            for error, id, data in (
                codec.complete_blocks(self._decoder.rest, cyclic_frames.STATE_BYTES) if self._fast else ()
            ):
                self.take(missing, id, bytes((error,)) + data, self.link.now())
            if received < self.expected_bytes:
                self._late_ns = request_ns + self.wire_ns + (INCOMPLETE_NS if received else SILENT_NS)
        return len(missing) < len(self.ids)

    def take(self, missing: set[int], id: int, data: bytes, t_ns: int) -> None:
        """Take the error byte and the registers of one drive, and remove its index from `missing`."""
        k = self.ids.find(id)
        if len(data) != ANSWER_SIZE or k not in missing or data[0] & ~codec.ALERT:
            self.invalid += 1
            return
        missing.discard(k)
        self._cycle.take(BusPacket(id, data, t_ns))

    def expect_late_answers(self) -> None:
        """Somebody else has requested answers a moment ago."""
        self._late_ns = self.link.now() + self.wire_ns + INCOMPLETE_NS

    def _drain_late_answers(self, deadline_ns: int) -> bool:
        """Discard late answers to an earlier request; whether none can come any more."""
        until = self._late_ns
        while self.link.receive(min(until, deadline_ns)) is not None and self.link.now() < deadline_ns:
            pass
        if until > deadline_ns:
            return False
        self._late_ns = 0
        return True
