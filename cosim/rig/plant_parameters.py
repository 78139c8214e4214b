"""Numbers of the mechanism and the drives of a rig that become inputs of its compiled ticks instead of constants.

joints.<dof>.actuator.<field>     a number of a drive
joints.<dof>.friction.<field>     a number of a law of friction
joints.<dof>.encoder.noise        the standard deviation of an encoder that has noise
mechanism.<link>.mass             and com (3,), inertia (6,): ixx, iyy, izz, ixy, ixz, iyz about the centre of mass
mechanism.<joint>.damping         and friction, of the joint itself, unless the law of all its dofs replaces it
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from cosim.control.tunables import Tunables
from cosim.core import ops
from cosim.core.compile import ArrayPort, Interpreted
from cosim.core.compile.compiled import BatchFunction, compile_for_batches
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.errors import CompileError, InputError, InputErrors, SourceLocation, where_raised
from cosim.core.types import Actuator, Array, Numeric
from cosim.core.units import JOINT_DIMENSIONS, UNITS
from cosim.mechanics.multibody.description.inertia import check_inertia, inertia_matrix
from cosim.mechanics.multibody.friction import JointFriction
from cosim.mechanics.multibody.inertial_parameters import ELEMENTS
from cosim.mechanics.multibody.joints import unit_of
from cosim.mechanics.multibody.mechanism import Inertial, Joint
from cosim.rig.reading import schema
from cosim.rig.reading.schema import Reading
from cosim.rig.wiring.control_loops import build_loops
from cosim.rig.wiring.plant import friction_laws, with_friction
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.plant import Plant
from cosim.simulation.tick.tick_model import TickModel

JOINT_NUMBERS = {"damping": "joint damping", "friction": "joint effort"}  # … and their units


@dataclass
class Changes:
    """What symbols replace in the parts of a rig."""

    drives: dict[str, Any] = field(default_factory=dict)  # dof -> parameters of its drive
    friction: dict[str, JointFriction] = field(default_factory=dict)  # dof -> the law of its friction
    inertials: dict[str, Inertial] = field(default_factory=dict)  # link -> its inertial
    joints: dict[str, Joint] = field(default_factory=dict)
    noise: dict[int, Numeric] = field(default_factory=dict)  # dof -> standard deviation

    @property
    def of_mechanism(self) -> bool:
        return bool(self.inertials or self.joints or self.friction)


class PlantParameter(NamedTuple):
    """A number of the plant. values (n,): of the rig; put: puts symbols (n,) in their place; check: returns what is
    wrong with values (n,), or ""; unit; bounded: whether the check holds for all values between two that are right."""

    values: Array
    put: Callable[[Changes, Numeric], None]
    check: Callable[[Array], str]
    unit: str
    bounded: bool = True

    def first_wrong(self, rows: Array) -> tuple[int, str] | None:
        """(run, what is wrong) of the first of k runs whose values (k, n) the rig file could not have."""
        found = range(len(rows))
        if self.bounded and np.isfinite(rows).all():
            found = sorted({int(pick(column)) for column in rows.T for pick in (np.argmin, np.argmax)})
        return next(((k, what) for k in found if (what := self.check(rows[k]))), None)


def plant_parameters_of(rig: WiredRig) -> dict[str, PlantParameter]:
    """Name -> the number."""
    found: dict[str, PlantParameter] = {}
    sliding = {name: unit == "m" for name, unit in zip(rig.joints, rig.plant.model.dof_units, strict=True)}
    for name, joint in rig.spec.joints.items():
        if joint.actuator is not None and name not in rig.plant.real:
            params = joint.actuator.params
            found |= {
                f"joints.{name}.actuator.{item}": _of_parameters(name, params, item, where, "drives", sliding[name])
                for item, where in Tunables(params).fields.items()
            }
        if joint.friction is not None:
            law = joint.friction
            found |= {
                f"joints.{name}.friction.{item}": _of_parameters(name, law, item, where, "friction", sliding[name])
                for item, where in Tunables(joint.friction).fields.items()
                if not (item == "load_friction" and joint.actuator is None)
            }
    for k, noise in enumerate(rig.tick_model.encoders.params.noise):
        if noise > 0.0:
            found[f"joints.{rig.joints[k]}.encoder.noise"] = _of_encoder(k, float(noise), sliding[rig.joints[k]])
    mechanism = rig.plant.mechanism
    for link in mechanism.links:
        if link.inertial is not None:
            found |= {f"mechanism.{link.name}.{what}": _of_link(link.name, link.inertial, what) for what in _LINK}
    for joint in mechanism.joints:
        if joint.kind != "fixed":
            replaced = bool(joint.friction_laws) and all(joint.friction_laws)
            numbers = (what for what in JOINT_NUMBERS if not (what == "friction" and replaced))
            found |= {f"mechanism.{joint.name}.{what}": _of_joint(joint, what) for what in numbers}
    return found


def _of_parameters(
    dof: str, owner: Any, name: str, where: slice, of: Literal["drives", "friction"], sliding: bool
) -> PlantParameter:
    """A field of the parameters of the drive of a dof, or of its law of friction."""
    declared = type(owner).__dataclass_fields__[name].metadata.get("unit", "1")
    single = isinstance(getattr(owner, name), float)

    def put(changes: Changes, symbols: Numeric) -> None:
        params = getattr(changes, of).setdefault(dof, copy.copy(owner))
        # without the checks of the class, which are for numbers
        object.__setattr__(params, name, symbols[0] if single else symbols)

    def check(values: Array) -> str:
        reading = Reading(lambda path: SourceLocation(""), [])
        given = values.tolist()[0] if single else values.tolist()
        fields = {item: getattr(owner, item) for item in Tunables(owner).fields}
        section = {item: value for item, value in fields.items() if np.isfinite(value).all()} | {name: given}
        schema.read_fields(type(owner), section, (), reading)
        return reading.errors[0].what if reading.errors else _refusal(owner, name, given)

    values = Tunables(owner).values[where]
    return PlantParameter(values, put, check, _si_unit(declared, sliding))


def _si_unit(declared: str, sliding: bool) -> str:
    """The unit of a number in SI, of a dof that turns or slides."""
    return JOINT_DIMENSIONS[declared][sliding] if declared in JOINT_DIMENSIONS else UNITS[declared][0]


def _refusal(params: Any, name: str, value: float | list[float]) -> str:
    """Why the class of the parameters refuses a value, "" where it does not."""
    try:
        replace(params, **{name: tuple(value) if isinstance(value, list) else value})
    except ValueError as error:
        return str(error)
    return ""


def _of_encoder(k: int, noise: float, sliding: bool) -> PlantParameter:
    def put(changes: Changes, symbols: Numeric) -> None:
        changes.noise[k] = symbols[0]

    return PlantParameter(np.array([noise]), put, _not_negative, _si_unit("joint position", sliding))


def _of_joint(joint: Joint, what: str) -> PlantParameter:
    def put(changes: Changes, symbols: Numeric) -> None:
        changes.joints[joint.name] = replace(changes.joints.get(joint.name, joint), **{what: symbols[0]})

    unit = _si_unit(JOINT_NUMBERS[what], unit_of(joint.kind) == "m")
    return PlantParameter(np.array([getattr(joint, what)]), put, _not_negative, unit)


# attribute of an inertial -> (its numbers, the attribute from them, unit)
_LINK: dict[str, tuple[Callable[[Inertial], Numeric], Callable[[Numeric], Numeric], str]] = {
    "mass": (lambda body: [body.mass], lambda x: x[0], "kg"),
    "com": (lambda body: body.com, lambda x: x, "m"),
    "inertia": (
        lambda body: [body.inertia[at] for at in ELEMENTS], lambda x: ops.array(inertia_matrix(*x).tolist()), "kg*m^2",
    ),
}  # fmt: skip


def _of_link(link: str, inertial: Inertial, what: str) -> PlantParameter:
    numbers, from_numbers, unit = _LINK[what]

    def put(changes: Changes, symbols: Numeric) -> None:
        body = changes.inertials.get(link, inertial)
        changes.inertials[link] = replace(body, **{what: from_numbers(symbols)})

    def check(values: Array) -> str:
        if not np.isfinite(values).all():
            return _NOT_FINITE
        if what == "mass" and not values[0] > 0.0:
            return f"must be above 0 kg, is {values[0]:.12g} kg"
        if what == "inertia":
            return check_inertia(inertial.mass, inertia_matrix(*values))[0] or ""
        return ""

    return PlantParameter(np.array(numbers(inertial), dtype=float), put, check, unit, bounded=what != "inertia")


_NOT_FINITE = "must be finite numbers"


def _not_negative(values: Array) -> str:
    if not np.isfinite(values).all():
        return _NOT_FINITE
    return "" if values[0] >= 0.0 else f"must be at least 0, is {values[0]:.12g}"


def parametrised(rig: WiredRig, names: Sequence[str], unknown: Collection[str] = ()) -> TickModel:
    """The ticks of the rig with these numbers as inputs, in this order, in the region `numbers` of its memory.

    unknown: those that the models of the controllers do not have, which keep the numbers of the rig file. Raises
    InputErrors for a number on which the form of the code depends, and for a formulation that takes inertias as
    constants only.
    """
    _check_parts(rig)
    values = [plant_parameters_of(rig)[name].values for name in names]
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
    numbers, base = plant_parameters_of(rig), rig.tick_model
    changes, reading = _changes(numbers, names, values), Reading(rig.spec.source.place, [], rig.spec.path.parent)
    plant = _plant(rig, changes)
    seen = _plant(rig, _changes(numbers, names, values, but=unknown)) if unknown else plant
    loops = [loop for loop in build_loops(rig.spec, seen, rig.limits, reading, rig.plant) if loop is not None]
    if reading.errors:
        raise InputErrors(reading.errors)
    return replace(base, plant=plant, loops=loops, encoders=_encoders(base.encoders, changes.noise))


def plant_with(rig: WiredRig, names: Sequence[str], values: Numeric) -> tuple[Plant, dict[str, Any]]:
    """The plant of the rig with these values (n,), side by side, of the numbers, and the parameters of its drives by
    dof."""
    changes = _changes(plant_parameters_of(rig), names, values)
    drives = {name: joint.actuator.params for name, joint in rig.spec.joints.items() if joint.actuator is not None}
    return _plant(rig, changes), drives | changes.drives


def bristles_of(rig: WiredRig, names: Sequence[str]) -> Callable[[Numeric, Numeric], Numeric]:
    """(values (numbers,), state of the plant at t = 0 (nx,)) -> deflections (n,) of bristles that hold."""
    layout = rig.plant.layout

    def bristles(values: Numeric, x: Numeric) -> Numeric:
        return plant_with(rig, names, values)[0].holding_bristles(layout.unpack(x))

    return bristles


def holding_bristles(rig: WiredRig, names: Sequence[str]) -> BatchFunction | Interpreted:
    """`bristles_of` in batches: (k, n) from values (k, numbers) and states (k, nx)."""
    numbers = plant_parameters_of(rig)
    count = sum(numbers[name].values.size for name in names)
    ports = [ArrayPort("numbers", (count,)), ArrayPort("x", (rig.plant.layout.size,))]
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
        mechanism = replace(mechanism, links=tuple(links), joints=tuple(joints))
        mechanism = with_friction(mechanism, friction_laws(rig.spec) | changes.friction, rig.spec.owners)
    return plant.with_numbers(mechanism, _drives(rig, changes))


def _encoders(encoders: Encoders, noise: dict[int, Numeric]) -> Encoders:
    if not noise:
        return encoders
    changed = copy.copy(encoders)
    values = ops.set_at(encoders.params.noise, list(noise), list(noise.values()))
    changed.params = replace(encoders.params, noise=values)
    return changed
