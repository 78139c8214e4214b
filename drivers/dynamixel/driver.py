"""The program's side: several joints on one half-duplex line, asked after their state and given a goal in every cycle.

Modes of the drives: effort is current control (0), velocity is velocity control (1), position is current-based position
control (5) with the joint's effort limit as its goal current, or extended position control (4) in drives that have no
current. Current control is the only mode with a slot for efforts: there the host closes kp and kd by the last measured
state. Velocity and position loops are the drive's own, with the gains that it has.

The drive's watchdog listens to every packet, also to reads. So that a stream of reads cannot keep a drive going that
gets no commands, a read stays silent unless a command went out since the one before it, or just now.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from cosim.drivers.common.feedforward_field import FeedforwardField
from cosim.drivers.common.wiring import Units
from cosim.drivers.dynamixel import codec, cyclic_frames, faults
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.dynamixel.client import Client
from cosim.drivers.dynamixel.inspection import Found, Wish, inspect
from cosim.drivers.dynamixel.sync_reader import SyncReader
from cosim.drivers.transport import Connection, now
from cosim.errors import InputError, RunError
from cosim.types import Array, DriverContext, JointCommand, JointState, requested_effort

SWITCH_NS = 1_000_000_000  # in which drives must report that they are on
SLACK_NS = 20_000_000  # that a watchdog may be late
STOPS = 3  # copies of the packet that switches off: nobody answers it, and another packet may run into one
STOP_NS = 20_000_000
REBOOT_NS = 1_000_000_000  # in which a drive must answer again
SETTLE_NS = 100_000_000  # after that, until it has looked for what is wrong with it
POLL_NS = 100_000_000  # for the state of all drives while they are being switched on


class DynamixelDriver:
    """See `cosim.types.Driver`; reports: `slot`, `lost` packets, `describe_fault`."""

    def __init__(self, params: Any, context: DriverContext, link: Connection[bytes]) -> None:
        """params: the family's Params. Raises InputError."""
        self.joints, self.limits, self.link = context.joints, context.limits, link
        self.watchdog: float = params.watchdog
        self.latched = False  # `enable` was refused for a fault that `clear` may clear
        self._params, self._context, self._wiring = params, context, context.wiring
        self._models = [t.MODELS[w.model] for w in context.wiring]
        blind = [k for k, model in enumerate(self._models) if not model.senses_current]
        self.modes = frozenset({"velocity", "position"} if blind else cyclic_frames.GOALS)
        if blind and context.mode == "effort":
            what = f"{self._wiring[blind[0]].model} has no current control; use mode velocity or position"
            raise InputError(what, context.place("joints", self.joints[blind[0]], "model"))
        self._units, n = Units(context.wiring), len(self.joints)
        self._efforts = np.array([m.effort(w.torque_constant) for m, w in zip(self._models, self._wiring, strict=True)])
        self._ids = bytes(w.id for w in self._wiring)
        self._decoder = codec.Decoder()
        self._talk = Client(link, self._decoder)
        self._patience, self._grace = self._watch()
        self._bitten = self._grace + self._patience * t.WATCHDOG + SLACK_NS  # ns after which it must have
        self._found: list[Found] = []
        self._hearing = SyncReader(link, self._decoder, self._ids, params.port.baudrate)
        self._off = codec.sync_write(t.TORQUE_ENABLE.address, 1, b"".join(bytes((id, 0)) for id in self._ids))
        self._turns = np.zeros(n)  # counts between what drives show and the turn in which their joints are
        self._position, self._velocity = np.zeros(n), np.zeros(n)  # of the joints, measured last
        self._current, self._fastest = np.zeros(n), np.zeros(n)  # the drives' own limits, counts
        self._mode, self._on, self._stopped = context.mode, False, False
        self._goals = cyclic_frames.Goals(self._ids, self._mode)
        self._fresh, self._written_ns = False, 0  # a command went out since the last question; when
        self.feedforward = FeedforwardField(self.joints)
        self.feedforward.resolution[:] = self._efforts * np.abs(self._units.scale)

    @property
    def lost(self) -> int:
        """Answers that did not decode."""
        return self._decoder.lost + self._hearing.unusable

    # --- up and down ------------------------------------------------------------------------------

    def open(self) -> None:
        """Finds and checks every drive; the torque is off then. Raises InputError, or LinkError; all is closed then."""
        self.link.open()
        try:
            self.stop()
            self._found = [self._inspect(k) for k in range(len(self.joints))]
            self._current = np.array([f.current_limit for f in self._found], dtype=float)
            self._fastest = np.array([f.velocity_limit for f in self._found], dtype=float)
            fast = all(f.firmware >= t.FIRMWARE_FAST for f in self._found)
            self._hearing.ask_for(fast if self._params.fast is None else self._params.fast)
            self._gather()
            self._look()
        except BaseException:
            self.close()
            raise

    def enable(self, mode: str) -> None:
        """Raises RunError: unknown mode, a drive with a fault, or one that does not switch on; all are off then."""
        if mode not in self.modes:
            raise RunError(
                f"{', '.join(self.joints)} have no mode '{mode}'; use one of {', '.join(sorted(self.modes))}"
            )
        self._check_open()
        self.stop()
        self._stopped = self.latched = False
        try:
            self._prepare(mode)
            self._hold()
            self._switch_on()
        except BaseException:
            self.stop()
            raise

    def clear(self) -> None:
        """End watchdogs that tripped and reboot drives with an error; the torque is off. Raises RunError where an error
        stands.

        A reboot is to a drive as power off and on: of a joint that is not bounded to one turn, the turns are forgotten.
        """
        self._check_open()
        self.stop()
        for k, id in enumerate(self._ids):
            self._talk.put(id, t.TORQUE_ENABLE, 0)
            self._talk.put(id, t.BUS_WATCHDOG, 0)
            if self._talk.get(id, t.HARDWARE_ERROR):
                self._reboot(k, id)
        self._gather()
        self._look()
        self.latched = False

    def stop(self) -> None:
        """Torque off, without waiting for anything; from any thread."""
        self._on, self._stopped = False, True
        for _ in range(STOPS):
            with suppress(Exception):
                self.link.send(self._off, now() + STOP_NS)

    def close(self) -> None:
        """Stop, and let go of the line."""
        self.stop()
        self._found = []
        self.link.close()

    # --- the cycle --------------------------------------------------------------------------------

    def read(self, out: JointState, deadline_ns: int) -> None:
        """One question to all drives. What does not come by the deadline keeps its old values. Raises LinkError."""
        if self._on and not self._fresh and self._grace < now() - self._written_ns < self._bitten:
            return  # commands have stopped: let the watchdog bite, then see that it did
        self._fresh = False
        if self._hearing.poll(deadline_ns):
            self._measure()
            state = self._hearing.state
            out.position[:], out.velocity[:] = self._position, self._velocity
            out.effort[:] = self._units.joint_effort(state["current"] * self._efforts)
            out.temperature[:] = state["temperature"]
            out.fault[:] = self._faults()
            out.t_ns = min(self._hearing.times)

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """One goal to each drive. Raises RunError before `enable` and for an expired command, LinkError."""
        if not self._on:
            raise RunError(f"drives of {', '.join(self.joints)} are off; enable the driver first")
        t_ns = now()
        if t_ns > cmd.valid_until_ns:
            raise RunError(f"a command to {', '.join(self.joints)} expired before it was sent; the controller is late")
        self.link.send(self._goals.packet(self._counts(cmd)), deadline_ns)
        self._written_ns, self._fresh = t_ns, True

    def describe_fault(self, joint: int, code: int) -> str:
        """What a code in `JointState.fault` means, and the mend."""
        return faults.describe(code)

    def report(self) -> list[dict[str, object]]:
        """What became of efforts, per joint."""
        return self.feedforward.report()

    def _counts(self, cmd: JointCommand) -> Array:
        units = self._units
        told = float((cmd.position + cmd.velocity + cmd.effort + cmd.kp + cmd.kd).sum())
        if self._mode == "effort":
            asked = requested_effort(vars(cmd), {"position": self._position, "velocity": self._velocity})
            counts = np.rint(units.drive_effort(self.feedforward.fit(asked)) / self._efforts)
        else:
            self.feedforward.fit(cmd.effort)  # there is no slot: what was asked for is told as cut
            if self._mode == "velocity":
                counts = np.rint(units.drive_velocity(cmd.velocity) / t.VELOCITY)
                counts = np.minimum(np.maximum(counts, -self._fastest), self._fastest)
            else:
                counts = np.rint(units.drive_position(cmd.position) / t.POSITION) - self._turns
                most = t.MOST_TURNS * t.COUNTS - 1
                counts = np.minimum(np.maximum(counts, -most), most)
        if not math.isfinite(told + counts.sum()):
            raise RunError(f"a command to {', '.join(self.joints)} is not finite; it was not sent")
        return counts

    def _measure(self) -> None:
        state = self._hearing.state
        self._position = self._units.joint_position((state["position"] + self._turns) * t.POSITION)
        self._velocity = self._units.joint_velocity(state["velocity"] * t.VELOCITY)

    def _faults(self) -> Array | int:
        s = self._hearing.state
        torque, level = s["torque"].tobytes(), s["level"].tobytes()
        hardware, watchdog = s["hardware"].tobytes(), s["watchdog"].tobytes()
        if 0 not in level and not any(hardware) and t.TRIPPED not in watchdog and not (self._on and 0 in torque):
            return 0
        rows = zip(torque, level, hardware, watchdog, strict=True)
        return np.array([faults.code(*row, on=self._on) for row in rows])

    # --- setting up -------------------------------------------------------------------------------

    def _watch(self) -> tuple[int, int]:
        """Counts of the drive's watchdog, and ns after a command in which reads may go on: together what was asked."""
        grace = max(t.WATCHDOG, math.ceil(self._context.period * 1e9))
        asked = round(self.watchdog * 1e9)
        counts = min((asked - grace) // t.WATCHDOG, t.MOST_WATCHDOG)
        if counts < 1:
            least = (grace + t.WATCHDOG) * 1e-9
            what = f"{self.watchdog:g} s is too short for drives that count in 20 ms; give at least {least:g} s"
            raise InputError(what, self._context.place("watchdog"))
        return counts, grace

    def _inspect(self, k: int) -> Found:
        w, scale = self._wiring[k], abs(self._units.scale[k])
        effort, velocity = float(self.limits.effort[k]) / scale, float(self.limits.velocity[k]) * scale
        wish = Wish(w, effort, velocity, self._params.return_delay, self._params.fast, self.link.name)
        return inspect(self._talk, wish, partial(self._context.place, "joints", self.joints[k]))

    def _gather(self) -> None:
        for id in self._ids:
            self._talk.write(id, cyclic_frames.GATHER_ADDRESS, cyclic_frames.GATHERING)

    def _reboot(self, k: int, id: int) -> None:
        """Raises RunError for a drive that does not come back, or comes back with an error."""
        joint, begun = self.joints[k], now()
        self._talk.ask(id, codec.packet(id, codec.REBOOT))
        while self._talk.ask(id, codec.packet(id, codec.PING)) is None:
            if now() - begun > REBOOT_NS:
                what = f"drive {id} did not come back within 1 s of its reboot; check its supply"
                raise RunError(f"joint '{joint}': {what}")
        until = now() + SETTLE_NS
        while now() < until:
            self.link.receive(until)
        if hardware := self._talk.get(id, t.HARDWARE_ERROR):
            raise RunError(f"joint '{joint}': the fault persists: {faults.describe(hardware)}")

    def _check_open(self) -> None:
        if not self._found:
            raise RunError(f"drives of {', '.join(self.joints)} are not open; open the driver first")

    def _look(self) -> None:
        """The state of all drives, outside of the cycle. Raises RunError where one does not answer."""
        for k, id in enumerate(self._ids):
            data = self._talk.read(id, cyclic_frames.ADDRESS, cyclic_frames.SIZE)
            self._hearing.hear({k}, 0, id, data)
        self._turns = self._nearest(self._hearing.state["position"])
        self._measure()

    def _nearest(self, counts: Array) -> Array:
        """(n,) whole turns to add: an encoder knows its place within a turn only, the joint's limits say which it is.

        None are added where limits are open or more than a turn of the drive apart.
        """
        lower, upper = self.limits.lower, self.limits.upper
        bounded = np.isfinite(lower) & np.isfinite(upper)
        low, high = (self._units.drive_position(np.where(bounded, bound, 0.0)) / t.POSITION for bound in (lower, upper))
        known = bounded & (np.abs(high - low) <= t.COUNTS)
        middle = np.where(known, 0.5 * (low + high), counts)
        return np.rint((middle - counts) / t.COUNTS) * t.COUNTS

    def _prepare(self, mode: str) -> None:
        """Watchdog, operating mode and settings, with the torque off. Raises RunError for a drive with a fault."""
        talk = self._talk
        for k, id in enumerate(self._ids):
            talk.put(id, t.TORQUE_ENABLE, 0)
            talk.put(id, t.BUS_WATCHDOG, 0)  # clears a trip; it takes no other value before
            talk.put(id, t.BUS_WATCHDOG, self._patience)
            if hardware := talk.get(id, t.HARDWARE_ERROR):
                self.latched = True
                raise RunError(f"{self.joints[k]}: {faults.describe(hardware)}")
            operating = self._operating(mode, k)
            if talk.get(id, t.OPERATING_MODE) != operating:  # EEPROM: not more often than needed
                talk.put(id, t.OPERATING_MODE, operating)
            talk.write(id, t.PROFILE_ACCELERATION.address, bytes(8))  # and velocity: no profile
        self._gather()
        self._look()
        n = len(self._ids)
        self._mode, self._goals = mode, cyclic_frames.Goals(self._ids, mode)
        steps = self._efforts * np.abs(self._units.scale) if mode == "effort" else np.zeros(n)
        self.feedforward.limit[:], self.feedforward.resolution[:] = self._current * steps, steps

    def _operating(self, mode: str, k: int) -> int:
        if mode == "position":
            return t.CURRENT_POSITION_MODE if self._models[k].senses_current else t.EXTENDED_MODE
        return t.CURRENT_MODE if mode == "effort" else t.VELOCITY_MODE

    def _hold(self) -> None:
        """Goals that keep the drives where they are, with no effort; the bound of the effort in position mode."""
        goals = self._hearing.state["position"] if self._mode == "position" else np.zeros(len(self._ids))
        bound = np.minimum(self.limits.effort / np.abs(self._units.scale) / self._efforts, self._current)
        for k, id in enumerate(self._ids):
            self._talk.put(id, cyclic_frames.GOALS[self._mode], int(goals[k]))
            if self._mode == "position" and self._models[k].senses_current:
                self._talk.put(id, t.GOAL_CURRENT, int(bound[k]))

    def _switch_on(self) -> None:
        names = ", ".join(self.joints)
        deadline = now() + SWITCH_NS
        on = codec.sync_write(t.TORQUE_ENABLE.address, 1, b"".join(bytes((id, 1)) for id in self._ids))
        if not self._stopped:
            self.link.send(on, deadline)
        self._hearing.forget()
        while not self._stopped and 0 in (torque := self._hearing.state["torque"].tobytes()):
            if now() >= deadline:
                late = [joint for joint, on in zip(self.joints, torque, strict=True) if not on]
                raise RunError(f"drives of {', '.join(late)} did not switch on within 1 s; check their supply")
            self._hearing.poll(min(deadline, now() + POLL_NS))  # as one question to all: it feeds all watchdogs
        if self._stopped:
            raise RunError(f"drives of {names} were stopped while they were being switched on")
        self._measure()
        self._written_ns, self._fresh, self._on = now(), True, True
