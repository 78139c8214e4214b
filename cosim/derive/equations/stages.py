"""Bodies as point masses at their centres of mass, and what that changes: the first stage of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.derive.tables import table
from cosim.errors import InputError, InputErrors, shortened
from cosim.multibody.bodies import Body
from cosim.multibody.elastic_joints import MODES
from cosim.multibody.equations import MechanismEquations
from cosim.multibody.model import Model
from cosim.multibody.tree import check_inertia_of_motion
from cosim.types import Array

RANDOM_STATES = 5
POINT_MASSES = "Bodies are point masses at their centres of mass."
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
            name = link.name.removesuffix(MODES)
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
    """From `q1, q2; v1, v2; a1, a2` in SI units; what is left out is 0. Raises InputError."""
    sizes = (model.nq, model.nv, model.nv)
    groups = [group.split(",") for group in text.split(";")]
    try:
        given = [np.array([float(word) for word in group]) for group in groups]
    except ValueError:
        given = []
    fitting = len(given) <= 3 and all(len(x) == n for x, n in zip(given, sizes, strict=False))
    if not given or not fitting or not all(np.isfinite(x).all() for x in given):
        example = "; ".join(",".join(["0"] * n) for n in sizes)
        what = f"expected positions, velocities and accelerations such as '{example}', got '{shortened(text)}'"
        raise InputError(what, "--at")
    q, v, a = [*given, *(np.zeros(n) for n in sizes[len(given) :])]
    return SampleState(np.asarray(model.equations.normalised(q), dtype=float), v, a)


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
    exact, simple = efforts[:, 0], efforts[:, 1]
    change, units = simple - exact, ["N*m" if unit == "rad" else "N" for unit in model.dof_units]
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
    return np.asarray(
        e.inverse_dynamics(state.q, state.v, state.a) + e.friction_effort(state.v) + e.spring_effort(state.q)
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.3g} %" if whole else ""
