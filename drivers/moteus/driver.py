"""Moteus drives on one line behind the driver contract.

Every command is one frame of the drive's position mode that also asks for its state; the answer is the feedback. The
drive's watchdog is part of each command, so there is no time in which it is on and the watchdog is not. The modes:

* effort: gains up to those configured in the drive (servo.pid_position.kp and kd, read when it is opened) go into it as
  scales of these, so that it closes the loop at its own rate; larger ones are closed here, by the last measured state.
  Between commands the drive moves its set-point on with the commanded velocity.
* velocity, position: the drive's own configured gains; the commanded effort is its feedforward, kp and kd of the
  command are not used. The drive's trajectory limits are off: the commands are the trajectory.

A drive whose watchdog trips damps with the kd of the last command, or does what its servo.timeout_mode says.

A drive that is stopped lets its motor go, or with `brake` shorts its phases: the motor resists by itself, without
commands, until the next `enable`, also after `close`. That clears neither a fault, with which the drive lets go all the
same, nor a watchdog that tripped: `clear` does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from functools import partial

import numpy as np

from cosim.drivers.common.effort_slot import EffortSlot
from cosim.drivers.common.wiring import JointParams, Units
from cosim.drivers.moteus import faults
from cosim.drivers.moteus.codec import (
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
from cosim.drivers.moteus.limits import Settings, beyond, settings, standing
from cosim.drivers.moteus.register_client import ANSWER_NS, MOST, RegisterClient
from cosim.drivers.moteus.registers import BRAKING_MAP, MAP_VERSION, MAP_VERSIONS, Mode
from cosim.drivers.transport import CanFrame, Connection, ConnectionLost, now
from cosim.errors import InputError, RunError
from cosim.types import Array, DriverContext, JointCommand, JointState

MODES = frozenset({"effort", "velocity", "position"})
_ENABLE_NS = 1_000_000_000
_HUGE = 1e30  # no command is larger, and a 32-bit float holds it


class MoteusDriver:
    """n joints, one drive each; arrays are per joint in the order of the context."""

    modes = MODES

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
        brake: drives that are stopped brake."""
        n = len(nodes)
        self.link, self.watchdog = link, watchdog
        self.joints, self.limits = context.joints, context.limits
        self.nodes, self.lost = tuple(nodes), 0
        self.latched = False  # `enable` was refused for a fault that `clear` may clear
        self._place, self._units = context.place, Units([_wiring(w) for w in context.wiring])
        self.slot = EffortSlot(self.joints, np.full(n, np.inf), np.zeros(n))
        self._drives = RegisterClient(link, nodes, prefix)
        self._brake, self._halts = brake, [STOP] * n  # what stops each; a drive that is not known yet is let go
        self._tail = b""  # of commands, by the mode
        self._own: list[Settings] = []  # of the drives, while they are open
        self._kp, self._kd = np.zeros(n), np.zeros(n)  # configured in the drives, N·m/rad and N·m·s/rad
        # measured, in the drives' units
        self._position, self._velocity, self._effort = np.zeros(n), np.zeros(n), np.zeros(n)
        self._temperature, self._voltage = np.full(n, np.nan), np.full(n, np.nan)
        self._mode, self._code = [0] * n, [0] * n
        self._heard_ns = [0] * n
        self._missing: set[int] = set()  # joints whose drive has not answered yet
        self._asked = False  # whether something was asked since the last read
        self._fault = [0] * n
        self._on = ""  # the mode in which the drives run
        self._stopped = True  # no command may go out any more
        self._gate = threading.Lock()  # commands of one thread do not follow the stop of another
        self._rows = np.zeros((n, 6))  # of commands: position, velocity, effort, kp scale, kd scale, max effort

    # --- opening -----------------------------------------------------------------------------

    def open(self) -> None:
        """Raises InputError where a drive does not answer, is another kind, or allows less than the guard."""
        self.link.open()
        self._heard_ns, self.lost = [0] * len(self.nodes), 0
        try:
            self._own = [self._open(k) for k in range(len(self.nodes))]
        except BaseException:
            self.close()
            raise

    def _open(self, k: int) -> Settings:
        place = self._place("joints", self.joints[k], "id")
        node = self.nodes[k]
        identity = self._drives.ask(k, read(MAP_VERSION, INT32))
        if identity is None:
            what = f"no answer from node {node} on {self.link.name}; check its power, the id and the bit rates"
            raise InputError(what, place)
        told = [found.values for found in decode(identity.data)[0] if isinstance(found, Reply)]
        version = told[0][0] if told and told[0] else None
        if version not in MAP_VERSIONS:
            what = "is no moteus drive" if version is None else f"has register map {version:.0f}"
            known = " and ".join(str(known) for known in MAP_VERSIONS)
            raise InputError(f"node {node} {what}; this driver knows moteus' register maps {known}", place)
        if self._brake and version < BRAKING_MAP:
            what = f"node {node} has register map {version:.0f}, whose firmware need not know how to brake"
            raise InputError(f"{what}; update it, or give 'stop: off'", self._place("stop"))
        self._halts[k] = BRAKE if self._brake else STOP
        # a drive with a fault is off, and stopping it would clear the fault unseen; one that is off need not brake
        if self._state(k) and self._mode[k] not in (Mode.STOPPED, Mode.FAULT):
            self._drives.ask(k, self._halts[k])
        own = settings(partial(self._drives.tell, k), partial(self._drives.ask, k, tries=2))
        if isinstance(own, str):
            raise InputError(f"node {node} did not tell its '{own}'; update the drive's firmware", place)
        scale, limits = self._units.scale[k], self.limits
        lower, upper = sorted(scale * (end - self._units.zero[k]) for end in (limits.lower[k], limits.upper[k]))
        wrong = beyond(own, lower, upper, limits.velocity[k] * abs(scale), limits.effort[k] / abs(scale))
        if wrong:
            raise InputError(wrong, place)
        self._kp[k], self._kd[k] = own.kp, own.kd
        self.slot.limit[k] = own.effort * abs(scale)
        self._rows[k, 5] = min(own.effort, limits.effort[k] / abs(scale), _HUGE)
        return own

    def _state(self, k: int) -> bool:
        """Whether the drive told its state."""
        frame = self._drives.ask(k, QUERY)
        if frame is not None:
            self._take(frame)
        return frame is not None

    # --- switching on ------------------------------------------------------------------------

    def enable(self, mode: str) -> None:
        """Raises RunError for a mode that is not in `modes`, a drive with a fault, and one that does not switch on."""
        if mode not in MODES:
            raise RunError(f"moteus drives have no mode '{mode}'; use one of {', '.join(sorted(MODES))}")
        self._on, self._fault, self._stopped, self.latched = "", [0] * len(self.nodes), False, False
        for k, joint in enumerate(self.joints):
            if not self._state(k):
                raise RunError(f"no answer from node {self.nodes[k]} on {self.link.name}", joint)
            if self._fault[k]:
                self.latched = True
                raise RunError(faults.describe(self._fault[k]), joint)
        try:
            self._switch_on(mode)
        except BaseException:
            self.stop()
            raise
        self._on, self._asked = mode, False

    def _switch_on(self, mode: str) -> None:
        """Holds the measured state with no effort until every drive has done its start-up."""
        rows, self._tail = self._rows, command_tail(self.watchdog, integral=mode != "effort")
        rows[:, 0] = np.nan if mode == "velocity" else self._position
        rows[:, 1:3] = 0.0
        rows[:, 3:5] = 0.0 if mode == "effort" else 1.0
        end_ns = now() + _ENABLE_NS
        while True:
            deadline_ns = now() + ANSWER_NS
            self._send(deadline_ns)
            self._collect(deadline_ns)
            for k, joint in enumerate(self.joints):
                if self._mode[k] == Mode.FAULT:
                    raise RunError(faults.describe(self._code[k] or faults.UNNAMED), joint)
            off = [k for k, mode in enumerate(self._mode) if mode != Mode.POSITION or k in self._missing]
            if not off:
                return
            if now() >= end_ns:
                what = f"node {self.nodes[off[0]]} did not switch on within 1 s; check its supply"
                raise RunError(what, self.joints[off[0]])
            while now() < deadline_ns - ANSWER_NS // 2:  # 10 ms from command to command
                self.link.receive(deadline_ns - ANSWER_NS // 2)

    def clear(self) -> None:
        """Let go of drives with a fault or a watchdog that tripped, which clears it. Raises RunError where one stands.

        A drive that is off looks for no faults, so that of their causes only heat and a wrong supply are seen here; the
        others are told by `enable`.
        """
        if not self._own:
            raise RunError(f"moteus drives of {', '.join(self.joints)} are not open; open the driver first")
        self.stop()
        for k, joint in enumerate(self.joints):
            heard = self._state(k)
            answer = self._drives.ask(k, STOP if self._fault[k] else self._halts[k]) if heard else None
            if answer is None or not self._state(k):
                raise RunError(f"joint '{joint}': no answer from node {self.nodes[k]} on {self.link.name}")
            code = self._fault[k] or standing(self._own[k], self._voltage[k], self._temperature[k])
            if code:
                raise RunError(f"joint '{joint}': the fault stands: {faults.describe(code)}")
        self.stop()
        self.latched = False

    # --- the cycle ---------------------------------------------------------------------------

    def read(self, out: JointState, deadline_ns: int) -> None:
        """Waits for the answers to the last command, or asks, until the deadline. Raises LinkError."""
        if not self._asked:
            self._drain()
            for id in self._drives.ask_ids:
                self.link.send(CanFrame(id, QUERY, True, True, True), deadline_ns)
            self._missing = set(range(len(self.nodes)))
        self._asked = False
        self._collect(deadline_ns)
        units = self._units
        out.position[:] = units.joint_position(self._position)
        out.velocity[:] = units.joint_velocity(self._velocity)
        out.effort[:] = units.joint_effort(self._effort)
        out.temperature[:] = self._temperature
        out.fault[:] = self._fault
        out.t_ns = min(self._heard_ns)

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """Raises RunError before `enable`, for a command that is too old or not finite, and LinkError."""
        if not self._on:
            raise RunError(f"moteus drives of {', '.join(self.joints)} are off; enable the driver first")
        if now() > cmd.valid_until_ns:
            raise RunError("a command came too late to be sent; its time of validity is over")
        if not np.abs(cmd.position + cmd.velocity + cmd.effort + cmd.kp + cmd.kd).max() < _HUGE:
            raise RunError("a command is not finite; nothing was sent")
        self._drain()
        units, rows = self._units, self._rows
        position, velocity = units.drive_position(cmd.position), units.drive_velocity(cmd.velocity)
        if self._on == "effort":
            self._impedance(cmd, position, velocity)
        else:
            rows[:, 0] = np.nan if self._on == "velocity" else position
            rows[:, 1] = velocity
            rows[:, 2] = units.drive_effort(self.slot.fit(cmd.effort))
        self._send(deadline_ns)

    def _impedance(self, cmd: JointCommand, position: Array, velocity: Array) -> None:
        """Gains that the drive has go into it, larger ones are closed here; without kp its set-point is where it is."""
        units, rows = self._units, self._rows
        kp, kd = units.drive_gain(cmd.kp), units.drive_gain(cmd.kd)
        own = (kp >= 0.0) & (kd >= 0.0) & (kp <= self._kp) & (kd <= self._kd)
        effort = cmd.effort
        if own.all():
            kept_kp, kept_kd = kp, kd
        else:
            pull = kp * (position - self._position) + kd * (velocity - self._velocity)
            effort = effort + np.where(own, 0.0, units.joint_effort(pull))
            kept_kp, kept_kd = np.where(own, kp, 0.0), np.where(own, kd, 0.0)
        rows[:, 0] = np.where(kept_kp > 0.0, position, self._position)
        rows[:, 1] = velocity
        rows[:, 2] = units.drive_effort(self.slot.fit(effort))
        np.divide(kept_kp, self._kp, out=rows[:, 3], where=self._kp > 0.0)
        np.divide(kept_kd, self._kd, out=rows[:, 4], where=self._kd > 0.0)

    def _send(self, deadline_ns: int) -> None:
        """One command to every drive; one that fell out of its mode is not switched on again by it."""
        send, tail = self.link.send, self._tail
        self._asked, self._missing = True, set(range(len(self.nodes)))
        with self._gate:
            rows = self._rows.tolist()
            for id, fault, halt, row in zip(self._drives.ask_ids, self._fault, self._halts, rows, strict=True):
                if self._stopped:
                    raise RunError(f"moteus drives of {', '.join(self.joints)} were stopped; enable the driver first")
                if fault == 0:
                    data = encode_command(tail, *row)
                else:  # stopping would clear a fault, or a watchdog that tripped, before anybody saw it
                    data = QUERY if fault > 0 or fault in (faults.TIMED_OUT, faults.UNNAMED) else halt
                send(CanFrame(id, data, True, True, True), deadline_ns)

    def _collect(self, deadline_ns: int) -> None:
        """Takes answers until all are there or it is time."""
        receive, missing = self.link.receive, self._missing
        for _ in range(MOST):
            if not missing or (frame := receive(deadline_ns)) is None:
                return
            self._take(frame)

    def _drain(self) -> None:
        """What has come already: answers to what is no longer waited for."""
        for _ in range(MOST):
            if (frame := self.link.receive(0)) is None:
                return
            self._take(frame)

    def _take(self, frame: CanFrame) -> None:
        k = self._drives.index.get(frame.id)
        if k is None:  # between others
            return
        feedback = decode_feedback(frame.data)
        if feedback is None:
            self.lost += 1
            return
        self._missing.discard(k)
        mode, self._position[k], self._velocity[k], self._effort[k], volts, degrees, code = feedback
        self._voltage[k], self._temperature[k] = volts, degrees
        self._mode[k], self._code[k], self._heard_ns[k] = mode, code, frame.t_ns
        if mode == Mode.FAULT:
            self._fault[k] = code or faults.UNNAMED
        elif not self._on:
            self._fault[k] = faults.TIMED_OUT if mode == Mode.TIMEOUT else 0
        elif mode != Mode.POSITION and not self._fault[k]:
            self._fault[k] = faults.fallen(mode)

    # --- stopping ----------------------------------------------------------------------------

    def stop(self) -> None:
        """Motors off, or braked. To let go also clears faults, which is the maker's only way to."""
        self._stopped, self._on = True, ""
        held = self._gate.acquire(timeout=ANSWER_NS * 1e-9)  # not for long: a thread that hangs must not keep it
        for k, halt in enumerate(self._halts):
            with contextlib.suppress(ConnectionLost, OSError):
                self._drives.tell(k, halt)
        if held:
            self._gate.release()
        self._fault, self._asked = [0] * len(self.nodes), False

    def close(self) -> None:
        """Motors off, or braked for good, and the line is let go."""
        self.stop()
        self._own = []
        self.link.close()

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The maker's name of a fault and a mend."""
        return faults.describe(code)

    def report(self) -> list[dict[str, object]]:
        """Per joint: commands that were cut, by which limit, and the size of a step."""
        return self.slot.report()


def _wiring(params: object) -> JointParams:
    assert isinstance(params, JointParams)
    return params
