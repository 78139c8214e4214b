"""The two recursions of the separate-body method over a tree.

Algorithms are written with these and functions of one body. The object that implements them decides whether they
become straight-line code (`Unrolled`) or a loop over bodies (`compile.rolled_sweeps`).
Joints are numbered so that a parent comes before its children.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from cosim.core import ops
from cosim.core.compile.pytree import Pytree
from cosim.core.types import Numeric
from cosim.mechanics.multibody.joints import JointKind

Column: TypeAlias = Any  # one value per body, as made by the functions below; its class belongs to the sweeps


class Sweeps(Protocol):
    """The recursions over the bodies of one tree."""

    def by_q(self, q: Numeric) -> Column:
        """The vector of coordinates (nq,) split by joint."""
        ...

    def by_v(self, v: Numeric) -> Column:
        """The same for vectors of velocities, accelerations, efforts (nv,)."""
        ...

    def vector(self, column: Column) -> Numeric:
        """The values (nv_k,) of the joints as one vector (nv,)."""
        ...

    def outward(self, step: Callable[..., Pytree], root: Pytree, *columns: Column) -> Column:
        """(down, out)[k] = step(kind, body, down[parent], *columns[k]), root to leaves; returns out.
        `root` is the down of the ground."""
        ...

    def inward(self, own: Callable[..., Pytree], step: Callable[..., Pytree], *columns: Column) -> Column:
        """sum[k] = own(kind, body, *columns[k]) + Σ over children of `up`;
        (up, out)[k] = step(kind, body, sum[k], *columns[k]), leaves to root. Returns out."""
        ...

    def gather(self, own: Callable[..., Pytree], *columns: Column) -> Numeric:
        """Σ over bodies of the number own(kind, body, *columns[k])."""
        ...

    def pick(self, column: Column, index: int) -> Column:
        """Element `index` of each body's value."""
        ...


@dataclass(frozen=True)
class Unrolled:
    """Python loops: on numbers the reference, on symbols straight-line code."""

    parents: Sequence[int]  # −1: the ground
    kinds: Sequence[JointKind]
    bodies: Sequence[Pytree]

    def by_q(self, q: Numeric) -> list[Pytree]:
        return self._cut(q, [k.nq for k in self.kinds])

    def by_v(self, v: Numeric) -> list[Pytree]:
        return self._cut(v, [k.nv for k in self.kinds])

    @staticmethod
    def _cut(x: Numeric, sizes: list[int]) -> list[Pytree]:
        parts, start = [], 0
        for n in sizes:
            parts.append(x[start : start + n])
            start += n
        return parts

    def vector(self, column: list[Pytree]) -> Numeric:
        return ops.concatenate(column)

    def outward(self, step: Callable[..., Pytree], root: Pytree, *columns: list[Pytree]) -> list[Pytree]:
        down: list[Pytree] = []
        out: list[Pytree] = []
        for k, parent in enumerate(self.parents):
            above = root if parent < 0 else down[parent]
            below, own = step(self.kinds[k], self.bodies[k], above, *(c[k] for c in columns))
            down.append(below)
            out.append(own)
        return out

    def inward(self, own: Callable[..., Pytree], step: Callable[..., Pytree], *columns: list[Pytree]) -> list[Pytree]:
        n = len(self.parents)
        sums = [own(self.kinds[k], self.bodies[k], *(c[k] for c in columns)) for k in range(n)]
        out: list[Pytree] = [None] * n
        for k in reversed(range(n)):
            up, out[k] = step(self.kinds[k], self.bodies[k], sums[k], *(c[k] for c in columns))
            parent = self.parents[k]
            if parent >= 0:
                sums[parent] = add(sums[parent], up)
        return out

    def gather(self, own: Callable[..., Pytree], *columns: list[Pytree]) -> Numeric:
        return ops.sum(own(self.kinds[k], self.bodies[k], *(c[k] for c in columns)) for k in range(len(self.kinds)))

    def pick(self, column: list[Pytree], index: int) -> list[Pytree]:
        return [value[index] for value in column]


def add(x: Pytree, y: Pytree) -> Pytree:
    """The sum of two pytrees (nested tuples of arrays), field by field."""
    if not isinstance(x, tuple):
        return x + y
    parts = [add(a, b) for a, b in zip(x, y, strict=True)]
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
