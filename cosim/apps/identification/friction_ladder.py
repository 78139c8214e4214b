"""Laws of friction of growing detail, each kept where it predicts better what the numbers are not found from.

A rung adds an effect to the law of every joint in whose motion the effect exceeds its interval. It is taken where it
lowers the residual of every check, and left out again where rungs above it make it needless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.identification.results import Identification, TriedLaw, rms
from cosim.core.errors import InputError, RunError
from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig

WORD = "friction"  # of what is looked for, which the laws replace
BETTER = 0.97  # times the residual of each recording that checks: less is better
LOAD_FRICTION = 0.01  # slope of friction over an effort, where its search begins
FAST = 0.3  # of the usual speed: where the search of the Stribeck speed begins
STICKS = 1.1  # of the Coulomb friction: where the search of the static one begins
LEAST_COULOMB = 1e-6  # of the usual effort, of a law that begins without friction
COULOMB, STATIC, SPEED = "coulomb", "static", "stribeck_speed"

Keys = Mapping[str, Any]


class UsualMotion(NamedTuple):
    """Of a joint: its Coulomb friction found so far [joint effort], and root mean squares of its speed and of the
    effort of its drive."""

    coulomb: float
    speed: float
    effort: float


class Rung(NamedTuple):
    """A law of friction: the numbers that it adds to those below, and the keys with which they begin."""

    title: str
    numbers: tuple[str, ...]
    keys: Callable[[UsualMotion], dict[str, Any]]


def _stribeck(of: UsualMotion) -> dict[str, Any]:
    return {"model": "stribeck", SPEED: FAST * of.speed}


FIRST = "viscous and Coulomb"
SQUARES = ("quadratic_load_friction", "quadratic_external_load_friction")
RUNGS = (
    Rung("load of the drive", ("load_friction",), lambda of: {"load_friction": LOAD_FRICTION}),
    Rung("Stribeck", (STATIC, SPEED), lambda of: {STATIC: STICKS * of.coulomb, **_stribeck(of)}),
    Rung("load of the mechanism", ("external_load_friction",), lambda of: {"external_load_friction": LOAD_FRICTION}),
    Rung(
        "square of the load",
        (*SQUARES, SPEED),
        lambda of: {**_stribeck(of), **dict.fromkeys(SQUARES, LOAD_FRICTION / of.effort)},
    ),
)


def climb(
    rig: Rig,
    with_keys: Callable[[Keys], Rig],
    find: Callable[[Rig, Sequence[str]], Identification],
    wanted: Sequence[str],
) -> Identification:
    """The numbers with the law of friction that predicts best. with_keys: the rig with other keys; find: identifies
    numbers of a rig. Raises InputError for drives with friction of their own."""
    for name in (name for name in rig.joints if name in rig.plant.actuated):
        actuator = rig.spec.joints[name].actuator
        if actuator is not None and hasattr(actuator.params, COULOMB):
            what = f"the drive of '{name}' has a law of friction of its own, and laws are tried on ideal drives"
            raise InputError(f"{what}; leave the option out", "--friction")
    ladder = Ladder(with_keys, find, tuple(word for word in wanted if word != WORD))
    first = best = LadderStep(find(rig, [*ladder.wanted, WORD]), {})
    laws = [TriedLaw.of(FIRST, first.found)]
    for rung in RUNGS:
        try:
            step = ladder.above(best, rung)
        except (InputError, RunError) as error:
            laws.append(TriedLaw(rung.title, why=error.what))
            continue
        laws.append(TriedLaw.of(rung.title, step.found) if step else TriedLaw(rung.title, why="not visible"))
        if step and step.is_better_than(best):
            best = step
    for title in list(best.rungs)[:-1]:
        try:
            step = ladder.without(best, title)
        except (InputError, RunError):
            continue
        if step and not best.is_better_than(step):
            best = step
    laws = [law._replace(taken=law.title in (FIRST, *best.rungs)) for law in laws]
    return replace(_beside(best.found, first.found), laws=tuple(laws))


@dataclass(frozen=True)
class LadderStep:
    """Found numbers, and by the titles of the rungs of their law the joints that have them."""

    found: Identification
    rungs: Mapping[str, tuple[str, ...]]

    def is_better_than(self, other: LadderStep) -> bool:
        """By every check."""
        pairs = zip(self.found.residuals_of_checks, other.found.residuals_of_checks, strict=True)
        return all(own < BETTER * others for own, others in pairs)


@dataclass(frozen=True)
class Ladder:
    """wanted: beside friction; see `climb`."""

    with_keys: Callable[[Keys], Rig]
    find: Callable[[Rig, Sequence[str]], Identification]
    wanted: tuple[str, ...]

    def above(self, below: LadderStep, rung: Rung) -> LadderStep | None:
        """With the rung on the joints that show it; None if none does."""
        return self._shown(below.found, {**below.rungs, rung.title: below.found.motions[0].joints}, (rung.title,))

    def without(self, step: LadderStep, title: str) -> LadderStep | None:
        """With the others on the joints that show them; None if none does."""
        others = [of for of in step.rungs if of != title]
        return self._shown(step.found, dict.fromkeys(others, step.found.motions[0].joints), others)

    def _shown(
        self, known: Identification, rungs: dict[str, tuple[str, ...]], asked: Sequence[str]
    ) -> LadderStep | None:
        """rungs: with the joints that may have them, of those asked the ones that do not show them are left out."""
        while all(rungs.values()):
            step, before = self._found(known, rungs), rungs
            rungs = {
                rung.title: tuple(name for name in rungs[rung.title] if _shows(step.found, name, rung))
                if rung.title in asked
                else rungs[rung.title]
                for rung in RUNGS
                if rung.title in rungs
            }
            if rungs == before:
                return step
        return None

    def _found(self, known: Identification, rungs: Mapping[str, tuple[str, ...]]) -> LadderStep:
        """known: where it begins."""
        sections, usual = known.overlay(), _usual_motions(known)
        # the damping of the mechanism acts in every law
        keys, numbers = {}, [*self.wanted, f"joints.*.friction.{COULOMB}", "mechanism.*.damping"]
        numbers += [f"mechanism.{rotor.name}.friction" for rotor in known.rig.plant.mechanism.rotors]
        for name, of in usual.items():
            before = sections.get(_section(name), {})
            keys[_section(name)] = law = {"model": "smooth", COULOMB: of.coulomb}
            for rung in (rung for rung in RUNGS if name in rungs.get(rung.title, ())):
                law |= {key: before.get(key, value) for key, value in rung.keys(of).items() if key != "model"}
                law |= {"model": rung.keys(of).get("model", law["model"])}
                numbers += [f"{_section(name)}.{number}" for number in rung.numbers]
        return LadderStep(self.find(self.with_keys(keys), list(dict.fromkeys(numbers))), rungs)


def _section(joint: str) -> str:
    return f"joints.{joint}.friction"


def _shows(found: Identification, joint: str, rung: Rung) -> bool:
    """Whether an effect of the rung is more than its interval."""
    numbers = {number.name: number for number in found.numbers}
    for what in rung.numbers:
        number = numbers.get(f"{_section(joint)}.{what}")
        if number is None or what == SPEED:
            continue
        none = numbers[f"{_section(joint)}.{COULOMB}"].value if what == STATIC else 0.0
        if number.value - none > number.interval:
            return True
    return False


def _usual_motions(found: Identification) -> dict[str, UsualMotion]:
    overlay, known = found.overlay(), {}
    for name in found.motions[0].joints:
        speed, effort = (rms(found.counted(what, name, training=True)) for what in ("speed", "drive"))
        of_mechanism = overlay.get(f"mechanism.numbers.{name}.friction", 0.0)
        coulomb = overlay.get(_section(name), {}).get(COULOMB, of_mechanism)
        known[name] = UsualMotion(max(coulomb, LEAST_COULOMB * effort), speed, effort)
    return known


def _beside(found: Identification, first: Identification) -> Identification:
    """With what the numbers of the rig itself are and leave unexplained."""
    in_rig = {name: number.values for name, number in table_of(first.rig).per_run.items()}
    blocks = tuple(
        replace(block, rig=in_rig.get(block.title, np.zeros(1))) if block.title.startswith("joints.") else block
        for block in found.variables.blocks
    )
    pairs = zip(found.unexplained, first.unexplained, strict=True)
    unexplained = tuple(replace(of, before=of_rig.before) for of, of_rig in pairs)
    return replace(found, variables=replace(found.variables, blocks=blocks), unexplained=unexplained)
