"""What an identification found: numbers with intervals, what was not identifiable, the overlay and the figures."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cosim.apps.identification.equation_error import CURRENT
from cosim.apps.identification.fit import Fit
from cosim.apps.identification.identifiability import Quantity, Seen
from cosim.apps.identification.recorded_motion import RecordedMotion
from cosim.apps.identification.suspicions import DOUBTFUL
from cosim.apps.identification.variables import DELAY, VariableBlock, Variables
from cosim.core.types import Array
from cosim.output.text_table import TextTable
from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig

POSSIBLE_DELAYS = (0, 1)  # ticks by which encoders of rigs can be late
# of a centre of mass and of an inertia
NAMES_OF_ELEMENTS = {3: ("x", "y", "z"), 6: ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
EXPECTED_FRACTION = 0.2  # of the drive of a joint, below which it is noise or of another unit
INTERVAL_DEVIATIONS = 1.96  # standard deviations of an interval of 95 %


@dataclass(frozen=True)
class FoundNumber:
    """`name` with its value in the rig and the found one, its half interval of 95 %, its unit, and its state: `found`,
    `in combination`, or `unseen`."""

    name: str
    before: float
    value: float
    interval: float
    unit: str
    state: str


@dataclass(frozen=True)
class JointCheck:
    """The root mean square of the signal of the drive of a joint in the part that checks, of what the numbers of the
    rig and the found ones leave unexplained of it, and of what the rig's expect it to be."""

    joint: str
    drive: float
    before: float
    after: float
    expected: float

    @property
    def explained(self) -> float:
        """The fraction of the mean square that the found numbers explain, at most 1; NaN of a joint at rest."""
        return 1.0 - (self.after / self.drive) ** 2 if self.drive else float("nan")


def doubtful(checks: Sequence[JointCheck]) -> list[JointCheck]:
    """The joints whose drives are hardly explained, though the rig expects something of them: at rest they may have
    noise only."""
    return [
        check for check in checks if check.explained < DOUBTFUL and check.expected > EXPECTED_FRACTION * check.drive
    ]


@dataclass(frozen=True)
class Unexplained:
    """Of the n joints with drives, at k times: t (k,) [s], their signals (k, n), and what the numbers of the rig and
    the found ones leave unexplained of them, `before` and `after` (k, n); counted (k, n): bool, where it counts;
    training: the first samples, from which numbers were found."""

    joints: tuple[str, ...]
    t: Array
    drive: Array
    before: Array
    after: Array
    counted: Array
    training: int


