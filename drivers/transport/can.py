"""A CAN bus by python-can, whatever its interface: SocketCAN, a vendor's adapter, a serial adapter, a virtual bus."""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import time
import uuid
from collections.abc import Iterable
from typing import Any

from cosim.drivers.transport.bus_load import frame_weight, weights
from cosim.drivers.transport.can_opening import mistake, open_bus
from cosim.drivers.transport.connection import BaseConnection, CanFrame, Locate, now
from cosim.drivers.transport.connection_params import CanParams

# Interfaces whose file descriptor tells that a message waits. The wait is made on it, by the monotonic clock:
# python-can counts its time-outs by the wall clock, which may be set back while it waits.
POLLED = frozenset({"socketcan", "udp_multicast", "slcan"} if os.name == "posix" else ())
STAMPING = frozenset({"socketcan", "udp_multicast", "virtual"})  # say when frames came, by the wall clock
FILTERING = frozenset({"socketcan", "kvaser", "vector"})  # filter messages before Python sees them
# [s] in which one try to send may wait: not at all, but a serial adapter must get the whole of a message
PATIENCE = {"slcan": 0.01}

BUS_OFF = 0x40  # a class of error frames (linux/can/error.h)
BUS_OFF_WORDS = "bus off: the controller met too many errors; check wiring, termination and bit rate"
FULL = (errno.ENOBUFS, errno.EAGAIN, errno.ETIMEDOUT)
NAP = 50e-6  # s between tries to send while the queue is full
MOST_UNFIT = 256  # messages for others that are taken past a deadline
LONGEST_WAIT = 1.0  # s that a stamp is believed to be old
# IP_MULTICAST_ALL and IPV6_MULTICAST_ALL of Linux, which `socket` does not name
MULTICAST_ALL = {socket.AF_INET: (socket.IPPROTO_IP, 49), socket.AF_INET6: (socket.IPPROTO_IPV6, 29)}
LOOK_NS = 100_000_000  # between looks at the state of the controller


