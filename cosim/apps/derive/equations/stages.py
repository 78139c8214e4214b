"""Bodies as point masses at their centres of mass, and what that changes: the first stage of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.apps.derive.tables import table
from cosim.core.errors import InputError, InputErrors, shortened
from cosim.core.types import Array
from cosim.core.units import quantity_unit, show_percent
from cosim.mechanics.multibody.bodies import Body
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import whole_of
from cosim.mechanics.multibody.tree import check_inertia_of_motion

RANDOM_STATES = 5
POINT_MASSES = "Bodies are point masses at their centres of mass."
NEGLIGIBLE = 1e-13  # of the largest effort: rounding
NO_INVERSE = "Without forward_dynamics: some joint moves no point mass, so the inertia has no inverse."


@dataclass(frozen=True)
class SampleState:
    """Coordinates (nq,), velocities and accelerations (nv,)."""

    q: Array
    v: Array
    a: Array


def point_masses(e: MechanismEquations) -> MechanismEquations:
    """The same mechanism without the inertia of its bodies about their centres of mass; rotors keep theirs. Raises
    InputError for an elastic link."""
    for link in e.tree.mechanism.links:
        if link.elastic is not None:
            name = whole_of(link.name)
            raise InputError(f"link '{name}' is elastic, which a point mass is not", "--point-masses")

    def concentrated(body: Body) -> Body:
        if not body.mass:
            return body
        c = body.moment / body.mass
        return body._replace(inertia=body.mass * (c @ c * np.eye(3) - np.outer(c, c)))

    tree = replace(e.tree, bodies=tuple(map(concentrated, e.tree.bodies)))
    return MechanismEquations(tree, e.gravity, e.constraints)


def is_singular(e: MechanismEquations) -> bool:
    """Whether a joint can move without inertia."""
    try:
        check_inertia_of_motion(e.tree)
    except InputErrors:
        return True
    return False


def read_state(text: str, model: Model) -> SampleState:
    """From `q1, q2; v1, v2; a1, a2` in SI units; groups that are left out are 0. Raises InputError."""
    sizes = {"positions": model.nq, "velocities": model.nv, "accelerations": model.nv}
    groups = text.split(";")
    example = "; ".join(",".join(["0"] * n) for n in sizes.values())

    def refuse(what: str) -> InputError:
        return InputError(f"{what}; give {', '.join(sizes)} in SI units, such as '{example}'", "--at")

    if len(groups) > len(sizes):
        raise refuse(f"'{shortened(text)}' has {len(groups)} groups")
    found = [np.zeros(n) for n in sizes.values()]
    for k, ((name, n), group) in enumerate(zip(sizes.items(), groups, strict=False)):
        if not group.strip():
            raise refuse(f"the group of {name} is empty")
        words = group.split(",")
        for word in words:
            if not _is_finite(word):
                raise refuse(f"'{shortened(word.strip())}' in the {name} is no finite number")
        if len(words) != n:
            raise refuse(f"the {name} are {n} numbers, not {len(words)}")
        found[k] = np.array([float(word) for word in words])
    q, v, a = found
    return SampleState(np.asarray(model.equations.normalised(q), dtype=float), v, a)


def _is_finite(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False


def random_states(model: Model) -> list[SampleState]:
    """Positions within the limits, velocities and accelerations up to 1."""
    rng = np.random.default_rng(0)
    moves = [(model.random_configuration(rng), *rng.uniform(-1, 1, (2, model.nv))) for _ in range(RANDOM_STATES)]
    return [SampleState(*move) for move in moves]


def difference_lines(
    model: Model, full: MechanismEquations, concentrated: MechanismEquations, given: Sequence[SampleState]
) -> list[str]:
    """Efforts of both stages in the given states; of random ones the largest for each joint."""
    states = given or random_states(model)
    efforts = np.array([[_effort(e, state) for e in (full, concentrated)] for state in states])
    exact, simple, change = _without_rounding(efforts[:, 0], efforts[:, 1], efforts[:, 1] - efforts[:, 0])
    units = [quantity_unit("joint effort", unit) for unit in model.dof_units]
    if given:
        rows = [
            (f"{k}", name, f"{exact[k - 1, i]:.6g}", f"{simple[k - 1, i]:.6g}", f"{change[k - 1, i]:.6g}", units[i])
            for k in range(1, len(states) + 1)
            for i, name in enumerate(model.dof_names)
        ]
        return table([("state", "joint", "full inertia", "point masses", "difference", ""), *rows], "><>>><")
    largest, changed = np.abs(exact).max(axis=0), np.abs(change).max(axis=0)
    rows = [
        (name, f"{largest[i]:.6g}", f"{changed[i]:.6g}", units[i], f"{_percent(changed[i], largest[i])}")
        for i, name in enumerate(model.dof_names)
    ]
    heading = f"efforts in {len(states)} random states, velocities and accelerations up to 1 in SI units"
    return [heading, *table([("joint", "largest", "largest difference of point masses", "", ""), *rows], "<>><>")]


def _effort(e: MechanismEquations, state: SampleState) -> Array:
    return np.asarray(e.inverse_dynamics(state.q, state.v, state.a) + e.friction_effort(state.v))


def _without_rounding(*tables: Array) -> list[Array]:
    """With 0 for what is nothing beside the largest number of all."""
    largest = max(np.abs(x).max(initial=0.0) for x in tables)
    return [np.where(np.abs(x) <= NEGLIGIBLE * largest, 0.0, x) for x in tables]


def _percent(part: float, whole: float) -> str:
    return show_percent(part / whole) if whole else ""
