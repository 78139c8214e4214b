"""VESCs behind the driver contract.

A VESC has no state "off" that a command does not leave: it follows the last setpoint, a current of 0 releases the
motor, and after its timeout without one it releases the motor too and reports that. Switching on is to feed the timeout
until it does not report it. Its faults clear themselves after its `Fault Stop Time`; the base sends nothing to a drive
that reported one. The position loop has the drive's own current limit: it is lowered to the guard's, in its RAM.

Feedback is requested, because the status messages that VESCs send on CAN have neither fault nor timeout, and a current
without direction. Its position is an angle: turns are counted here, from one answer to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import RunError
from cosim.core.types import Array
from cosim.plugins.drivers.common.cycle import Transmission
from cosim.plugins.drivers.common.driver import STOP_NS
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame, Role
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.common.node_driver import OFF, SWITCHED_OFF, NodeDriver, Request
from cosim.plugins.drivers.transport import CanFrame, Connection
from cosim.plugins.drivers.vesc import codec, cycle, faults
from cosim.plugins.drivers.vesc.params import JointParams
from cosim.plugins.drivers.vesc.wires import ANSWERS, VescWire

FIRMWARE = (6, 7)
SILENCE_NS = 50_000_000  # without an answer, after which a drive may have restarted: it does not report that
WATTS, MARK_FACTOR = 7, 0.999  # a limit that is lowered by this factor in a drive's RAM: a restart restores it
REBOOT_TIME, LIMITS_TIME = 5.0, 0.1  # s; for the limits of a drive that may have restarted


class VescDriver(NodeDriver[Any, JointParams]):
    faults = faults.FAULTS
    answers_commands = False

    def __init__(self, context: DriverContext, link: Connection[Any], watchdog: float, wire: VescWire) -> None:
        """Raises InputError for a joint that may turn too far in a step."""
        super().__init__(context, link, watchdog)
        n, self._wire = len(self._wiring), wire
        self._constants = np.array([joint.torque_constant for joint in self._wiring])
        speeds = [60 * joint.pole_pairs / cycle.TURN for joint in self._wiring]  # rpm of the field per rad/s
        self._currents = np.zeros(n)  # A, the drives' own limits
        own = [[speed, joint.torque_constant, 0.0] for speed, joint in zip(speeds, self._wiring, strict=True)]
        ids = [joint.id for joint in self._wiring]
        self._cycle = self.interpreted = InterpretedCycle(cycle.reception(ids, ANSWERS, SILENCE_NS), own)
        self._encode, self._requests = wire.encode, [wire.values(joint) for joint in self._wiring]
        self._limits: dict[int, tuple[float, ...]] = {}  # joint -> its drive's, as they were
        self._scales = [(0.0, 0.0)] * n  # of both current limits, for the rig
        self._asked = 0  # the joint whose drive was asked last
        self._unanswered, self._since_ns = [0] * n, [0] * n  # requests for the state, time of the first
        self._suspects: set[int] = set()  # joints whose drives may have restarted
        self.feedforward.resolution[:] = self._constants / codec.SETPOINTS["effort"][2] * np.abs(self.units.scale)
        for k in range(n):
            self._check_reach(k)

    @property
    def lost(self) -> int:
        return super().lost + self._wire.lost

    @property
    def why_not_compiled(self) -> str:
        return self._wire.why_not_compiled or super().why_not_compiled

    # --- opening, switching on -----------------------------------------------------------------------

    def _check_reach(self, k: int) -> None:
        """Raises InputError for a velocity limit at which the turns of the drive could not be followed."""
        turn = self._guard_limits(k)["velocity"] * self._context.period
        if turn > cycle.LARGEST_TURN and math.isfinite(turn):
            what = f"{self._drive_name(k)} turns up to {turn:.3g} rad in a step by its velocity limit"
            fix = f"lower the limit or schedule.step, to less than {cycle.LARGEST_TURN:.3g} rad"
            raise self._drive_error(k, f"{what}, and its position is an angle; {fix}")

    def _connect(self) -> None:
        for k in range(len(self._wiring)):  # of the first answer: the turn next to the middle of the limits
            limits = self._guard_limits(k)
            middle = 0.5 * (limits["lower position"] + limits["upper position"])
            self._cycle.settings[k][cycle.LAST] = middle if math.isfinite(middle) else 0.0
        super()._connect()

    def _check_identity(self, k: int, identity: tuple[float, ...]) -> None:
        own, name = self._wiring[k], self._drive_name(k)
        if identity[0] not in FIRMWARE:
            runs = f"{identity[0]:.0f}.{identity[1]:02.0f}; this driver is for 6 and 7"
            raise self._drive_error(k, f"{name} runs firmware {runs}, update it with VESC Tool")
        _, id, timeout, _ = self._head(k, codec.GET_APPCONF)
        if id != own.id:
            what = f"the drive on {self.link.name} has the VESC ID {id:.0f}, not {own.id}"
            raise self._drive_error(k, f"{what}; correct the id, or give 'forward: true' if it is behind it")
        if not 0 < timeout <= 1e3 * self.watchdog + 0.5:
            late = f"{1e-3 * timeout:g} s after the last command" if timeout else "never by itself"
            what = f"{name} stops {late}, the 'watchdog' is {self.watchdog:g} s"
            raise self._drive_error(k, f"{what}; set its Timeout in App Settings of VESC Tool, or 'watchdog' to it")
        *_, motoring, braking = self._head(k, codec.GET_MCCONF)
        *limits, poles = self._head(k, codec.GET_LIMITS)
        if poles != 2 * own.pole_pairs:
            what = f"{name} is set up for a motor with {poles:.0f} poles, the rig gives {own.pole_pairs} pole pairs"
            raise self._drive_error(k, f"{what}; correct 'pole_pairs', or Motor Poles in VESC Tool")
        current, constant = min(-braking * limits[0], motoring * limits[1]), own.torque_constant
        speed = min(-limits[2], limits[3]) / self._cycle.settings[k][cycle.SPEED]
        own_limits = [("effort", current * constant, "current limits"), ("velocity", speed, "ERPM limits")]
        self._check_limits(k, own_limits)
        self._limits[k], self._currents[k] = tuple(limits), min(current, self._guard_limits(k)["effort"] / constant)
        self._scales[k] = self._currents[k] / -braking, self._currents[k] / motoring

    def _set_limits(self, k: int, scales: tuple[float, ...], mark: float) -> None:
        """Scales of the braking and the motoring current. Raises the error of a drive that does not take them over."""
        wanted = np.array([*scales, *self._limits[k][2:]])
        wanted[WATTS] *= mark
        content = codec.LIMITS.pack(codec.SET_LIMITS, 0, 0, 1, 0, *wanted)

        def again() -> None:
            self._send_content(k, content)
            self._send_content(k, bytes([codec.GET_LIMITS]))

        found = self._reply(k, codec.GET_LIMITS, again, lambda head: np.allclose(head[:-1], wanted))
        self._required(k, found, "did not take over the current limit of the rig")

    def _disconnect(self) -> None:
        for k, limits in self._limits.items():
            with suppress(RunError):
                self._set_limits(k, limits[:2], 1.0)

    def _head(self, k: int, command: int) -> tuple[float, ...]:
        """Of the answer to a command."""
        found = self._reply(k, command, lambda: self._send_content(k, bytes([command])))
        return self._required(k, found, f"did not answer command {command}")

    def _send_content(self, k: int, content: bytes) -> None:
        self._asked = k
        for item in self._wire.request(self._wiring[k], content):
            self.link.send(item, self._now() + STOP_NS)

    def _switch_on(self, mode: str) -> None:
        for k, scales in enumerate(self._scales):
            self._set_limits(k, scales, MARK_FACTOR)
        self._suspects.clear()
        super()._switch_on(mode)

    def _largest_effort(self, mode: str) -> Array | float:
        return self._currents * self._constants if mode == "effort" else 0.0

    def _clear_faults(self) -> None:
        """By a restart: the only way for a drive that keeps its faults."""
        for k in range(len(self._wiring)):
            self._await_answer(k, "state")
            if self._fault[k]:
                self._send(k, "clear")
                self._pending.add(k)
                if not self._wait(lambda k=k: k not in self._pending, REBOOT_TIME, lambda k=k: self._send(k, "state")):
                    raise self._no_answer(k)
                self._await_answer(k, "state")
            if self._fault[k]:
                raise self._fault_persists(k, self._fault[k])
            self._tripped[k] = 0

    def _request(self, k: int, request: Request) -> Any:
        joint = self._wiring[k]
        if request == "state":
            self._note_request(k)
            return self._item(self._requests[k])
        self._asked = k
        commands = {"identity": codec.FW_VERSION, "enable": codec.ALIVE, "clear": codec.REBOOT}
        return self._wire.request(joint, bytes([commands[request]]))[0]

    def _off(self, k: int) -> Any:
        return self._item(codec.setpoint_frame(self._wiring[k].id, "effort"))

    def _note_request(self, k: int) -> None:
        """For the measured values."""
        self._unanswered[k] += 1
        if self._unanswered[k] == 1:
            self._since_ns[k] = self._now()

    # --- the cycle -----------------------------------------------------------------------------------

    def _transmission(self, mode: str) -> Transmission:
        return cycle.transmission(mode, [joint.id for joint in self._wiring], self._requests)

    def _send_filled(self, deadline_ns: int) -> None:
        super()._send_filled(deadline_ns)
        for k in range(len(self._wiring)):
            self._note_request(k)

    def _polls(self) -> list[CanFrame]:
        return self._requests

    def take_back(self, came: Iterable[ReceivedFrame], waiting: Sequence[bool]) -> None:
        """A drive that was silent shows before the next read whether it has restarted: machine code does not go on."""
        came = list(came)
        super().take_back(came, waiting)
        self._suspects.update(received.joint for received in came if self._cycle.last_of(received).late)
        if self._suspects:
            self._wait(lambda: not self._suspects, LIMITS_TIME, self._request_limits)

    def _request_limits(self) -> None:
        for k in self._suspects:
            self._send_content(k, bytes([codec.GET_LIMITS]))

    def _take(self, item: Any) -> None:
        if isinstance(item, CanFrame):
            super()._take(item)
            if self._is_on and not self._suspects:  # nothing else comes
                return
        for answerer, content in self._wire.contents(item):
            if content[0] == codec.GET_VALUES_SELECTIVE:
                for frame in self._wire.measured(content):
                    super()._take(frame._replace(t_ns=self._now()))
            elif (answer := codec.decode_head(content)) is not None:
                self._take_answer(self._asked if answerer is None else self._nodes.get(answerer, -1), *answer)
            elif content[0] != codec.SET_LIMITS:
                self._lost += 1

    def _take_answer(self, k: int, command: int, head: tuple[float, ...]) -> None:
        self._replies[k, command] = head
        if command == codec.FW_VERSION:
            self._identity[k] = head
        elif command == codec.GET_LIMITS and k in self._suspects:
            self._suspects.discard(k)
            if not math.isclose(head[WATTS], MARK_FACTOR * self._limits[k][WATTS], rel_tol=1e-5):
                self._tripped[k] = self._tripped[k] or SWITCHED_OFF

    def _judge(self, received: ReceivedFrame, t_ns: int) -> None:
        if received.role is not Role.MEASUREMENT:
            return
        k = received.joint
        numbers = self._cycle.numbers[k]
        if self._is_on and self._unanswered[k] > 1 and t_ns - self._since_ns[k] > SILENCE_NS:
            self._suspects.add(k)
        self._unanswered[k] = 0
        mode = OFF if int(numbers[cycle.STATUS]) & 1 else self._mode
        self._answered(k, mode, int(numbers[cycle.FAULT]), t_ns)
        if k in self._suspects:
            self._send_content(k, bytes([codec.GET_LIMITS]))