@dataclass(frozen=True)
class Identification:
    """The result of an identification: the numbers that were fitted to a motion, with what they leave unexplained.

    method: one of METHODS; about: what was compared; seen: of all quantities that were looked for; fit: of the
    variables of those that are not unseen.
    """

    rig: Rig
    motion: RecordedMotion
    method: str
    about: str
    cutoff: float | None  # Hz, of the filter of equation errors
    seen: Seen
    variables: Variables
    fit: Fit
    unexplained: Unexplained
    failure: str = ""  # why the numbers are not to be used: they explain too little of the part that checks

    @property
    def unseen(self) -> list[Quantity]:
        return [q for q, unseen in zip(self.seen.quantities, self.seen.unseen, strict=True) if unseen]

    @property
    def unsure(self) -> list[Quantity]:
        return [q for q, unsure in zip(self.seen.quantities, self.seen.unsure, strict=True) if unsure]

    @cached_property
    def values(self) -> Array:
        """(n,) of the numbers of `variables`."""
        return np.asarray(self.variables.values(self.fit.x), dtype=float)

    @cached_property
    def deviations(self) -> Array:
        """(n,) standard deviations."""
        slope = self.variables.slope(self.fit.x)
        return np.sqrt(np.diag(slope @ self.fit.covariance @ slope.T))

    @cached_property
    def numbers(self) -> list[FoundNumber]:
        states = self._states()
        found = []
        units = {name: number.unit for name, number in table_of(self.rig).per_run.items()} | {DELAY: "s"}
        for block, where in zip(self.variables.blocks, self.variables.number_places, strict=True):
            rows = zip(_names(block), block.rig, self.values[where], self.deviations[where], strict=True)
            for (name, element), before, value, deviation in rows:
                full = name if element is None else f"{name}.{element}"
                state = states.get((block.title, name), "found")
                interval = INTERVAL_DEVIATIONS * float(deviation)
                found.append(FoundNumber(full, float(before), float(value), interval, units[name], state))
        return found

    def _states(self) -> dict[tuple[str, str], str]:
        """(title of a block, number) -> its state."""
        states = {}
        rows = zip(self.seen.quantities, self.seen.unseen, self.seen.unsure, strict=True)
        for quantity, unseen, unsure in rows:
            state = "unseen" if unseen else "in combination" if unsure else "found"
            states[quantity.owner, quantity.number] = state
        return states

    @cached_property
    def checks(self) -> list[JointCheck]:
        """Of every joint with a drive, in the part that was not used."""
        left, rest = self.unexplained, slice(self.unexplained.training, None)
        found = []
        for k, joint in enumerate(left.joints):
            rows = left.counted[rest, k]
            drive, before, after = (of[rest, k][rows] for of in (left.drive, left.before, left.after))
            found.append(JointCheck(joint, *map(rms_of, (drive, before, after, drive + before))))
        return found

    @property
    def unit(self) -> str:
        """Of the signals of drives where it is the same for all joints, else empty."""
        return "A" if self.motion.source == CURRENT else ""

    @property
    def sample_numbers(self) -> tuple[int, int]:
        """Samples for training, and for validation."""
        return self.unexplained.training, len(self.unexplained.t) - self.unexplained.training

    # --- what it prints, and writes ---

    def lines(self) -> Iterator[str]:
        part, rest = self.sample_numbers
        yield from (f"note      {note}" for note in self.motion.notes)
        yield (
            f"{self.rig.run_spec.name} from {self.motion.path}: {self.motion.t[-1] - self.motion.t[0]:.4g} s,"
            f" {self.about}; {part} samples for training, {rest} for validation"
        )
        table = TextTable(["number"], ["in the rig", "found", "95 %", "unit", ""])
        for number in self.numbers:
            table.add_row(
                number.name,
                f"{number.before:.4g}",
                f"{number.value:.4g}",
                f"± {number.interval:.2g}",
                number.unit,
                "" if number.state == "found" else number.state,
            )
        yield from table.lines()
        unit = f", {self.unit}" if self.unit else ""
        checks = TextTable(["joint"], [f"drive{unit}", "unexplained before", "after"])
        for check in self.checks:
            checks.add_row(check.joint, *(f"{value:.3g}" for value in (check.drive, check.before, check.after)))
        yield from checks.lines()
        for quantity in self.unseen:
            yield f"unseen    {quantity.title} is not identifiable from this motion"
        if self.late_ticks is not None and self.late_ticks not in POSSIBLE_DELAYS:
            ticks = f"{self.late_ticks} ticks of {self.rig.tick_model.step * 1e3:g} ms"
            delay = f"delay     {self.values[-1] * 1e3:.4g} ms are {ticks}"
            yield f"{delay}, and encoders are late by 0 or 1: the overlay does not have it"
        for quantity in self.unsure:
            yield f"combined  {quantity.title} is found only in combination with others"

    def as_json(self) -> dict[str, Any]:
        """SI; intervals are half-widths at 95 %."""
        return {
            "rig": self.rig.run_spec.name,
            "recording": self.motion.path,
            "signal": self.motion.source,
            "method": self.method,
            "cutoff_hz": self.cutoff,
            "notes": list(self.motion.notes),
            "samples": dict(zip(("training", "validation"), self.sample_numbers, strict=True)),
            "numbers": {
                number.name: {
                    "before": number.before,
                    "value": number.value,
                    "interval": number.interval,
                    "unit": number.unit,
                    "state": number.state,
                }
                for number in self.numbers
            },
            "validation": {
                check.joint: {"drive": check.drive, "before": check.before, "after": check.after}
                for check in self.checks
            },
            "failure": self.failure or None,
            "unseen": [quantity.title for quantity in self.unseen],
            "in_combination": [quantity.title for quantity in self.unsure],
        }

    def overlay(self) -> dict[str, Any]:
        """Keys of the rig with the found numbers, as in `cosim run RIG --overlay`."""
        found: dict[str, Any] = {}
        drives: dict[str, dict[str, Any]] = {}
        for block, where in zip(self.variables.blocks, self.variables.number_places, strict=True):
            values = [float(value) for value in self.values[where]]
            owner, _, what = block.title.rpartition(".")
            if block.title.startswith("mechanism."):
                found |= _keys_of_mechanism(block, values)
            elif owner.endswith(".actuator"):
                joint, section = owner.split(".")[1:]
                drives.setdefault(owner, self._section(joint, section))[what] = values[0]
            elif block.title != DELAY:
                found[block.title] = values[0]
        if self.late_ticks in POSSIBLE_DELAYS:
            late = {"delay": self.late_ticks}
            drives |= {f"joints.{name}.encoder": self._section(name, "encoder") | late for name in self.motion.joints}
        return found | drives

    @property
    def late_ticks(self) -> int | None:
        """Ticks of the rig by which positions are recorded later than what drives the joints; None if not found."""
        if not self.variables.delayed:
            return None
        return round(float(self.values[-1]) / self.rig.tick_model.step)

    def _section(self, joint: str, key: str) -> dict[str, Any]:
        """A section of a joint as the file has it, or the one of `all` where the joint has none."""
        joints: Mapping[str, Any] = self.rig.spec.source.data["joints"]
        own, all_ = (joints.get(name) or {} for name in (joint, "all"))
        return copy.deepcopy(own.get(key) or all_.get(key) or {})


def _keys_of_mechanism(block: VariableBlock, values: list[float]) -> dict[str, Any]:
    found, first = {}, 0
    for name, length in zip(block.numbers, block.lengths, strict=True):
        number = values[first : first + length]
        found[f"mechanism.numbers.{name.removeprefix('mechanism.')}"] = number if length > 1 else number[0]
        first += length
    return found


def _names(block: VariableBlock) -> Iterator[tuple[str, str | None]]:
    """Of each value of a block: the number of the rig, and its element."""
    for name, length in zip(block.numbers or (block.title,), block.lengths or (1,), strict=True):
        yield from ((name, element) for element in NAMES_OF_ELEMENTS.get(length, (None,)))


def rms_of(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")
