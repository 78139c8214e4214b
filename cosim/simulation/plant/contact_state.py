"""What is kept of the contacts of a plant from step to step, and what their forces do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.contact.gaps import PointOfContact
from cosim.mechanics.multibody.contact_dynamics import contact_efforts
from cosim.mechanics.multibody.contact_set import ROWS, ContactSet
from cosim.mechanics.multibody.equations import MechanismEquations


@dataclass(frozen=True)
class ContactState:
    """Of a plant of nv dofs. The forces are the mean ones of the last step, and the state of the springs."""

    contacts: ContactSet
    nv: int

    def __bool__(self) -> bool:
        return bool(self.contacts)

    @property
    def none(self) -> State:
        """Without contact."""
        if not self.contacts:
            return {}
        k = len(self.contacts.of_points)
        return {
            "force": np.zeros(ROWS * k),  # along t1, t2 and n of each point [N]
            "spring": np.zeros(2 * k),  # of the springs along t1 and t2 [N]
            "slides": np.zeros(k),  # 1 for points that slide
            "passes": np.zeros(()),  # of the solver in the last step
            "residual": np.zeros(()),  # it left [m/s]
        }

    def initial(self) -> State:
        """acceleration: mean one of the step before, along axes that stand still (nv,)."""
        return self.none | {"acceleration": np.zeros(self.nv)}

    def points_and_rates(
        self, equations: MechanismEquations, t: Numeric, q: Numeric, v: Numeric
    ) -> tuple[list[PointOfContact], Numeric]:
        """The points in a motion, and their velocities (3 k,), see `ContactSet`."""
        _, placed = equations.placements(equations.q_map.positions(q), equations.v_map.expand(v), t)
        points = self.contacts.points(placed)
        return points, self.contacts.rates(placed, points)

    def stored_energy(self, equations: MechanismEquations, t: Numeric, q: Numeric, x: State) -> Numeric:
        """In the springs of the points [J]; x: state of the plant."""
        points, _ = self.points_and_rates(equations, t, q, np.zeros(self.nv))
        energy: Numeric = 0.0
        for j, (contact, point) in enumerate(zip(self.contacts.of_points, points, strict=True)):
            if (k := contact.law.stiffness) is not None:
                depth, across = ops.minimum(point.gap, 0.0), x["contacts"]["spring"][2 * j : 2 * j + 2]
                energy = energy + 0.5 * (k * depth * depth + (across @ across) / k)
        return energy

    def efforts(self, equations: MechanismEquations, t: Numeric, q: Numeric, x: State) -> Numeric:
        """(nv,) what the forces exert on the dofs; x: state of the plant."""
        return contact_efforts(equations, q, x["contacts"]["force"], t) if self.contacts else np.zeros(self.nv)

    @property
    def virtual_rows(self) -> np.ndarray:
        """bool (3 k,): of the points of virtual contacts."""
        return np.repeat([contact.virtual for contact in self.contacts.of_points], ROWS).astype(bool)

    def virtual_efforts(self, equations: MechanismEquations, t: Numeric, q: Numeric, x: State) -> Numeric:
        """(nv,) what the forces of virtual contacts exert on the dofs; x: state of the plant."""
        return contact_efforts(equations, q, ops.where(self.virtual_rows, x["contacts"]["force"], 0.0), t)

    def depths(self, equations: MechanismEquations, t: Numeric, q: Numeric) -> dict[str, float]:
        """Virtual contact -> how deep its shapes are in each other [m], of those that touch; on numbers."""
        points, _ = self.points_and_rates(equations, t, q, np.zeros(self.nv))
        found: dict[str, float] = {}
        for contact, point in zip(self.contacts.of_points, points, strict=True):
            if contact.virtual and (depth := -float(point.gap)) > 0.0:
                found[contact.name] = max(depth, found.get(contact.name, 0.0))
        return found
