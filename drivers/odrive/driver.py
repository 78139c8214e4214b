"""ODrives as a driver: what both transports share. Inside, values are the drives' own (rad, rad/s, N·m)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cosim.drivers.common.effort_slot import EffortSlot
from cosim.drivers.common.wiring import Units
from cosim.drivers.odrive import codes
from cosim.drivers.odrive.params import JointParams, Params
from cosim.drivers.transport import now
from cosim.errors import CosimError, InputError, RunError
from cosim.types import DriverContext, JointCommand, JointState, requested_effort
from cosim.units import TURN

MODES = frozenset({"effort", "velocity", "position"})
CONTROL = {
    "effort": codes.TORQUE_CONTROL,
    "velocity": codes.VELOCITY_CONTROL,
    "position": codes.POSITION_CONTROL,
}

ANSWER_TIME, ARM_TIME, GOODBYE_TIME = 1.0, 1.0, 0.1  # s
RETRY_NS = 50_000_000  # between two tries to get an answer
SOFT = ("config.torque_soft_min", "config.torque_soft_max")
SILENCE_NS = 500_000_000  # without a heartbeat
STOP_NS = 20_000_000  # that sending off may take
GAP_NS = 250_000_000  # without reading: heartbeats of that time may have been lost here, not at the drive
MOST_WAITING = 8192  # items that are taken at once after nobody listened
MOST_ITEMS = 1024  # taken in one read beyond those that were waited for
HUGE = 1e30  # above all that fits the drives' numbers


class ODrive(ABC):
    """Joints behind the ODrives on one line."""

    modes = MODES

    def __init__(self, params: Params, context: DriverContext, link: Any) -> None:
        self.joints, self.limits, self.link = context.joints, context.limits, link
        self.watchdog = params.watchdog
        self.lost = 0
        self.latched = False  # `enable` was refused for a fault that `clear` may clear
        self.wiring: tuple[JointParams, ...] = context.wiring
        self.slot = EffortSlot(self.joints, np.array(np.inf), np.array(0.0))
        self._params, self._place = params, context.place
        self._units = Units(self.wiring)
        self._size = np.abs(self._units.scale)
        self._addresses = [w.address for w in self.wiring]
        self._mode = context.mode
        self._on = self._opened = False
        self._halted = True
        self._torques: list[tuple[float, float]] = []  # the drives' own soft limits, down and up, as they were found
        self._forget()

    def _forget(self) -> None:
        """Nothing is known of the drives."""
        count = len(self.joints)
        # measured, drive's units; when; what the drives say of themselves
        self._angle, self._speed, self._torque = np.zeros(count), np.zeros(count), np.zeros(count)
        self._degrees = np.full(count, np.nan)
        self._heard_ns, self._beat_ns = [0] * count, [0] * count
        self._state, self._error = [codes.UNDEFINED] * count, [0] * count
        self._time_ns = 0  # the latest that is known
        self._since_ns = self._read_ns = 0  # from when on somebody listens without a gap; of the last read
        self._seen = {"position": np.zeros(count), "velocity": np.zeros(count)}  # last read, of the joints
        self._pending = 0  # answers that are waited for
        self._fresh = False  # something was asked since the last read

    # --- the contract -------------------------------------------------------------------------------

    def open(self) -> None:
        """Raises InputError at the joint whose drive does not answer, is of another make or allows less than the rig's
        limits; the line is closed then."""
        self._opened = False
        self._forget()
        self.link.open()
        try:
            self._meet()
            self._torques = [(self._get(k, SOFT[0]), self._get(k, SOFT[1])) for k in range(len(self.joints))]
            for k in range(len(self.joints)):
                self._off(k, now() + STOP_NS)
                self._check_limits(k)
            self._fit_slot(self._mode)
            if not self._wait(lambda: 0 not in self._heard_ns, ANSWER_TIME, lambda: self._ask(now() + RETRY_NS)):
                raise self._mute(self._heard_ns.index(0))
        except BaseException:
            self.close()
            raise
        self._opened = True

    def enable(self, mode: str) -> None:
        """Raises RunError for an unknown mode, a drive with a fault, or one that does not switch on within 1 s."""
        if mode not in MODES:
            raise RunError(f"ODrives have no mode '{mode}'; use one of {', '.join(sorted(MODES))}")
        self._check_open()
        self._halted = self.latched = False
        try:
            self._catch_up()
            self._configure(mode)
            for k, wiring in enumerate(self.wiring):
                if wiring.homing:
                    self._home(k)
            self._switch_on(mode)
        except BaseException:
            self.stop()
            raise

    def read(self, out: JointState, deadline_ns: int) -> None:
        """Raises LinkError when the line is lost.

        Without a command since, the drives are asked, but not in a way that feeds their watchdogs.
        """
        if (time_ns := now()) - self._read_ns > GAP_NS:
            self._since_ns = time_ns
        self._read_ns = time_ns
        if not self._fresh:
            self._look(deadline_ns)
        self._drain(deadline_ns)
        self._fresh = False
        units, seen = self._units, self._seen
        seen["position"][:] = units.joint_position(self._angle)
        seen["velocity"][:] = units.joint_velocity(self._speed)
        out.t_ns = min(self._heard_ns)
        if out.t_ns:
            out.position[:], out.velocity[:] = seen["position"], seen["velocity"]
            out.effort[:] = units.joint_effort(self._torque)
            out.temperature[:] = self._degrees
        for k in range(len(self.joints)):
            out.fault[k] = self._error[k] or self._own_fault(k)

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """Raises RunError before `enable`, for a command that is too old or not finite; LinkError when the line is
        lost."""
        if not self._on:
            raise RunError(f"the motors of {', '.join(self.joints)} are off; enable the driver first")
        if now() > cmd.valid_until_ns:
            raise RunError("the command is no longer valid and was not sent; the program is too late")
        units = self._units
        asked = requested_effort(vars(cmd), self._seen) if self._mode == "effort" else cmd.effort
        efforts = units.drive_effort(self.slot.fit(asked)).tolist()
        angles = units.drive_position(cmd.position).tolist()
        speeds = units.drive_velocity(cmd.velocity).tolist()
        if not sum(map(abs, efforts)) + sum(map(abs, angles)) + sum(map(abs, speeds)) < HUGE:
            raise RunError("the command is not finite and was not sent; look at the controller")
        self._command(angles, speeds, efforts, deadline_ns)
        self._fresh = True

    def stop(self) -> None:
        """Every axis goes idle."""
        self._halted, self._on = True, False
        for k in range(len(self.joints)):
            with suppress(Exception):  # the others are to be stopped all the same
                self._off(k, now() + STOP_NS)

    def close(self) -> None:
        """Motors off, the drives' torque limits as they were found, the line closed."""
        self.stop()
        if self._opened:
            for k in range(len(self.joints)):
                with suppress(Exception):
                    self._leave(k)
        self._opened = False
        self.link.close()

    def clear(self) -> None:
        """Clears the drives' errors, by the maker's procedure; motors are off. Raises RunError where one stands."""
        self._check_open()
        self.stop()
        self._catch_up()
        for k in range(len(self.joints)):
            if not self._wait(lambda k=k: not self._fault_of(k), ANSWER_TIME, lambda k=k: self._clear(k)):
                raise self._wrong(k, f"the fault stands: {codes.describe(self._fault_of(k))}")
            self._error[k] = 0
        self.latched = False

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The maker's name of the fault and a mend."""
        return codes.describe(int(code))

    def report(self) -> list[dict[str, object]]:
        """See `EffortSlot.report`."""
        return self.slot.report()

    # --- what the transports do -----------------------------------------------------------------------

    @abstractmethod
    def _meet(self) -> None:
        """Finds every drive and looks at its firmware; raises InputError."""

    @abstractmethod
    def _get(self, k: int, path: str, seconds: float = ANSWER_TIME) -> float:
        """A parameter of the axis; raises `_mute` when it is not told in about that time."""

    @abstractmethod
    def _set(self, k: int, path: str, value: float) -> None:
        """Writes a parameter of the axis."""

    @abstractmethod
    def _off(self, k: int, deadline_ns: int) -> None: ...

    @abstractmethod
    def _request(self, k: int, state: int) -> None: ...

    @abstractmethod
    def _feed(self, k: int) -> None:
        """Feeds the watchdog and changes nothing."""

    @abstractmethod
    def _clear(self, k: int) -> None: ...

    @abstractmethod
    def _ask(self, deadline_ns: int) -> None:
        """Asks all drives for feedback; `_pending` counts the answers to come."""

    @abstractmethod
    def _look(self, deadline_ns: int) -> None:
        """As `_ask`, without feeding a watchdog."""

    @abstractmethod
    def _command(
        self, angles: Sequence[float], speeds: Sequence[float], efforts: Sequence[float], deadline_ns: int
    ) -> None:
        """Sends a command by the mode, and asks for feedback."""

    @abstractmethod
    def _take(self, item: Any) -> None:
        """What came over the line."""

    @abstractmethod
    def _called(self, k: int) -> str:
        """The drive in words: "node 3", "axis 0"."""

    @abstractmethod
    def _slot_of(self, mode: str) -> tuple[float, float]:
        """The largest effort and the step that the slot of a mode takes [N·m]."""

    # --- opening ------------------------------------------------------------------------------------

    def _check_limits(self, k: int) -> None:
        """The rig's against the drive's own; those that are infinite ask for nothing."""
        get = self._get
        current = get(k, "config.motor.current_soft_max") * get(k, "config.motor.torque_constant")
        low, high = self._torques[k]
        effort = min(current, high, -low)
        speed = get(k, "controller.config.vel_limit")
        if self._mode == "effort" and get(k, "controller.config.enable_torque_mode_vel_limit"):
            effort = min(effort, get(k, "controller.config.vel_gain") * speed)
        size = self._size[k]
        for what, unit, limit, most, keys in (
            ("effort", "N·m", self.limits.effort[k], effort * size, "current_soft_max, torque_soft_max"),
            ("velocity", "rad/s", self.limits.velocity[k], speed * TURN / size, "vel_limit"),
        ):
            if np.isfinite(limit) and limit > most * (1 + 1e-6):
                allowed = f"the guard allows {limit:.6g} {unit}, {self._called(k)} only {most:.6g} {unit} ({keys})"
                raise self._wrong(k, f"{allowed}; lower joints.{self.joints[k]}.limits.{what} or raise the drive's own")

    def _fit_slot(self, mode: str) -> None:
        limit, step = self._slot_of(mode)
        self.slot.limit[:], self.slot.quantum[:] = limit * self._size, step * self._size

    def _leave(self, k: int) -> None:
        """Only an axis that is off for certain gets its own torque limits back."""
        if int(self._get(k, "current_state", GOODBYE_TIME)) == codes.IDLE:
            for path, own, lowered in zip(SOFT, self._torques[k], self._lowered(k), strict=True):
                if own != lowered:
                    self._set(k, path, own)

    def _lowered(self, k: int) -> tuple[float, float]:
        """The soft limits of the torque that keep an axis within the guard's: its own loops know of no other."""
        (low, high), limit = self._torques[k], float(self.limits.effort[k] / self._size[k])
        return max(low, -limit), min(high, limit)

    # --- switching on -------------------------------------------------------------------------------

    def _configure(self, mode: str) -> None:
        """The watchdog before everything else, then the control mode; faults are not cleared."""
        for k in range(len(self.joints)):
            if fault := self._fault_of(k):
                self.latched = True
                raise self._wrong(k, f"{self._called(k)} has a fault: {codes.describe(fault)}")
            self._insist(k, "config.watchdog_timeout", self.watchdog)
            self._insist(k, "config.enable_watchdog", 1.0)
            for path, own, lowered in zip(SOFT, self._torques[k], self._lowered(k), strict=True):
                if own != lowered:
                    self._insist(k, path, lowered)
            self._insist(k, "controller.config.input_mode", codes.PASSTHROUGH)
            self._insist(k, "controller.config.control_mode", CONTROL[mode])
        self._mode = mode
        self._fit_slot(mode)

    def _fault_of(self, k: int) -> int:
        """What is wrong now, and what switched the axis off."""
        return int(self._get(k, "active_errors")) | int(self._get(k, "disarm_reason"))

    def _insist(self, k: int, path: str, value: float) -> None:
        """Writes and reads back, because not every firmware confirms."""
        self._set(k, path, value)
        now_is = self._get(k, path)
        if np.float32(now_is) != np.float32(value):
            raise self._wrong(k, f"{self._called(k)} did not take axis0.{path} = {value:g}; it is {now_is:g}")

    def _home(self, k: int) -> None:
        """The drive's own homing, bounded by a time-out."""
        self._request(k, codes.HOMING)
        done = self._polled(k, lambda state: state != codes.HOMING)
        if not self._wait(done, self._params.homing_timeout, self._feed_all):
            seconds = self._params.homing_timeout
            raise self._wrong(k, f"{self._called(k)} was not home after {seconds:g} s; look at its end stop")
        result = int(self._get(k, "procedure_result"))
        if not self._get(k, "is_homed"):
            fault = int(self._get(k, "disarm_reason"))
            why = codes.describe(fault) if fault else f"procedure result {result}; look at its end stop"
            raise self._wrong(k, f"{self._called(k)} did not find home: {why}")

    def _switch_on(self, mode: str) -> None:
        """Hold what is measured with zero effort, then close the loops."""
        count = len(self.joints)
        self._heard_ns = [0] * count
        if not self._wait(lambda: 0 not in self._heard_ns, ANSWER_TIME, lambda: self._ask(now() + RETRY_NS)):
            raise self._mute(self._heard_ns.index(0))
        unknown = np.flatnonzero(~np.isfinite(self._angle + self._speed))
        if len(unknown):
            raise self._wrong(
                int(unknown[0]), f"{self._called(int(unknown[0]))} knows no position; look at its encoder"
            )
        self._hold()
        for k in range(count):
            self._check_halt()
            self._request(k, codes.CLOSED_LOOP)
        for k in range(count):
            done = self._polled(k, lambda state: state == codes.CLOSED_LOOP)
            if not self._wait(done, ARM_TIME, self._hold):
                fault = self._fault_of(k)
                state = codes.STATES.get(int(self._get(k, "current_state")), "an unknown state")
                why = codes.describe(fault) if fault else f"it is in {state}; is it calibrated?"
                raise self._wrong(k, f"{self._called(k)} did not switch on within {ARM_TIME:g} s: {why}")
            self._state[k], self._error[k] = codes.CLOSED_LOOP, 0
        self._hold()
        self._on = True
        self._check_halt()

    def _hold(self) -> None:
        zeros = [0.0] * len(self.joints)
        self._command(self._angle.tolist(), zeros, zeros, now() + RETRY_NS)

    def _feed_all(self) -> None:
        for k in range(len(self.joints)):
            self._feed(k)

    def _polled(self, k: int, fits: Callable[[int], bool]) -> Callable[[], bool]:
        """Asks the drive for its state whenever it is called."""

        def done() -> bool:
            self._check_halt()
            return fits(int(self._get(k, "current_state")))

        return done

    def _check_open(self) -> None:
        if not self._opened:
            raise RunError(f"the drives of {', '.join(self.joints)} are not open; open the driver first")

    def _check_halt(self) -> None:
        if self._halted:
            raise RunError(f"the drives of {', '.join(self.joints)} were stopped while they were switched on")

    # --- waiting, errors ----------------------------------------------------------------------------

    def _wait(self, done: Callable[[], bool], seconds: float, again: Callable[[], None]) -> bool:
        """Whether it is done in time; `again` is called first and from time to time, often enough for the watchdog."""
        pause = min(RETRY_NS, int(self.watchdog * 0.25e9))
        end = now() + int(seconds * 1e9)
        while True:
            again()
            until = now() + pause
            while not done():
                item = self.link.receive(until) if now() < until else None
                if item is None:
                    break
                self._take(item)
            else:
                return True
            if now() >= end:
                return False

    def _drain(self, deadline_ns: int) -> None:
        """Until all answers are there or the deadline; then what else has come."""
        receive, take = self.link.receive, self._take
        while self._pending > 0:
            item = receive(deadline_ns)
            if item is None:
                self._time_ns = max(self._time_ns, deadline_ns)
                return
            take(item)
        for _ in range(MOST_ITEMS):
            item = receive(0)
            if item is None:
                return
            take(item)

    def _catch_up(self) -> None:
        """Take what has gathered while nobody listened; of what did not fit into the line's buffer nothing is known."""
        for _ in range(MOST_WAITING):
            if (item := self.link.receive(0)) is None:
                break
            self._take(item)
        self._since_ns = self._read_ns = now()

    def _own_fault(self, k: int) -> int:
        """What the drive does not call an error."""
        if self._on and self._state[k] != codes.CLOSED_LOOP:
            return codes.FELL_OUT
        return codes.SILENT if self._time_ns - max(self._beat_ns[k], self._since_ns) > SILENCE_NS else 0

    def _wrong(self, k: int, what: str) -> CosimError:
        """While opening the rig is to blame, later the run."""
        name = self.joints[k]
        if self._opened:
            return RunError(f"joint '{name}': {what}")
        return InputError(what, self._place("joints", name, self.wiring[k].key))

    def _mute(self, k: int) -> CosimError:
        key, rate = self.wiring[k].key, "bit rate" if self._params.bus is not None else "baud rate"
        called, line = self._called(k), self._params.link.line
        return self._wrong(k, f"no answer from {called} on {line}; check its power, the {key} and the {rate}")
