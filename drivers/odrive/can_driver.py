"""ODrives on a CAN bus: CANSimple."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.driver_contract import DriverContext
from cosim.plugins.drivers.common.cycle import Transmission
from cosim.plugins.drivers.common.driver import RETRY_NS, STOP_NS
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame, Role
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import can_cycle as cycle
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.driver import ANSWER_TIME, SILENCE_NS, ODrive
from cosim.plugins.drivers.odrive.params import Params
from cosim.plugins.drivers.odrive.properties import FUNCTION, S1_0_6_10, Endpoint, Endpoints
from cosim.plugins.drivers.transport import CanFrame, Connection

ESTIMATES = can.GET_ENCODER_ESTIMATES
ESTIMATES_MS = 50  # largest period of the cyclic messages
TEMPERATURE_TURN = 32  # commands between two requests for a temperature


class CanDriver(ODrive[CanFrame]):
    """One node per joint. Feedback: answers to requests after each command, and cyclic messages of the drives."""

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
        constants, steps = [joint.torque_constant for joint in self._wiring], (float(can.FEEDFORWARD),) * 2
        settings = [[1.0 if constant is None else constant, *steps] for constant in constants]
        efforts = [can.GET_TORQUES if constant is None else can.GET_IQ for constant in constants]
        self._cycle = self.interpreted = InterpretedCycle(cycle.reception(nodes, efforts, SILENCE_NS), settings)
        answers = ((node, what) for node, effort in zip(nodes, efforts, strict=True) for what in (ESTIMATES, effort))
        self._requests = [can.request(*each) for each in answers]
        self._temperature_requests = [can.request(node, can.GET_TEMPERATURE) for node in nodes]
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
        for k, own in enumerate(self._cycle.settings):
            own[cycle.VELOCITY_STEPS] = self._get(k, "config.can.input_vel_scale")
            own[cycle.EFFORT_STEPS] = self._get(k, "config.can.input_torque_scale")

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
        steps = [own[cycle.EFFORT_STEPS] for own in self._cycle.settings]
        return can.feedforward_limit(max(steps)), 1.0 / min(steps)

    # --- the cycle ------------------------------------------------------------------------------------

    def _transmission(self, mode: str) -> Transmission:
        return cycle.transmission(mode, self._addresses, self._requests, self._temperature_requests, TEMPERATURE_TURN)

    def _request_feedback(self, deadline_ns: int) -> None:
        for frame in self._requests:
            self.link.send(frame, deadline_ns)
        self._cycle.expect(after_command=True)

    def _poll(self, deadline_ns: int) -> None:
        """Requests feed the watchdog as commands do; therefore running motors are not requested, and their next cyclic
        message is awaited."""
        if self._is_on:
            self._cycle.expect(after_command=False)
        else:
            self._request_feedback(deadline_ns)

    def _is_answered(self) -> bool:
        return not self._cycle.pending

    def _note_on(self, k: int) -> None:
        super()._note_on(k)
        numbers = self._cycle.numbers[k]
        numbers[cycle.AXIS_STATE] = codes.CLOSED_LOOP
        numbers[cycle.ERROR] = numbers[cycle.ACTIVE] = numbers[cycle.DISARM] = 0

    def _take(self, item: CanFrame) -> None:
        if (received := self._cycle.take(item)) is None:
            self._take_other(item)
        else:
            self._judge(received, item.t_ns)

    def _judge(self, received: ReceivedFrame, t_ns: int) -> None:
        self._time_ns = t_ns
        if received.role is not Role.NOTICE:
            return
        k, command = received.joint, received.frame.id & 0x1F
        numbers = self._cycle.numbers[k]
        if command == can.HEARTBEAT:
            self._error[k], self._axis_state[k] = int(numbers[cycle.ERROR]), int(numbers[cycle.AXIS_STATE])
            self._heartbeat_ns[k] = t_ns
        elif command == can.GET_ERROR:
            self._error[k] = int(numbers[cycle.ACTIVE]) | int(numbers[cycle.DISARM])

    def _take_other(self, item: CanFrame) -> None:
        """Answers outside of the cycle."""
        k, command = self._index.get(item.id >> 5), item.id & 0x1F
        if k is None or item.extended or item.remote or command not in (can.TX_SDO, can.GET_VERSION):
            return
        self._time_ns, message = item.t_ns, can.decode(item)
        if message is None:
            self._lost += 1
        elif command == can.TX_SDO:
            self._values[k, message.values[1]] = message.values[2]
        else:
            self._versions[k] = message.values


def _convert(value: float, layout: str) -> float | int | bool:
    """A number as the type that struct needs."""
    return {"<f": float, "<?": bool}.get(layout, int)(value)
