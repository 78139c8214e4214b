"""What is kept of the contacts of a plant from step to step, what is counted of them, and what their forces do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.mechanics.multibody.contact.gaps import PointOfContact
from cosim.mechanics.multibody.contact_dynamics import contact_efforts
from cosim.mechanics.multibody.contact_set import ContactSet
from cosim.mechanics.multibody.equations import MechanismEquations

MOST_UNSOLVED = 10  # steps in a row with a residual above `SolverBounds.unsolved`


@dataclass(frozen=True)
class ContactState:
    """Of a plant of nv dofs. The forces are the mean ones of the last step, and the state of the springs; m: the number
    of contacts, k: of their points."""

    contacts: ContactSet
    nv: int
    bounds: SolverBounds

    def __bool__(self) -> bool:
        return bool(self.contacts)

    @property
    def none(self) -> State:
        """Without contact."""
        if not self.contacts:
            return {}
        k = len(self.contacts.of_points)
        return {
            "force": np.zeros(self.contacts.size),  # of all rows of each point [N, N m]
            "spring": np.zeros(2 * k),  # of the springs along t1 and t2 [N]
            "slides": np.zeros(k),  # 1 for points that slide
            "passes": np.zeros(()),  # of the solver in the last step
            "residual": np.zeros(()),  # it left [m/s]
            "miss": np.zeros(len(self.contacts.members)),  # of each contact, of a step that is not solved [m/s]
            "unsolved": np.zeros(()),  # steps in a row with a residual above `bounds.unsolved`
        }

    @property
    def _no_counts(self) -> State:
        """Since the start."""
        if not self.contacts:
            return {}
        m = len(self.contacts.members)
        return {
            "impulse": np.zeros(m),  # of the normal force of each contact [N s]
            "slid": np.zeros(m),  # how far it slid [m], its farthest point in each step
            "touches": np.zeros(m),  # how often it touched
            "slips": np.zeros(m),  # how often it began to slide
            "total_passes": np.zeros(()),
            "unconverged": np.zeros(()),  # steps with a residual above `bounds.unconverged`
        }

    @property
    def with_counts(self) -> State:
        """At the start, of contacts without steps of their own."""
        return self.none | self._no_counts

    def initial(self) -> State:
        """acceleration: mean one of the step before, along axes that stand still (nv,)."""
        return self.with_counts | {"acceleration": np.zeros(self.nv)}

    def carried(self, before: State) -> State:
        """After a step without contact."""
        return {name: before[name] for name in self._no_counts}

    def counted(self, before: State, now: State, slip: Numeric, h: Numeric) -> State:
        """The counts after a step of length h [s] with contact. before, now: the state of the contacts at its ends;
        slip (size,): velocities after it, along the rows of the points."""
        impulse, slid, touches, slips = [], [], [], []
        for _, own in self.contacts.by_contact:
            impulse.append(h * ops.sum(self.contacts.normals(now["force"])[j] for j in own))
            farthest: Numeric = 0.0
            for j in own:
                along = slip[self.contacts.at(j)]
                speed = ops.sqrt(along[0] ** 2 + along[1] ** 2)
                farthest = ops.maximum(farthest, ops.where(now["slides"][j] > 0.5, h * speed, 0.0))
            slid.append(farthest)
            for began, which in ((touches, self._touches), (slips, _slides)):
                began.append(ops.where(ops.logical_and(which(now, own), ops.logical_not(which(before, own))), 1.0, 0.0))
        added = {"impulse": impulse, "slid": slid, "touches": touches, "slips": slips}
        found = {name: before[name] + ops.array(more) for name, more in added.items()}
        found["total_passes"] = before["total_passes"] + now["passes"]
        is_coarse = ops.logical_not(now["residual"] <= self.bounds.unconverged)
        return found | {"unconverged": before["unconverged"] + ops.where(is_coarse, 1.0, 0.0)}

    def _touches(self, state: State, own: Iterable[int]) -> Numeric:
        """Whether one of these points touches."""
        forces = self.contacts.normals(state["force"])
        return ops.sum(ops.where(forces[j] > 0.0, 1.0, 0.0) for j in own) > 0.5

    def points_and_rates(
        self, equations: MechanismEquations, t: Numeric, q: Numeric, v: Numeric
    ) -> tuple[list[PointOfContact], Numeric]:
        """The points in a motion, and their velocities (size,), see `ContactSet`."""
        _, placed = equations.placements(equations.q_map.positions(q), equations.v_map.expand(v), t)
        points = self.contacts.points(placed)
        return points, self.contacts.rates(placed, points)

    def stored_energy(self, equations: MechanismEquations, t: Numeric, q: Numeric, x: State) -> Numeric:
        """(m,) in the springs of each contact [J]; x: state of the plant."""
        points, _ = self.points_and_rates(equations, t, q, np.zeros(self.nv))
        energies = []
        for contact, own in self.contacts.by_contact:
            energy: Numeric = 0.0
            if (k := contact.law.stiffness) is not None:
                for j in own:
                    depth, across = ops.minimum(points[j].gap, 0.0), x["contacts"]["spring"][2 * j : 2 * j + 2]
                    energy = energy + 0.5 * (k * depth * depth + (across @ across) / k)
            energies.append(energy)
        return ops.array(energies)

    def efforts(self, equations: MechanismEquations, t: Numeric, q: Numeric, x: State) -> Numeric:
        """(nv,) what the forces exert on the dofs; x: state of the plant."""
        return contact_efforts(equations, q, x["contacts"]["force"], t) if self.contacts else np.zeros(self.nv)

    @property
    def virtual_rows(self) -> np.ndarray:
        """bool (size,): of the points of virtual contacts."""
        virtual = [contact.virtual for contact in self.contacts.of_points]
        return np.repeat(virtual, self.contacts.rows_of_point).astype(bool)

    def virtual_efforts(self, equations: MechanismEquations, t: Numeric, q: Numeric, x: State) -> Numeric:
        """(nv,) what the forces of virtual contacts exert on the dofs; x: state of the plant."""
        return contact_efforts(equations, q, ops.where(self.virtual_rows, x["contacts"]["force"], 0.0), t)

    def virtual_depths(self, equations: MechanismEquations, t: Numeric, q: Numeric) -> dict[str, Numeric]:
        """Virtual contact -> how deep its shapes are in each other [m], below 0 where they are apart."""
        points, _ = self.points_and_rates(equations, t, q, np.zeros(self.nv))
        found: dict[str, Numeric] = {}
        for contact, point in zip(self.contacts.of_points, points, strict=True):
            if contact.virtual:
                found[contact.name] = ops.maximum(found.get(contact.name, -np.inf), -point.gap)
        return found


def _slides(state: State, own: Iterable[int]) -> Numeric:
    """Whether one of these points slides."""
    return ops.sum(state["slides"][j] for j in own) > 0.5
