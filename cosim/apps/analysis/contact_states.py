"""What the contacts of a rig do in the tick that is linearised: its derivative holds while they go on so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cosim.apps.analysis.linearisation import calls_in, evaluate, with_first_calls
from cosim.core.types import Array, State
from cosim.simulation.plant.contact_state import ContactState
from cosim.simulation.tick.tick_model import TickModel

OPEN, STICKS, SLIDES = "open", "sticks", "slides"


@dataclass(frozen=True)
class ContactStates:
    """kinds: contact -> open, sticks or slides, after the tick; changing: contacts that were in another state before
    it. At t = 0 nothing is known of before."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    changing: Sequence[str] = ()

    @property
    def touching(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind != OPEN]

    def lines(self) -> Iterator[str]:
        named = {of: [name for name, kind in self.kinds.items() if kind == of] for of in (STICKS, SLIDES, OPEN)}
        if parts := [f"{kind}: {', '.join(names)}" for kind, names in named.items() if names]:
            yield f"contacts  {'; '.join(parts)}"
        for name in self.changing:
            yield f"contact   {name} touches, lifts, sticks or slides first in this tick: give --at another time"


def contact_states(tick_model: TickModel, memory: Array) -> ContactStates:
    """Of the tick that begins with this memory."""
    plant = tick_model.plant
    if not plant.contacts:
        return ContactStates()
    memory, where = with_first_calls(tick_model, memory), tick_model.layout.place("plant").where
    begins = float(memory[tick_model.layout.place("t").where].item()) == 0.0
    before = _kinds(plant.contacts, plant.layout.unpack(memory[where]))
    for _, call in calls_in(tick_model, memory, 1):
        if call.name == "advance":
            evaluate(call, memory)
            break
    after = _kinds(plant.contacts, plant.layout.unpack(memory[where]))
    return ContactStates(after, () if begins else [name for name, kind in after.items() if before[name] != kind])


def _kinds(contacts: ContactState, x: State) -> dict[str, str]:
    """x: state of the plant."""
    state, found = x["contacts"], dict[str, str]()
    forces = contacts.contacts.normals(state["force"])
    for contact, own in contacts.contacts.by_contact:
        touching = [j for j in own if forces[j] > 0.0]
        slides = any(state["slides"][j] > 0.5 for j in touching)
        found[contact.name] = SLIDES if slides else STICKS if touching else OPEN
    return found
