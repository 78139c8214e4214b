"""Variables that the importer gives: efforts that act on joints from outside, and references of controllers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.errors import InputError, did_you_mean
from cosim.fmu_export.variables import PlaceKind, UnitVariable
from cosim.rig.build.wired_rig import WiredRig
from cosim.tick.tick_model import TickModel
from cosim.types import Numeric, Trajectory
from cosim.units import JOINT_DIMENSIONS

OPTION = "--input"
GOES_ON = "of the controllers; it goes on at reference_velocity until it is set again"
Dofs = Sequence[str]


class InputKind(NamedTuple):
    """The inputs `<joint>/<kind>`. possible: joints that can have one; opened: ticks with places for those of these
    joints; variables: of them, from ticks before and after."""

    possible: Callable[[TickModel], Dofs]
    opened: Callable[[TickModel, Dofs], TickModel]
    variables: Callable[[TickModel, TickModel, Dofs], list[UnitVariable]]


def with_inputs(rig: WiredRig, names: Sequence[str]) -> tuple[WiredRig, tuple[UnitVariable, ...]]:
    """(the rig with places for these inputs in its ticks, their variables); names: such as `elbow/external_effort`, or
    `*/external_effort` for all joints that can have one. Raises InputError for others."""
    model, variables = rig.tick_model, list[UnitVariable]()
    dofs: dict[str, list[str]] = {}
    for name in names:
        kind, chosen = _chosen(rig, name)
        dofs[kind] = list(dict.fromkeys([*dofs.get(kind, ()), *chosen]))
    if not dofs:
        return rig, ()
    for kind, chosen in dofs.items():
        model = KINDS[kind].opened(model, chosen)
    model.parameters[:] = rig.tick_model.parameters
    for kind, chosen in dofs.items():
        variables += KINDS[kind].variables(rig.tick_model, model, chosen)
    return rig.with_ticks(model), tuple(variables)


def _chosen(rig: WiredRig, name: str) -> tuple[str, Dofs]:
    """(kind, joints) of a name."""
    joint, _, kind = name.rpartition("/")
    if kind not in KINDS or not joint:
        known = " or ".join(f"<joint>/{each}" for each in KINDS)
        raise InputError(f"'{name}' cannot be an input; give {known}", OPTION)
    possible = KINDS[kind].possible(rig.tick_model)
    if joint == "*" and possible:
        return kind, possible
    if joint != "*" and joint not in rig.joints:
        raise InputError(f"there is no joint '{joint}'{did_you_mean(joint, rig.joints)}", OPTION)
    if joint not in possible:
        fix = f"take one of {', '.join(possible)}" if possible else "take it out"
        raise InputError(f"'{name}' cannot be an input of this rig; {fix}", OPTION)
    return kind, (joint,)


# --- efforts from outside ---------------------------------------------------------------------------


def _dofs_for_efforts(model: TickModel) -> Dofs:
    """In a rig with parts these give the efforts."""
    return model.plant.model.dof_names if model.coupling is None else ()


def _with_efforts(model: TickModel, dofs: Dofs) -> TickModel:
    return replace(model, plant=replace(model.plant, coupled=tuple(dofs)))


def _effort_variables(before: TickModel, model: TickModel, dofs: Dofs) -> list[UnitVariable]:
    """An effort is constant until it is set again: the first coefficient of its polynomial."""
    region = model.layout.place("plant", "external", "coefficients")
    places = region.where.start + region.shape[1] * np.arange(len(dofs))
    return [
        UnitVariable(
            f"{dof}/external_effort", "input", _unit(model, dof, "effort"), "MEMORY", int(place),
            about="acts on the joint beside its drive",
        )
        for dof, place in zip(dofs, places, strict=True)
    ]  # fmt: skip


# --- references -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenReference:
    """A trajectory that is 0 for joints (n,) whose reference is given: all of it is in the offset of the
    `BumplessStart`, which does not fade out."""

    trajectory: Trajectory
    given: np.ndarray

    @property
    def end(self) -> float:
        return np.inf

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        return {name: ops.where(self.given, 0.0, values) for name, values in self.trajectory.sample(t).items()}


def _dofs_with_reference(model: TickModel) -> Dofs:
    names = model.plant.model.dof_names
    followed = [loop for loop in model.loops if loop.needs_reference("position")]
    return tuple(dict.fromkeys(names[k] for loop in followed for k in loop.index))


def _with_references(model: TickModel, dofs: Dofs) -> TickModel:
    given = np.isin(model.plant.model.dof_names, list(dofs))
    loops = [
        replace(loop, trajectory=GivenReference(loop.trajectory, given[loop.index]))
        if given[loop.index].any()
        else loop
        for loop in model.loops
    ]
    return replace(model, loops=loops)


def _reference_variables(before: TickModel, model: TickModel, dofs: Dofs) -> list[UnitVariable]:
    """Position and velocity of each joint; at the start at rest where the trajectory begins."""
    names, start = model.plant.model.dof_names, np.zeros(model.nv)
    for loop in before.loops:
        start[loop.index] = np.asarray(loop.trajectory.sample(0.0)["position"], dtype=float)
    first = model.layout.place("bumpless_start").where.start + 2
    variables: list[UnitVariable] = []
    for k in (names.index(dof) for dof in dofs):
        position, velocity = first + k, first + model.nv + k
        own: dict[str, tuple[PlaceKind, int, int, float]] = {
            "position": ("REFERENCE", position, velocity, float(start[k])),
            "velocity": ("RATE", velocity, position, 0.0),
        }
        for what, (kind, place, partner, value) in own.items():
            name, unit = f"{names[k]}/reference_{what}", _unit(model, names[k], what)
            variables.append(UnitVariable(name, "input", unit, kind, place, value, partner=partner, about=GOES_ON))
    return variables


def _unit(model: TickModel, dof: str, what: str) -> str:
    sliding = model.plant.model.dof_units[model.plant.model.dof_index(dof)] == "m"
    return JOINT_DIMENSIONS[f"joint {what}"][sliding]


KINDS = {
    "external_effort": InputKind(_dofs_for_efforts, _with_efforts, _effort_variables),
    "reference_position": InputKind(_dofs_with_reference, _with_references, _reference_variables),
}
