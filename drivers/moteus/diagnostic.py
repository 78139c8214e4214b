"""The host's end of a drive's diagnostic console: asks for a value of its configuration.

Text goes through the register protocol: a write of bytes to channel 1, then polls until the answer's line is whole.
"""

from __future__ import annotations

from collections.abc import Callable

from cosim.drivers.moteus.codec import CLIENT_DATA, SERVER_DATA, Tunnel, decode, pad, poll, tunnel
from cosim.drivers.transport import CanFrame

CHANNEL = 1
_CHUNK = 61  # bytes that a frame can carry beside the head of the subframe
_LIMIT = 39  # bytes that an answer has room for
_POLLS = 64

Tell = Callable[[bytes], None]  # sends a frame's data to the drive
Ask = Callable[[bytes], CanFrame | None]  # the same, and its answer; None when there is none in time


def _heard(ask: Ask) -> bytes | None:
    answer = ask(poll(CHANNEL, _LIMIT))
    if answer is None:
        return None
    return b"".join(
        found.data
        for found in decode(answer.data)[0]
        if isinstance(found, Tunnel) and found.kind == SERVER_DATA and found.channel == CHANNEL
    )


def _say(tell: Tell, line: bytes) -> None:
    line += b"\n"
    for at in range(0, len(line), _CHUNK):
        tell(pad(tunnel(CLIENT_DATA, CHANNEL, line[at : at + _CHUNK])))


def _listen(ask: Ask) -> bytes | None:
    """One line, without its end; None when none comes."""
    text = b""
    for _ in range(_POLLS):
        heard = _heard(ask)
        if heard is None:
            break
        text = (text + heard).lstrip(b"\r\n")
        if b"\n" in text:
            return text.split(b"\n")[0].strip()
    return None


def quiet(tell: Tell, ask: Ask) -> None:
    """Ends what the drive sends by itself and forgets what it sent, so that answers are those to our questions."""
    _say(tell, b"tel stop")
    text = b""
    for _ in range(_POLLS):
        heard = _heard(ask)
        text = (text + (heard or b""))[-8:]
        if heard is None or (not heard and b"OK" in text):
            break


def get(tell: Tell, ask: Ask, name: str) -> float | None:
    """A number of the drive's configuration; None where it has none such or does not answer."""
    _say(tell, b"conf get " + name.encode())
    line = _listen(ask)
    try:
        return None if line is None else float(line)
    except ValueError:
        return None
