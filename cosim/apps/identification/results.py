"""What an identification found: numbers with intervals, what was not identifiable, the overlay and the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.identification.base_numbers import MEANING, OF_LINK, BaseNumber
from cosim.apps.identification.blocks import DELAY, GAIN, OFFSET, VariableBlock
from cosim.apps.identification.equation_error import CURRENT
from cosim.apps.identification.fitted_numbers import FittedNumbers
from cosim.apps.identification.identifiability import Quantity, Seen
from cosim.apps.identification.recorded_motion import RecordedMotion
from cosim.apps.identification.residual_spectrum import ResidualSpectrum
from cosim.apps.identification.variables import Variables
from cosim.core.errors import listed
from cosim.core.types import Array
from cosim.core.units import quantity_unit, show_percent
from cosim.output.text_table import TextTable
from cosim.rig.file_keys import file_keys
from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig

POSSIBLE_DELAYS = (0, 1)  # ticks by which encoders of rigs can be late
# of a centre of mass and of an inertia
NAMES_OF_ELEMENTS = {3: ("x", "y", "z"), 6: ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
BOUNDED = 1.02  # times what the least squares without bounds leave: more is said
UNITS_OF_LOAD = {"mass": "kg", "com": "m", "inertia": "kg*m^2"}
ALIKE = 0.95  # correlation of drives with those that the numbers of the rig give …
OTHER_SCALE = 30.0  # … and how many times as large they are: such numbers are of another machine, or unit
FARTHER = 1.2  # times the speed or the drive in training: more is said


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
    """Root mean squares where numbers are checked: of the signal of the drive of a joint, and of what the numbers of
    the rig and the found ones leave unexplained of it; trained: the part of the drive that these leave in training."""

    joint: str
    drive: float
    before: float
    after: float
    trained: float

    @property
    def part(self) -> float:
        """Of the drive that is left unexplained; NaN of a joint at rest."""
        return self.after / self.drive if self.drive else float("nan")

    @property
    def explained(self) -> float:
        """The fraction of the mean square that the found numbers explain, at most 1; NaN of a joint at rest."""
        return 1.0 - self.part**2


@dataclass(frozen=True)
class Unexplained:
    """Of a recording and the n joints with drives, at k times: t (k,) [s], speeds and signals of the drives (k, n), and
    what the numbers of the rig and the found ones leave unexplained of these, `before` and `after` (k, n); counted (k,
    n): bool, where it counts; training: the first samples, from which numbers were found; spectrum: of all rows,
    unfiltered."""

    path: str
    joints: tuple[str, ...]
    t: Array
    speed: Array
    drive: Array
    before: Array
    after: Array
    counted: Array
    training: int
    spectrum: ResidualSpectrum

    @property
    def residual(self) -> Array:
        """(k, n) measured less predicted."""
        return -self.after


@dataclass(frozen=True)
class Residual:
    """|measured − predicted| / |measured| of all joints together, and of each; over all samples."""

    whole: float
    joints: dict[str, float]


class TriedLaw(NamedTuple):
    """A law of friction that was tried, with what it leaves of the drives in training, and of each part that checks;
    why: it was not found."""

    title: str
    training: float = float("nan")
    checks: tuple[float, ...] = ()
    why: str = ""
    taken: bool = False

    @staticmethod
    def of(title: str, found: Identification) -> TriedLaw:
        return TriedLaw(title, found.residual(training=True).whole, found.residuals_of_checks)


@dataclass(frozen=True)
class Identification:
    """The result of an identification: the numbers that were fitted to motions, with what they leave unexplained.

    motions: those in training first; method: one of METHODS; about: what was compared; seen: of all quantities that
    were looked for; variables: of those that are not unseen, with their estimate; unexplained: of each recording;
    bounded: of each joint what the numbers leave in training, as a multiple of what the least squares of the same
    numbers leave, which may be impossible ones; base: the combinations that the motions determine, where the errors
    are linear in the numbers; repeated: what is said of recordings that are there twice, in part.
    """

    rig: Rig
    motions: tuple[RecordedMotion, ...]
    method: str
    about: str
    cutoff: float | None  # Hz, of the filter of equation errors
    seen: Seen
    variables: Variables
    estimate: FittedNumbers
    unexplained: tuple[Unexplained, ...]
    bounded: Mapping[str, float] = field(default_factory=dict)
    base: tuple[BaseNumber, ...] = ()
    repeated: tuple[str, ...] = ()
    laws: tuple[TriedLaw, ...] = ()  # of friction, where several were tried
    failure: str = ""  # why the numbers are not to be used: they explain too little of the part that checks

    @property
    def unseen(self) -> list[Quantity]:
        return [q for q, unseen in zip(self.seen.quantities, self.seen.unseen, strict=True) if unseen]

    @property
    def unsure(self) -> list[Quantity]:
        return [q for q, unsure in zip(self.seen.quantities, self.seen.unsure, strict=True) if unsure]

    @property
    def values(self) -> Array:
        """(n,) of the numbers of `variables`."""
        return self.estimate.values

    @property
    def is_judged(self) -> bool:
        """Whether the numbers of the rig are judged, and none were found."""
        return not any(of.training for of in self.unexplained)

    @property
    def source(self) -> str:
        """The signal of what drives the joints."""
        return self.motions[0].source

    @cached_property
    def numbers(self) -> list[FoundNumber]:
        states = self._states()
        found = []
        for block, where in zip(self.variables.blocks, self.variables.number_places, strict=True):
            of_block = self.estimate.values[where], self.estimate.intervals[where]
            for (name, element), before, value, interval in zip(_names(block), block.rig, *of_block, strict=True):
                full = name if element is None else f"{name}.{element}"
                state = states.get((block.title, name), "found")
                found.append(FoundNumber(full, float(before), float(value), float(interval), self._unit(name), state))
        return found

    def _unit(self, name: str) -> str:
        known = table_of(self.rig).per_run
        if name in known:
            return known[name].unit
        if name == DELAY:
            return "s"
        if name.startswith(OFFSET):
            return self.unit_of(name.removeprefix(OFFSET))
        return "1" if name.startswith(GAIN) else UNITS_OF_LOAD[name.rpartition(".")[2]]

    def unit_of_base(self, number: BaseNumber) -> str:
        first = number.terms[0][1]
        return OF_LINK.get(first.letter) or self._unit(first.owner)

    def unit_of(self, joint: str) -> str:
        """Of the signal of the drive of a joint."""
        if self.source == CURRENT:
            return "A"
        units = dict(zip(self.rig.joints, self.rig.plant.model.dof_units, strict=True))
        return quantity_unit("joint effort", units[joint])

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
        """Of every joint with a drive, in what was not used."""
        found = []
        for k, joint in enumerate(self.motions[0].joints):
            rest = [rms(self._counted(what, k, training=False)) for what in ("drive", "before", "after")]
            drive, after = (rms(self._counted(what, k, training=True)) for what in ("drive", "after"))
            found.append(JointCheck(joint, *rest, trained=after / drive if drive else float("nan")))
        return found

    def counted(self, what: str, joint: str, training: bool) -> Array:
        """Values of a field of `unexplained` where they count, of a joint in all recordings."""
        return self._counted(what, self.motions[0].joints.index(joint), training)

    def _counted(self, what: str, joint: int, training: bool) -> Array:
        parts = []
        for of in self.unexplained:
            part = slice(0, of.training) if training else slice(of.training, None)
            parts.append(getattr(of, what)[part, joint][of.counted[part, joint]])
        return np.concatenate(parts)

    def residual(self, training: bool) -> Residual:
        """In training, or in what was not used."""
        left, drive = 0.0, 0.0
        for of in self.unexplained:
            part = slice(0, of.training) if training else slice(of.training, None)
            left, drive = left + np.sum(of.after[part] ** 2, axis=0), drive + np.sum(of.drive[part] ** 2, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            of_joints = np.sqrt(left / drive)
        whole = float(np.sqrt(np.sum(left) / np.sum(drive))) if np.any(drive) else float("nan")
        return Residual(whole, dict(zip(self.motions[0].joints, map(float, of_joints), strict=True)))

    @property
    def residuals_of_checks(self) -> tuple[float, ...]:
        """|measured − predicted| / |measured| in what was not used of each recording."""
        parts = [(of.after[of.training :], of.drive[of.training :]) for of in self.unexplained]
        return tuple(float(np.linalg.norm(left) / np.linalg.norm(drive)) for left, drive in parts if drive.any())

    @property
    def sample_numbers(self) -> tuple[int, int]:
        """Samples for training, and for validation."""
        training = sum(of.training for of in self.unexplained)
        return training, sum(len(of.t) for of in self.unexplained) - training

    @cached_property
    def extrapolations(self) -> dict[str, str]:
        """Of joints that are faster, or driven harder, in what checks than in training: in words."""
        found = {}
        for k, joint in enumerate(self.motions[0].joints):
            for what, signal in (("fast", "speed"), ("hard", "drive")):
                trained, checked = (np.abs(self._counted(signal, k, of)).max(initial=0.0) for of in (True, False))
                if trained > 0.0 and checked > FARTHER * trained:
                    found.setdefault(joint, f"{checked / trained:.3g} times as {what} as in training")
        return found

    def extrapolation(self, joint: str) -> str:
        """In words, as a continuation of a sentence, or ""."""
        return f", where it is not {self.extrapolations[joint]}" if joint in self.extrapolations else ""

    # --- what it prints, and writes ---

    @property
    def notes(self) -> list[str]:
        """How the recordings were read, with the file where there are several."""
        several = len(self.motions) > 1
        found = (f"{m.path}: {note}" if several else note for m in self.motions for note in m.notes)
        return list(dict.fromkeys(found))

    @property
    def warnings(self) -> list[str]:
        """What may be wrong with the recordings."""
        return [*self.repeated, *self._other_scales()]

    def _other_scales(self) -> Iterator[str]:
        """Of drives that are like those which the numbers of the rig give, but many times as large or as small."""
        for k, joint in enumerate(self.motions[0].joints):
            drive, left = (
                np.concatenate([getattr(of, what)[of.counted[:, k], k] for of in self.unexplained])
                for what in ("drive", "before")
            )
            of_rig = drive + left  # which is predicted less measured
            sizes = float(np.linalg.norm(drive)), float(np.linalg.norm(of_rig))
            if min(sizes) <= 0.0 or drive @ of_rig < ALIKE * sizes[0] * sizes[1]:
                continue
            ratio = sizes[0] / sizes[1]
            if not 1.0 / OTHER_SCALE < ratio < OTHER_SCALE:
                what = f"{joint}/{self.source} is {ratio:.3g} times what the numbers of the rig give, and alike"
                yield f"{what}; if its column has another unit, such as m{self.unit_of(joint)}, give it by --unit"

    def lines(self) -> Iterator[str]:
        yield from (f"warning   {line}" for line in self.warnings)
        yield from (f"note      {note}" for note in self.notes)
        yield from self._lines_of_judgement() if self.is_judged else self._lines_of_numbers()

    def _lines_of_judgement(self) -> Iterator[str]:
        samples = sum(len(of.t) for of in self.unexplained)
        paths = listed([of.path for of in self.unexplained])
        yield f"{self.rig.run_spec.name} beside {paths}: {self.about}; {samples} samples, no number is found"
        checks = TextTable(["joint"], [f"drive{self._unit_of_checks}", "unexplained", "of the drive"])
        for check in self.checks:
            checks.add_row(check.joint, f"{check.drive:.3g}", f"{check.after:.3g}", show_percent(check.part))
        yield from checks.lines()
        yield f"residual  {show_percent(self.residual(training=False).whole)} of the drives"

    @property
    def _unit_of_checks(self) -> str:
        return ", A" if self.source == CURRENT else ""

    def _lines_of_numbers(self) -> Iterator[str]:
        part, rest = self.sample_numbers
        duration = sum(motion.t[-1] - motion.t[0] for motion in self.motions)
        paths = listed([of.path for of in self.unexplained if of.training])
        yield (
            f"{self.rig.run_spec.name} from {paths}: {duration:.4g} s,"
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
        checks = TextTable(["joint"], [f"drive{self._unit_of_checks}", "unexplained before", "after", "of the drive"])
        for check in self.checks:
            row = *(f"{value:.3g}" for value in (check.drive, check.before, check.after)), show_percent(check.part)
            checks.add_row(check.joint, *row)
        yield from checks.lines()
        of_training, of_rest = (show_percent(self.residual(training).whole) for training in (True, False))
        yield f"residual  {of_training} of the drives in training, {of_rest} in what checks"
        if clusters := self.estimate.clusters:
            yield f"intervals from {clusters} parts of the recordings, each taken as independent of the others"
        if self.laws:
            laws = TextTable(["law of friction"], ["training", "checks", ""])
            for row in self.rows_of_laws:
                laws.add_row(*row)
            yield from laws.lines()
        for joint, share in self.bounded.items():
            if share > BOUNDED:
                yield f"bounded   {joint}: {share:.3g} times what the least squares leave that no machine need fit"
        for joint, what in self.extrapolations.items():
            yield f"beyond    {joint} is {what}"
        for quantity in self.unseen:
            yield f"unseen    {quantity.title} is not identifiable from this motion"
        if self.late_ticks is not None and self.late_ticks not in POSSIBLE_DELAYS:
            ticks = f"{self.late_ticks} ticks of {self.rig.tick_model.step * 1e3:g} ms"
            delay = f"delay     {self.values[-1] * 1e3:.4g} ms are {ticks}"
            yield f"{delay}, and encoders are late by 0 or 1: the overlay does not have it"
        yield from self._lines_of_combinations()

    @property
    def rows_of_laws(self) -> list[list[str]]:
        """Title, what is left in training and in each check, and what became of it, of each law."""
        rows = []
        for law in self.laws:
            checks = " ".join(show_percent(left) for left in law.checks)
            left = (
                ["–", "–", law.why] if law.why else [show_percent(law.training), checks, "taken" if law.taken else ""]
            )
            rows.append([law.title, *left])
        return rows

    def _lines_of_combinations(self) -> Iterator[str]:
        base = [number for number in self.base if number.of_links]
        if not base:
            for quantity in self.unsure:
                yield f"combined  {quantity.title} is found only in combination with others"
            return
        if not self.unsure:
            return
        clear = [number for number in base if number.clear]
        yield f"combined  {len(self.unsure)} of the above are found only in combination; the motion determines"
        yield f"          ({MEANING})"
        for number in clear:
            interval = f"± {number.interval:.2g}"
            yield f"{number.value:>11.4g} {interval:>10} {self.unit_of_base(number):<7}  {number.name}"
        if rest := len(base) - len(clear):
            yield f"combined  {rest} other combinations are 0 within their intervals"

    def as_json(self) -> dict[str, Any]:
        """SI; intervals are half-widths at 95 %."""
        return {
            "rig": self.rig.run_spec.name,
            "recording": self.motions[0].path,
            "recordings": [motion.path for motion in self.motions],
            "signal": self.source,
            "method": self.method,
            "cutoff_hz": self.cutoff,
            "notes": [*self.warnings, *self.notes],
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
            **{name: self._residual_as_json(training) for name, training in (("training", True), ("check", False))},
            "clusters": self.estimate.clusters,
            "bounded": dict(self.bounded),
            "base": {
                number.name: {
                    "value": number.value,
                    "interval": number.interval,
                    "unit": self.unit_of_base(number),
                    "recordings": list(number.alone),
                }
                for number in self.base
            },
            "laws": [
                {"law": law.title, "training": law.training, "checks": list(law.checks), "taken": law.taken}
                for law in self.laws
                if not law.why
            ],
            "failure": self.failure or None,
            "unseen": [quantity.title for quantity in self.unseen],
            "in_combination": [quantity.title for quantity in self.unsure],
        }

    def _residual_as_json(self, training: bool) -> dict[str, Any]:
        residual = self.residual(training)
        return {"relative_residual": residual.whole, "joints": residual.joints}

    def overlay(self) -> dict[str, Any]:
        """Keys of the rig with the found numbers, as in `cosim run RIG --overlay`."""
        known, found = table_of(self.rig).per_run, dict[str, Any]()
        for block, where in zip(self.variables.blocks, self.variables.number_places, strict=True):
            values, first = [float(value) for value in self.values[where]], 0
            for name, length in zip(block.numbers, block.lengths, strict=True):
                if name in known:
                    found[name] = values[first : first + length] if length > 1 else values[first]
                first += length
        if self.late_ticks in POSSIBLE_DELAYS:
            found |= {f"joints.{name}.encoder.delay": self.late_ticks for name in self.motions[0].joints}
        return file_keys(self.rig, found)

    @property
    def late_ticks(self) -> int | None:
        """Ticks of the rig by which positions are recorded later than what drives the joints; None if not found."""
        if not self.variables.delayed:
            return None
        return round(float(self.values[-1]) / self.rig.tick_model.step)


def _names(block: VariableBlock) -> Iterator[tuple[str, str | None]]:
    """Of each value of a block: the number of the rig, and its element."""
    for name, length in zip(block.numbers or (block.title,), block.lengths or (1,), strict=True):
        yield from ((name, element) for element in NAMES_OF_ELEMENTS.get(length, (None,)))


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")
