"""What the plant records of its constraints and of the joints whose reactions the rig names: the wrench on the child by
its components, its resultants, and violations.

Components stand along the axes of the frame on the parent, moments are about the origin of the child's frame. All of
them come from the one wrench of each joint and constraint (`MechanismEquations.wrenches_of_constraints`,
`wrenches_of_joints`), whatever the rows of its law look like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cosim.core import ops
from cosim.core.types import Numeric, Signal, Signals, State
from cosim.mechanics.multibody.constraint_laws import WRENCH
from cosim.mechanics.multibody.constraint_rows import BodyConstraint, ConstraintWrenches
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.wrenches import resultant
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.recorded_values import ReactionNames, RecordedSignals

_MEANINGS = {
    "N": "force on the child, along the axes of the joint's or constraint's frame on the parent",
    "N*m": "moment on the child about the origin of its frame, along the axes of the frame on the parent",
}
OF_A_WRENCH: Signals = {spec.name: Signal((), spec.unit, _MEANINGS[spec.unit]) for spec in WRENCH.values()}
RESULTANTS: Signals = {
    "resultant_force": Signal((), "N", "size of the force"),
    "resultant_moment": Signal((), "N*m", "size of the moment about the origin of the child's frame"),
}
OF_A_CONSTRAINT: Signals = {
    "violation": Signal((), "", "constraint violation"),  # in the units of its rows, as its reactions
    "slip": Signal((), "", "violation of a velocity constraint"),
}
REACTION = "reaction of the constraint"
EFFORT_ON_DOF = "effort of the constraint on the dof, along its positive velocity"


def record_reactions(
    plant: Plant, recorded: RecordedSignals, t: Numeric, solution: Mapping[str, Numeric], active: Numeric | None
) -> None:
    """`<constraint>/force_x` … and their resultants, `<constraint>/violation` and `<constraint>/slip`; the same without
    the last two of the joints whose reactions the rig names."""
    q, v, equations = solution["q"], solution["v"], plant.model.equations
    members, asked = equations.constraints.members, equations.tree.mechanism.reactions
    multipliers = _multipliers(equations, t, solution, active)
    by_joint: dict[str, SpatialVector] = {}
    if asked or any(constraint.weld_of for constraint in members):
        by_joint = _wrenches_by_joint(plant, t, solution, multipliers)
    if members:
        sizes = equations.sizes_of_rows(q, t) if any(constraint.is_scaled for constraint in members) else []
        _record_constraints(
            equations, recorded, multipliers, equations.wrenches_of_constraints(q, v, multipliers, t), by_joint, sizes
        )
        _record_drift(equations, recorded, q, v, t, active)
    for joint in asked:
        if joint not in recorded.reactions:  # loop joints with coordinates are recorded already
            _record_wrench(recorded, joint, by_joint[joint])


def reaction_sizes(plant: Plant, t: Numeric, x: State, request: Numeric) -> dict[str, Numeric]:
    """(nv,) each of a state: the resultants [N] and [N m] of what the joint of each dof exerts on its child."""
    solution = plant.efforts(t, x, request)
    multipliers = _multipliers(plant.model.equations, t, solution, plant.active(x))
    by_joint = _wrenches_by_joint(plant, t, solution, multipliers)
    owners = [joint.name for joint, kind in zip(plant.model.joints, plant.model.kinds, strict=True) for _ in kind.dofs]
    return {
        "reaction_force": ops.array([resultant(list(by_joint[joint].linear)) for joint in owners]),
        "reaction_moment": ops.array([resultant(list(by_joint[joint].angular)) for joint in owners]),
    }


def _multipliers(
    equations: MechanismEquations, t: Numeric, solution: Mapping[str, Numeric], active: Numeric | None
) -> Numeric:
    """λ of all rows, of least norm."""
    if not equations.constraints.members:
        return []
    return equations.least_norm_reactions(solution["q"], solution["multipliers"], t, active)


def _wrenches_by_joint(
    plant: Plant, t: Numeric, solution: Mapping[str, Numeric], multipliers: Numeric
) -> dict[str, SpatialVector]:
    """Of every joint of the tree."""
    q, v, a = (solution[name] for name in ("q", "v", "a"))
    found = plant.model.equations.wrenches_of_joints(q, v, a, multipliers, t, solution["pushes"])
    return dict(zip(plant.model.tree_joint_names, found, strict=True))


def _record_constraints(
    equations: MechanismEquations,
    recorded: RecordedSignals,
    multipliers: Numeric,
    wrenches: Sequence[ConstraintWrenches],
    by_joint: Mapping[str, SpatialVector],
    sizes: Sequence[Numeric],
) -> None:
    """sizes: see `sizes_of_rows`, of laws that need them."""
    first = 0
    for k, (constraint, found) in enumerate(zip(equations.constraints.members, wrenches, strict=True)):
        law, name = constraint.law, constraint.name
        rows = dict(zip((row.name for row in law.rows), multipliers[first : first + len(law.rows)], strict=True))
        first += len(law.rows)
        if constraint.weld_of:
            _record_wrench(recorded, name, by_joint[constraint.weld_of])
        elif law.components:
            on_child = _components(found.along_parent()[1])
            _record_components(recorded, name, {spec.name: on_child[spec.name] for spec in law.components})
        elif law.named_rows:
            _record_components(recorded, name, rows, {row.name: Signal((), row.unit, REACTION) for row in law.rows})
        else:
            own = {row: x * size for (row, x), size in zip(rows.items(), sizes[k], strict=True)}
            _record_law_in_python(equations, recorded, constraint, own, found)


def _record_law_in_python(
    equations: MechanismEquations,
    recorded: RecordedSignals,
    constraint: BodyConstraint,
    rows: Mapping[str, Numeric],
    found: ConstraintWrenches,
) -> None:
    """What its rows exert, in their units; the wrench `<constraint>.<link>/force_x` … on each frame and
    `<constraint>.<dof>/effort` on each dof. None of it depends on how its residual is scaled."""
    recorded.add(constraint.name, rows, {row.name: Signal((), row.unit, REACTION) for row in constraint.law.rows})
    sizes: list[str] = []
    for link, wrench in zip(distinct(constraint.links), found.along_parent(), strict=True):
        _record_wrench(recorded, owner := f"{constraint.name}.{link}", wrench)
        sizes += recorded.reactions.pop(owner).sizes
    dofs = equations.dofs_of_tree
    for dof, effort in zip(constraint.dofs, found.efforts, strict=True):
        name, unit = dofs[dof]
        owner = f"{constraint.name}.{name}"
        recorded.add(owner, {"effort": effort}, {"effort": Signal((), "joint effort", EFFORT_ON_DOF)}, unit)
        sizes.append(f"{owner}/effort")
    recorded.reactions[constraint.name] = ReactionNames(tuple(rows), tuple(sizes))


def _record_wrench(recorded: RecordedSignals, owner: str, wrench: SpatialVector) -> None:
    _record_components(recorded, owner, _components(wrench))


def _components(wrench: SpatialVector) -> dict[str, Numeric]:
    """By the names of the signals."""
    return dict(zip(OF_A_WRENCH, (*wrench.linear, *wrench.angular), strict=True))


def _record_components(
    recorded: RecordedSignals, owner: str, values: Mapping[str, Numeric], declared: Signals = OF_A_WRENCH
) -> None:
    """The components, and the resultant of the forces and of the moments where there are several."""
    recorded.add(owner, values, declared)
    sizes: list[str] = []
    for name, signal in RESULTANTS.items():
        parts = {what: value for what, value in values.items() if declared[what].unit == signal.unit}
        if len(parts) > 1:
            recorded.add(owner, {name: resultant(list(parts.values()))}, RESULTANTS)
            sizes.append(f"{owner}/{name}")
        else:
            sizes += [f"{owner}/{what}" for what in parts]
    recorded.reactions[owner] = ReactionNames(tuple(values), tuple(sizes))


def _record_drift(
    equations: MechanismEquations, recorded: RecordedSignals, q: Numeric, v: Numeric, t: Numeric, active: Numeric | None
) -> None:
    residual, rate = equations.constraint_violation(q, v, t)
    first = row = 0
    for k, constraint in enumerate(equations.constraints.members):
        is_active, rows = 1.0 if active is None else active[k], constraint.law.rows
        violation, n = residual[first : first + constraint.holonomic], len(rows)
        slip = rate[row + constraint.holonomic : row + n]
        for what, of, values in (
            ("violation", rows[: constraint.holonomic], violation),
            ("slip", rows[constraint.holonomic :], slip),
        ):
            if of:
                declared = {what: drift_signal(OF_A_CONSTRAINT[what], [own.residual_unit for own in of])}
                recorded.add(constraint.name, {what: is_active * ops.sqrt(values @ values)}, declared)
        first, row = first + constraint.holonomic, row + n


def drift_signal(signal: Signal, units: Sequence[str]) -> Signal:
    """The signal of the size of residuals in these units: in m where some are lengths and others angles."""
    found = list(dict.fromkeys(units))
    if len(found) == 1:
        return replace(signal, unit=found[0])
    unit = next(unit for unit in found if not unit.startswith("rad"))
    return replace(signal, unit=unit, meaning=f"{signal.meaning}, 1 rad counts as 1 m")


def distinct(names: Sequence[str]) -> Iterator[str]:
    """The names, with a number where one comes several times."""
    counts, seen = Counter(names), Counter[str]()
    for name in names:
        seen[name] += 1
        yield name if counts[name] == 1 else f"{name}_{seen[name]}"
