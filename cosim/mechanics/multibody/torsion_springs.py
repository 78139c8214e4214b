"""Torsion springs about all axes, in spherical joints and between frames of bodies.

With the rotation vector φ of at most π and the stored energy ½ φᵀ K φ, the moment is the exact gradient: −J⁻¹(φ) K φ on
the second frame along its axes, J the left Jacobian of the rotations (Solà, Deray and Atchuthan, A micro Lie theory for
state estimation in robotics, 2018, eqs. 145 and 146). It is −K φ where K is the same in all directions. At |φ| = π the
shorter way round changes, and the moment jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError, InputErrors
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.coordinates import ROTATION, by_inverse_left_jacobian, quaternion_of
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.mechanism import Pose, Torsion, TorsionSpring
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.tree import Tree

REST = np.zeros(3)


class TorsionState(NamedTuple):
    """What a torsion spring records: angle |φ| [rad], size of its moment, damper included [N m], stored energy [J]."""

    angle: Numeric
    moment: Numeric
    energy: Numeric


def times(matrix: Numeric, vector: Numeric) -> Numeric:
    """A vector (3,) by a matrix (3, 3), or by one number for all directions."""
    return matrix * vector if np.ndim(matrix) == 0 else matrix @ vector


def spring_moment(torsion: Torsion, phi: Numeric) -> Numeric:
    """On the second frame, along its axes (3,) [N m]."""
    pull = -times(torsion.stiffness, phi)
    return pull if np.ndim(torsion.stiffness) == 0 else by_inverse_left_jacobian(phi, pull)


def spring_energy(torsion: Torsion, phi: Numeric) -> Numeric:
    """J"""
    return 0.5 * (phi @ times(torsion.stiffness, phi))


def size(vector: Numeric) -> Numeric:
    return ops.sqrt(vector @ vector)


class BallSpring(NamedTuple):
    """A torsion spring in a spherical joint of a tree."""

    name: str  # of the joint
    coordinates: list[int]  # of its quaternion, of all joints of the tree
    dofs: list[int]
    torsion: Torsion

    def _turn(self, q: Numeric) -> Numeric:
        return ROTATION.difference(self.torsion.rest, q[self.coordinates])

    def efforts(self, q: Numeric) -> Numeric:
        """On its dofs (3,); q: of all joints of the tree."""
        return spring_moment(self.torsion, self._turn(q))

    def energy(self, q: Numeric) -> Numeric:
        """Energy stored in the spring [J]."""
        return spring_energy(self.torsion, self._turn(q))

    def state(self, q: Numeric) -> TorsionState:
        return TorsionState(size(self._turn(q)), size(self.efforts(q)), self.energy(q))


class TorsionSpringDamper(NamedTuple):
    """A torsion spring with a damper between frames of two bodies."""

    name: str
    ends: tuple[tuple[int, Numeric], tuple[int, Numeric]]  # body (or GROUND), axes (3, 3) of the frame in the body
    torsion: Torsion
    damping: Numeric  # (3, 3) along the axes of the second frame, or one number

    def _motion(self, placed: Sequence[Placement]) -> tuple[Numeric, Numeric, Numeric]:
        """(φ; velocity of the second frame relative to the first, along its axes; these axes in the ground's)."""
        (first, v_first), (second, v_second) = (_axes(placed, *end) for end in self.ends)
        phi = ROTATION.difference(self.torsion.rest, quaternion_of(first.T @ second))
        return phi, second.T @ (v_second - v_first), second

    def _moment(self, phi: Numeric, spin: Numeric) -> Numeric:
        """On the second body, along the axes of its frame (3,) [N m]."""
        return spring_moment(self.torsion, phi) - times(self.damping, spin)

    def energy(self, placed: Sequence[Placement]) -> Numeric:
        """Energy stored in the spring [J]."""
        return spring_energy(self.torsion, self._motion(placed)[0])

    def loss(self, placed: Sequence[Placement]) -> Numeric:
        """Power dissipated by the damper [W]."""
        spin = self._motion(placed)[1]
        return spin @ times(self.damping, spin)

    def wrenches(self, placed: Sequence[Placement]) -> list[tuple[int, SpatialVector]]:
        """Force and moment on its bodies, at their origins along their axes."""
        phi, spin, axes = self._motion(placed)
        moment = axes @ self._moment(phi, spin)
        pairs = zip(self.ends, (-1.0, 1.0), strict=True)
        return [
            (body, SpatialVector(REST, placed[body].rotation.T @ (moment * sign)))
            for (body, _), sign in pairs
            if body != GROUND
        ]

    def state(self, placed: Sequence[Placement]) -> TorsionState:
        phi, spin, _ = self._motion(placed)
        return TorsionState(size(phi), size(self._moment(phi, spin)), spring_energy(self.torsion, phi))


def _axes(placed: Sequence[Placement], body: int, axes: Numeric) -> tuple[Numeric, Numeric]:
    """(axes, angular velocity) of a frame of a body in ground axes."""
    if body == GROUND:
        return axes, REST
    return placed[body].rotation @ axes, placed[body].angular


def ball_springs(tree: Tree) -> tuple[BallSpring, ...]:
    """The torsion springs in the joints of a tree; their constants may be symbols.

    Raises InputErrors for those in joints that are not spherical."""
    found, wrong = [], []
    nq = nv = 0
    for joint, kind in zip(tree.joints, tree.kinds, strict=True):
        if joint.torsion is not None and kind.space is not ROTATION:
            what = f"joint '{joint.name}' is {joint.kind}, and a torsion spring is for spherical ones"
            wrong.append(InputError(f"{what}; put it between its links", joint.place))
        elif joint.torsion is not None:
            places = list(range(nq, nq + kind.nq)), list(range(nv, nv + kind.nv))
            found.append(BallSpring(joint.name, *places, joint.torsion))
        nq, nv = nq + kind.nq, nv + kind.nv
    if wrong:
        raise InputErrors(wrong)
    return tuple(found)


def torsion_spring_dampers(tree: Tree, springs: Sequence[TorsionSpring]) -> tuple[TorsionSpringDamper, ...]:
    """The torsion springs of a mechanism on the bodies of its tree."""
    found = []
    for spring in springs:
        (a, on_a), (b, on_b) = (_on_body(tree, *end) for end in spring.ends)
        found.append(TorsionSpringDamper(spring.name, ((a, on_a), (b, on_b)), spring.torsion, spring.damping))
    return tuple(found)


def _on_body(tree: Tree, link: str, pose: Pose) -> tuple[int, Numeric]:
    body, place = tree.frames[link]
    return body, place.rotation @ pose.rotation
