"""The drivers of a rig as the loop in Python sees them: what they measure goes into the memory of a tick, and what is
commanded comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from cosim.errors import CosimError, RunError, describe_exception
from cosim.hardware.enabling import enable_all, hold
from cosim.tick.virtual_plant import VirtualPlant
from cosim.types import COMMAND, FEEDBACK, Driver, JointCommand, JointState

VALID_STEPS, VALID_NS = 5, 20_000_000  # that a command may be late and still be sent
JUMP_TIME = 0.005  # s for which a joint may move at its limit beyond the time between two measurements
SLIP, SLIP_SHARE = 0.3, 0.1  # rad/s or m/s, and share of the limit, by which a load motor may differ from its joint
SENSING_NS = 100_000_000  # within this real joints say where they are, before they are commanded
CLEARABLE = "see to the cause, then run with --clear-faults"


class DriverGroup(NamedTuple):
    """A driver and the places (n,) of its joints in the model's order; the mode it is to run in; real: it moves motors
    that exist; load: they are load motors, which apply what the joints carry."""

    driver: Driver
    index: np.ndarray
    mode: str = "effort"
    real: bool = False
    load: bool = False


class HardwareManager:
    """All drivers, read and commanded together. What goes wrong in one of them ends the run with its joints named."""

    def __init__(self, groups: Sequence[DriverGroup], world: VirtualPlant) -> None:
        self.groups = tuple(groups)
        self._states = [JointState.zeros(len(group.index)) for group in self.groups]
        self._commands = [JointCommand.zeros(len(group.index)) for group in self.groups]
        self._fields = {name: world.view("command", name) for name in COMMAND}
        paths = (("measured", "position"), ("measured", "velocity"), ("measured_effort",))
        self._feedback = {name: world.view(*path) for name, path in zip(FEEDBACK, paths, strict=True)}
        self._temperature, self._age, self._fresh, self._lag = (
            world.view(name) for name in ("temperature", "age", "sample_interval", "sample_delay")
        )
        self._load = world.view("load_effort")
        self.unsent = [0] * len(self.groups)  # commands that were too late to be sent
        self._before: list[np.ndarray | None] = [None] * len(self.groups)  # positions measured last
        self._speed = world.simulation.limits.velocity
        self._units, self._loads = world.simulation.plant.model.dof_units, world.simulation.loads
        self._away: set[int] = set()  # real groups whose line is to be opened anew
        self._stale_ns = float(np.min(world.simulation.guard.stale, initial=np.inf)) * 1e9
        self._hearing_ns = world.simulation.step_ns // 2
        self._patience_ns = max(VALID_STEPS * world.simulation.step_ns, VALID_NS)
        self._heard = [0] * len(self.groups)  # when the newest measurement of each was made [ns]

    def open(self) -> None:
        """Connect; motors stay off. When one fails, all are let go of."""
        self._each(lambda group: group.driver.open(), self._let_go)

    def clear(self) -> None:
        """Clear what real drives report as faults; motors stay off. Where one stands, all are let go of. Raises
        RunError."""
        self._each(_clear, self._let_go)

    def _let_go(self) -> None:
        self.stop()
        self.close()

    def enable(self) -> None:
        """Switch the motors on, real ones together. When one fails, all are off."""
        real = [group for group in self.groups if group.real]

        # a line that was lost is opened anew, and its drives looked at as at first: they may have been without power
        self._away |= {k for k, group in enumerate(real) if _lost(group.driver)}

        def enable(k: int) -> None:
            with _of(real[k].driver):
                if k in self._away:
                    real[k].driver.open()
                    self._away.discard(k)
                _enable(real[k])

        try:
            for group in self.groups:
                if not group.real:
                    with _of(group.driver):
                        _enable(group)
            enable_all([group.driver for group in real], enable)
        except BaseException:
            self.stop()
            raise

    def hold(self) -> None:
        """Real drives that are on stay on, without effort, until the first command."""
        for group in self.groups:
            if group.real:
                with _of(group.driver):
                    hold(group.driver)

    def _each(self, what: Callable[[DriverGroup], object], undo: Callable[[], object]) -> None:
        try:
            for group in self.groups:
                with _of(group.driver):
                    what(group)
        except BaseException:
            undo()
            raise

    def read(self, until: int, now: Callable[[], int], due: int) -> None:
        """What is measured, into the memory; until: the deadline, now: the time, due: when the tick was [ns], on the
        clock of the drivers.
        Raises RunError for a drive that reports a fault."""
        for k, (group, state) in enumerate(zip(self.groups, self._states, strict=True)):
            with _of(group.driver):
                # a tick that is late has time to hear its drives all the same
                group.driver.read(state, max(until, now() + self._hearing_ns) if group.real else until)
            for j in np.flatnonzero(state.fault)[:1]:
                what = _fault(group.driver, state, j)
                whose = "load motor" if group.load else "drive"
                raise RunError(f"the {whose} of joint '{group.driver.joints[j]}' reports {what}")
            index = group.index
            if group.load:
                self._check_load(group.driver.joints, now() - state.t_ns)
                self._check_shaft(group, state)
                continue
            for name, values in self._feedback.items():
                values[index] = getattr(state, name)
            if group.real:
                self._check_jump(k, group, state)
                self._temperature[index] = state.temperature
                self._fresh[index] = (state.t_ns - self._heard[k]) * 1e-9
                self._lag[index] = (due - state.t_ns) * 1e-9
                self._age[index] = (now() - state.t_ns) * 1e-9
                self._heard[k] = state.t_ns

    def _check_jump(self, k: int, group: DriverGroup, state: JointState) -> None:
        """A joint cannot have moved further than its limit of speed allows. Raises RunError for one that did."""
        if state.t_ns == self._heard[k]:
            return
        before, self._before[k] = self._before[k], state.position.copy()
        if before is None or not self._heard[k]:
            return
        elapsed = (state.t_ns - self._heard[k]) * 1e-9
        moved = np.abs(state.position - before)
        for j in np.flatnonzero(moved > self._speed[group.index] * (elapsed + JUMP_TIME))[:1]:
            name, unit = group.driver.joints[j], self._units[group.index[j]]
            what = f"joint '{name}' is {moved[j]:.4g} {unit} from where it was {elapsed * 1e3:.4g} ms ago"
            most = f"more than its limit of {self._speed[group.index[j]]:.4g} {unit}/s allows"
            raise RunError(f"{what}, {most}; look at its encoder and its supply")

    def _check_shaft(self, group: DriverGroup, state: JointState) -> None:
        """A load motor turns with the joint that it loads. Raises RunError where it does not."""
        velocity = self._feedback["velocity"]
        for j, place in enumerate(group.index):
            k = self._loads[place].index
            if abs(state.velocity[j] - velocity[k]) > SLIP + SLIP_SHARE * self._speed[k]:
                name, unit = group.driver.joints[j], self._units[k]
                what = f"the load motor of '{name}' turns at {state.velocity[j]:.4g} {unit}/s, the joint at"
                mend = "look at its direction and ratio, and at the coupling"
                raise RunError(f"{what} {velocity[k]:.4g} {unit}/s; {mend}")

    def _check_load(self, joints: tuple[str, ...], age_ns: int) -> None:
        """Load motors are not in the model, and are heard of all the same. Raises RunError where they are not."""
        if age_ns > self._stale_ns:
            what = f"the load motor of '{', '.join(joints)}' has sent no feedback for {age_ns * 1e-6:.6g} ms"
            raise RunError(
                f"{what}, more than the {self._stale_ns * 1e-6:.6g} ms of guard.stale; check its cable and its bus"
            )

    def sense(self, until: int) -> None:
        """Where the joints are at the moment, into the memory. Raises RunError where a real one does not say by
        SENSING_NS after `until`: what was heard before does not count."""
        before = [state.t_ns for state in self._states]
        if any(group.real for group in self.groups):
            self.hold()  # what answers this is new
            until += SENSING_NS
        self.read(until, lambda: until, until)
        for group, state, t_ns in zip(self.groups, self._states, before, strict=True):
            if group.real and state.t_ns <= t_ns:
                joints = ", ".join(group.driver.joints)
                raise RunError(f"the drives of {joints} do not say where they are; look at their power and their line")

    def write(self, until: int, now: Callable[[], int]) -> None:
        """What is commanded, from the memory; it may be sent until VALID_STEPS, at least VALID_NS, after the deadline
        [ns], and is left out then."""
        for k, (group, command) in enumerate(zip(self.groups, self._commands, strict=True)):
            if group.load:
                command.effort[:] = self._load[group.index]
            else:
                for name, values in self._fields.items():
                    getattr(command, name)[:] = values[group.index]
            command.valid_until_ns = until + self._patience_ns
            if group.real and now() > command.valid_until_ns:
                self.unsent[k] += 1  # the program was held up; what was measured before that is no ground to act on
                continue
            with _of(group.driver):
                group.driver.write(command, until)

    def stop(self) -> None:
        """Every driver is stopped, whatever the others do."""
        for group in self.groups:
            with suppress(Exception):
                group.driver.stop()

    def close(self) -> None:
        """Let go of every driver."""
        for group in self.groups:
            with suppress(Exception):
                group.driver.close()


def _clear(group: DriverGroup) -> None:
    driver: Any = group.driver  # simulated ones have nothing to clear
    if group.real:
        driver.clear()


def _enable(group: DriverGroup) -> None:
    """With the mend where a drive refuses for a fault that can be cleared: its driver is `latched` then."""
    try:
        group.driver.enable(group.mode)
    except RunError as error:
        if getattr(group.driver, "latched", False):
            raise RunError(f"{error.what}; {CLEARABLE}", error.place) from error
        raise


def _lost(driver: Any) -> bool:
    """Whether the line of a driver failed since it was opened."""
    return hasattr(driver, "link") and driver.link.lost


def _fault(driver: Any, state: JointState, j: int) -> str:
    """What a drive says of its fault, with its mend."""
    describe = getattr(driver, "describe_fault", None)
    code = int(state.fault[j])
    return describe(j, code) if describe else f"fault {code}; clear it first"


@contextmanager
def _of(driver: Driver) -> Iterator[None]:
    """Whatever goes wrong in a driver ends the run with its joints named."""
    try:
        yield
    except CosimError:
        raise  # the driver said what is wrong
    except Exception as error:
        raise RunError(f"the driver of {', '.join(driver.joints)} failed: {describe_exception(error)}") from error
