"""Short runs of one servo each under other loads, simulated side by side with numbers that are looked for.

An index has a row for each recording: its `file`, and keys of the rig whose values differ from run to run, such as
`mechanism.bodies.0.mass`. A recording has the columns `t`, `position`, `goal`, `enable` where the servo was switched,
and `speed` where it was moving at the start. The simulated servo gets the recorded goals from the recorded start on,
and is switched as it was: the loop through its position stays closed. All runs are SIMD lanes of one compiled tick:
runs × candidates.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path

import numpy as np

from cosim.core import ops
from cosim.core.compile.row_lookup import RowLookup
from cosim.core.errors import InputError, SourceLocation, did_you_mean
from cosim.core.paths import read_file
from cosim.core.tables.files import open_table
from cosim.core.types import Array, Numeric, State
from cosim.execution.rollouts import Rollouts
from cosim.plugins.actuators.servo import GOAL, PositionServo
from cosim.rig.parameter_table import table_of
from cosim.rig.parametrised_rig import holding_bristles, parametrised, plant_with
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import Rig, load_rig
from cosim.simulation.tick.tick_model import TickModel, TickTask

FILE = "file"  # column of an index


@dataclass(frozen=True)
class ServoRun:
    """A recording (k,) of a servo [s, rad], and the overrides of the rig that it was made with."""

    path: Path
    overrides: tuple[str, ...]
    t: Array
    position: Array
    goal: Array
    enabled: Array
    speed: float = 0.0  # at the start [rad/s]


def read_index(path: Path) -> list[ServoRun]:
    """The runs of an index in CSV. Raises InputError, InputErrors with the place of what is wrong."""
    rows = list(csv.DictReader(io.StringIO(read_file(path).decode("utf-8-sig"))))
    if not rows or FILE not in rows[0]:
        raise InputError(f"an index has the column '{FILE}' and a row for each recording", str(path))
    runs = []
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise InputError("the row has other cells than the first line", SourceLocation(str(path), number, ""))
        overrides = tuple(f"{key}={value}" for key, value in row.items() if "." in key)
        runs.append(read_run(path.parent / row[FILE], overrides))
    return runs


def read_run(path: Path, overrides: Sequence[str] = ()) -> ServoRun:
    """Raises InputError, InputErrors."""
    table = open_table(path)
    names = ["t", "position", "goal", *(name for name in ("enable", "speed") if name in table.names)]
    columns = dict(zip(names, table.numbers([table.index(name) for name in names]).values.T, strict=True))
    t, none = columns["t"], np.zeros(len(columns["t"]))
    if len(t) < 2 or not (np.diff(t) > 0.0).all():
        raise InputError("times must increase over two rows or more", str(path))
    enabled, speed = columns.get("enable", none + 1.0) > 0.5, float(columns.get("speed", none)[0])
    return ServoRun(path, tuple(overrides), t - t[0], columns["position"], columns["goal"], enabled, speed)


@dataclass
class RecordedTicks(TickModel):
    """Ticks in which a recording commands the servo of a joint in place of controllers and guard.

    commands: time → (goal, enabled), of all recordings one after the other; joint: number of the dof. The memory has
    `recording`, the time at which the recording of the run begins, and `zero`, by how much its positions are too low.
    """

    commands: RowLookup | None = None
    joint: int = 0

    def initial(self) -> State:
        return super().initial() | {"recording": np.zeros(()), "zero": np.zeros(())}

    @cached_property
    def tasks(self) -> tuple[TickTask, ...]:
        outputs = [("command", "position"), "enabled"]
        follow = self._call("follow_recording", self.follow, ["t", "recording", "zero"], outputs)
        return (
            TickTask("recording", (follow,)),
            TickTask("guard", ()),
            TickTask("step", (self._step_call(),)),
            TickTask("publish", ()),
        )

    def follow(self, t: Numeric, begin: Numeric, zero: Numeric) -> tuple[Numeric, Numeric]:
        """(positions, enabled) (nv,) each"""
        assert self.commands is not None
        goal, enabled = self.commands(t + begin)
        none = np.zeros(self.nv)
        return ops.set_at(none, [self.joint], [goal + zero]), ops.set_at(none, [self.joint], [enabled])


@dataclass
class ServoRuns:
    """All runs of a rig with one servo. fitted: numbers of the plant that candidates change. Raises InputError for a
    rig that is not one joint with a servo, and for runs that differ in more than numbers of the plant.

    recorded (runs, ticks): positions at the ticks, NaN after the end of a run; weight (runs, ticks): of each tick, so
    that a run has 1."""

    path: Path
    runs: Sequence[ServoRun]
    fitted: Sequence[str]
    overrides: Sequence[Override] = ()
    simulated: int = field(default=0, init=False)  # runs, so far

    def __post_init__(self) -> None:
        self.rig = self._load()
        self.joint = servo_joint(self.rig)
        known = table_of(self.rig).per_run
        for name in self.fitted:
            if name not in known:
                raise InputError(f"'{name}' is no number of the rig{did_you_mean(name, list(known))}", str(self.path))
        self._of_run = [self._numbers_of(run) for run in self.runs]
        pairs = [(name, value) for found in self._of_run for name, value in found.items()]
        changed = {name for name, value in pairs if (value != known[name].values).any()}
        self.numbers = tuple(name for name in known if name in changed or name in self.fitted)
        step = self.rig.tick_model.step
        self.ticks = max(int(run.t[-1] / step) for run in self.runs) + 1
        self.t = step * np.arange(self.ticks)
        self.recorded = np.array([self._at_ticks(run, run.position) for run in self.runs])
        there = np.isfinite(self.recorded)
        self.weight = there / there.sum(axis=1, keepdims=True)

    def _load(self, overrides: Sequence[str] = ()) -> Rig:
        return load_rig(self.path, [*self.overrides, *overrides])

    def _numbers_of(self, run: ServoRun) -> dict[str, Array]:
        """All numbers of the plant with the overrides of a run."""
        rig = self._load(run.overrides) if run.overrides else self.rig
        found, known = table_of(rig).per_run, table_of(self.rig).per_run
        values = {name: parameter.values for name, parameter in found.items()}
        if found.keys() != known.keys() or not self._moves_alike(rig, values):
            raise InputError("its overrides change more than numbers of the mechanism and the drive", str(run.path))
        return values

    def _moves_alike(self, rig: Rig, values: Mapping[str, Array]) -> bool:
        """Whether this rig with other numbers is the rig of a run, by their rates and samples at a state."""
        own, _ = plant_with(self.rig, list(values), np.concatenate(list(values.values())))
        if own.layout.size != rig.plant.layout.size or self.rig.tick_model.step != rig.tick_model.step:
            return False
        x = np.random.default_rng(0).uniform(0.1, 0.3, own.layout.size)
        effort, setpoints = np.ones(1), [np.full(1, value) for value in (0.7, 0.2, 1.0)]
        rates = []
        for plant in (own, rig.plant):
            state = plant.layout.unpack(x)
            sampled = plant.sample(0.0, state, effort, setpoints, list(plant.periods))
            rates.append(
                [plant.layout.pack(part) for part in (plant.flow(0.0, None, state, {"request": effort})[0], sampled)]
            )
        return np.allclose(rates[0], rates[1], rtol=1e-9, atol=1e-12)

    def _at_ticks(self, run: ServoRun, values: Array) -> Array:
        return np.where(self.t <= run.t[-1], np.interp(self.t, run.t, values), np.nan)

    # --- the compiled ticks ---

    @cached_property
    def _commands(self) -> RowLookup:
        """Of all runs one after the other, each a tick longer than the longest. The recorded goal holds over a tick by
        its mean, as it was sent between rows."""
        rows = []
        for run in self.runs:
            goal = np.interp(self.t, run.t, run.goal)
            enabled = run.enabled[np.searchsorted(run.t, self.t, side="right") - 1]
            rows.append(np.column_stack([goal, enabled]))
        step = self.rig.tick_model.step
        begins = step * (np.arange(len(self.runs) * self.ticks) - 0.5)
        return RowLookup(begins, np.concatenate(rows).astype(float), "recorded_goals")

    @cached_property
    def _model(self) -> RecordedTicks:
        model = parametrised(self.rig, self.numbers, frozenset())
        given = {f.name: getattr(model, f.name) for f in fields(TickModel) if f.init}
        return RecordedTicks(**given, commands=self._commands, joint=self.rig.joints.index(self.joint))

    @cached_property
    def _loop(self) -> object:
        return self._model.simd_loop(None, (f"{self.joint}/position",))

    @cached_property
    def _held(self) -> object:
        """Deflections of bristles at the start by numbers and state; None without bristles."""
        return holding_bristles(self.rig, self._model, self.numbers) if self.rig.plant.bristles else None

    # --- simulated runs ---

    def positions(self, values: Mapping[str, Array], zero: Array) -> Array:
        """(candidates, runs, ticks) simulated positions as recorded ones are; NaN from where they are not finite.

        values: (candidates,) by the names of `fitted`; zero (candidates,): by how much recorded positions are too low
        [rad]."""
        c, r = len(zero), len(self.runs)
        numbers = np.repeat(
            np.array([np.concatenate([of[name] for name in self.numbers]) for of in self._of_run])[None], c, axis=0
        )
        first = 0
        for name in self.numbers:
            size = self._of_run[0][name].size
            if name in values:
                numbers[:, :, first] = np.asarray(values[name], float)[:, None]
            first += size
        memory = self._memories(numbers.reshape(c * r, -1), np.repeat(zero, r), np.tile(np.arange(r), c))
        rollouts = Rollouts(self._loop, lambda part: memory[part], np.zeros(0), self.ticks)  # type: ignore[arg-type]
        found = rollouts.run(c * r).samples[:, :, 0].reshape(c, r, self.ticks)
        self.simulated += c * r
        return found - zero[:, None, None]

    def _memories(self, numbers: Array, zero: Array, run: Array) -> Array:
        """(n, size) at the start of runs by their numbers."""
        model, step = self._model, self.rig.tick_model.step
        place = model.layout.place
        memory = np.repeat(model.memory()[None], len(run), axis=0)
        memory[:, place("numbers").where] = numbers
        memory[:, place("recording").where] = (step * self.ticks * run)[:, None]
        memory[:, place("zero").where] = zero[:, None]
        start = np.array([of.position[0] for of in self.runs])[run] + zero
        goal = np.array([of.goal[0] for of in self.runs])[run] + zero
        memory[:, place("plant", "position").where] = start[:, None]
        speed = np.array([of.speed for of in self.runs])[run]
        memory[:, place("plant", "velocity").where] = speed[:, None]
        for name in self.rig.plant.layout.unpack(np.zeros(self.rig.plant.layout.size))["actuators"][self.joint]:
            if name.startswith("command_") or name == GOAL:
                held = start if name == GOAL else goal
                memory[:, place("plant", "actuators", self.joint, name).where] = held[:, None]
        if self._held is not None:
            found = self._held(numbers, memory[:, place("plant").where])  # type: ignore[operator]
            memory[:, place("plant", "bristles").where] = found
        return memory


def servo_joint(rig: Rig) -> str:
    """The joint with the servo. Raises InputError for another rig."""
    found = [name for name, drive in rig.plant.actuators.items() if isinstance(drive, PositionServo)]
    if len(found) != 1 or len(rig.joints) != 1 or rig.plant.modes:
        what = "recordings of a servo need a rig of one joint with an actuator of type servo, without events and stops"
        raise InputError(what, str(rig.spec.path))
    return found[0]
