"""Which contacts are near enough to touch in a step: what the others cost is a bound of their distance.

Their points lie far away, and they have no part in what impulses do to each other: they have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine, call_when
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.contact.point_of_contact import FAR, PointOfContact

NUMBERS = 13  # of a point of contact: its gap, its axes row by row, its position


@dataclass(frozen=True)
class NearContacts:
    """flags: of each contact whether it is near, None where that is not cheaper to know than its points; compiled:
    whether what is skipped is compiled."""

    flags: Sequence[Numeric | None]
    compiled: bool

    def points(
        self, contact: int, fn: Callable[..., list[PointOfContact]], frames: Sequence[Numeric], count: int
    ) -> list[PointOfContact]:
        """Of one contact, by `fn` of its frames."""
        flat = self._skipped([contact], lambda *given: _numbers(fn(*given)), frames, _far(count))
        rows = [flat[NUMBERS * j : NUMBERS * (j + 1)] for j in range(count)]
        return [PointOfContact(row[0], row[1:10].reshape(3, 3), row[10:]) for row in rows]

    def block(self, i: int, j: int, first: Numeric, inertia: Numeric, second: Numeric) -> Numeric:
        """first · inertia · secondᵀ, what an impulse of contact j does to contact i; of a contact that is not near the
        unit matrix, so that no mobility is 0."""
        n, m = len(first), len(second)
        none = np.eye(n) if i == j else np.zeros((n, m))
        given = [first, inertia] if i == j else [first, inertia, second]
        return self._skipped([i, j], lambda a, w, b=None: a @ w @ (a if b is None else b).T, given, none)

    def _skipped(
        self, contacts: Sequence[int], fn: Callable[..., Numeric], given: Sequence[Numeric], otherwise: Array
    ) -> Numeric:
        """fn(*given) where all these contacts are near."""
        flags = [flag for k in dict.fromkeys(contacts) if (flag := self.flags[k]) is not None]
        if not flags:
            return fn(*given)
        part = Routine(fn, [np.shape(each) for each in given], "near_contacts") if self.compiled else fn
        return call_when(reduce(ops.logical_and, flags), part, given, [otherwise])


def _numbers(points: list[PointOfContact]) -> Numeric:
    return ops.concatenate([ops.array([p.gap, *ops.array(p.axes).ravel(), *p.position]) for p in points])


def _far(count: int) -> Array:
    return np.tile(np.concatenate([[FAR], np.eye(3).ravel(), np.zeros(3)]), count)
