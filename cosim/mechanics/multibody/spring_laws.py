"""Force laws of springs and dampers along a linear combination of joints, along a cord through several points, with a
range without force, and with polynomial stiffness and damping. And the constant force that carries a body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constraint_laws import ForceLaw, FrameState, polynomial
from cosim.mechanics.multibody.friction import FRICTION_SPEED


@dataclass(frozen=True)
class LengthLaw:
    """The force of a spring with a damper by its length l and its rate, above 0 where it pulls:

        s (k₀ + k₁ s + k₂ s² …) + l̇ (d₀ + d₁ |l̇| + d₂ l̇² …) + friction · sign(l̇), smoothed below FRICTION_SPEED,

    s: by how much l is above `upper`, or below `lower` (then s < 0); there is no spring force between them.
    SI units of the length.
    """

    lower: float
    upper: float
    stiffness: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    friction: float = 0.0

    @property
    def acts(self) -> bool:
        return any(self.stiffness) or any(self.damping) or self.friction != 0.0

    def force(self, length: Numeric, rate: Numeric) -> Numeric:
        deflection = ops.maximum(length - self.upper, 0.0) + ops.minimum(length - self.lower, 0.0)
        force = deflection * polynomial(self.stiffness)(deflection) + rate * polynomial(self.damping)(ops.abs(rate))
        return force + self.friction * ops.smooth_sign(rate, FRICTION_SPEED) if self.friction else force


def along_joints(coefficients: Sequence[float], law: LengthLaw) -> ForceLaw:
    """On joints of one coordinate each, by the length Σ cᵢ qᵢ."""
    weights = np.array(coefficients, dtype=float)

    def efforts(frames: Sequence[FrameState], q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        return -weights * law.force(weights @ q, weights @ v)

    return ForceLaw(efforts=efforts)


def along_cord(segments: Sequence[tuple[int, int, float]], constant: float, law: LengthLaw) -> ForceLaw:
    """On the points of a cord, by its length. segments: (first frame, second frame, part of the length) of its
    straight pieces; constant: the length of what does not change [m]. Points that coincide have no force."""

    def wrenches(frames: Sequence[FrameState], q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        length, rate, pulls = constant, 0.0, []
        for first, second, part in segments:
            apart = frames[second].position - frames[first].position
            distance = ops.sqrt(apart @ apart)
            direction = apart / ops.where(distance > 0.0, distance, 1.0)
            length = length + part * distance
            rate = rate + part * (direction @ (frames[second].linear - frames[first].linear))
            pulls.append(part * direction)
        tension = law.force(length, rate)
        found: list[Numeric] = [np.zeros(3) for _ in frames]
        for (first, second, _), pull in zip(segments, pulls, strict=True):
            found[first] = found[first] + tension * pull
            found[second] = found[second] - tension * pull
        return found

    return ForceLaw(wrenches)


def constant_force(force: Sequence[float]) -> ForceLaw:
    """One force (3,) [N] in ground axes at the origin of a frame."""
    return ForceLaw(lambda frames, q, v, t: [np.array(force)])
