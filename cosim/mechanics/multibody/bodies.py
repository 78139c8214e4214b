"""One rigid body of a tree and its motion relative to its parent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.spatial import SpatialInertia, SpatialVector

# rigid bodies have the types of this module and of `spatial`, elastic ones the types of `elastic_bodies` and
# `elastic_spatial`, with the same fields and functions
AnyBody = Any
AnyMotion = Any
AnyVector = Any
AnyInertia = Any


class Body(NamedTuple):
    """Constants of a body: its joint's frame in the parent (H, d), its mass, m·c and J about its origin,
    and the reflected rotor inertia on each velocity of its joint."""

    rotation: Numeric
    position: Numeric
    mass: Numeric
    moment: Numeric
    inertia: Numeric
    rotor: Numeric

    def own_inertia(self, motion: AnyMotion) -> SpatialInertia:
        """M of the body alone."""
        return SpatialInertia(self.mass * np.eye(3), ops.skew(self.moment), self.inertia)

    def own_force(self, motion: AnyMotion) -> SpatialVector:
        """Q of the body alone: −ω × (ω × m c) and −ω × J ω."""
        omega = motion.omega
        centrifugal = ops.cross(omega, ops.cross(omega, self.moment))
        return SpatialVector(-centrifugal, -ops.cross(omega, self.inertia @ omega))

    def own_moment(self, motion: AnyMotion) -> Numeric:
        """m c (3,)"""
        return self.moment

    def without_mass(self) -> Body:
        """The same body with neither mass nor rotors."""
        return self._replace(mass=0.0, moment=np.zeros(3), inertia=np.zeros((3, 3)), rotor=np.zeros(len(self.rotor)))


class BodyMotion(NamedTuple):
    """Pose and motion of a body relative to its parent."""

    turn: Numeric  # Q: the body's axes in the joint's frame
    position: Numeric  # d: its origin in the parent's axes
    hinge: tuple[SpatialVector, ...]  # columns of S, body axes
    slip: Numeric  # velocity of its origin in the joint's frame, body axes
    drift: SpatialVector  # the part of the velocity in the joint that depends on time alone
    omega: Numeric  # angular velocity, body axes
    bias: SpatialVector  # a′

    @property
    def below(self) -> Numeric:
        """What the motions of its children depend on."""
        return self.omega

    def moved_by(self, dofs: Sequence[int], parent_dofs: Sequence[int]) -> Iterable[tuple[int, SpatialVector]]:
        """The dofs, of the body or of its parent, that move it in its parent, and its velocity per unit of each."""
        return zip(dofs, self.hinge, strict=True)

    def moved_with(self, carried: SpatialVector, above: AnyVector) -> SpatialVector:
        """An acceleration `carried` to the body's origin, in the parent's axes, with what the modes of the parent
        add."""
        return carried

    def at_own_rest(self, acceleration: SpatialVector) -> AnyVector:
        """An acceleration of the body while its own modes have none."""
        return acceleration

    def with_rate(self, velocity: SpatialVector) -> SpatialVector:
        """A velocity of the body with the rates of its own modes."""
        return velocity

    def passed_on(self, at_parent: SpatialVector, here: SpatialVector) -> AnyVector:
        """A force, taken `at_parent`, with what it does to the modes of the parent; `here`: taken at the body's
        origin, in the parent's axes."""
        return at_parent

    def composed(self, at_parent: SpatialInertia, here: SpatialInertia) -> AnyInertia:
        """An inertia, likewise."""
        return at_parent


def to_body(body: AnyBody, motion: AnyMotion, a: Numeric) -> Numeric:
    """A vector from the parent's axes to the body's: Qᵀ Hᵀ a."""
    return motion.turn.T @ (body.rotation.T @ a)


def to_parent(body: AnyBody, motion: AnyMotion, a: Numeric) -> Numeric:
    """A vector from the body's axes to the parent's: H Q a."""
    return body.rotation @ (motion.turn @ a)


def transport(body: AnyBody, motion: AnyMotion, a: AnyVector) -> AnyVector:
    """C a_p: the acceleration of the body if its joint were fixed and all angular velocities 0."""
    carried = SpatialVector(a.linear + ops.cross(a.angular, motion.position), a.angular)
    linear, angular = motion.moved_with(carried, a)
    return motion.at_own_rest(SpatialVector(to_body(body, motion, linear), to_body(body, motion, angular)))


def transport_force(body: AnyBody, motion: AnyMotion, force: AnyVector) -> AnyVector:
    """Cᵀ Q: a force on the body, taken at the parent's origin."""
    here = SpatialVector(to_parent(body, motion, force.linear), to_parent(body, motion, force.angular))
    at_parent = SpatialVector(here.linear, here.angular + ops.cross(motion.position, here.linear))
    return motion.passed_on(at_parent, here)


def transport_inertia(body: AnyBody, motion: AnyMotion, m: AnyInertia) -> AnyInertia:
    """Cᵀ M C."""
    here = m.rotated(motion.turn).rotated(body.rotation)
    return motion.composed(here.translated(motion.position), here)


def transport_velocity(body: AnyBody, motion: AnyMotion, above: AnyVector) -> AnyVector:
    """The linear and angular velocity of the body from its parent's, each along own axes."""
    carried = above.linear + ops.cross(above.angular, motion.position)
    return motion.with_rate(SpatialVector(to_body(body, motion, carried) + motion.slip, motion.omega))
