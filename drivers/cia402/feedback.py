"""The feedback of the drives on a bus: frames in, the latest state of every drive out, in SI units at the drive."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cosim.drivers.cia402 import codec, faults, profile
from cosim.drivers.common.position_rate import smoothed_rate
from cosim.drivers.transport import CanFrame

_STATUS, _MOTION, _EMERGENCY, _HEARTBEAT = range(4)
RECEIVED = (codec.TPDO, codec.TPDO + codec.PDO_STRIDE, codec.EMCY, codec.HEARTBEAT, codec.SDO_ANSWER)  # + id
_BOTH = 3  # TPDO1 is bit 0, TPDO2 bit 1


class FeedbackStore:
    """The latest state of n drives, by index.

    steps: their units; warm: which drives report a temperature; missing: TPDOs still to come since `expect_answers`;
    lost: frames of the drives that could not be decoded; times: of the last TPDO1 (first n) and TPDO2 of each drive
    [ns], 0 for never.
    """

    def __init__(self, nodes: Sequence[int]) -> None:
        n = self.n = len(nodes)
        self.steps = [codec.Step(1.0, 1.0, 1.0)] * n
        self.position, self.velocity, self.effort = [0.0] * n, [0.0] * n, [0.0] * n
        self.temperature, self.warm = [math.nan] * n, [False] * n
        self.status, self.display, self.error = [0] * n, [0] * n, [0] * n
        self.times = [0] * (2 * n)
        self._last = [(0.0, 0, 0.0)] * n  # position [counts], its time [ns], velocity [counts/s] by the positions
        self.left_operational = [False] * n
        self._was_operational = [False] * n  # reported the operational state since it was commanded
        self.operational = False  # the operational state was commanded
        self.missing = self.lost = 0
        self._answered = [_BOTH] * n
        self._routes: dict[int, tuple[int, int]] = {}
        for k, node in enumerate(nodes):
            self._routes[codec.TPDO + node] = (_STATUS, k)
            self._routes[codec.TPDO + codec.PDO_STRIDE + node] = (_MOTION, k)
            self._routes[codec.EMCY + node] = (_EMERGENCY, k)
            self._routes[codec.HEARTBEAT + node] = (_HEARTBEAT, k)

    def expect_answers(self) -> None:
        """Before SYNC: every drive will answer with two TPDOs."""
        self._answered = [0] * self.n
        self.missing = 2 * self.n

    def invalidate(self) -> None:
        """Discard all times, so that no old state is mistaken for a current one."""
        self.times = [0] * (2 * self.n)

    def set_operational(self, operational: bool) -> None:
        """The drives were commanded to be operational, or not to be."""
        self.operational = operational
        self.left_operational, self._was_operational = [False] * self.n, [False] * self.n

    def take(self, frame: CanFrame) -> None:
        """Take a frame from the bus; frames of other nodes are ignored."""
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
            if motion is not None and (motion.temperature is not None) == self.warm[k]:
                self.velocity[k], self.effort[k], temperature = motion
                if temperature is not None:
                    self.temperature[k] = temperature
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
                # a drive may report its state from just before the command
                self._was_operational[k] |= state == codec.RUNNING
                left = state != codec.RUNNING and (self._was_operational[k] or not state)
                self.left_operational[k] = self.operational and left
                return
        self.lost += 1

    def derive_velocities(self) -> None:
        """The velocities of drives whose unit of velocity is unknown, by their positions."""
        for k, step in enumerate(self.steps):
            if math.isinf(step.velocity):
                place, t_ns = self.position[k] / step.position, min(self.times[k], self.times[self.n + k])
                rate = smoothed_rate(place, t_ns, *self._last[k])
                self._last[k] = place, t_ns, rate
                self.velocity[k] = rate * step.position

    def _error(self, k: int, code: int) -> None:
        """Code 00xx: no error any more. A missed heartbeat does not replace an earlier fault."""
        if code != faults.HEARTBEAT or not self.error[k]:
            self.error[k] = code if code & 0xFF00 else 0

    def _answer(self, k: int, row: int, bit: int, t_ns: int) -> None:
        self.times[row], self._was_operational[k] = t_ns, self.operational
        if not self._answered[k] & bit:
            self._answered[k] |= bit
            self.missing -= 1

    def state(self, k: int) -> int | None:
        """The last reported state of a drive; None if it reported none."""
        return profile.state_of(self.status[k]) if self.times[k] else None

    def fault(self, k: int, mode: int | None) -> int:
        """The fault of a drive, 0 for none; mode: the commanded one, None if the drive is commanded off."""
        word = self.status[k]
        if word & profile.FAULTY:
            return self.error[k] or faults.UNNAMED
        if self.left_operational[k]:
            return self.error[k] or faults.RESTARTED
        if mode is None:
            return 0
        state = profile.state_of(word)
        if state != profile.ENABLED:
            return faults.STOPPING if state == profile.QUICK_STOP else faults.SWITCHED_OFF
        return 0 if self.display[k] == mode else faults.OTHER_MODE
