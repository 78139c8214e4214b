"""The coordinates of several joints as one space: each joint has its own `coordinates.Space`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.joints import JointKind


class ConfigurationSpace:
    """Pure functions of the coordinates q (nq,) and velocities v (nv,) of joints, in joint order."""

    def __init__(self, kinds: Sequence[JointKind]) -> None:
        self.kinds = tuple(kinds)
        self.nq, self.nv = sum(kind.nq for kind in kinds), sum(kind.nv for kind in kinds)

    def rate(self, q: Numeric, v: Numeric) -> Numeric:
        """q̇ (nq,)"""
        return self._of_q_and_v("rate", q, v)

    def integrate(self, q: Numeric, d: Numeric) -> Numeric:
        """The coordinates (nq,) reached from q with a constant velocity v for dt, d = v dt (nv,)."""
        return self._of_q_and_v("integrate", q, d)

    def difference(self, q0: Numeric, q1: Numeric) -> Numeric:
        """d (nv,) with q1 = integrate(q0, d)."""
        return self._of_two("difference", q0, q1)

    def offset(self, q0: Numeric, q1: Numeric) -> Numeric:
        """(nv,) whose length is the distance of q1 from q0: of each coordinate, and of rotations the angle. It is the
        gradient of half the squared distance along the dofs at q1."""
        return self._of_two("offset", q0, q1)

    def _of_two(self, what: str, q0: Numeric, q1: Numeric) -> Numeric:
        parts, start = [], 0
        for kind in self.kinds:
            place = slice(start, start := start + kind.nq)
            parts.append(getattr(kind.space, what)(q0[place], q1[place]))
        return ops.concatenate(parts)

    def chart(self, q: Numeric) -> Numeric:
        """(nv,) positions of the dofs: the coordinates, and the rotation vector of each rotation."""
        return self._of_q("chart", q)

    def coordinates(self, chart: Numeric) -> Numeric:
        """q (nq,) from the positions of the dofs (nv,), as `chart` gives them and encoders measure them."""
        parts, start = [], 0
        for kind in self.kinds:
            parts.append(kind.space.of_chart(chart[start : start + kind.nv]))
            start += kind.nv
        return ops.concatenate(parts)

    @property
    def units(self) -> list[str]:
        """(nv,) of the dofs: `rad` or `m`"""
        return [unit for kind in self.kinds for _, unit in kind.dofs]

    def normalised(self, q: Numeric) -> Numeric:
        """q with quaternions of length 1."""
        return self._of_q("normalised", q)

    @cached_property
    def axes_turn(self) -> bool:
        """Whether velocities of any joint are along axes that they turn."""
        return any(kind.space.axes for kind in self.kinds)

    def transport(self, v: Numeric) -> Numeric:
        """(nv,) the part of v̇ that comes from the turning of the axes of v alone."""
        parts, start = [], 0
        for kind in self.kinds:
            own = v[start : start + kind.nv]
            parts.append(kind.space.axes.transport(own) if kind.space.axes else np.zeros(kind.nv))
            start += kind.nv
        return ops.concatenate(parts)

    def turned(self, v: Numeric, d: Numeric) -> Numeric:
        """v (nv,) along the axes after a displacement d (nv,) along those before; turned(·, −d) goes back."""
        parts, start = [], 0
        for kind in self.kinds:
            place = slice(start, start := start + kind.nv)
            parts.append(kind.space.axes.turned(v[place], d[place]) if kind.space.axes else v[place])
        return ops.concatenate(parts)

    def _of_q(self, what: str, q: Numeric) -> Numeric:
        parts, start = [], 0
        for kind in self.kinds:
            parts.append(getattr(kind.space, what)(q[start : start + kind.nq]))
            start += kind.nq
        return ops.concatenate(parts)

    def _of_q_and_v(self, what: str, q: Numeric, v: Numeric) -> Numeric:
        parts, nq, nv = [], 0, 0
        for kind in self.kinds:
            parts.append(getattr(kind.space, what)(q[nq : nq + kind.nq], v[nv : nv + kind.nv]))
            nq, nv = nq + kind.nq, nv + kind.nv
        return ops.concatenate(parts)


class ChosenDofs:
    """Some dofs of a space; other joints than theirs cost no time. Numbers only."""

    def __init__(self, space: ConfigurationSpace, dofs: np.ndarray) -> None:
        """dofs: their indices in v."""
        wanted, joints, coordinates, velocities, nq, nv = set(dofs.tolist()), [], [], [], 0, 0
        for kind in space.kinds:
            if not wanted.isdisjoint(range(nv, nv + kind.nv)):
                joints.append(kind)
                coordinates += range(nq, nq + kind.nq)
                velocities += range(nv, nv + kind.nv)
            nq, nv = nq + kind.nq, nv + kind.nv
        self._joints, self._coordinates = ConfigurationSpace(joints), np.array(coordinates, dtype=int)
        self._dofs = np.searchsorted(velocities, dofs)
        self.units = [self._joints.units[k] for k in self._dofs]

    def __len__(self) -> int:
        return len(self.units)

    def moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The coordinates (nq,) of the whole space after a step of the dofs."""
        steps, result = np.zeros(self._joints.nv), np.array(q)
        steps[self._dofs] = step
        result[self._coordinates] = self._joints.normalised(self._joints.integrate(q[self._coordinates], steps))
        return result

    def offset(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        """See `ConfigurationSpace.offset`."""
        offset = self._joints.offset(q0[self._coordinates], q1[self._coordinates])
        return np.asarray(offset, dtype=float)[self._dofs]
