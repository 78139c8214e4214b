"""The numbers of a rig that a recording determines, with their intervals, checked on a part that was not used."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import InputError
from cosim.identification.equation_error import CURRENT, EquationError, check_identifiable_rig, sources_of
from cosim.identification.fit import Fit, Reduced, SampledError, fit, noise_at_start
from cosim.identification.identifiability import Quantity, Seen, look
from cosim.identification.recorded_motion import (
    MotionSamples,
    RecordedMotion,
    default_cutoff,
    read_motion,
    samples_of,
)
from cosim.identification.variables import DEFAULT, DELAY, VariableBlock, Variables, choose
from cosim.output.text_table import TextTable
from cosim.rig.open_numbers import numbers_of
from cosim.rig.rig import Rig
from cosim.types import Array

TRAINING = 0.7  # fraction of the recording that numbers are found from; the rest checks them
SURE = 1.96  # standard deviations of an interval of 95 %
FEWEST = 20  # samples of training in which joints move
DELAYS = 2  # further searches, each with the drives shifted by the delay found so far


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
    """The root mean square of the signal of the drive of a joint in the part that checks, and of what the numbers of
    the rig and the found ones leave unexplained of it."""

    joint: str
    drive: float
    before: float
    after: float


@dataclass(frozen=True)
class Identification:
    """seen: of all quantities that were looked for; fit: of the variables of those that are not unseen."""

    rig: Rig
    motion: RecordedMotion
    cutoff: float
    samples: MotionSamples
    training: int  # samples
    seen: Seen
    variables: Variables
    fit: Fit
    equation: EquationError

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
        units = {name: number.unit for name, number in numbers_of(self.rig).items()} | {DELAY: "s"}
        for block, where in zip(self.variables.blocks, self.variables.number_places, strict=True):
            rows = zip(_names(block), block.start, self.values[where], self.deviations[where], strict=True)
            for (name, element), before, value, deviation in rows:
                full = name if element is None else f"{name}.{element}"
                state = states.get((block.title, name), "found")
                interval = SURE * float(deviation)
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
        """Of every joint."""
        part = self.samples.part(slice(self.training, None))
        zeros = np.zeros(self.variables.size)
        errors = [SampledError(self.variables, self.equation, part)(x)[0] for x in (zeros, self.fit.x)]
        return [
            JointCheck(joint, *(_rms(of[part.moving[:, k], k]) for of in (part.smoothed(part.drive), *errors)))
            for k, joint in enumerate(self.rig.joints)
        ]

    @property
    def unit(self) -> str:
        """Of the signals of drives where it is the same for all joints, else empty."""
        return "A" if self.motion.source == CURRENT else ""

    # --- what it prints, and writes ---

    def lines(self) -> Iterator[str]:
        part, rest = self.training, len(self.samples) - self.training
        yield (
            f"{self.rig.run_spec.name} from {self.motion.path}: {self.motion.t[-1] - self.motion.t[0]:.4g} s,"
            f" {self.motion.source} of {len(self.rig.joints)} joints below {self.cutoff:g} Hz;"
            f" {part} samples for training, {rest} for validation"
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
        for quantity in self.unsure:
            yield f"combined  {quantity.title} is found only in combination with others"

    def as_json(self) -> dict[str, Any]:
        """SI; intervals are halves of those of 95 %."""
        return {
            "rig": self.rig.run_spec.name,
            "recording": self.motion.path,
            "signal": self.motion.source,
            "cutoff_hz": float(self.cutoff),
            "samples": {"training": self.training, "validation": len(self.samples) - self.training},
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
            "unseen": [quantity.title for quantity in self.unseen],
            "in_combination": [quantity.title for quantity in self.unsure],
        }

    def overlay(self) -> dict[str, Any]:
        """Keys of the rig with the found numbers, as in `cosim run RIG --overlay`. The delay has no key."""
        found: dict[str, Any] = {}
        drives: dict[str, dict[str, Any]] = {}
        for block, where in zip(self.variables.blocks, self.variables.number_places, strict=True):
            values = [float(value) for value in self.values[where]]
            owner, _, what = block.title.rpartition(".")
            if block.factor is not None:
                link = f"mechanism.numbers.{block.title.removeprefix('mechanism.')}"
                found |= {f"{link}.mass": values[0], f"{link}.com": values[1:4], f"{link}.inertia": values[4:]}
            elif owner.startswith("mechanism."):
                found[f"mechanism.numbers.{owner.removeprefix('mechanism.')}.{what}"] = values[0]
            elif owner.endswith(".actuator"):
                drives.setdefault(owner, self._drive(owner))[what] = values[0]
            elif block.title != DELAY:
                found[block.title] = values[0]
        return found | drives

    def _drive(self, owner: str) -> dict[str, Any]:
        """The section of a drive as the file has it, that of `all` where the joint has none of its own."""
        joints: Mapping[str, Any] = self.rig.spec.source.data["joints"]
        _, joint, what = owner.split(".")
        own = joints.get(joint) or {}
        return copy.deepcopy(own.get(what) or joints["all"][what])


def identify(
    rig: Rig,
    recording: str | Path,
    wanted: Sequence[str] = DEFAULT,
    cutoff: float | None = None,
    training: float = TRAINING,
) -> Identification:
    """Find numbers of a rig from a recording (MCAP, or a table in CSV) of its motion.

    wanted: `inertia`, `friction`, `torque_constant`, `rotor_inertia`, `delay`, or names and patterns of `Rig.numbers`;
    cutoff [Hz]: of the filter of equation errors; training: the first fraction of the recording, from which
    numbers are found. Raises InputError for a rig whose equations are not known, for a recording of another rig, one
    that is too short or has no motion or no signal of a joint, and for a motion that determines none of them.
    """
    check_identifiable_rig(rig)
    if not 0.1 <= training <= 0.95:
        raise InputError(f"is {training:g}; give a fraction from 0.1 to 0.95", "--training")
    motion = read_motion(rig, recording, sources_of(rig))
    chosen, cutoff = choose(rig, wanted), default_cutoff(motion) if cutoff is None else cutoff
    samples = samples_of(motion, cutoff)
    count = round(training * len(samples))
    moving = int(samples.moving[:count].sum(axis=0).max(initial=0))
    if moving < FEWEST:
        what = f"has {moving} samples in which a joint moves steadily, {FEWEST} are needed"
        raise InputError(f"{what}; record a longer or a faster motion", str(recording))
    equation = EquationError(rig, chosen.names, motion.source)
    seen, variables = _visible(chosen, equation, samples.part(slice(0, count)), str(recording))
    equation = EquationError(rig, variables.names, motion.source)
    found = fit(SampledError(variables, equation, samples.part(slice(0, count))))
    for _ in range(DELAYS if variables.delayed else 0):
        samples = samples_of(motion, cutoff, float(variables.values(found.x)[-1]))
        found = fit(SampledError(variables, equation, samples.part(slice(0, count))))
    return Identification(rig, motion, cutoff, samples, count, seen, variables, found, equation)


def _visible(chosen: Variables, equation: EquationError, samples: MotionSamples, place: str) -> tuple[Seen, Variables]:
    """What the motion determines of the chosen variables, and those of which it determines anything. Raises InputError
    for none."""
    error, start = SampledError(chosen, equation, samples), np.zeros(chosen.size)
    noise = noise_at_start(error)
    reduced = Reduced.at(error, start, noise)
    seen = look(chosen, reduced(start)[1][: -chosen.size], chosen.slope(start), reduced.covariance(start))
    visible = {q.owner for q, unseen in zip(seen.quantities, seen.unseen, strict=True) if not unseen}
    kept = tuple(block for block in chosen.blocks if block.title in visible)
    if not kept:
        titles = " or ".join(quantity.title for quantity in seen.quantities[:3])
        raise InputError(f"{titles} is not identifiable from this motion; move the joints farther and faster", place)
    return seen, Variables(kept)


def _names(block: VariableBlock) -> Iterator[tuple[str, str | None]]:
    """Of each value of a block: the number of the rig, and its element."""
    if block.factor is None:
        yield block.title, None
        return
    yield f"{block.title}.mass", None
    for element in ("x", "y", "z"):
        yield f"{block.title}.com", element
    for element in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"):
        yield f"{block.title}.inertia", element


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")
