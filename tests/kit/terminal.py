"""A terminal for programs in this process."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import threading
import time


class Terminal:
    """A pseudo terminal, and what was written to it."""

    def __init__(self, columns=200):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream, self._ours = os.fdopen(theirs, "w"), ours
        self._data = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self._ours, 1 << 16)
            except OSError:  # both ends are closed
                return
            self._data += data

    @property
    def text(self):
        return self._data.decode(errors="replace")

    def close(self):
        self.stream.close()
        self._reader.join(5)
        os.close(self._ours)

    def wait_for(self, pattern):
        end = time.monotonic() + 30
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, self.text
            time.sleep(0.01)
