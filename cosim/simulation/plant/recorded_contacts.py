"""What the plant records of its contacts: forces, gap, slip and state of each, and how the solver fares.

Forces are the mean ones of the step before. What the springs of a contact store, they give back: the rest of the energy
that contacts have taken is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core import ops
from cosim.core.types import Numeric, Signal, Signals, State
from cosim.mechanics.multibody.contact.gaps import PointOfContact
from cosim.mechanics.multibody.contact_set import ContactSet
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.recorded_values import RecordedSignals

OF_A_CONTACT: Signals = {
    "normal_force": Signal((), "N", "force of the contact along its normal, the sum of its points", chart="force"),
    "friction_force": Signal((), "N", "size of the friction force, the sum of the points as a vector", chart="force"),
    "gap": Signal((), "m", "least distance of the two shapes, negative inside each other", chart="gap"),
    "slip": Signal((), "m/s", "largest tangential speed of a point that touches", chart="velocity"),
    "state": Signal((), "1", "0: open, 1: touches and sticks, 2: slides at one point or more"),
    **{
        f"force_{axis}": Signal((), "N", "force of the contact on its first shape, along the axes of the ground")
        for axis in "xyz"
    },
    **{
        f"point_{axis}": Signal(
            (), "m", "centre of the normal forces of its points in ground axes; of an open contact the nearest point"
        )
        for axis in "xyz"
    },
    "impulse": Signal((), "N*s", "impulse of the normal force since the start"),
    "slid": Signal((), "m", "how far the contact has slid since the start, its farthest point in each step"),
    "touches": Signal((), "1", "how often the contact has touched since the start"),
    "slips": Signal((), "1", "how often the contact has begun to slide since the start"),
    "lost": Signal((), "J", "energy lost in the contact since the start"),
}
SINCE_THE_START = ("impulse", "slid", "touches", "slips")
OF_THE_SOLVER: Signals = {
    "passes": Signal((), "1", "passes of the solver of the contacts in the step before"),
    "residual": Signal((), "m/s", "largest violation of the law of contact that the solver left in the step before"),
    "total_passes": Signal((), "1", "passes of the solver of the contacts since the start"),
    "unconverged": Signal((), "1", "steps since the start whose residual is above 1e-8 m/s"),
}


def record_contacts(plant: Plant, recorded: RecordedSignals, t: Numeric, q: Numeric, v: Numeric, x: State) -> None:
    """`<contact>/normal_force` …, `contacts/passes` and `contacts/residual`."""
    if not plant.contacts:
        return
    state, equations = x["contacts"], plant.model.equations
    points, rates = plant.contacts.points_and_rates(equations, t, q, v)
    lost = x["energy"]["contacts"] - plant.contacts.stored_energy(equations, t, q, x)
    for k, (contact, own) in enumerate(plant.contacts.contacts.by_contact):
        recorded.add(contact.name, of_contact(plant.contacts.contacts, own, points, rates, state), OF_A_CONTACT)
        recorded.add(contact.name, {name: state[name][k] for name in SINCE_THE_START} | {"lost": lost[k]}, OF_A_CONTACT)
    recorded.add("contacts", {name: state[name] for name in OF_THE_SOLVER}, OF_THE_SOLVER)


def of_contact(
    contacts: ContactSet, own: Sequence[int], points: Sequence[PointOfContact], rates: Numeric, state: State
) -> dict[str, Numeric]:
    """The signals that follow from one state; own: the points of the contact; state: of the contacts."""
    forces = {j: state["force"][contacts.at(j)][:3] for j in own}
    touches = {j: forces[j][2] > 0.0 for j in own}
    across = ops.sum(points[j].axes[:2].T @ forces[j][:2] for j in own)
    whole = ops.sum(points[j].axes.T @ forces[j] for j in own)
    gap, nearest, slip, kind = points[own[0]].gap, points[own[0]].position, 0.0, 0.0
    for j in own:
        nearest = ops.where(points[j].gap < gap, points[j].position, nearest)
        gap = ops.minimum(gap, points[j].gap)
        along = rates[contacts.at(j)][:2]
        slip = ops.maximum(slip, ops.where(touches[j], ops.sqrt(along @ along), 0.0))
        kind = ops.maximum(kind, ops.where(touches[j], 1.0 + state["slides"][j], 0.0))
    normal = ops.sum(force[2] for force in forces.values())
    pressed = ops.sum(forces[j][2] * points[j].position for j in own)
    centre = ops.where(normal > 0.0, pressed / ops.where(normal > 0.0, normal, 1.0), nearest)
    return {
        "normal_force": normal,
        "friction_force": ops.sqrt(across @ across),
        "gap": gap,
        "slip": slip,
        "state": kind,
        **{f"force_{axis}": whole[k] for k, axis in enumerate("xyz")},
        **{f"point_{axis}": centre[k] for k, axis in enumerate("xyz")},
    }
