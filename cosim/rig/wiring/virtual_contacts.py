"""Contacts of joints with real motors: which drives exert their forces, and what such contacts cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.control.limits import SATURATE, STOP
from cosim.core.errors import InputError, listed
from cosim.mechanics.multibody.mechanism import Contact, Mechanism
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec


def loaded_joints(spec: RigSpec) -> frozenset[str]:
    """Joints whose load a load motor exerts, with all forces of contacts in it."""
    return frozenset(name for driver in spec.drivers for name in driver.loads)


def movers(spec: RigSpec, contact: Contact) -> tuple[frozenset[str], frozenset[str]]:
    """The dofs that move each side of a contact, without those that move both."""
    first, second = (_dofs_above(spec, link) for link, _ in contact.ends)
    return first - second, second - first


def _dofs_above(spec: RigSpec, link: str) -> frozenset[str]:
    mechanism: Mechanism = spec.mechanism.description
    above, names = {joint.child: joint for joint in mechanism.joints}, set()
    while (joint := above.get(link)) is not None:
        names.add(joint.name if joint.mimic is None else joint.mimic.joint)
        link = joint.parent
    return frozenset(dof for dof, owner in spec.owners.items() if owner in names)


def haptic_joints(spec: RigSpec, real: Sequence[str], reading: Reading) -> tuple[str, ...]:
    """The real joints whose drives exert the forces of virtual contacts: all that such a contact meets, without those
    whose load motors do it. Records contacts of which the drives cannot exert the forces."""
    loaded, found = loaded_joints(spec), set()
    for contact in spec.mechanism.description.contacts if real else ():
        if not contact.virtual:
            continue
        sides = movers(spec, contact)
        met = sorted(set().union(*sides) & set(real))
        if not met:
            continue
        if why := _refusal(spec, contact, sides, set(real)):
            reading.errors.append(InputError(f"virtual contact '{contact.name}': {why}", contact.place))
            continue
        found |= set(met) - loaded
    for name in sorted(found):
        if why := _why_unbounded(spec, name):
            reading.fail(("joints", name), f"its drive exerts virtual contacts, {why}")
    return tuple(name for name in real if name in found)


def _refusal(spec: RigSpec, contact: Contact, sides: Sequence[frozenset[str]], real: set[str]) -> str:
    if contact.law.stiffness is None:
        return "a drive exerts no impulses of a rigid contact; give it a stiffness"
    description = spec.mechanism.description
    if description.loops or description.constraints:
        return "with closed loops it is not known what each drive has to exert; take 'virtual' out, or the loops"
    for side in sides:
        if side & real and side - real:
            ours, others = (listed([repr(name) for name in sorted(names)]) for names in (side & real, side - real))
            what = f"its link is moved by {ours}, which is real, and by {others}, which is not"
            return f"{what}; give drivers of all or none"
    for driver in spec.drivers:
        if not driver.loads and driver.mode != "effort":
            for name in sorted(set().union(*sides) & set(driver.joints)):
                return f"the drive of joint '{name}' follows a {driver.mode} and exerts no force; use mode: effort"
    return ""


def _why_unbounded(spec: RigSpec, name: str) -> str:
    joint = spec.joints[name]
    if joint.limits["effort"] == float("inf"):
        return f"and nothing bounds its effort; give joints.{name}.limits.effort"
    action = (spec.guard.actions | joint.actions)["effort"]
    return "" if action in (SATURATE, STOP) else f"and its effort limit is only warned of; use {SATURATE} or {STOP}"
