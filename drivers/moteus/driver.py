"""moteus drives behind the driver contract.

Every command is one frame of the drive's position mode that also requests its state; the answer is the feedback. The
drive's watchdog is part of each command, so a drive is never on without it. The modes:

* effort: gains up to those configured in the drive (servo.pid_position.kp and kd, read by `open`) are sent as scales of
  these, and the drive closes the loop at its own rate; what exceeds them is closed here, with the last measured state.
  Between commands the drive advances its setpoint at the commanded velocity.
* velocity, position: the gains configured in the drive; the commanded effort is its feedforward, kp and kd of the
  command are not used. The drive's trajectory limits are off: the commands are the trajectory.

A drive whose watchdog trips damps with the kd that it got with the last command, or does what its servo.timeout_mode is
set to. A command without kd, as in effort mode before the first `write`, lets it coast.

A stopped drive switches its torque off and coasts, or with `brake` shorts its phases (dynamic braking). It does so
without commands until the next `enable`, also after `close`. Braking clears neither a fault, with which the drive
coasts in any case, nor a tripped watchdog: `clear` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.common.cycle import LARGEST_COMMAND, Transmission
from cosim.plugins.drivers.common.drive_checks import ENABLE_NS
from cosim.plugins.drivers.common.driver import MotorDriver
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.common.wiring import JointParams
from cosim.plugins.drivers.moteus import cycle, faults
from cosim.plugins.drivers.moteus.codec import (
    BRAKE,
    INT32,
    QUERY,
    STOP,
    Reply,
    command_tail,
    decode,
    read,
)
from cosim.plugins.drivers.moteus.diagnostic import NotReported
from cosim.plugins.drivers.moteus.fdcanusb import AdapterHost
from cosim.plugins.drivers.moteus.register_client import ANSWER_NS, RegisterClient
from cosim.plugins.drivers.moteus.registers import BRAKING_MAP, MAP_VERSION, MAP_VERSIONS, Mode
from cosim.plugins.drivers.moteus.settings import Settings, read_settings, standing_fault
from cosim.plugins.drivers.transport import CanFrame, Connection

if TYPE_CHECKING:
    from cosim.plugins.drivers.transport.compiled_link import CompiledLink


class MoteusDriver(MotorDriver[CanFrame, JointParams]):
    """n joints, one drive each."""

    stop_clears_faults = True  # torque off is the manufacturer's only way to clear them

    def __init__(
        self,
        link: Connection[CanFrame],
        context: DriverContext,
        nodes: Sequence[int],
        watchdog: float,
        prefix: int = 0,
        brake: bool = False,
    ) -> None:
        """nodes: ids of the drives; watchdog [s]: after which a drive without commands stops; prefix: of all ids;
        brake: stopped drives brake."""
        super().__init__(context, link, watchdog)
        n = len(nodes)
        self.nodes = tuple(nodes)
        self._drives = RegisterClient(link, nodes, prefix)
        self._brake = brake
        self._stop_data = [STOP] * n  # stops each drive; until it is identified, with torque off
        self._settings: list[Settings] = []  # of the drives, while they are open
        self._fault = [0] * n  # reported ones stay until `stop`
        reception, settings = cycle.reception(tuple(self._drives.index)), [[0.0] * cycle.SETTINGS for _ in range(n)]
        self._cycle = self.interpreted = InterpretedCycle(reception, settings)

    # --- opening -----------------------------------------------------------------------------

    @property
    def faults_outlast_stop(self) -> bool:
        return self._brake  # braking clears no fault

    def _connect(self) -> None:
        self._settings = [self._connect_drive(k) for k in range(len(self.nodes))]

    def _connect_drive(self, k: int) -> Settings:
        version = self._map_version(k)
        if self._brake and version < BRAKING_MAP:
            what = f"{self._drive_name(k)} has register map {version:.0f}, whose firmware may lack mode 15 (brake)"
            raise InputError(f"{what}; update it, or give 'stop: off'", self._context.place("stop"))
        self._stop_data[k] = BRAKE if self._brake else STOP
        # a stop command would clear the fault of a drive unseen; a drive that is off need not brake
        if self._query(k) and self._reported(k, cycle.MODE) not in (Mode.STOPPED, Mode.FAULT):
            self._drives.request(k, self._stop_data[k])
        try:
            own = read_settings(partial(self._drives.write, k), partial(self._drives.request, k, tries=2))
        except NotReported as error:
            fix = "update the drive's firmware" if error.refused else self._loses_answers
            raise self._drive_error(k, f"{self._drive_name(k)} did not report its '{error.name}'; {fix}") from None
        self._check_limits(k, own.limits())
        size = abs(self.units.scale[k])
        limit = min(own.effort, float(self.limits.effort[k]) / size, LARGEST_COMMAND)
        self._cycle.settings[k][:] = own.kp, own.kd, limit
        self.feedforward.limit[k] = own.effort * size
        return own

    def _map_version(self, k: int) -> float:
        identity = self._drives.request(k, read(MAP_VERSION, INT32))
        if identity is None:
            raise self._no_answer(k)
        replies = [reply.values for reply in decode(identity.data)[0] if isinstance(reply, Reply)]
        version = replies[0][0] if replies and replies[0] else None
        if version in MAP_VERSIONS:
            return version
        what = "is not a moteus drive" if version is None else f"has register map {version:.0f}"
        known = " and ".join(str(known) for known in MAP_VERSIONS)
        raise self._drive_error(k, f"{self._drive_name(k)} {what}; this driver knows moteus' register maps {known}")

    def _query(self, k: int) -> bool:
        """Whether the drive reported its state."""
        frame = self._drives.request(k, QUERY)
        if frame is not None:
            self._take(frame)
        return frame is not None

    def _reported(self, k: int, number: int) -> int:
        """A whole number of what the drive reported last."""
        return int(self._cycle.numbers[k][number])

    # --- switching on and off ----------------------------------------------------------------

    def _fault_before_enable(self, k: int) -> int:
        self._fault[k] = 0
        if not self._query(k):
            raise self._no_answer(k)
        return self._fault[k]

    def _switch_on(self, mode: str) -> None:
        """Hold the measured state with no effort until every drive has completed its start-up."""
        end_ns, joints = self._now() + ENABLE_NS, range(len(self.nodes))
        while True:
            deadline_ns = self._now() + ANSWER_NS
            with self._gate:
                self._send_hold(deadline_ns)
            self._receive(deadline_ns)
            modes = [self._reported(k, cycle.MODE) for k in joints]
            for k, drive_mode in enumerate(modes):
                if drive_mode == Mode.FAULT:
                    code = self._reported(k, cycle.FAULT) or faults.UNNAMED
                    raise self._joint_error(k, f"fault: {faults.describe(code)}")
            off = [k for k in joints if modes[k] != Mode.POSITION or self._cycle.waits_for(k)]
            if not off:
                return
            if self._now() >= end_ns:
                raise self._not_on(off[0], "check its supply")
            while self._now() < deadline_ns - ANSWER_NS // 2:  # 10 ms from command to command
                self.link.receive(deadline_ns - ANSWER_NS // 2)

    def _send_stop(self) -> None:
        super()._send_stop()
        self._fault = [0] * len(self.nodes)

    def _stop_items(self) -> Iterator[CanFrame]:
        return (self._drives.unanswered(k, data) for k, data in enumerate(self._stop_data))

    def _clear_faults(self) -> None:
        """Torque off clears faults and tripped watchdogs.

        A drive that is off checks for no faults; temperature and supply are checked here, `enable` reports others.
        """
        for k in range(len(self.nodes)):
            reported = self._query(k)
            data = STOP if self._fault[k] else self._stop_data[k]
            if not reported or self._drives.request(k, data) is None or not self._query(k):
                raise self._no_answer(k)
            half_volts, degrees = map(cycle.known, self._cycle.numbers[k][cycle.HALF_VOLTS : cycle.DEGREES + 1])
            code = self._fault[k] or standing_fault(self._settings[k], 0.5 * half_volts, degrees)
            if code:
                raise self._fault_persists(k, code)
        self.stop()

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The manufacturer's name of a fault and the fix."""
        return faults.describe(code)

    # --- the cycle ---------------------------------------------------------------------------

    def _transmission(self, mode: str) -> Transmission:
        return cycle.transmission(
            mode, command_tail(self.watchdog, integral=mode != "effort"), self._drives.request_ids
        )

    def _instead(self) -> dict[int, Sequence[CanFrame]]:
        """A drive that left its mode gets a request for its state: a stop command would clear a fault or a tripped
        watchdog before it is read."""
        frames: dict[int, Sequence[CanFrame]] = {}
        if not any(self._fault):
            return frames
        for k, fault in enumerate(self._fault):
            if fault:
                asked = fault > 0 or fault in (faults.TIMED_OUT, faults.UNNAMED)
                frames[k] = (self._request(k, QUERY if asked else self._stop_data[k]),)
        return frames

    def _request(self, k: int, data: bytes) -> CanFrame:
        return CanFrame(self._drives.request_ids[k], data, True, True, True)

    def _polls(self) -> Sequence[CanFrame]:
        return [self._request(k, QUERY) for k in range(len(self.nodes))]

    def _compiled_link(self) -> Callable[[Any], CompiledLink]:
        if not isinstance(self.link, AdapterHost):
            return super()._compiled_link()
        from cosim.plugins.drivers.moteus.fdcanusb_link import FdcanusbLink

        return FdcanusbLink

    def _poll(self, deadline_ns: int) -> None:
        self._drain()
        for frame in self._polls():
            self.link.send(frame, deadline_ns)
        self._cycle.expect(after_command=False)

    def _judge(self, received: ReceivedFrame, t_ns: int) -> None:
        k, fault = received.joint, self._fault
        mode = self._cycle.numbers[k][cycle.MODE]
        if mode == cycle.ON:
            if not self._is_on:
                fault[k] = 0
        elif mode == Mode.FAULT:
            fault[k] = self._reported(k, cycle.FAULT) or faults.UNNAMED
        elif not self._is_on:
            fault[k] = faults.TIMED_OUT if mode == Mode.TIMEOUT else 0
        elif not fault[k]:
            fault[k] = faults.left_position_mode(int(mode))

    def _fault_codes(self) -> list[int]:
        return self._fault
