"""Spatial quantities of an elastic body: its frame's, and one number more for each of its modes.

A vector is (linear, angular, modal): of accelerations, modal is η̈; of forces, the generalised forces of the modes. The
inertia is the symmetric matrix [A Bᵀ Fᵀ; B C Nᵀ; F N H]: A, B, C as in `spatial`, row μ of F and N is the force and the
moment of a unit acceleration of mode μ, H the mass of the modes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.spatial import SpatialInertia, SpatialVector, outer, symmetric_outer


class ElasticVector(NamedTuple):
    """A spatial vector of an elastic body; modal: (m,)."""

    linear: Numeric
    angular: Numeric
    modal: Numeric

    def __add__(self, other: ElasticVector) -> ElasticVector:  # type: ignore[override]
        return ElasticVector(*(x + y for x, y in zip(self, other, strict=True)))

    def __sub__(self, other: ElasticVector) -> ElasticVector:
        return ElasticVector(*(x - y for x, y in zip(self, other, strict=True)))

    def __mul__(self, factor: Numeric) -> ElasticVector:  # type: ignore[override]
        return ElasticVector(*(x * factor for x in self))

    def dot(self, other: ElasticVector) -> Numeric:
        return ops.sum(x @ y for x, y in zip(self, other, strict=True))


def of_mode(mu: int, modes: int) -> ElasticVector:
    """The motion of one mode alone."""
    return ElasticVector(np.zeros(3), np.zeros(3), np.eye(modes)[mu])


class ElasticInertia(NamedTuple):
    """The inertia of an elastic body by its blocks; f, n: (m, 3), h: (m, m)."""

    a: Numeric
    b: Numeric
    c: Numeric
    f: Numeric
    n: Numeric
    h: Numeric

    def __add__(self, other: ElasticInertia) -> ElasticInertia:  # type: ignore[override]
        return ElasticInertia(*(x + y for x, y in zip(self, other, strict=True)))

    def __matmul__(self, v: ElasticVector) -> ElasticVector:
        linear, angular = self.rigid @ SpatialVector(v.linear, v.angular)
        modal = self.f @ v.linear + self.n @ v.angular + self.h @ v.modal
        return ElasticVector(linear + self.f.T @ v.modal, angular + self.n.T @ v.modal, modal)

    @property
    def rigid(self) -> SpatialInertia:
        """The inertia of the frame while the modes do not accelerate."""
        return SpatialInertia(self.a, self.b, self.c)

    def largest(self, direction: ElasticVector) -> float:
        """See `SpatialInertia.largest`."""
        return self.rigid.largest(SpatialVector(*direction[:2])) + float(
            np.linalg.norm(self.h, 2) * np.linalg.norm(direction.modal) ** 2
        )

    def rotated(self, rotation: Numeric) -> SpatialInertia:
        """The inertia of the frame, which is all its parent feels, along other axes: see `SpatialInertia.rotated`."""
        return self.rigid.rotated(rotation)

    def without(
        self, direction: ElasticVector, response: ElasticVector, gain: Numeric, keep: Numeric
    ) -> ElasticInertia:
        """See `SpatialInertia.without`; the direction is along one mode."""
        mu = int(np.flatnonzero(direction.modal)[0])
        left = self._less_outer(response * gain, response)
        left.f[mu, :], left.n[mu, :] = response.linear * keep, response.angular * keep
        left.h[mu, :] = left.h[:, mu] = response.modal * keep
        return left

    def stiffened(self, force: ElasticVector, gain: Numeric) -> ElasticInertia:
        """See `SpatialInertia.stiffened`."""
        return self._less_outer(force * -gain, force)

    def _less_outer(self, x: ElasticVector, y: ElasticVector) -> ElasticInertia:
        """M − x yᵀ, of parallel x and y."""
        return ElasticInertia(
            *self.rigid.less_outer(SpatialVector(*x[:2]), SpatialVector(*y[:2])),
            self.f - outer(x.modal, y.linear),
            self.n - outer(x.modal, y.angular),
            self.h - symmetric_outer(x.modal, y.modal),
        )
