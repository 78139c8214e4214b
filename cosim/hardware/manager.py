"""All drivers of a rig: their feedback is written to the memory of a tick, their commands are read from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from cosim.control import plausibility
from cosim.errors import RunError
from cosim.hardware.driver_group import DriverGroup
from cosim.hardware.enabling import HoldCommands, enable_all
from cosim.tick.virtual_plant import VirtualPlant
from cosim.types import COMMAND, FEEDBACK, JointCommand, JointState

VALID_STEPS, VALID_NS = 5, 20_000_000  # validity of a command after its deadline: steps, at least ns
FIRST_FEEDBACK_NS = 100_000_000  # in which real joints must report their positions before the first command
FIRST_READS = 20  # in this time
LATE_STEPS = 3.0  # between two samples, from which on the later one was late
RECENT_NS = 1_000_000_000  # in which late feedback may be behind what looks like a fault


# of the samples of a driver: whether the last position is known; time of the last sample [ns], interval to the one
# before [s]; the last sample that was late
HISTORY = np.dtype([("known", "i8"), ("t_ns", "i8"), ("interval", "f8"), ("late_ns", "i8"), ("late_interval", "f8")])


class HardwareManager:
    """Reads and commands all drivers. A failure of one ends the run with its joints named."""

    def __init__(self, groups: Sequence[DriverGroup], plant: VirtualPlant) -> None:
        self.groups = tuple(groups)
        self.unsent = [0] * len(self.groups)  # commands that were too late to be sent
        self._states = [JointState.zeros(len(group.joint_index)) for group in self.groups]
        self._commands = [JointCommand.zeros(len(group.joint_index)) for group in self.groups]
        # parts of the memory
        self._command = {name: plant.view("command", name) for name in COMMAND}
        paths = (("measured", "position"), ("measured", "velocity"), ("measured_effort",))
        self._feedback = {name: plant.view(*path) for name, path in zip(FEEDBACK, paths, strict=True)}
        self._temperature, self._age = plant.view("temperature"), plant.view("age")
        self._sample_interval, self._sample_delay = plant.view("sample_interval"), plant.view("sample_delay")
        self._load_effort, self._load_interval = plant.view("load_effort"), plant.view("load_interval")
        self._load_feedback = {name: plant.view("load_measured", name) for name in ("velocity", "effort")}
        tick_model = plant.tick_model
        self._layout = tick_model.layout
        self.max_velocity, self.loads = tick_model.limits.velocity, tick_model.loads
        self._units = tick_model.plant.model.dof_units
        self.stale_ns = float(np.min(tick_model.guard.stale, initial=np.inf)) * 1e9
        self.read_ns = tick_model.step_ns // 2  # for the replies of real drives in a late tick
        self.step = tick_model.step
        self.valid_ns = max(VALID_STEPS * tick_model.step_ns, VALID_NS)
        self.history = np.zeros(len(self.groups), HISTORY)
        self.last_position = [np.zeros(len(group.joint_index)) for group in self.groups]  # if its history knows it
        self._disconnected: set[int] = set()  # real groups to connect again
        self._hold = HoldCommands([group.driver for group in self.groups if group.real])

    def place(self, *path: str) -> int:
        """Where a part of the memory begins."""
        return self._layout.place(*path).where.start

    # --- states ---

    def open(self) -> None:
        """Connect, motors off. When one fails, all are closed."""
        self._for_each(DriverGroup.open)

    def clear(self) -> None:
        """Clear faults that real drives report; motors stay off. When one persists, all are closed. Raises RunError."""
        self._for_each(DriverGroup.clear)

    def _for_each(self, action: Callable[[DriverGroup], object]) -> None:
        try:
            for group in self.groups:
                with group.named():
                    action(group)
        except BaseException:
            self.stop()
            self.close()
            raise

    def enable(self) -> None:
        """Enable the motors, real ones together. When one fails, all are off."""
        real = [group for group in self.groups if group.real]
        # drives with a lost connection are opened again: they may have lost power
        self._disconnected |= {k for k, group in enumerate(real) if group.disconnected()}

        def enable(k: int) -> None:
            with real[k].named():
                if k in self._disconnected:
                    real[k].driver.open()
                    self._disconnected.discard(k)
                real[k].enable()

        try:
            for group in self.groups:
                if not group.real:
                    with group.named():
                        group.enable()
            enable_all(len(real), enable, self._hold, self.stop)
        except BaseException:
            self.stop()
            raise

    def begin_hold(self) -> Callable[[], object] | None:
        """Before `enable`: a function that keeps real drives enabled with hold commands until `end_hold` or `stop`, for
        the thread of the loop. None without real drives."""
        if not any(group.real for group in self.groups):
            return None
        self._hold.begin()
        return self._hold.run

    def end_hold(self) -> None:
        """The first tick follows. Raises the error of a driver that got hold commands."""
        self._hold.end()
        self._hold.check()

    def stop(self) -> None:
        """Stop every driver; never raises."""
        self._hold.end()
        for group in self.groups:
            with suppress(Exception):
                group.driver.stop()

    def close(self) -> None:
        """Close every driver; never raises."""
        for group in self.groups:
            with suppress(Exception):
                group.driver.close()

    # --- the tick ---

    def read(self, until: int, now: Callable[[], int], due: int) -> None:
        """Read all feedback into the memory. until: the deadline, now: the time, due: of the tick [ns], on the clock of
        the drivers. Raises RunError for a fault of a drive and for feedback that is not plausible."""
        for k, (group, state) in enumerate(zip(self.groups, self._states, strict=True)):
            with group.named():
                # also in a late tick real drives have time to reply
                group.driver.read(state, max(until, now() + self.read_ns) if group.real else until)
            group.check_faults(state)
            if group.load:
                self._check_load_age(group, now() - state.t_ns)
                self._check_shaft(group, state)
                for name, values in self._load_feedback.items():
                    values[group.joint_index] = getattr(state, name)
                self._load_interval[group.joint_index] = (state.t_ns - self.history[k]["t_ns"]) * 1e-9
                self.history[k]["t_ns"] = state.t_ns
                continue
            for name, values in self._feedback.items():
                values[group.joint_index] = getattr(state, name)
            if group.real:
                self._check_jump(k, group, state)
                self._temperature[group.joint_index] = state.temperature
                self._sample_interval[group.joint_index] = (state.t_ns - self.history[k]["t_ns"]) * 1e-9
                self._sample_delay[group.joint_index] = (due - state.t_ns) * 1e-9
                self._age[group.joint_index] = (now() - state.t_ns) * 1e-9
                self.history[k]["t_ns"] = state.t_ns

    def measure_once(self, until: int) -> None:
        """Read the present positions into the memory. Raises RunError for a real drive without a new sample by
        FIRST_FEEDBACK_NS after `until`."""
        real = [
            (group, state, state.t_ns) for group, state in zip(self.groups, self._states, strict=True) if group.real
        ]
        for k, (group, state, before) in enumerate(real):
            for _ in range(FIRST_READS):
                self._hold.send()  # the reply to this is a new sample
                with group.named():
                    self._hold.read(k, state, until)
                if state.t_ns > before:
                    break
                until += FIRST_FEEDBACK_NS // FIRST_READS
            else:
                self._hold.check()
                raise RunError(f"the drives of {group.joints} report no position; check their power and their bus")
        # a joint may have been moved since the last run
        for name in ("known", "interval", "late_ns", "late_interval"):
            self.history[name] = 0
        # by the latest sample: `until` is yet to come, and would make every sample look old
        newest = max(
            (state.t_ns for group, state in zip(self.groups, self._states, strict=True) if group.real), default=until
        )
        with self._hold.exclusive():
            self.read(until, lambda: newest, newest)

    def write(self, until: int, now: Callable[[], int]) -> None:
        """Send the commands in the memory. until: the deadline [ns]; a command is valid until VALID_STEPS, at least
        VALID_NS, after it and is not sent to real drives later."""
        for k, (group, command) in enumerate(zip(self.groups, self._commands, strict=True)):
            if group.load:
                command.effort[:] = self._load_effort[group.joint_index]
            else:
                for name, values in self._command.items():
                    getattr(command, name)[:] = values[group.joint_index]
            command.valid_until_ns = until + self.valid_ns
            if group.real and now() > command.valid_until_ns:
                self.unsent[k] += 1  # the program was suspended; the feedback behind this command is out of date
                continue
            with group.named():
                group.driver.write(command, until)

    # --- plausibility of feedback; each raises RunError ---

    def _check_jump(self, k: int, group: DriverGroup, state: JointState) -> None:
        history, last = self.history[k], self.last_position[k].copy()
        if state.t_ns == history["t_ns"]:
            return
        known, self.last_position[k][:] = history["known"] and history["t_ns"], state.position
        history["known"] = 1
        if not known:
            return
        interval, max_velocity = (state.t_ns - history["t_ns"]) * 1e-9, self.max_velocity[group.joint_index]
        elapsed = plausibility.longest_span(interval, history["interval"], self.step)
        history["interval"] = interval
        if interval > LATE_STEPS * self.step:
            history["late_ns"], history["late_interval"] = state.t_ns, interval
        for j in np.flatnonzero(plausibility.jumped(last, state.position, elapsed, max_velocity))[:1]:
            name, unit, distance = (
                group.driver.joints[j],
                self._units[group.joint_index[j]],
                abs(state.position[j] - last[j]),
            )
            what = f"joint '{name}' jumped by {distance:.4g} {unit} in {elapsed * 1e3:.4g} ms"
            limit = f"more than its limit of {max_velocity[j]:.4g} {unit}/s allows"
            raise RunError(f"{what}, {limit}; {self._late_feedback(k, state.t_ns)}check its encoder and its supply")

    def _late_feedback(self, k: int, now_ns: int) -> str:
        """Whether feedback was late shortly before: a busy machine delays it, and may delay an emulated drive too."""
        at, interval = int(self.history[k]["late_ns"]), float(self.history[k]["late_interval"])
        if not at or now_ns - at > RECENT_NS:
            return ""
        when = f", {(now_ns - at) * 1e-6:.4g} ms before" if now_ns > at else ""
        late = f"its feedback was late{when}, {interval * 1e3:.4g} ms after the sample before it"
        return f"{late}, as on a busy machine: see cosim doctor; if the machine is idle, "

    def _check_shaft(self, group: DriverGroup, state: JointState) -> None:
        joints = np.array([self.loads[place].joint for place in group.joint_index])
        velocity = self._feedback["velocity"][joints]
        for j in np.flatnonzero(plausibility.shaft_slips(state.velocity, velocity, self.max_velocity[joints]))[:1]:
            name, unit = group.driver.joints[j], self._units[joints[j]]
            what = f"the load motor of '{name}' turns at {state.velocity[j]:.4g} {unit}/s, the joint at"
            fix = "check its direction and ratio, and the coupling"
            raise RunError(f"{what} {velocity[j]:.4g} {unit}/s; {fix}")

    def _check_load_age(self, group: DriverGroup, age_ns: int) -> None:
        """Of load motors, which the guard does not check."""
        if plausibility.is_stale(age_ns, self.stale_ns):
            what = f"the load motor of '{group.joints}' has sent no feedback for {age_ns * 1e-6:.6g} ms"
            limit = f"more than the {self.stale_ns * 1e-6:.6g} ms of guard.stale"
            raise RunError(f"{what}, {limit}; check its power, its cable and its bus")
