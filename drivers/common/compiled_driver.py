"""A driver whose cycle runs in machine code: its memory, how it takes over from the driver in Python, and back."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from cosim.drivers.common import exchange
from cosim.drivers.common.exchange import COMMAND_SIZE, EXCHANGE, FIELD, LAST_SIZE, RECEIVED_FRAME, SENT_FRAME
from cosim.drivers.common.feedforward_field import FeedforwardField
from cosim.drivers.common.frame_layout import CycleLayout, FrameLayout, sizes
from cosim.drivers.common.wiring import Units
from cosim.drivers.transport import CanFrame
from cosim.drivers.transport.can_socket import CanSocket
from cosim.types import COMMAND, Array, CycleOutcome, JointCommand

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
_PAUSE = 1e-5  # s between looks at a message that is being sent


class CycleOwner(Protocol):
    """What a compiled driver needs of the driver in Python."""

    joints: tuple[str, ...]
    units: Units
    feedforward: FeedforwardField
    compiled: CompiledDriver | None

    def check_not_stopped(self) -> None: ...

    def check_finite(self, cmd: JointCommand, requested: Array) -> None: ...

    def take_back(self, items: Iterable[Any], pending: set[int], commanded: bool, lost: int) -> None: ...


class CompiledDriver:
    """`read` and `write` of a driver whose motors are on, as functions of machine code on a memory of their own.

    read, write, stop: addresses of the functions; `context` is their first argument, their result is a CycleOutcome.
    commands (n, COMMAND_SIZE): what `write` sends; states (n, STATE_SIZE), in the joints' units, and t_ns (1,): what
    `read` has found. Between `take_over` and `hand_back` nobody else may use the driver, except to stop it.
    """

    read, write, stop = (function.address for function in (exchange.read, exchange.write, exchange.stop))

    def __init__(self, driver: CycleOwner, layout: CycleLayout, socket: CanSocket) -> None:
        n, sent, received = len(driver.joints), layout.sent, layout.received
        self._driver, self._layout, self._socket = driver, layout, socket
        self._record = np.zeros(1, EXCHANGE)
        self._kept: list[object] = []  # what the memory refers to
        self.commands, self.states = np.zeros((n, COMMAND_SIZE)), np.zeros((n, exchange.STATE_SIZE))
        self._settings = np.ascontiguousarray(layout.settings, float).reshape(n, -1)
        self._sent_numbers, self._received_numbers = np.zeros((n, sizes(sent) + 1)), np.zeros((n, sizes(received)))
        self._last = np.zeros((len(received), LAST_SIZE), np.uint8)
        self._saturated = np.zeros(n, np.int64)
        sent_frames, wires = self._sent_frames(sent)
        self._received_frames = self._frames_to_receive(received)
        polls, stops = (
            [self._bytes(socket.wire_of(frame)[0]) for frame in frames] for frames in (layout.polls, layout.stops)
        )
        self._refer(
            socket=socket.memory.record,
            scratch=np.zeros(4, np.int64),
            settings=self._settings,
            commands=self.commands,
            states=self.states,
            sent_numbers=self._sent_numbers,
            received_numbers=self._received_numbers,
            saturated=self._saturated,
            sent_frames=sent_frames,
            sent_fields=_fields(sent),
            messages=socket.memory.messages_to_send(wires),
            polls=socket.memory.messages_to_send(polls),
            stops=socket.memory.messages_to_send(stops),
            received_frames=self._received_frames,
            received_fields=_fields(received),
        )
        self._set(
            joints=n,
            setting_count=self._settings.shape[1],
            command_function=layout.command_function,
            state_function=layout.state_function,
            sent_count=self._sent_numbers.shape[1],
            received_count=self._received_numbers.shape[1],
            sent_frame_count=len(sent),
            received_frame_count=len(received),
            poll_count=len(polls),
            stop_count=len(stops),
        )
        self.commands[:, exchange.SCALE], self.commands[:, exchange.ZERO] = driver.units.scale, driver.units.zero
        self.commands[:, exchange.LIMIT] = driver.feedforward.limit

    @property
    def context(self) -> int:
        return self._record.ctypes.data

    @property
    def t_ns(self) -> np.ndarray:
        """(1,) time of the measurement [ns]."""
        return self._record["t_ns"]

    # --- memory ---

    def _refer(self, **arrays: np.ndarray) -> None:
        for name, array in arrays.items():
            self._kept.append(array)
            self._record[name] = array.ctypes.data

    def _set(self, **words: int) -> None:
        for name, word in words.items():
            self._record[name] = word

    def _bytes(self, data: bytes) -> np.ndarray:
        array = np.frombuffer(data, np.uint8).copy()
        self._kept.append(array)
        return array

    def _sent_frames(self, layouts: Sequence[FrameLayout]) -> tuple[np.ndarray, list[np.ndarray]]:
        """The table of the frames, and the bytes of their messages."""
        rows, wires, first = [], [], 0
        for layout in layouts:
            frame = CanFrame(layout.id, layout.data, layout.extended, layout.fd, layout.switched)
            data, start = self._socket.wire_of(frame)
            wires.append(self._bytes(data))
            rows.append((layout.joint, wires[-1].ctypes.data + start, first, len(layout.fields)))
            first += len(layout.fields)
        return np.array(rows, SENT_FRAME), wires

    def _frames_to_receive(self, layouts: Sequence[FrameLayout]) -> np.ndarray:
        rows, first = [], 0
        for layout, last in zip(layouts, self._last, strict=True):
            template, mask = self._bytes(layout.data), self._bytes(layout.mask)
            numbers = layout.joint, layout.id, len(layout.data) - layout.padding, first, len(layout.fields)
            rows.append((*numbers, template.ctypes.data, mask.ctypes.data, last.ctypes.data, 0, 0, 0, 0))
            first += len(layout.fields)
        return np.array(rows, RECEIVED_FRAME)

    # --- from and to the driver in Python ---

    def take_over(self, deadline_ns: int) -> bool:
        """Request feedback and wait for it until the deadline; whether all drives have answered.

        Raises RunError if another thread stopped the motors, ConnectionLost.
        """
        self._set(stopped=0, commanded=0, pending=0)
        self._driver.compiled = self  # from here on a stop ends the cycle
        self._driver.check_not_stopped()
        outcome = CycleOutcome(_CALL(self.read)(self.context, deadline_ns, 0, 0))
        self.check(outcome)
        return not self._record["pending"][0]

    def forbid(self, patience: float) -> None:
        """No message is sent any more after the one that is under way, which is waited for [s]. From any thread."""
        self._set(stopped=1)
        until = time.monotonic() + patience
        while self._record["sending"][0] and time.monotonic() < until:
            time.sleep(_PAUSE)

    def hand_back(self) -> None:
        """Give the driver in Python what came last, and the counts."""
        record, rows, items, pending = self._record[0], self._received_frames, [], set()
        for layout, row, last in zip(self._layout.received, rows, self._last, strict=True):
            data, t_ns = last[: row["last_size"]].tobytes(), int(row["t_ns"])
            frame = CanFrame(layout.id, data, layout.extended, layout.fd, layout.switched, t_ns=t_ns)
            if row["count"]:
                items.append(frame)
                self._socket.count(frame, 0, int(row["count"]))
            if row["waiting"]:
                pending.add(layout.joint)
        for layout in self._layout.sent:
            frame = CanFrame(layout.id, layout.data, layout.extended, layout.fd, layout.switched)
            self._socket.count(frame, int(record["cycles"]), 0)
        for frame in self._layout.polls:
            self._socket.count(frame, int(record["polled"]), 0)
        self._driver.feedforward.saturated += self._saturated
        self._driver.take_back(items, pending, bool(record["commanded"]), int(record["lost"]))
        rows["count"], self._saturated[:] = 0, 0
        self._set(cycles=0, polled=0, lost=0)

    def check(self, outcome: CycleOutcome) -> None:
        """Raises the error that ended a read or a write, if it is that of a connection, of a stop or of a command."""
        if outcome is CycleOutcome.LOST:
            raise self._socket.lost(int(self._record["error"][0]))
        if outcome is CycleOutcome.NOT_SENT:
            raise self._socket.not_sent()
        if outcome is CycleOutcome.BUS_OFF:
            raise self._socket.bus_off()
        if outcome is CycleOutcome.STOPPED:
            self._driver.check_not_stopped()
        if outcome is CycleOutcome.SUSPECT:
            command = JointCommand(*self.commands.T[: len(COMMAND)].copy(), valid_until_ns=0)
            self._driver.check_finite(command, self._sent_numbers[:, -1])


def _fields(layouts: Sequence[FrameLayout]) -> np.ndarray:
    return np.array([tuple(field) for layout in layouts for field in layout.fields], FIELD)
