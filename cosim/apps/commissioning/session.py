"""The life of a commissioning step: check all drives with their motors off, then move chosen joints under the guard.

Only the drives of the chosen joints are loaded and switched on, all others stay off. Whatever goes wrong (a limit, a
fault, late feedback, a late program, the emergency stop, Ctrl-C, a lost terminal) raises, and motors are off then; the
reason of a stop is a sentence with the fix, by the table of limits.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from cosim.control import differentiated, plausibility, standstill
from cosim.control.differentiated import SampleTrack
from cosim.control.guard import Guard, check
from cosim.control.limits import CODES, LIMIT_OF, NOT_FINITE, OK, SATURATE, STALE, STOP
from cosim.core.driver_contract import AddedTurns
from cosim.core.errors import InputError, RunError, did_you_mean
from cosim.core.types import COMMAND, Array, JointCommand, JointState, Limits, Numeric, requested_effort
from cosim.core.units import quantity_unit
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.enabling import HoldCommands, enable_all
from cosim.execution.hardware.estop import open_estop
from cosim.execution.hardware.manager import FIRST_FEEDBACK_NS, PowerOnPlace, no_position
from cosim.execution.motion_plan import PlannedMotion
from cosim.execution.rest import wait_for_rest
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.wiring.detect_family import family_detector
from cosim.rig.wiring.drivers import own_items
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.loop.clocks import Clock, native_clock
from cosim.simulation.tick.tick_functions import GUARD_INPUTS, HAPTIC_GUARD_INPUTS, REACTION_INPUTS, REAL_GUARD_INPUTS

READ_NS = 10_000_000  # deadline of a reply outside of the cycle
VALID_NS = 20_000_000  # validity of a command after its deadline, as in a run
LOOK_PAUSE, LONGEST_WAIT = 0.2, 30.0  # s between two looks at joints that are off; for their rest
KEYS = {code: key for key, code in CODES.items()}


@dataclass(frozen=True)
class MotionBounds:
    """Bounds of a motion beside the limits of the rig, SI, for all joints. travel: from where a joint was switched on;
    in_range: whether the position limits of the rig hold too; ignored: limits of the rig that do not apply."""

    effort: float = math.inf
    velocity: float = math.inf
    travel: float = math.inf
    in_range: bool = True
    ignored: frozenset[str] = frozenset()


class CommissioningSession:
    """The real joints of a rig. clock: of the connections to the drives."""

    def __init__(self, rig: WiredRig, what: str, clock: Clock | None = None) -> None:
        """what: is done with joints, for the message. Raises InputError for a rig without real joints."""
        self.rig, self.clock = rig, native_clock() if clock is None else clock
        self.specs = {name: spec for spec in rig.spec.drivers if not spec.loads for name in spec.joints}
        if not self.specs:
            raise InputError(f"nothing to {what}: all joints are simulated", str(rig.spec.path))
        self.joints = tuple(name for name in rig.joints if name in self.specs)
        self.period_ns = rig.spec.schedule.step_ns

    def require(self, name: str) -> None:
        """Raises InputError for a joint that is unknown or not real."""
        path = str(self.rig.spec.path)
        if name not in self.rig.joints:
            raise InputError(f"unknown joint '{name}'{did_you_mean(name, self.joints)}", path)
        if name not in self.specs:
            known = ", ".join(self.joints)
            raise InputError(f"joint '{name}' is simulated; real joints: {known}", path)

    def unit(self, name: str) -> str:
        return self.rig.plant.model.dof_units[self.rig.joints.index(name)]

    def group(
        self, spec: DriverSpec, joints: Sequence[str], mode: str | None = None, limits: Limits | None = None
    ) -> DriverGroup:
        """The driver of some of the joints of a section, in a mode and with limits (default: the rig's); not
        open."""
        index = np.array([self.rig.joints.index(name) for name in joints], dtype=int)
        whole = self.rig.contexts[spec.name]
        places = [spec.joints.index(name) for name in joints]
        context = replace(
            whole,
            joints=tuple(joints),
            wiring=tuple(whole.wiring[k] for k in places),
            torque_constants=tuple(whole.torque_constants[k] for k in places if whole.torque_constants),
            turns=tuple(whole.turns[k] for k in places),
            limits=whole.limits.at(np.array(places, dtype=int)) if limits is None else limits,
            mode=mode or spec.mode,
        )
        driver = spec.family.load(spec.plugin.params, context)
        driver.link.reserve(own_items(spec, self.rig.contexts[spec.name]))
        return DriverGroup(driver, index, context.mode, real=True, detect_family=family_detector(spec, context))

    def at_rest(self, tolerance: Mapping[str, float]) -> dict[str, float]:
        """As `check`, when no real joint moves by more than its tolerance any more.

        Raises RunError for one that moves while it is off.
        """

        def mover(before: Mapping[str, float], now: Mapping[str, float]) -> str:
            return next((name for name in self.joints if not abs(now[name] - before[name]) <= tolerance[name]), "")

        def wait(seconds: float) -> None:
            self.clock.wait(self.clock.now() + round(seconds * 1e9))

        positions, moving = wait_for_rest(self.check, mover, wait, LOOK_PAUSE, LONGEST_WAIT)
        if moving:
            what = f"joint '{moving}' keeps moving while its motor is off"
            raise RunError(f"{what}; support it, or wait until it is at rest")
        return positions

    def check(self) -> dict[str, float]:
        """Joint -> position, of all real joints [rad or m]; all motors are off, load motors too.

        Raises InputError for a drive that does not answer or is another one, RunError for one without a position.
        """
        positions: dict[str, float] = {}
        for spec in self.rig.spec.drivers:
            group = self.group(spec, spec.joints)
            state = JointState.zeros(len(spec.joints))
            try:
                with group.named():
                    group.open()
                    _first_feedback(group, state, self.clock)
            finally:
                group.driver.close()
            if not spec.loads:
                positions |= dict(zip(spec.joints, state.position.tolist(), strict=True))
        return {name: positions[name] for name in self.joints}

    def doubtful_turns(self, names: Sequence[str]) -> list[str]:
        """Where those joints stand whose drives may be on another turn than they report, a line each; motors are off.
        Raises what `check` raises."""
        doubtful = [name for name in names if name in self.rig.contexts[self.specs[name].name].ambiguous]
        positions = self.check() if doubtful else {}
        place = PowerOnPlace(AddedTurns(), ambiguous=True)
        motions = [PlannedMotion(name, self.unit(name), positions[name], power_on=place) for name in doubtful]
        return [f"  {motion.doubt}" for motion in motions]

    def clear_faults(self) -> None:
        """Clear faults that real drives report; motors are off. Raises InputError, and RunError for a fault that
        persists."""
        for spec in self.rig.spec.drivers:
            group = self.group(spec, spec.joints)
            try:
                with group.named():
                    group.open()
                    group.clear()
            finally:
                group.driver.close()

    @contextmanager
    def live(
        self,
        joints: Sequence[str],
        bounds: MotionBounds,
        mode: str | None = None,
        abort: Callable[[], str] = lambda: "",
    ) -> Iterator[LiveJoints]:
        """Switch these joints on, in a mode (default: the rig's); they are off after the block.

        abort: called in every tick, a reason to stop or "". Raises InputError and RunError.
        """
        by_spec = {self.specs[name].name: self.specs[name] for name in joints}
        groups = [
            self.group(spec, [name for name in joints if self.specs[name] is spec], mode) for spec in by_spec.values()
        ]
        order = [name for group in groups for name in group.driver.joints]
        with ExitStack() as stack:
            estop = self.rig.spec.guard.estop
            pressed = lambda: ""  # noqa: E731
            if estop is not None:
                place = self.rig.spec.source.place
                pressed = open_estop(estop, lambda *keys: place(("guard", "estop", *keys)), stack).pressed
            for group in groups:
                stack.callback(_close, group)
                with group.named():
                    group.open()
            live = LiveJoints(self, order, groups, bounds, lambda: pressed() or abort())
            stack.callback(live.stop)
            live.enable()
            yield live


class LiveJoints:
    """Joints that are switched on: in every tick `read`, then `write`. Arrays (n,) are in the order of `names`; t: the
    time since they were switched on [s], dt: since the last tick, age: of their samples [s] at that time."""

    def __init__(
        self,
        session: CommissioningSession,
        names: Sequence[str],
        groups: Sequence[DriverGroup],
        bounds: MotionBounds,
        abort: Callable[[], str],
    ) -> None:
        self.names, self.alarms = tuple(names), np.zeros(len(names))
        self.t = self.dt = 0.0
        n, rig = len(names), session.rig
        self.index = np.array([rig.joints.index(name) for name in names], dtype=int)
        self.units = tuple(session.unit(name) for name in names)
        self.position, self.velocity, self.effort = np.zeros(n), np.zeros(n), np.zeros(n)
        self.temperature, self.age = np.full(n, np.nan), np.zeros(n)
        self.request, self.start = np.zeros(n), np.zeros(n)
        self._session, self._groups, self._bounds, self._abort = session, tuple(groups), bounds, abort
        self._clock, self._period_ns = session.clock, session.period_ns
        self._stale = rig.spec.guard.stale
        self._states = [JointState.zeros(len(group.joint_index)) for group in groups]
        self._commands = [JointCommand.zeros(len(group.joint_index)) for group in groups]
        self._stalled, self._unseen = np.zeros(n), np.zeros(n)
        self._new = np.zeros(n, bool)  # whether a new sample came
        self._before = (np.zeros(n), np.zeros(n))  # position and reference of the last tick
        self._last_ns = [0] * len(groups)
        self._track = SampleTrack(**differentiated.initial(n))
        self._begun_ns = self._due_ns = 0
        self.guard = _guard_of(rig.guard, self.index, bounds, self.start)

    @property
    def period(self) -> float:
        return self._period_ns * 1e-9

    def enable(self) -> None:
        """Switch the motors on. Raises RunError; motors are off then."""
        for group, state in zip(self._groups, self._states, strict=True):
            with group.named():
                _first_feedback(group, state, self._clock)
        hold = HoldCommands([group.driver for group in self._groups])
        try:
            if len(self._groups) == 1:
                self._groups[0].enable()
            else:
                hold.begin()
                thread = threading.Thread(target=hold.run, daemon=True)
                thread.start()
                enable_all(len(self._groups), lambda k: self._groups[k].enable(), hold, self.stop)
                hold.end()
                thread.join()
                hold.check()
        except BaseException:
            hold.end()
            self.stop()
            raise
        self._begun_ns = self._due_ns = self._clock.now()
        self._take()
        self.start[:] = self.position
        self.guard = _guard_of(self._session.rig.guard, self.index, self._bounds, self.start)
        self._before = (self.position.copy(), self.position.copy())

    def stop(self) -> None:
        """Motors off; never raises."""
        for group in self._groups:
            with suppress(Exception):
                group.driver.stop()

    def read(self) -> None:
        """Wait for the tick and take the feedback. Raises RunError at any doubt."""
        self._due_ns += self._period_ns
        late_ns = self._clock.now() - self._due_ns
        if late_ns > self._stale * 1e9:
            limit = f"more than the {self._stale * 1e3:.6g} ms of guard.stale"
            raise RunError(f"the program was {late_ns * 1e-6:.4g} ms late, {limit}; see cosim doctor")
        if late_ns > 0:
            self._due_ns += late_ns // self._period_ns * self._period_ns
        self._clock.wait(self._due_ns)
        if cause := self._abort():
            raise RunError(cause)
        self._take()

    def _take(self) -> None:
        now, is_first = self._clock.now, not any(self._last_ns)
        interval = np.zeros(len(self.names))
        for k, (group, state) in enumerate(zip(self._groups, self._states, strict=True)):
            own = [self.names.index(name) for name in group.driver.joints]
            with group.named():
                group.driver.read(state, now() + self._period_ns // 2)
            group.check_faults(state)
            self._check_jump(k, group, state, own)
            interval[own] = 0.0 if is_first else (state.t_ns - self._last_ns[k]) * 1e-9
            for name in ("position", "velocity", "effort", "temperature"):
                getattr(self, name)[own] = getattr(state, name)
            self.age[own] = (now() - state.t_ns) * 1e-9
            self._new[own] = state.t_ns != self._last_ns[k]
            self._last_ns[k] = state.t_ns
        self._track = differentiated.followed(self._track, self.position, interval, self.period, is_first)
        before, self.t = self.t, (now() - self._begun_ns) * 1e-9
        self.dt = self.t - before

    def _check_jump(self, k: int, group: DriverGroup, state: JointState, own: Sequence[int]) -> None:
        if not self._last_ns[k] or state.t_ns == self._last_ns[k]:
            return
        elapsed = (state.t_ns - self._last_ns[k]) * 1e-9 + self.period
        fastest = self._session.rig.limits.velocity[self.index[own]]
        for j in np.flatnonzero(plausibility.jumped(self.position[own], state.position, elapsed, fastest))[:1]:
            distance = abs(float(state.position[j] - self.position[own][j]))
            what = f"joint '{group.driver.joints[j]}' jumped by {distance:.4g} {self.units[own[j]]}"
            raise RunError(f"{what} in {elapsed * 1e3:.4g} ms; check its encoder and its supply")

    def write(self, reference: Array | None = None, **command: Array | float) -> None:
        """Send a command that the guard has checked; fields of JointCommand, by default the measured position without
        effort. reference: position that the joints follow, default: the measured one.

        Raises RunError for a limit that stops, with the reason.
        """
        n = len(self.names)
        follows = self.position if reference is None else reference
        defaults: dict[str, Array | float] = {name: 0.0 for name in COMMAND} | {"position": self.position}
        wanted = {name: np.broadcast_to(value, n) + 0.0 for name, value in {**defaults, **command}.items()}
        limits = self.guard.bounds["effort"], self.guard.bounds["velocity"]
        pushed = np.maximum(np.abs(self.request), np.nan_to_num(np.abs(self.effort)))
        paths = (self._before[0], self.position), (self._before[1], follows)
        stalled = standstill.stalled_time(self._stalled, pushed, self.velocity, limits, self.period)
        unseen = standstill.unseen_motion(self._unseen, *paths, self.velocity, limits[1], self.period)
        # without a new sample nothing is known of the motion
        self._stalled, self._unseen = (
            np.where(self._new, *pair) for pair in ((stalled, self._stalled), (unseen, self._unseen))
        )
        self._before = (self.position.copy(), np.where(self._new, follows, self._before[1]))
        feedback = {
            **{name: getattr(self, name) for name in ("position", "velocity", "temperature", "age", "request")},
            **{"reference": follows, "stalled_time": self._stalled, "unseen_motion": self._unseen},
            "new": self._new,
            "judged_velocity": differentiated.larger(self.velocity, self._track.bound),
            "armed": self.t,
        }
        names = (*GUARD_INPUTS, *REACTION_INPUTS, *REAL_GUARD_INPUTS, *HAPTIC_GUARD_INPUTS)
        feedback |= {name: np.zeros(n) for name in names if name not in feedback}  # of whole rigs only
        safe, faults, alarms = check(self.guard, feedback, wanted)
        self.alarms = np.asarray(alarms)
        if (np.asarray(faults) != OK).any():
            raise RunError(fault_reason(self, np.asarray(faults), feedback, safe, wanted))
        self._send({name: np.asarray(value, dtype=float) for name, value in safe.items()})

    def _send(self, safe: Mapping[str, Array]) -> None:
        gains = safe["kp"] * (safe["position"] - self.position) + safe["kd"] * (safe["velocity"] - self.velocity)
        self.request = gains + safe["effort"]
        deadline = self._due_ns + self._period_ns
        for group, command in zip(self._groups, self._commands, strict=True):
            own = [self.names.index(name) for name in group.driver.joints]
            for name in COMMAND:
                getattr(command, name)[:] = safe[name][own]
            command.valid_until_ns = max(deadline, self._clock.now()) + VALID_NS
            with group.named():
                group.driver.write(command, max(deadline, self._clock.now() + self._period_ns // 2))


def _guard_of(whole: Guard, index: Array, bounds: MotionBounds, start: Array) -> Guard:
    """The guard of the rig for these joints, within tighter bounds; limits of position and velocity stop."""
    at = {key: values[index].copy() for key, values in whole.bounds.items()}
    if not bounds.in_range:
        at["lower"], at["upper"] = np.full(len(index), -np.inf), np.full(len(index), np.inf)
    at["effort"] = np.minimum(at["effort"], bounds.effort)
    at["velocity"] = np.minimum(at["velocity"], bounds.velocity)
    at["lower"] = np.maximum(at["lower"], start - bounds.travel)
    at["upper"] = np.minimum(at["upper"], start + bounds.travel)
    for key in bounds.ignored:
        for name in LIMIT_OF[key].bound_keys:
            at[name] = np.full(len(index), np.inf)
    forced = {"position": STOP, "velocity": STOP, "effort": SATURATE}
    actions = {key: np.full(len(index), forced[key]) if key in forced else v[index] for key, v in whole.actions.items()}
    return replace(
        whole,
        bounds=at,
        actions=actions,
        stale=whole.stale[index],
        position_tolerance=whole.position_tolerance[index],
    )


def _first_feedback(group: DriverGroup, state: JointState, clock: Clock) -> None:
    """Read until all drives have reported. Raises RunError after FIRST_FEEDBACK_NS."""
    begun = clock.now()
    while state.t_ns < begun:
        if clock.now() - begun > FIRST_FEEDBACK_NS:
            raise RunError(no_position(group))
        group.driver.read(state, clock.now() + READ_NS)


def _close(group: DriverGroup) -> None:
    with suppress(Exception):
        group.driver.close()


class GuardedJoints(Protocol):
    """n joints with their guard. units: of their positions; age: of their samples [s]; period: of commands [s]."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    guard: Guard
    age: Array

    @property
    def period(self) -> float: ...


def fault_reason(
    live: GuardedJoints,
    faults: Array,
    feedback: Mapping[str, Numeric],
    safe: Mapping[str, Numeric],
    wanted: Mapping[str, Numeric],
) -> str:
    """The reason for the fault code that comes last in the order of precedence. feedback: of the guard; safe, wanted:
    the command that it allows, and the one that it was given."""
    k = int(np.argmax(faults))
    code, name = int(faults[k]), live.names[k]
    if code == STALE:
        age, limit = 1e3 * live.age[k], 1e3 * live.guard.stale[k]
        what = f"has sent no feedback for {age:.6g} ms, more than the {limit:.6g} ms of guard.stale"
        return f"joint '{name}' {what}; check its power, its cable and its bus"
    if code == NOT_FINITE:
        return f"joint '{name}' reports no number as its position or velocity; check its encoder"
    row, unit = LIMIT_OF[KEYS[code]], live.units[k]
    at = {key: float(np.asarray(value)[k]) for key, value in feedback.items() if np.ndim(value)}
    effort_unit = quantity_unit("joint effort", unit)
    measured = {key: np.asarray(feedback[key]) for key in ("position", "velocity")}
    effort, commanded = (float(np.asarray(requested_effort(command, measured))[k]) for command in (safe, wanted))
    figures = {
        "joint": name,
        "limit": row.show([float(live.guard.bounds[key][k]) for key in row.bound_keys], unit),
        "position": f"{at['position']:.6g} {unit}",
        "velocity": f"{at['judged_velocity']:.6g} {unit}/s",
        "effort": f"{effort:.6g} {effort_unit}",
        "commanded_effort": f"{commanded:.6g} {effort_unit}",
        "effort_rate": f"{abs(effort - at['request']) / live.period:.6g} {effort_unit}/s",
        "power": f"{abs(effort * at['judged_velocity']):.6g} W",
        "temperature": f"{at['temperature']:.6g} degC",
        "unseen_motion": f"{at['unseen_motion']:.6g} {unit}",
        "tracking_error": f"{abs(at['reference'] - at['position']):.6g} {unit}",
    }
    what = row.reason.format_map(defaultdict(lambda: "0", figures)).partition("; ")[0]  # others: of whole rigs only
    return f"joint '{name}' {what}"
