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
from cosim.drivers.common.frame_layout import CycleLayout, ReceivedFrame, SentFrame, count_numbers
from cosim.drivers.common.wiring import Units
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
        self._sent_numbers = np.zeros((n, count_numbers(sent) + 1))
        self._received_numbers = np.zeros((n, count_numbers(received)))
        if layout.numbers is not None:
            self._received_numbers[:] = layout.numbers
        self._last = np.zeros((len(received), LAST_SIZE), np.uint8)
        self._saturated = np.zeros(n, np.int64)
        sent_frames, wires = self._sent_frames(sent)
        self._received_frames = self._frames_to_receive(received, time.monotonic_ns())
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
            due=socket.memory.messages_to_send(wires),
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

    def _sent_frames(self, frames: Sequence[SentFrame]) -> tuple[np.ndarray, list[np.ndarray]]:
        """The table of the frames, and the bytes of their messages."""
        rows, wires, first = [], [], 0
        for sent in frames:
            data, start = self._socket.wire_of(sent.frame)
            wires.append(self._bytes(data))
            place = sent.joint, wires[-1].ctypes.data + start, first, len(sent.fields)
            rows.append((*place, sent.period, sent.phase))
            first += len(sent.fields)
        return np.array(rows, SENT_FRAME), wires

    def _frames_to_receive(self, frames: Sequence[ReceivedFrame], t_ns: int) -> np.ndarray:
        """The table of the frames, each heard at t_ns."""
        rows, first = [], 0
        for received, last in zip(frames, self._last, strict=True):
            mask = bytearray(len(received.frame.data))
            for part in received.fixed:
                mask[part] = b"\xff" * len(mask[part])
            numbers = received.joint, received.frame.id, len(mask), received.exact, received.role
            arrays = self._bytes(received.frame.data), self._bytes(bytes(mask)), last
            addresses = (array.ctypes.data for array in arrays)
            rows.append((*numbers, first, len(received.fields), *addresses, 0, received.longest_silence_ns, t_ns, 0, 0))
            first += len(received.fields)
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
        record, items, pending = self._record[0], [], set()
        for received, row, last in zip(self._layout.received, self._received_frames, self._last, strict=True):
            self._socket.count(received.frame, 0, int(row["count"]))
            if row["count"]:
                data, t_ns = last[: row["last_size"]].tobytes(), int(row["t_ns"])
                items.append(received.frame._replace(data=data, t_ns=t_ns))
            if row["waiting"]:
                pending.add(received.joint)
        for sent in self._layout.sent:
            cycles = np.arange(sent.phase, int(record["cycles"]), sent.period)
            self._socket.count(sent.frame, len(cycles), 0)
        for frames, times in ((self._layout.polls, record["polled"]), (self._layout.stops, record["halts"])):
            for frame in frames:
                self._socket.count(frame, int(times), 0)
        self._socket.add_errors(int(record["errors"]))
        self._driver.feedforward.saturated += self._saturated
        self._driver.take_back(items, pending, bool(record["commanded"]), int(record["lost"]))
        self._received_frames["count"], self._saturated[:] = 0, 0
        self._set(cycles=0, polled=0, halts=0, lost=0, errors=0)

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


def _fields(frames: Sequence[SentFrame] | Sequence[ReceivedFrame]) -> np.ndarray:
    return np.array([tuple(field) for frame in frames for field in frame.fields], FIELD)
