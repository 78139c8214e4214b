"""References that a page can change: the numbers of the trajectories of controllers as parameters of the ticks.

A trajectory and its controller are loaded again with symbols in the place of the numbers. Those with which that does
not work, because they are planned from numbers when the rig is loaded, stay as they are, and a note names them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.deploy.description import as_data, placed
from cosim.control.control_loop import ControlLoop
from cosim.control.tunables import Leaf, leaves_of, replaced
from cosim.core.compile.trace import SymbolicParameters, symbols
from cosim.core.errors import CompileError
from cosim.core.types import Numeric
from cosim.rig.reading.schema import Reading
from cosim.rig.rig_parameter import RigParameter
from cosim.rig.wiring.control_loops import build_loops
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_model import TickModel


class ParametrisedReferences(NamedTuple):
    """References with numbers that can be changed. rig: with these numbers as inputs of its ticks; parameters: of them,
    as in a description; notes: what cannot be changed, a sentence each."""

    rig: WiredRig
    parameters: list[dict[str, Any]]
    notes: list[str]


class _Number(NamedTuple):
    """A number, or one per joint, of the trajectory of controller `controller` in the file."""

    controller: int
    field: str
    leaf: Leaf

    @property
    def values(self) -> tuple[float, ...]:
        return self.leaf.value if isinstance(self.leaf.value, tuple) else (self.leaf.value,)


def with_parametrised_references(rig: WiredRig) -> ParametrisedReferences:
    found = list(_numbers(rig))
    taken = found if _traceable(rig, found) else [number for number in found if _traceable(rig, [number])]
    model = _parametrised(rig, taken) if taken else rig.tick_model
    if model is None:
        taken, model = [], rig.tick_model
    first = model.layout.place("numbers").where.start
    return ParametrisedReferences(rig.with_ticks(model), _parameters(rig, taken, first), _notes(rig, found, taken))


def _numbers(rig: WiredRig) -> Iterator[_Number]:
    for k, controller in enumerate(rig.spec.controllers):
        if controller.trajectory is not None:
            for field, leaf in leaves_of(controller.trajectory.params).items():
                yield _Number(k, field, leaf)


def _loops(rig: WiredRig, numbers: Sequence[_Number], given: Numeric) -> dict[int, ControlLoop] | None:
    """By number of the controller, the loops with symbols in the place of these numbers; None where one cannot be."""
    controllers, first = list(rig.spec.controllers), 0
    for number in numbers:
        spec, count = controllers[number.controller], len(number.values)
        assert spec.trajectory is not None
        part = given[first : first + count]
        value = part if isinstance(number.leaf.value, tuple) else part[0]
        params = replaced(spec.trajectory.params, {number.field: value}, checked=False)
        controllers[number.controller] = replace(spec, trajectory=spec.trajectory._replace(params=params))
        first += count
    reading = Reading(rig.spec.source.place, [], rig.spec.path.parent)
    changed = sorted({number.controller for number in numbers})
    spec = replace(rig.spec, controllers=tuple(controllers[k] for k in changed))
    loops = build_loops(spec, rig.plant, rig.limits, reading)
    return None if reading.errors else {k: loop for k, loop in zip(changed, loops, strict=True) if loop is not None}


def _traceable(rig: WiredRig, numbers: Sequence[_Number]) -> bool:
    symbolic, (_, time) = SymbolicParameters(sum(len(number.values) for number in numbers)), symbols("t", ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a function of numpy that knows no symbols may only warn
        loops = _loops(rig, numbers, symbolic.symbols)
        try:
            for loop in () if loops is None else loops.values():
                loop.trajectory.sample(time)
        except Exception:  # of the code of a trajectory, which may be a user's
            return False
    return loops is not None


def _parametrised(rig: WiredRig, numbers: Sequence[_Number]) -> TickModel | None:
    """The ticks with these numbers as inputs; None where their code depends on the numbers."""
    values = np.array([value for number in numbers for value in number.values], dtype=float)
    symbolic = SymbolicParameters(values.size)
    before, loops = rig.tick_model, _loops(rig, numbers, symbolic.symbols)
    if loops is None:
        return None
    own = [loops.get(k, loop) for k, loop in enumerate(before.loops)]
    try:
        model = replace(before, loops=own, symbolic_parameters=symbolic, numbers=values)
        model.parameters[:] = before.parameters
        if model.untraceable:
            return None
        _ = model.compiled_program  # traced here, for its errors
        return model
    except (CompileError, TypeError, RuntimeError):  # of casadi, for a Python `if` on a symbol
        return None


def _parameters(rig: WiredRig, numbers: Sequence[_Number], first: int) -> list[dict[str, Any]]:
    """As in a description, and where a slider ends that has no bound: `usual`, the range of the joint. first: their
    place in the memory."""
    found = []
    for number in numbers:
        spec, loop = rig.spec.controllers[number.controller], rig.tick_model.loops[number.controller]
        name, declared = f"{spec.name}.trajectory.{number.field}", number.leaf.declared
        count = len(number.leaf.value) if isinstance(number.leaf.value, tuple) else None
        joints = spec.joints if count == len(spec.joints) else ()
        slides = tuple(rig.plant.model.dof_units[k] == "m" for k in loop.index)
        parameter = RigParameter(name, f"controllers.{name}", declared, count, joints, slides)
        facts = [as_data(each) for each in placed(parameter, number.values, first + len(found))]
        if joints and declared.get("unit") == "joint position":
            for k, each in zip(loop.index, facts, strict=True):
                ends = float(rig.limits.lower[k]), float(rig.limits.upper[k])
                each["usual"] = [end if np.isfinite(end) else None for end in ends]
        found += facts
    return found


def _notes(rig: WiredRig, found: Sequence[_Number], taken: Sequence[_Number]) -> list[str]:
    notes = []
    for k, controller in enumerate(rig.spec.controllers):
        if controller.trajectory is None:
            continue
        fixed = [one.field for one in found if one.controller == k and one not in taken]
        of = f"the {controller.trajectory.name} trajectory of {controller.name}"
        if not any(one.controller == k for one in taken):
            notes.append(f"The numbers of {of} cannot be changed here: it is planned when the rig is loaded.")
        elif fixed:
            notes.append(
                f"Of {of}, {' and '.join(fixed)} cannot be changed here: the code of the motion depends on that."
            )
    return notes
