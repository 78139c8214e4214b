"""The limits of a contact as a rig writes them; keys and units come from the table of limits of contacts."""

from __future__ import annotations

import dataclasses
from typing import Literal

from cosim.core.types import param, params
from cosim.mechanics.multibody.mechanism import ContactBound
from cosim.simulation.plant.contact_limits import CONTACT_LIMITS

Action = Literal["warn", "stop"]

_ActionKeys = dataclasses.make_dataclass(
    "_ActionKeys", [(key, Action, param(default="stop")) for key in CONTACT_LIMITS], frozen=True
)
_BoundKeys = dataclasses.make_dataclass(
    "_BoundKeys",
    [
        (key, float | None, param(unit=limit.unit, above=0, default=None, doc=limit.meaning))
        for key, limit in CONTACT_LIMITS.items()
    ],
    frozen=True,
)


@params
class ContactActions(_ActionKeys):
    """What is done where a contact is beyond a limit."""


@params
class ContactLimitKeys(_BoundKeys):
    """The limits of a contact as given in the rig."""

    actions: ContactActions = param(default=ContactActions(), doc="of these limits")

    @property
    def bounds(self) -> tuple[ContactBound, ...]:
        given = ((key, getattr(self, key), getattr(self.actions, key)) for key in CONTACT_LIMITS)
        return tuple(ContactBound(key, bound, action == "stop") for key, bound, action in given if bound is not None)
