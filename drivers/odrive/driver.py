"""Base of the ODrive drivers of both transports."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import RunError
from cosim.core.units import TURN
from cosim.plugins.drivers.common.drive_checks import ENABLE_NS, Item
from cosim.plugins.drivers.common.driver import RETRY_NS, STOP_NS, MotorDriver
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.params import JointParams, Params
from cosim.plugins.drivers.transport import Connection

CONTROL = {
    "effort": codes.TORQUE_CONTROL,
    "velocity": codes.VELOCITY_CONTROL,
    "position": codes.POSITION_CONTROL,
}

ANSWER_TIME, RESTORE_TIME = 1.0, 0.1  # s, for an answer while opening and while closing
SOFT_LIMITS = ("config.torque_soft_min", "config.torque_soft_max")
WATCHDOG = ("config.enable_watchdog", "config.watchdog_timeout")
RESTORED = (*SOFT_LIMITS, *WATCHDOG)  # on closing
WRITES = 5  # of a parameter, until it is read back as written
SILENCE_NS = 500_000_000  # without a heartbeat
READ_GAP_NS = 250_000_000  # between reads: longer ones may have lost heartbeats on this side
MAX_BACKLOG = 8192  # items taken in a row after a time without reading
MAX_ITEMS = 1024  # items taken in one read besides the awaited ones


class ODrive(MotorDriver[Item, JointParams]):
    """Joints behind the ODrives on one connection."""

    def __init__(self, params: Params, context: DriverContext, link: Connection[Item]) -> None:
        super().__init__(context, link, params.watchdog)
        self._params = params
        self._size = np.abs(self.units.scale)
        self._addresses = [joint.address for joint in self._wiring]
        self._own: list[dict[str, float]] = []  # settings of the drives before `enable`, of RESTORED
        self._reset()

    def _reset(self) -> None:
        """Discard everything that the drives reported."""
        count = len(self.joints)
        self._heartbeat_ns = [0] * count
        self._axis_state, self._error = [codes.UNDEFINED] * count, [0] * count
        self._time_ns = 0  # of the last item
        self._since_ns = self._read_ns = 0  # start of reading without a gap; last read
        self._answers_due = 0  # awaited answers

    # --- opening ------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._reset()
        self._identify()
        self._own = [{path: self._get(k, path) for path in RESTORED} for k in range(len(self.joints))]
        for k in range(len(self.joints)):
            self.link.send(self._idle_item(k), self._now() + STOP_NS)
            self._check_limits(k, self._own_limits(k))
        self._set_feedforward(self._mode)
        self._await_feedback()

    def _own_limits(self, k: int) -> list[tuple[str, float, str]]:
        get = self._get
        current = get(k, "config.motor.current_soft_max") * get(k, "config.motor.torque_constant")
        low, high = (self._own[k][path] for path in SOFT_LIMITS)
        effort = min(current, high, -low)
        velocity = get(k, "controller.config.vel_limit")
        if self._mode == "effort" and get(k, "controller.config.enable_torque_mode_vel_limit"):
            effort = min(effort, get(k, "controller.config.vel_gain") * velocity)
        return [("effort", effort, "current_soft_max, torque_soft_max"), ("velocity", velocity * TURN, "vel_limit")]

    def _set_feedforward(self, mode: str) -> None:
        limit, resolution = self._feedforward_of(mode)
        self.feedforward.limit[:], self.feedforward.resolution[:] = limit * self._size, resolution * self._size

    def _await_feedback(self) -> None:
        """Wait for feedback of every drive that is newer than this call."""
        self._forget_times()

        def done() -> bool:
            self._measure()
            return 0 not in self._feedback.t_ns

        if not self._wait(done, ANSWER_TIME, lambda: self._request_feedback(self._now() + RETRY_NS)):
            raise self._no_answer(self._feedback.t_ns.index(0))

    def _disconnect(self) -> None:
        """Restore the settings of drives that report to be off; another one keeps its watchdog and its limits."""
        for k in range(len(self.joints)):
            with suppress(RunError):
                if int(self._get(k, "current_state", RESTORE_TIME)) == codes.IDLE:
                    for path, own in self._own[k].items():
                        if self._get(k, path, RESTORE_TIME) != own:
                            self._set_checked(k, path, own)

    def _lowered(self, k: int) -> dict[str, float]:
        """Soft torque limits within the guard's limit, for the axis' own control loops."""
        limit = float(self.limits.effort[k] / self._size[k])
        low, high = SOFT_LIMITS
        return {low: max(self._own[k][low], -limit), high: min(self._own[k][high], limit)}

    # --- switching on and off -----------------------------------------------------------------------

    def _prepare(self, mode: str) -> None:
        """Take the items received since the last read; the buffer may have lost some."""
        for _ in range(MAX_BACKLOG):
            if (item := self.link.receive(0)) is None:
                break
            self._take(item)
        self._since_ns = self._read_ns = self._now()

    def _fault_before_enable(self, k: int) -> int:
        """The active errors, and those that switched the axis off."""
        return int(self._get(k, "active_errors")) | int(self._get(k, "disarm_reason"))

    def _switch_on(self, mode: str) -> None:
        joints = range(len(self.joints))
        for k in joints:
            self._configure(k, mode)
        self._set_feedforward(mode)
        for k in joints:
            if self._wiring[k].homing:
                self._home(k)
        self._await_feedback()
        for k, (position, velocity) in enumerate(zip(self._feedback.position, self._feedback.velocity, strict=True)):
            if not math.isfinite(position + velocity):
                raise self._drive_error(k, f"{self._drive_name(k)} has no position estimate; check its encoder")
        self._hold()
        for k in joints:
            done = self._reaches(k, lambda state: state == codes.CLOSED_LOOP)
            if not self._wait(done, ENABLE_NS * 1e-9, lambda k=k: self._start(k)):
                fault = self._fault_before_enable(k)
                state = codes.STATES.get(int(self._get(k, "current_state")), "an unknown state")
                raise self._not_on(k, codes.describe(fault) if fault else f"it is in {state}; is it calibrated?")
            self._note_on(k)
        self._hold()

    def _note_on(self, k: int) -> None:
        """The axis has reported its closed loop."""
        self._axis_state[k], self._error[k] = codes.CLOSED_LOOP, 0

    def _start(self, k: int) -> None:
        """Request the closed loop of an axis, again while it is idle, because a message may be lost; feed all."""
        idle = int(self._get(k, "current_state")) == codes.IDLE
        self.check_not_stopped()
        if idle:
            self._request_state(k, codes.CLOSED_LOOP)
        self._hold()

    def _configure(self, k: int, mode: str) -> None:
        """Set the watchdog first, then limits and control mode; faults are not cleared."""
        enable, timeout = WATCHDOG
        self._set_checked(k, timeout, self.watchdog)
        self._set_checked(k, enable, 1.0)
        for path, lowered in self._lowered(k).items():
            if self._own[k][path] != lowered:
                self._set_checked(k, path, lowered)
        self._set_checked(k, "controller.config.input_mode", codes.PASSTHROUGH)
        self._set_checked(k, "controller.config.control_mode", CONTROL[mode])

    def _set_checked(self, k: int, path: str, value: float) -> None:
        """Write and read back, because not every firmware confirms and a message may be lost."""
        actual = np.nan
        for _ in range(WRITES):
            self._set(k, path, value)
            actual = self._get(k, path)
            if np.float32(actual) == np.float32(value):
                return
        raise self._drive_error(k, f"{self._drive_name(k)} did not accept axis0.{path} = {value:g}; it is {actual:g}")

    def _home(self, k: int) -> None:
        """The drive's own homing, with a time-out."""
        self._request_state(k, codes.HOMING)
        done = self._reaches(k, lambda state: state != codes.HOMING)
        if not self._wait(done, self._params.homing_timeout, self._feed_all):
            seconds = self._params.homing_timeout
            raise self._drive_error(
                k, f"{self._drive_name(k)} did not find home within {seconds:g} s; check its end switch"
            )
        result = int(self._get(k, "procedure_result"))
        if not self._get(k, "is_homed"):
            fault = int(self._get(k, "disarm_reason"))
            why = codes.describe(fault) if fault else f"procedure result {result}; check its end switch"
            raise self._drive_error(k, f"{self._drive_name(k)} did not find home: {why}")

    def _hold(self) -> None:
        with self._gate:
            self.check_not_stopped()
            self._send_hold(self._now() + RETRY_NS)

    def _feed_all(self) -> None:
        for k in range(len(self.joints)):
            self._feed(k)

    def _reaches(self, k: int, accepts: Callable[[int], bool]) -> Callable[[], bool]:
        """A function that reads the axis' state and returns whether it is accepted."""

        def done() -> bool:
            self.check_not_stopped()
            return accepts(int(self._get(k, "current_state")))

        return done

    def _stop_items(self) -> Iterator[Item]:
        for k in range(len(self.joints)):
            yield self._idle_item(k)

    def _clear_faults(self) -> None:
        self._prepare(self._mode)
        for k in range(len(self.joints)):
            cleared = self._wait(lambda k=k: not self._fault_before_enable(k), ANSWER_TIME, lambda k=k: self._clear(k))
            if not cleared:
                raise self._fault_persists(k, self._fault_before_enable(k))
            self._error[k] = 0

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The manufacturer's name of the fault and the fix."""
        return codes.describe(int(code))

    # --- the cycle ----------------------------------------------------------------------------------

    def _receive(self, deadline_ns: int) -> None:
        """Wait for all awaited answers, at most until the deadline; then take the other received items."""
        time_ns, receive, take = self._now(), self.link.receive, self._take
        if time_ns - self._read_ns > READ_GAP_NS:
            self._since_ns = time_ns
        self._read_ns = time_ns
        while not self._is_answered():
            item = receive(deadline_ns)
            if item is None:
                self._time_ns = max(self._time_ns, deadline_ns)
                return
            take(item)
        for _ in range(MAX_ITEMS):
            item = receive(0)
            if item is None:
                return
            take(item)

    def _is_answered(self) -> bool:
        """Whether no answer is awaited."""
        return self._answers_due <= 0

    def _fault_codes(self) -> list[int]:
        return [error or self._undeclared_fault(k) for k, error in enumerate(self._error)]

    def _undeclared_fault(self, k: int) -> int:
        """Faults that the drive does not report as errors."""
        if self._is_on and self._axis_state[k] != codes.CLOSED_LOOP:
            return codes.LEFT_CLOSED_LOOP
        return codes.SILENT if self._time_ns - max(self._heartbeat_ns[k], self._since_ns) > SILENCE_NS else 0

    # --- methods of the transports --------------------------------------------------------------------

    @abstractmethod
    def _identify(self) -> None:
        """Find every drive and check its firmware. Raise InputError."""

    @abstractmethod
    def _get(self, k: int, path: str, seconds: float = ANSWER_TIME) -> float:
        """A parameter of the axis. Raise `_no_answer` after about that time."""

    @abstractmethod
    def _set(self, k: int, path: str, value: float) -> None:
        """Write a parameter of the axis."""

    @abstractmethod
    def _idle_item(self, k: int) -> Item:
        """The item that switches the axis off."""

    @abstractmethod
    def _request_state(self, k: int, state: int) -> None: ...

    @abstractmethod
    def _feed(self, k: int) -> None:
        """Feed the watchdog and change nothing."""

    @abstractmethod
    def _clear(self, k: int) -> None: ...

    @abstractmethod
    def _request_feedback(self, deadline_ns: int) -> None:
        """Request feedback of all drives, whose answers are awaited then."""

    @abstractmethod
    def _feedforward_of(self, mode: str) -> tuple[float, float]:
        """(limit, resolution) of the feedforward field in a mode [N·m]."""
