"""Laws of friction of growing detail, each taken where it predicts better what the numbers are not found from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cosim.apps.identification.results import Identification, TriedLaw
from cosim.core.errors import InputError, InputErrors, RunError
from cosim.rig.rig import Rig

BETTER = 0.97  # times the residual of each recording that checks: less is better
BEGIN = 0.02  # of the largest effort of a drive, where dry friction begins
COULOMB, VISCOUS = "joints.*.friction.coulomb", "mechanism.*.damping"


class Rung(NamedTuple):
    """A law of friction: what it adds to the numbers of those below, and the keys with which these begin."""

    title: str
    numbers: tuple[str, ...]
    keys: dict[str, Any]


RUNGS = (
    Rung("grows with the load of the drive", ("load_friction",), {"load_friction": 0.01}),
    Rung("Stribeck", ("static", "stribeck_speed"), {"model": "stribeck", "stribeck_speed": 0.1}),
    Rung("by the side that drives", ("external_load_friction",), {"external_load_friction": 0.01}),
    Rung(
        "grows with the square of the load",
        ("quadratic_load_friction", "quadratic_external_load_friction"),
        {"model": "stribeck", "quadratic_load_friction": 1e-4, "quadratic_external_load_friction": 1e-4},
    ),
)


def climb(
    rig: Rig,
    with_keys: Callable[[dict[str, Any]], Rig],
    find: Callable[[Rig, Sequence[str]], Identification],
    wanted: Sequence[str],
) -> Identification:
    """The numbers with the law of friction that predicts best, for joints whose drives and whose section `friction`
    give none. with_keys: the rig with other keys; find: identifies numbers of a rig. Raises InputError for a rig
    without such joints."""
    joints = [name for name in rig.joints if _is_open(rig, name)]
    if not joints:
        raise InputError("every joint has a law of friction of its own; take the section friction out", "--friction")
    best = find(rig, wanted)
    tried = [_tried("viscous and Coulomb", best, taken=True)]
    keys, numbers = {"model": "smooth"}, [*wanted]
    for rung in RUNGS:
        more = [*numbers, *(f"joints.*.friction.{name}" for name in rung.numbers)]
        sections = {f"joints.{name}.friction": _begin(rig, name) | keys | rung.keys for name in joints}
        if "static" in rung.numbers or "static" in str(numbers):
            sections = {place: of | {"static": 1.5 * of["coulomb"]} for place, of in sections.items()}
        try:
            found = find(with_keys(sections), more)
        except (InputError, InputErrors, RunError):
            continue  # numbers that these motions do not determine
        law = _tried(rung.title, found, taken=False)
        if all(new < BETTER * old for new, old in zip(law.checks, _taken(tried).checks, strict=True)):
            best, keys, numbers, law = found, keys | rung.keys, more, law._replace(taken=True)
        tried.append(law)
    return replace(best, laws=tuple(tried))


def _is_open(rig: Rig, name: str) -> bool:
    joint = rig.spec.joints[name]
    return joint.actuator is not None and joint.friction is None and not hasattr(joint.actuator.params, "coulomb")


def _begin(rig: Rig, name: str) -> dict[str, Any]:
    limit = getattr(rig.spec.joints[name].actuator.params, "max_effort", float("inf"))
    return {"coulomb": BEGIN * limit if limit < float("inf") else 1.0}


def _tried(title: str, found: Identification, taken: bool) -> TriedLaw:
    return TriedLaw(title, found.residual(training=True).whole, tuple(found.residuals_of_checks), taken)


def _taken(tried: Sequence[TriedLaw]) -> TriedLaw:
    return [law for law in tried if law.taken][-1]
