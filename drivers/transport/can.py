"""A CAN bus through python-can: SocketCAN, a vendor's adapter, a serial adapter, a virtual bus."""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cosim.core.errors import InputError
from cosim.plugins.drivers.transport import bus_lock
from cosim.plugins.drivers.transport.arrival import ArrivalTimes
from cosim.plugins.drivers.transport.bus_load import frame_weight, weights
from cosim.plugins.drivers.transport.can_opening import check_bus, message_type, open_bus, opening_error
from cosim.plugins.drivers.transport.connection import BaseConnection, CanFrame, Locate, now, one_line
from cosim.plugins.drivers.transport.connection_params import CanParams
from cosim.plugins.drivers.transport.multicast import MulticastInbox

if TYPE_CHECKING:
    from can import BusABC, Message

# Interfaces whose file descriptor becomes readable when a message has arrived. `receive` waits on it, on the monotonic
# clock: the time-outs of python-can are on the wall clock, which may be set back meanwhile.
POLLED = frozenset({"socketcan", "udp_multicast", "slcan"} if os.name == "posix" else ())
TIMESTAMPED = frozenset(
    {"socketcan", "udp_multicast", "virtual"}
)  # frames carry their time of arrival, of the wall clock
FILTERING = frozenset({"socketcan", "kvaser", "vector"})  # filter messages before Python sees them
# [s] time-out of one attempt to send: 0, but a serial adapter must get the whole message
SEND_TIMEOUT = {"slcan": 0.01}

WIRES = frozenset({"socketcan", "udp_multicast"})  # interfaces whose sockets machine code can use

BUS_OFF = 0x40  # class of error frames (linux/can/error.h)
BUS_OFF_MESSAGE = "bus off: the controller counted too many errors; check wiring, termination and bit rate"
FULL = (errno.ENOBUFS, errno.EAGAIN, errno.ETIMEDOUT)
RETRY_PAUSE = 50e-6  # s between attempts to send while the queue is full
MAX_FOREIGN = 256  # messages for other nodes that are skipped past a deadline
# IP_MULTICAST_ALL and IPV6_MULTICAST_ALL of Linux, which `socket` does not name
MULTICAST_ALL = {socket.AF_INET: (socket.IPPROTO_IP, 49), socket.AF_INET6: (socket.IPPROTO_IPV6, 29)}
LISTEN_NS = 30_000_000  # for commands of another program, before anything is sent; programs command at 50 Hz or more
STATE_CHECK_NS = 100_000_000  # between two checks of the state of the controller


