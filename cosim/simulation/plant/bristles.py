"""Dry friction of joints that depends on more than the velocity: on bristles that hold, or on what the joints carry.

The deflections of the bristles are continuous states of the plant. Their rates σ₀ |v| / g(v) reach 1e5/s at ordinary
speeds: explicit steps of 1 ms would diverge. The linearly implicit methods are stable at any step, settle to the force
of sliding and bring sticking joints to rest without creep; `substeps: auto` sees the bristles like any other state. An
exact update of the bristles between explicit steps of the rest would be cheaper, but a light joint oscillates on its
bristles at √(σ₀/J), which explicit steps do not survive either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.friction import FrictionLoad, JointFriction
from cosim.simulation.plant.indicators import STANDSTILL


class JointLoads(NamedTuple):
    """What dofs carry, (nv,) each: efforts of the drives, and of all else but inertia."""

    drive: Numeric
    external: Numeric

    def of(self, k: int, law: JointFriction) -> FrictionLoad:
        """By what the friction of a dof grows."""
        return law.load(self.drive[k], self.external[k])


@dataclass(frozen=True)
class Bristles:
    """The bristles of joints with stiction. laws: by dof; real: dofs whose motion is measured, which have sliding
    friction."""

    laws: Mapping[int, JointFriction] = field(default_factory=dict)
    real: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.dofs)

    @property
    def dofs(self) -> list[int]:
        """That have bristles, in the order of their deflections z (n,)."""
        return [k for k, law in self.laws.items() if law.sticks and k not in self.real]

    @property
    def of_external(self) -> list[int]:
        """Dofs whose friction depends on the load of the mechanism."""
        return [k for k, law in self.laws.items() if law.of_external]

    def dry_efforts(self, v: Numeric, loads: JointLoads, z: Numeric) -> dict[int, Numeric]:
        """Dof -> dry friction that depends on more than the velocity; v (nv,)."""
        loaded = {
            k: law.sliding_effort(v[k], loads.of(k, law))
            for k, law in self.laws.items()
            if law.of_drive or law.of_external
        }
        pairs = zip(self.dofs, z, strict=True)
        return loaded | {k: self.laws[k].bristle_effort(v[k], zk, loads.of(k, self.laws[k])) for k, zk in pairs}

    def rates(self, v: Numeric, loads: JointLoads, z: Numeric) -> Numeric:
        """ż (n,)"""
        pairs = zip(self.dofs, z, strict=True)
        return ops.array([self.laws[k].bristle_rate(v[k], zk, loads.of(k, self.laws[k])) for k, zk in pairs])

    def energy(self, z: Numeric) -> Numeric:
        """Stored in the bristles [J]."""
        return ops.sum(0.5 * self.laws[k].bristle_stiffness * zk * zk for k, zk in zip(self.dofs, z, strict=True))

    def stored_power(self, z: Numeric, rates: Numeric) -> Numeric:
        """The rate of `energy` [W]."""
        pairs = zip(self.dofs, z, rates, strict=True)
        return ops.sum(self.laws[k].bristle_stiffness * zk * rate for k, zk, rate in pairs)

    def at_start(self, v: Numeric, loads: JointLoads, needed: Numeric) -> Numeric:
        """z (n,): of bristles that hold where the dof is at rest, as far as they can, and of sliding ones elsewhere.

        v, needed (nv,): velocities, friction that keeps the dofs at rest."""
        found = []
        for k in self.dofs:
            law, rests = self.laws[k], ops.abs(v[k]) <= STANDSTILL
            most = law.dry_friction(v[k], loads.of(k, law))
            force = ops.where(rests, ops.clip(needed[k], -most, most), ops.sign(v[k]) * most)
            found.append(force / law.bristle_stiffness)
        return ops.array(found)
