"""The cycle of a driver in Python: the pure functions and frames of its family (see `cycle`) on lists of numbers.

Lists, because for the few joints of a driver Python's own numbers are several times faster than those of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cosim.plugins.drivers.common.cycle import (
    COMMAND_SIZE,
    KD,
    LIMIT,
    MEASURED_NS,
    MEASURED_POSITION,
    MEASURED_VELOCITY,
    SCALE,
    STATE_SIZE,
    STATE_TEMPERATURE,
    ZERO,
    Reception,
    Transmission,
)
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame, Role, SentFrame, count_numbers, packer, unpacker
from cosim.plugins.drivers.transport.connection import LinkFrame

_GIVEN = slice(0, KD + 1)  # of a command


class IncomingFrame:
    """A frame that may come: when it came last [ns], 0 for never, and whether it is awaited. late: machine code has
    found a gap before it, see `ReceivedFrame.longest_gap_ns`. next: the next one with its identifier, of another drive.
    """

    __slots__ = ("extended", "head", "late", "next", "own", "received", "t_ns", "take", "waiting")

    def __init__(self, received: ReceivedFrame, row: list[float], following: IncomingFrame | None) -> None:
        self.received, self.take, self.next = received, unpacker(received, row), following
        self.own, self.extended = received.own, received.frame.extended
        self.head = received.frame.data[0] & self.own if self.own else 0
        self.t_ns, self.waiting, self.late = 0, False, False


class InterpretedCycle:
    """Of n joints.

    settings, commands, numbers, sent, states: lists of each joint, see `cycle`; numbers: received; states and times
    (ns, 0 for never): as of the last `measure`; position, velocity, effort: these states at the joints. pending:
    awaited frames that have not come; lost: damaged ones; cycles: commands that were sent; sent_ns: when the last one
    was, as far as its driver or machine code notes it.
    """

    def __init__(self, reception: Reception, settings: Sequence[list[float]]) -> None:
        """settings: stay the driver's, which may change them."""
        n = len(settings)
        self.settings = settings
        self.commands = [[0.0] * COMMAND_SIZE for _ in range(n)]
        self.states = [[0.0] * STATE_SIZE for _ in range(n)]
        self.times = [0] * n
        self.numbers = [list(reception.numbers) for _ in range(n)]
        self.position, self.velocity, self.effort = [0.0] * n, [0.0] * n, [0.0] * n
        self.lost = self.cycles = self.sent_ns = 0
        self.last: dict[int, Any] = {}  # joint -> its repeated frame, as it was sent last
        self.receive_as(reception)
        self.forget()

    def receive_as(self, reception: Reception) -> None:
        """Frames of this kind come from now on, with the same numbers as before."""
        self.reception, joints, self._whole = reception, range(len(self.settings)), reception.whole
        # numbers of parts are not received until they are whole
        self._parts = self.numbers if reception.whole is None else [list(row) for row in self.numbers]
        self._by_id: dict[int, IncomingFrame] = {}
        self.incoming: list[IncomingFrame] = []
        for received in reception.frames:
            id = received.frame.id
            self._by_id[id] = IncomingFrame(received, self._parts[received.joint], self._by_id.get(id))
            self.incoming.append(self._by_id[id])
        self._measured = [one for one in self.incoming if one.received.role is Role.MEASUREMENT]
        self._answers = [one for one in self.incoming if one.received.role is Role.ANSWER]
        self._of_joint = [[one for one in self._measured if one.received.joint == k] for k in joints]
        self.pending = 0

    def forget(self) -> None:
        """Nothing has come yet."""
        for numbers, state in zip(self.numbers, self.states, strict=True):
            numbers[:], state[:] = self.reception.numbers, [0.0] * STATE_SIZE
            state[STATE_TEMPERATURE] = math.nan
        self.wait_for([False] * len(self.incoming))
        self.forget_times()
        self.lost = 0

    def send_as(self, transmission: Transmission, encode: Callable[[Any], Any] | None = None) -> None:
        """Commands go out as these frames from now on. encode: frame -> item of the connection, unless it is one."""
        self.transmission = transmission
        size = count_numbers(transmission.frames) + 1
        self.sent = [[0.0] * size for _ in self.settings]
        self.last.clear()
        self._outgoing = [(sent, _maker(sent, self.sent, encode, self.last)) for sent in transmission.frames]
        self._at_times = any(sent.period > 1 for sent in transmission.frames)

    # --- receiving ---

    def take(self, frame: LinkFrame) -> ReceivedFrame | None:
        """Take the numbers of a frame; which one of the cycle's it is, None for another and for a damaged one."""
        one, known = self._by_id.get(frame.id), False
        while one is not None:
            if frame.remote or frame.extended != one.extended:
                return None
            data = frame.data
            if not one.own or not data or data[0] & one.own == one.head:
                known = self._whole is None or not one.received.role  # what parts are not is seen when they are whole
                if one.take(data):
                    if self._whole is not None and (one.received.role or not self._is_whole(one.received.joint)):
                        return None  # a part of a measurement
                    one.t_ns = frame.t_ns
                    if one.waiting:
                        one.waiting = False
                        self.pending -= 1
                    return one.received
            one = one.next
        self.lost += known
        return None

    def _is_whole(self, k: int) -> bool:
        """Whether the parts of a measurement belong together; they are received then."""
        result, parts = [0.0], self._parts[k]
        assert self._whole is not None
        self._whole(self.settings[k], self.commands[k], parts, result)
        if result[0] > 0.0:
            self.numbers[k][:] = parts
            return True
        self.lost += result[0] == 0.0
        return False

    def expect(self, after_command: bool) -> None:
        """From now on every drive has to answer, also to a command or only to a request for measurements."""
        for one in self._measured:
            one.waiting = True
        for one in self._answers:
            one.waiting = after_command
        self.pending = len(self._measured) + (len(self._answers) if after_command else 0)

    def wait_for(self, waiting: Iterable[bool]) -> None:
        """waiting: which frames are awaited, in the order of `incoming`."""
        for one, awaited in zip(self.incoming, waiting, strict=True):
            one.waiting = awaited
        self.pending = sum(one.waiting for one in self.incoming)

    def waits_for(self, k: int) -> bool:
        """Whether a frame of joint k is awaited."""
        return any(one.waiting for one in self.incoming if one.received.joint == k)

    def last_of(self, received: ReceivedFrame) -> IncomingFrame:
        """What is known of the last frame of this kind."""
        return next(one for one in self.incoming if one.received is received)

    def measured_ns(self, k: int) -> int:
        """When a measurement of joint k came last [ns], 0 for never."""
        return max([one.t_ns for one in self._of_joint[k]], default=0)

    def forget_times(self) -> None:
        """Of measurements that have come."""
        self.times = [0] * len(self.times)
        for one in self._measured:
            one.t_ns = 0

    def measure(self) -> None:
        """The states of the joints that have reported, from the numbers that have come."""
        state, times = self.reception.state, self.times
        rows = zip(self._of_joint, self.settings, self.commands, self.numbers, self.states, strict=True)
        for k, (frames, settings, command, numbers, result) in enumerate(rows):
            t_ns = frames[0].t_ns if len(frames) == 1 else min([one.t_ns for one in frames])
            if t_ns:
                times[k], command[MEASURED_NS] = t_ns, float(t_ns)
                state(settings, command, numbers, result)

    def convert(self) -> None:
        """The states at the joints, at which commands are closed."""
        positions, velocities, efforts = self.position, self.velocity, self.effort
        rows = zip(self.commands, self.states, strict=True)
        for k, (command, (position, velocity, effort, _, _)) in enumerate(rows):
            scale = command[SCALE]
            positions[k] = command[MEASURED_POSITION] = position / scale + command[ZERO]
            velocities[k] = command[MEASURED_VELOCITY] = velocity / scale
            efforts[k] = effort * scale

    # --- sending ---

    def wire(self, scale: Iterable[float], zero: Iterable[float], limit: Iterable[float]) -> None:
        """SCALE, ZERO and LIMIT of the joints."""
        for command, wiring in zip(self.commands, zip(scale, zero, limit, strict=True), strict=True):
            command[SCALE], command[ZERO], command[LIMIT] = wiring

    def fill(self, commands: Iterable[tuple[float, ...]]) -> list[float]:
        """The numbers of the frames for these commands (n, POSITION … KD); the efforts that they request."""
        function = self.transmission.command
        rows = zip(self.settings, self.commands, self.numbers, self.sent, commands, strict=True)
        for settings, command, numbers, sent, given in rows:
            command[_GIVEN] = given
            function(settings, command, numbers, sent)
        return [sent[-1] for sent in self.sent]

    def due(self) -> Sequence[tuple[SentFrame, Callable[[], Any]]]:
        """(frame, what makes an item with its numbers) of those that are due in this cycle; then it has passed."""
        cycle, self.cycles = self.cycles, self.cycles + 1
        if not self._at_times:
            return self._outgoing
        return [one for one in self._outgoing if one[0].period == 1 or cycle % one[0].period == one[0].phase]


def _maker(
    sent: SentFrame,
    numbers: Sequence[list[float]],
    encode: Callable[[Any], Any] | None,
    last: dict[int, Any],
) -> Callable[[], Any]:
    """Makes an item of what the lists of its joints hold then; last: keeps repeated ones."""
    frame: Any = sent.frame
    if not sent.fields:
        item = frame if encode is None else encode(frame)
        return lambda: item
    (id, _, *rest), kind, pack = frame, type(frame), packer(sent, numbers)
    new = tuple.__new__  # faster than the name of the kind
    if sent.repeated:

        def make_kept() -> Any:
            item = last[sent.joint] = new(kind, (id, pack(), *rest))
            return item

        return make_kept
    if encode is None:
        return lambda: new(kind, (id, pack(), *rest))
    return lambda: encode(new(kind, (id, pack(), *rest)))
