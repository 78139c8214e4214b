"""What the importer gives to a rig: efforts that act on joints from outside, references of controllers, and the
parameters of parts. What the ticks have no place for are symbolic parameters of their code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cosim.apps.deploy.description import DeployedNumber
from cosim.apps.deploy.fmu_export.tunable_part import TunablePart
from cosim.core import ops
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.errors import InputError, did_you_mean
from cosim.core.layout import Layout
from cosim.core.types import Numeric, Trajectory
from cosim.core.units import quantity_unit
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_model import TickModel

OPTION = "--input"
MOTION = ("position", "velocity", "acceleration")
GOES_ON = "of the controllers; until they are set again, position and velocity go on at velocity and acceleration"
Dofs = Sequence[str]


class ParametrisedRig(NamedTuple):
    """A rig whose ticks take motion, efforts and parameters from outside. rig: with places in its ticks for what is
    given; parameters: of its parts; references: of how many joints the numbers begin with the motion (3,
    references)."""

    rig: WiredRig
    inputs: tuple[DeployedNumber, ...]
    parameters: tuple[DeployedNumber, ...]
    references: int


def parametrised(rig: WiredRig, names: Sequence[str]) -> ParametrisedRig:
    """names: of inputs, such as `elbow/external_effort`, or `*/external_effort` for all joints that can have one.
    Raises InputError for others."""
    before, dofs = rig.tick_model, dict[str, list[str]]()
    for name in names:
        kind, chosen = _chosen(rig, name)
        dofs[kind] = list(dict.fromkeys([*dofs.get(kind, ()), *chosen]))
    pushed, led = (dofs.get(kind, []) for kind in KINDS)
    fed = [dof for dof in led if dof in _dofs_that_follow(before, "effort")]
    parts = {} if before.coupling is None else {k: TunablePart(part) for k, part in before.coupling.blocks.items()}
    numbers = {
        "motion": np.array([_start_of(before, led), *np.zeros((2, len(led)))]),
        "effort": np.zeros(len(fed)),
        "parts": {name: part.values for name, part in parts.items()},
    }
    layout, model = Layout(numbers), before
    if pushed:
        model = replace(model, plant=replace(model.plant, coupled=tuple(pushed)))
    if layout.size:
        model = _with_numbers(model, layout, layout.pack(numbers), led, fed, parts)
    model.parameters[:] = before.parameters
    first = model.layout.place("numbers").where.start
    references = _reference_inputs(model, layout, numbers, led, fed, first)
    parameters = (
        number
        for name, part in parts.items()
        for number in part.numbers(f"{name}.", first + layout.place("parts", name).where.start)
    )
    inputs = (*_effort_inputs(model, pushed), *references)
    return ParametrisedRig(rig.with_ticks(model), inputs, tuple(parameters), len(led))


def _with_numbers(
    model: TickModel, layout: Layout, values: np.ndarray, led: Dofs, fed: Dofs, parts: Mapping[str, TunablePart]
) -> TickModel:
    """The ticks with these numbers as inputs of their code; led, fed: joints whose motion and effort are given."""
    symbols, names = SymbolicParameters(layout.size), model.plant.model.dof_names
    given = layout.unpack(symbols.symbols)
    reference = dict.fromkeys((*MOTION, "effort"), np.zeros(model.nv))
    for what, values_of in zip(MOTION, given["motion"], strict=True):
        reference[what] = ops.set_at(reference[what], [names.index(dof) for dof in led], values_of)
    reference["effort"] = ops.set_at(reference["effort"], [names.index(dof) for dof in fed], given["effort"])
    loops, is_led = list(model.loops), np.isin(names, list(led))
    for k, loop in enumerate(loops):
        if is_led[loop.index].any():
            own = {what: value[loop.index] for what, value in reference.items()}
            loops[k] = replace(loop, trajectory=GivenReference(loop.trajectory, is_led[loop.index], own))
    changes = {"loops": loops, "symbolic_parameters": symbols, "numbers": values}
    if (coupling := model.coupling) is not None:
        parametrised_parts = {name: part.parametrised(given["parts"][name]) for name, part in parts.items()}
        changes["coupling"] = replace(coupling, parts={**coupling.parts, **parametrised_parts})
        changes["coupling_start"] = model.initial()["coupling"]
    return replace(model, **changes)


def _chosen(rig: WiredRig, name: str) -> tuple[str, Dofs]:
    """(kind, joints) of a name."""
    joint, _, kind = name.rpartition("/")
    if kind not in KINDS or not joint:
        known = " or ".join(f"<joint>/{each}" for each in KINDS)
        raise InputError(f"'{name}' cannot be an input; give {known}", OPTION)
    possible = KINDS[kind](rig.tick_model)
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


def _effort_inputs(model: TickModel, dofs: Dofs) -> list[DeployedNumber]:
    """An effort is constant until it is set again: the first coefficient of its polynomial."""
    if not dofs:
        return []
    region = model.layout.place("plant", "external", "coefficients")
    places = region.where.start + region.shape[1] * np.arange(len(dofs))
    return [
        DeployedNumber(
            f"{dof}/external_effort", _unit(model, dof, "effort"), int(place), 0.0,
            about="acts on the joint beside its drive",
        )
        for dof, place in zip(dofs, places, strict=True)
    ]  # fmt: skip


# --- references -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenReference:
    """A trajectory in which the reference of some joints (n,) is given: its values at the present time by name, which
    may be symbols."""

    trajectory: Trajectory
    is_given: np.ndarray
    values: Mapping[str, Numeric]

    @property
    def end(self) -> float:
        return np.inf

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        own = self.trajectory.sample(t)
        return {name: ops.where(self.is_given, self.values[name], values) for name, values in own.items()}


def _dofs_with_reference(model: TickModel) -> Dofs:
    return _dofs_that_follow(model, "position")


def _dofs_that_follow(model: TickModel, what: str) -> Dofs:
    names = model.plant.model.dof_names
    followed = [loop for loop in model.loops if f"reference_{what}" in loop.block.inputs]
    return tuple(dict.fromkeys(names[k] for loop in followed for k in loop.index))


def _start_of(model: TickModel, dofs: Dofs) -> np.ndarray:
    """(joints,) where their trajectories begin."""
    names, start = model.plant.model.dof_names, np.zeros(model.nv)
    for loop in model.loops:
        start[loop.index] = np.asarray(loop.trajectory.sample(0.0)["position"], dtype=float)
    return start[[names.index(dof) for dof in dofs]]


def _reference_inputs(
    model: TickModel, layout: Layout, numbers: Mapping[str, np.ndarray], led: Dofs, fed: Dofs, first: int
) -> list[DeployedNumber]:
    """Of each joint in turn; first: place of the numbers."""
    found: list[DeployedNumber] = []
    motion, effort = (first + layout.place(name).where.start for name in ("motion", "effort"))
    for k, dof in enumerate(led):
        places = {what: motion + row * len(led) + k for row, what in enumerate(MOTION)}
        places |= {"effort": effort + fed.index(dof)} if dof in fed else {}
        for what, place in places.items():
            start = float(numbers["motion"][0, k]) if what == "position" else 0.0
            name, unit = f"{dof}/reference_{what}", _unit(model, dof, what)
            found.append(DeployedNumber(name, unit, place, start, about=GOES_ON))
    return found


def _unit(model: TickModel, dof: str, what: str) -> str:
    return quantity_unit(f"joint {what}", model.plant.model.dof_units[model.plant.model.dof_index(dof)])


# the inputs `<joint>/<kind>`: the joints that can have one
KINDS: dict[str, Callable[[TickModel], Dofs]] = {
    "external_effort": _dofs_for_efforts,
    "reference_position": _dofs_with_reference,
}
