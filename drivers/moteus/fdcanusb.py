"""The text protocol of mjbots' fdcanusb (and of a drive's own UART): hexadecimal frames in lines of text.

    can send 8001 01000A11001F01130D BF        to the adapter, which answers OK or ERR <reason>
    rcv 0100 21000A2F01… e B F r x-1           a frame from the bus

A line may end with ` *XX`, the CRC-8 (polynomial 0x97) of all characters before the asterisk; after the first line with
a checksum, both sides require it on every line. Source: README of mjbots' fdcanusb, docs/integration/uart.md of
the moteus repository.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from string import hexdigits

from cosim.plugins.drivers.transport import CanFrame, Connection
from cosim.plugins.drivers.transport.lines import LineSplitter

MAX_LENGTH = 513  # bytes: a line as long is dropped
_TIMEOUT_NS = 10_000_000
CRC = [0] * 256
for _byte in range(256):
    _value = _byte
    for _ in range(8):
        _value = _value << 1 ^ (0x197 if _value & 0x80 else 0)
    CRC[_byte] = _value

_HEX = frozenset(hexdigits)
OK = b"OK"
_HEAD, _FLAGS = "rcv ", frozenset("BFbfRr")


# --- lines --------------------------------------------------------------------------------------


def checksum(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc = CRC[crc ^ byte]
    return crc


def with_checksum(line: bytes) -> bytes:
    """The line with its checksum."""
    line += b" "
    return line + b"*%02X" % checksum(line)


def without_checksum(line: bytes) -> tuple[bytes, bool | None]:
    """(the line without its checksum, whether the checksum is valid; None without one)."""
    if len(line) < 3 or line[-3] != 0x2A:
        return line, None
    try:
        claimed = int(line[-2:], 16) if line[-2:].isalnum() else -1
    except ValueError:
        claimed = -1
    if claimed < 0:
        return line, None
    return line[:-3].rstrip(b" "), claimed == checksum(line[:-3])


def with_valid_checksum(data: bytes) -> bytes:
    """Lines with valid checksums, whatever their text is."""
    return b"".join(with_checksum(each.rpartition(b" *")[0] or each) + b"\r\n" for each in data.splitlines())


def send_line(frame: CanFrame) -> bytes:
    """The line that requests the adapter to send a frame."""
    data = frame.data.hex().upper()
    flags = ("B" if frame.switched else "b") + ("F" if frame.fd else "") + ("R" if frame.remote else "")
    return f"can send {frame.id:04x} {data} {flags}".encode()


def received_line(frame: CanFrame) -> bytes:
    """The line with which the adapter reports a frame from the bus."""
    id = f"{frame.id:X}"
    flags = ("E" if frame.extended else "e", "B" if frame.switched else "b", "F" if frame.fd else "f")
    remote = "R" if frame.remote else "r"
    return f"rcv {'0' * (len(id) % 2)}{id} {frame.data.hex().upper()} {' '.join(flags)} {remote} x-1".encode()


def parse_received(line: bytes, t_ns: int = 0) -> CanFrame | None:
    """The frame of a `rcv` line; None for any other bytes. A drive's own UART has no flags."""
    try:
        head, id, *rest = line.decode("ascii").split(" ")
        if not _HEX.issuperset(id) or (rest and not _HEX.issuperset(rest[0])):  # Python takes more for digits
            return None
        number, data = int(id, 16), bytes.fromhex(rest[0]) if rest else b""
    except ValueError:
        return None
    if head != "rcv" or not 0 <= number < 1 << 29 or len(data) > 64:
        return None
    flags = set(rest[1:])
    return CanFrame(number, data, number > 0x7FF or "E" in flags, "f" not in flags, "B" in flags, "R" in flags, t_ns)


def parse_send(line: bytes, t_ns: int = 0) -> CanFrame | str:
    """The frame of a `can send` (`std`, `ext`) line, or the adapter's error message."""
    words = line.decode("latin1").split()
    if words[:1] != ["can"]:
        return "unknown command"
    if words[1:2] not in (["send"], ["std"], ["ext"]):
        return "unknown subcommand"
    if len(words) < 4:
        return "insufficient options"
    flags = "".join(words[4:])
    if not _FLAGS.issuperset(flags):
        return "unknown flag"
    if not (words[2].isalnum() and words[2].isascii()):
        return "bad id"
    try:
        number = int(words[2], 16)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 29:
        return "bad id"
    if len(words[3]) % 2:
        return "data invalid length"
    try:
        data = bytes.fromhex(words[3])
    except ValueError:
        return "invalid data"
    if len(data) > 64:
        return "data invalid length"
    extended = {"send": number > 0x7FF, "std": False, "ext": True}[words[1]]
    return CanFrame(number, data, extended, "f" not in flags, "b" not in flags, "R" in flags, t_ns)


