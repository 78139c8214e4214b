"""Numbers of the mechanism and the drives of a rig that become inputs of its compiled ticks instead of constants.

joints.<dof>.actuator.<field>     a number of a drive
joints.<dof>.friction.<field>     a number of a law of friction
joints.<dof>.encoder.noise        the standard deviation of an encoder that has noise
mechanism.<link>.mass             and com (3,), inertia (6,): ixx, iyy, izz, ixy, ixz, iyz about the centre of mass
mechanism.<joint>.damping         and friction, of the joint itself, unless the law of all its dofs replaces it
mechanism.<rotor>.inertia         and damping, friction, of a rotor that turns with several joints
mechanism.<contact>.friction      and torsional, rolling, stiffness, restitution, of all contacts of an entry
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cosim.control.tunables import Tunables
from cosim.core import ops
from cosim.core.errors import SourceLocation
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.description.inertia import check_inertia, inertia_matrix
from cosim.mechanics.multibody.friction import OF_DRIVE, OF_EXTERNAL, JointFriction
from cosim.mechanics.multibody.inertial_parameters import ELEMENTS
from cosim.mechanics.multibody.joints import unit_of
from cosim.mechanics.multibody.mechanism import Contact, CoupledRotor, Inertial, Joint
from cosim.rig.reading import schema
from cosim.rig.reading.schema import Reading
from cosim.rig.rig_parameter import RigParameter
from cosim.rig.sections.contact_laws import ContactLawKeys, FrictionKeys
from cosim.rig.sections.contacts import SELF, entry_of
from cosim.rig.sections.joints import EncoderSpec
from cosim.rig.sections.mechanism import NumbersKeys
from cosim.rig.sections.rotors import RotorKeys
from cosim.rig.wiring.plant import load_of_mechanism
from cosim.rig.wiring.wired_rig import WiredRig

if TYPE_CHECKING:
    from cosim.output.stream.reading import ChangeKind

LINK_NUMBERS, JOINT_NUMBERS = ("mass", "com", "inertia"), ("damping", "friction")
ROTOR_NUMBERS = ("inertia", "damping", "friction")
CARTESIAN = "cartesian"  # the formulation in which every rotor is a body


@dataclass
class Changes:
    """What symbols replace in the parts of a rig."""

    drives: dict[str, Any] = field(default_factory=dict)  # dof -> parameters of its drive
    friction: dict[str, JointFriction] = field(default_factory=dict)  # dof -> the law of its friction
    inertials: dict[str, Inertial] = field(default_factory=dict)  # link -> its inertial
    joints: dict[str, Joint] = field(default_factory=dict)
    rotors: dict[str, CoupledRotor] = field(default_factory=dict)
    contacts: dict[str, Contact] = field(default_factory=dict)
    noise: dict[int, Numeric] = field(default_factory=dict)  # dof -> standard deviation

    @property
    def of_mechanism(self) -> bool:
        return bool(self.inertials or self.joints or self.rotors or self.contacts or self.friction)


@dataclass(frozen=True, eq=False, kw_only=True)
class PlantParameter(RigParameter):
    """A number of the plant. values (size,): of the rig; put: puts symbols (size,) in their place; read: what else a
    section of the rig needs to be read into the class, which has the number as `field`; refused: why values that fit
    their declaration are wrong, or ""; bounded: whether values between two that are right are right."""

    values: Array
    put: Callable[[Changes, Numeric], None]
    cls: type
    beside: Mapping[str, Any] = field(default_factory=dict)
    refused: Callable[[float | list[float]], str] = lambda given: ""
    bounded: bool = True
    changes: ClassVar[ChangeKind] = "per run"

    def wrong(self, numbers: Array) -> str:
        """What is wrong with numbers (size,) that a file could not have, or ""."""
        reading, given = Reading(lambda path: SourceLocation(""), []), self.value(numbers)
        schema.read_fields(self.cls, {**self.beside, self.name.rpartition(".")[2]: given}, (), reading)
        return reading.errors[0].what if reading.errors else self.refused(given)


def plant_parameters_of(rig: WiredRig) -> dict[str, PlantParameter]:
    """Name -> the number; see `ParameterTable.per_run`, where they are kept."""
    found: list[PlantParameter] = []
    linear = {name: unit == "m" for name, unit in zip(rig.joints, rig.plant.model.dof_units, strict=True)}
    for name, joint in rig.spec.joints.items():
        if joint.actuator is not None and name not in rig.plant.real:
            drive = joint.actuator.params
            # a rotor is a body of its own there, which cannot be without inertia
            rotor = rig.plant.formulation == CARTESIAN and getattr(drive, "rotor_inertia", None) == 0.0
            found += _of_parameters(name, drive, "actuator", linear[name], ("rotor_inertia",) if rotor else ())
        if joint.friction is not None:
            knows_load = joint.actuator is not None and not getattr(rig.plant.actuators.get(name), "is_inertial", False)
            without = (() if knows_load else OF_DRIVE) + (OF_EXTERNAL if load_of_mechanism(rig.plant) else ())
            found += _of_parameters(name, joint.friction, "friction", linear[name], without)
    for k, noise in enumerate(rig.tick_model.encoders.params.noise):
        if noise > 0.0:
            found.append(_of_encoder(rig.joints[k], k, float(noise), linear[rig.joints[k]]))
    mechanism = rig.plant.mechanism
    for link in mechanism.links:
        if link.inertial is not None:
            found += (_of_link(link.name, link.inertial, what) for what in LINK_NUMBERS)
    for joint in mechanism.joints:
        if joint.kind != "fixed":
            replaced = bool(joint.friction_laws) and all(joint.friction_laws)
            found += (_of_joint(joint, what) for what in JOINT_NUMBERS if not (what == "friction" and replaced))
    found += (_of_rotor(rotor, what) for rotor in mechanism.rotors for what in ROTOR_NUMBERS)
    found += contact_parameters(mechanism.contacts)
    return {number.name: number for number in found}


def _of_parameters(
    dof: str, owner: Any, section: str, linear: bool, without: Collection[str] = ()
) -> Iterator[PlantParameter]:
    """The fields of the parameters of the drive of a dof, or of its law of friction."""
    tunables = Tunables(owner)
    fields = {name: getattr(owner, name) for name in tunables.fields}
    finite = {name: value for name, value in fields.items() if np.isfinite(value).all()}
    for name, where in tunables.fields.items():
        if name not in without:
            yield PlantParameter(
                (path := f"joints.{dof}.{section}.{name}"),
                path,
                tunables.leaves[name].declared,
                None if tunables.is_single(name) else where.stop - where.start,
                linear=(linear,),
                values=tunables.values[where],
                put=partial(_put, dof, owner, section, name),
                cls=type(owner),
                beside=finite,
                refused=partial(_refusal, owner, name),
            )


def _put(dof: str, owner: Any, section: str, name: str, changes: Changes, symbols: Numeric) -> None:
    params = (changes.drives if section == "actuator" else changes.friction).setdefault(dof, copy.copy(owner))
    # without the checks of the class, which are for numbers
    object.__setattr__(params, name, symbols[0] if isinstance(getattr(owner, name), float) else symbols)


def _refusal(params: Any, name: str, value: float | list[float]) -> str:
    """Why the class of the parameters refuses a value, "" where it does not."""
    try:
        replace(params, **{name: tuple(value) if isinstance(value, list) else value})
    except ValueError as error:
        return str(error)
    return ""


def _of_encoder(dof: str, k: int, noise: float, linear: bool) -> PlantParameter:
    def put(changes: Changes, symbols: Numeric) -> None:
        changes.noise[k] = symbols[0]

    return _declared(f"joints.{dof}", "encoder.noise", EncoderSpec, np.array([noise]), put, linear=(linear,))


def _of_joint(joint: Joint, what: str) -> PlantParameter:
    def put(changes: Changes, symbols: Numeric) -> None:
        changes.joints[joint.name] = replace(changes.joints.get(joint.name, joint), **{what: symbols[0]})

    values, slides = np.array([getattr(joint, what)]), (unit_of(joint.kind) == "m",)
    return _declared(f"mechanism.{joint.name}", what, NumbersKeys, values, put, linear=slides)


def _of_rotor(rotor: CoupledRotor, what: str) -> PlantParameter:
    def put(changes: Changes, symbols: Numeric) -> None:
        changes.rotors[rotor.name] = replace(changes.rotors.get(rotor.name, rotor), **{what: symbols[0]})

    values = np.array([getattr(rotor, what)])
    return _declared(f"mechanism.{rotor.name}", what, RotorKeys, values, put, section="mechanism.rotors")


# key of a contact -> the numbers of its law that it sets
_CONTACT: dict[str, tuple[str, ...]] = {
    "friction": ("static", "sliding"),
    **{name: (name,) for name in ("torsional", "rolling", "stiffness", "restitution")},
}


def contact_parameters(contacts: Sequence[Contact]) -> Iterator[PlantParameter]:
    """The numbers of the laws of contacts, of each entry of a rig those that are alike in all its contacts; two where
    the coefficients of friction differ, and no stiffness of a rigid contact."""
    entries: dict[str, list[Contact]] = {}
    for contact in contacts:
        entries.setdefault(entry_of(contact), []).append(contact)
    for entry, members in entries.items():
        laws = {contact.law for contact in members}
        for key, fields in _CONTACT.items():
            values = [{getattr(law, name) for law in laws} for name in fields]
            if any(len(each) > 1 or None in each for each in values):
                continue
            numbers = [float(*each) for each in values]
            if len(set(numbers)) == 1:
                yield _of_contacts(entry, members, key, fields, numbers[0], ContactLawKeys)
                continue
            beside = dict(zip(fields, numbers, strict=True))
            for name, value in beside.items():
                yield _of_contacts(entry, members, f"{key}.{name}", (name,), value, FrictionKeys, beside)


def _of_contacts(
    entry: str,
    members: Sequence[Contact],
    path: str,
    fields: Sequence[str],
    value: float,
    cls: type,
    beside: Mapping[str, float] = MappingProxyType({}),
) -> PlantParameter:
    def put(changes: Changes, symbols: Numeric) -> None:
        for contact in members:
            changed = changes.contacts.get(contact.name, contact)
            law = replace(changed.law, **dict.fromkeys(fields, symbols[0]))
            changes.contacts[contact.name] = replace(changed, law=law)

    section = "mechanism" if entry == SELF else "mechanism.contacts"
    owner, values = f"mechanism.{entry}", np.array([value])
    return _declared(owner, path, cls, values, put, section=section, beside=beside)


# attribute of an inertial -> (its numbers, the attribute from them)
_LINK: dict[str, tuple[Callable[[Inertial], Numeric], Callable[[Numeric], Numeric]]] = {
    "mass": (lambda body: [body.mass], lambda x: x[0]),
    "com": (lambda body: body.com, lambda x: x),
    "inertia": (
        lambda body: [body.inertia[at] for at in ELEMENTS], lambda x: ops.array(inertia_matrix(*x).tolist()),
    ),
}  # fmt: skip


def _of_link(link: str, inertial: Inertial, what: str) -> PlantParameter:
    numbers, from_numbers = _LINK[what]

    def put(changes: Changes, symbols: Numeric) -> None:
        body = changes.inertials.get(link, inertial)
        changes.inertials[link] = replace(body, **{what: from_numbers(symbols)})

    def refused(given: float | list[float]) -> str:
        return check_inertia(inertial.mass, inertia_matrix(*given))[0] or "" if isinstance(given, list) else ""

    values, owner = np.array(numbers(inertial), dtype=float), f"mechanism.{link}"
    if what != "inertia":
        return _declared(owner, what, NumbersKeys, values, put)
    return _declared(owner, what, NumbersKeys, values, put, refused=refused, bounded=False)


def _declared(
    owner: str,
    path: str,
    cls: type,
    values: Array,
    put: Callable[[Changes, Numeric], None],
    section: str = "mechanism.numbers",
    **more: Any,
) -> PlantParameter:
    """A number that the field of a section of rig files declares, of a list if there are several; section: with the
    numbers of parts of the mechanism."""
    first, _, rest = owner.partition(".")
    return PlantParameter(
        f"{owner}.{path}",
        f"{section}.{rest}.{path}" if first == "mechanism" else f"{owner}.{path}",
        cls.__dataclass_fields__[path.rpartition(".")[2]].metadata,
        len(values) if len(values) > 1 else None,
        values=values,
        put=put,
        cls=cls,
        **more,
    )
