"""The contacts of a mechanism in the output of `cosim check`."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.mechanics.multibody.description.collisions import counted
from cosim.mechanics.multibody.mechanism import Contact, Mechanism
from cosim.rig.sections.contact_shapes import extent
from cosim.rig.sections.mechanism import MechanismSpec


def contact_lines(mechanism: Mechanism) -> Iterator[str]:
    """Name, shapes and law of each contact."""
    for contact in mechanism.contacts:
        first, second = (
            f"{extent(shape)} of {'the ground' if link == mechanism.root else link}"
            for (link, _), shape in zip(contact.ends, contact.shapes, strict=True)
        )
        yield f"contact {contact.name}: {first} with {second}, {_law(contact)}"


def _law(contact: Contact) -> str:
    law = contact.law
    slides = "" if law.static == law.sliding else f" sticking, {law.sliding:g} sliding"
    parts = [f"friction {law.static:g}{slides}"]
    parts += [f"{word} {value * 1e3:g} mm" for word in ("torsional", "rolling") if (value := getattr(law, word))]
    parts += ["rigid" if law.stiffness is None else f"{law.stiffness:.4g} N/m"]
    parts += [f"restitution {law.restitution:g}"] * bool(law.restitution)
    parts += ["exact"] * contact.exact
    return ", ".join(parts)


def collisions_without_contacts(spec: MechanismSpec) -> Iterator[str]:
    """What there would be for contacts, of a robot file whose rig declares none."""
    shapes = spec.file.collisions if spec.file is not None else ()
    if shapes and not spec.description.contacts:
        yield f"collision: {counted(shapes)}; no contacts are declared; add mechanism.contacts"
