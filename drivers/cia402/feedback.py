"""The feedback of the drives on a bus: frames in, the latest state of every drive out, in SI units at the drive."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cosim.plugins.drivers.cia402 import codec, faults, process_data, profile
from cosim.plugins.drivers.cia402.process_data import ProcessMap
from cosim.plugins.drivers.common.position_rate import smoothed_rate
from cosim.plugins.drivers.transport import CanFrame

_STATUS, _MOTION, _EMERGENCY, _HEARTBEAT, _OWN = range(5)
PDOS = tuple(codec.TPDO + number * codec.PDO_STRIDE for number in range(4))
RECEIVED = (*PDOS, codec.EMCY, codec.HEARTBEAT, codec.SDO_ANSWER)  # + id
_BOTH = 3  # TPDO1 is bit 0, TPDO2 bit 1


class _OwnPdo:
    """A transmit PDO of a drive that has its own process data. known: whether anything in it is used."""

    def __init__(self, objects: tuple[int, ...], temperature: int | None, bit: int) -> None:
        self.objects, self.temperature, self.bit = objects, temperature, bit
        self.layout = process_data.layout(objects, temperature)
        used = {*process_data.needed("effort")[1], temperature}
        self.known = any(each in used for each in objects)


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
        self._awaited = [_BOTH] * n  # bit per PDO, of each drive
        self._answered = [_BOTH] * n
        self._own: dict[int, _OwnPdo] = {}  # identifier -> PDO of a drive that has its own process data
        self._routes: dict[int, tuple[int, int]] = {}
        for k, node in enumerate(nodes):
            self._routes[codec.TPDO + node] = (_STATUS, k)
            self._routes[codec.TPDO + codec.PDO_STRIDE + node] = (_MOTION, k)
            self._routes[codec.EMCY + node] = (_EMERGENCY, k)
            self._routes[codec.HEARTBEAT + node] = (_HEARTBEAT, k)

    def use_own(self, k: int, node: int, own: ProcessMap | None, temperature: int | None) -> None:
        """The process data of a drive: None for the driver's. temperature: the mapped object with it."""
        for cob_id in (base + node for base in PDOS):
            self._routes.pop(cob_id, None)
            self._own.pop(cob_id, None)
        self._awaited[k] = self._answered[k] = _BOTH
        if own is None:
            self._routes[codec.TPDO + node] = (_STATUS, k)
            self._routes[codec.TPDO + codec.PDO_STRIDE + node] = (_MOTION, k)
            return
        self._awaited[k] = 0
        for number, objects in own.transmit:
            pdo = _OwnPdo(objects, temperature, 1 << number)
            if pdo.known:
                cob_id = codec.TPDO + number * codec.PDO_STRIDE + node
                self._routes[cob_id], self._own[cob_id] = (_OWN, k), pdo
                self._awaited[k] |= pdo.bit
        self._answered[k] = self._awaited[k]

    def expect_answers(self) -> None:
        """Before SYNC: every drive will answer with its TPDOs."""
        self._answered = [0] * self.n
        self.missing = sum(awaited.bit_count() for awaited in self._awaited)

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
                self.times[k] = frame.t_ns
                self._answer(k, 1)
                return
        elif kind == _MOTION:
            motion = codec.decode_motion(frame.data, self.steps[k])
            if motion is not None and (motion.temperature is not None) == self.warm[k]:
                self.velocity[k], self.effort[k], temperature = motion
                if temperature is not None:
                    self.temperature[k] = temperature
                self.times[self.n + k] = frame.t_ns
                self._answer(k, 2)
                return
        elif kind == _OWN:
            if self._take_own(k, self._own[frame.id], frame):
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

    def _take_own(self, k: int, pdo: _OwnPdo, frame: CanFrame) -> bool:
        """Take a PDO of a drive with its own process data; False for another length."""
        if len(frame.data) != pdo.layout.size:
            return False
        step = self.steps[k]
        for mapped, value in zip(pdo.objects, pdo.layout.unpack(frame.data), strict=True):
            if mapped == process_data.STATUS:
                self.status[k] = value
            elif mapped == process_data.DISPLAY:
                self.display[k] = value
            elif mapped == process_data.PLACE:
                self.position[k], self.times[k] = value * step.position, frame.t_ns
            elif mapped == process_data.SPEED:
                self.velocity[k] = value * step.velocity
            elif mapped == process_data.EFFORT:
                self.effort[k], self.times[self.n + k] = value * step.effort, frame.t_ns
            elif mapped == pdo.temperature:
                self.temperature[k] = value * step.temperature
        self._answer(k, pdo.bit)
        return True

    def _answer(self, k: int, bit: int) -> None:
        self._was_operational[k] = self.operational
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
