"""Requests that emulated drives leave unanswered because the emulation does not have them: to be shown, each once."""

from __future__ import annotations

MAX_LENGTH = 32  # characters of received text
MAX_KEPT = 32  # different ones that are kept; what arrives is of any content


def shown(text: bytes | str) -> str:
    """Received text as it may be shown on a terminal."""
    text = text if isinstance(text, str) else text.decode("latin-1")
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text[:MAX_LENGTH])


class UnknownRequests:
    """Of the emulated drives on one connection."""

    def __init__(self) -> None:
        self.count = 0  # of all, repeated ones too
        self._seen: set[str] = set()
        self._new: list[str] = []

    def note(self, what: str) -> None:
        """what: drive and request, as in 'VESC 1: command 65'; without numbers that differ from request to request."""
        self.count += 1
        if what not in self._seen and len(self._seen) < MAX_KEPT:
            self._seen.add(what)
            self._new.append(what)

    def taken(self) -> list[str]:
        """Those since the last call, in their order."""
        new, self._new = self._new, []
        return new
