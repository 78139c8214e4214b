"""What is heard of the drives on a line: frames in, the last state of every drive out, in the drives' SI."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cosim.drivers.cia402 import codec, faults, profile
from cosim.drivers.transport import CanFrame

_STATUS, _MOTION, _EMERGENCY, _HEARTBEAT = range(4)
HEARD = (codec.TPDO, codec.TPDO + codec.PDO_STRIDE, codec.EMCY, codec.HEARTBEAT, codec.SDO_ANSWER)  # + id
_BOTH = 3  # TPDO1 is bit 0, TPDO2 bit 1


class FeedbackStore:
    """Of n drives, by their place on the line. `steps` holds their units, `waiting` counts TPDOs that are still to come
    since `expect`, `lost` frames of the drives that could not be understood, `times` when TPDO1 (first n) and TPDO2 of
    each drive were last heard (0: never)."""

    def __init__(self, nodes: Sequence[int]) -> None:
        n = self.n = len(nodes)
        self.steps = [codec.Step(1.0, 1.0, 1.0)] * n
        self.position, self.velocity, self.effort = [0.0] * n, [0.0] * n, [0.0] * n
        self.temperature = [math.nan] * n
        self.status, self.display, self.error = [0] * n, [0] * n, [0] * n
        self.times = [0] * (2 * n)
        self.away = [False] * n  # left the operational state
        self._there = [False] * n  # was seen in it
        self.running = False  # the drives were told to be in it
        self.waiting = self.lost = 0
        self._answered = [_BOTH] * n
        self._routes: dict[int, tuple[int, int]] = {}
        for k, node in enumerate(nodes):
            self._routes[codec.TPDO + node] = (_STATUS, k)
            self._routes[codec.TPDO + codec.PDO_STRIDE + node] = (_MOTION, k)
            self._routes[codec.EMCY + node] = (_EMERGENCY, k)
            self._routes[codec.HEARTBEAT + node] = (_HEARTBEAT, k)

    def expect(self) -> None:
        """SYNC is about to be sent: every drive has two TPDOs to answer with."""
        self._answered = [0] * self.n
        self.waiting = 2 * self.n

    def forget(self) -> None:
        """Nothing counts as heard any more, so that no old state is taken for one of now."""
        self.times = [0] * (2 * self.n)

    def run(self, running: bool) -> None:
        """The drives are told to be operational, or not to be."""
        self.running, self.away, self._there = running, [False] * self.n, [False] * self.n

    def take(self, frame: CanFrame) -> None:
        """A frame from the bus; those of others are passed over."""
        route = self._routes.get(frame.id)
        if route is None or frame.extended or frame.remote:
            return
        kind, k = route
        if kind == _STATUS:
            status = codec.decode_status(frame.data, self.steps[k])
            if status is not None:
                self.status[k], self.display[k], self.position[k] = status
                self._answer(k, k, 1, frame.t_ns)
                return
        elif kind == _MOTION:
            motion = codec.decode_motion(frame.data, self.steps[k])
            if motion is not None:
                self.velocity[k], self.effort[k], warm = motion
                if warm is not None:
                    self.temperature[k] = warm
                self._answer(k, self.n + k, 2, frame.t_ns)
                return
        elif kind == _EMERGENCY:
            emergency = codec.decode_emergency(frame.data)
            if emergency is not None:
                self._error(k, emergency[0])
                return
        else:
            state = codec.decode_heartbeat(frame.data)
            if state is not None:
                # a drive may say what it was just before it was told to run
                self._there[k] |= state == codec.RUNNING
                self.away[k] = self.running and state != codec.RUNNING and (self._there[k] or not state)
                return
        self.lost += 1

    def _error(self, k: int, code: int) -> None:
        """00xx: errors are gone. A heartbeat that is missed after another fault does not hide that fault."""
        if code != faults.HEARTBEAT or not self.error[k]:
            self.error[k] = code if code & 0xFF00 else 0

    def _answer(self, k: int, place: int, which: int, t_ns: int) -> None:
        self.times[place], self._there[k] = t_ns, self.running
        if not self._answered[k] & which:
            self._answered[k] |= which
            self.waiting -= 1

    def state(self, k: int) -> int | None:
        """The state that a drive showed last; None for one that was never heard, or shows none."""
        return profile.state_of(self.status[k]) if self.times[k] else None

    def fault(self, k: int, mode: int | None) -> int:
        """The fault of a drive, 0 for none; `mode`: that it is to run in, None while it is to be off."""
        word = self.status[k]
        if word & profile.FAULTY:
            return self.error[k] or faults.UNNAMED
        if self.away[k]:
            return self.error[k] or faults.RESTARTED
        if mode is None:
            return 0
        state = profile.state_of(word)
        if state != profile.ENABLED:
            return faults.STOPPING if state == profile.QUICK_STOP else faults.FELL_OUT
        return 0 if self.display[k] == mode else faults.OTHER_MODE
