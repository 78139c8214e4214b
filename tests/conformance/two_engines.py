"""A driver in Python and its compiled cycle, side by side: the same bytes come to both, and both send into memory.

The lines here stand for a bus or a port without the hardware: a driver keeps its own connection, whose socket or
port is replaced; the compiled cycle has its own link on one end of a pair of sockets of this process.
"""

import ctypes
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from can import Message

from cosim.core.driver_contract import CycleOutcome
from cosim.core.errors import RunError, SourceLocation
from cosim.core.types import COMMAND, FEEDBACK, JointCommand, JointState
from cosim.plugins.drivers.common.compiled_driver import CompiledDriver
from cosim.plugins.drivers.common.cycle import CycleLayout
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame, Role
from cosim.plugins.drivers.dynamixel import codec as dynamixel
from cosim.plugins.drivers.dynamixel.codec import BusPacket
from cosim.plugins.drivers.moteus.fdcanusb import AdapterHost, received_line
from cosim.plugins.drivers.transport import CanBus, CanFrame, SerialPort, now
from cosim.plugins.drivers.transport.can_socket import CanSocket
from cosim.plugins.drivers.transport.datagrams import RAW_CAN, UDP_MULTICAST, SocketMemory
from cosim.plugins.drivers.transport.multicast import MulticastInbox

from .families import Bench, Case
from .wires import Tape

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
_EXTENDED, _REMOTE, _ERROR = 0x80000000, 0x40000000, 0x20000000
_SIZE = 4096  # bytes of a message, and more
MEASURED = (*FEEDBACK, "temperature")


class Socket(CanSocket):
    """A bus of frames as raw CAN sockets or `udp_multicast` have them, on a pair of sockets."""

    def __init__(self, bus: CanBus, descriptor: int, packed: bool) -> None:
        self._bus, self._packed, self.descriptor = bus, packed, descriptor
        mark = (bus.sender_mark or "").encode()
        self._use(SocketMemory(descriptor, UDP_MULTICAST if packed else RAW_CAN, mark))

    def count(self, traffic: Any, errors: int) -> None:
        """There is no bus."""


class PythonBus:
    """In place of python-can's bus: it keeps what is sent, and receives raw CAN frames."""

    def __init__(self, inbox: socket.socket) -> None:
        self._inbox, self.sent = inbox, []

    def send(self, message: Message, timeout: float | None = None) -> None:
        self.sent.append(message)

    def recv(self, timeout: float | None = None) -> Message | None:
        try:
            data = self._inbox.recv(_SIZE)
        except BlockingIOError:
            return None
        word, size, flags = struct.unpack_from("=IBB", data)
        return Message(
            timestamp=time.time(),
            arbitration_id=word & 0x1FFFFFFF,
            is_extended_id=bool(word & _EXTENDED),
            is_remote_frame=bool(word & _REMOTE),
            is_error_frame=bool(word & _ERROR),
            is_fd=len(data) > 16,
            bitrate_switch=bool(flags & 1),
            dlc=size,
            data=data[8 : 8 + size],
        )


class CanLine:
    """packed: messages of `udp_multicast`, else of raw CAN sockets."""

    half_duplex = False

    def __init__(self, driver: Any, packed: bool) -> None:
        self.bus, self.packed = driver.link, packed
        pairs = [_datagram_pair() for _ in range(2)]
        self._sockets = [each for pair in pairs for each in pair]
        (ours, self.theirs), (inbox, self.inbox) = pairs
        self._before = {name: getattr(self.bus, name) for name in ("_bus", "_inbox", "descriptor")}
        self.python = self.bus._bus = PythonBus(inbox)
        if packed:
            self.bus._inbox = MulticastInbox(inbox.fileno(), self.bus.sender_mark, True)
            self.bus.descriptor = inbox.fileno()
        else:
            self.bus._inbox = self.bus.descriptor = None
        self.link = Socket(self.bus, ours.fileno(), packed)

    def close(self) -> None:
        if self.packed:
            self.bus._inbox.close()
        for each in self._sockets:
            each.close()
        for name, value in self._before.items():
            setattr(self.bus, name, value)

    def wire(self, frame: CanFrame) -> bytes:
        """The bytes with which a drive sends a frame."""
        if self.packed:
            from can.interfaces.udp_multicast.utils import pack_message

            message = self.bus.message(frame)
            message.channel = None
            return pack_message(message)
        return self.link.wire_of(frame)[0]

    def put(self, data: bytes) -> None:
        """The bytes of a message come to both."""
        for each in (self.theirs, self.inbox):
            each.send(data)

    def sent(self) -> tuple[list[CanFrame], list[CanFrame]]:
        """(by the compiled cycle, by the driver in Python) since the last call."""
        compiled = []
        while True:
            try:
                compiled.append(self._frame(self.theirs.recv(_SIZE)))
            except BlockingIOError:
                break
        python, self.python.sent = [_bare(message) for message in self.python.sent], []
        return compiled, python

    def _frame(self, data: bytes) -> CanFrame:
        if self.packed:
            from can.interfaces.udp_multicast.utils import unpack_message

            return _bare(unpack_message(data))
        word, size, flags = struct.unpack_from("=IBB", data)
        fd, remote = len(data) > 16, bool(word & _REMOTE)
        return CanFrame(
            word & 0x1FFFFFFF, data[8 : 8 + size], bool(word & _EXTENDED), fd, bool(flags & 1) and fd, remote
        )


