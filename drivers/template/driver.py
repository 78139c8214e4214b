"""Template drives behind the driver contract: everything but the protocol is in `common.driver`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cosim.drivers.common.driver import ENABLE_NS, STOP_NS, MotorDriver
from cosim.drivers.common.wiring import JointParams
from cosim.drivers.template import codec
from cosim.drivers.transport import CanFrame, Connection
from cosim.types import Array, DriverContext

ANSWER_TIME = 0.5  # s
SWITCHED_OFF = -1  # fault code of the driver: a drive that is off without a fault


class TemplateDriver(MotorDriver[CanFrame, JointParams]):
    """One node per joint."""

    def __init__(self, context: DriverContext, link: Connection[CanFrame], watchdog: float) -> None:
        super().__init__(context, link, watchdog)
        self._nodes = [joint.address for joint in self._wiring]
        self._index = {node: k for k, node in enumerate(self._nodes)}
        self._drive_mode, self._fault = [codec.OFF] * len(self._nodes), [0] * len(self._nodes)
        self._identity: dict[int, tuple] = {}
        largest = np.ceil(1e3 * context.limits.effort / np.abs(self._units.scale))
        self._largest = np.minimum(largest, 0xFFFF).astype(int).tolist()  # efforts, mN·m

    # --- opening, switching on and off ---------------------------------------------------------------

    def _connect(self) -> None:
        self._identity.clear()
        self.stop()  # a program that was killed may have left them on
        for k in range(len(self._nodes)):
            if not self._wait(lambda k=k: k in self._identity, ANSWER_TIME, lambda k=k: self._request(k, codec.WHO)):
                raise self._no_answer(k)
            version, velocity, effort = self._identity[k]
            if version != codec.VERSION:
                raise self._drive_error(k, f"{self._drive_name(k)} has protocol {version}; update its firmware")
            self._check_limits(k, [("effort", effort, "max_effort"), ("velocity", 0.1 * velocity, "max_velocity")])
            self._await_status(k)

    def _request(self, k: int, request: int) -> None:
        self.link.send(codec.encode(codec.REQUEST, self._nodes[k], request), self._now() + STOP_NS)

    def _await_status(self, k: int, request: int = codec.STATE) -> None:
        self._drain()
        self._pending.add(k)
        if not self._wait(lambda: k not in self._pending, ANSWER_TIME, lambda: self._request(k, request)):
            raise self._no_answer(k)

    def _fault_before_enable(self, k: int) -> int:
        self._await_status(k)
        return self._fault[k]

    def _switch_on(self, mode: str) -> None:
        self.feedforward.limit[:] = np.inf if mode == "effort" else 0.0  # the command has one target
        start, zeros = self._feedback.position.copy(), np.zeros(len(self._nodes))

        def hold() -> None:
            with self._gate:
                self._check_not_stopped()
                for k in range(len(self._nodes)):
                    self._request(k, codec.ENABLE)
                self._send_commands(start, zeros, zeros, self._now() + STOP_NS)

        number = codec.MODES[mode]
        if not self._wait(lambda: set(self._drive_mode) == {number}, ENABLE_NS * 1e-9, hold):
            off = next(k for k, reported in enumerate(self._drive_mode) if reported != number)
            raise self._not_on(off, self.describe_fault(off, self._fault[off] or SWITCHED_OFF))

    def _stop_items(self) -> Iterator[CanFrame]:
        for node in self._nodes:
            yield codec.encode(codec.COMMAND, node, codec.OFF, 0, 0, 0.0)

    def _clear_faults(self) -> None:
        for k in range(len(self._nodes)):
            self._await_status(k, codec.CLEAR)
            if not self._wait(lambda k=k: not self._fault[k], ANSWER_TIME, lambda k=k: self._request(k, codec.CLEAR)):
                raise self._fault_persists(k, self._fault[k])

    # --- the cycle -----------------------------------------------------------------------------------

    def _send_commands(self, position: Array, velocity: Array, effort: Array, deadline_ns: int) -> None:
        self._drain()
        number, watchdog = codec.MODES[self._mode], math.ceil(100 * self.watchdog)
        targets = {"effort": effort, "velocity": velocity, "position": position}[self._mode].tolist()
        for node, largest, target in zip(self._nodes, self._largest, targets, strict=True):
            self.link.send(codec.encode(codec.COMMAND, node, number, watchdog, largest, target), deadline_ns)
        self._pending.update(range(len(self._nodes)))

    def _poll(self, deadline_ns: int) -> None:
        self._drain()
        for node in self._nodes:
            self.link.send(codec.encode(codec.REQUEST, node, codec.STATE), deadline_ns)
        self._pending.update(range(len(self._nodes)))

    def _take(self, item: CanFrame) -> None:
        k, message, feedback = self._index.get(item.id & 0x7F), codec.decode(item), self._feedback
        if k is None or message is None:
            self._lost += k is not None
            return
        kind, _, values = message
        if kind == codec.IDENTITY:
            self._identity[k] = values
        elif kind == codec.MOTION:
            feedback.position[k], feedback.velocity[k] = values
        elif kind == codec.STATUS:
            feedback.effort[k], feedback.temperature[k] = values[0], 0.1 * values[1]
            self._drive_mode[k], self._fault[k] = values[2:]
            feedback.t_ns[k] = item.t_ns
            self._pending.discard(k)

    def _fault_codes(self) -> list[int]:
        silent_stop = SWITCHED_OFF if self._is_on else 0
        states = zip(self._fault, self._drive_mode, strict=True)
        return [fault or (0 if mode else silent_stop) for fault, mode in states]

    def describe_fault(self, joint_index: int, code: int) -> str:
        if code == SWITCHED_OFF:
            return "switched off by itself; check its supply, then stop and enable"
        name, fix = codec.FAULTS.get(code, ("unknown fault", "see the drive's manual"))
        return f"{name} (drive error {code}); {fix}"
