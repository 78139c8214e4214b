"""A rig with other numbers of its plant: as inputs of its compiled ticks, or as other constants of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile import ArrayPort, Interpreted
from cosim.core.compile.compiled import BatchFunction, compile_for_batches
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.errors import CompileError, InputError, InputErrors, where_raised
from cosim.core.types import Actuator, Array, Numeric
from cosim.rig.parameter_table import table_of
from cosim.rig.plant_parameters import Changes, PlantParameter
from cosim.rig.reading.schema import Reading
from cosim.rig.wiring.control_loops import build_loops
from cosim.rig.wiring.plant import friction_laws, with_friction
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.plant import Plant
from cosim.simulation.tick.tick_model import TickModel


def parametrised(rig: WiredRig, names: Sequence[str], unknown: Collection[str] = ()) -> TickModel:
    """The ticks of the rig with these numbers as inputs, in this order, in the region `numbers` of its memory.

    unknown: those that the models of the controllers do not have, which keep the numbers of the rig file. Raises
    InputErrors for a number on which the form of the code depends, and for a formulation that takes inertias as
    constants only.
    """
    _check_parts(rig)
    values = [table_of(rig).per_run[name].values for name in names]
    symbols = SymbolicParameters(sum(value.size for value in values))
    try:
        model = _with(rig, names, symbols.symbols, unknown)
        _check_formulation(rig, model.plant)
        model = replace(model, symbolic_parameters=symbols, numbers=np.concatenate(values))
        model.parameters[:] = rig.tick_model.parameters
        _ = model.compiled_program  # traced here, for its errors
        return model
    except CompileError as error:
        raise _structural(names, f"{error.place}: {error.what}") from None
    except (TypeError, RuntimeError) as error:  # of casadi, for a Python `if` on a symbol
        raise _structural(names, f"{where_raised(error)}: {str(error).splitlines()[0]}") from None


def _check_parts(rig: WiredRig) -> None:
    """Raises InputError for a rig whose coupled start depends on the numbers."""
    if rig.tick_model.coupling is not None:
        what = "numbers of the mechanism and the drives are constants in a rig with parts that are integrated apart"
        fix = "load the rig with an override for each value instead"
        raise InputError(f"{what}; {fix}", rig.place(("parts",)) or "parameters")


def _check_formulation(rig: WiredRig, plant: Plant) -> None:
    try:
        _ = plant.other_formulation
    except InputError as error:
        raise InputError(error.what, rig.place(("mechanism", "formulation")) or error.place) from None


def with_numbers(rig: WiredRig, names: Sequence[str], values: Array, unknown: Collection[str] = ()) -> TickModel:
    """The ticks of the rig with these values (n,) of the numbers, side by side, as constants; unknown: as in
    `parametrised`.

    Raises InputErrors for numbers that do not fit together.
    """
    model = _with(rig, names, values, unknown)
    model.parameters[:] = rig.tick_model.parameters
    return model


def _with(rig: WiredRig, names: Sequence[str], values: Numeric, unknown: Collection[str]) -> TickModel:
    """The ticks with these numbers or symbols (n,) in place of the rig's."""
    numbers, base = table_of(rig).per_run, rig.tick_model
    changes, reading = _changes(numbers, names, values), Reading(rig.spec.source.place, [], rig.spec.path.parent)
    plant = _plant(rig, changes)
    seen = _plant(rig, _changes(numbers, names, values, but=unknown)) if unknown else plant
    loops = [loop for loop in build_loops(rig.spec, seen, rig.limits, reading, rig.plant) if loop is not None]
    if reading.errors:
        raise InputErrors(reading.errors)
    # references begin as in the rig, whatever its numbers are
    blending = base.blend_acceleration
    encoders = _encoders(base.encoders, changes.noise)
    return replace(base, plant=plant, loops=loops, encoders=encoders, given_blend_acceleration=blending)


def plant_with(rig: WiredRig, names: Sequence[str], values: Numeric) -> tuple[Plant, dict[str, Any]]:
    """The plant of the rig with these values (n,), side by side, of the numbers, and the parameters of its drives by
    dof."""
    changes = _changes(table_of(rig).per_run, names, values)
    drives = {name: joint.actuator.params for name, joint in rig.spec.joints.items() if joint.actuator is not None}
    return _plant(rig, changes), drives | changes.drives


def bristles_of(rig: WiredRig, names: Sequence[str]) -> Callable[[Numeric, Numeric], Numeric]:
    """(values (numbers,), state at t = 0 (nx,) of the plant with these numbers as symbols) -> deflections (n,) of
    bristles that hold."""

    def bristles(values: Numeric, x: Numeric) -> Numeric:
        plant = plant_with(rig, names, values)[0]
        return plant.holding_bristles(plant.layout.unpack(x))

    return bristles


def holding_bristles(rig: WiredRig, model: TickModel, names: Sequence[str]) -> BatchFunction | Interpreted:
    """`bristles_of` in batches: (k, n) from values (k, numbers) and states (k, nx); model: with these numbers."""
    numbers = table_of(rig).per_run
    count = sum(numbers[name].values.size for name in names)
    ports = [ArrayPort("numbers", (count,)), ArrayPort("x", (model.plant.layout.size,))]
    return compile_for_batches(bristles_of(rig, names), ports, "bristles")


def _changes(
    numbers: Mapping[str, PlantParameter], names: Sequence[str], values: Numeric, but: Collection[str] = ()
) -> Changes:
    """values (n,): of the numbers, side by side; but: numbers that are left as they are."""
    changes, first = Changes(), 0
    for name in names:
        count = numbers[name].values.size
        if name not in but:
            numbers[name].put(changes, ops.array(list(values[first : first + count])))
        first += count
    return changes


def _structural(names: Sequence[str], why: str) -> InputError:
    what = f"the form of the code depends on {' or '.join(names)} ({why})"
    return InputError(f"{what}; load the rig with an override for each value instead", "parameters")


def _drives(rig: WiredRig, changes: Changes) -> dict[str, Actuator]:
    drives = dict(rig.plant.actuators)
    for name, params in changes.drives.items():
        plugin = rig.spec.joints[name].actuator
        assert plugin is not None
        drives[name] = plugin.module.load(params)
    return drives


def _plant(rig: WiredRig, changes: Changes) -> Plant:
    """The plant with symbols in it; its initial state comes from the rig's numbers."""
    plant, mechanism = rig.plant, rig.plant.mechanism
    if changes.of_mechanism:
        links = (replace(link, inertial=changes.inertials.get(link.name, link.inertial)) for link in mechanism.links)
        joints = (changes.joints.get(joint.name, joint) for joint in mechanism.joints)
        rotors = (changes.rotors.get(rotor.name, rotor) for rotor in mechanism.rotors)
        contacts = (changes.contacts.get(contact.name, contact) for contact in mechanism.contacts)
        parts = {"links": links, "joints": joints, "rotors": rotors, "contacts": contacts}
        mechanism = replace(mechanism, **{name: tuple(changed) for name, changed in parts.items()})
        mechanism = with_friction(mechanism, friction_laws(rig.spec) | changes.friction, rig.spec.owners)
    return plant.with_numbers(mechanism, _drives(rig, changes))


def _encoders(encoders: Encoders, noise: dict[int, Numeric]) -> Encoders:
    if not noise:
        return encoders
    changed = copy.copy(encoders)
    values = ops.set_at(encoders.params.noise, list(noise), list(noise.values()))
    changed.params = replace(encoders.params, noise=values)
    return changed
