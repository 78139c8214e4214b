"""Where the closed loops of a first rig may start: as drawn, inside of the limits of their joints, or beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.errors import listed
from cosim.core.types import Array
from cosim.mechanics.multibody.configuration_space import ChosenDofs
from cosim.mechanics.multibody.loop_motions import closed_beside, coupled_loops
from cosim.mechanics.multibody.model import Model

PROJECTIONS = 100  # between the limits and closed loops
INSIDE, EDGE = 0.05, 1e-3  # of the range of a joint, kept from its limits if possible, and at least
NEAREST = 1e-3  # rad: of a wide range this is enough
SHIFTS = 0.2, 0.3, 0.4, 0.5, 0.7, 0.1  # rad: of starts beside the drawn one
SHIFT_PER_RAD = 0.3  # m
INTO_LIMITS = "as drawn, joints of the loops are at their limits or beyond; the rig starts inside of them"
BESIDE_DRAWN = "as drawn, the loops of {} are singular or at a dead centre; the rig starts beside that"


@dataclass(frozen=True)
class LoopSpace:
    """The configurations of a mechanism with closed loops: its dofs that can move (nv,), and the limits (nv,)."""

    model: Model
    movable: Array
    lower: Array
    upper: Array

    def positions(self, q: Array) -> Array:
        """(nv,) of the dofs."""
        return np.asarray(self.model.equations.chart(q), dtype=float)

    def moved(self, q: Array, dofs: Sequence[int], step: Array) -> Array:
        """The coordinates (nq,) after a step of these dofs."""
        return ChosenDofs(self.model.equations, np.array(dofs, dtype=int)).moved(q, step)

    def is_inside(self, q: Array, dofs: Sequence[int], margin: float = EDGE, beside: Array | None = None) -> bool:
        """Whether these dofs keep a margin from their limits; margin: as part of their range, at most NEAREST where
        it is EDGE; beside: coordinates (nq,) of a start that may be nearer to the limits, but inside of them."""
        at, own = self.positions(q)[dofs], list(dofs)
        lower, upper = self.bounds(own, margin)
        if beside is not None:
            start = np.clip(self.positions(beside)[own], self.lower[own], self.upper[own])
            lower, upper = np.minimum(lower, start), np.maximum(upper, start)
        return bool(((lower <= at) & (at <= upper)).all())

    def bounds(self, dofs: Sequence[int], margin: float) -> tuple[Array, Array]:
        """(lower, upper) of these dofs, with a margin as part of their range where it is finite, see `is_inside`."""
        lower, upper = self.lower[dofs], self.upper[dofs]
        kept = margin * np.where(np.isfinite(upper - lower), upper - lower, 0.0)
        if margin == EDGE:
            linear = np.array(self.model.dof_units)[dofs] == "m"
            kept = np.minimum(kept, NEAREST * np.where(linear, SHIFT_PER_RAD, 1.0))
        return lower + kept, upper - kept

    def starts(self, drawn: Array) -> Iterator[tuple[Array, str]]:
        """(coordinates with closed loops, why they are not those of the file), the best first. drawn: (nq,) closed."""
        loops = [dof for each in coupled_loops(self.model, drawn, self.movable) for dof in each.dofs.tolist()]
        inside = self._inside(drawn, loops)
        yield inside, INTO_LIMITS * (inside is not drawn)
        linear, rng = np.array(self.model.dof_units)[loops] == "m", np.random.default_rng(4)
        why = BESIDE_DRAWN.format(listed([repr(self.model.dof_names[k]) for k in loops]))
        for shift in SHIFTS:
            step = shift * rng.uniform(-1.0, 1.0, len(loops)) * np.where(linear, SHIFT_PER_RAD, 1.0)
            if (place := closed_beside(self.model, self.moved(inside, loops, step), loops)) is not None:
                yield self._inside(place, loops), why

    def _inside(self, q: Array, dofs: list[int]) -> Array:
        """Closed loops inside of the limits, by projections on both in turn; q itself if it is there, or none is
        found."""
        if self.is_inside(q, dofs):
            return q
        lower, upper = self.bounds(dofs, INSIDE)
        place = q
        for _ in range(PROJECTIONS):
            at = self.positions(place)[dofs]
            closed = closed_beside(self.model, self.moved(place, dofs, np.clip(at, lower, upper) - at), dofs)
            if closed is None:
                return q
            place = closed
            if self.is_inside(place, dofs, 0.5 * INSIDE):
                return place
        return place if self.is_inside(place, dofs) else q
