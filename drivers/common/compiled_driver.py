"""A driver whose cycle runs in machine code: its memory, how it takes over from the driver in Python, and back."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from cosim.core.driver_contract import CycleOutcome
from cosim.core.types import COMMAND, Array, JointCommand
from cosim.plugins.drivers.common import exchange
from cosim.plugins.drivers.common.cycle import COMMAND_SIZE, LIMIT, SCALE, STATE_SIZE, ZERO, CycleLayout
from cosim.plugins.drivers.common.exchange import EXCHANGE, FIELD, RECEIVED_FRAME, SENT_FRAME, joint_function
from cosim.plugins.drivers.common.feedforward_field import FeedforwardField
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame, SentFrame, count_numbers
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.common.wiring import Units
from cosim.plugins.drivers.transport.compiled_link import EXTENDED, CompiledLink

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
_PAUSE = 1e-5  # s between looks at a message that is being sent


class CycleOwner(Protocol):
    """What a compiled driver needs of the driver in Python."""

    joints: tuple[str, ...]
    units: Units
    feedforward: FeedforwardField
    interpreted: InterpretedCycle | None
    compiled: CompiledDriver | None

    def check_not_stopped(self) -> None: ...

    def check_finite(self, cmd: JointCommand, requested: Array) -> None: ...

    def take_back(self, came: Iterable[ReceivedFrame], waiting: Sequence[bool]) -> None: ...


class CompiledDriver:
    """`read` and `write` of a driver whose motors are on, as functions of machine code on a memory of their own.

    read, write, stop: addresses of the functions; `context` is their first argument, their result is a CycleOutcome.
    commands (n, COMMAND_SIZE): what `write` sends; states (n, STATE_SIZE), in the joints' units, and t_ns (1,): what
    `read` has found. Between `take_over` and `hand_back` nobody else may use the driver, except to stop it.
    """

    read, write, stop = (function.address for function in (exchange.read, exchange.write, exchange.stop))

    def __init__(self, driver: CycleOwner, layout: CycleLayout, link: CompiledLink) -> None:
        n, sent, received = len(driver.joints), layout.transmission.frames, layout.reception.frames
        assert driver.interpreted is not None
        self._driver, self._cycle, self._layout, self._link = driver, driver.interpreted, layout, link
        self._record = np.zeros(1, EXCHANGE)
        self._kept: list[object] = []  # what the memory refers to
        self.commands, self.states = np.zeros((n, COMMAND_SIZE)), np.zeros((n, STATE_SIZE))
        self._settings = np.array(layout.settings, float).reshape(n, -1)
        self._sent_numbers = np.zeros((n, count_numbers(sent) + 1))
        whole = layout.reception.whole
        self._received_numbers = np.array(layout.numbers, float).reshape(n, -1)
        self._saturated = np.zeros(n, np.int64)
        items, places = link.items([one.frame for one in sent])
        self._received_frames = self._frames_to_receive(received, time.monotonic_ns())
        self._refer(
            arrivals=link.arrivals,
            scratch=np.zeros(4, np.int64),
            settings=self._settings,
            commands=self.commands,
            states=self.states,
            sent_numbers=self._sent_numbers,
            received_numbers=self._received_numbers,
            parts=self._received_numbers if whole is None else self._received_numbers.copy(),
            verdict=np.zeros(1),
            saturated=self._saturated,
            sent_frames=_frames_to_send(sent, places),
            sent_fields=_fields(sent, self._sent_numbers.shape[1]),
            items=items,
            due=items.copy(),
            polls=link.items(layout.polls)[0],
            repeats=items[[one.repeated for one in sent]],
            stops=link.items(layout.stops)[0],
            received_frames=self._received_frames,
            received_fields=_fields(received, self._received_numbers.shape[1]),
        )
        self._set(
            link=link.context,
            link_send=link.send,
            link_receive=link.receive,
            link_settle=link.settle,
            descriptor=link.descriptor,
            quiet_from_ns=layout.quiet_ns[0],
            quiet_until_ns=layout.quiet_ns[1],
            repeated_ns=layout.repeated_ns,
            longest_pause_ns=layout.longest_pause_ns,
            repeat_count=sum(one.repeated for one in sent),
            joints=n,
            setting_count=self._settings.shape[1],
            command_function=joint_function(layout.transmission.command).address,
            whole_function=0 if whole is None else joint_function(whole).address,
            state_function=joint_function(layout.reception.state).address,
            sent_count=self._sent_numbers.shape[1],
            received_count=self._received_numbers.shape[1],
            sent_frame_count=len(sent),
            received_frame_count=len(received),
            poll_count=len(layout.polls),
            stop_count=len(layout.stops),
        )
        self.commands[:, SCALE], self.commands[:, ZERO] = driver.units.scale, driver.units.zero
        self.commands[:, LIMIT] = driver.feedforward.limit

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

    def _frames_to_receive(self, frames: Sequence[ReceivedFrame], t_ns: int) -> np.ndarray:
        """The table of the frames, each heard at t_ns."""
        rows, first = [], 0
        for received in frames:
            frame, mask = received.frame, received.mask()
            of = frame.id | EXTENDED * frame.extended, received.own, received.joint
            longest = received.longest_silence_ns, received.longest_gap_ns
            numbers = *of, len(mask), received.exact, received.role
            arrays = self._bytes(frame.data), self._bytes(mask)
            addresses = (array.ctypes.data for array in arrays)
            rows.append((*numbers, first, len(received.fields), *addresses, *longest, t_ns, 0, 0, 0))
            first += len(received.fields)
        return np.array(rows, RECEIVED_FRAME)

    # --- from and to the driver in Python ---

    def take_over(self, deadline_ns: int) -> bool:
        """Request feedback and wait for it until the deadline; whether all drives have answered.

        Raises RunError if another thread stopped the motors, ConnectionLost.
        """
        # on a half-duplex link a command allows one request, as that with which the motors were switched on
        self._set(stopped=0, commanded=self._link.settle != 0, pending=0, written_ns=time.monotonic_ns())
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
        record, came = self._record[0], []
        polls, stops, layout = int(record["polled"]), int(record["halts"]), self._layout
        traffic = [(frame, polls, 0) for frame in layout.polls] + [(frame, stops, 0) for frame in layout.stops]
        for sent in layout.transmission.frames:
            commanded = len(range(sent.phase, int(record["cycles"]), sent.period))
            traffic.append((sent.frame, commanded + polls * sent.repeated, 0))
        rows = zip(layout.reception.frames, self._received_frames, self._cycle.incoming, strict=True)
        for received, row, one in rows:
            traffic.append((received.frame, 0, int(row["count"])))
            if row["count"]:
                one.t_ns, one.late = int(row["t_ns"]), bool(row["late"])
                came.append(received)
        self._link.count(traffic, int(record["errors"]))
        self._driver.feedforward.saturated += self._saturated
        self._return_numbers()
        self._driver.take_back(came, (self._received_frames["waiting"] != 0).tolist())
        self._received_frames["count"], self._saturated[:] = 0, 0
        self._set(cycles=0, polled=0, halts=0, lost=0, errors=0)

    def _return_numbers(self) -> None:
        """To the cycle in Python."""
        cycle, record = self._cycle, self._record[0]
        for own, row in zip(cycle.settings, self._settings.tolist(), strict=True):
            own[:] = row
        for own, row in zip(cycle.numbers, self._received_numbers.tolist(), strict=True):
            own[:] = row
        cycle.lost += int(record["lost"])
        cycle.cycles, cycle.sent_ns = cycle.cycles + int(record["cycles"]), int(record["written_ns"])

    def check(self, outcome: CycleOutcome) -> None:
        """Raises the error that ended a read or a write, if it belongs to a connection, a stop or a command."""
        if outcome is CycleOutcome.LOST:
            raise self._link.lost(int(self._record["error"][0]))
        if outcome is CycleOutcome.NOT_SENT:
            raise self._link.not_sent()
        if outcome is CycleOutcome.BUS_OFF:
            raise self._link.bus_off()
        if outcome is CycleOutcome.STOPPED:
            self._driver.check_not_stopped()
        if outcome is CycleOutcome.SUSPECT:
            command = JointCommand(*self.commands.T[: len(COMMAND)].copy(), valid_until_ns=0)
            self._driver.check_finite(command, self._sent_numbers[:, -1])


def _frames_to_send(frames: Sequence[SentFrame], places: Sequence[int]) -> np.ndarray:
    """The table of the frames, whose data are at these addresses."""
    rows, first = [], 0
    for sent, place in zip(frames, places, strict=True):
        rows.append((place, first, len(sent.fields), sent.period, sent.phase))
        first += len(sent.fields)
    return np.array(rows, SENT_FRAME)


def _fields(frames: Sequence[SentFrame] | Sequence[ReceivedFrame], count: int) -> np.ndarray:
    """The table of the fields of all frames; count: numbers of a joint."""
    rows = [
        (field.at, field.kind, (frame.joint + field.joint) * count + field.number)
        for frame in frames
        for field in frame.fields
    ]
    return np.array(rows, FIELD)
