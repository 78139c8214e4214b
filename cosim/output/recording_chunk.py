"""A chunk of a recording: messages that are compressed together, with the index of each channel.

Format: https://mcap.dev/spec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from cosim.output.recording_footer import CHUNK_HEAD, ENTRY, HEADER, INDEX_HEAD, SIZE, RecordedPart

CHUNK_BYTES = 1 << 20  # of messages, before compression
_ZSTD = b"zstd"


class RecordingChunk:
    """Messages that are compressed together, and their index."""

    def __init__(self) -> None:
        self._data = np.empty(CHUNK_BYTES, np.uint8)
        self.clear()

    def clear(self) -> None:
        self.size = 0
        self._ticks: list[tuple[np.ndarray, np.ndarray]] = []  # log times (k,), places (k, topics)
        self._messages: dict[int, list[tuple[int, int]]] = {}  # channel -> (log time, place)

    def add_ticks(self, data: np.ndarray, log_ns: np.ndarray, begins: np.ndarray) -> None:
        """begins (k, topics): places in the data."""
        begins = begins + self.size
        self._put(data)
        self._ticks.append((log_ns, begins))

    def add_message(self, channel: int, log_ns: int, record: bytes) -> None:
        begin = self.size
        self._put(np.frombuffer(record, np.uint8))
        self._messages.setdefault(channel, []).append((log_ns, begin))

    def _put(self, data: np.ndarray) -> None:
        end = self.size + len(data)
        if end > len(self._data):
            self._data = np.concatenate([self._data[: self.size], np.empty(2 * end - self.size, np.uint8)])
        self._data[self.size : end] = data
        self.size = end

    def write(self, file: BinaryIO, compress: Callable[[memoryview], bytes]) -> RecordedPart:
        """Write the chunk and its message indexes."""
        from mcap.opcode import Opcode
        from mcap.records import ChunkIndex

        data = compress(self._data[: self.size].data)
        entries = self._entries()
        first = min((int(each["log"].min()) for each in entries.values()), default=0)
        last = max((int(each["log"].max()) for each in entries.values()), default=0)
        part = RecordedPart(file.tell(), 0)
        head = CHUNK_HEAD.pack(first, last, self.size, 0, len(_ZSTD)) + _ZSTD + SIZE.pack(len(data))
        file.write(HEADER.pack(Opcode.CHUNK, len(head) + len(data)) + head)
        file.write(data)
        end = file.tell()
        offsets: dict[int, int] = {}
        for channel, each in entries.items():
            offsets[channel], part.messages[channel] = file.tell(), len(each)
            content = INDEX_HEAD.pack(channel, each.nbytes) + each.tobytes()
            file.write(HEADER.pack(Opcode.MESSAGE_INDEX, len(content)) + content)
        part.end = file.tell()
        part.index = ChunkIndex(
            chunk_length=end - part.start,
            chunk_start_offset=part.start,
            compression=_ZSTD.decode(),
            compressed_size=len(data),
            message_end_time=last,
            message_index_length=part.end - end,
            message_index_offsets=offsets,
            message_start_time=first,
            uncompressed_size=self.size,
        )
        return part

    def _entries(self) -> dict[int, np.ndarray]:
        """Channel -> (log time, place) of its messages."""
        found = {channel: np.array(each, ENTRY) for channel, each in self._messages.items()}
        if self._ticks:
            log, places = (np.concatenate(parts) for parts in zip(*self._ticks, strict=True))
            entries = np.empty(places.shape[::-1], ENTRY)
            entries["log"], entries["place"] = log, places.T
            found |= dict(enumerate(entries, 1))
        return found
