"""One question to all drives of a line and their answers, in every cycle."""

from __future__ import annotations

import numpy as np

from cosim.drivers.dynamixel import codec, cyclic_frames
from cosim.drivers.dynamixel.codec import Decoder
from cosim.drivers.transport import Connection

# An answer that was not there by its deadline may still come so long after the time it takes on the wire.
SILENT_NS = 20_000_000  # when nothing came: a USB adapter may keep it for 16 ms
CUT_NS = 4_000_000  # when its beginning came


class SyncReader:
    """state: (n,) of dtype `cycle.STATE`, what drives said last; times: when that was [ns], 0 for never."""

    def __init__(self, link: Connection[bytes], decoder: Decoder, ids: bytes, baudrate: float) -> None:
        self.link, self.ids = link, ids
        self.state = np.zeros(len(ids), dtype=cyclic_frames.STATE)
        self.times = [0] * len(ids)
        self.unusable = 0  # answers that came whole
        self._decoder, self._baudrate = decoder, baudrate
        self._late_ns = 0  # until when an earlier question may be answered
        self.ask_for(fast=True)

    def ask_for(self, fast: bool) -> None:
        """fast: one chained answer instead of one from each drive."""
        self._fast, n = fast, len(self.ids)
        self._question = cyclic_frames.question(self.ids, fast)
        self._awaited = cyclic_frames.answer_size(n, fast)
        self._wire_ns = round((len(self._question) + self._awaited) * 10e9 / self._baudrate)

    def forget(self) -> None:
        """What was heard so far."""
        self.state = np.zeros_like(self.state)

    def poll(self, deadline_ns: int) -> bool:
        """Ask all drives after their state; whether at least one answered. Raises LinkError."""
        if self.link.now() >= deadline_ns or not self._quiet(deadline_ns):
            return False
        self._decoder.clear()
        asked_ns, came, missing = self.link.now(), 0, set(range(len(self.ids)))
        self.link.send(self._question, deadline_ns)
        while missing and (chunk := self.link.receive(deadline_ns)) is not None:
            came += len(chunk)
            for id, instruction, params in self._decoder.feed(chunk):
                if instruction != codec.STATUS or not params:
                    continue
                if id != codec.BROADCAST:
                    self.hear(missing, params[0], id, params[1:])
                elif len(params) == self.state.nbytes:
                    self._hear_all(missing, params)
        if missing:
            for block in codec.salvage(self._decoder.rest, cyclic_frames.SIZE) if self._fast else ():
                self.hear(missing, *block)
            if came < self._awaited:
                self._late_ns = asked_ns + self._wire_ns + (CUT_NS if came else SILENT_NS)
        return len(missing) < len(self.ids)

    def hear(self, missing: set[int], error: int, id: int, data: bytes) -> None:
        """What one drive says; its place goes out of `missing`."""
        k = self.ids.find(id)
        if len(data) != cyclic_frames.SIZE or k not in missing or error & ~codec.ALERT:
            self.unusable += 1
            return
        missing.discard(k)
        if not self.state.flags.writeable:
            self.state = self.state.copy()
        self.state[k] = np.frombuffer(bytes((error, id)) + data + b"\0\0", cyclic_frames.STATE)[0]
        self.times[k] = self.link.now()

    def _hear_all(self, missing: set[int], params: bytes) -> None:
        state = np.frombuffer(params, cyclic_frames.STATE)
        if state["id"].tobytes() == self.ids and 0 not in state["level"].tobytes():
            missing.clear()
            self.state, self.times = state, [self.link.now()] * len(self.ids)
            return
        size = cyclic_frames.STATE.itemsize
        for at in range(0, len(params), size):
            self.hear(missing, params[at], params[at + 1], params[at + 2 : at + size - 2])

    def _quiet(self, deadline_ns: int) -> bool:
        """Whether nothing can come any more that answers an earlier question; what does come is dropped."""
        until = self._late_ns
        while self.link.receive(min(until, deadline_ns)) is not None and self.link.now() < deadline_ns:
            pass
        if until > deadline_ns:
            return False
        self._late_ns = 0
        return True
