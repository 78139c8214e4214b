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

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.core.types import closed_loop_effort
from cosim.plugins.drivers.common.driver import ENABLE_NS, HUGE, ListedCommand, MotorDriver
from cosim.plugins.drivers.common.wiring import JointParams
from cosim.plugins.drivers.moteus import faults
from cosim.plugins.drivers.moteus.codec import (
    BRAKE,
    INT32,
    QUERY,
    STOP,
    Reply,
    command_tail,
    decode,
    decode_feedback,
    encode_command,
    read,
)
from cosim.plugins.drivers.moteus.diagnostic import NotReported
from cosim.plugins.drivers.moteus.fdcanusb import AdapterHost
from cosim.plugins.drivers.moteus.register_client import ANSWER_NS, RegisterClient
from cosim.plugins.drivers.moteus.registers import BRAKING_MAP, MAP_VERSION, MAP_VERSIONS, Mode
from cosim.plugins.drivers.moteus.settings import Settings, read_settings, standing_fault
from cosim.plugins.drivers.transport import CanFrame, Connection

if TYPE_CHECKING:
    from cosim.plugins.drivers.common.frame_layout import CycleLayout
    from cosim.plugins.drivers.transport.compiled_link import CompiledLink


class MoteusDriver(MotorDriver[CanFrame, JointParams]):
    """n joints, one drive each."""

    cycle_module = "cosim.plugins.drivers.moteus.cycle"
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
        self._tail = b""  # of commands, by the mode
        self._settings: list[Settings] = []  # of the drives, while they are open
        self._kp, self._kd = [0.0] * n, [0.0] * n  # configured in the drives, N·m/rad and N·m·s/rad
        self._voltage = [math.nan] * n
        self._drive_mode, self._code, self._fault = [0] * n, [0] * n, [0] * n  # reported; faults stay until `stop`
        # of commands: position, velocity, effort, kp scale, kd scale, max effort
        self._rows = [[0.0] * 6 for _ in range(n)]

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
        if self._query(k) and self._drive_mode[k] not in (Mode.STOPPED, Mode.FAULT):
            self._drives.request(k, self._stop_data[k])
        try:
            own = read_settings(partial(self._drives.write, k), partial(self._drives.request, k, tries=2))
        except NotReported as error:
            fix = "update the drive's firmware" if error.refused else self._loses_answers
            raise self._drive_error(k, f"{self._drive_name(k)} did not report its '{error.name}'; {fix}") from None
        self._check_limits(k, own.limits())
        size = abs(self.units.scale[k])
        self._kp[k], self._kd[k] = own.kp, own.kd
        self.feedforward.limit[k] = own.effort * size
        self._rows[k][5] = min(own.effort, float(self.limits.effort[k]) / size, HUGE)
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

    # --- switching on and off ----------------------------------------------------------------

    def _fault_before_enable(self, k: int) -> int:
        self._fault[k] = 0
        if not self._query(k):
            raise self._no_answer(k)
        return self._fault[k]

    def _switch_on(self, mode: str) -> None:
        """Hold the measured state with no effort until every drive has completed its start-up."""
        self._tail = command_tail(self.watchdog, integral=mode != "effort")
        scale = 0.0 if mode == "effort" else 1.0
        for row, position in zip(self._rows, self._feedback.position, strict=True):
            row[:5] = math.nan if mode == "velocity" else position, 0.0, 0.0, scale, scale
        end_ns = self._now() + ENABLE_NS
        while True:
            deadline_ns = self._now() + ANSWER_NS
            with self._gate:
                self._send(deadline_ns)
            self._receive(deadline_ns)
            for k, drive_mode in enumerate(self._drive_mode):
                if drive_mode == Mode.FAULT:
                    raise self._joint_error(k, f"fault: {faults.describe(self._code[k] or faults.UNNAMED)}")
            off = [k for k, mode in enumerate(self._drive_mode) if mode != Mode.POSITION or k in self._pending]
            if not off:
                return
            if self._now() >= end_ns:
                raise self._not_on(off[0], "check its supply")
            while self._now() < deadline_ns - ANSWER_NS // 2:  # 10 ms from command to command
                self.link.receive(deadline_ns - ANSWER_NS // 2)

    def _stop_items(self) -> Iterator[CanFrame]:
        for k, data in enumerate(self._stop_data):
            yield self._drives.unanswered(k, data)
        self._fault = [0] * len(self.nodes)

    def _clear_faults(self) -> None:
        """Torque off clears faults and tripped watchdogs.

        A drive that is off checks for no faults; temperature and supply are checked here, `enable` reports others.
        """
        for k in range(len(self.nodes)):
            reported = self._query(k)
            data = STOP if self._fault[k] else self._stop_data[k]
            if not reported or self._drives.request(k, data) is None or not self._query(k):
                raise self._no_answer(k)
            code = self._fault[k] or standing_fault(self._settings[k], self._voltage[k], self._feedback.temperature[k])
            if code:
                raise self._fault_persists(k, code)
        self.stop()

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The manufacturer's name of a fault and the fix."""
        return faults.describe(code)

    # --- the cycle ---------------------------------------------------------------------------

    def _requested_effort(self, cmd: ListedCommand, position: list[float], velocity: list[float]) -> list[float]:
        """The drive gets the part of the gains that it can take: its rate is higher, and its watchdog damps with the kd
        that it has. Without kp the drive's setpoint is its measured position."""
        self._drain()
        if self._mode != "effort":
            return cmd.effort
        units, feedback = self.units, self._feedback
        asked = zip(units.drive_gain(cmd.kp), units.drive_gain(cmd.kd), strict=True)
        efforts = []
        for k, (asked_kp, asked_kd) in enumerate(asked):
            row, own_kp, own_kd, measured = self._rows[k], self._kp[k], self._kd[k], feedback.position[k]
            # + 0.0: -0.0 is sent as 0.0
            kp, kd = min(max(asked_kp, 0.0), own_kp) + 0.0, min(max(asked_kd, 0.0), own_kd) + 0.0
            rest_kp, rest_kd, effort = asked_kp - kp, asked_kd - kd, cmd.effort[k] + 0.0
            if rest_kp or rest_kd:
                loop = closed_loop_effort(rest_kp, rest_kd, position[k], velocity[k], measured, feedback.velocity[k])
                effort += loop * units.scale[k]
            row[0] = position[k] if kp > 0.0 else measured
            row[3] = kp / own_kp if own_kp > 0.0 else 0.0
            row[4] = kd / own_kd if own_kd > 0.0 else 0.0
            efforts.append(effort)
        return efforts

    def _send_commands(
        self, position: list[float], velocity: list[float], effort: list[float], deadline_ns: int
    ) -> None:
        for k, row in enumerate(self._rows):
            row[1], row[2] = velocity[k], effort[k]
            if self._mode != "effort":
                row[0] = math.nan if self._mode == "velocity" else position[k]
        self._send(deadline_ns)

    def _send(self, deadline_ns: int) -> None:
        """Send one command to every drive that is still in its mode. The gate is held."""
        send, tail, ids = self.link.send, self._tail, self._drives.request_ids
        self._pending = set(range(len(self.nodes)))
        for id, fault, stop, row in zip(ids, self._fault, self._stop_data, self._rows, strict=True):
            self.check_not_stopped()
            if fault == 0:
                data = encode_command(tail, *row)
            else:  # a stop command would clear a fault or a tripped watchdog before it is read
                data = QUERY if fault > 0 or fault in (faults.TIMED_OUT, faults.UNNAMED) else stop
            send(CanFrame(id, data, True, True, True), deadline_ns)

    def _cycle_layout(self) -> CycleLayout:
        from cosim.plugins.drivers.moteus.cycle import layout

        settings = self._kp, self._kd, [row[5] for row in self._rows]
        drives = self._drives
        stops = [drives.unanswered(k, data) for k, data in enumerate(self._stop_data)]
        return layout(self._mode, self._tail, settings, drives.request_ids, tuple(drives.index), stops)

    def _compiled_link(self) -> Callable[[Any], CompiledLink]:
        if not isinstance(self.link, AdapterHost):
            return super()._compiled_link()
        from cosim.plugins.drivers.moteus.fdcanusb_link import FdcanusbLink

        return FdcanusbLink

    def _poll(self, deadline_ns: int) -> None:
        self._drain()
        for id in self._drives.request_ids:
            self.link.send(CanFrame(id, QUERY, True, True, True), deadline_ns)
        self._pending = set(range(len(self.nodes)))

    def _take(self, item: CanFrame) -> None:
        k = self._drives.index.get(item.id)
        if k is None or item.remote or item.extended != (item.id > 0x7FF):  # of other nodes
            return
        reply, feedback = decode_feedback(item.data), self._feedback
        if reply is None:
            self._lost += 1
            return
        self._pending.discard(k)
        mode, feedback.position[k], feedback.velocity[k], feedback.effort[k], volts, degrees, code = reply
        self._voltage[k], feedback.temperature[k] = volts, degrees
        self._drive_mode[k], self._code[k], feedback.t_ns[k] = mode, code, item.t_ns
        if mode == Mode.FAULT:
            self._fault[k] = code or faults.UNNAMED
        elif not self._is_on:
            self._fault[k] = faults.TIMED_OUT if mode == Mode.TIMEOUT else 0
        elif mode != Mode.POSITION and not self._fault[k]:
            self._fault[k] = faults.left_position_mode(mode)

    def _fault_codes(self) -> list[int]:
        return self._fault