# --- connections --------------------------------------------------------------------------------------


class _Adapter:
    """Base of both ends: a connection of CanFrames on a serial connection."""

    def __init__(self, serial: Connection[bytes], checksums: bool) -> None:
        self.serial, self.name, self.meter, self.now = serial, serial.name, serial.meter, serial.now
        self.checksums = checksums  # lines have one
        self._configured = checksums
        self._lines = LineSplitter(MAX_LENGTH)
        self._frames: deque[CanFrame] = deque()

    def open(self) -> None:
        """See `Connection`."""
        self._clear()
        self.serial.open()

    def close(self) -> None:
        """See `Connection`."""
        self.serial.close()

    def reopen(self) -> bool:
        """See `Connection`."""
        return self.serial.reopen()

    @property
    def lost(self) -> bool:
        """See `Connection`."""
        return self.serial.lost

    @property
    def why_not_compiled(self) -> str:
        """See `Connection`."""
        return self.serial.why_not_compiled

    def reserve(self, items: Iterable[CanFrame]) -> None:
        """See `Connection`; no effect: a serial port has one program."""
        return None

    def bus_off(self) -> None:
        """See `Connection`; the text protocol cannot signal it."""
        self.serial.bus_off()

    def receive(self, deadline_ns: int) -> CanFrame | None:
        """See `Connection`."""
        while not self._frames:
            chunk = self.serial.receive(deadline_ns)
            if chunk is None:
                return None
            t_ns = self.now()
            for line in self._lines.feed(chunk):
                content, valid = without_checksum(line)
                self._take(content, valid, t_ns)
        return self._frames.popleft()

    def _clear(self) -> None:
        self.checksums = self._configured
        self._lines = LineSplitter(MAX_LENGTH)
        self._frames.clear()

    def _line(self, content: bytes) -> bytes:
        return (with_checksum(content) if self.checksums else content) + b"\r\n"

    def _take(self, content: bytes, valid: bool | None, t_ns: int) -> None:
        raise NotImplementedError


class AdapterHost(_Adapter):
    """The program's end. It does not wait for each OK: errors count in `meter.errors` and appear as missing answers.

    checksums: from the first line on, as for a drive's own UART; otherwise only if the other side requires them.
    """

    def __init__(self, serial: Connection[bytes], checksums: bool = False) -> None:
        super().__init__(serial, checksums)

    def open(self) -> None:
        """See `Connection`."""
        super().open()
        self.serial.send(b"\r\n", self.now() + _TIMEOUT_NS)  # ends an incomplete line of an earlier program

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        """See `Connection`."""
        self.serial.send(self._line(send_line(item)), deadline_ns)

    def _take(self, content: bytes, valid: bool | None, t_ns: int) -> None:
        if content.startswith(b"ERR"):
            self.meter.errors += 1
            self.checksums = self.checksums or b"checksum" in content
        elif valid is False or (self.checksums and valid is None):
            self.meter.errors += 1
        elif content != OK:
            frame = parse_received(content, t_ns)
            if frame is None:
                self.meter.errors += 1
            else:
                self._frames.append(frame)


class AdapterDevice(_Adapter):
    """The adapter: it answers every line; `receive` returns the frames to send."""

    def __init__(self, serial: Connection[bytes]) -> None:
        super().__init__(serial, checksums=False)

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        """See `Connection`."""
        self.serial.send(self._line(received_line(item)), deadline_ns)

    def _take(self, content: bytes, valid: bool | None, t_ns: int) -> None:
        self.checksums = self.checksums or valid is True
        if valid is False or (self.checksums and valid is None):
            return self._reply(b"ERR checksum")
        frame = parse_send(content, t_ns)
        if isinstance(frame, CanFrame):
            self._frames.append(frame)
        self._reply(OK if isinstance(frame, CanFrame) else b"ERR " + frame.encode())

    def _reply(self, content: bytes) -> None:
        self.serial.send(self._line(content), self.now() + _TIMEOUT_NS)
