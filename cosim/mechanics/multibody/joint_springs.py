"""Springs in the joints of a tree: −k (x − rest) on each dof, x its position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cosim.core import ops
from cosim.core.errors import InputError, InputErrors
from cosim.core.types import Numeric
from cosim.mechanics.multibody.configuration_space import ConfigurationSpace
from cosim.mechanics.multibody.coordinates import MOTION, ROTATION
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.tree import Tree


@dataclass(frozen=True)
class JointSprings:
    """The springs in the joints of a tree that has at least one; values of all its dofs, 0 without a spring."""

    kinds: Sequence[JointKind]  # of all joints of the tree
    stiffness: Numeric  # (dofs,) N m/rad or N/m
    rest: Numeric  # (dofs,) position at which a spring is unloaded

    def efforts(self, q: Numeric) -> Numeric:
        """On the dofs, along +v; q: of all joints of the tree."""
        return -self.stiffness * self._deflection(q)

    def energy(self, q: Numeric) -> Numeric:
        """Energy stored in the springs [J]."""
        deflection = self._deflection(q)
        return 0.5 * (deflection @ (self.stiffness * deflection))

    def _deflection(self, q: Numeric) -> Numeric:
        return ConfigurationSpace(self.kinds).chart(q) - self.rest


def joint_springs(tree: Tree) -> JointSprings | None:
    """The springs in the joints of a tree, None where there are none; their constants may be symbols.

    Raises InputErrors for springs in joints whose positions are rotations: these are no coordinates that a spring
    could deflect."""
    pairs = list(zip(tree.joints, tree.kinds, strict=True))
    what = "joint '{}' turns freely, so it has no coordinate for a spring; use a torsion spring"
    sprung = [(joint, kind) for joint, kind in pairs if not ops.is_zero(joint.stiffness)]
    wrong = [joint for joint, kind in sprung if kind.space in (ROTATION, MOTION)]
    if wrong:
        raise InputErrors([InputError(what.format(joint.name), joint.place) for joint in wrong])
    if not any(kind.nv for _, kind in sprung):
        return None
    stiffness, rest = (
        ops.array([getattr(joint, attribute) for joint, kind in pairs for _ in range(kind.nv)])
        for attribute in ("stiffness", "rest")
    )
    return JointSprings(tree.kinds, stiffness, rest)
