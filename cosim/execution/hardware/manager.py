"""All drivers of a rig: their feedback is written to the memory of a tick, their commands are read from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypedDict

import numpy as np

from cosim.control import plausibility
from cosim.core.driver_contract import AddedTurns, FeedforwardReport
from cosim.core.errors import RunError
from cosim.core.types import JointState
from cosim.execution.hardware.driver_group import DriverGroup, GroupMemory
from cosim.execution.hardware.enabling import HoldCommands, enable_all
from cosim.simulation.tick.virtual_plant import VirtualPlant


class BusReport(TypedDict):
    """Traffic of the connection of a driver in a run; loads are fractions of the bit rate."""

    driver: str
    connection: str
    bus_load: float
    bus_load_estimated: float
    sent: int
    received: int
    errors: int
    unsent: int  # commands that expired before they could be sent
    feedforward: list[FeedforwardReport]  # of each joint


VALID_STEPS, VALID_NS = 5, 20_000_000  # validity of a command after its deadline: steps, at least ns
# in which real joints must report their positions before the first command; a busy machine may be late by much
FIRST_FEEDBACK_NS = 500_000_000
FIRST_READS = 100  # in this time
READS_OFF, READ_OFF_NS = 50, 10_000_000  # of drives that are off, in which they must report; between their deadlines
LATE_STEPS = 3.0  # between two samples, from which on the later one was late
RECENT_NS = 1_000_000_000  # in which late feedback may be behind what looks like a fault


class DriverSample(NamedTuple):
    """The last sample of a driver, and the last one that was late (0: none)."""

    t_ns: int = 0
    interval: float = 0.0  # s, to the sample before, see `plausibility.outstanding`
    late_ns: int = 0
    late_interval: float = 0.0
    position: list[float] | None = None  # None: not known


class PowerOnPlace(NamedTuple):
    """Of a real joint: the turns that are added to what its drive reports; ambiguous: the drive may be on others."""

    added: AddedTurns
    ambiguous: bool


class HardwareManager:
    """Reads and commands all drivers. A failure of one ends the run with its joints named."""

    def __init__(self, groups: Sequence[DriverGroup], plant: VirtualPlant) -> None:
        self.groups = tuple(groups)
        self.unsent = [0] * len(self.groups)  # commands that were too late to be sent
        self._memories = [GroupMemory(group, plant) for group in self.groups]
        self._states = [memory.state for memory in self._memories]
        self._velocity, self._delay = plant.view("measured", "velocity"), plant.view("sample_delay")
        tick_model = plant.tick_model
        self._layout = tick_model.layout
        self.max_velocity, self.loads = tick_model.limits.velocity, tick_model.loads
        self._units = tick_model.plant.model.dof_units
        self.stale_ns = float(np.min(tick_model.guard.stale, initial=np.inf)) * 1e9
        self.read_ns = tick_model.step_ns // 2  # for the replies of real drives in a late tick
        self.step = tick_model.step
        self.valid_ns = max(VALID_STEPS * tick_model.step_ns, VALID_NS)
        self.samples = [DriverSample() for _ in self.groups]
        # load motors have no joints of their own
        self._fastest = [[] if group.load else self.max_velocity[group.joint_index].tolist() for group in self.groups]
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
        real = self._real_groups()  # drives with a lost connection are opened again: they may have lost power

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
        for k in range(len(self.groups)):
            self.read_group(k, until, now, due)

    def read_group(self, k: int, until: int, now: Callable[[], int], due: int) -> None:
        """See `read`: of one group."""
        group, memory = self.groups[k], self._memories[k]
        state = memory.state
        try:
            # also in a late tick real drives have time to reply
            group.driver.read(state, max(until, now() + self.read_ns) if group.real else until)
        except Exception as error:
            raise group.error_of(error) from error
        group.check_faults(state)
        t_ns, before = state.t_ns, self.samples[k]
        interval = (t_ns - before.t_ns) * 1e-9
        age = (now() - t_ns) * 1e-9 if group.real else 0.0
        memory.write_state(interval, (due - t_ns) * 1e-9, age)
        if group.load:
            self._check_load_age(group, age)
            self._check_shaft(group, state, (due - t_ns) * 1e-9)
            self.samples[k] = DriverSample(t_ns)
        elif group.real and t_ns != before.t_ns:
            self.samples[k] = self._next_sample(k, group, state, before)

    def measure_once(self, until: int) -> None:
        """Read the present positions into the memory. Raises RunError for a real drive without a new sample by
        FIRST_FEEDBACK_NS after `until`."""
        self._wait_for_samples(until)
        # a joint may have been moved since the last run
        self.samples = [DriverSample(sample.t_ns) for sample in self.samples]
        # by the latest sample: `until` is yet to come, and would make every sample look old
        newest = max(
            (state.t_ns for group, state in zip(self.groups, self._states, strict=True) if group.real), default=until
        )
        with self._hold.exclusive():
            self.read(until, lambda: newest, newest)

    def measure_off(self, until: int) -> None:
        """Read the present positions into the memory with motors off, without the checks of faults and of load motors:
        they are made when motors are on. Raises RunError for a real drive that does not report."""
        self._reconnect()
        for group, memory in zip(self.groups, self._memories, strict=True):
            with group.named():
                if group.real:
                    _read_off(group, memory.state, until)
                else:
                    group.driver.read(memory.state, until)
            memory.write_state(0.0, 0.0, 0.0)

    def power_on_places(self) -> dict[str, PowerOnPlace]:
        """Joint -> on which turn its drive is taken to be, where that is not simply what it reports."""
        found: dict[str, PowerOnPlace] = {}
        for group in self.groups:
            if group.hardware is None or group.load:
                continue
            added = group.hardware.added_turns() or [AddedTurns()] * len(group.driver.joints)
            for name, own in zip(group.driver.joints, added, strict=True):
                if own.turns or name in group.ambiguous:
                    found[name] = PowerOnPlace(own, name in group.ambiguous)
        return found

    def _reconnect(self) -> None:
        """Open the drives with a lost connection again: they may have lost power."""
        real = self._real_groups()
        for k in sorted(self._disconnected):
            with real[k].named():
                real[k].driver.open()
            self._disconnected.discard(k)

    def _real_groups(self) -> list[DriverGroup]:
        """The groups of real drives; notes which of them have lost their connection."""
        real = [group for group in self.groups if group.real]
        self._disconnected |= {k for k, group in enumerate(real) if group.disconnected()}
        return real

    def _wait_for_samples(self, until: int) -> None:
        """Until all real drives have reported."""
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
                raise RunError(no_position(group))

    def write(self, until: int, now: Callable[[], int]) -> None:
        """Send the commands in the memory. until: the deadline [ns]; a command is valid until VALID_STEPS, at least
        VALID_NS, after it and is not sent to real drives later."""
        for k in range(len(self.groups)):
            self.write_group(k, until, now)

    def write_group(self, k: int, until: int, now: Callable[[], int]) -> None:
        """See `write`: of one group."""
        group, memory = self.groups[k], self._memories[k]
        memory.command.valid_until_ns = valid_until_ns = until + self.valid_ns
        if group.real and now() > valid_until_ns:
            self.unsent[k] += 1  # the program was suspended; the feedback behind this command is out of date
            return
        memory.read_command()
        try:
            group.driver.write(memory.command, until)
        except Exception as error:
            raise group.error_of(error) from error

    # --- plausibility of feedback; each raises RunError ---

    def _next_sample(self, k: int, group: DriverGroup, state: JointState, before: DriverSample) -> DriverSample:
        """The new sample of a driver, after the check that no joint jumped."""
        position, last, t_ns = state.position.tolist(), before.position, state.t_ns
        if last is None or not before.t_ns:
            return DriverSample(t_ns, *before[1:4], position)
        interval = (t_ns - before.t_ns) * 1e-9
        elapsed = plausibility.longest_span(interval, before.interval, self.step)
        late = (t_ns, interval) if interval > LATE_STEPS * self.step else before[2:4]
        for j, motion in enumerate(zip(last, position, self._fastest[k], strict=True)):
            was, is_now, max_velocity = motion
            if plausibility.jumped(was, is_now, elapsed, max_velocity):
                name, unit = group.driver.joints[j], self._units[group.joint_index[j]]
                what = f"joint '{name}' jumped by {abs(is_now - was):.4g} {unit} in {elapsed * 1e3:.4g} ms"
                limit = f"more than its limit of {max_velocity:.4g} {unit}/s allows"
                raise RunError(f"{what}, {limit}; {_late_feedback(t_ns, *late)}check its encoder and its supply")
        return DriverSample(t_ns, plausibility.outstanding(interval, before.interval), *late, position)

    def _check_shaft(self, group: DriverGroup, state: JointState, delay: float) -> None:
        """delay: age of the sample of the load motors at the time of the tick [s]."""
        joints = np.array([self.loads[place].joint for place in group.joint_index])
        velocity = self._velocity[joints]
        slips = plausibility.shaft_slips(state.velocity, velocity, self.max_velocity[joints])
        slips = slips & plausibility.sampled_together(delay, self._delay[joints], self.step)
        for j in np.flatnonzero(slips)[:1]:
            name, unit = group.driver.joints[j], self._units[joints[j]]
            what = f"the load motor of '{name}' turns at {state.velocity[j]:.4g} {unit}/s, the joint at"
            fix = "check its direction and ratio, and the coupling"
            raise RunError(f"{what} {velocity[j]:.4g} {unit}/s; {fix}")

    def _check_load_age(self, group: DriverGroup, age: float) -> None:
        """Of load motors, which the guard does not check."""
        if plausibility.is_stale(age, self.stale_ns * 1e-9):
            what = f"the load motor of '{group.joints}' has sent no feedback for {age * 1e3:.6g} ms"
            limit = f"more than the {self.stale_ns * 1e-6:.6g} ms of guard.stale"
            raise RunError(f"{what}, {limit}; check its power, its cable and its bus")


def _read_off(group: DriverGroup, state: JointState, until: int) -> None:
    """Read drives that are off. The first sample may answer a question that was asked long before, and have waited in a
    buffer; the second one does not."""
    fresh = 0
    for k in range(READS_OFF):
        before = state.t_ns
        group.driver.read(state, until + k * READ_OFF_NS)
        fresh += state.t_ns > before
        if fresh == 2:
            return
    raise RunError(no_position(group))


def no_position(group: DriverGroup) -> str:
    return f"the drives of {group.joints} report no position; check their power and their bus"


def _late_feedback(now_ns: int, at_ns: int, interval: float) -> str:
    """Whether feedback was late shortly before: a busy machine delays it, and may delay an emulated drive too. at_ns,
    interval [s]: of the last sample that was late."""
    if not at_ns or now_ns - at_ns > RECENT_NS:
        return ""
    when = f", {(now_ns - at_ns) * 1e-6:.4g} ms before" if now_ns > at_ns else ""
    late = f"its feedback was late{when}, {interval * 1e3:.4g} ms after the sample before it"
    return f"{late}, as on a busy machine: see cosim doctor; if the machine is idle, "