class CanBus(BaseConnection[CanFrame]):
    """A node on a CAN bus; items are Frames.

    `t_ns` of a frame is the monotonic time at which it arrived, where the interface stamps frames by the wall clock,
    which tells how long it waited. Others stamp by clocks of their own; then it is the time at which the frame was
    taken from the bus, and one that waited looks younger than it is.
    """

    def __init__(self, params: CanParams, locate: Locate) -> None:
        super().__init__(params.name, locate)
        self.params = params
        self._weights = weights(params.bitrate, params.data_bitrate)
        self._bus: Any = None
        self._message: Any = None  # class of python-can
        self._descriptor: int | None = None  # where a wait is made
        self._ids: frozenset[int] | None = None
        # a multicast message comes back to its sender, who knows it by this mark
        self._mark = uuid.uuid4().hex if params.interface == "udp_multicast" else None
        self._patience = PATIENCE.get(params.interface, 0.0)
        self._stamps = params.interface in STAMPING
        self._looks = False  # whether the interface knows the state of the controller
        self._look_ns = 0

    def accept(self, ids: Iterable[int] | None) -> None:
        """Only frames with these identifiers (11 or 29 bits) are received from now on; None: all."""
        self._ids = None if ids is None else frozenset(ids)
        if self._bus is not None:
            self._filter()

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        """See `Link`. A new Message for each frame: interfaces may keep it, and other threads may send too."""
        if self._trouble:
            raise self._failed()
        message = self._message(
            arbitration_id=item.id,
            is_extended_id=item.extended,
            is_remote_frame=item.remote,
            data=None if item.remote else item.data,
            dlc=len(item.data),
            is_fd=item.fd,
            bitrate_switch=item.switched,
            channel=self._mark,
        )
        while True:
            try:
                self._bus.send(message, self._patience)
                break
            except Exception as error:  # vendors' libraries raise what they like
                if not _full(error):
                    raise self._unplugged(error) from error
                self._look()
                if now() >= deadline_ns:
                    raise self._late() from error
                time.sleep(NAP)
        self.meter.sent(frame_weight(item, self._weights))

    def bus_off(self) -> None:
        """What other nodes on a bus without hardware are to see as the end of it: the error frame by which their own
        controllers would report that they are off. Raises LinkError."""
        if self._trouble:
            raise self._failed()
        try:
            message = self._message(
                arbitration_id=BUS_OFF,
                is_extended_id=False,
                is_error_frame=True,
                data=bytes(8),
                channel=self._mark,
            )
            self._bus.send(message)
        except Exception as error:  # vendors' libraries raise what they like
            raise self._unplugged(error) from error

    def receive(self, deadline_ns: int) -> CanFrame | None:
        """See `Link`."""
        unfit = 0
        while True:
            if self._trouble:
                raise self._failed()
            rest_ns = deadline_ns - now()
            if rest_ns <= 0 and unfit >= MOST_UNFIT:
                return None
            timeout = rest_ns * 1e-9 if rest_ns > 0 else 0.0
            try:
                if self._descriptor is None:
                    message = self._bus.recv(timeout)
                    over = message is None and now() >= deadline_ns
                else:
                    over = not select.select((self._descriptor,), (), (), timeout)[0]
                    message = None if over else self._bus.recv(0.0)  # None: an adapter's answer
            except Exception as error:  # vendors' libraries raise what they like
                if _broken(error):
                    raise self._unplugged(error) from error
                self.meter.errors += 1  # the line is there, what came over it is nonsense
                message, over = None, False
            if over:
                self._look()
                return None
            frame = None if message is None else self._frame(message)
            if frame is not None:
                return frame
            unfit += 1

    def _frame(self, message: Any) -> CanFrame | None:
        """None when the message is not a frame for this node."""
        if self._mark is not None and message.channel == self._mark:
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
        self.meter.received(frame_weight(frame, self._weights))
        return frame

    def _arrival(self, message: Any) -> int:
        """When a message came [ns]. A wall clock that is set meanwhile must not make it younger than now, or old."""
        taken = now()
        if not self._stamps:
            return taken
        waited = time.time() - message.timestamp
        return taken - int(waited * 1e9) if 0.0 <= waited < LONGEST_WAIT else taken

    def _controller_error(self, kind: int) -> None:
        """An error frame: bus off ends the use of the line, the others (no acknowledgement, counters, …) count."""
        self.meter.errors += 1
        if kind & BUS_OFF:
            raise self._lose(BUS_OFF_WORDS)

    def _look(self) -> None:
        """At the state of the controller, where the interface knows it and not too often."""
        if self._looks and now() >= self._look_ns:
            self._look_ns = now() + LOOK_NS
            try:
                off = self._bus.state.name == "ERROR"
            except Exception as error:  # vendors' libraries raise what they like
                raise self._unplugged(error) from error
            if off:
                self.meter.errors += 1
                raise self._lose(BUS_OFF_WORDS)

    def _filter(self) -> None:
        """Filters of the interface save work; `_frame` looks again, because not all interfaces take any number."""
        if self.params.interface in FILTERING:
            ids = sorted(self._ids or ())
            self._bus.set_filters([{"can_id": one, "can_mask": 0x1FFFFFFF} for one in ids] or None)

    def _connect(self) -> None:
        self._bus = open_bus(self.params, self._locate)
        try:
            from can import BusABC, Message

            self._message = Message
            self._descriptor = self._bus.fileno() if self.params.interface in POLLED else None
            self._looks = type(self._bus).state is not BusABC.state
            if self.params.interface == "slcan" and self._descriptor is not None:
                _reserve(self._descriptor)
            if self._mark is not None and self._descriptor is not None:
                _only_own_group(self._descriptor)
            self._filter()
        except Exception as error:  # vendors' libraries raise what they like
            self._give_up()
            raise mistake(self.params, error, self._locate) from error

    def _disconnect(self) -> None:
        bus, self._bus, self._descriptor = self._bus, None, None
        if bus is None:
            return
        try:
            bus.shutdown()
        finally:
            if self.params.interface == "slcan":  # which leaves its port open, and so reserved, when the line is lost
                bus.serialPortOrig.close()


def _reserve(descriptor: int) -> None:
    """An adapter on a serial port is for one program: python-can does not see to it. Raises OSError."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _only_own_group(descriptor: int) -> None:
    """python-can binds the port of all multicast groups, and Linux gives such a socket what is sent to any group that
    some program of this machine has joined: other buses would be heard too. Raises OSError."""
    with socket.socket(fileno=os.dup(descriptor)) as heard:
        if sys.platform == "linux" and heard.family in MULTICAST_ALL:
            heard.setsockopt(*MULTICAST_ALL[heard.family], 0)
        while select.select((heard,), (), (), 0)[0]:  # what came until now
            heard.recv(1)


def _full(error: Exception) -> bool:
    """Whether a message was not taken because others still wait."""
    both = (error, error.__cause__)
    numbers = {getattr(e, name, None) for e in both for name in ("errno", "error_code")}
    timed_out = any(isinstance(e, TimeoutError) or type(e).__name__ == "SerialTimeoutException" for e in both)
    return timed_out or not numbers.isdisjoint(FULL) or "full" in str(error).lower()


def _broken(error: Exception) -> bool:
    """Whether the line failed; else python-can could not understand what came over it."""
    from can import CanError

    cause = error.__cause__
    return isinstance(cause or error, OSError) or (isinstance(error, CanError) and cause is None)
