"""ODrives on a CAN bus: CANSimple."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.plugins.drivers.common.driver import RETRY_NS, STOP_NS
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.driver import ANSWER_TIME, SILENCE_NS, ODrive
from cosim.plugins.drivers.odrive.params import Params
from cosim.plugins.drivers.odrive.properties import FUNCTION, S1_0_6_10, Endpoint, Endpoints
from cosim.plugins.drivers.transport import CanFrame, Connection

if TYPE_CHECKING:
    from cosim.plugins.drivers.common.frame_layout import CycleLayout

ESTIMATE, EFFORT = 1, 2  # bits of awaited answers
ESTIMATES_MS = 50  # largest period of the cyclic messages
TEMPERATURE_TURN = 32  # commands between two requests for a temperature


class CanDriver(ODrive[CanFrame]):
    """One node per joint. Feedback: answers to requests after each command, and cyclic messages of the drives."""

    cycle_module = "cosim.plugins.drivers.odrive.can_cycle"

    def __init__(
        self,
        params: Params,
        context: DriverContext,
        link: Connection[CanFrame],
        endpoints: Sequence[Endpoints] = (),
    ) -> None:
        """endpoints: of further firmware versions."""
        super().__init__(params, context, link)
        nodes = self._addresses
        self._index = {node: k for k, node in enumerate(nodes)}
        self._known_endpoints = (*endpoints, S1_0_6_10)
        self._tables: list[Endpoints] = [S1_0_6_10] * len(nodes)
        self._steps = [(float(can.FEEDFORWARD), float(can.FEEDFORWARD))] * len(nodes)
        self._constants = [joint.torque_constant for joint in self._wiring]
        efforts = [can.GET_TORQUES if constant is None else can.GET_IQ for constant in self._constants]
        self._estimate_requests = [can.request(node, can.GET_ENCODER_ESTIMATES) for node in nodes]
        self._effort_requests = [can.request(node, command) for node, command in zip(nodes, efforts, strict=True)]
        self._temperature_requests = [can.request(node, can.GET_TEMPERATURE) for node in nodes]
        self._awaited = [0] * len(nodes)
        self._versions: dict[int, tuple[int, ...]] = {}
        self._values: dict[tuple[int, int], bytes] = {}  # (joint, endpoint) -> data of TxSdo
        self._written = 0

    # --- opening --------------------------------------------------------------------------------------

    def _identify(self) -> None:
        count = len(self.joints)
        self._versions.clear()
        if not self._wait(lambda: len(self._versions) == count, ANSWER_TIME, self._request_versions):
            raise self._no_answer(next(k for k in range(count) if k not in self._versions))
        for k in range(count):
            self._tables[k] = self._endpoints(k)
        if not self._wait(lambda: 0 not in self._heartbeat_ns, ANSWER_TIME, lambda: None):
            k = self._heartbeat_ns.index(0)
            fix = "set axis0.config.can.heartbeat_msg_rate_ms = 100 with odrivetool"
            raise self._drive_error(k, f"{self._drive_name(k)} sends no heartbeat; {fix}")
        for k in range(count):
            if not 0 < self._get(k, "config.can.encoder_msg_rate_ms") <= ESTIMATES_MS:
                fix = "set axis0.config.can.encoder_msg_rate_ms = 10 with odrivetool"
                raise self._drive_error(k, f"{self._drive_name(k)} does not send encoder estimates often enough; {fix}")
        self._steps = [
            (self._get(k, "config.can.input_vel_scale"), self._get(k, "config.can.input_torque_scale"))
            for k in range(count)
        ]

    def _request_versions(self) -> None:
        for k, node in enumerate(self._addresses):
            if k not in self._versions:
                self.link.send(can.request(node, can.GET_VERSION), self._now() + RETRY_NS)

    def _endpoints(self, k: int) -> Endpoints:
        """The numbers of the parameters in the drive's firmware; with others it would write other parameters."""
        hardware, firmware = (".".join(map(str, self._versions[k][part])) for part in (slice(1, 4), slice(4, 7)))
        runs = f"{self._drive_name(k)} runs firmware {firmware} on hardware {hardware}"
        if not firmware.startswith("0.6."):
            raise self._drive_error(k, f"{runs}; this driver is for 0.6, update it with odrivetool")
        for known in self._known_endpoints:
            if (known.firmware, known.hardware) == (firmware, hardware):
                return known
        given = ", ".join(f"{one.firmware} on {one.hardware}" for one in self._known_endpoints)
        raise self._drive_error(
            k, f"{runs}, but known is {given}; give 'endpoints': the manufacturer's flat_endpoints.json of it"
        )

    # --- parameters and states ------------------------------------------------------------------------

    def _get(self, k: int, path: str, seconds: float = ANSWER_TIME) -> float:
        node, endpoint = self._addresses[k], self._endpoint(k, path)
        request = can.endpoint(node, can.READ, endpoint.number)
        key = k, endpoint.number
        self._values.pop(key, None)
        if not self._wait(
            lambda: key in self._values, seconds, lambda: self.link.send(request, self._now() + RETRY_NS)
        ):
            raise self._no_answer(k)
        value, data = endpoint.value, self._values.pop(key)
        if value is None or len(data) < value.size:
            raise self._drive_error(k, f"{self._drive_name(k)} does not report axis0.{path}; check its firmware")
        return float(value.unpack_from(data)[0])

    def _set(self, k: int, path: str, value: float) -> None:
        endpoint = self._endpoint(k, path)
        data = b"" if endpoint.value is None else endpoint.value.pack(_convert(value, endpoint.value.format))
        self.link.send(can.endpoint(self._addresses[k], can.WRITE, endpoint.number, data), self._now() + RETRY_NS)

    def _endpoint(self, k: int, path: str) -> Endpoint:
        endpoint = self._tables[k].table.get(path)
        if endpoint is None:
            raise self._drive_error(k, f"'endpoints' has no axis0.{path}; use the file of the drive's firmware")
        return endpoint

    def _idle_item(self, k: int) -> CanFrame:
        return can.encode(self._addresses[k], can.SET_AXIS_STATE, codes.IDLE)

    def _request_state(self, k: int, state: int) -> None:
        self.link.send(can.encode(self._addresses[k], can.SET_AXIS_STATE, state), self._now() + STOP_NS)

    def _feed(self, k: int) -> None:
        self._set(k, FUNCTION, 0.0)

    def _clear(self, k: int) -> None:
        self.link.send(can.encode(self._addresses[k], can.CLEAR_ERRORS, 0), self._now() + STOP_NS)

    def _feedforward_of(self, mode: str) -> tuple[float, float]:
        """Set_Input_Pos has 16 bits for the torque, the other modes a float. If drives differ: the coarsest step."""
        if mode != "position":
            return float("inf"), 0.0
        steps = [steps for _, steps in self._steps]
        return can.feedforward_limit(max(steps)), 1.0 / min(steps)

    # --- the cycle ------------------------------------------------------------------------------------

    def _request_feedback(self, deadline_ns: int) -> None:
        send, awaited = self.link.send, self._awaited
        for k, frame in enumerate(self._estimate_requests):
            send(frame, deadline_ns)
            send(self._effort_requests[k], deadline_ns)
            awaited[k] = ESTIMATE | EFFORT
        self._answers_due = 2 * len(awaited)

    def _poll(self, deadline_ns: int) -> None:
        """Requests feed the watchdog as commands do; therefore running motors are not requested, and their next cyclic
        message is awaited."""
        if not self._is_on:
            self._request_feedback(deadline_ns)
            return
        self._awaited = [ESTIMATE] * len(self._awaited)
        self._answers_due = len(self._awaited)

    def _send_commands(
        self, position: list[float], velocity: list[float], effort: list[float], deadline_ns: int
    ) -> None:
        send, mode = self.link.send, self._mode
        for k, node in enumerate(self._addresses):
            if mode == "effort":
                frame = can.encode(node, can.SET_INPUT_TORQUE, effort[k])
            elif mode == "velocity":
                frame = can.encode(node, can.SET_INPUT_VEL, velocity[k], effort[k])
            else:
                frame = can.input_position(node, position[k], velocity[k], effort[k], self._steps[k])
            send(frame, deadline_ns)
        self._request_feedback(deadline_ns)
        turn, rest = divmod(self._written, TEMPERATURE_TURN)
        self._written += 1
        if not rest:  # one joint at a time: it changes slowly
            send(self._temperature_requests[turn % len(position)], deadline_ns)

    def _cycle_layout(self) -> CycleLayout:
        from cosim.plugins.drivers.odrive import can_cycle

        settings = [
            (1.0 if constant is None else constant, *steps)
            for constant, steps in zip(self._constants, self._steps, strict=True)
        ]
        numbers, feedback = np.zeros((len(settings), can_cycle.RECEIVED)), self._feedback
        numbers[:, can_cycle.EXERTED] = np.divide(feedback.effort, np.array(settings)[:, can_cycle.TORQUE])
        numbers[:, can_cycle.MOTOR] = numbers[:, can_cycle.INVERTER] = feedback.temperature
        numbers[:, can_cycle.ERROR], numbers[:, can_cycle.AXIS_STATE] = self._error, self._axis_state
        return can_cycle.layout(
            self._mode,
            self._addresses,
            np.array(settings),
            [request.id & 0x1F for request in self._effort_requests],
            (self._estimate_requests, self._effort_requests, self._temperature_requests),
            TEMPERATURE_TURN,
            SILENCE_NS,
            numbers,
        )

    def take_back(self, items: Iterable[CanFrame], pending: set[int], lost: int) -> None:
        super().take_back(items, pending, lost)
        self._awaited, self._answers_due = [0] * len(self._awaited), 0

    def _take(self, item: CanFrame) -> None:
        message = can.decode(item)
        if message is None:
            # requests of other nodes are not counted
            self._lost += not item.remote and not item.extended and item.id >> 5 in self._index
            return
        k = self._index.get(message.node)
        if k is None:
            return
        _, command, values = message
        feedback = self._feedback
        self._time_ns = t_ns = item.t_ns
        if command == can.GET_ENCODER_ESTIMATES:
            feedback.position[k], feedback.velocity[k] = values
            feedback.t_ns[k] = t_ns
            self._answered(k, ESTIMATE)
        elif command == can.GET_TORQUES:
            if self._constants[k] is None:
                feedback.effort[k] = values[1]
                self._answered(k, EFFORT)
        elif command == can.GET_IQ:
            constant = self._constants[k]
            if constant is not None:
                feedback.effort[k] = values[1] * constant
                self._answered(k, EFFORT)
        elif command == can.HEARTBEAT:
            self._error[k], self._axis_state[k] = values[0], values[1]
            self._heartbeat_ns[k] = t_ns
        elif command == can.GET_ERROR:
            self._error[k] = values[0] | values[1]
        elif command == can.GET_TEMPERATURE:
            inverter, motor = values
            feedback.temperature[k] = motor if motor == motor else inverter  # NaN without a thermistor in the motor
        elif command == can.TX_SDO:
            self._values[k, values[1]] = values[2]
        elif command == can.GET_VERSION:
            self._versions[k] = values

    def _answered(self, k: int, what: int) -> None:
        if self._awaited[k] & what:
            self._awaited[k] &= ~what
            self._answers_due -= 1


def _convert(value: float, layout: str) -> float | int | bool:
    """A number as the type that struct needs."""
    return {"<f": float, "<?": bool}.get(layout, int)(value)
