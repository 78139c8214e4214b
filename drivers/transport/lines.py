"""Lines of text in a stream of bytes."""

from __future__ import annotations

import re


class LineSplitter:
    """Splits received chunks into lines; a line of `limit` bytes or more is dropped whole, and counted."""

    def __init__(self, limit: int, ends: bytes = b"\r\n") -> None:
        """ends: the bytes of which each ends a line."""
        self.dropped = 0
        self._limit, self._ends = limit, re.compile(b"[" + re.escape(ends) + b"]")
        self._rest, self._dropping = b"", False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that the chunk completes, without their ends and without empty ones."""
        *lines, self._rest = self._ends.split(self._rest + chunk)
        if lines and self._dropping:  # the end of a line whose beginning was dropped
            del lines[0]
            self._dropping = False
        self.dropped += sum(len(line) >= self._limit for line in lines)
        if len(self._rest) >= self._limit:
            self.dropped += not self._dropping
            self._rest, self._dropping = b"", True
        return [line for line in lines if 0 < len(line) < self._limit]
