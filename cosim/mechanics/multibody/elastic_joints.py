"""The joints of an elastic body: the one that carries its modes, and its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from cosim.core import ops
from cosim.core.compile.pytree import Pytree
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.bodies import AnyBody, BodyMotion
from cosim.mechanics.multibody.coordinates import numbers
from cosim.mechanics.multibody.elastic.link import Displacement
from cosim.mechanics.multibody.elastic_bodies import ModalMotion, ModalShape, NodeMotion
from cosim.mechanics.multibody.elastic_spatial import ElasticVector, of_mode
from cosim.mechanics.multibody.joint_kind import JointKind, Names
from cosim.mechanics.multibody.mechanism import GeneralMotion
from cosim.mechanics.multibody.part_names import part_of
from cosim.mechanics.multibody.spatial import Hinge, SpatialVector

MODES = part_of("", "modes")  # ends the name of the joint that carries the modes of a link
SMALL = 0.01  # m or rad, largest of a random modal coordinate
_STILL = SpatialVector(np.zeros(3), np.zeros(3))


@dataclass(frozen=True, eq=False)
class ModesKind(JointKind):
    """Coordinates of the modes; the frame of the body does not move with them."""

    @property
    def is_single(self) -> bool:
        return False  # a mode has a name of its own

    def named(self, joint: str, parts: Names) -> list[str]:
        """Names of the modes, after the link."""
        return super().named(joint.removesuffix(MODES), parts)

    def in_general_position(self, rng: np.random.Generator) -> Array:
        return self.space.neutral  # displacements are small

    @property
    def widest(self) -> Array:
        return np.full(self.nq, SMALL)

    def motion(self, body: AnyBody, above: Pytree, q: Numeric, v: Numeric, t: Numeric) -> ModalMotion:
        motion: BodyMotion = super().motion(body, above, q, v, t)
        at_rest = np.zeros(self.nv)
        hinge = tuple(of_mode(mu, self.nv) for mu in range(self.nv))
        drift, bias = ElasticVector(*motion.drift, at_rest), ElasticVector(*motion.bias, at_rest)
        return ModalMotion(motion.turn, motion.position, hinge, motion.slip, drift, motion.omega, bias, q, v)


@dataclass(frozen=True, eq=False)
class NodeKind(JointKind):
    """A place that depends on the modes of the parent; no dofs of its own."""

    node: Displacement = field(kw_only=True)

    def motion(self, body: AnyBody, above: ModalShape, q: Numeric, v: Numeric, t: Numeric) -> NodeMotion:
        omega, eta, rate = above
        turn, slide = self.node.place(eta)
        axes, position = body.rotation @ turn, body.position + body.rotation @ slide
        modes, velocity, bias = self.node.motion(eta, rate)
        modes, (slip, spin), (linear, angular) = (
            tuple(_turned(body.rotation, s) for s in modes),
            _turned(body.rotation, velocity),
            _turned(body.rotation, bias),
        )
        linear = ops.cross(omega, ops.cross(omega, position) + 2.0 * slip) + linear
        bias = SpatialVector(linear, ops.cross(omega, spin) + angular)
        own = axes.T @ slip, _STILL, axes.T @ (omega + spin), _turned(axes.T, bias)
        return NodeMotion(turn, position, (), *own, modes, axes)


def _turned(rotation: Numeric, vector: SpatialVector) -> SpatialVector:
    return SpatialVector(rotation @ vector.linear, rotation @ vector.angular)


def are_modes(kinds: Iterable[JointKind]) -> Array:
    """(nv,) of every dof of joints of these kinds, whether it is a mode of an elastic link."""
    return np.array([isinstance(kind, ModesKind) for kind in kinds for _ in range(kind.nv)], dtype=bool)


@cache
def modes_kind(motion: GeneralMotion) -> ModesKind:
    """The kind of the modes with the names and units of the motion; its place is the undeformed body's."""
    names = tuple(zip(motion.names, motion.units, strict=True))
    return ModesKind(numbers(len(names)), names, motion.place, _no_motion)


def node_kind(node: Displacement | None) -> NodeKind:
    """Of a node."""
    assert node is not None
    return NodeKind(numbers(0), (), lambda eta, t: node.place(eta), _no_motion, node=node)


def _no_motion(q: Numeric, v: Numeric, t: Numeric) -> Hinge:
    return Hinge((), _STILL, _STILL)
