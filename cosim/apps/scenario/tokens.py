"""Tokens for processes that compute: a token in a pipe for each, which all processes of a program share."""

from __future__ import annotations

import os
import select

TOKEN = b"."


class Tokens:
    """Safe between processes: a token is read by one of them alone."""

    def __init__(self, count: int) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.write(self._in, TOKEN * count)

    def take(self, timeout: float = 0.0) -> bool:
        """Whether there was a free one within `timeout` [s]."""
        try:
            if timeout:
                select.select((self._out,), (), (), timeout)
            return bool(os.read(self._out, 1))
        except BlockingIOError:  # another process was faster
            return False

    def give_back(self) -> None:
        os.write(self._in, TOKEN)

    def close(self) -> None:
        os.close(self._out)
        os.close(self._in)
