"""The host's end of a drive's diagnostic console: reads values of its configuration.

Text is tunnelled in the register protocol: bytes are written to channel 1, and the answer is polled until its line is
complete.
"""

from __future__ import annotations

from collections.abc import Callable

from cosim.plugins.drivers.moteus.codec import CLIENT_DATA, SERVER_DATA, Tunnel, decode, pad, poll, tunnel
from cosim.plugins.drivers.transport import CanFrame

CHANNEL = 1
_FRAME_BYTES = 61  # besides the head of the subframe
_ANSWER_BYTES = 39
_POLLS = 64
_TRIES = 8  # readings of one value

Write = Callable[[bytes], None]  # sends a frame's data to the drive
Request = Callable[[bytes], CanFrame | None]  # the same, and returns the answer; None after a time-out


def _poll_text(request: Request) -> bytes | None:
    answer = request(poll(CHANNEL, _ANSWER_BYTES))
    if answer is None:
        return None
    return b"".join(
        part.data
        for part in decode(answer.data)[0]
        if isinstance(part, Tunnel) and part.kind == SERVER_DATA and part.channel == CHANNEL
    )


def _write_line(write: Write, line: bytes) -> None:
    line += b"\n"
    for at in range(0, len(line), _FRAME_BYTES):
        write(pad(tunnel(CLIENT_DATA, CHANNEL, line[at : at + _FRAME_BYTES])))


def _read_line(request: Request) -> bytes | None:
    """One line, without its end; None if there is none."""
    text = b""
    for _ in range(_POLLS):
        received = _poll_text(request)
        if received is None:
            break
        text = (text + received).lstrip(b"\r\n")
        if b"\n" in text:
            return text.split(b"\n")[0].strip()
    return None


def quiet(write: Write, request: Request) -> None:
    """Stop unrequested telemetry and discard the text received so far, so that later text answers the requests."""
    _write_line(write, b"tel stop")
    text = b""
    for _ in range(_POLLS):
        received = _poll_text(request)
        text = (text + (received or b""))[-8:]
        if received is None or (not received and b"OK" in text):
            break


class NotReported(Exception):
    """A value that a drive did not report; refused: it answered that it has no such value."""

    def __init__(self, name: str, refused: bool) -> None:
        super().__init__(name)
        self.name, self.refused = name, refused


def get(write: Write, request: Request, name: str) -> float:
    """A number of the drive's configuration, as soon as two answers in a row agree.

    Lines carry neither a name nor a check sum: if a frame is lost or comes twice, the next line is the answer to an
    earlier request, or a part of one. Raises NotReported.
    """
    before = None
    for _ in range(_TRIES):
        quiet(write, request)
        _write_line(write, b"conf get " + name.encode())
        line = _read_line(request)
        if line is not None and line == before:
            try:
                return float(line)
            except ValueError:
                if line.startswith(b"ERR"):
                    raise NotReported(name, refused=True) from None
        before = line
    raise NotReported(name, refused=False)


def _answer(write: Write, request: Request, line: str) -> list[str] | None:
    """The lines of the answer to a command, without the OK or the error at its end; None without an end."""
    quiet(write, request)
    _write_line(write, line.encode())
    text, silent = b"", 0
    while silent < _TRIES:
        received = _poll_text(request)
        silent = silent + 1 if not received else 0
        text += received or b""
        lines = text.decode("latin1").splitlines()
        if text.endswith(b"\n") and lines and (lines[-1] == "OK" or lines[-1].startswith("ERR")):
            return lines[:-1] if lines[-1] == "OK" else None
    return None


def enumerated(write: Write, request: Request) -> dict[str, float] | None:
    """All values of the drive's configuration, as soon as two answers in a row agree; None if none do."""
    before = None
    for _ in range(_TRIES):
        lines = _answer(write, request, "conf enumerate")
        if lines and lines == before:
            pairs = [line.split() for line in lines]
            try:
                return {name: float(text) if set(text) & set(".naif") else int(text) for name, text in pairs}
            except ValueError:  # it is no list of numbers
                return None
        before = lines
    return None


def command(write: Write, request: Request, line: str) -> bool:
    """Whether the drive carried out a command that may be repeated."""
    return any(_answer(write, request, line) is not None for _ in range(2))