def _datagram_pair() -> tuple[socket.socket, socket.socket]:
    """Two sockets that are connected, and hold many messages."""
    pair = tuple(socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    for each in pair:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        each.setblocking(False)
        each.bind(("127.0.0.1", 0))
    for each, other in zip(pair, pair[::-1], strict=True):
        each.connect(other.getsockname())
    return pair


def _bare(message: Message) -> CanFrame:
    flags = message.is_extended_id, message.is_fd, message.bitrate_switch, message.is_remote_frame
    return CanFrame(message.arbitration_id, bytes(message.data), *flags)


class ByteLine:
    """Base of lines of bytes: a port of the compiled cycle on a pair of sockets, a tape for the driver in Python."""

    def __init__(self, port: SerialPort, tape: Tape) -> None:
        self.tape = tape
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for each in (self._ours, self._theirs):
            each.setblocking(False)
        self.port = SerialPort(port.params, lambda *keys: SourceLocation("rig.yaml", 1, ""))
        self.port._descriptor = self._ours.fileno()

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()

    def put(self, data: bytes) -> None:
        """Bytes come to both."""
        self._theirs.send(data)
        self.tape.came.append(data)

    def _said(self) -> tuple[bytes, bytes]:
        """(by the compiled cycle, by the driver in Python) since the last call."""
        try:
            compiled = self._theirs.recv(1 << 16)
        except BlockingIOError:
            compiled = b""
        python, self.tape.went = b"".join(self.tape.went), []
        return compiled, python


class AdapterLine(ByteLine):
    """Lines of text of an fdcanusb."""

    half_duplex = False

    def __init__(self, driver: Any) -> None:
        self._adapter: AdapterHost = driver.link
        self._before = self._adapter.serial
        super().__init__(self._before, Tape())
        self._adapter.serial = self.port
        self.link = driver._compiled_link()(self._adapter)
        self._adapter.serial = self.tape

    def close(self) -> None:
        self._adapter.serial = self._before
        super().close()

    def wire(self, frame: CanFrame) -> bytes:
        """The line with which the adapter reports a frame of a drive."""
        return received_line(frame) + b"\r\n"

    def sent(self) -> tuple[list[bytes], list[bytes]]:
        """(lines of the compiled cycle, of the driver in Python) since the last call."""
        return tuple(text.splitlines() for text in self._said())


class AnsweringTape(Tape):
    """What is to be read comes after the next thing that is written; `meter` and `now` are as in a connection."""

    now, lost = staticmethod(now), False

    def __init__(self) -> None:
        super().__init__()
        self._came, self.came = self.came, deque()

    def send(self, item: bytes, deadline_ns: int) -> None:
        super().send(item, deadline_ns)
        self._came.extend(self.came)
        self.came.clear()

    def receive(self, deadline_ns: int) -> bytes | None:
        return self._came.popleft() if self._came else None


class PacketLine(ByteLine):
    """Packets of Dynamixel drives on a half-duplex line. Answers are there before they are asked for, so that nothing
    waits; therefore the compiled cycle does not discard late ones here."""

    half_duplex = True

    def __init__(self, driver: Any) -> None:
        self._driver, self._before = driver, driver.link
        super().__init__(driver.link, AnsweringTape())
        self.link = driver._compiled_link()(self.port)
        self.link.settle = 0
        self._reader = driver._reader
        driver.link = self._reader.link = self.tape

    def close(self) -> None:
        self._driver.link = self._reader.link = self._before
        super().close()

    def wire(self, packet: BusPacket) -> bytes:
        """The answer of one drive."""
        return dynamixel.status(packet.id, packet.data[0], packet.data[1:])

    def sent(self) -> tuple[list[Any], list[Any]]:
        """(packets of the compiled cycle, of the driver in Python) since the last call."""
        return tuple(dynamixel.Decoder().feed(data) for data in self._said())


def lines_for(driver: Any) -> Sequence[Any]:
    """The kinds of line on which a driver is tried, by what its connection is: functions of the driver."""
    if isinstance(driver.link, CanBus):
        return [lambda d: CanLine(d, True), lambda d: CanLine(d, False)]
    return [AdapterLine] if isinstance(driver.link, AdapterHost) else [PacketLine]


class TwoEngines:
    """A driver that is on, and its compiled cycle."""

    def __init__(self, driver: Any, line: Any) -> None:
        self.driver, self.line, self.layout = driver, line, driver._cycle_layout()
        self.cycle = CompiledDriver(driver, self.layout, line.link)
        self.out, self.cmd = JointState.zeros(len(driver.joints)), JointCommand.zeros(len(driver.joints))
        self.line.sent()
        # as the driver, which counts its commands where it requests something from time to time
        self.cycle._set(commanded=1, cycles=driver.interpreted.cycles)

    def run(self, function: str, deadline_ns: int, valid_until_ns: int = 0) -> CycleOutcome:
        address = getattr(self.cycle, function)
        return CycleOutcome(_CALL(address)(self.cycle.context, deadline_ns, valid_until_ns, 0))

    def read(self) -> tuple[CycleOutcome, str]:
        """(outcome of the compiled cycle, error of the driver in Python) of what has come, shortly after a command and
        after the answers before, however long this program has stalled."""
        error, rows = "", self.cycle._received_frames
        rows["t_ns"][rows["longest_gap_ns"] > 0] = now()
        self.driver.interpreted.sent_ns = now()
        self.cycle._set(written_ns=now())
        try:
            if self.line.half_duplex:
                # both ask, whatever the time since the last command is
                self.driver._new_command = True
                self.cycle._set(commanded=0)
                self.driver.read(self.out, now() + 10**9)
            else:
                self.driver._drain()
                self.driver.read(self.out, now())
        except RunError as raised:
            error = str(raised)
        return self.run("read", now()), error

    def write(self) -> tuple[CycleOutcome, str]:
        """The same of sending `cmd`."""
        for k, name in enumerate(COMMAND):
            self.cycle.commands[:, k] = getattr(self.cmd, name)
        error, self.cmd.valid_until_ns = "", now() + 10**10
        try:
            self.driver.write(self.cmd, now() + 10**9)
        except RunError as raised:
            error = str(raised)
        return self.run("write", now() + 10**9, self.cmd.valid_until_ns), error

    def measured_alike(self) -> bool:
        states = self.cycle.states
        return all(
            np.array_equal(states[:, k], getattr(self.out, name), equal_nan=True) for k, name in enumerate(MEASURED)
        )

    def counted(self) -> tuple[int, int]:
        """(damaged frames by the compiled cycle, by the driver in Python)."""
        return int(self.cycle._record["lost"][0]), int(self.driver.lost)


@contextmanager
def silent_bench(case: Case, folder: Path, mode: str) -> Iterator[tuple[Any, dict[int, bytes]]]:
    """(a driver that is on, the last data of every frame that its drives send, by its number in the reception); they
    send no more."""
    with Bench(case._replace(compiled=False), folder, watchdog=2.5) as bench:  # for a machine that stalls
        bench.driver.load_cycle()  # before its drives wait for commands
        driver = bench.open(mode)
        bench.drive(lambda: True)
        seen = _last_frames(driver, bench)
        bench.emulation.stopped = True
        bench._thread.join()
        driver.write(bench.command(), now() + 10**9)
        yield driver, seen


def awaited(layout: CycleLayout) -> list[ReceivedFrame]:
    """The frames that drives send in every cycle, or from time to time without being asked."""
    parts = layout.reception.whole is not None
    return [
        each for each in layout.reception.frames if parts or each.role is not Role.NOTICE or each.longest_silence_ns
    ]


def _last_frames(driver: Any, bench: Bench) -> dict[int, bytes]:
    """By the number of the frame in the reception."""
    seen: dict[int, bytes] = {}
    cycle, reception = driver.interpreted, driver.interpreted.reception
    wanted, take = {reception.frames.index(each) for each in awaited(driver._cycle_layout())}, driver.interpreted.take

    def listening(frame: Any) -> Any:
        for number, received in enumerate(reception.frames):
            if received.frame.id == frame.id and not (received.own & (frame.data[0] ^ received.frame.data[0])):
                seen[number] = frame.data
        return take(frame)

    cycle.take = listening
    for _ in bench.until(lambda: wanted <= seen.keys()):
        bench.write()
        bench.read()
    del cycle.take
    return seen
