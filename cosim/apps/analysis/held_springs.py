"""What the springs of contacts that stick remember, taken out of a linear rig.

The force of a tangential spring is a state, beside the position of its point: together they hold where it touched,
which is constant while it sticks. Such a constant is a pole 1 that no disturbance moves, of no meaning for the
rig. While a robot settles the pole is not exactly 1, as a foot that rolls turns its springs along, and a rig that
stands well would be called unstable. The springs follow from the other states instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core.types import Array
from cosim.simulation.tick.tick_model import TickModel

STANDING = 1e-6  # rad or m per tick, at most, of a mechanism that stands or settles
ROUNDING = 1e-14  # of the largest change in a tick: what a constant changes
DRIFTING = 10.0  # … by the drift of the mechanism
DISTURBED = 1e-4  # weight of the largest effect of a disturbance beside it
REMEMBERED = 1e-3  # part of a constant that is in the springs


class Springs(NamedTuple):
    """places: of the tangential springs among the states of a linear rig; stiffness of each [N/m]; drift: how far the
    mechanism moves in a tick [rad or m]."""

    places: Array
    stiffness: Array
    drift: float

    @staticmethod
    def of(tick_model: TickModel, states: Array, drift: float) -> Springs:
        """states: indices in the memory."""
        plant = tick_model.plant
        first = tick_model.layout.place("plant").where.start + plant.layout.place("contacts", "spring").where.start
        laws = [contact.law.stiffness or 1.0 for contact in plant.contacts.contacts.of_points]
        stiffness = dict(enumerate(np.repeat(np.asarray(laws, dtype=float), 2), first))
        places = [k for k, state in enumerate(states) if state in stiffness]
        return Springs(np.array(places, dtype=int), np.array([stiffness[states[k]] for k in places]), drift)


def without_held_springs(A: Array, B: Array, C: Array, springs: Springs) -> tuple[Array, Array, Array, Array]:
    """(indices of the states that are kept, A, B and C of these). All are where the mechanism moves faster than
    `STANDING`."""
    from scipy.linalg import qr

    everything = np.arange(len(A))
    if not len(springs.places) or springs.drift > STANDING:
        return everything, A, B, C
    scale = np.ones(len(A))
    scale[springs.places] = springs.stiffness
    constants = _constants(A * scale / scale[:, None], B / scale[:, None], springs.drift)
    left, sizes, _ = np.linalg.svd(constants[:, springs.places])
    remembered = left[:, : int(np.sum(sizes > REMEMBERED))].T @ constants / scale
    if not len(remembered):
        return everything, A, B, C
    *_, order = qr(remembered[:, springs.places] * springs.stiffness, pivoting=True)
    taken = springs.places[np.asarray(order, dtype=int)[: len(remembered)]]
    kept = np.setdiff1d(everything, taken)
    by_kept = -np.linalg.solve(remembered[:, taken], remembered[:, kept])  # taken = by_kept @ kept
    return kept, A[np.ix_(kept, kept)] + A[np.ix_(kept, taken)] @ by_kept, B[kept], C[:, kept] + C[:, taken] @ by_kept


def _constants(A: Array, B: Array, drift: float) -> Array:
    """(k, n) rows l with l A = l and l B = 0, as far as a mechanism that drifts has such."""
    change = A - np.eye(len(A))
    reach = max(float(np.abs(B).max(initial=0.0)), 1e-300)
    left, sizes, _ = np.linalg.svd(np.hstack([change, DISTURBED * B / reach]))
    width = max(DRIFTING * drift, ROUNDING * float(sizes.max(initial=0.0)))
    return left[:, int(np.sum(sizes > width)) :].T
