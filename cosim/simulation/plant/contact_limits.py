"""The table of limits of contacts: each bounds a signal of the contact, and warns or stops the run.

The reader of the rig, the fault of a plant, its message and the alarms of a run all read this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.contact_set import BodyContact, ContactSet
from cosim.mechanics.multibody.mechanism import ContactBound
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.recorded_contacts import of_contact


class ContactLimit(NamedTuple):
    """A row of the table. signal: of the contact, exceeded where `sign` times it is above the bound; unit: of both;
    meaning: of the bound; reason: of a stop, with `value` and `limit`; fix: of it."""

    key: str
    signal: str
    sign: float
    unit: str
    meaning: str
    reason: str
    fix: str

    def warning(self, contact: str, bound: float) -> str:
        return f"{contact}: {self.key} beyond its limit of {bound:g} {self.unit} (warned)"


CONTACT_LIMITS: dict[str, ContactLimit] = {
    limit.key: limit
    for limit in (
        ContactLimit(
            "normal_force",
            "normal_force",
            1.0,
            "N",
            "greatest normal force, the sum of its points",
            "presses with {value}, above its limit of {limit}",
            "approach more slowly, or change its limits",
        ),
        ContactLimit(
            "slip",
            "slip",
            1.0,
            "m/s",
            "greatest tangential speed of a point that touches",
            "slips at {value}, above its limit of {limit}",
            "press harder, push less along the surface, or change its limits",
        ),
        ContactLimit(
            "gap",
            "gap",
            1.0,
            "m",
            "greatest distance of the two shapes, of a contact that must not lift",
            "is open by {value}, above its limit of {limit}",
            "change the motion, or its limits",
        ),
        ContactLimit(
            "depth",
            "gap",
            -1.0,
            "m",
            "greatest depth of the shapes in each other",
            "is {value} deep, above its limit of {limit}",
            "give it more stiffness or a smaller schedule.step, or change its limits",
        ),
    )
}


class Exceeded(NamedTuple):
    """A bound of a contact, and what is beyond it."""

    contact: str
    bound: ContactBound
    value: Numeric  # its sign taken


def stopping(contacts: ContactSet) -> list[tuple[BodyContact, range]]:
    """Each contact with a limit that stops the run, and its points."""
    return [(contact, own) for contact, own in contacts.by_contact if any(bound.stops for bound in contact.limits)]


def judged(plant: Plant, t: Numeric, x: State) -> list[Exceeded]:
    """The bounds that stop the run, with what they bound in the state x of the plant."""
    members = stopping(plant.contacts.contacts)
    if not members:
        return []
    q, v, _ = plant.motion(t, x)
    points, rates = plant.contacts.points_and_rates(plant.model.equations, t, q, v)
    found = []
    for contact, own in members:
        values: Mapping[str, Numeric] = of_contact(plant.contacts.contacts, own, points, rates, x["contacts"])
        for bound in contact.limits:
            limit = CONTACT_LIMITS[bound.key]
            if bound.stops:
                found.append(Exceeded(contact.name, bound, limit.sign * values[limit.signal]))
    return found


def is_beyond(plant: Plant, t: Numeric, x: State) -> Numeric:
    """Whether a contact is beyond a limit that stops the run."""
    return ops.sum(ops.where(one.value > one.bound.value, 1.0, 0.0) for one in judged(plant, t, x)) > 0.5