class CanBus(BaseConnection[CanFrame]):
    """A node on a CAN bus; items are CanFrames.

    `t_ns` of a frame is the monotonic time of its arrival if the interface time-stamps frames with the wall clock.
    Other interfaces use their own clocks; then `t_ns` is the time at which the frame was received here, later than
    its arrival by the time that it was queued.
    """

    def __init__(self, params: CanParams, locate: Locate, end: str = "host") -> None:
        """end: `host` or `device`; one program at a time is that end of a bus."""
        super().__init__(params.name, locate)
        self.params = params
        # a virtual bus is within one process
        self._lock_name = "" if params.interface == "virtual" else f"{end} {params.name}"
        self._locked = False
        self._reserved: frozenset[tuple[int, bool]] = frozenset()  # (identifier, remote) of our own commands
        self.weights = weights(params.bitrate, params.data_bitrate)
        self._bus: BusABC | None = None
        self._message: type[Message]  # python-can is imported when the bus is opened
        self.descriptor: int | None = None  # to wait on
        self._inbox: MulticastInbox | None = None
        self._ids: frozenset[int] | None = None
        # a multicast message comes back to its sender, which recognises it by this mark
        self.sender_mark = uuid.uuid4().hex if params.interface == "udp_multicast" else None
        self._send_timeout = SEND_TIMEOUT.get(params.interface, 0.0)
        self._stamps, self._arrivals = params.interface in TIMESTAMPED, ArrivalTimes()
        self._reports_state = False  # the interface knows the state of the controller
        self._next_check_ns = 0

    def check(self) -> InputError | None:
        """See `BaseConnection`."""
        return check_bus(self.params, self._locate)

    def accept(self, ids: Iterable[int] | None) -> None:
        """From now on receive only frames with these identifiers (11 or 29 bits); None: all."""
        self._ids = None if ids is None else frozenset(ids)
        self._filter()

    def reserve(self, items: Iterable[CanFrame]) -> None:
        """See `Connection`; a frame is recognised by its identifier. A virtual bus is within one process."""
        if self.params.interface != "virtual":
            self._reserved = frozenset((item.id, item.remote) for item in items)

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        """See `Connection`. Each frame is a new Message: interfaces may keep it, and other threads may send too."""
        if self._unusable:
            raise self._unusable_error()
        message = self.message(item)
        while True:
            try:
                assert self._bus is not None  # unless another thread closes it
                self._bus.send(message, self._send_timeout)
                break
            except Exception as error:  # vendors' libraries raise what they like
                if not _is_queue_full(error):
                    raise self.connection_failed(error) from error
                self._check_controller()
                if now() >= deadline_ns:
                    raise self.not_sent() from error
                time.sleep(RETRY_PAUSE)
        self.meter.sent(frame_weight(item, self.weights))

    def message(self, item: CanFrame) -> Message:
        """The frame as python-can has it."""
        return self._message(
            arbitration_id=item.id,
            is_extended_id=item.extended,
            is_remote_frame=item.remote,
            data=None if item.remote else item.data,
            dlc=len(item.data),
            is_fd=item.fd,
            bitrate_switch=item.switched,
            channel=self.sender_mark,
        )

    @property
    def why_not_compiled(self) -> str:
        """See `Connection`."""
        if self.params.interface not in WIRES:
            return f"python-can's {self.params.interface} is in Python"
        return "" if sys.platform == "linux" else "sockets in machine code need Linux"

    def bus_off(self) -> None:
        """Emulate bus off on a bus without hardware: send the error frame by which the other nodes' controllers would
        report it. Raises ConnectionLost."""
        if self._unusable:
            raise self._unusable_error()
        try:
            message = self._message(
                arbitration_id=BUS_OFF,
                is_extended_id=False,
                is_error_frame=True,
                data=bytes(8),
                channel=self.sender_mark,
            )
            assert self._bus is not None
            self._bus.send(message)
        except Exception as error:  # vendors' libraries raise what they like
            raise self.connection_failed(error) from error

    def receive(self, deadline_ns: int) -> CanFrame | None:
        """See `Connection`."""
        foreign = 0
        while True:
            if self._unusable:
                raise self._unusable_error()
            rest_ns = deadline_ns - now()
            if rest_ns <= 0 and foreign >= MAX_FOREIGN:
                return None
            timeout = rest_ns * 1e-9 if rest_ns > 0 else 0.0
            try:
                assert self._bus is not None
                if self.descriptor is None:
                    message = self._bus.recv(timeout)
                    over = message is None and now() >= deadline_ns
                else:
                    over = not select.select((self.descriptor,), (), (), timeout)[0]
                    message = None if over else self._take()  # None: an adapter's answer, an own message
            except Exception as error:  # vendors' libraries raise what they like
                if _is_connection_error(error):
                    raise self.connection_failed(error) from error
                self.meter.errors += 1  # the connection works, the message is invalid
                message, over = None, False
            if over:
                self._check_controller()
                return None
            frame = None if message is None else self._frame(message)
            if frame is not None:
                return frame
            foreign += 1

    def _take(self) -> Message | None:
        assert self._bus is not None
        return self._bus.recv(0.0) if self._inbox is None else self._inbox.receive()

    def _frame(self, message: Message) -> CanFrame | None:
        """None when the message is not a frame for this node."""
        if self.sender_mark is not None and message.channel == self.sender_mark:
            return None
        if message.is_error_frame:
            self._controller_error(message.arbitration_id)
            return None
        identifier = message.arbitration_id
        if self._ids is not None and identifier not in self._ids:
            return None
        remote = message.is_remote_frame
        data = bytes(message.dlc) if remote else bytes(message.data)
        fd, switched = message.is_fd, message.bitrate_switch
        frame = CanFrame(identifier, data, message.is_extended_id, fd, switched, remote, self._arrival(message))
        self.meter.received(frame_weight(frame, self.weights))
        return frame

    def _arrival(self, message: Message) -> int:
        """Time of arrival of a message [ns]; if the wall clock was set meanwhile, the time of reception."""
        return self._arrivals.of(int(message.timestamp * 1e9)) if self._stamps else now()

    def _controller_error(self, kind: int) -> None:
        """Count an error frame (no acknowledgement, error counters, …); bus off ends the connection."""
        self.meter.errors += 1
        if kind & BUS_OFF:
            raise self.mark_lost(BUS_OFF_MESSAGE)

    def _check_controller(self) -> None:
        """Check the state of the controller every STATE_CHECK_NS, if the interface knows it."""
        if self._reports_state and now() >= self._next_check_ns:
            self._next_check_ns = now() + STATE_CHECK_NS
            try:
                assert self._bus is not None
                off = self._bus.state.name == "ERROR"
            except Exception as error:  # vendors' libraries raise what they like
                raise self.connection_failed(error) from error
            if off:
                self.meter.errors += 1
                raise self.mark_lost(BUS_OFF_MESSAGE)

    def _filter(self) -> None:
        """Set the filters of the interface, to save work; `_frame` filters too, because their number may be limited."""
        if self._bus is not None and self.params.interface in FILTERING:
            ids = sorted(self._ids or ())
            self._bus.set_filters([{"can_id": one, "can_mask": 0x1FFFFFFF} for one in ids] or None)

    def _connect(self) -> None:
        self._lock()
        try:
            self._bus = open_bus(self.params, self._locate)
            from can import BusABC

            self._message, self._arrivals = message_type(), ArrivalTimes()
            self.descriptor = self._bus.fileno() if self.params.interface in POLLED else None
            self._reports_state = type(self._bus).state is not BusABC.state
            if self.params.interface == "slcan" and self.descriptor is not None:
                _reserve(self.descriptor)
            if self.sender_mark is not None and self.descriptor is not None:
                _only_own_group(self.descriptor)
                if sys.platform == "linux":
                    self._inbox = MulticastInbox(self.descriptor, self.sender_mark, self.params.fd)
            self._listen()
            self._filter()
        except InputError:
            self._release()
            raise
        except Exception as error:  # vendors' libraries raise what they like
            self._release()
            raise opening_error(self.params, error, self._locate) from error

    def _lock(self) -> None:
        """Raises InputError if another program is this end of the bus."""
        if self._lock_name and not self._locked:
            try:
                bus_lock.lock(self._lock_name)
            except bus_lock.BusInUse as error:
                what = f"the bus {self.name} is {one_line(error)}; end it: two programs must not command the same bus"
                raise InputError(what, self._locate("channel")) from error
            self._locked = True

    def _listen(self) -> None:
        """Raises InputError if another program sends what is reserved for this one."""
        end_ns = now() + LISTEN_NS
        while self._reserved and (rest_ns := end_ns - now()) > 0:
            assert self._bus is not None
            message = self._bus.recv(rest_ns * 1e-9)
            if message is not None and (message.arbitration_id, message.is_remote_frame) in self._reserved:
                what = f"another program commands the drives of {self.name}: its frame {message.arbitration_id:#x} came"
                what += " before anything was sent; end it: two programs must not command the same bus"
                raise InputError(what, self._locate("channel"))

    def _unlock(self) -> None:
        if self._locked:
            self._locked = False
            bus_lock.unlock(self._lock_name)

    def _disconnect(self) -> None:
        self._unlock()
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.close()
        bus, self._bus, self.descriptor = self._bus, None, None
        if bus is None:
            return
        try:
            bus.shutdown()
        finally:
            port = getattr(
                bus, "serialPortOrig", None
            )  # of slcan, which leaves it open, and so locked, after a failure
            if port is not None:
                port.close()


