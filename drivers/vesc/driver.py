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
from contextlib import suppress
from typing import Any

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import RunError
from cosim.core.types import Array
from cosim.plugins.drivers.common.driver import STOP_NS
from cosim.plugins.drivers.common.node_driver import OFF, SWITCHED_OFF, NodeDriver, Request
from cosim.plugins.drivers.transport import CanFrame, Connection
from cosim.plugins.drivers.vesc import codec, faults
from cosim.plugins.drivers.vesc.params import JointParams
from cosim.plugins.drivers.vesc.wires import VescWire

FIRMWARE = (6, 7)
TURN = 2 * math.pi
REACH = 0.9 * math.pi  # rad from the measured angle; a target beyond half a turn would be reached the other way round
SILENCE_NS = 50_000_000  # without an answer, after which a drive may have restarted: it does not report that
WATTS, MARK = 7, 0.999  # a limit that is lowered by this factor in a drive's RAM: a restart restores it
REBOOT_TIME = 5.0  # s
LARGEST = 2e9  # of a field with 32 bits


class VescDriver(NodeDriver[Any, JointParams]):
    faults = faults.FAULTS
    answers_commands = False

    def __init__(self, context: DriverContext, link: Connection[Any], watchdog: float, wire: VescWire) -> None:
        """Raises InputError for a joint that may turn too far in a step."""
        super().__init__(context, link, watchdog)
        n, self._wire = len(self._wiring), wire
        self._constants = np.array([joint.torque_constant for joint in self._wiring])
        self._speeds = [60 * joint.pole_pairs / TURN for joint in self._wiring]  # rpm of the field per rad/s
        self._currents = np.zeros(n)  # A, the drives' own limits
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
        return self._lost + self._wire.reader.lost

    # --- opening, switching on -----------------------------------------------------------------------

    def _check_reach(self, k: int) -> None:
        """Raises InputError for a velocity limit at which the turns of the drive could not be followed."""
        turn = self._guard_limits(k)["velocity"] * self._context.period
        if turn > REACH and math.isfinite(turn):
            what = f"{self._drive_name(k)} turns up to {turn:.3g} rad in a step by its velocity limit"
            fix = f"lower the limit or schedule.step, to less than {REACH:.3g} rad"
            raise self._drive_error(k, f"{what}, and its position is an angle; {fix}")

    def _connect(self) -> None:
        for k in range(len(self._wiring)):  # of the first answer: the turn next to the middle of the limits
            limits = self._guard_limits(k)
            middle = 0.5 * (limits["lower position"] + limits["upper position"])
            self._feedback.position[k] = middle if math.isfinite(middle) else 0.0
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
        speed = min(-limits[2], limits[3]) / self._speeds[k]
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
            self._set_limits(k, scales, MARK)
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
            self._unanswered[k] += 1
            if self._unanswered[k] == 1:
                self._since_ns[k] = self._now()
            return self._wire.request(joint, bytes([codec.GET_VALUES_SELECTIVE]) + self._wire.mask.to_bytes(4, "big"))[
                0
            ]
        self._asked = k
        commands = {"identity": codec.FW_VERSION, "enable": codec.ALIVE, "clear": codec.REBOOT}
        return self._wire.request(joint, bytes([commands[request]]))[0]

    def _off(self, k: int) -> Any:
        return self._wire.setpoint(self._wiring[k], "effort", 0.0)

    # --- the cycle -----------------------------------------------------------------------------------

    def _command(self, k: int, position: float, velocity: float, effort: float) -> Any:
        if self._mode == "effort":
            value = effort / float(self._constants[k])
        elif self._mode == "velocity":
            value = velocity * self._speeds[k]
        else:
            measured = float(self._feedback.position[k])
            value = math.degrees(min(max(position, measured - REACH), measured + REACH)) % 360.0
        steps = codec.SETPOINTS[self._mode][2]
        return self._wire.setpoint(self._wiring[k], self._mode, min(max(value, -LARGEST / steps), LARGEST / steps))

    def _take(self, item: Any) -> None:
        t_ns = item.t_ns if isinstance(item, CanFrame) else self._now()
        for answerer, content in self._wire.contents(item):
            id = -1 if answerer is None else answerer
            values = codec.decode_values(content)
            if values is not None:
                k = self._nodes.get(id if values.id is None else values.id, -1)
                if k >= 0:
                    self._take_values(k, values, t_ns)
            elif (answer := codec.decode_head(content)) is not None:
                k = self._asked if answerer is None else self._nodes.get(id, -1)
                self._replies[k, answer[0]] = answer[1]
                if answer[0] == codec.FW_VERSION:
                    self._identity[k] = answer[1]
                elif answer[0] == codec.GET_LIMITS and k in self._suspects:
                    self._suspects.discard(k)
                    if not math.isclose(answer[1][WATTS], MARK * self._limits[k][WATTS], rel_tol=1e-5):
                        self._tripped[k] = self._tripped[k] or SWITCHED_OFF
            elif content[0] != codec.SET_LIMITS:
                self._lost += 1

    def _take_values(self, k: int, values: codec.Values, t_ns: int) -> None:
        feedback, last = self._feedback, float(self._feedback.position[k])
        feedback.position[k] = last + math.remainder(math.radians(values.angle) - last, TURN)
        feedback.velocity[k], feedback.temperature[k] = values.erpm / self._speeds[k], values.temperature
        feedback.effort[k] = values.current * self._constants[k]
        if self._is_on and self._unanswered[k] > 1 and t_ns - self._since_ns[k] > SILENCE_NS:
            self._suspects.add(k)
        self._unanswered[k] = 0
        self._answered(k, OFF if values.timed_out else self._mode, values.fault, t_ns)
        if k in self._suspects:
            self._send_content(k, bytes([codec.GET_LIMITS]))
