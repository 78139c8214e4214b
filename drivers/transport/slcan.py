"""The device's end of a CAN bus behind a serial adapter: the ASCII protocol of Lawicel (CAN232 manual, version 3), with
the CAN FD frames of the CANable firmware.

A command ends with a carriage return. The answer is the requested value and a carriage return, or a bell after an
invalid command.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cosim.core.errors import InputError, SourceLocation
from cosim.plugins.drivers.transport.bus_load import FD_LENGTHS, frame_weight, weights
from cosim.plugins.drivers.transport.connection import BaseConnection, CanFrame, ConnectionLost, Locate, now
from cosim.plugins.drivers.transport.connection_params import CanParams, SerialParams
from cosim.plugins.drivers.transport.pty import Pty

OK, BELL = b"\r", b"\a"
BAUDRATE = 115200  # of the serial link, by default
LONGEST_COMMAND = 160  # characters of a command: a frame with 64 bytes needs 138

BITRATES = (10_000, 20_000, 50_000, 100_000, 125_000, 250_000, 500_000, 750_000, 1_000_000, 83_300)  # S0 to S9
DATA_BITRATES = {"2": 2e6, "5": 5e6}  # Y2, Y5
QUARTZ = 8_000_000  # Hz: time quanta of the controller's bit timing (SJA1000: half of 16 MHz)
# first letter of a frame: extended, CAN FD, switched, remote
KINDS = {
    "t": (False, False, False, False),
    "T": (True, False, False, False),
    "r": (False, False, False, True),
    "R": (True, False, False, True),
    "d": (False, True, False, False),
    "D": (True, True, False, False),
    "b": (False, True, True, False),
    "B": (True, True, True, False),
}
LETTERS = {kind: letter for letter, kind in KINDS.items()}
VERSION, NUMBER, STATUS = "V1013", "NC051M", "F00"


class SlcanAdapter(BaseConnection[CanFrame]):
    """An adapter on a bus with one more node, the emulated drives; items are CanFrames.

    At another bit rate than `params.bitrate` frames in both directions are lost and count as errors, as do invalid
    frames and noise. A command at the wrong time (some hosts open twice) is only answered with a bell.
    """

    def __init__(self, params: CanParams, locate: Locate) -> None:
        super().__init__(params.name, locate)
        self.params = params
        path, _, speed = params.channel.partition("@")
        baudrate = speed or (params.options or {}).get("tty_baudrate", BAUDRATE)
        self._baudrate = str(baudrate)
        self._port = Pty(SerialParams(path, float(baudrate) if self._baudrate.isdigit() else 0), self._locate_port)
        self._weights = weights(params.bitrate, params.data_bitrate)
        self._frames: deque[CanFrame] = deque()
        self._reset()

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        """See `Connection`: to the host, if the adapter is open."""
        if self._unusable:
            raise self._unusable_error()
        if not self._on_bus(item):
            self.meter.errors += 1
            return
        try:
            self._port.send(_text(item).encode(), deadline_ns)
        except ConnectionLost as error:
            raise self.mark_lost(error.what) from error
        self.meter.sent(frame_weight(item, self._weights))

    def receive(self, deadline_ns: int) -> CanFrame | None:
        """See `Connection`: from the host."""
        while not self._unusable:
            if self._frames:
                return self._frames.popleft()
            try:
                chunk = self._port.receive(deadline_ns)
                if chunk is None:
                    return None
                self._take(chunk)
            except ConnectionLost as error:
                raise self.mark_lost(error.what) from error
        raise self._unusable_error()

    def _take(self, chunk: bytes) -> None:
        """Answer the complete commands; the rest is kept for the next chunk."""
        *whole, self._rest = (self._rest + chunk).split(OK)
        if len(self._rest) > LONGEST_COMMAND:  # noise without a carriage return
            self._rest = b""
            self.meter.errors += 1
        answers = b"".join(self._answer(command) for command in whole)
        if answers:
            self._port.send(answers, 0)  # lost if the host does not read

    def _answer(self, raw: bytes) -> bytes:
        command = raw.decode("ascii", "replace")
        letter, rest = command[:1], command[1:]
        if letter in KINDS:
            answer = self._from_host(letter, rest)
        elif letter in _COMMANDS:
            return _reply(_COMMANDS[letter](self, rest))
        else:
            answer = "" if not letter else None  # hosts send empty commands to flush the link
        self.meter.errors += answer is None
        return _reply(answer)

    def _from_host(self, letter: str, rest: str) -> str | None:
        """Send a frame of the host to the bus; None if it is invalid or may not be sent now."""
        frame = _frame(letter, rest)
        if frame is None or not self._open or self._silent or (frame.fd and not self.params.fd):
            return None
        if not self._on_bus(frame):
            self.meter.errors += 1
            return ""
        self.meter.received(frame_weight(frame, self._weights))
        self._frames.append(frame._replace(t_ns=now()))
        return ""

    def _on_bus(self, frame: CanFrame) -> bool:
        """Whether the adapter is open at the bit rates of the bus."""
        wanted = self.params.data_bitrate
        data_rate_matches = not frame.switched or self._data_bitrate == wanted
        return self._open and data_rate_matches and self._bitrate == round(self.params.bitrate)

    # --- commands: the answer, None if they are invalid; bit rates are set while the adapter is closed

    def _set_rate(self, rest: str) -> str | None:
        if self._open or len(rest) != 1 or not rest.isdecimal() or not rest.isascii():
            return None
        self._bitrate = BITRATES[int(rest)]
        return ""

    def _set_timing(self, rest: str) -> str | None:
        """Bus timing registers 0 and 1: time quanta from a prescaler; a bit has 3 + segment 1 + segment 2 of them."""
        value = _hexadecimal(rest)
        if self._open or value is None or len(rest) != 4:
            return None
        prescaler, segments = (value >> 8 & 0x3F) + 1, 3 + (value & 0xF) + (value >> 4 & 0x7)
        self._bitrate = QUARTZ // (prescaler * segments)
        return ""

    def _set_data_rate(self, rest: str) -> str | None:
        if self._open or rest not in DATA_BITRATES:
            return None
        self._data_bitrate = DATA_BITRATES[rest]
        return ""

    def _start(self, silent: bool, rest: str) -> str | None:
        if self._open or rest or not self._bitrate:
            return None
        self._open, self._silent = True, silent
        return ""

    def _end(self, rest: str) -> str | None:
        """Close; allowed also when closed, because hosts do so before they open."""
        if rest:
            return None
        self._open = False
        return ""

    def _reset(self) -> None:
        self._open = self._silent = False
        self._bitrate, self._data_bitrate = 0, None
        self._rest = b""
        self._frames.clear()

    def _connect(self) -> None:
        if not self._baudrate.isdigit() or not int(self._baudrate):
            what = f"'{self._baudrate}' is not a baud rate; use '{self.params.channel.partition('@')[0]}@{BAUDRATE}'"
            raise InputError(what, self._locate("channel"))
        self._reset()
        self._port.open()

    def _disconnect(self) -> None:
        self._port.close()

    def _locate_port(self, *keys: str) -> SourceLocation:
        return self._locate("channel")


_COMMANDS: dict[str, Callable[[SlcanAdapter, str], str | None]] = {
    "S": SlcanAdapter._set_rate,
    "s": SlcanAdapter._set_timing,
    "Y": SlcanAdapter._set_data_rate,
    "O": lambda adapter, rest: adapter._start(False, rest),
    "L": lambda adapter, rest: adapter._start(True, rest),
    "C": SlcanAdapter._end,
    "V": lambda adapter, rest: None if rest else VERSION,
    "N": lambda adapter, rest: None if rest else NUMBER,
    "F": lambda adapter, rest: None if rest or not adapter._open else STATUS,
}


def _reply(answer: str | None) -> bytes:
    return BELL if answer is None else answer.encode() + OK


def _hexadecimal(text: str) -> int | None:
    digits = text and all(c in "0123456789abcdefABCDEF" for c in text)
    return int(text, 16) if digits else None


def _frame(letter: str, rest: str) -> CanFrame | None:
    """The frame with identifier (3 or 8 digits), length code and data; None if it is invalid."""
    extended, fd, switched, remote = KINDS[letter]
    width = 8 if extended else 3
    identifier, code = _hexadecimal(rest[:width]), _hexadecimal(rest[width : width + 1])
    if identifier is None or code is None or len(rest) <= width or (code > 8 and not fd):
        return None
    length, digits = FD_LENGTHS[code], rest[width + 1 :]
    if identifier > (0x1FFFFFFF if extended else 0x7FF) or len(digits) != (0 if remote else 2 * length):
        return None
    if digits and _hexadecimal(digits) is None:
        return None
    return CanFrame(identifier, bytes(length) if remote else bytes.fromhex(digits), extended, fd, switched, remote)


def _text(frame: CanFrame) -> str:
    """A frame in the adapter's notation; CAN FD data are padded to a valid length."""
    letter = LETTERS[frame.extended, frame.fd, frame.switched, frame.remote]
    identifier = f"{frame.id:08X}" if frame.extended else f"{frame.id:03X}"
    length = next((size for size in FD_LENGTHS if size >= len(frame.data)), FD_LENGTHS[-1])
    data = "" if frame.remote else frame.data.ljust(length, b"\0").hex().upper()
    return f"{letter}{identifier}{FD_LENGTHS.index(length):X}{data}\r"