def _reserve(descriptor: int) -> None:
    """Lock the serial port of an adapter for this program; python-can does not. Raises OSError."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _only_own_group(descriptor: int) -> None:
    """Receive from the joined multicast group only. python-can binds the port for all groups, and Linux delivers to
    such a socket what is sent to any group that a program of this machine has joined. Raises OSError."""
    with socket.socket(fileno=os.dup(descriptor)) as group:
        if sys.platform == "linux" and group.family in MULTICAST_ALL:
            group.setsockopt(*MULTICAST_ALL[group.family], 0)
        while select.select((group,), (), (), 0)[0]:  # discard what has been received already
            group.recv(1)


def _is_queue_full(error: Exception) -> bool:
    """Whether a message was refused because the queue is full."""
    both = (error, error.__cause__)
    numbers = {getattr(e, name, None) for e in both for name in ("errno", "error_code")}
    timed_out = any(isinstance(e, TimeoutError) or type(e).__name__ == "SerialTimeoutException" for e in both)
    return timed_out or not numbers.isdisjoint(FULL) or "full" in str(error).lower()


def _is_connection_error(error: Exception) -> bool:
    """Whether the connection failed; otherwise python-can could not decode a message."""
    from can import CanError

    cause = error.__cause__
    return isinstance(cause or error, OSError) or (isinstance(error, CanError) and cause is None)
